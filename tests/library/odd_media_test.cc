// Goal: cartridges that are none of the library's, or cannot be named, are in nobody's way.
// Method: disks and a library in the simulated world, into which people have put such cartridges.

#include <algorithm>
#include <vector>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

TEST_CASE("library: a cleaning cartridge is foreign, and objects go to another cartridge",
          "[library]") {
    TapeStage stage({.cartridges = 0});
    stage.run_for(1min);
    stage.stop();
    stage.tapes.add({.barcode = "CLN000L9", .cleaning = true});
    stage.tapes.add({.barcode = "V00000L9", .capacity_bytes = 64UL << 20});
    stage.start();
    stage.run_for(1min);
    const std::string drive = stage.library().drives().front().name;
    const MediaOutcome loaded =
        stage.at(0, stage.library().load({.barcode = "CLN000L9", .drive = drive}));
    CHECK(loaded.kind == MediaOutcome::Kind::kFailed);
    CHECK(cartridge(stage, "CLN000L9").state == CartridgeState::kForeign);
    CHECK_FALSE(cartridge(stage, "CLN000L9").reason.empty());
    const MediaOutcome formatted = stage.at(
        0, stage.library().format(
               {.barcode = "CLN000L9", .pool = "cold", .force = FormatForce::kLoseObjects}));
    CHECK(formatted.kind == MediaOutcome::Kind::kRefused);

    const Book book = put_some(stage, 4);
    REQUIRE(stage.sync(1h).has_value());
    CHECK(cartridge(stage, "CLN000L9").files == 0);
    CHECK(cartridge(stage, "V00000L9").files > 0);
    const std::vector<DriveRow> rows = stage.library().drives();
    CHECK(std::ranges::count(rows, "down", &DriveRow::activity) == 0);
    release_all(stage, book);
    check_all(stage, book);
}

TEST_CASE("library: cartridges without a usable barcode are named once, and are not used",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    CHECK(stage.events.count("library.no_barcode") == 0);
    stage.stop();
    stage.tapes.add({.barcode = "", .capacity_bytes = 64UL << 20});
    stage.tapes.add({.barcode = "ABC", .capacity_bytes = 64UL << 20});
    stage.start();
    stage.run_for(1min);
    CHECK(stage.events.count("library.no_barcode") == 2);
    CHECK(stage.library().media().size() == 4);

    const Book book = put_some(stage, 4);
    REQUIRE(stage.sync(1h).has_value());
    release_all(stage, book);
    check_all(stage, book);
    stage.run_for(1min);
    REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
    CHECK(stage.events.count("library.no_barcode") == 2);
    CHECK(stage.library().media().size() == 4);
}
