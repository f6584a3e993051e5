// Goal: a repack moves everything that is needed on a cartridge to others, loses nothing whatever
// happens meanwhile, and says what it could not move.
// Method: disks and a library in the simulated world, with damaged tapes and power cuts.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "io_sched/drive_algorithms.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using Kind = MediaOutcome::Kind;

// Objects on tape; every second one has left the disks.
Book put_half_on_tape(TapeStage& stage, std::size_t count, std::size_t bytes_max = 200'000) {
    Book book = put_some(stage, count, bytes_max);
    REQUIRE(stage.sync().has_value());
    std::size_t i = 0;
    for (const auto& [fid, bytes] : book) {
        if (++i % 2 == 0) REQUIRE(stage.release(fid).has_value());
    }
    return book;
}

std::string barcode_of(TapeStage& stage, store::Fid fid) {
    const store::Copy copy = stage.copies_of(fid).at(0);
    for (const Cartridge& each : stage.library().media()) {
        if (each.vsn_text() == copy.cartridge.vsn) return each.barcode;
    }
    FAIL("no cartridge has the object");
    return {};
}

std::uint64_t live_on(TapeStage& stage, const std::string& barcode) {
    const Cartridge medium = cartridge(stage, barcode);
    std::uint64_t copies = 0;
    for (std::uint32_t disk = 0; disk < stage.options.disks; ++disk) {
        const auto use = stage.volume(disk).map().copies().use_of(medium.vsn_text());
        if (use.cartridge.generation == medium.generation) copies += use.live_copies;
    }
    return copies;
}

MediaOutcome repack(TapeStage& stage, const std::string& barcode) {
    return stage.at(0, stage.library().repack(barcode));
}

MediaOutcome format(TapeStage& stage, const std::string& barcode) {
    return stage.at(0, stage.library().format({.barcode = barcode, .pool = "cold"}));
}

MediumWork finished(TapeStage& stage, const std::string& barcode) {
    for (int i = 0; i < 5000; ++i) {
        const auto work = stage.library().repack_work(barcode);
        if (work && work->state != MediumWork::State::kRunning) return *work;
        stage.run_for(10s);
    }
    FAIL("the repack does not end");
    return {};
}

store::ClientId some_client() {
    store::ClientId client;
    client.bytes[0] = std::byte{7};
    return client;
}

MediumWork repacked(TapeStage& stage, const std::string& barcode) {
    const MediaOutcome begun = repack(stage, barcode);
    INFO(begun.words);
    REQUIRE(begun.kind == Kind::kDone);
    return finished(stage, barcode);
}

}  // namespace

TEST_CASE("library repack: afterwards nothing on the cartridge is needed", "[library]") {
    TapeStageOptions options;
    options.drives = GENERATE(1U, 2U);
    options.localities = GENERATE(1U, 2U);
    TapeStage stage(options);
    const Book book = put_half_on_tape(stage, 40);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    std::set<store::Fid> released;
    for (const auto& [fid, bytes] : book) {
        if (stage.is_released(fid)) released.insert(fid);
    }
    REQUIRE(released.size() == 20);
    REQUIRE(live_on(stage, barcode) == 40);
    REQUIRE(format(stage, barcode).kind == Kind::kRefused);

    const MediumWork work = repacked(stage, barcode);
    INFO(work.reason);
    REQUIRE(work.state == MediumWork::State::kDone);
    CHECK(work.copies == 40);
    CHECK(work.copies_done == 40);
    CHECK(work.bytes_done == work.bytes);
    CHECK(work.failures == 0);
    CHECK(live_on(stage, barcode) == 0);
    CHECK(cartridge(stage, barcode).repack == Repack::kDone);
    for (const auto& [fid, bytes] : book) {
        CHECK(stage.copies_of(fid).size() == 1);
        // What was on tape only is on tape only again.
        CHECK(stage.is_released(fid) == released.contains(fid));
    }
    // Nothing is written to it any more, and it may be formatted.
    const std::uint64_t files = cartridge(stage, barcode).files;
    const Book more = put_half_on_tape(stage, 10);
    stage.run_for(5min);
    CHECK(cartridge(stage, barcode).files == files);
    const MediaOutcome formatted = format(stage, barcode);
    INFO(formatted.words);
    REQUIRE(formatted.kind == Kind::kDone);
    CHECK(cartridge(stage, barcode).repack == Repack::kNone);
    check_all(stage, book);
    check_all(stage, more);
    stage.stop();
}

