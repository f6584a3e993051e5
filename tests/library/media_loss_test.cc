// Goal: neither a format nor a lost table of media takes objects that nobody meant to lose.
// Method: disks and a library in the simulated world; drives that refuse or fail, and tables that
// are lost or old.

#include <string>
#include <string_view>
#include <utility>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using Kind = MediaOutcome::Kind;

devices::CartridgeImage& tape_of(TapeStage& stage, std::string_view barcode) {
    return *stage.tapes.at(address_of(stage, barcode));
}

MediaOutcome format_it(TapeStage& stage, std::string_view barcode, FormatForce force) {
    return stage.at(0, stage.library().format(
                           {.barcode = std::string(barcode), .pool = "cold", .force = force}));
}

// Puts other cartridges into the storage elements, so that a table that is made anew numbers them
// otherwise.
void move_around(TapeStage& stage, std::string_view barcode) {
    for (const std::uint32_t other : stage.tapes.full_elements()) {
        const std::uint32_t address = address_of(stage, barcode);
        if (other == address) continue;
        stage.tapes.swap(address, other);
        return;
    }
}

}  // namespace

TEST_CASE("library: a format of a write-protected cartridge is refused, and changes nothing",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    tape_of(stage, object.barcode).info().write_protected = true;
    const Cartridge before = cartridge(stage, object.barcode);

    const MediaOutcome outcome = format_it(stage, object.barcode, FormatForce::kLoseObjects);
    CHECK(outcome.kind == Kind::kRefused);
    CHECK(outcome.words.find("write-protected") != std::string::npos);
    CHECK(cartridge(stage, object.barcode).generation == before.generation);
    CHECK(cartridge(stage, object.barcode).files == before.files);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a format compares the label with other cartridges, and reads it once",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    devices::CartridgeImage& written = tape_of(stage, object.barcode);
    const std::string blank = object.barcode == "V00000L9" ? "V00001L9" : "V00000L9";
    std::swap(written.info().barcode, tape_of(stage, blank).info().barcode);
    const auto moves = [&stage] {
        return stage.drive(0).figures().locates + stage.drive(1).figures().locates;
    };
    const std::uint64_t before = moves();

    const MediaOutcome outcome = format_it(stage, blank, FormatForce::kLoseObjects);
    CAPTURE(outcome.words);
    CHECK(outcome.words.find("the label of cartridge " + object.barcode) != std::string::npos);
    // A loaded tape is at its first block, and reading that again would have moved it.
    CHECK(moves() == before);
}

TEST_CASE("library: a format by force spares a cartridge that has the barcode of another",
          "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    std::string blank;
    for (const Cartridge& each : stage.library().media()) {
        if (each.generation == 0) blank = each.barcode;
    }
    REQUIRE_FALSE(blank.empty());
    devices::CartridgeImage& written = tape_of(stage, object.barcode);
    devices::CartridgeImage& other = tape_of(stage, blank);
    std::swap(written.info().barcode, other.info().barcode);

    for (const FormatForce force : {FormatForce::kForgetData, FormatForce::kLoseObjects}) {
        const MediaOutcome outcome = format_it(stage, blank, force);
        CAPTURE(outcome.words);
        CHECK(outcome.kind == Kind::kRefused);
        CHECK(outcome.words.find("the label of cartridge " + object.barcode) != std::string::npos);
        CHECK(cartridge(stage, blank).generation == 0);
    }
    unload_all(stage);
    std::swap(written.info().barcode, other.info().barcode);
    CHECK(stage.recalled(object.fid) == object.bytes);

    // Its objects are gone, so nothing is lost.
    unload_all(stage);
    stage.remove(object.fid);
    std::swap(written.info().barcode, other.info().barcode);
    CHECK(format_it(stage, blank, FormatForce::kForgetData).kind == Kind::kDone);
}

