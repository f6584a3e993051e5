// Goal: when the file system of an index is full, what adds is refused at once with the reason,
// what frees space goes on as long as index or log have room, and all goes on when there is space
// again.

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

// That one checkpoint may have.
constexpr std::size_t kFewChanges = 400;

// Buffered writes of a block, until one is refused.
fop::Status write_until_refused(StoreStage& stage, fop::Fid fid) {
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 1));
    for (int i = 0; i < 10'000; ++i) {
        const fop::Status status = stage.call(write.spec(WriteSpec::Way::kInline)).status();
        if (status != fop::Status::kDone) return status;
    }
    return fop::Status::kDone;
}

}  // namespace

TEST_CASE("reqh index: one that is full says so, and goes on afterwards", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    const auto fid = stage.create("one");
    stage.index_image().refusal = Error{.code = Errc::kNoSpace, .os_errno = 28, .context = "map"};
    REQUIRE(write_until_refused(stage, fid) == fop::Status::kNoSpace);

    const Instant began = stage.world.now();
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 2));
    FakeFop& refused = stage.call(write.spec(WriteSpec::Way::kInline));
    REQUIRE(refused.status() == fop::Status::kNoSpace);
    REQUIRE(refused.answer->words == "there is no space left for the index of its disk");
    REQUIRE(stage.world.now() - began < 1s);
    REQUIRE(stage.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 1));

    stage.index_image().refusal.reset();
    stage.run_for(10s);
    REQUIRE(stage.call(write.spec(WriteSpec::Way::kInline)).status() == fop::Status::kDone);
    REQUIRE(stage.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 2));
    REQUIRE(stage.all_buffers_are_back());
}

TEST_CASE("reqh index: nothing is lost when the power goes while it is full", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    const auto fid = stage.create("one");
    stage.index_image().refusal = Error{.code = Errc::kNoSpace, .os_errno = 28, .context = "map"};
    REQUIRE(write_until_refused(stage, fid) == fop::Status::kNoSpace);
    stage.lose_power();
    stage.index_image().refusal.reset();
    stage.start();

    REQUIRE(stage.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 1));
    stage.write(fid, 0, pattern(objects::kBlock, 2));
    REQUIRE(stage.read(fid, 0, objects::kBlock) == pattern(objects::kBlock, 2));
}

// The index takes what frees from its reserve.
TEST_CASE("reqh index: one without a reserve takes deletes, truncates and punches only", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    std::vector<fop::Fid> fids;
    for (int i = 0; i < 600; ++i) {
        fids.push_back(stage.create(std::to_string(i)));
        if (i % 4 == 0) stage.write(fids.back(), 0, pattern(4 * objects::kBlock, 1));
    }
    stage.index_image().has_reserve = false;
    stage.run_for(10s);
    REQUIRE(stage.event_count("store.index_full") == 1);
    const WriteSpec refused(fids[0], {{.offset = 0, .length = objects::kBlock}},
                            pattern(objects::kBlock, 2));
    FakeFop& write = stage.call(refused.spec(WriteSpec::Way::kInline));
    REQUIRE(write.status() == fop::Status::kNoSpace);
    REQUIRE(write.answer->words == "there is no space left for the index of its disk");
    REQUIRE(stage.call(truncate(fids[0], 100)).status() == fop::Status::kDone);
    REQUIRE(stage.call(punch(fids[4], {.offset = 10, .length = 3 * objects::kBlock})).status() ==
            fop::Status::kNoSpace);
    REQUIRE(stage.call(punch(fids[4], {.offset = 10, .length = 4 * objects::kBlock})).status() ==
            fop::Status::kDone);
    for (const fop::Fid fid : fids) {
        FakeFop& removed = stage.call({.type = type_of("delete"), .body = fop::Delete{.fid = fid}});
        REQUIRE(removed.status() == fop::Status::kDone);
    }
    stage.lose_power();
    stage.start();
    REQUIRE(stage
                .call({.type = type_of("create"),
                       .body = fop::Create{.slot = kFirstSlot, .mode = 0600}})
                .status() == fop::Status::kNoSpace);

    stage.index_image().has_reserve = true;
    stage.run_for(10s);
    REQUIRE(stage.event_count("store.index_has_room") == 1);
    stage.create("again");
}

