// Goal: what an administrator asks of cartridges and drives loses no object and ends no daemon,
// whatever goes on meanwhile.
// Method: disks and a library in the simulated world; objects are compared with what was put.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/gate.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using Kind = MediaOutcome::Kind;
Task<void> keep_outcome(Task<MediaOutcome> asked, std::optional<MediaOutcome>* outcome) {
    *outcome = co_await std::move(asked);
}

// A request of an administrator that others do not wait for.
class Asked {
public:
    Asked(TapeStage& stage, Task<MediaOutcome> asked) : stage_(stage) {
        stage.reactor(0).spawn(gate_, keep_outcome(std::move(asked), &outcome_));
    }
    MediaOutcome end() {
        for (int tries = 0; tries < 1000 && !outcome_; ++tries) stage_.run_for(1s);
        REQUIRE(outcome_.has_value());
        return *outcome_;
    }

private:
    TapeStage& stage_;
    core::Gate gate_;
    std::optional<MediaOutcome> outcome_;
};

Task<bool> cancel_in_turn(core::CancelSource* source) {
    source->cancel();
    co_return true;
}

// The first cartridge on which a drive writes now.
std::string wait_until_written(TapeStage& stage) {
    for (int tries = 0; tries < 6000; ++tries) {
        for (const DriveRow& each : stage.library().drives()) {
            if (each.activity == "writing") return each.barcode;
        }
        stage.run_for(100ms);
    }
    FAIL("no drive writes");
    return {};
}

}  // namespace

TEST_CASE("library: a cartridge that gets its first objects meanwhile is not formatted",
          "[library]") {
    TapeStage stage({.pool = {.name = "cold", .staging = "fast", .migrate_age = 1s}});
    const Book book = put_some(stage, 16);
    const std::string barcode = wait_until_written(stage);

    Asked format(stage, stage.library().format({.barcode = barcode, .pool = "cold"}));
    const MediaOutcome outcome = format.end();
    CHECK(outcome.kind == Kind::kRefused);
    CHECK(outcome.words.starts_with("cartridge " + barcode + " has copies of "));

    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    check_all(stage, book);
    stage.stop();
}

TEST_CASE("library: blank cartridges that may be others' are labelled by an administrator only",
          "[library]") {
    TapeStage stage({.labels_blank = false});
    const Book book = put_some(stage, 4);
    REQUIRE_FALSE(stage.sync().has_value());
    CHECK(stage.events.count("library.no_cartridge") == 1);
    for (const Cartridge& each : stage.library().media()) CHECK(each.generation == 0);

    const std::string barcode = stage.library().media().front().barcode;
    Asked format(stage, stage.library().format({.barcode = barcode, .pool = "cold"}));
    CHECK(format.end().kind == Kind::kDone);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    check_all(stage, book);
    for (const Cartridge& each : stage.library().media()) {
        CHECK(each.generation == (each.barcode == barcode ? 1U : 0U));
    }
}

TEST_CASE("library: objects are copied again when their cartridge is formatted by force",
          "[library]") {
    TapeStage stage({.pool = {.name = "cold", .staging = "fast", .migrate_age = 1s}});
    const Book book = put_some(stage, 16);
    const std::string barcode = wait_until_written(stage);

    Asked format(stage,
                 stage.library().format(
                     {.barcode = barcode, .pool = "cold", .force = FormatForce::kForgetData}));
    CHECK(format.end().kind == Kind::kDone);

    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    check_all(stage, book);
    stage.stop();
}