TEST_CASE("library: a format of a cartridge that cannot be read now changes nothing", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    for (std::uint32_t i = 0; i < 2; ++i) stage.drive(i).faults().read_ppm = 1'000'000;
    CHECK(format_it(stage, object.barcode, FormatForce::kLoseObjects).kind == Kind::kFailed);
    for (std::uint32_t i = 0; i < 2; ++i) stage.drive(i).faults().read_ppm = 0;

    stage.restart();
    stage.run_for(1min);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a cartridge whose label could not be written is not written by itself",
          "[library]") {
    TapeStage stage({.cartridges = 2});
    const OnTape object = put_on_tape(stage);
    for (std::uint32_t i = 0; i < 2; ++i) stage.drive(i).faults().write_ppm = 1'000'000;
    CHECK(format_it(stage, object.barcode, FormatForce::kLoseObjects).kind == Kind::kFailed);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kFailed);
    const std::uint32_t generation = cartridge(stage, object.barcode).generation;

    for (int life = 0; life < 2; ++life) {
        stage.restart();
        stage.run_for(1min);
        for (std::uint64_t i = 0; i < 4; ++i) {
            stage.put(pattern(50'000, 10 + i));
            REQUIRE(stage.sync().has_value());
            unload_all(stage);
        }
        CHECK(cartridge(stage, object.barcode).state == CartridgeState::kFailed);
        CHECK(cartridge(stage, object.barcode).generation == generation);
        CHECK(cartridge(stage, object.barcode).files == 0);
    }
    CHECK(format_it(stage, object.barcode, FormatForce::kForgetData).kind == Kind::kDone);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
}

TEST_CASE("library: a cartridge that comes back is as suspect or full as it was", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    for (const CartridgeState state :
         {CartridgeState::kSuspect, CartridgeState::kFull, CartridgeState::kReadOnly}) {
        restart_with_state(stage, object.barcode, state, "somebody said so");
        stage.run_for(1min);
        unload_all(stage);
        auto taken = stage.tapes.take(address_of(stage, object.barcode));
        REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
        REQUIRE(cartridge(stage, object.barcode).state == CartridgeState::kMissing);
        stage.restart();
        stage.tapes.bring(std::move(taken));
        stage.run_for(1min);
        REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
        CHECK(cartridge(stage, object.barcode).state == state);
        CHECK(cartridge(stage, object.barcode).reason == "somebody said so");
        CHECK_FALSE(cartridge(stage, object.barcode).state_before.has_value());
    }
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a cartridge that comes back without a label is blank, and gets one",
          "[library]") {
    for (const bool is_begun : {false, true}) {
        CAPTURE(is_begun);
        TapeStage stage({.cartridges = 1});
        const store::Fid fid = stage.put(pattern(1000, 1));
        stage.run_for(1min);
        const std::string barcode = stage.library().media().at(0).barcode;
        if (is_begun) {
            for (std::uint32_t i = 0; i < 2; ++i) stage.drive(i).faults().write_ppm = 1'000'000;
            REQUIRE_FALSE(stage.sync().has_value());
            for (std::uint32_t i = 0; i < 2; ++i) stage.drive(i).faults().write_ppm = 0;
            REQUIRE(cartridge(stage, barcode).is_label_pending);
            // As after a crash in the meantime.
            restart_with_state(stage, barcode, CartridgeState::kBlank, "its label is pending");
            stage.run_for(1min);
        }
        unload_all(stage);
        auto taken = stage.tapes.take(address_of(stage, barcode));
        REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
        REQUIRE(cartridge(stage, barcode).state == CartridgeState::kMissing);
        stage.restart();
        stage.tapes.bring(std::move(taken));
        stage.run_for(1min);
        REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
        CHECK(cartridge(stage, barcode).state == CartridgeState::kBlank);

        REQUIRE(stage.sync().has_value());
        CHECK(cartridge(stage, barcode).state == CartridgeState::kOk);
        CHECK_FALSE(cartridge(stage, barcode).is_label_pending);
        CHECK(stage.copies_of(fid).size() == 1);
    }
}

TEST_CASE("library: a format says how many objects would be lost, and wants to hear it twice",
          "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 5);
    REQUIRE(stage.sync().has_value());
    const std::string barcode = written_cartridge(stage);
    std::size_t on_it = 0;
    for (const auto& [fid, bytes] : book) {
        const bool is_there =
            store::text_of(stage.copies_of(fid).front().cartridge.vsn) == barcode.substr(0, 6);
        on_it += is_there ? 1 : 0;
    }
    const std::string objects = std::to_string(on_it) + (on_it == 1 ? " object" : " objects");
    const std::string name = "cartridge " + barcode;

    // Their bytes are on the disks, too.
    CHECK(format_it(stage, barcode, FormatForce::kRefuseData).words ==
          name + " has copies of " + objects + "; none would be lost; --force forgets the copies");
    release_all(stage, book);
    const std::string lost = name + " has copies of " + objects + "; " + objects +
                             " with no other copy would be lost for good; ";
    CHECK(format_it(stage, barcode, FormatForce::kRefuseData).words ==
          lost + "--force --yes confirms that");
    const MediaOutcome refused = format_it(stage, barcode, FormatForce::kForgetData);
    CHECK(refused.kind == Kind::kRefused);
    CHECK(refused.words == lost + "--force --yes confirms that");
    check_all(stage, book);

    release_all(stage, book);
    CHECK(format_it(stage, barcode, FormatForce::kLoseObjects).kind == Kind::kDone);
    CHECK(cartridge(stage, barcode).files == 0);
}

TEST_CASE("library: of two copies one may be forgotten, and not the other", "[library]") {
    TapeStage stage({.pool = {.name = "cold", .staging = "fast", .copies = 2, .migrate_age = 1h}});
    const OnTape object = put_on_tape(stage);
    const std::vector<store::Copy> copies = stage.copies_of(object.fid);
    REQUIRE(copies.size() == 2);
    const auto barcode_of = [](const store::Copy& copy) {
        return std::string(store::text_of(copy.cartridge.vsn)) + "L9";
    };
    CHECK(format_it(stage, barcode_of(copies[0]), FormatForce::kForgetData).kind == Kind::kDone);
    CHECK(format_it(stage, barcode_of(copies[1]), FormatForce::kForgetData).kind == Kind::kRefused);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: objects are read, and more are written, after the table of media was lost",
          "[library]") {
    TapeStage stage;
    const OnTape first = put_on_tape(stage, 1);
    unload_all(stage);
    stage.stop();
    const std::string old_table = stage.bay.media();
    stage.bay.media().clear();
    move_around(stage, first.barcode);
    stage.start();
    stage.run_for(1min);
    CHECK(cartridge(stage, first.barcode).state == CartridgeState::kOk);
    CHECK(stage.recalled(first.fid) == first.bytes);

    const OnTape second = put_on_tape(stage, 2);
    CHECK(stage.recalled(second.fid) == second.bytes);

    // The old table is found again.
    REQUIRE(stage.release(first.fid).has_value());
    REQUIRE(stage.release(second.fid).has_value());
    unload_all(stage);
    stage.stop();
    stage.bay.media() = old_table;
    stage.start();
    stage.run_for(1min);
    CHECK(stage.recalled(first.fid) == first.bytes);
    CHECK(stage.recalled(second.fid) == second.bytes);
}

TEST_CASE("library: a disk that comes late after the table was lost names its cartridges",
          "[library]") {
    const bool is_formatted = GENERATE(false, true);
    TapeStage stage({.disks = 1});
    const OnTape lost = put_on_tape(stage, 1);
    const Bytes kept_bytes = pattern(50'000, 2);
    const store::Fid kept = stage.put(kept_bytes);
    REQUIRE(stage.sync().has_value());
    unload_all(stage);
    stage.stop();
    stage.bay.media().clear();
    move_around(stage, lost.barcode);
    stage.take_away(0);
    stage.start();
    stage.run_for(1min);
    // Without records it is somebody else's, and a format cannot know what is lost.
    const std::string drive = stage.library().drives().at(0).name;
    const auto loaded =
        stage.at(0, stage.library().load({.barcode = lost.barcode, .drive = drive}));
    CHECK(loaded.kind == Kind::kFailed);
    CHECK(cartridge(stage, lost.barcode).state == CartridgeState::kForeign);
    CHECK(format_it(stage, lost.barcode, FormatForce::kForgetData).kind == Kind::kRefused);
    if (is_formatted) {
        CHECK(format_it(stage, lost.barcode, FormatForce::kLoseObjects).kind == Kind::kDone);
    }
    stage.bring_back(0);
    stage.run_for(1min);
    CHECK(cartridge(stage, lost.barcode).state == CartridgeState::kOk);
    // The bytes that are on a disk only stay there.
    CHECK(stage.release(kept).has_value() != is_formatted);
    if (is_formatted) {
        CHECK(stage.copies_of(kept).empty());
        CHECK(stage.read(kept) == kept_bytes);
    } else {
        CHECK(stage.recalled(kept) == kept_bytes);
        CHECK(stage.recalled(lost.fid) == lost.bytes);
    }
}

TEST_CASE("library: a disk that comes late learns that its cartridge was formatted", "[library]") {
    TapeStage stage({.localities = 1, .disks = 2});
    const Bytes bytes = pattern(50'000, 2);
    const store::Fid fid = stage.put(bytes, 1);
    REQUIRE(stage.sync().has_value());
    const std::string barcode = written_cartridge(stage);
    stage.stop();
    stage.take_away(1);
    stage.start();
    stage.run_for(1min);
    REQUIRE(cartridge(stage, barcode).state == CartridgeState::kOk);
    REQUIRE(format_it(stage, barcode, FormatForce::kLoseObjects).kind == Kind::kDone);
    REQUIRE(cartridge(stage, barcode).state == CartridgeState::kOk);
    stage.bring_back(1);
    stage.run_for(1min);
    // Its bytes are on the disk only.
    CHECK(stage.copies_of(fid).empty());
    CHECK_FALSE(stage.release(fid).has_value());
    CHECK(stage.read(fid) == bytes);
}

TEST_CASE("library: a format is refused while a disk is away that may need the cartridge",
          "[library]") {
    TapeStage stage({.localities = 2, .disks = 2});
    const Book book = put_some(stage, 8);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    const std::string barcode = written_cartridge(stage);
    stage.stop();
    stage.take_away(1);
    stage.start();
    stage.run_for(1min);
    for (const FormatForce force : {FormatForce::kRefuseData, FormatForce::kForgetData}) {
        CHECK(format_it(stage, barcode, force).kind == Kind::kRefused);
    }
    // One that was never used needs no disk.
    CHECK(format_it(stage, "V00003L9", FormatForce::kRefuseData).kind == Kind::kDone);
    stage.bring_back(1);
    stage.run_for(1min);
    check_all(stage, book);
}

TEST_CASE("library: a scrub finds no damage after the table of media was lost", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage, 1);
    unload_all(stage);
    stage.stop();
    stage.bay.media().clear();
    move_around(stage, object.barcode);
    stage.start();
    stage.run_for(1min);
    REQUIRE(stage.at(0, stage.library().scrub(object.barcode)).kind == Kind::kDone);
    stage.run_for(1h);
    const auto work = stage.library().scrub_work(object.barcode);
    REQUIRE(work.has_value());
    CHECK(work->state == MediumWork::State::kDone);
    CHECK(work->failures == 0);
    CHECK(work->copies_done == 1);
    CHECK(stage.recalled(object.fid) == object.bytes);
}

TEST_CASE("library: a cartridge is written first after the table of media was lost", "[library]") {
    TapeStage stage({.cartridges = 2});
    const OnTape first = put_on_tape(stage, 1);
    unload_all(stage);
    stage.stop();
    stage.bay.media().clear();
    move_around(stage, first.barcode);
    stage.start();
    stage.run_for(1min);
    std::vector<OnTape> others;
    for (std::uint64_t i = 0; i < 3; ++i) {
        others.push_back(put_on_tape(stage, 10 + i));
        unload_all(stage);
    }
    stage.restart();
    stage.run_for(1min);
    for (const OnTape& each : others) CHECK(stage.recalled(each.fid) == each.bytes);
    CHECK(stage.recalled(first.fid) == first.bytes);
}

TEST_CASE("library: a cartridge is ok again once it is not write-protected", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    tape_of(stage, object.barcode).info().write_protected = true;
    CHECK(stage.recalled(object.fid) == object.bytes);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kReadOnly);
    unload_all(stage);
    tape_of(stage, object.barcode).info().write_protected = false;
    const std::string drive = stage.library().drives().front().name;
    CHECK(stage.at(0, stage.library().load({.barcode = object.barcode, .drive = drive})).kind ==
          Kind::kDone);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
    CHECK(cartridge(stage, object.barcode).reason.empty());
}

TEST_CASE("library: a cartridge is ok again once it loads", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    const std::uint32_t address = address_of(stage, object.barcode);
    stage.tapes.at(address)->break_leader();
    REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(object.fid).how == RecallEnd::How::kFailed);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kSuspect);
    tape_of(stage, object.barcode).mend_leader();
    CHECK(stage.recalled(object.fid) == object.bytes);
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kOk);
}

