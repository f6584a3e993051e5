// Goal: a scrub reads every live copy on a cartridge once, goes on where it was after a restart,
// and says which copies are damaged.
// Method: disks and a library in the simulated world, with damaged tapes.

#include <algorithm>
#include <string>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

void begin_scrub(TapeStage& stage, const std::string& barcode) {
    const MediaOutcome begun = stage.at(0, stage.library().scrub(barcode));
    INFO(begun.words);
    REQUIRE(begun.kind == MediaOutcome::Kind::kDone);
}

MediumWork ended_scrub(TapeStage& stage, const std::string& barcode) {
    for (int i = 0; i < 5000; ++i) {
        const auto work = stage.library().scrub_work(barcode);
        if (work && work->state != MediumWork::State::kRunning) return *work;
        stage.run_for(10s);
    }
    FAIL("the scrub does not end");
    return {};
}

}  // namespace

TEST_CASE("library scrub: every live copy is read, and the time of that is kept", "[library]") {
    TapeStageOptions options;
    options.drives = GENERATE(1U, 2U);
    TapeStage stage(options);
    Book book = put_some(stage, 30);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    stage.remove(book.begin()->first);
    book.erase(book.begin());
    const std::string barcode = written_cartridge(stage);

    begin_scrub(stage, barcode);
    const MediumWork work = ended_scrub(stage, barcode);
    INFO(work.reason);
    CHECK(work.state == MediumWork::State::kDone);
    CHECK(work.copies == 29);
    CHECK(work.copies_done == 29);
    CHECK(work.bytes_done == work.bytes);
    const Cartridge medium = cartridge(stage, barcode);
    CHECK(medium.scrub_file == 0);
    CHECK(medium.scrubbed_s > 0);
    CHECK(medium.damaged_copies == 0);
    CHECK(medium.state == CartridgeState::kOk);
    stage.restart();
    stage.run_for(5min);
    CHECK(cartridge(stage, barcode).scrubbed_s == medium.scrubbed_s);
    check_all(stage, book);
}

TEST_CASE("library scrub: damaged copies are listed, and their cartridge is suspect", "[library]") {
    TapeStageOptions options;
    options.drives = GENERATE(1U, 2U);
    TapeStage stage(options);
    Book book;
    for (std::uint64_t i = 0; i < 6; ++i) {
        // Each in a tape file of its own.
        const Bytes bytes = pattern(300'000, i);
        const store::Fid fid = stage.put(bytes);
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.release(fid).has_value());
        book.emplace(fid, bytes);
    }
    const std::string barcode = written_cartridge(stage);
    const store::Fid bad = std::next(book.begin(), 3)->first;
    const store::Copy copy = stage.copies_of(bad).at(0);
    unload_all(stage);
    stage.tapes.at(address_of(stage, barcode))->make_unreadable(copy.block + 4);

    begin_scrub(stage, barcode);
    const MediumWork work = ended_scrub(stage, barcode);
    CHECK(work.state == MediumWork::State::kPartly);
    CHECK(work.failures == 1);
    CHECK(work.copies_done == 6);
    REQUIRE(work.listed.size() == 1);
    CHECK(work.listed.front().fid == bad);
    CHECK(work.listed.front().file == copy.position.file);
    CHECK(stage.events.count("library.copy_damaged") == 1);
    const Cartridge medium = cartridge(stage, barcode);
    CHECK(medium.state == CartridgeState::kSuspect);
    CHECK(medium.damaged_copies == 1);
    book.erase(bad);
    for (const auto& [fid, bytes] : book) CHECK(stage.recalled(fid) == bytes);
}

