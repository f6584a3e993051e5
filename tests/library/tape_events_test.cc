// Goal: the log says what happens to cartridges, drives and objects, and names them.
// Method: the library of a simulated node is used, and drives and cartridges fail.

#include <algorithm>
#include <string>

#include "devices/tape/drive_model.h"
#include "objects/fids.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

TEST_CASE("library events: labels, mounts and unmounts name the drive and the cartridge",
          "[library]") {
    TapeStage stage;
    stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    const auto drives = stage.library().drives();
    const auto loaded =
        std::ranges::find_if(drives, [](const DriveRow& each) { return !each.barcode.empty(); });
    REQUIRE(loaded != drives.end());
    const std::string which = " drive=" + loaded->name + " medium=" + loaded->barcode;

    REQUIRE(stage.events.count("library.drive_up") == stage.options.drives);
    REQUIRE(stage.events.begin_with("library.drive_up drive=" + loaded->name + " serial=") == 1);
    REQUIRE(stage.events.begin_with("library.mounted" + which) == 1);
    REQUIRE(stage.events.begin_with("library.formatted" + which + " pool=cold") == 1);
    REQUIRE(stage.events.count("library.unmounted") == 0);
    REQUIRE(stage.at(0, stage.library().unload(loaded->name)).kind == MediaOutcome::Kind::kDone);
    REQUIRE(stage.events.begin_with("library.unmounted" + which) == 1);
}

TEST_CASE("library events: a recall that fails names its object, a drive that is down itself",
          "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    std::string barcode;
    for (const DriveRow& each : stage.library().drives()) {
        if (!each.barcode.empty()) barcode = each.barcode;
    }
    unload_all(stage);
    stage.stop();
    stage.tapes.remove(address_of(stage, barcode));
    stage.start();

    REQUIRE(stage.recall(fid).has_value());
    const RecallEnd end = stage.wait_for(fid);
    REQUIRE(end.how == RecallEnd::How::kFailed);
    REQUIRE(end.reason.find(barcode) != std::string::npos);
    const std::string object = objects::format_fid(fid);
    REQUIRE(stage.events.begin_with("library.recall_failed object=" + object + " name=") == 1);
    REQUIRE(stage.events.begin_with("library.medium_state medium=" + barcode + " state=missing") ==
            1);

    stage.put(pattern(10'000, 2));
    for (std::uint32_t i = 0; i < stage.options.drives; ++i) {
        stage.drive(i).inject(devices::TapeFault::kDeath);
    }
    REQUIRE_FALSE(stage.sync(3h).has_value());
    stage.run_for(1h);
    REQUIRE(stage.events.begin_with("library.drive_down drive=") >= 1);
    REQUIRE(stage.events.begin_with("library.operation_failed drive=") >= 3);
}

TEST_CASE("library events: drives whose technology lacks limits are named once, until that changes",
          "[library]") {
    const auto limits = [](std::string_view technology) {
        return io_sched::TechnologyLimits{.technology = devices::find_drive_model(technology),
                                          .min = {0, 0, 0},
                                          .max = {2, 2, 1}};
    };
    TapeStageOptions options{.technologies = {"lto9", "lto8"}};
    options.io.tape.fair_share_limits = {limits("lto9")};
    TapeStage stage(options);
    stage.run_for(1min);
    REQUIRE(stage.events.count("library.open") == 1);
    const std::string said = "library.no_drive_limits library=";
    REQUIRE(stage.events.begin_with(said) == 1);
    REQUIRE(std::ranges::count_if(stage.events.texts, [](const std::string& text) {
                return text.starts_with("library.no_drive_limits") &&
                       text.ends_with(" technology=lto8");
            }) == 1);

    // Another setting changes, and these drives still have no limits.
    options.io.tape.fair_share_limits = {limits("lto9"), limits("lto10")};
    stage.use_io(options.io);
    CHECK(stage.events.begin_with(said) == 1);
    // They get limits, and lose them again.
    options.io.tape.fair_share_limits = {limits("lto9"), limits("lto8")};
    stage.use_io(options.io);
    CHECK(stage.events.begin_with(said) == 1);
    options.io.tape.fair_share_limits = {limits("lto9")};
    stage.use_io(options.io);
    CHECK(stage.events.begin_with(said) == 2);
    // Without any limits none are missing.
    options.io.tape.fair_share_limits = {};
    stage.use_io(options.io);
    CHECK(stage.events.begin_with(said) == 2);
}
