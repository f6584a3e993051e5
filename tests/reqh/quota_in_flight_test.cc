// Goal: what the writes of an owner that are in flight will add counts for its quota, once, so that
// they do not exceed it together, on all localities. Method: as quota_test.cc, with clients whose
// bytes take time to come.

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "objects/pool_quota.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing::quota_in_flight {

namespace {

constexpr std::uint64_t kUnlimited = objects::QuotaAccount::kUnlimited;

// Requests of clients whose memory answers late, and their lists.
class SlowWrites {
public:
    explicit SlowWrites(StoreStage& stage) : stage_(stage) {}

    FopSpec write(fop::Fid fid, std::uint64_t first, std::uint64_t blocks,
                  Duration transfer_time = 1s) {
        const fop::Range range{.offset = first * kBlock, .length = blocks * kBlock};
        FopSpec spec = writes_.emplace_back(fid, std::vector{range}, pattern(range.length, first))
                           .spec(WriteSpec::Way::kMemory);
        spec.transfer_time = transfer_time;
        return spec;
    }
    FopSpec append(fop::Fid fid, std::uint64_t blocks) {
        FopSpec spec =
            appends_.emplace_back(fid, pattern(blocks * kBlock, 7)).spec(WriteSpec::Way::kMemory);
        spec.transfer_time = 1s;
        return spec;
    }
    FopSpec upload_write(fop::Fid fid, std::uint64_t first, std::uint64_t blocks) {
        Part& part = parts_.emplace_back();
        part.bytes = pattern(blocks * kBlock, first);
        part.range = {.offset = first * kBlock, .length = part.bytes.size()};
        part.checksums = checksums_of({part.range}, part.bytes);
        fop::UploadWrite body{
            .fid = fid,
            .range = part.range,
            .checksums = fop::List<std::uint32_t>(part.checksums.data(), part.checksums.size())};
        body.source.emplace();
        return {.type = type_of("upload_write"),
                .body = body,
                .source = part.bytes,
                .transfer_time = 1s};
    }
    FakeFop& send(FopSpec spec, std::uint32_t locality = 0) {
        sent_.push_back(&stage_.send(std::move(spec), locality));
        return *sent_.back();
    }
    // Until all are answered. No step lets an account have more than it may.
    void wait(const objects::QuotaAccount& account) {
        const auto has_ended = [](const FakeFop* each) { return each->answer.has_value(); };
        while (!std::ranges::all_of(sent_, has_ended)) {
            REQUIRE(stage_.world.step());
            REQUIRE(account.used().blocks <= account.limit().blocks);
        }
    }
    std::ptrdiff_t count(fop::Status status) const {
        return std::ranges::count_if(
            sent_, [status](const FakeFop* each) { return each->status() == status; });
    }
    // The number of those whose bytes were asked for.
    std::ptrdiff_t pulled() const {
        return std::ranges::count_if(sent_,
                                     [](const FakeFop* each) { return !each->transfers.empty(); });
    }

private:
    struct Part {
        Bytes bytes;
        fop::Range range{};
        std::vector<std::uint32_t> checksums;
    };

    StoreStage& stage_;
    std::deque<WriteSpec> writes_;
    std::deque<AppendSpec> appends_;
    std::deque<Part> parts_;
    std::vector<FakeFop*> sent_;
};

// A node with two disks on two localities, and an owner with a quota of so many blocks.
StageOptions of_two_localities(std::uint64_t blocks) {
    return {.localities = 2,
            .disks = 2,
            .buffer_count = 64,
            .owner_limits = {{"alice", {.blocks = blocks, .objects = kUnlimited}}}};
}

FopSpec from_client(FopSpec spec) {
    spec.client = {std::byte{0xa}};
    spec.number = 1;
    return spec;
}

}  // namespace

TEST_CASE("reqh quota in flight: a hundred writes at once have the quota between them", "[reqh]") {
    StoreStage stage(of_two_localities(30));
    const std::array fids{stage.create("one", stage.slot(0)), stage.create("two", stage.slot(1))};
    SlowWrites writes(stage);
    for (std::uint64_t i = 0; i < 100; ++i) {
        writes.send(writes.write(fids[i % 2], i * 3, 3), static_cast<std::uint32_t>(i % 2));
    }
    writes.wait(stage.quota().account_of("alice"));
    CHECK(writes.count(fop::Status::kDone) == 10);
    CHECK(writes.count(fop::Status::kQuota) == 90);
    CHECK(writes.pulled() == 10);
    CHECK(stage.quota().account_of("alice").used() == objects::Amount{.blocks = 30, .objects = 2});
    CHECK(stage.quota().account_of("alice").in_flight_blocks() == 0);
    CHECK(stage.all_buffers_are_back());
}

