// Goal: cartridges leave the library when an administrator says so, stay known, and are what they
// were when they are back.
// Method: disks and a library in the simulated world; people take cartridges and bring them.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "devices/tape/element_address.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using Kind = MediaOutcome::Kind;

MediaOutcome take_out(TapeStage& stage, const std::string& barcode, bool hides = false) {
    return stage.at(0, stage.library().export_medium({.barcode = barcode, .hides_objects = hides}));
}
MediaOutcome bring_in(TapeStage& stage, const std::string& barcode = "") {
    return stage.at(0, stage.library().import_media(barcode));
}

// The element that has it.
std::uint32_t element_of(TapeStage& stage, const std::string& barcode) {
    for (const std::uint32_t each : stage.tapes.full_elements()) {
        if (stage.tapes.at(each)->info().barcode == barcode) return each;
    }
    FAIL("cartridge " << barcode << " is not in the library");
    return 0;
}

bool is_outside(TapeStage& stage, const std::string& barcode) {
    const std::uint32_t address = element_of(stage, barcode);
    return address >= devices::kExchangeAddress && address < devices::kStorageAddress;
}

Task<void> ignore(Task<MediaOutcome> asked) {
    [[maybe_unused]] const auto outcome = co_await std::move(asked);
}

}  // namespace

TEST_CASE("library: an exported cartridge is known for its copies, and read when it is back",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);

    const MediaOutcome unsure = take_out(stage, object.barcode);
    CHECK(unsure.kind == Kind::kRefused);
    CHECK(unsure.words.starts_with("1 object has its only copy on cartridge " + object.barcode));
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    const MediaOutcome exported = take_out(stage, object.barcode, true);
    REQUIRE(exported.kind == Kind::kDone);
    CHECK(exported.is_in_exchange);
    CHECK(exported.objects == 1);
    CHECK(exported.only_here == 1);
    CHECK(is_outside(stage, object.barcode));
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kExported);

    auto taken = stage.tapes.take(element_of(stage, object.barcode));
    stage.restart();
    stage.run_for(1min);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kExported);
    CHECK(stage.copies_of(object.fid).size() == 1);
    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    const RecallEnd failed = stage.wait_for(object.fid);
    CHECK(failed.how == RecallEnd::How::kFailed);
    CHECK(failed.reason.find("cartridge " + object.barcode + " is exported") != std::string::npos);
    CHECK(bring_in(stage, object.barcode).kind == Kind::kRefused);

    stage.tapes.bring(std::move(taken));
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kExported);
    const MediaOutcome imported = bring_in(stage);
    REQUIRE(imported.kind == Kind::kDone);
    REQUIRE(imported.imported.size() == 1);
    CHECK(imported.imported[0].state == CartridgeState::kOk);
    CHECK(stage.recalled(object.fid) == object.bytes);
    stage.stop();
}

TEST_CASE("library: an imported cartridge moves to a storage element, and is what it was",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    restart_with_state(stage, object.barcode, CartridgeState::kReadOnly, "the write failed");
    stage.run_for(1min);
    REQUIRE(take_out(stage, object.barcode, true).kind == Kind::kDone);
    // Again, it stays there.
    CHECK(take_out(stage, object.barcode).kind == Kind::kDone);
    REQUIRE(is_outside(stage, object.barcode));

    REQUIRE(bring_in(stage, object.barcode).kind == Kind::kDone);
    CHECK_FALSE(is_outside(stage, object.barcode));
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kReadOnly);
    CHECK(cartridge(stage, object.barcode).reason == "the write failed");
    CHECK(bring_in(stage).imported.empty());
    CHECK(stage.recalled(object.fid) == object.bytes);
    stage.stop();
}

TEST_CASE("library: nothing is written to an exported cartridge, nor is it loaded", "[library]") {
    TapeStage stage({.cartridges = 1});
    const OnTape object = put_on_tape(stage);
    REQUIRE(take_out(stage, object.barcode, true).kind == Kind::kDone);
    const std::string drive = stage.library().drives().front().name;
    const MediaOutcome loaded =
        stage.at(0, stage.library().load({.barcode = object.barcode, .drive = drive}));
    CHECK(loaded.kind == Kind::kRefused);
    const MediaOutcome formatted = stage.at(
        0, stage.library().format(
               {.barcode = object.barcode, .pool = "cold", .force = FormatForce::kLoseObjects}));
    CHECK(formatted.words == "cartridge " + object.barcode + " is exported");

    const store::Fid other = stage.put(pattern(1000, 2));
    CHECK_FALSE(stage.sync().has_value());
    REQUIRE(bring_in(stage).kind == Kind::kDone);
    REQUIRE(stage.sync().has_value());
    CHECK(stage.copies_of(other).size() == 1);
    stage.stop();
}

