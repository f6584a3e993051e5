// Goal: a cartridge with the barcode and the label of another one is told apart by the serial
// number in its memory: it is read with care and never written.
// Method: disks and a library in the simulated world, whose cartridges have serial numbers that
// change, as if people had replaced them.

#include <memory>
#include <string>
#include <utility>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using SerialKind = MediaOutcome::Kind;

std::string serial_of(const std::string& barcode) {
    return "S-" + barcode;
}

void give_serials(TapeStage& stage) {
    for (const std::uint32_t each : stage.tapes.full_elements()) {
        devices::CartridgeInfo& info = stage.tapes.at(each)->info();
        info.serial = serial_of(info.barcode);
    }
}

// REQUIRES: no drive has it.
void set_serial(TapeStage& stage, const std::string& barcode, const std::string& serial) {
    stage.tapes.at(address_of(stage, barcode))->info().serial = serial;
}

SerialKind load_into_first(TapeStage& stage, const std::string& barcode) {
    const std::string drive = stage.library().drives().front().name;
    return stage.at(0, stage.library().load({.barcode = barcode, .drive = drive})).kind;
}

// An object on tape only, on a cartridge whose serial number the table knows. No drive has it.
OnTape put_numbered(TapeStage& stage) {
    give_serials(stage);
    OnTape object = put_on_tape(stage);
    REQUIRE(cartridge(stage, object.barcode).serial == serial_of(object.barcode));
    unload_all(stage);
    return object;
}

}  // namespace

TEST_CASE("library: a cartridge that may be a copy of another one is read, and is suspect",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_numbered(stage);
    set_serial(stage, object.barcode, "OTHER");

    CHECK(stage.recalled(object.fid) == object.bytes);
    const Cartridge copy = cartridge(stage, object.barcode);
    CHECK(copy.state == CartridgeState::kSuspect);
    CHECK(copy.reason.find("OTHER") != std::string::npos);
    CHECK(copy.reason.find(serial_of(object.barcode)) != std::string::npos);
    CHECK(copy.serial == serial_of(object.barcode));

    // A drive that reads no serial numbers does not tell.
    unload_all(stage);
    set_serial(stage, object.barcode, "");
    CHECK(load_into_first(stage, object.barcode) == SerialKind::kDone);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kSuspect);
    // The known one is back.
    unload_all(stage);
    set_serial(stage, object.barcode, serial_of(object.barcode));
    CHECK(load_into_first(stage, object.barcode) == SerialKind::kDone);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
}

TEST_CASE("library: nothing is written to a cartridge that may be a copy of another one",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_numbered(stage);
    const std::uint64_t files = cartridge(stage, object.barcode).files;
    set_serial(stage, object.barcode, "OTHER");

    const Bytes bytes = pattern(50'000, 2);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync(1h).has_value());
    CHECK(cartridge(stage, object.barcode).files == files);
    const auto copies = stage.copies_of(fid);
    REQUIRE_FALSE(copies.empty());
    for (const store::Copy& each : copies) {
        CHECK_FALSE(object.barcode.starts_with(store::text_of(each.cartridge.vsn)));
    }
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a format makes the cartridge with another serial number the known one",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_numbered(stage);
    set_serial(stage, object.barcode, "OTHER");
    CHECK(load_into_first(stage, object.barcode) == SerialKind::kDone);
    REQUIRE(cartridge(stage, object.barcode).state == CartridgeState::kSuspect);

    const MediaOutcome formatted = stage.at(
        0, stage.library().format(
               {.barcode = object.barcode, .pool = "cold", .force = FormatForce::kLoseObjects}));
    INFO(formatted.words);
    REQUIRE(formatted.kind == SerialKind::kDone);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    CHECK(cartridge(stage, object.barcode).serial == "OTHER");
}

TEST_CASE("library: a blank cartridge may be replaced by another blank one", "[library]") {
    TapeStage stage;
    give_serials(stage);
    stage.run_for(1min);
    REQUIRE(load_into_first(stage, "V00003L9") == SerialKind::kDone);
    REQUIRE(cartridge(stage, "V00003L9").serial == serial_of("V00003L9"));
    unload_all(stage);
    set_serial(stage, "V00003L9", "OTHER");
    CHECK(load_into_first(stage, "V00003L9") == SerialKind::kDone);
    CHECK(cartridge(stage, "V00003L9").state == CartridgeState::kBlank);
    CHECK(cartridge(stage, "V00003L9").serial == "OTHER");
}

TEST_CASE("library: a blank cartridge in place of one with data is foreign, and says why",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_numbered(stage);
    auto taken = stage.tapes.take(address_of(stage, object.barcode));
    stage.tapes.add({.barcode = object.barcode, .serial = "OTHER", .capacity_bytes = 64UL << 20});

    CHECK(load_into_first(stage, object.barcode) == SerialKind::kFailed);
    const Cartridge blank = cartridge(stage, object.barcode);
    CHECK(blank.state == CartridgeState::kForeign);
    CHECK(blank.reason.starts_with("it is blank, and had a label and data"));
    CHECK(blank.reason.find("OTHER") != std::string::npos);
    CHECK(blank.serial == serial_of(object.barcode));

    unload_all(stage);
    stage.tapes.remove(address_of(stage, object.barcode));
    stage.tapes.bring(std::move(taken));
    CHECK(load_into_first(stage, object.barcode) == SerialKind::kDone);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    CHECK(stage.recalled(object.fid) == object.bytes);
}