TEST_CASE("reqh quota in flight: writes of all owners have the quota of the pool between them",
          "[reqh]") {
    StoreStage stage({.localities = 2, .disks = 2, .buffer_count = 64, .quota_blocks = 20});
    const std::array fids{stage.create("one", stage.slot(0)), stage.create("two", stage.slot(1)),
                          stage.create("three", stage.slot(0)),
                          stage.create("four", stage.slot(1))};
    SlowWrites writes(stage);
    for (std::uint64_t i = 0; i < 40; ++i) {
        const fop::Fid fid = fids[i % 4];
        FopSpec spec = i % 4 < 2 ? writes.write(fid, i * 2, 2) : writes.append(fid, 2);
        writes.send(std::move(spec), static_cast<std::uint32_t>(i % 2));
    }
    writes.wait(stage.quota().whole());
    CHECK(writes.count(fop::Status::kDone) == 10);
    CHECK(writes.count(fop::Status::kQuota) == 30);
    CHECK(writes.pulled() == 10);
    CHECK(stage.quota().whole().used() == objects::Amount{.blocks = 20, .objects = 4});
}

TEST_CASE("reqh quota in flight: writes of uploads have the quota between them", "[reqh]") {
    StoreStage stage(of_two_localities(20));
    SlowWrites writes(stage);
    for (std::uint32_t i = 0; i < 40; ++i) {
        const std::uint32_t disk = i % 2;
        const FakeFop& begun =
            stage.call({.type = type_of("upload_begin"),
                        .body = fop::UploadBegin{.slot = stage.slot(disk), .mode = 0600}});
        REQUIRE(begun.status() == fop::Status::kDone);
        const fop::Fid fid = std::get<fop::UploadBeginReply>(begun.answer->body).fid;
        writes.send(writes.upload_write(fid, 0, 2), disk);
    }
    writes.wait(stage.quota().account_of("alice"));
    CHECK(writes.count(fop::Status::kDone) == 10);
    CHECK(writes.count(fop::Status::kQuota) == 30);
    CHECK(writes.pulled() == 10);
    CHECK(stage.quota().account_of("alice").used() == objects::Amount{.blocks = 20, .objects = 40});
}

TEST_CASE("reqh quota in flight: writes without holes are not refused, however many", "[reqh]") {
    StoreStage stage(of_two_localities(8));
    const fop::Fid fid = stage.create("one", stage.slot(0));
    stage.write(fid, 0, pattern(8 * kBlock, 1));
    // Also above a limit that was lowered.
    stage.quota().account_of("alice").set_limit({.blocks = 3, .objects = kUnlimited});
    SlowWrites writes(stage);
    for (std::uint32_t i = 0; i < 12; ++i) writes.send(writes.write(fid, i % 2 * 4, 4), i % 2);
    stage.run_for(1min);
    CHECK(writes.count(fop::Status::kDone) == 12);
    CHECK(stage.quota().account_of("alice").used() == objects::Amount{.blocks = 8, .objects = 1});
}

TEST_CASE("reqh quota in flight: a hole that two writes fill counts once", "[reqh]") {
    StoreStage stage(of_two_localities(10));
    const fop::Fid fid = stage.create("one", stage.slot(0));
    SlowWrites writes(stage);
    const FakeFop& one = writes.send(writes.write(fid, 0, 8));
    const FakeFop& other = writes.send(writes.write(fid, 4, 6), 1);
    stage.run_for(500ms);
    CHECK(stage.quota().account_of("alice").in_flight_blocks() == 10);
    const FakeFop& beyond = writes.send(writes.write(fid, 9, 2));
    writes.wait(stage.quota().account_of("alice"));
    CHECK(one.status() == fop::Status::kDone);
    CHECK(other.status() == fop::Status::kDone);
    CHECK(beyond.status() == fop::Status::kQuota);
    CHECK(stage.quota().account_of("alice").used().blocks == 10);
}