TEST_CASE("library: a cartridge that others need is not exported", "[library]") {
    TapeStage stage({.cartridges = 1});
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    stage.run_for(20ms);
    const MediaOutcome needed = take_out(stage, object.barcode, true);
    CHECK(needed.kind == Kind::kRefused);
    CHECK(stage.wait_for(object.fid).how == RecallEnd::How::kDone);
    // Now its bytes are on the disk.
    const MediaOutcome exported = take_out(stage, object.barcode);
    CHECK(exported.kind == Kind::kDone);
    CHECK(exported.objects == 1);
    CHECK(exported.only_here == 0);
    stage.stop();
}

TEST_CASE("library: a library without exchange elements leaves the cartridge to people",
          "[library]") {
    TapeStage stage({.exchange = 0});
    const OnTape object = put_on_tape(stage);
    const MediaOutcome exported = take_out(stage, object.barcode, true);
    REQUIRE(exported.kind == Kind::kDone);
    CHECK_FALSE(exported.is_in_exchange);
    CHECK(bring_in(stage).words == "the library has no import/export elements; name the cartridge");
    stage.run_for(1min);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kExported);
    REQUIRE(bring_in(stage, object.barcode).kind == Kind::kDone);
    CHECK(stage.recalled(object.fid) == object.bytes);
    stage.stop();
}

TEST_CASE("library: an export without a free exchange element changes nothing", "[library]") {
    TapeStage stage({.exchange = 1});
    const OnTape object = put_on_tape(stage);
    std::string other;
    for (const Cartridge& each : stage.library().media()) {
        if (each.files == 0) other = each.barcode;
    }
    REQUIRE(take_out(stage, other).kind == Kind::kDone);
    const MediaOutcome full = take_out(stage, object.barcode, true);
    CHECK(full.kind == Kind::kRefused);
    CHECK(full.words.starts_with("no import/export element is free"));
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);

    // The changer fails.
    REQUIRE(bring_in(stage, other).kind == Kind::kDone);
    unload_all(stage);
    stage.bay.library()->faults().busy_ppm = 1'000'000;
    CHECK(take_out(stage, object.barcode, true).kind == Kind::kFailed);
    stage.bay.library()->faults().busy_ppm = 0;
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    CHECK(stage.recalled(object.fid) == object.bytes);
    stage.stop();
}

TEST_CASE("library: an import for which the changer moves another cartridge fails", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    REQUIRE(take_out(stage, object.barcode, true).kind == Kind::kDone);
    stage.bay.library()->faults().takes_other = true;

    const MediaOutcome failed = bring_in(stage, object.barcode);
    INFO(failed.words);
    CHECK(failed.kind == Kind::kFailed);
    CHECK(failed.imported.empty());
    CHECK_FALSE(stage.bay.library()->faults().takes_other);
    CHECK(is_outside(stage, object.barcode));
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kExported);

    REQUIRE(bring_in(stage, object.barcode).kind == Kind::kDone);
    CHECK_FALSE(is_outside(stage, object.barcode));
    CHECK(stage.recalled(object.fid) == object.bytes);
    stage.stop();
}

TEST_CASE("library: new cartridges are brought in through exchange elements", "[library]") {
    TapeStage stage({.cartridges = 0});
    const std::uint32_t address =
        stage.tapes.add({.barcode = "V00077L9", .capacity_bytes = 64UL << 20});
    stage.tapes.move(address, devices::kExchangeAddress);
    stage.run_for(1min);
    const MediaOutcome imported = bring_in(stage);
    REQUIRE(imported.imported.size() == 1);
    CHECK(imported.imported[0].state == CartridgeState::kBlank);
    CHECK_FALSE(is_outside(stage, "V00077L9"));
    const store::Fid fid = stage.put(pattern(1000, 2));
    REQUIRE(stage.sync().has_value());
    CHECK(stage.copies_of(fid).size() == 1);
    stage.stop();
}

TEST_CASE("library: a power cut during an export leaves the cartridge exported or in use",
          "[library]") {
    for (std::uint64_t steps = 1; steps < 12; ++steps) {
        CAPTURE(steps);
        TapeStage stage({.seed = 40 + steps});
        const OnTape object = put_on_tape(stage);
        const LibraryService::ExportWish wish{.barcode = object.barcode, .hides_objects = true};
        stage.reactor(0).spawn(stage.library().gate(), ignore(stage.library().export_medium(wish)));
        stage.lose_power_within(steps, 10s);
        stage.start();
        stage.run_for(1min);
        const MediaOutcome again = take_out(stage, object.barcode, true);
        INFO(again.words);
        REQUIRE(again.kind == Kind::kDone);
        REQUIRE(bring_in(stage).kind == Kind::kDone);
        CHECK(stage.recalled(object.fid) == object.bytes);
        stage.stop();
    }
}