TEST_CASE("library: objects stay on the disk when their cartridge turns out to be another",
          "[library]") {
    TapeStage stage({.drives = 1, .cartridges = 1});
    const Book book = put_some(stage, 4);
    REQUIRE(stage.sync().has_value());
    const std::string barcode = stage.library().media().front().barcode;
    REQUIRE(stage.at(0, stage.library().unload(stage.library().drives().front().name)).kind ==
            Kind::kDone);
    stage.stop();
    // Somebody puts an older image back, of before it was written.
    for (const std::uint32_t each : stage.tapes.full_elements()) stage.tapes.at(each)->cut(0);
    stage.start();
    stage.run_for(1min);

    const std::string drive = stage.library().drives().front().name;
    const MediaOutcome loaded =
        stage.at(0, stage.library().load({.barcode = barcode, .drive = drive}));
    CHECK(loaded.kind == Kind::kFailed);
    CHECK(cartridge(stage, barcode).state == CartridgeState::kForeign);
    CHECK(cartridge(stage, barcode).reason == "it is blank, and had a label and data");
    stage.run_for(1s);
    for (const auto& [fid, bytes] : book) {
        CHECK(stage.release(fid).error().code == Errc::kBusy);
        const bool is_there = stage.read(fid) == bytes;
        CHECK(is_there);
    }
    stage.stop();
}

TEST_CASE("library: copies of before a format are forgotten when their disk comes back",
          "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 4);
    REQUIRE(stage.sync().has_value());
    const store::Fid fid = book.begin()->first;
    const store::Cartridge cartridge = stage.copies_of(fid).front().cartridge;

    // What the library tells a disk that was away while the cartridge was formatted.
    const KnownMedia media{
        {cartridge.vsn, {.generation = cartridge.generation + 1, .is_good = true}}};
    REQUIRE(stage.at_home(fid, stage.staging_of(fid).set_media(media)).has_value());
    CHECK(stage.copies_of(fid).empty());
    CHECK(stage.release(fid).error().code == Errc::kBusy);
    CHECK(stage.events.count("library.copies_outdated") == 1);
    stage.stop();
}

TEST_CASE("library: a drive that an administrator uses is not given to another", "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    const DriveRow drive = stage.library().drives().front();
    const std::string barcode = stage.library().media().front().barcode;

    Asked load(stage, stage.library().load({.barcode = barcode, .drive = drive.name}));
    stage.run_for(1s);
    CHECK(stage.at(0, stage.library().unload(drive.name)).kind == Kind::kRefused);
    CHECK(stage.at(0, stage.library().load({.barcode = barcode, .drive = drive.name})).kind ==
          Kind::kRefused);
    CHECK(load.end().kind == Kind::kDone);
    CHECK(stage.library().drives().front().barcode == barcode);
    CHECK(stage.at(0, stage.library().unload(drive.name)).kind == Kind::kDone);
    stage.stop();
}

TEST_CASE("library: a format is refused while all drives are down", "[library]") {
    TapeStage stage({.drives = 2});
    stage.run_for(5min);
    for (const DriveRow& each : stage.library().drives()) {
        REQUIRE(stage.at(0, stage.library().take_drive_down(each.name)).kind == Kind::kDone);
    }
    Asked refused(stage, stage.library().format({.barcode = "V00000L9", .pool = "cold"}));
    CHECK(refused.end().kind == Kind::kRefused);
    const std::string drive = stage.library().drives()[1].name;
    REQUIRE(stage.at(0, stage.library().bring_drive_up(drive)).kind == Kind::kDone);
    Asked format(stage, stage.library().format({.barcode = "V00000L9", .pool = "cold"}));
    CHECK(format.end().kind == Kind::kDone);
}