TEST_CASE("library repack: of more than the disks have room for, some comes back at a time",
          "[library]") {
    TapeStageOptions options;
    options.disks = 1;
    options.localities = 1;
    options.disk_bytes = 24UL << 20;
    options.cartridge_bytes = 128UL << 20;
    options.drives = GENERATE(1U, 2U);
    TapeStage stage(options);
    Book book;
    for (int round = 0; round < 8; ++round) {
        const Book some = put_some(stage, 4, 2'000'000);
        REQUIRE(stage.sync().has_value());
        for (const auto& [fid, bytes] : some) REQUIRE(stage.release(fid).has_value());
        book.insert(some.begin(), some.end());
    }
    const std::string barcode = barcode_of(stage, book.begin()->first);
    const std::uint64_t live = live_on(stage, barcode);
    REQUIRE(live == book.size());

    const MediumWork work = repacked(stage, barcode);
    INFO(work.reason);
    REQUIRE(work.state == MediumWork::State::kDone);
    REQUIRE(live_on(stage, barcode) == 0);
    for (const auto& [fid, bytes] : book) REQUIRE(stage.is_released(fid));
    for (const auto& [fid, bytes] : book) {
        REQUIRE(stage.recalled(fid) == bytes);
        REQUIRE(stage.release(fid).has_value());
    }
}

TEST_CASE("library repack: goes on past damaged files, and lists their objects", "[library]") {
    TapeStage stage;
    Book book;
    for (int i = 0; i < 6; ++i) {
        // Each in a tape file of its own.
        const Bytes bytes = pattern(300'000, static_cast<std::uint64_t>(i));
        const store::Fid fid = stage.put(bytes);
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.release(fid).has_value());
        book.emplace(fid, bytes);
    }
    const store::Fid bad = std::next(book.begin(), 2)->first;
    const store::Copy copy = stage.copies_of(bad).at(0);
    const std::string barcode = barcode_of(stage, bad);
    unload_all(stage);
    // Behind HDR1, HDR2, UHL1 and a filemark.
    stage.tapes.at(address_of(stage, barcode))->make_unreadable(copy.block + 4);

    const MediumWork work = repacked(stage, barcode);
    REQUIRE(work.state == MediumWork::State::kPartly);
    CHECK(work.failures == 1);
    REQUIRE(work.listed.size() == 1);
    CHECK(work.listed.front().fid == bad);
    CHECK(work.listed.front().file == copy.position.file);
    CHECK_FALSE(work.listed.front().reason.empty());
    CHECK(stage.events.count("library.object_not_moved") == 1);
    CHECK(live_on(stage, barcode) == 1);
    CHECK(cartridge(stage, barcode).repack == Repack::kPartly);
    // What is left is not thrown away by accident.
    CHECK(format(stage, barcode).kind == Kind::kRefused);
    book.erase(bad);
    for (const auto& [fid, bytes] : book) {
        CHECK(barcode_of(stage, fid) != barcode);
        REQUIRE(stage.recalled(fid) == bytes);
    }
}

TEST_CASE("library repack: is refused where the other cartridges have no room", "[library]") {
    TapeStageOptions options;
    options.cartridges = 1;
    TapeStage stage(options);
    const Book book = put_half_on_tape(stage, 4);
    const std::string barcode = barcode_of(stage, book.begin()->first);

    const MediaOutcome refused = repack(stage, barcode);
    REQUIRE(refused.kind == Kind::kRefused);
    CHECK(refused.words.find("room") != std::string::npos);
    CHECK(cartridge(stage, barcode).repack == Repack::kNone);
    CHECK(repack(stage, "V99999L9").kind == Kind::kNoSuchMedium);
    const MediaOutcome not_repacked = stage.at(0, stage.library().cancel_repack(barcode));
    CHECK(not_repacked.kind == Kind::kRefused);
    check_all(stage, book);
}

TEST_CASE("library repack: a blank cartridge has nothing to move", "[library]") {
    TapeStage stage;
    stage.run_for(5min);
    CHECK(repack(stage, "V00000L9").kind == Kind::kRefused);
}

TEST_CASE("library repack: one that is asked for while the library is opened is refused",
          "[library]") {
    TapeStage stage({.localities = 1, .disks = 1});
    const Book book = put_half_on_tape(stage, 4);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    bool was_refused = false;
    bool was_begun = false;
    for (int steps = 0; steps < 2000 && !was_begun; steps += 10) {
        CAPTURE(steps);
        stage.restart();
        for (int i = 0; i < steps; ++i) stage.world.step();
        const MediaOutcome asked = repack(stage, barcode);
        was_begun = asked.kind == Kind::kDone;
        was_refused = was_refused || !was_begun;
        stage.run_for(was_begun ? 1h : Duration(1ms));
    }
    CHECK(was_refused);
    REQUIRE(was_begun);
    CHECK(finished(stage, barcode).state == MediumWork::State::kDone);
    check_all(stage, book);
}

