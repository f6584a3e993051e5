// Goal: a cartridge that a drive has unloaded and the changer has not taken yet is lost to nobody,
// also if the drive goes down.
// Method: disks and a library in the simulated world, with a changer that refuses, or takes another
// cartridge.

#include <string>
#include <vector>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using DownKind = MediaOutcome::Kind;

// An object on tape only. Its cartridge is in the element of a drive that has unloaded it. The
// changer still refuses every move.
struct LeftBehind : OnTape {
    std::uint32_t drive = 0;
    std::string name{};   // Of the drive.
    std::string other{};  // The name of the other drive.
};

void let_move(TapeStage& stage, bool moves) {
    stage.bay.library()->faults().busy_ppm = moves ? 0 : 1'000'000;
}

void unload_in_vain(TapeStage& stage, const std::string& name) {
    let_move(stage, false);
    REQUIRE(stage.at(0, stage.library().unload(name)).kind == DownKind::kFailed);
}

LeftBehind leave_behind(TapeStage& stage) {
    LeftBehind object{put_on_tape(stage)};
    const std::vector<DriveRow> rows = stage.library().drives();
    object.drive = rows.at(0).barcode.empty() ? 1 : 0;
    REQUIRE(rows.at(object.drive).barcode == object.barcode);
    object.name = rows.at(object.drive).name;
    object.other = rows.at(1 - object.drive).name;
    unload_in_vain(stage, object.name);
    REQUIRE(stage.library().drives().at(object.drive).barcode.empty());
    return object;
}

void take_down_as_it_is(TapeStage& stage, const std::string& name) {
    let_move(stage, false);
    CHECK(stage.at(0, stage.library().take_drive_down(name)).kind == DownKind::kFailed);
    let_move(stage, true);
}

}  // namespace

TEST_CASE("library: a cartridge left in a drive that is down is read in another drive",
          "[library]") {
    TapeStage stage;
    const LeftBehind object = leave_behind(stage);
    take_down_as_it_is(stage, object.name);
    CHECK(stage.library().drives().at(object.drive).activity == "down");

    CHECK(stage.recalled(object.fid) == object.bytes);
    CHECK(stage.library().drives().at(1 - object.drive).barcode == object.barcode);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
}

TEST_CASE("library: a drive that is taken down gives back what an unload has left in it",
          "[library]") {
    TapeStage stage;
    const LeftBehind object = leave_behind(stage);
    let_move(stage, true);
    CHECK(stage.at(0, stage.library().take_drive_down(object.name)).kind == DownKind::kDone);
    CHECK(address_of(stage, object.barcode) > 0);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a cartridge that stays in a drive that is down fails its recalls naming it",
          "[library]") {
    TapeStage stage;
    const LeftBehind object = leave_behind(stage);
    take_down_as_it_is(stage, object.name);
    // As if somebody had loaded it at the drive: the changer cannot take it.
    stage.tapes.drive(object.drive).threaded = true;

    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(object.fid, 10min);
    INFO(end.reason);
    REQUIRE(end.how == RecallEnd::How::kFailed);
    CHECK(end.reason.find(object.barcode) != std::string::npos);
    CHECK(end.reason.find(object.name) != std::string::npos);
    const Cartridge stuck = cartridge(stage, object.barcode);
    CHECK(stuck.state == CartridgeState::kMissing);
    CHECK(stuck.reason == "it is stuck in drive " + object.name);

    // The next who asks for it has it moved out.
    stage.tapes.drive(object.drive).threaded = false;
    CHECK(stage.recalled(object.fid) == object.bytes);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
}