// The index has room for checkpoints of few changes.
TEST_CASE("reqh index: one without a reserve is given few changes at a time", "[reqh]") {
    StoreStage stage({.disk_bytes = 32UL << 20});
    std::vector<fop::Fid> fids;
    for (int i = 0; i < 2000; ++i) fids.push_back(stage.create());
    // Two of hundreds of extents.
    for (std::uint64_t i = 0; i < 300; ++i) {
        stage.write(fids[0], 2 * i * objects::kBlock, pattern(objects::kBlock, 1));
        stage.write(fids[1], 2 * i * objects::kBlock, pattern(objects::kBlock, 1));
    }
    stage.index_image().has_reserve = false;
    stage.run_for(20s);
    REQUIRE(stage.event_count("store.index_full") == 1);
    stage.index_image().changes_max = kFewChanges;

    std::vector<FakeFop*> under_way;
    under_way.push_back(&stage.send(truncate(fids[0], 100)));
    for (std::size_t i = 1; i < fids.size(); ++i) {
        under_way.push_back(
            &stage.send({.type = type_of("delete"), .body = fop::Delete{.fid = fids[i]}}));
    }
    for (FakeFop* const fop : under_way) {
        stage.wait_for(*fop);
        INFO(fop->answer->words);
        REQUIRE(fop->status() == fop::Status::kDone);
    }
    stage.run_for(20s);
    REQUIRE_FALSE(stage.volume().sweeping());
    REQUIRE(stage.index_image().refused_count == 0);
}

TEST_CASE("reqh index: one without a reserve is given few changes at a time by a start", "[reqh]") {
    StoreStage stage({.disk_bytes = 32UL << 20});
    stage.run_for(6s);
    for (int i = 0; i < 300; ++i) stage.create();
    stage.index_image().has_reserve = false;
    stage.index_image().changes_max = kFewChanges;
    stage.lose_power();
    stage.start();

    REQUIRE(stage.volume().serving());
    REQUIRE(stage.index_image().refused_count == 0);
}

TEST_CASE("reqh index: what waits for room in the log is refused when the index fails", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    const auto fid = stage.create("one");
    stage.index_image().refusal = Error{.code = Errc::kIo, .context = "map"};
    const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 1));
    std::vector<FakeFop*> under_way;
    while (stage.volume().serving()) {
        REQUIRE(under_way.size() < 10'000);
        for (int i = 0; i < 8; ++i) {
            under_way.push_back(&stage.send(write.spec(WriteSpec::Way::kInline)));
        }
        stage.run_for(100us);
    }
    stage.run_for(1s);
    for (const FakeFop* const fop : under_way) REQUIRE(fop->answer.has_value());
}

// The log is full with removals, and what frees their space is a record, too.
TEST_CASE("reqh index: what was removed before it was full is freed when it goes on", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    const auto kept = stage.create("kept");
    const WriteSpec again(kept, {{.offset = 0, .length = objects::kBlock}},
                          pattern(objects::kBlock, 1));
    const std::uint64_t free_before = stage.volume().space_use().free_blocks;
    stage.index_image().refusal = Error{.code = Errc::kNoSpace, .os_errno = 28, .context = "map"};
    fop::Status status = fop::Status::kDone;
    for (int i = 0; status == fop::Status::kDone; ++i) {
        REQUIRE(i < 10'000);
        const FakeFop& made = stage.call(
            {.type = type_of("create"), .body = fop::Create{.slot = kFirstSlot, .mode = 0600}});
        status = made.status();
        if (status != fop::Status::kDone) break;
        const fop::Fid fid = std::get<fop::CreateReply>(made.answer->body).fid;
        const WriteSpec write(fid, {{.offset = 0, .length = objects::kBlock}},
                              pattern(objects::kBlock, 1));
        stage.call(write.spec(WriteSpec::Way::kInline));
        status = stage.call({.type = type_of("delete"), .body = fop::Delete{.fid = fid}}).status();
    }
    REQUIRE(status == fop::Status::kNoSpace);
    stage.run_for(3s);
    REQUIRE(stage.volume().serving());

    stage.index_image().refusal.reset();
    stage.run_for(10s);
    REQUIRE(stage.call(again.spec(WriteSpec::Way::kInline)).status() == fop::Status::kDone);
    stage.run_for(1s);
    REQUIRE(stage.volume().space_use().free_blocks + 64 >= free_before);
}

TEST_CASE("reqh index: what was replaced before it was full goes when it goes on", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    stage.index_image().refusal = Error{.code = Errc::kNoSpace, .os_errno = 28, .context = "map"};
    fop::Status status = fop::Status::kDone;
    for (int i = 0; status == fop::Status::kDone; ++i) {
        REQUIRE(i < 10'000);
        status = stage
                     .call({.type = type_of("create"),
                            .body = fop::Create{.name = "one", .slot = kFirstSlot, .mode = 0600}})
                     .status();
    }
    REQUIRE(status == fop::Status::kNoSpace);
    stage.run_for(3s);
    REQUIRE(stage.volume().serving());

    stage.index_image().refusal.reset();
    stage.run_for(20s);
    const FakeFop& statfs = stage.call({.type = type_of("statfs"), .body = fop::Statfs{}});
    REQUIRE(std::get<fop::StatfsReply>(statfs.answer->body).objects == 1);
}
