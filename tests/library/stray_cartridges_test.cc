// Goal: a cartridge that people have put into a drive is used there, or moved to the drive that
// wants it.
// Method: disks and a library in the simulated world; people put cartridges into drives, which may
// load them by themselves.

#include <cstdint>
#include <string>

#include "devices/tape/element_address.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using StrayKind = MediaOutcome::Kind;

// An object on tape only. All drives of the node, which has just started, are empty.
OnTape put_on_idle_tape(TapeStage& stage) {
    OnTape object = put_on_tape(stage);
    unload_all(stage);
    stage.restart();
    stage.run_for(1min);
    return object;
}

// People put the cartridge of a storage element into a drive.
void put_into_drive(TapeStage& stage, std::uint32_t address, std::uint32_t drive, bool loads) {
    stage.tapes.swap(address, devices::kDriveAddress + drive);
    stage.tapes.drive(drive).threaded = loads;
}

void look(TapeStage& stage) {
    stage.run_for(1min);
    REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
    stage.run_for(1min);
}

std::string name_of(TapeStage& stage, std::uint32_t drive) {
    return stage.library().drives().at(drive).name;
}

std::string loaded_in(TapeStage& stage, std::uint32_t drive) {
    return stage.library().drives().at(drive).barcode;
}

MediaOutcome load_into(TapeStage& stage, const std::string& barcode, std::uint32_t drive) {
    return stage.at(0, stage.library().load({.barcode = barcode, .drive = name_of(stage, drive)}));
}

}  // namespace

TEST_CASE("library: a cartridge that people put into a drive is used there", "[library]") {
    const bool loads = GENERATE(false, true);
    TapeStage stage;
    const OnTape object = put_on_idle_tape(stage);
    put_into_drive(stage, address_of(stage, object.barcode), 1, loads);
    const std::uint64_t moves = stage.bay.library()->moves();

    look(stage);
    CHECK(loaded_in(stage, 1) == object.barcode);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    CHECK(stage.recalled(object.fid) == object.bytes);
    CHECK(stage.bay.library()->moves() == moves);

    // And it leaves for another one, as any other cartridge.
    CHECK(load_into(stage, "V00003L9", 1).kind == StrayKind::kDone);
    CHECK(address_of(stage, object.barcode) > 0);
}

TEST_CASE("library: a cartridge that people put into a drive goes to the one that wants it",
          "[library]") {
    const bool loads = GENERATE(false, true);
    TapeStage stage;
    const OnTape object = put_on_idle_tape(stage);
    put_into_drive(stage, address_of(stage, object.barcode), 1, loads);

    const MediaOutcome loaded = load_into(stage, object.barcode, 0);
    INFO(loaded.words);
    CHECK(loaded.kind == StrayKind::kDone);
    CHECK(loaded_in(stage, 0) == object.barcode);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a recall reads a cartridge that people put into a drive a moment ago",
          "[library]") {
    const bool loads = GENERATE(false, true);
    const std::uint32_t drive = GENERATE(0U, 1U);
    TapeStage stage;
    const OnTape object = put_on_idle_tape(stage);
    put_into_drive(stage, address_of(stage, object.barcode), drive, loads);

    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(object.fid, 10min);
    INFO(end.reason);
    REQUIRE(end.how == RecallEnd::How::kDone);
    CHECK(stage.read(object.fid) == object.bytes);
    CHECK(stage.events.count("library.recalls_wait") == 0);
}

TEST_CASE("library: a drive gives away what people put into it for the cartridge it is to load",
          "[library]") {
    const bool loads = GENERATE(false, true);
    TapeStage stage;
    const OnTape object = put_on_idle_tape(stage);
    put_into_drive(stage, address_of(stage, "V00003L9"), 0, loads);

    const MediaOutcome loaded = load_into(stage, object.barcode, 0);
    INFO(loaded.words);
    CHECK(loaded.kind == StrayKind::kDone);
    CHECK(loaded_in(stage, 0) == object.barcode);
    CHECK(address_of(stage, "V00003L9") > 0);
    CHECK(stage.library().drives().at(0).reason.empty());
}

TEST_CASE("library: a cartridge without a barcode does not stay in the drive that has it",
          "[library]") {
    const bool loads = GENERATE(false, true);
    TapeStage stage;
    const OnTape object = put_on_idle_tape(stage);
    const std::uint32_t address = stage.tapes.add({.capacity_bytes = 64UL << 20});
    put_into_drive(stage, address, 0, loads);

    look(stage);
    CHECK(stage.tapes.at(devices::kDriveAddress) == nullptr);
    CHECK(loaded_in(stage, 0).empty());
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: an exported cartridge is not used in the drive into which people put it",
          "[library]") {
    TapeStage stage({.exchange = 0});
    const OnTape object = put_on_idle_tape(stage);
    const LibraryService::ExportWish wish{.barcode = object.barcode, .hides_objects = true};
    REQUIRE(stage.at(0, stage.library().export_medium(wish)).kind == StrayKind::kDone);
    put_into_drive(stage, address_of(stage, object.barcode), 0, true);
    look(stage);
    CHECK(loaded_in(stage, 0).empty());
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kExported);

    REQUIRE(stage.at(0, stage.library().import_media(object.barcode)).kind == StrayKind::kDone);
    stage.run_for(1min);
    CHECK(loaded_in(stage, 0) == object.barcode);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a cartridge that a drive does not unload fails its requests naming the drive",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_idle_tape(stage);
    put_into_drive(stage, address_of(stage, object.barcode), 1, true);
    stage.drive(1).inject(devices::TapeFault::kStuck);

    CHECK(load_into(stage, object.barcode, 0).kind == StrayKind::kFailed);
    const Cartridge stuck = cartridge(stage, object.barcode);
    CHECK(stuck.state == CartridgeState::kMissing);
    CHECK(stuck.reason == "it is stuck in drive " + name_of(stage, 1));

    // It can still be read where it is.
    look(stage);
    CHECK(loaded_in(stage, 1) == object.barcode);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a cartridge that a drive did not unload once is not busy there for ever",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_idle_tape(stage);
    put_into_drive(stage, address_of(stage, object.barcode), 1, true);
    stage.drive(1).inject(devices::TapeFault::kStuck);

    CHECK(load_into(stage, "V00003L9", 1).kind == StrayKind::kFailed);
    const std::string drive = name_of(stage, 1);
    CHECK(stage.at(0, stage.library().bring_drive_up(drive)).kind == StrayKind::kDone);
    look(stage);
    CHECK(stage.recalled(object.fid) == object.bytes);
}
