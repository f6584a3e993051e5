// Goal: an administrator takes drives out of use and back, and nobody else waits for that.
// Method: disks and a library in the simulated world.

#include <algorithm>
#include <string>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

DriveRow drive_row_of(TapeStage& stage, const std::string& name) {
    for (const DriveRow& each : stage.library().drives()) {
        if (each.name == name) return each;
    }
    FAIL("there is no drive " << name);
    return {};
}

MediaOutcome::Kind take_down(TapeStage& stage, const std::string& name) {
    return stage.at(0, stage.library().take_drive_down(name)).kind;
}
MediaOutcome::Kind bring_up(TapeStage& stage, const std::string& name) {
    return stage.at(0, stage.library().bring_drive_up(name)).kind;
}

// The end of a session may begin at any moment.
void wait_until_idle(TapeStage& stage) {
    const auto is_idle = [](const DriveRow& each) { return each.activity == "idle"; };
    do {
        stage.run_for(1s);
    } while (!std::ranges::all_of(stage.library().drives(), is_idle));
}

}  // namespace

TEST_CASE("library drives: one that is taken down gives its cartridge back, and stays down",
          "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 10);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    const auto rows = stage.library().drives();
    const auto loaded =
        std::ranges::find_if(rows, [](const DriveRow& each) { return !each.barcode.empty(); });
    REQUIRE(loaded != rows.end());
    const std::string name = loaded->name;

    REQUIRE(take_down(stage, name) == MediaOutcome::Kind::kDone);
    CHECK(drive_row_of(stage, name).activity == "down");
    CHECK_FALSE(drive_row_of(stage, name).reason.empty());
    CHECK(drive_row_of(stage, name).barcode.empty());
    CHECK(take_down(stage, name) == MediaOutcome::Kind::kDone);
    // The other drive has its work.
    check_all(stage, book);
    CHECK(drive_row_of(stage, name).barcode.empty());
    stage.lose_power();
    stage.start();
    stage.run_for(5min);
    CHECK(drive_row_of(stage, name).activity == "down");

    REQUIRE(bring_up(stage, name) == MediaOutcome::Kind::kDone);
    CHECK(drive_row_of(stage, name).activity == "idle");
    CHECK(bring_up(stage, name) == MediaOutcome::Kind::kDone);
    CHECK(bring_up(stage, "no such drive") == MediaOutcome::Kind::kNoSuchDrive);
    CHECK(take_down(stage, "no such drive") == MediaOutcome::Kind::kNoSuchDrive);
    stage.restart();
    stage.run_for(5min);
    CHECK(drive_row_of(stage, name).activity == "idle");
    stage.stop();
}

TEST_CASE("library drives: the operation of one that is taken down is finished", "[library]") {
    TapeStageOptions options;
    options.timing = LibraryTiming::kCalculate;
    options.drives = 1;
    TapeStage stage(options);
    const Book book = put_some(stage, 10);
    REQUIRE(stage.sync(1h).has_value());
    release_all(stage, book);
    const std::string name = stage.library().drives().front().name;
    unload_all(stage);
    const store::Fid fid = book.begin()->first;
    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    stage.run_for(1s);
    REQUIRE(drive_row_of(stage, name).activity != "idle");

    REQUIRE(take_down(stage, name) == MediaOutcome::Kind::kDone);
    CHECK(stage.read(fid) == book.begin()->second);
    // What is asked for later waits for a drive.
    const store::Fid other = std::next(book.begin())->first;
    REQUIRE(stage.recall(other) == RecallAsked::kWaiting);
    stage.run_for(1h);
    CHECK(stage.is_released(other));
    REQUIRE(bring_up(stage, name) == MediaOutcome::Kind::kDone);
    check_all(stage, book);
}

TEST_CASE("library drives: the scheduler knows where a drive has stopped", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const auto position = [&stage] {
        const auto at = stage.at(0, stage.drive(0).position());
        REQUIRE(at.has_value());
        return at->block * devices::kTapeBlockMax;
    };
    const Bytes bytes = pattern(3'000'000, 1);
    const store::Fid fid = stage.put(bytes);
    const store::Fid other = stage.put(pattern(1000, 2));
    const auto synced = stage.sync();
    if (!synced) FAIL(describe(synced.error()));
    wait_until_idle(stage);
    const io_sched::IoDevice* const device = stage.io().media().drives().front();
    // Behind what was written.
    CHECK(device->position() > bytes.size());
    CHECK(device->position() == position());

    release_all(stage, {{fid, bytes}});
    CHECK(stage.recalled(fid) == bytes);
    wait_until_idle(stage);
    CHECK(device->position() > 0);
    CHECK(device->position() == position());
    stage.overwrite(other, pattern(2000, 3));
    REQUIRE(stage.sync().has_value());
    wait_until_idle(stage);
    CHECK(device->position() == position());
}
