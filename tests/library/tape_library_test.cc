// Goal: what is put into a tape pool is written to cartridges, may leave the disk, and comes back
// as it was, whatever happens in between.
// Method: disks and a library in the simulated world; objects are compared with what was put.

#include "library/tape_library.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "io_sched/drive_algorithms.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

const io_sched::DriveAlgorithm* grouped_write() {
    const auto all = io_sched::drive_algorithms();
    return &*std::ranges::find(all, "grouped_write", &io_sched::DriveAlgorithm::name);
}

}  // namespace

TEST_CASE("library: a synced pool is on tape, leaves the disks, and comes back", "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 12);

    const auto synced = stage.sync();
    if (!synced) FAIL(describe(synced.error()));
    for (const auto& [fid, bytes] : book) {
        REQUIRE(stage.copies_of(fid).size() == 1);
        REQUIRE(stage.release(fid).has_value());
        REQUIRE(stage.is_released(fid));
    }
    check_all(stage, book);
    for (const auto& [fid, bytes] : book) REQUIRE_FALSE(stage.is_released(fid));
    stage.stop();
}

TEST_CASE("library: an object that is not on tape does not leave the disk", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));

    REQUIRE(stage.release(fid).error().code == Errc::kBusy);
    REQUIRE(stage.sync().has_value());
    const Bytes other = pattern(20'000, 2);
    stage.overwrite(fid, other);
    REQUIRE(stage.copies_of(fid).empty());
    REQUIRE(stage.release(fid).error().code == Errc::kBusy);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    REQUIRE(stage.recalled(fid) == other);
}

