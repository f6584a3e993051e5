// Goal: cartridges and drives that fail, and cartridges that cannot be told apart, cost nothing but
// themselves.
// Method: disks and a library in the simulated world, with faults of drives and barcodes.

#include <algorithm>
#include <string>
#include <string_view>

#include "library/blame.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

devices::CartridgeImage& image_of(TapeStage& stage, std::string_view barcode) {
    return *stage.tapes.at(address_of(stage, barcode));
}

std::size_t drives_down(TapeStage& stage) {
    const std::vector<DriveRow> rows = stage.library().drives();
    return static_cast<std::size_t>(std::ranges::count(rows, "down", &DriveRow::activity));
}

// The drive that has it.
std::uint32_t drive_with(TapeStage& stage, std::string_view barcode) {
    const std::vector<DriveRow> rows = stage.library().drives();
    const auto found = std::ranges::find(rows, barcode, &DriveRow::barcode);
    REQUIRE(found != rows.end());
    return static_cast<std::uint32_t>(found - rows.begin());
}

DriveRow drive_row(TapeStage& stage, std::uint32_t index) {
    return stage.library().drives().at(index);
}

}  // namespace

TEST_CASE("library: of two cartridges with the same number the one with data is used",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    stage.stop();
    const std::string other = object.barcode.substr(0, 6) + "XX";
    const std::uint32_t added = stage.tapes.add({.barcode = other, .capacity_bytes = 64UL << 20});
    const std::uint32_t first = address_of(stage, object.barcode);
    stage.tapes.swap(first, added);
    stage.start();
    stage.run_for(1min);

    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    CHECK(cartridge(stage, other).state == CartridgeState::kDisabled);
    CHECK_FALSE(cartridge(stage, other).reason.empty());
    CHECK(stage.recalled(object.fid) == object.bytes);

    // Its number stays that of the data while they are away.
    unload_all(stage);
    stage.stop();

    stage.tapes.remove(address_of(stage, object.barcode));

    stage.start();
    stage.run_for(1min);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kMissing);
    CHECK(cartridge(stage, other).state == CartridgeState::kDisabled);
}

TEST_CASE("library: a cartridge that was disabled as a double is used when the other is gone",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    stage.stop();
    const std::uint32_t added =
        stage.tapes.add({.barcode = "V00001XX", .capacity_bytes = 64UL << 20});
    stage.start();
    stage.run_for(1min);
    CHECK(cartridge(stage, "V00001XX").state == CartridgeState::kDisabled);
    stage.stop();
    stage.tapes.remove(address_of(stage, "V00001L9"));
    stage.start();
    stage.run_for(1min);
    CHECK(cartridge(stage, "V00001L9").state == CartridgeState::kMissing);
    CHECK(cartridge(stage, "V00001XX").state == CartridgeState::kBlank);

    // With the same barcode nothing tells which is which.
    stage.stop();
    const std::uint32_t same = stage.tapes.add({.barcode = "V00001XX"});
    stage.start();
    stage.run_for(1min);
    CHECK(cartridge(stage, "V00001XX").state == CartridgeState::kDisabled);
    stage.stop();
    stage.tapes.remove(same);
    REQUIRE(stage.tapes.at(added) != nullptr);
    stage.start();
    stage.run_for(1min);
    CHECK(cartridge(stage, "V00001XX").state == CartridgeState::kBlank);
}

TEST_CASE("library: a recall that its drive cannot read is read in another drive", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    const std::uint32_t bad = drive_with(stage, object.barcode);
    stage.drive(bad).faults().read_ppm = 1'000'000;

    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(object.fid);
    CHECK(end.reason.empty());
    REQUIRE(end.how == RecallEnd::How::kDone);
    CHECK(stage.read(object.fid) == object.bytes);
    CHECK(drive_with(stage, object.barcode) != bad);
    CHECK(stage.events.count("library.operation_failed") == 1);
}