TEST_CASE("library repack: a cancelled one leaves the cartridge in use, and loses nothing",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    options.timing = LibraryTiming::kCalculate;
    TapeStage stage(options);
    const Book book = put_half_on_tape(stage, 20);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    stage.run_for(Duration(static_cast<Duration::rep>(GENERATE(0, 20, 90, 200)) * 1s));

    const bool runs = cartridge(stage, barcode).repack == Repack::kRunning;
    const MediaOutcome cancelled = stage.at(0, stage.library().cancel_repack(barcode));
    REQUIRE(cancelled.kind == Kind::kDone);
    REQUIRE(cartridge(stage, barcode).repack == Repack::kNone);
    if (runs) CHECK(stage.library().repack_work(barcode)->state == MediumWork::State::kCancelled);
    stage.run_for(1h);
    REQUIRE(stage.sync(1h).has_value());
    check_all(stage, book);
    // Once more, to its end.
    REQUIRE(repacked(stage, barcode).state == MediumWork::State::kDone);
    REQUIRE(live_on(stage, barcode) == 0);
    check_all(stage, book);
}

TEST_CASE("library repack: users' objects that change or go meanwhile are as they left them",
          "[library]") {
    TapeStageOptions options;
    options.drives = GENERATE(1U, 2U);
    options.timing = LibraryTiming::kCalculate;
    TapeStage stage(options);
    Book book = put_half_on_tape(stage, 30);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    for (int i = 0; i < 10; ++i) {
        const auto at =
            std::next(book.begin(), static_cast<std::ptrdiff_t>(stage.random.below(book.size())));
        if (i % 3 == 0) {
            stage.remove(at->first);
            book.erase(at);
        } else if (!stage.is_released(at->first)) {
            at->second = pattern(1 + stage.random.below(100'000), stage.random.next());
            stage.overwrite(at->first, at->second);
        } else {
            REQUIRE(stage.recalled(at->first) == at->second);
        }
        stage.run_for(Duration(static_cast<Duration::rep>(stage.random.below(40)) * 1s));
    }
    const MediumWork work = finished(stage, barcode);
    INFO(work.reason);
    REQUIRE(work.state == MediumWork::State::kDone);
    REQUIRE(live_on(stage, barcode) == 0);
    check_all(stage, book);
}

TEST_CASE("library repack: after a loss of power it goes on, and nothing is lost", "[library]") {
    const auto seed = GENERATE(range(1, 13));
    TapeStageOptions options;
    options.seed = static_cast<std::uint64_t>(seed);
    options.drives = seed % 2 == 0 ? 1 : 2;
    options.pool.copies = seed % 4 == 3 ? 2 : 1;
    TapeStage stage(options);
    const Book book = put_half_on_tape(stage, 16);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    for (int cut = 0; cut < 4; ++cut) {
        const auto most = Duration(static_cast<Duration::rep>(stage.random.below(90)) * 1s);
        stage.lose_power_within(400, most);
        stage.start();
        for (const auto& [fid, bytes] : book) REQUIRE_FALSE(stage.copies_of(fid).empty());
    }
    stage.run_for(1min);
    if (cartridge(stage, barcode).repack != Repack::kDone) {
        const MediumWork work = finished(stage, barcode);
        INFO(work.reason);
        REQUIRE(work.state == MediumWork::State::kDone);
    }
    REQUIRE(live_on(stage, barcode) == 0);
    const MediaOutcome formatted = format(stage, barcode);
    INFO(formatted.words);
    REQUIRE(formatted.kind == Kind::kDone);
    check_all(stage, book);
}

TEST_CASE("library repack: an object keeps as many copies as it should have", "[library]") {
    TapeStageOptions options;
    options.pool.copies = 2;
    TapeStage stage(options);
    const Book book = put_half_on_tape(stage, 10);
    const std::string barcode = barcode_of(stage, book.begin()->first);

    const MediumWork work = repacked(stage, barcode);
    INFO(work.reason);
    REQUIRE(work.state == MediumWork::State::kDone);
    for (const auto& [fid, bytes] : book) {
        std::set<store::VsnText> cartridges;
        for (const store::Copy& each : stage.copies_of(fid)) cartridges.insert(each.cartridge.vsn);
        CHECK(cartridges.size() >= 2);
        CHECK_FALSE(cartridges.contains(cartridge(stage, barcode).vsn_text()));
    }
    check_all(stage, book);
}

TEST_CASE("library repack: a collection stays together", "[library]") {
    TapeStageOptions options;
    const auto algorithms = io_sched::drive_algorithms();
    options.io.tape.write_algo =
        &*std::ranges::find(algorithms, "grouped_write", &io_sched::DriveAlgorithm::name);
    TapeStage stage(options);
    std::map<std::string, Book> books;
    for (int round = 0; round < 3; ++round) {
        for (const char* const collection : {"run-7", "run-8"}) {
            stage.collection = collection;
            const Book some = put_some(stage, 4, 100'000);
            REQUIRE(stage.sync().has_value());
            books[collection].insert(some.begin(), some.end());
        }
    }
    const std::string barcode = barcode_of(stage, books["run-7"].begin()->first);
    REQUIRE(repacked(stage, barcode).state == MediumWork::State::kDone);
    for (const auto& [collection, book] : books) {
        std::set<std::string> barcodes;
        for (const auto& [fid, bytes] : book) barcodes.insert(barcode_of(stage, fid));
        CHECK(barcodes.size() == 1);
    }
}

TEST_CASE("library repack: is the way out for a suspect cartridge", "[library]") {
    TapeStage stage;
    const Book book = put_half_on_tape(stage, 8);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    restart_with_state(stage, barcode, CartridgeState::kSuspect, "a test");
    stage.run_for(5min);
    REQUIRE(cartridge(stage, barcode).state == CartridgeState::kSuspect);

    REQUIRE(repacked(stage, barcode).state == MediumWork::State::kDone);
    REQUIRE(live_on(stage, barcode) == 0);
    REQUIRE(format(stage, barcode).kind == Kind::kDone);
    REQUIRE(cartridge(stage, barcode).state == CartridgeState::kOk);
    check_all(stage, book);
}

TEST_CASE("library repack: a user's recall goes before what is moved", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    options.timing = LibraryTiming::kCalculate;
    options.disk_bytes = 64UL << 20;
    TapeStage stage(options);
    Book book = put_some(stage, 30, 1'000'000);
    REQUIRE(stage.sync().has_value());
    for (const auto& [fid, bytes] : book) REQUIRE(stage.release(fid).has_value());
    const std::string barcode = barcode_of(stage, book.begin()->first);
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    // Until all of its recalls wait.
    for (int i = 0; i < 100 && stage.library().recalls(100).size() < 10; ++i) stage.run_for(100ms);
    const std::vector<RecallRow> waiting = stage.library().recalls(100);
    REQUIRE(waiting.size() >= 10);

    const store::Fid wanted = waiting.back().ticket;
    REQUIRE(stage.recall(wanted) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(wanted).how == RecallEnd::How::kDone);
    CHECK(stage.library().recalls(100).size() > 3);
    REQUIRE(finished(stage, barcode).state == MediumWork::State::kDone);
    check_all(stage, book);
}

TEST_CASE("library repack: a cancelled one takes back the recalls that nobody else wants",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    options.timing = LibraryTiming::kCalculate;
    TapeStage stage(options);
    const Book book = put_some(stage, 30);
    REQUIRE(stage.sync(1h).has_value());
    release_all(stage, book);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    unload_all(stage);
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    const Duration until = GENERATE(Duration(0s), Duration(20s), Duration(40s));
    CAPTURE(until.count());
    for (int i = 0; i < 100 && stage.library().recalls(100).size() < 30; ++i) stage.run_for(100ms);
    REQUIRE(stage.library().recalls(100).size() == 30);
    std::set<store::Fid> wanted;
    // One as reads are, and one that may wait as long as the repack's.
    for (const std::uint8_t priority : {kRecallPriorityDefault, std::uint8_t{0}}) {
        const store::Fid fid = stage.library().recalls(100).back().ticket;
        const RecallWish wish{.fid = fid, .priority = priority, .client = some_client()};
        REQUIRE(stage.at_home(fid, stage.staging_of(fid).recall(wish, {})).has_value());
        wanted.insert(fid);
        stage.run_for(1s);
    }
    stage.run_for(until);

    REQUIRE(stage.at(0, stage.library().cancel_repack(barcode)).kind == Kind::kDone);
    CHECK(stage.library().recalls(100).size() <= wanted.size());
    stage.run_for(1h);
    for (const auto& [fid, bytes] : book) {
        CAPTURE(wanted.contains(fid));
        CHECK(stage.is_released(fid) == !wanted.contains(fid));
    }
    check_all(stage, book);
}

TEST_CASE("library repack: waits for as many drives as its pool has copies", "[library]") {
    TapeStageOptions options;
    options.pool.copies = 2;
    options.cartridges = 6;
    TapeStage stage(options);
    const Book book = put_half_on_tape(stage, 20);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    const std::string drive = stage.library().drives()[0].name;
    REQUIRE(stage.at(0, stage.library().take_drive_down(drive)).kind == Kind::kDone);
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    stage.run_for(1h);
    CHECK(stage.library().repack_work(barcode)->state == MediumWork::State::kRunning);
    CHECK(stage.library().repack_work(barcode)->failures == 0);
    CHECK(stage.events.count("library.too_few_drives") == 1);
    // Those who want copies now are told.
    stage.put(pattern(1000, 1));
    CHECK(stage.sync(1h).error().code == Errc::kIo);

    REQUIRE(stage.at(0, stage.library().bring_drive_up(drive)).kind == Kind::kDone);
    CHECK(finished(stage, barcode).state == MediumWork::State::kDone);
    CHECK(stage.events.count("library.object_not_moved") == 0);
    CHECK(live_on(stage, barcode) == 0);
    check_all(stage, book);
}

TEST_CASE("library repack: waits while all drives are down", "[library]") {
    TapeStage stage;
    Book book = put_half_on_tape(stage, 20);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    const Bytes bytes = pattern(1000, 1);
    book.emplace(stage.put(bytes), bytes);
    for (const DriveRow& each : stage.library().drives()) {
        REQUIRE(stage.at(0, stage.library().take_drive_down(each.name)).kind == Kind::kDone);
    }
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    stage.run_for(1h);
    CHECK(stage.library().repack_work(barcode)->state == MediumWork::State::kRunning);
    const std::string drive = stage.library().drives()[0].name;
    REQUIRE(stage.at(0, stage.library().bring_drive_up(drive)).kind == Kind::kDone);
    CHECK(finished(stage, barcode).state == MediumWork::State::kDone);
    CHECK(stage.events.count("library.object_not_moved") == 0);
    check_all(stage, book);
}

TEST_CASE("library repack: goes on when its cartridge is here again", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    options.timing = LibraryTiming::kCalculate;
    TapeStage stage(options);
    const Book book = put_half_on_tape(stage, 20);
    const std::string barcode = barcode_of(stage, book.begin()->first);
    unload_all(stage);
    // People take it between two lives of the node, in which it is repacked.
    stage.stop();
    auto taken = stage.tapes.take(address_of(stage, barcode));
    std::string& media = stage.bay.media();
    auto table = MediaTable::parse(media);
    REQUIRE(table.has_value());
    table->change(table->find(barcode)->id)->repack = Repack::kRunning;
    media = table->text();
    stage.start();
    stage.run_for(5min);
    CHECK(cartridge(stage, barcode).state == CartridgeState::kMissing);
    CHECK(cartridge(stage, barcode).repack == Repack::kRunning);
    stage.tapes.bring(std::move(taken));
    stage.run_for(5min);
    REQUIRE(stage.world.run(stage.reactor(0), stage.library().look_for_media()));
    CHECK(finished(stage, barcode).state == MediumWork::State::kDone);
    CHECK(live_on(stage, barcode) == 0);
    check_all(stage, book);
}

TEST_CASE("library repack: what is being written to the cartridge when it begins is moved, too",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    options.timing = LibraryTiming::kCalculate;
    options.pool.migrate_age = 1s;
    TapeStage stage(options);
    const Book book = put_some(stage, 20);
    std::string barcode;
    for (int i = 0; i < 6000 && barcode.empty(); ++i) {
        stage.run_for(100ms);
        for (const DriveRow& each : stage.library().drives()) {
            const bool writes = each.activity == "writing" &&
                                cartridge(stage, each.barcode).state == CartridgeState::kOk;
            if (writes) barcode = each.barcode;
        }
    }
    REQUIRE_FALSE(barcode.empty());
    REQUIRE(repack(stage, barcode).kind == Kind::kDone);
    REQUIRE(finished(stage, barcode).state == MediumWork::State::kDone);
    CHECK(live_on(stage, barcode) == 0);
    stage.run_for(2h);
    CHECK(live_on(stage, barcode) == 0);
    CHECK(cartridge(stage, barcode).repack == Repack::kDone);
    check_all(stage, book);
}
