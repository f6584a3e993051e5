// Goal: cartridges and drives that fail, and cartridges that cannot be told apart, cost nothing but
// themselves.
// Method: disks and a library in the simulated world, with faults of drives and barcodes.

#include <algorithm>
#include <string>
#include <string_view>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

// An object that is on tape only, and the cartridge that has it.
struct OnTape {
    store::Fid fid{};
    Bytes bytes;
    std::string barcode;
};

OnTape put_on_tape(TapeStage& stage) {
    OnTape object;
    object.bytes = pattern(100'000, 1);
    object.fid = stage.put(object.bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(object.fid).has_value());
    for (const Cartridge& each : stage.library().media()) {
        if (each.files > 0) object.barcode = each.barcode;
    }
    REQUIRE_FALSE(object.barcode.empty());
    return object;
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