TEST_CASE("library: a recall of a cartridge in a dead drive fails naming both", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    const std::uint32_t dead = drive_with(stage, object.barcode);
    stage.drive(dead).inject(devices::TapeFault::kDeath);

    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(object.fid, 10min);
    REQUIRE(end.how == RecallEnd::How::kFailed);
    CHECK(end.reason.find(object.barcode) != std::string::npos);
    CHECK(end.reason.find(drive_row(stage, dead).name) != std::string::npos);
    CHECK(drive_row(stage, dead).activity == "down");

    // Also after a restart, until somebody repairs the drive.
    stage.restart();
    stage.run_for(1min);
    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    CHECK(stage.wait_for(object.fid, 10min).how == RecallEnd::How::kFailed);
    stage.stop();
    stage.tapes.drive(dead).dead = false;
    stage.start();
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: recalls wait while people use the changer", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    stage.bay.library()->faults().busy_ppm = 1'000'000;
    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    stage.run_for(10min);
    CHECK(stage.is_released(object.fid));
    CHECK(stage.library().recalls(10).size() == 1);
    // That is said once.
    CHECK(stage.events.count("library.recalls_wait") == 1);

    stage.bay.library()->faults().busy_ppm = 0;
    const RecallEnd end = stage.wait_for(object.fid, 10min);
    INFO(end.reason);
    REQUIRE(end.how == RecallEnd::How::kDone);
    CHECK(stage.read(object.fid) == object.bytes);
}

TEST_CASE("library: a changer that brings the wrong cartridge makes none foreign", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    stage.bay.library()->faults().takes_other = true;

    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(object.fid);
    INFO(end.reason);
    REQUIRE(end.how == RecallEnd::How::kDone);
    CHECK(stage.read(object.fid) == object.bytes);
    CHECK_FALSE(stage.bay.library()->faults().takes_other);
    CHECK(drives_down(stage) == 0);
    for (const Cartridge& each : stage.library().media()) {
        CAPTURE(each.barcode, each.reason);
        CHECK((each.state == CartridgeState::kOk || each.state == CartridgeState::kBlank));
    }
}

TEST_CASE("library: a changer that reports no elements makes no cartridge missing", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    stage.run_for(1min);
    stage.bay.library()->faults().reports_nothing = true;
    REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
    CHECK(stage.events.count("library.changer_failed") == 1);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);

    stage.bay.library()->faults().reports_nothing = false;
    CHECK(stage.recalled(object.fid) == object.bytes);
    CHECK(stage.events.count("library.changer_works") == 1);
}

TEST_CASE("library: a cartridge that was stuck is used when it can be unloaded", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    const std::uint32_t stuck = drive_with(stage, object.barcode);
    const std::string name = drive_row(stage, stuck).name;
    stage.drive(stuck).inject(devices::TapeFault::kStuck);
    CHECK(stage.at(0, stage.library().unload(name)).kind == MediaOutcome::Kind::kFailed);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kMissing);
    CHECK(stage.at(0, stage.library().unload(name)).kind == MediaOutcome::Kind::kDone);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a cartridge that does not load fails its recalls, and no drive goes down",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    image_of(stage, object.barcode).break_leader();

    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(object.fid);
    REQUIRE(end.how == RecallEnd::How::kFailed);
    CHECK(end.reason.find(object.barcode) != std::string::npos);
    CHECK(drives_down(stage) == 0);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kSuspect);
    CHECK_FALSE(cartridge(stage, object.barcode).reason.empty());

    const Bytes other = pattern(50'000, 2);
    const store::Fid fid = stage.put(other);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    CHECK(stage.recalled(fid) == other);
}