TEST_CASE("reqh quota in flight: a write that is sent again while it is in flight counts once",
          "[reqh]") {
    StoreStage stage(of_two_localities(10));
    const fop::Fid fid = stage.create("one", stage.slot(0));
    const objects::QuotaAccount& alice = stage.quota().account_of("alice");
    SlowWrites writes(stage);
    const bool appends = GENERATE(false, true);
    CAPTURE(appends);
    const FopSpec spec = from_client(appends ? writes.append(fid, 10) : writes.write(fid, 0, 10));

    SECTION("one of them is made") {
        writes.send(spec);
        stage.run_for(500ms);
        writes.send(spec, 1);
        stage.run_for(100ms);
        CHECK(alice.used().blocks == 10);
        writes.wait(alice);
        CHECK(writes.count(fop::Status::kDone) == 2);
    }
    SECTION("the first one fails, and the other still counts") {
        FopSpec failing = spec;
        failing.failing_transfer = 0;
        const FakeFop& first = writes.send(failing);
        stage.run_for(500ms);
        const FakeFop& again = writes.send(spec, 1);
        stage.run_for(700ms);
        REQUIRE(first.answer.has_value());
        CHECK(first.status() != fop::Status::kDone);
        REQUIRE_FALSE(again.answer.has_value());
        CHECK(alice.in_flight_blocks() == 10);
        const FakeFop& beyond = writes.send(writes.write(fid, 20, 1));
        writes.wait(alice);
        CHECK(again.status() == fop::Status::kDone);
        CHECK(beyond.status() == fop::Status::kQuota);
    }
    CHECK(alice.used().blocks == 10);
    CHECK(alice.in_flight_blocks() == 0);
}

TEST_CASE("reqh quota in flight: what a failed write would have added can be had", "[reqh]") {
    StoreStage stage(of_two_localities(10));
    const fop::Fid fid = stage.create("one", stage.slot(0));
    SlowWrites writes(stage);
    FopSpec spec = writes.write(fid, 0, 10);
    spec.failing_transfer = 0;
    const FakeFop& failing = writes.send(std::move(spec));
    stage.run_for(500ms);
    const FakeFop& early = stage.call(writes.write(fid, 10, 1));
    CHECK(early.status() == fop::Status::kQuota);
    CHECK(early.answer->words ==
          "quota of alice in pool fast: 40960 of 40960 bytes used, 4096 more wanted");
    stage.run_for(1s);
    REQUIRE(failing.answer.has_value());
    CHECK(stage.quota().account_of("alice").used().blocks == 0);
    CHECK(stage.call(writes.write(fid, 0, 10)).status() == fop::Status::kDone);
}

TEST_CASE("reqh quota in flight: a write counts for the owner that the object has in the end",
          "[reqh]") {
    StageOptions options = of_two_localities(10);
    options.owner_limits["bob"] = {.blocks = 6, .objects = kUnlimited};
    StoreStage stage(options);
    const fop::Fid fid = stage.create("one", stage.slot(0));
    SlowWrites writes(stage);
    const std::uint64_t blocks = GENERATE(6UL, 7UL);
    const FakeFop& write = writes.send(writes.write(fid, 0, blocks));
    stage.run_for(500ms);
    CHECK(stage.quota().account_of("alice").used().blocks == blocks);
    const FopSpec give{.type = type_of("set_attributes"),
                       .body = fop::SetAttributes{
                           .fid = fid, .owner = "bob", .which = fop::SetAttributes::kOwner}};
    REQUIRE(stage.call(give).status() == fop::Status::kDone);
    stage.run_for(2s);
    REQUIRE(write.answer.has_value());
    const bool fits = blocks <= 6;
    CHECK(write.status() == (fits ? fop::Status::kDone : fop::Status::kQuota));
    CHECK(stage.quota().account_of("alice").used() == objects::Amount{});
    CHECK(stage.quota().account_of("bob").used() ==
          objects::Amount{.blocks = fits ? blocks : 0, .objects = 1});
    CHECK(stage.quota().whole().used().blocks == (fits ? blocks : 0));
}

}  // namespace fopd::reqh::testing::quota_in_flight