TEST_CASE("library: a cartridge whose data two drives find damaged is suspect", "[library]") {
    TapeStage stage;
    const OnTape object = put_on_tape(stage);
    unload_all(stage);
    devices::CartridgeImage& image = tape_of(stage, object.barcode);
    // VOL1, three labels and a filemark come first.
    image.make_unreadable(5);
    for (std::size_t tries = 0; tries < 2; ++tries) {
        REQUIRE(stage.recall(object.fid) == RecallAsked::kWaiting);
        const RecallEnd end = stage.wait_for(object.fid);
        CHECK(end.how == RecallEnd::How::kFailed);
        CHECK(end.is_damaged);
        // The next one is read in the other drive.
        const std::string other = stage.library().drives()[tries].barcode.empty()
                                      ? stage.library().drives()[tries].name
                                      : stage.library().drives()[1 - tries].name;
        unload_all(stage);
        REQUIRE(
            stage.at(0, stage.library().load({.barcode = object.barcode, .drive = other})).kind ==
            Kind::kDone);
    }
    CHECK(cartridge(stage, object.barcode).state == CartridgeState::kSuspect);
    for (const DriveRow& each : stage.library().drives()) CHECK(each.activity == "idle");
}

TEST_CASE("library: a stop waits for a drive no longer than it may, and costs nothing",
          "[library]") {
    std::uint64_t left_of_all = 0;
    for (const Duration delay : {Duration{0}, Duration{1s}, Duration{20s}, Duration{50s}}) {
        TapeStage stage({.timing = LibraryTiming::kReal});
        const Book on_tape = put_some(stage, 4);
        REQUIRE(stage.sync().has_value());
        release_all(stage, on_tape);
        const Book waiting = put_some(stage, 4);
        for (std::uint32_t i = 0; i < 2; ++i) {
            stage.drive(i).faults().slow_delay = 10min;
            stage.drive(i).faults().slow_ppm = 300'000;
        }
        REQUIRE(stage.recall(on_tape.begin()->first) == RecallAsked::kWaiting);
        stage.run_for(delay);
        const Instant asked_at = stage.world.now();
        const std::uint64_t left = stage.stop_within(5s);
        left_of_all += left;
        CHECK(stage.world.now() - asked_at <= 6s);
        CHECK(stage.events.count("library.left_running") == (left > 0 ? 1 : 0));

        stage.start();
        stage.run_for(1h);
        check_all(stage, on_tape);
        check_all(stage, waiting);
        REQUIRE(stage.sync().has_value());
    }
    CHECK(left_of_all > 0);
}
