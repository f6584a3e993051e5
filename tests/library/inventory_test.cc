// Goal: cartridges that come back or are added are used without a restart.
// Method: people take cartridges from a library in the simulated world, and bring some.

#include <string>
#include <utility>
#include <vector>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

const devices::CartridgeInfo kAdded{.barcode = "V00077L9", .capacity_bytes = 64UL << 20};

TapeStageOptions without_cartridges() {
    TapeStageOptions options;
    options.cartridges = 0;
    return options;
}

}  // namespace

TEST_CASE("library: a recall finds its cartridge that was brought back", "[library]") {
    TapeStage stage;
    const auto [fid, bytes, barcode] = put_on_tape(stage);
    unload_all(stage);
    auto taken = stage.tapes.take(address_of(stage, barcode));

    for (int i = 0; i < 2; ++i) {
        REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
        const RecallEnd end = stage.wait_for(fid);
        REQUIRE(end.how == RecallEnd::How::kFailed);
        CHECK(end.reason.find(barcode) != std::string::npos);
        CHECK(cartridge(stage, barcode).state == CartridgeState::kMissing);
    }
    stage.tapes.bring(std::move(taken));
    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(fid);
    INFO(end.reason);
    REQUIRE(end.how == RecallEnd::How::kDone);
    CHECK(stage.read(fid) == bytes);
    CHECK(cartridge(stage, barcode).state == CartridgeState::kOk);
}

TEST_CASE("library: a sync finds cartridges that were added", "[library]") {
    TapeStage stage(without_cartridges());
    const store::Fid fid = stage.put(pattern(100'000, 1));
    REQUIRE_FALSE(stage.sync().has_value());
    stage.tapes.add(kAdded);

    REQUIRE(stage.sync().has_value());
    CHECK(stage.copies_of(fid).size() == 1);
}

TEST_CASE("library: objects that wait for a cartridge find one that was added", "[library]") {
    TapeStageOptions options = without_cartridges();
    options.pool.migrate_age = 1s;
    TapeStage stage(options);
    const store::Fid fid = stage.put(pattern(100'000, 1));
    stage.run_for(10min);
    REQUIRE(stage.events.count("library.no_cartridge") == 1);
    stage.tapes.add(kAdded);

    stage.run_for(5min);
    CHECK(stage.copies_of(fid).size() == 1);
}

TEST_CASE("library: an administrator can use a cartridge that was added", "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    const LibraryService::FormatWish wish{.barcode = kAdded.barcode, .pool = "cold"};
    const MediaOutcome before = stage.at(0, stage.library().format(wish));
    CHECK(before.kind == MediaOutcome::Kind::kNoSuchMedium);
    stage.tapes.add(kAdded);
    const MediaOutcome formatted = stage.at(0, stage.library().format(wish));
    INFO(formatted.words);
    CHECK(formatted.kind == MediaOutcome::Kind::kDone);

    const std::uint32_t first = address_of(stage, "V00003L9");
    auto taken = stage.tapes.take(first);
    const std::string drive = stage.library().drives().at(0).name;
    const LibraryService::LoadWish load{.barcode = "V00003L9", .drive = drive};
    CHECK(stage.at(0, stage.library().load(load)).kind == MediaOutcome::Kind::kFailed);
    CHECK(cartridge(stage, "V00003L9").state == CartridgeState::kMissing);
    stage.tapes.bring(std::move(taken));
    const LibraryService::FormatWish again{.barcode = "V00003L9", .pool = "cold"};
    const MediaOutcome back = stage.at(0, stage.library().format(again));
    INFO(back.words);
    CHECK(back.kind == MediaOutcome::Kind::kDone);
}

TEST_CASE("library: a list of media has cartridges that were added and brought back", "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    auto taken = stage.tapes.take(address_of(stage, "V00003L9"));
    stage.tapes.add(kAdded);
    REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
    CHECK(cartridge(stage, "V00003L9").state == CartridgeState::kMissing);
    CHECK(cartridge(stage, kAdded.barcode).state == CartridgeState::kBlank);

    stage.tapes.bring(std::move(taken));
    stage.run_for(1min);
    REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
    CHECK(cartridge(stage, "V00003L9").state == CartridgeState::kBlank);
}

TEST_CASE("library: a changer that does not answer is told once, and when it does again",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    const auto look = [&stage] {
        stage.run_for(1min);
        REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
        return stage.library().condition().changer_fault;
    };
    CHECK(look().empty());
    stage.bay.library()->faults().gone = true;
    CHECK_FALSE(look().empty());
    CHECK_FALSE(look().empty());
    CHECK(stage.events.count("library.changer_failed") == 1);
    stage.bay.library()->faults().gone = false;
    CHECK(look().empty());
    CHECK(stage.events.count("library.changer_works") == 1);
    // Nothing was taken for missing meanwhile.
    CHECK(cartridge(stage, "V00003L9").state == CartridgeState::kBlank);
}

TEST_CASE("library: a cartridge that is stuck in a drive is not back", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    const std::vector<DriveRow> rows = stage.library().drives();
    const std::uint32_t stuck = rows.at(0).barcode.empty() ? 1 : 0;
    const std::string barcode = rows.at(stuck).barcode;
    stage.drive(stuck).inject(devices::TapeFault::kStuck);
    const MediaOutcome unloaded = stage.at(0, stage.library().unload(rows.at(stuck).name));
    REQUIRE(unloaded.kind == MediaOutcome::Kind::kFailed);

    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(fid, 10min);
    CHECK(end.how == RecallEnd::How::kFailed);
    CHECK(end.reason.find(rows.at(stuck).name) != std::string::npos);
    CHECK(cartridge(stage, barcode).state == CartridgeState::kMissing);
}