TEST_CASE("library scrub: goes on where it was when the node was stopped", "[library]") {
    TapeStageOptions options;
    options.timing = LibraryTiming::kCalculate;
    options.drives = 1;
    TapeStage stage(options);
    // More than are read with one request.
    const Book book = put_some(stage, 1600, 2000);
    REQUIRE(stage.sync(1h).has_value());
    const std::string barcode = written_cartridge(stage);
    // So that what was read is saved while more is read.
    stage.drive(0).faults().slow_ppm = 1'000'000;
    stage.drive(0).faults().slow_delay = 1s;
    begin_scrub(stage, barcode);
    for (int i = 0; i < 100'000 && stage.library().scrub_work(barcode)->copies_done == 0; ++i) {
        stage.run_for(1s);
    }
    const MediumWork before = *stage.library().scrub_work(barcode);
    REQUIRE(before.state == MediumWork::State::kRunning);
    REQUIRE(before.copies_done > 0);
    const bool is_killed = GENERATE(true, false);
    if (is_killed) {
        stage.lose_power();
        stage.start();
    } else {
        stage.restart();
    }
    stage.run_for(5min);
    const MediumWork after = ended_scrub(stage, barcode);
    CHECK(after.state == MediumWork::State::kDone);
    CHECK(after.copies == book.size());
    const std::uint64_t read = before.copies_done + after.copies_done;
    CAPTURE(is_killed, before.copies_done, after.copies_done);
    // A stop keeps those, too, that were read since.
    CHECK((is_killed ? read == book.size() : read <= book.size()));
    CHECK(after.copies_done < book.size());
    CHECK(cartridge(stage, barcode).scrubbed_s > 0);
}

TEST_CASE("library scrub: one that is cancelled does not go on", "[library]") {
    TapeStageOptions options;
    options.timing = LibraryTiming::kCalculate;
    options.drives = 1;
    TapeStage stage(options);
    put_some(stage, 20);
    REQUIRE(stage.sync(1h).has_value());
    const std::string barcode = written_cartridge(stage);
    const auto cancel = [&] { return stage.at(0, stage.library().cancel_scrub(barcode)).kind; };
    CHECK(cancel() == MediaOutcome::Kind::kRefused);
    begin_scrub(stage, barcode);
    begin_scrub(stage, barcode);  // It is the same one.
    CHECK(cancel() == MediaOutcome::Kind::kDone);
    CHECK(ended_scrub(stage, barcode).state == MediumWork::State::kCancelled);
    CHECK(cartridge(stage, barcode).scrub_file == 0);
    stage.restart();
    stage.run_for(1h);
    CHECK_FALSE(stage.library().scrub_work(barcode).has_value());
    CHECK(cartridge(stage, barcode).scrubbed_s == 0);
    CHECK(stage.at(0, stage.library().scrub("V00003L9")).kind == MediaOutcome::Kind::kRefused);
    begin_scrub(stage, barcode);
    CHECK(ended_scrub(stage, barcode).state == MediumWork::State::kDone);
}

TEST_CASE("library scrub: what a broken drive cannot read is not damaged", "[library]") {
    TapeStageOptions options;
    options.drives = GENERATE(1U, 2U);
    const bool loads = GENERATE(true, false);
    TapeStage stage(options);
    const Book book = put_some(stage, 5);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    const std::string barcode = written_cartridge(stage);
    if (options.drives == 2) {
        unload_all(stage);
        const std::string second = stage.library().drives()[1].name;
        REQUIRE(stage.at(0, stage.library().take_drive_down(second)).kind ==
                MediaOutcome::Kind::kDone);
    }
    const std::string drive = stage.library().drives()[0].name;
    if (loads) {
        if (options.drives == 2) {
            REQUIRE(stage.at(0, stage.library().load({.barcode = barcode, .drive = drive})).kind ==
                    MediaOutcome::Kind::kDone);
        }
        stage.drive(0).faults().read_ppm = 1'000'000;
    } else {
        unload_all(stage);
        stage.drive(0).faults().load_ppm = 1'000'000;
    }

    begin_scrub(stage, barcode);
    const MediumWork work = ended_scrub(stage, barcode);
    CHECK(work.state == MediumWork::State::kPartly);
    CHECK(work.failures == 0);
    CHECK_FALSE(work.reason.empty());
    CHECK(stage.events.count("library.copy_damaged") == 0);
    CHECK(cartridge(stage, barcode).state != CartridgeState::kSuspect);
    CHECK(cartridge(stage, barcode).damaged_copies == 0);
    CHECK(cartridge(stage, barcode).scrubbed_s == 0);

    stage.drive(0).faults().load_ppm = 0;
    stage.drive(0).faults().read_ppm = 0;
    REQUIRE(stage.at(0, stage.library().bring_drive_up(drive)).kind == MediaOutcome::Kind::kDone);
    begin_scrub(stage, barcode);
    CHECK(ended_scrub(stage, barcode).state == MediumWork::State::kDone);
    check_all(stage, book);
}