TEST_CASE("library: recalls wait for a reason while all drives are down, and go on afterwards",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    const std::vector<DriveRow> rows = stage.library().drives();
    CHECK(stage.library().why_recalls_wait().empty());
    for (const DriveRow& each : rows) {
        CHECK(stage.library().why_recalls_wait().empty());
        REQUIRE(stage.at(0, stage.library().take_drive_down(each.name)).kind == DownKind::kDone);
    }
    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);

    const std::string reason = stage.library().why_recalls_wait();
    INFO(reason);
    CHECK(reason.starts_with("all drives of library "));
    CHECK(reason.find("fopctl drive up") != std::string::npos);

    REQUIRE(stage.at(0, stage.library().bring_drive_up(rows.at(0).name)).kind == DownKind::kDone);
    CHECK(stage.library().why_recalls_wait().empty());
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a recall takes the other copy if one stays in a drive that is down",
          "[library]") {
    TapeStageOptions options;
    options.pool.copies = 2;
    TapeStage stage(options);
    const std::size_t which = GENERATE(0U, 1U);
    const Bytes bytes = pattern(100'000, 1);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    unload_all(stage);
    std::vector<std::string> written;
    for (const Cartridge& each : stage.library().media()) {
        if (each.files > 0) written.push_back(each.barcode);
    }
    REQUIRE(written.size() == 2);
    const std::string name = stage.library().drives().at(0).name;
    const MediaOutcome loaded =
        stage.at(0, stage.library().load({.barcode = written[which], .drive = name}));
    REQUIRE(loaded.kind == DownKind::kDone);
    unload_in_vain(stage, name);
    take_down_as_it_is(stage, name);
    stage.tapes.drive(0).threaded = true;

    CHECK(stage.recalled(fid) == bytes);
    CHECK(stage.library().drives().at(1).barcode == written[1 - which]);
}

TEST_CASE("library: one inventory serves all cartridges that drives that are down give back",
          "[library]") {
    TapeStageOptions options;
    options.drives = 3;
    options.pool.copies = 2;
    TapeStage stage(options);
    stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    std::vector<std::string> barcodes;
    std::vector<std::uint32_t> full;
    std::string empty;  // The name of the drive without a cartridge.
    const std::vector<DriveRow> rows = stage.library().drives();
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
        if (rows[i].barcode.empty()) {
            empty = rows[i].name;
            continue;
        }
        full.push_back(i);
        barcodes.push_back(rows[i].barcode);
        unload_in_vain(stage, rows[i].name);
        take_down_as_it_is(stage, rows[i].name);
        stage.tapes.drive(i).threaded = true;
    }
    REQUIRE(full.size() == 2);
    for (const std::string& each : barcodes) {
        const MediaOutcome loaded =
            stage.at(0, stage.library().load({.barcode = each, .drive = empty}));
        REQUIRE(loaded.kind == DownKind::kFailed);
        REQUIRE(cartridge(stage, each).state == CartridgeState::kMissing);
    }
    for (const std::uint32_t each : full) stage.tapes.drive(each).threaded = false;
    stage.run_for(1min);
    const std::uint64_t before = stage.bay.library()->inventories();

    REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
    for (const std::string& each : barcodes) {
        CHECK(cartridge(stage, each).state == CartridgeState::kOk);
        CHECK(address_of(stage, each) > 0);
    }
    // And one follows each move, which tells where the cartridge is.
    CHECK(stage.bay.library()->inventories() == before + 1 + barcodes.size());
}

TEST_CASE("library: a cartridge that an unload has left in a drive can be loaded in another",
          "[library]") {
    TapeStage stage;
    const LeftBehind object = leave_behind(stage);
    let_move(stage, true);
    const MediaOutcome loaded =
        stage.at(0, stage.library().load({.barcode = object.barcode, .drive = object.other}));
    INFO(loaded.words);
    CHECK(loaded.kind == DownKind::kDone);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a drive is not empty when the changer has moved another cartridge",
          "[library]") {
    TapeStage stage;
    const auto [fid, bytes, barcode] = put_on_tape(stage);
    const std::vector<DriveRow> rows = stage.library().drives();
    const std::uint32_t drive = rows.at(0).barcode.empty() ? 1 : 0;
    CHECK(rows.at(drive).barcode == barcode);
    stage.bay.library()->faults().takes_other = true;

    CHECK(stage.at(0, stage.library().unload(rows.at(drive).name)).kind == DownKind::kFailed);
    CHECK_FALSE(stage.bay.library()->faults().takes_other);
    CHECK(stage.recalled(fid) == bytes);
}

TEST_CASE("library: an export for which the changer moves another cartridge fails", "[library]") {
    TapeStage stage;
    stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    unload_all(stage);
    const std::string barcode = written_cartridge(stage);
    stage.bay.library()->faults().takes_other = true;

    const MediaOutcome outcome =
        stage.at(0, stage.library().export_medium({.barcode = barcode, .hides_objects = true}));
    INFO(outcome.words);
    CHECK(outcome.kind == DownKind::kFailed);
    CHECK_FALSE(outcome.is_in_exchange);
    CHECK(cartridge(stage, barcode).state == CartridgeState::kOk);
    CHECK(address_of(stage, barcode) > 0);
}