TEST_CASE("library: a sync while all drives are down says so", "[library]") {
    TapeStage stage({.drives = 2});
    stage.run_for(5min);
    for (const DriveRow& each : stage.library().drives()) {
        REQUIRE(stage.at(0, stage.library().take_drive_down(each.name)).kind == Kind::kDone);
    }
    stage.put(pattern(100'000, 1));

    const auto synced = stage.sync();

    REQUIRE_FALSE(synced.has_value());
    CHECK(std::string(synced.error().context) == "all drives are down");
}

TEST_CASE("library: a format that waits for a drive can be given up", "[library]") {
    TapeStage stage({.drives = 1});
    const store::Fid fid = stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    std::string blank;
    for (const Cartridge& each : stage.library().media()) {
        if (each.generation == 0) blank = each.barcode;
    }
    REQUIRE_FALSE(blank.empty());
    // The only drive is busy for long.
    stage.drive(0).faults().slow_ppm = 1'000'000;
    stage.drive(0).faults().slow_delay = 1h;
    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    stage.run_for(1s);
    REQUIRE(stage.library().drives().at(0).activity == "reading");

    core::CancelSource cancel;
    Asked format(stage,
                 stage.library().format({.barcode = blank, .pool = "cold", .cancel = &cancel}));
    stage.run_for(1min);
    REQUIRE(stage.at(0, cancel_in_turn(&cancel)));
    const MediaOutcome outcome = format.end();
    CHECK(outcome.kind == Kind::kFailed);
    CHECK(outcome.words.starts_with("cartridge " + blank + " is not formatted"));

    stage.drive(0).faults().slow_ppm = 0;
    REQUIRE(stage.wait_for(fid, 24h).how == RecallEnd::How::kDone);
    stage.run_for(1h);
    CHECK(cartridge(stage, blank).generation == 0);
    // One that nobody gives up is done.
    Asked again(stage, stage.library().format({.barcode = blank, .pool = "cold"}));
    CHECK(again.end().kind == Kind::kDone);
    CHECK(cartridge(stage, blank).generation == 1);
    stage.stop();
}

TEST_CASE("library: a format is listed until it ends, and cancelled while it waits for a drive",
          "[library]") {
    TapeStage stage({.drives = 1});
    stage.run_for(1min);
    const std::string first = "V00000L9";
    const std::string second = "V00001L9";
    CHECK(stage.library().formats().empty());
    stage.drive(0).faults().slow_ppm = 1'000'000;
    stage.drive(0).faults().slow_delay = 10min;
    Asked running(stage, stage.library().format({.barcode = first, .pool = "cold"}));
    stage.run_for(1min);
    Asked waiting(stage, stage.library().format({.barcode = second, .pool = "cold"}));
    stage.run_for(1min);

    const std::vector<FormatRow> rows = stage.library().formats();
    REQUIRE(rows.size() == 2);
    CHECK(rows[0].barcode == first);
    CHECK(rows[0].has_begun);
    CHECK(rows[1].barcode == second);
    CHECK(rows[1].pool == "cold");
    CHECK_FALSE(rows[1].has_begun);
    CHECK(rows[1].asked_at > rows[0].asked_at);

    const MediaOutcome begun = stage.at(0, stage.library().cancel_format(first));
    CHECK(begun.kind == Kind::kRefused);
    CHECK(begun.words == "the format of cartridge " + first + " has begun, and is finished");
    CHECK(stage.at(0, stage.library().cancel_format("V00002L9")).kind == Kind::kNoSuchMedium);
    CHECK(stage.at(0, stage.library().cancel_format(second)).kind == Kind::kDone);
    const MediaOutcome cancelled = waiting.end();
    CHECK(cancelled.kind == Kind::kFailed);
    CHECK(cancelled.words == "cartridge " + second +
                                 " is not formatted: it was cancelled while it waited for a drive");
    CHECK(stage.library().formats().size() == 1);

    stage.drive(0).faults().slow_ppm = 0;
    CHECK(running.end().kind == Kind::kDone);
    CHECK(stage.library().formats().empty());
    CHECK(cartridge(stage, first).generation == 1);
    CHECK(cartridge(stage, second).generation == 0);
    stage.stop();
}

TEST_CASE("library: a cartridge that a recall waits for is not formatted", "[library]") {
    TapeStage stage({.cartridges = 1});
    const Bytes bytes = pattern(100'000, 1);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    const std::string barcode = stage.library().media().front().barcode;
    unload_all(stage);
    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    stage.run_for(20ms);

    const MediaOutcome outcome =
        stage.at(0, stage.library().format(
                        {.barcode = barcode, .pool = "cold", .force = FormatForce::kLoseObjects}));
    CHECK(outcome.kind == Kind::kRefused);
    CHECK(outcome.words == "cartridge " + barcode + " is needed by a recall");
    CHECK(stage.recalled(fid) == bytes);
}
