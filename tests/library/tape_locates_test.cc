// Goal: copies that lie near to each other are read without moving the tape back and forth.
// Method: a library in the simulated world has many objects in one tape file; its drives count the
// locates that move the tape.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

constexpr std::size_t kObjectBytes = 200'000;

struct Member {
    store::Fid fid{};
    Bytes bytes{};
};

TapeStageOptions one_drive() {
    TapeStageOptions options;
    options.localities = 1;
    options.disks = 1;
    options.disk_bytes = 128UL << 20;
    options.drives = 1;
    options.cartridge_bytes = 18'000'000'000'000;
    options.pool.staging_high = 0;  // Nothing leaves by itself.
    const auto algorithms = io_sched::drive_algorithms();
    const auto grouped = std::ranges::find(algorithms, std::string_view("grouped_read"),
                                           &io_sched::DriveAlgorithm::name);
    REQUIRE(grouped != algorithms.end());
    options.io.tape.read_algo = &*grouped;
    return options;
}

// Objects that are members of one tape file, in its order, and on no disk any more.
std::vector<Member> put_in_one_file(TapeStage& stage, std::size_t count) {
    std::vector<Member> members;
    for (std::size_t i = 0; i < count; ++i) {
        Bytes bytes = pattern(kObjectBytes, i);
        const store::Fid fid = stage.put(bytes);
        members.push_back({.fid = fid, .bytes = std::move(bytes)});
    }
    REQUIRE(stage.sync(1h).has_value());
    const auto position_of = [&stage](const Member& each) {
        return stage.copies_of(each.fid).at(0).position;
    };
    std::ranges::sort(members, {}, position_of);
    REQUIRE(position_of(members.front()).file == position_of(members.back()).file);
    for (const Member& each : members) REQUIRE(stage.release(each.fid).has_value());
    return members;
}

std::uint64_t locates(TapeStage& stage) {
    return stage.drive(0).figures().locates;
}

// All are asked for before the first is read.
void recall_all(TapeStage& stage, const std::vector<Member>& members) {
    for (const Member& each : members) REQUIRE(stage.recall(each.fid) == RecallAsked::kWaiting);
    for (const Member& each : members) {
        REQUIRE(stage.wait_for(each.fid).how == RecallEnd::How::kDone);
    }
}

void check_bytes(TapeStage& stage, const std::vector<Member>& members) {
    for (const Member& each : members) {
        const bool is_same = stage.read(each.fid) == each.bytes;
        CHECK(is_same);
    }
}

}  // namespace

TEST_CASE("library locates: members of one tape file are read with one", "[library]") {
    // All of them; or some that lie apart.
    const std::size_t step = GENERATE(1U, 7U);
    TapeStage stage(one_drive());
    std::vector<Member> members = put_in_one_file(stage, 100);
    std::vector<Member> wanted;
    for (std::size_t i = 0; i < members.size(); i += step) wanted.push_back(members[i]);
    unload_all(stage);
    const std::uint64_t before = locates(stage);
    const Instant began = stage.world.now();

    recall_all(stage, wanted);
    const double seconds = in_seconds(stage.world.now() - began);
    CAPTURE(step, seconds);
    CHECK(locates(stage) - before <= 2);
    check_bytes(stage, wanted);
}

TEST_CASE("library locates: a block between copies that cannot be read is passed", "[library]") {
    TapeStage stage(one_drive());
    const std::vector<Member> members = put_in_one_file(stage, 20);
    const store::Copy bad = stage.copies_of(members[10].fid).at(0);
    const std::string barcode(store::text_of(bad.cartridge.vsn));
    unload_all(stage);
    // A whole block of the tape between the first copy and the last one.
    const std::uint64_t block = bad.block + 5 + bad.position.member / devices::kTapeBlockMax;
    stage.tapes.at(address_of(stage, barcode + "L9"))->make_unreadable(block);
    const std::uint64_t before = locates(stage);

    const std::vector<Member> wanted{members.front(), members.back()};
    recall_all(stage, wanted);
    CHECK(locates(stage) - before <= 3);
    check_bytes(stage, wanted);
    CHECK(stage.events.count("library.operation_failed") == 0);
}

TEST_CASE("library locates: copies of one tape file are right after others were written",
          "[library]") {
    TapeStage stage(one_drive());
    const std::vector<Member> members = put_in_one_file(stage, 6);
    for (const Member& each : members) {
        recall_all(stage, {each});
        stage.put(pattern(1000, 77));
        REQUIRE(stage.sync(1h).has_value());
    }
    check_bytes(stage, members);
}

TEST_CASE("library locates: a scrub of one tape file needs few", "[library]") {
    TapeStage stage(one_drive());
    const std::vector<Member> members = put_in_one_file(stage, 60);
    for (std::size_t i = 0; i < members.size(); i += 2) stage.remove(members[i].fid);
    const store::Copy copy = stage.copies_of(members[1].fid).at(0);
    const std::string barcode = std::string(store::text_of(copy.cartridge.vsn)) + "L9";
    unload_all(stage);
    const std::uint64_t before = locates(stage);

    const MediaOutcome begun = stage.at(0, stage.library().scrub(barcode));
    REQUIRE(begun.kind == MediaOutcome::Kind::kDone);
    const auto is_running = [&] {
        return stage.library().scrub_work(barcode)->state == MediumWork::State::kRunning;
    };
    for (int tries = 0; tries < 1000 && is_running(); ++tries) stage.run_for(1s);
    CHECK(stage.library().scrub_work(barcode)->state == MediumWork::State::kDone);
    CHECK(stage.library().scrub_work(barcode)->copies_done == 30);
    CHECK(locates(stage) - before <= 2);
}
