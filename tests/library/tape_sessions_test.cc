// Goal: at the end of a session of writing a cartridge gets an index file, so that the cartridge
// alone tells what it has.
// Method: cartridges of a library in the simulated world are read without any catalogue.

#include <algorithm>
#include <map>
#include <string>

#include "devices/tape/memory_tape.h"
#include "library/tape_library.h"
#include "store/tape/recovery.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

// What cartridges have, without anything that the node knows.
class FoundOnTape final : public store::RecoverySink {
public:
    Task<Result<void>> found(store::TapeEntry entry) override {
        entries[entry.member.fid] = std::move(entry);
        co_return Result<void>{};
    }
    Task<Result<void>> damaged(std::uint64_t /*file*/, Error /*error*/) override {
        ++damaged_files;
        co_return Result<void>{};
    }

    std::map<store::Fid, store::TapeEntry> entries;
    std::uint64_t files_read = 0;
    int damaged_files = 0;
};

Task<Result<store::Recovered>> read_tape(devices::TapeDrive* drive, store::RecoverySink* sink) {
    const auto identity = co_await store::read_identity(drive);
    if (!identity) co_return std::unexpected(identity.error());
    store::TapeRecovery recovery(*drive, *identity);
    const store::TapeEnd nothing_known;
    co_return co_await recovery.run(nothing_known, sink);
}

Task<Result<store::Recovered>> load_and_read(devices::TapeDrive* drive, store::RecoverySink* sink) {
    const auto loaded = co_await drive->load();
    if (!loaded) co_return std::unexpected(loaded.error());
    co_return co_await read_tape(drive, sink);
}

std::vector<Cartridge> used_media(TapeStage& stage) {
    std::vector<Cartridge> used = stage.library().media();
    std::erase_if(used, [](const Cartridge& each) { return each.files == 0; });
    return used;
}

FoundOnTape read_media(TapeStage& stage) {
    FoundOnTape found;
    for (const Cartridge& each : used_media(stage)) {
        unload_all(stage);
        const std::string drive = stage.library().drives().front().name;
        const LibraryService::LoadWish wish{.barcode = each.barcode, .drive = drive};
        const MediaOutcome loaded = stage.at(0, stage.library().load(wish));
        INFO(loaded.words);
        REQUIRE(loaded.kind == MediaOutcome::Kind::kDone);
        const auto recovered = stage.at(0, read_tape(&stage.drive(0), &found));
        if (!recovered) FAIL(describe(recovered.error()));
        REQUIRE_FALSE(recovered->shorter);
        found.files_read += recovered->files_read;
    }
    return found;
}

// After a start, until all drives are open.
void wait_for_drives(TapeStage& stage) {
    for (int i = 0; i < 600 && stage.library().drives().size() < stage.options.drives; ++i) {
        stage.run_for(1s);
    }
    REQUIRE(stage.library().drives().size() == stage.options.drives);
}

// Nothing but index files was read.
bool is_by_index(TapeStage& stage, const FoundOnTape& found) {
    return found.damaged_files == 0 && found.files_read == used_media(stage).size();
}

bool are_indexed(const std::vector<Cartridge>& media) {
    return std::ranges::all_of(media,
                               [](const Cartridge& each) { return each.index_file == each.files; });
}

}  // namespace