TEST_CASE("library: objects go to tape when they are old enough, and not before", "[library]") {
    TapeStageOptions options;
    options.pool.migrate_age = 10min;
    TapeStage stage(options);
    const store::Fid fid = stage.put(pattern(10'000, 1));

    stage.run_for(9min);
    REQUIRE(stage.copies_of(fid).empty());
    stage.run_for(5min);
    REQUIRE(stage.copies_of(fid).size() == 1);
}

TEST_CASE("library: objects go to tape when they are enough", "[library]") {
    TapeStageOptions options;
    options.pool.migrate_files = 4;
    TapeStage stage(options);
    Book book = put_some(stage, 3, 1000);
    stage.run_for(2min);
    for (const auto& [fid, bytes] : book) REQUIRE(stage.copies_of(fid).empty());

    book.merge(put_some(stage, 1, 1000));
    stage.run_for(5min);
    for (const auto& [fid, bytes] : book) REQUIRE(stage.copies_of(fid).size() == 1);
}

TEST_CASE("library: collections go to tape apart, and objects without one go with their group",
          "[library]") {
    TapeStageOptions options;
    options.pool.migrate_files = 4;
    options.io.tape.write_algo = grouped_write();
    TapeStage stage(options);
    Book book;
    const auto put = [&](std::size_t count, std::string collection, std::string group) {
        stage.collection = std::move(collection);
        stage.group = std::move(group);
        Book some = put_some(stage, count, 1000);
        book.insert(some.begin(), some.end());
        return some;
    };
    const Book few = put(3, "run-7", "staff");
    const Book by_group = put(3, "", "staff");
    put(3, "run-8", "");
    stage.run_for(5min);
    // Nine objects wait, but no four that belong together.
    for (const auto& [fid, bytes] : book) REQUIRE(stage.copies_of(fid).empty());

    put(1, "", "staff");
    stage.run_for(5min);
    for (const auto& [fid, bytes] : by_group) REQUIRE(stage.copies_of(fid).size() == 1);
    for (const auto& [fid, bytes] : few) REQUIRE(stage.copies_of(fid).empty());

    REQUIRE(stage.sync().has_value());
    check_all(stage, book);
}

TEST_CASE("library: with grouped_write a collection stays on its cartridge, also after a restart",
          "[library]") {
    TapeStageOptions options;
    options.io.tape.write_algo = grouped_write();
    TapeStage stage(options);
    stage.run_for(5min);
    for (const char* const barcode : {"V00000L9", "V00001L9"}) {
        const LibraryService::FormatWish wish{.barcode = barcode, .pool = "cold"};
        const MediaOutcome formatted = stage.at(0, stage.library().format(wish));
        INFO(formatted.words);
        REQUIRE(formatted.kind == MediaOutcome::Kind::kDone);
    }
    std::map<std::string, std::set<std::string>> cartridges;
    for (int round = 0; round < 4; ++round) {
        if (round == 2) stage.restart();
        std::map<std::string, Book> books;
        // First both at once; then the one that would get the first cartridge is the last.
        for (const char* const collection : {"run-8", "run-7"}) {
            stage.collection = collection;
            books[collection] = put_some(stage, 2, 1000);
            if (round > 0) REQUIRE(stage.sync().has_value());
        }
        REQUIRE(stage.sync().has_value());
        for (const auto& [collection, book] : books) {
            for (const auto& [fid, bytes] : book) {
                const store::VsnText vsn = stage.copies_of(fid).at(0).cartridge.vsn;
                cartridges[collection].emplace(vsn.begin(), vsn.end());
            }
        }
    }
    REQUIRE(cartridges["run-7"].size() == 1);
    REQUIRE(cartridges["run-8"].size() == 1);
    REQUIRE(cartridges["run-7"] != cartridges["run-8"]);
}

TEST_CASE("library: blocks count once for their owner, on the disk and on tape", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(100'000, 1));
    REQUIRE(stage.owned_blocks() == 25);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    REQUIRE(stage.owned_blocks() == 25);
    stage.restart();
    REQUIRE(stage.owned_blocks() == 25);

    REQUIRE(stage.recalled(fid).size() == 100'000);
    REQUIRE(stage.owned_blocks() == 25);
    stage.restart();
    REQUIRE(stage.owned_blocks() == 25);
    stage.remove(fid);
    REQUIRE(stage.owned_blocks() == 0);
}

TEST_CASE("library: an object that is deleted on tape gives its blocks back", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(100'000, 1));
    const store::Fid other = stage.put(pattern(50'000, 2));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    stage.remove(fid);
    REQUIRE(stage.owned_blocks() == 13);
    stage.restart();
    REQUIRE(stage.owned_blocks() == 13);
    stage.remove(other);
    REQUIRE(stage.owned_blocks() == 0);
}

// Blocks of zeros were written once, and are holes when they come back.
TEST_CASE("library: an object counts with the blocks that it has on the disk again", "[library]") {
    TapeStage stage;
    Bytes bytes = pattern(100 * 4096, 1);
    std::fill(bytes.begin() + 10 * 4096, bytes.begin() + 60 * 4096, std::byte{0});
    const store::Fid fid = stage.put(bytes);
    const store::Fid zeros = stage.put(Bytes(9 * 4096));
    REQUIRE(stage.owned_blocks() == 109);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    REQUIRE(stage.release(zeros).has_value());
    REQUIRE(stage.owned_blocks() == 109);

    REQUIRE(stage.recalled(fid) == bytes);
    REQUIRE(stage.owned_blocks() == 59);
    REQUIRE(stage.recalled(zeros) == Bytes(9 * 4096));
    REQUIRE(stage.owned_blocks() == 50);
    stage.restart();
    REQUIRE(stage.owned_blocks() == 50);
    stage.remove(fid);
    stage.remove(zeros);
    REQUIRE(stage.owned_blocks() == 0);
}

TEST_CASE("library: objects with holes and objects of zeros come back", "[library]") {
    TapeStage stage;
    Book book;
    Bytes sparse(200'000);
    std::ranges::copy(pattern(5000, 1), sparse.begin() + 70'000);
    book.emplace(stage.put(sparse), sparse);
    const Bytes zeros(100'001);
    book.emplace(stage.put(zeros), zeros);
    const Bytes short_one = pattern(1, 3);
    book.emplace(stage.put(short_one), short_one);
    const store::Fid empty = stage.put({});
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(empty).has_value());
    release_all(stage, book);

    check_all(stage, book);
}

TEST_CASE("library: a full cartridge is followed by the next", "[library]") {
    TapeStageOptions options;
    options.cartridge_bytes = 24UL << 20;
    options.disk_bytes = 64UL << 20;
    TapeStage stage(options);
    Book book;
    for (int round = 0; round < 3; ++round) {
        book.merge(put_some(stage, 10, 2'000'000));
        const auto synced = stage.sync(1h);
        if (!synced) FAIL(describe(synced.error()));
        release_all(stage, book);
    }
    std::size_t used = 0;
    for (const Cartridge& each : stage.library().media()) used += each.files > 0 ? 1 : 0;
    REQUIRE(used >= 2);
    check_all(stage, book);
}

TEST_CASE("library: an object that is larger than every cartridge stays on its disk", "[library]") {
    TapeStageOptions options;
    options.cartridge_bytes = 16UL << 20;
    options.disk_bytes = 64UL << 20;
    options.cartridges = 1;
    TapeStage stage(options);
    const Bytes large = pattern(24UL << 20, 1);
    const store::Fid fid = stage.put(large);
    const store::Fid small = stage.put(pattern(1000, 2));

    REQUIRE(stage.sync().error().code == Errc::kIo);
    stage.run_for(10min);
    REQUIRE(stage.copies_of(fid).empty());
    REQUIRE(stage.copies_of(small).size() == 1);
    REQUIRE(stage.read(fid) == large);
}

TEST_CASE("library: small objects go to tape beside one that fits on no cartridge", "[library]") {
    TapeStageOptions options;
    options.cartridge_bytes = 16UL << 20;
    options.disk_bytes = 64UL << 20;
    options.cartridges = 1;
    TapeStage stage(options);
    const store::Fid first = stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    stage.restart();
    // There is no empty cartridge on which it could be tried.
    const store::Fid large = stage.put(pattern(24UL << 20, 2));
    stage.run_for(1s);
    const store::Fid small = stage.put(pattern(1000, 3));

    CHECK(stage.sync().error().code == Errc::kIo);
    stage.run_for(10min);
    CHECK(stage.copies_of(first).size() == 1);
    CHECK(stage.copies_of(large).empty());
    CHECK(stage.copies_of(small).size() == 1);
    CHECK(stage.events.count("library.object_too_large") == 1);
}

TEST_CASE("library: an object waits for a cartridge with room, and smaller ones do not",
          "[library]") {
    TapeStageOptions options;
    options.cartridge_bytes = 32UL << 20;
    options.disk_bytes = 128UL << 20;
    options.cartridges = 1;
    TapeStage stage(options);
    stage.put(pattern(12UL << 20, 1));
    REQUIRE(stage.sync().has_value());
    const store::Fid large = stage.put(pattern(20UL << 20, 2));
    stage.run_for(1s);
    const store::Fid small = stage.put(pattern(1000, 3));

    CHECK(stage.sync().error().code == Errc::kIo);
    CHECK(stage.copies_of(small).size() == 1);
    CHECK(stage.copies_of(large).empty());
    CHECK(stage.events.count("library.no_cartridge") == 1);
    CHECK(stage.events.count("library.object_too_large") == 0);
}

TEST_CASE("library: a write error at a sync has everything written elsewhere", "[library]") {
    TapeStage stage;
    Book book = put_some(stage, 2);
    REQUIRE(stage.sync().has_value());
    book.merge(put_some(stage, 8));
    stage.drive(0).inject(devices::TapeFault::kLateWrite);
    stage.drive(1).inject(devices::TapeFault::kLateWrite);

    const auto synced = stage.sync(1h);
    if (!synced) FAIL(describe(synced.error()));
    REQUIRE(stage.events.count("library.operation_failed") >= 1);
    release_all(stage, book);
    check_all(stage, book);
}

TEST_CASE("library: without its table of media, a node finds its objects on tape", "[library]") {
    TapeStage stage;
    Book book = put_some(stage, 6);
    REQUIRE(stage.sync().has_value());
    const std::string older = stage.bay.media();
    Book later = put_some(stage, 6);
    REQUIRE(stage.sync().has_value());
    for (const auto& [fid, bytes] : later) REQUIRE(stage.release(fid).has_value());
    book.merge(later);
    const bool is_lost = GENERATE(true, false);
    stage.stop();
    // None, or one of an earlier time, as from a backup.
    stage.bay.media() = is_lost ? std::string() : older;
    stage.start();

    check_all(stage, book);
    // More is written behind what was there.
    book.merge(put_some(stage, 6));
    REQUIRE(stage.sync(1h).has_value());
    release_all(stage, book);
    check_all(stage, book);
    stage.stop();
}

TEST_CASE("library: objects of a disk that has failed are not tried again and again", "[library]") {
    TapeStageOptions options;
    options.pool.migrate_age = 10s;
    TapeStage stage(options);
    const Book book = put_some(stage, 6);
    stage.disk(0).faults().flush_error_ppm = 1'000'000;
    stage.run_for(1s);
    REQUIRE_FALSE(stage.volume(0).serving());
    stage.run_for(5min);
    for (const auto& [fid, bytes] : book) {
        if (fid.slot() == 2) CHECK(stage.copies_of(fid).size() == 1);
    }
    // Nothing was written for them, and no cartridge was labelled for them.
    std::size_t labelled = 0;
    for (const Cartridge& each : stage.library().media()) labelled += each.generation > 0 ? 1 : 0;
    CHECK(labelled == 1);

    std::uint64_t turns = 0;
    const Instant end = after(stage.world.now(), 10s);
    while (stage.world.now() < end && turns < 20'000 && stage.world.step(end)) ++turns;
    CHECK(turns < 20'000);
}

TEST_CASE("library: a drive that dies does not stop the other", "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 8);
    stage.run_for(5min);
    stage.drive(0).inject(devices::TapeFault::kDeath);

    for (int tries = 0; tries < 5 && !stage.sync(1h); ++tries) stage.run_for(1min);
    release_all(stage, book);
    check_all(stage, book);
}

TEST_CASE("library: an administrator may ask for a drive while the drives are opened",
          "[library]") {
    TapeStage stage;
    stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync());
    const std::vector<DriveRow> drives = stage.library().drives();
    REQUIRE(drives.size() == 2);
    stage.restart();
    std::size_t asked = 0;
    while (stage.library().drives().size() < drives.size()) {
        for (const DriveRow& each : drives) {
            const MediaOutcome outcome = stage.at(0, stage.library().unload(each.name));
            CHECK((outcome.kind == MediaOutcome::Kind::kNoSuchDrive ||
                   outcome.kind == MediaOutcome::Kind::kDone));
            ++asked;
        }
        stage.run_for(100ms);
    }
    CHECK(asked > 0);
}

TEST_CASE("library: a restart in a batch loses nothing, and the library goes on", "[library]") {
    TapeStage stage;
    Book book = put_some(stage, 10);
    stage.run_for(5min);
    for (int round = 0; round < 3; ++round) {
        book.merge(put_some(stage, 4));
        stage.restart();
    }
    const auto synced = stage.sync(1h);
    if (!synced) FAIL(describe(synced.error()));
    release_all(stage, book);
    stage.restart();
    check_all(stage, book);
}

TEST_CASE("library: what was acknowledged survives power cuts at any moment", "[library][swarm]") {
    const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 13));
    CAPTURE(seed);
    TapeStageOptions options;
    options.seed = seed;
    options.pool.migrate_age = 2s;
    TapeStage stage(options);
    Book book;
    for (int round = 0; round < 6; ++round) {
        book.merge(put_some(stage, 4, 200'000));
        for (const auto& [fid, bytes] : book) {
            const std::uint64_t luck = stage.random.below(3);
            if (luck == 0) [[maybe_unused]]
                const auto released = stage.release(fid);
            if (luck == 1) [[maybe_unused]]
                const auto recalled = stage.recall(fid);
        }
        const auto span = Duration(static_cast<Duration::rep>(stage.random.below(120)) * 1s);
        stage.lose_power_within(600, span);
        stage.start();
    }
    check_all(stage, book);
    stage.run_for(1min);  // The library may not be open yet.
    for (int tries = 0; tries < 5 && !stage.sync(1h); ++tries) stage.run_for(1min);
    release_all(stage, book);
    check_all(stage, book);
    stage.stop();
}

TEST_CASE("library: a cartridge whose label could not be written is failed, and not foreign",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    options.cartridges = 1;
    TapeStage stage(options);
    stage.put(pattern(1000, 1));
    stage.run_for(1min);
    stage.drive(0).faults().write_ppm = 1'000'000;
    REQUIRE_FALSE(stage.sync().has_value());
    REQUIRE(stage.library().media().at(0).state == CartridgeState::kFailed);
    stage.restart();
    stage.run_for(1min);
    const Cartridge failed = stage.library().media().at(0);
    REQUIRE(failed.state == CartridgeState::kFailed);

    // An administrator has had the drive repaired.
    const MediaOutcome formatted =
        stage.at(0, stage.library().format({.barcode = failed.barcode, .pool = "cold"}));
    CHECK(formatted.words.empty());
    REQUIRE(formatted.kind == MediaOutcome::Kind::kDone);
    REQUIRE(stage.sync().has_value());
}

TEST_CASE("library: a fuller disk than the mark is emptied, the oldest first", "[library]") {
    TapeStageOptions options;
    options.disks = 1;
    options.localities = 1;
    options.pool.staging_high = 50;
    options.pool.staging_low = 30;
    options.pool.migrate_age = 1s;
    TapeStage stage(options);
    std::vector<store::Fid> fids;
    std::vector<Bytes> contents;
    for (std::uint64_t i = 0; i < 20; ++i) {
        contents.push_back(pattern(1'000'000, i));
        fids.push_back(stage.put(contents.back()));
        stage.run_for(2min);
    }
    REQUIRE(stage.is_released(fids.front()));
    REQUIRE_FALSE(stage.is_released(fids.back()));
    for (std::size_t i = 0; i < fids.size(); ++i) REQUIRE(stage.recalled(fids[i]) == contents[i]);
}