TEST_CASE("library: a blank cartridge that does not load is replaced by another", "[library]") {
    for (const std::uint32_t drives : {1U, 2U}) {
        CAPTURE(drives);
        TapeStageOptions options;
        options.drives = drives;
        TapeStage stage(options);
        stage.run_for(1min);
        image_of(stage, "V00000L9").break_leader();
        for (int i = 0; i < 3; ++i) {
            stage.put(pattern(10'000, static_cast<std::uint64_t>(i)));
            REQUIRE(stage.sync(10min).has_value());
        }
        CHECK(drives_down(stage) == 0);
        CHECK(cartridge(stage, "V00001L9").files > 0);
        const CartridgeState state = cartridge(stage, "V00000L9").state;
        // With one drive it is not sure, and the cartridge is the last to be tried.
        CHECK(state == (drives == 1 ? CartridgeState::kBlank : CartridgeState::kFailed));
    }
}

TEST_CASE("library: a drive that loads nothing goes down, and no cartridge is blamed",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    stage.drive(0).faults().load_ppm = 1'000'000;
    std::vector<store::Fid> fids;
    for (std::uint64_t i = 0; i < 6; ++i) {
        fids.push_back(stage.put(pattern(10'000, i)));
        REQUIRE(stage.sync(10min).has_value());
        unload_all(stage);
    }
    CHECK(drives_down(stage) == 1);
    CHECK(drive_row(stage, 0).activity == "down");
    for (const Cartridge& each : stage.library().media()) {
        CHECK((each.state == CartridgeState::kOk || each.state == CartridgeState::kBlank));
    }
    for (const store::Fid fid : fids) CHECK(stage.release(fid).has_value());
}

TEST_CASE("library: a new cartridge is used in a drive that takes it", "[library]") {
    // Some libraries give no generation with the barcode.
    const std::string ending = GENERATE("L9", "XX");
    TapeStage stage({.drives = 2,
                     .technologies = {"lto8", "lto9"},
                     .cartridges = 0,
                     .cartridge_bytes = 64UL << 20});
    stage.run_for(1min);
    stage.stop();
    for (const char* const number : {"V00000", "V00001", "V00002"}) {
        stage.tapes.add({.barcode = number + ending, .capacity_bytes = 64UL << 20});
    }
    stage.start();
    stage.run_for(1min);
    const Book book = put_some(stage, 4);

    REQUIRE(stage.sync(1h).has_value());

    CHECK(drives_down(stage) == 0);
    for (const Cartridge& each : stage.library().media()) {
        CHECK((each.state == CartridgeState::kOk || each.state == CartridgeState::kBlank));
    }
    release_all(stage, book);
    check_all(stage, book);
}

TEST_CASE("library: a cartridge that no drive of the library takes is failed", "[library]") {
    TapeStage stage({.drives = 2, .technologies = {"lto7", "lto8"}, .cartridges = 0});
    stage.run_for(1min);
    stage.stop();
    stage.tapes.add({.barcode = "V00000XX", .capacity_bytes = 64UL << 20});
    stage.start();
    stage.run_for(1min);
    put_some(stage, 1);
    REQUIRE_FALSE(stage.sync(1h).has_value());
    CHECK(cartridge(stage, "V00000XX").state == CartridgeState::kFailed);
    CHECK(drives_down(stage) == 0);
}

TEST_CASE("library: blame falls on a cartridge or a drive only after a trial elsewhere",
          "[library]") {
    using Verdict = Blame::Verdict;
    Blame blame;
    CHECK(blame.failed("a", 1) == Verdict::kOpen);
    CHECK(blame.failed("b", 1) == Verdict::kCartridge);
    blame.worked("a", 9);
    blame.worked("b", 9);

    // With one drive another cartridge shows it.
    for (int i = 0; i < 5; ++i) CHECK(blame.failed("a", 2) == Verdict::kOpen);
    blame.worked("a", 3);
    CHECK(blame.failed("a", 2) == Verdict::kCartridge);

    // What works in another drive is that drive's fault.
    for (int i = 0; i < 2; ++i) {
        CHECK(blame.failed("a", 4) == Verdict::kOpen);
        blame.worked("b", 4);
    }
    CHECK(blame.failed("a", 4) == Verdict::kDrive);

    // Several cartridges, and no other drive.
    CHECK(blame.failed("c", 5) == Verdict::kOpen);
    CHECK(blame.failed("c", 5) == Verdict::kOpen);
    CHECK(blame.failed("c", 6) == Verdict::kDrive);

    // Two drives that fail with all cartridges blame one of these at most.
    CHECK(blame.failed("e", 30) == Verdict::kOpen);
    CHECK(blame.failed("f", 30) == Verdict::kCartridge);
    CHECK(blame.failed("e", 31) == Verdict::kOpen);
    CHECK(blame.failed("f", 31) == Verdict::kOpen);
    CHECK(blame.failed("e", 32) == Verdict::kDrive);
    CHECK(blame.failed("f", 32) == Verdict::kDrive);

    // Failures in between successes add up to nothing.
    for (CartridgeId each = 10; each < 20; ++each) {
        CHECK(blame.failed("d", each) == Verdict::kOpen);
        blame.worked("d", 9);
    }
}

TEST_CASE("library: a drive goes down after as many failures as the configuration says",
          "[library]") {
    using Verdict = Blame::Verdict;
    const std::uint32_t limit = GENERATE(2U, 5U);
    CAPTURE(limit);
    Blame blame(HealthLimits{.drive_failures = limit});
    // With several cartridges, and no other drive.
    for (std::uint32_t i = 1; i < limit; ++i) CHECK(blame.failed("a", i) == Verdict::kOpen);
    CHECK(blame.failed("a", limit) == Verdict::kDrive);
    // With cartridges that work in another drive.
    for (std::uint32_t i = 1; i < limit; ++i) {
        CHECK(blame.failed("b", 100) == Verdict::kOpen);
        blame.worked("c", 100);
    }
    CHECK(blame.failed("b", 100) == Verdict::kDrive);
}