TEST_CASE("library sessions: a cartridge that is not written for a while gets an index, once",
          "[library]") {
    TapeStage stage;
    stage.collection = "run-7";
    const auto book = put_some(stage, 20, 200'000);
    REQUIRE(stage.sync().has_value());
    REQUIRE_FALSE(are_indexed(used_media(stage)));

    stage.run_for(3min);
    const std::vector<Cartridge> indexed = used_media(stage);
    REQUIRE(are_indexed(indexed));
    stage.run_for(1h);
    REQUIRE(used_media(stage) == indexed);

    // All is found by the index alone.
    const FoundOnTape found = read_media(stage);
    REQUIRE(is_by_index(stage, found));
    REQUIRE(found.entries.size() == book.size());
    for (const auto& [fid, entry] : found.entries) {
        REQUIRE(entry.member.size_bytes == book.at(fid).size());
        REQUIRE(entry.member.owner == "alice");
        REQUIRE(entry.member.pool == "cold");
        REQUIRE(entry.member.collection == "run-7");
        const store::Copy copy = stage.copies_of(fid).at(0);
        REQUIRE(entry.file.number == copy.position.file);
        REQUIRE(entry.file.block == copy.block);
        REQUIRE(entry.position == copy.position.member);
        REQUIRE(entry.member.checksum == copy.checksum);
    }
}

TEST_CASE("library sessions: a cartridge leaves its drive with an index, and each session has one",
          "[library]") {
    TapeStage stage;
    auto book = put_some(stage, 6, 200'000);
    REQUIRE(stage.sync().has_value());
    unload_all(stage);
    REQUIRE(are_indexed(used_media(stage)));
    const auto more = put_some(stage, 6, 200'000);
    REQUIRE(stage.sync().has_value());
    // Deleted objects are not listed, and what was in an index stays there.
    const store::Fid gone = more.begin()->first;
    stage.remove(gone);
    book.insert(more.begin(), more.end());
    book.erase(gone);

    const FoundOnTape found = read_media(stage);

    REQUIRE(are_indexed(used_media(stage)));
    REQUIRE(is_by_index(stage, found));
    REQUIRE(found.entries.size() == book.size());
    for (const auto& [fid, bytes] : book) REQUIRE(found.entries.contains(fid));
}

TEST_CASE("library sessions: a node that stops leaves an index on what it has written",
          "[library]") {
    TapeStage stage;
    const auto book = put_some(stage, 6, 200'000);
    REQUIRE(stage.sync().has_value());
    stage.restart();
    stage.run_for(1s);

    REQUIRE(are_indexed(used_media(stage)));
    wait_for_drives(stage);
    const FoundOnTape found = read_media(stage);
    REQUIRE(is_by_index(stage, found));
    REQUIRE(found.entries.size() == book.size());
}

TEST_CASE("library sessions: a stop in a batch keeps what is complete, with an index, in its drive",
          "[library]") {
    std::size_t partly = 0;
    for (int steps = 0; steps < 600; steps += 15) {
        CAPTURE(steps);
        TapeStageOptions options;
        options.drives = 1;
        options.pool.migrate_age = 1s;
        TapeStage stage(options);
        const auto book = put_some(stage, 12, 200'000);
        const auto is_writing = [&] {
            const std::vector<DriveRow> drives = stage.library().drives();
            return !drives.empty() && drives.front().activity == "writing";
        };
        for (int i = 0; i < 100'000 && !is_writing(); ++i) stage.world.step();
        REQUIRE(is_writing());
        const std::string barcode = stage.library().drives().front().barcode;
        for (int i = 0; i < steps; ++i) stage.world.step();
        stage.options.pool.migrate_age = 24h;
        stage.restart();
        wait_for_drives(stage);

        CHECK(stage.library().drives().front().barcode == barcode);
        std::size_t recorded = 0;
        for (const auto& [fid, bytes] : book) recorded += stage.copies_of(fid).size();
        if (recorded > 0 && recorded < book.size()) ++partly;
        const std::vector<Cartridge> used = used_media(stage);
        REQUIRE(are_indexed(used));
        const FoundOnTape found = read_media(stage);
        CHECK(is_by_index(stage, found));
        CHECK(found.entries.size() == recorded);
    }
    CHECK(partly > 0);
}

TEST_CASE("library sessions: an index that cannot be written is said once, and written later",
          "[library]") {
    TapeStage stage;
    const auto book = put_some(stage, 4, 200'000);
    REQUIRE(stage.sync().has_value());
    for (std::uint32_t i = 0; i < stage.options.drives; ++i) {
        stage.drive(i).faults().write_ppm = 1'000'000;
    }
    stage.run_for(1h);
    REQUIRE_FALSE(are_indexed(used_media(stage)));
    REQUIRE(stage.events.count("library.index_not_written") == 1);

    for (std::uint32_t i = 0; i < stage.options.drives; ++i) {
        stage.drive(i).faults().write_ppm = 0;
    }
    unload_all(stage);
    REQUIRE(are_indexed(used_media(stage)));
    const FoundOnTape found = read_media(stage);
    REQUIRE(found.entries.size() == book.size());
}

TEST_CASE("library sessions: files behind the last index are found by their headers", "[library]") {
    TapeStage stage;
    auto book = put_some(stage, 6, 200'000);
    REQUIRE(stage.sync().has_value());
    stage.run_for(3min);
    REQUIRE(are_indexed(used_media(stage)));
    const auto more = put_some(stage, 4, 200'000);
    REQUIRE(stage.sync().has_value());
    book.insert(more.begin(), more.end());
    stage.lose_power();

    // Another program reads what the drives have.
    FoundOnTape found;
    {
        const auto reactor = stage.world.make_reactor();
        for (std::uint32_t i = 0; i < stage.options.drives; ++i) {
            if (!stage.tapes.drive(i).threaded) continue;
            devices::MemoryTape drive(*reactor, stage.tapes, {.name = "other", .index = i});
            const auto recovered = stage.world.run(*reactor, load_and_read(&drive, &found));
            REQUIRE(recovered.has_value());
            if (!*recovered) FAIL(describe(recovered->error()));
            found.files_read += (*recovered)->files_read;
        }
    }
    REQUIRE(found.damaged_files == 0);
    REQUIRE(found.files_read >= 2);  // An index, and what is behind it.
    for (const auto& [fid, bytes] : more) REQUIRE(found.entries.contains(fid));
    stage.start();
    wait_for_drives(stage);
    // The next session's index has them, too.
    stage.run_for(3min);
    const FoundOnTape indexed = read_media(stage);
    REQUIRE(is_by_index(stage, indexed));
    REQUIRE(indexed.entries.size() == book.size());
}
