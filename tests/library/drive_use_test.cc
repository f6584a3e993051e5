// Goal: an administrator takes drives out of use and back, and nobody else waits for that.
// Method: disks and a library in the simulated world.

#include <algorithm>
#include <string>

#include "devices/tape/element_address.h"
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

Task<void> take_down_later(TapeLibrary* library, std::string name) {
    [[maybe_unused]] const auto outcome = co_await library->take_drive_down(std::move(name));
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

TEST_CASE("library drives: one in use whose absence cannot be recorded stays in use", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const Book book = put_some(stage, 10);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    stage.drive(0).faults().slow_ppm = 1'000'000;
    stage.drive(0).faults().slow_delay = 1min;
    const std::string name = stage.library().drives().front().name;
    REQUIRE(stage.recall(book.begin()->first) == RecallAsked::kWaiting);
    stage.run_for(10s);
    REQUIRE(drive_row_of(stage, name).activity == "reading");
    stage.bay.refuses_to_write = true;
    CHECK(take_down(stage, name) == MediaOutcome::Kind::kFailed);
    stage.bay.refuses_to_write = false;
    stage.drive(0).faults().slow_ppm = 0;
    check_all(stage, book);
}

TEST_CASE("library drives: a stop may come while one that goes down is still in use", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const Book book = put_some(stage, 10);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    stage.drive(0).faults().slow_ppm = 1'000'000;
    stage.drive(0).faults().slow_delay = 1min;
    const std::string name = stage.library().drives().front().name;
    REQUIRE(stage.recall(book.begin()->first) == RecallAsked::kWaiting);
    stage.run_for(10s);
    core::Gate gate;
    stage.reactor(0).spawn(gate, take_down_later(&stage.library(), name));
    stage.run_for(5s);
    stage.stop();
    stage.start();
    stage.run_for(5min);
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

TEST_CASE("library drives: all of them give their cartridges back, and rest", "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 10);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    const auto in_drives = [&stage] {
        std::size_t count = 0;
        for (const std::uint32_t each : stage.tapes.full_elements()) {
            count += each < devices::kExchangeAddress ? 1 : 0;
        }
        return count;
    };
    const store::Fid fid = book.begin()->first;
    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    stage.run_for(10ms);
    REQUIRE(in_drives() > 0);

    const auto left = stage.at(0, stage.library().unload_all(after(stage.world.now(), 15min)));
    CHECK(left.empty());
    CHECK(in_drives() == 0);
    // They are not used for what comes later, either.
    const bool is_back = !stage.is_released(fid);
    if (is_back) REQUIRE(stage.release(fid).has_value());
    REQUIRE(stage.recall(fid).has_value());
    stage.run_for(10min);
    CHECK(stage.is_released(fid));
    CHECK(in_drives() == 0);
    CHECK(stage.at(0, stage.library().unload_all(after(stage.world.now(), 15min))).empty());

    stage.restart();
    CHECK(stage.recalled(fid) == book.begin()->second);
    stage.stop();
}

TEST_CASE("library drives: those of a library that is being opened are unloaded, too",
          "[library]") {
    TapeStage stage;
    put_some(stage, 1);
    REQUIRE(stage.sync().has_value());
    stage.restart();

    CHECK(stage.at(0, stage.library().unload_all(after(stage.world.now(), 15min))).empty());
    stage.run_for(1min);
    for (const DriveRow& each : stage.library().drives()) CHECK(each.barcode.empty());
    stage.stop();
}

TEST_CASE("library drives: one that does not give its cartridge back in time is named",
          "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 1);
    REQUIRE(stage.sync().has_value());
    const auto rows = stage.library().drives();
    const std::uint32_t loaded = rows.at(0).barcode.empty() ? 1 : 0;
    stage.drive(loaded).inject(devices::TapeFault::kStuck);
    const auto left = stage.at(0, stage.library().unload_all(after(stage.world.now(), 15min)));
    REQUIRE(left.size() == 1);
    CHECK(left[0].name == rows.at(loaded).name);
    CHECK(left[0].barcode == rows.at(loaded).barcode);
    CHECK_FALSE(left[0].reason.empty());
    stage.stop();
}

TEST_CASE("library drives: a load that an administrator asks for and fails is an event",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    const std::string barcode = stage.library().media().front().barcode;
    stage.tapes.at(address_of(stage, barcode))->break_leader();
    const std::string drive = stage.library().drives().front().name;
    const MediaOutcome loaded =
        stage.at(0, stage.library().load({.barcode = barcode, .drive = drive}));
    CHECK(loaded.kind == MediaOutcome::Kind::kFailed);
    CHECK(stage.events.begin_with("library.operation_failed drive=" + drive + " medium=" + barcode +
                                  " operation=load origin=tape") == 1);
    stage.stop();
}

TEST_CASE("library drives: objects go to a blank cartridge while recalls have the other one",
          "[library]") {
    TapeStage stage;
    const store::Fid first = stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(first).has_value());
    const auto rows = stage.library().drives();
    const std::uint32_t reader = rows.at(0).barcode.empty() ? 1 : 0;
    stage.drive(reader).faults().slow_ppm = 1'000'000;
    stage.drive(reader).faults().slow_delay = 1h;
    REQUIRE(stage.recall(first) == RecallAsked::kWaiting);
    stage.run_for(1s);
    REQUIRE(stage.library().drives().at(reader).activity == "reading");

    const store::Fid second = stage.put(pattern(100'000, 2));
    const auto synced = stage.sync(5min);
    CHECK(synced.has_value());
    REQUIRE(stage.copies_of(second).size() == 1);
    CHECK(stage.copies_of(second).front().cartridge.vsn !=
          stage.copies_of(first).front().cartridge.vsn);
    stage.drive(reader).faults().slow_ppm = 0;
    CHECK(stage.wait_for(first, 10h).how == RecallEnd::How::kDone);
    stage.stop();
}
