// Goal: an object that is written to tape in pieces comes back whole, whichever cartridges have
// them, and whatever happens between two of them. Method: small pieces in the simulated world.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io_sched/drive_algorithms.h"
#include "library/outgoing_copies.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

constexpr std::uint64_t kPiece = 256UL << 10;

TapeStageOptions in_pieces(std::uint32_t copies = 1) {
    TapeStageOptions options;
    options.pool.piece_bytes = kPiece;
    options.pool.copies = copies;
    return options;
}

// For an object with more bytes than a cartridge has.
TapeStageOptions on_small_cartridges() {
    TapeStageOptions options = in_pieces();
    options.pool.piece_bytes = 1UL << 20;
    options.cartridge_bytes = 16UL << 20;
    options.cartridges = 6;
    options.disks = 1;
    options.disk_bytes = 96UL << 20;
    return options;
}

const io_sched::DriveAlgorithm* read_algorithm(std::string_view name) {
    const auto all = io_sched::drive_algorithms();
    return &*std::ranges::find(all, name, &io_sched::DriveAlgorithm::name);
}

// The offsets of the pieces and their lengths, each once for every copy.
std::multimap<std::uint64_t, std::uint64_t> pieces_of(TapeStage& stage, store::Fid fid) {
    std::multimap<std::uint64_t, std::uint64_t> pieces;
    for (const store::Copy& each : stage.copies_of(fid)) pieces.emplace(each.offset, each.length);
    return pieces;
}

std::multimap<std::uint64_t, std::uint64_t> expected_pieces(std::uint64_t size_bytes,
                                                            std::uint64_t piece_bytes,
                                                            std::uint32_t copies = 1) {
    std::multimap<std::uint64_t, std::uint64_t> pieces;
    for (std::uint64_t at = 0; at < size_bytes; at += piece_bytes) {
        for (std::uint32_t i = 0; i < copies; ++i) {
            pieces.emplace(at, std::min(piece_bytes, size_bytes - at));
        }
    }
    return pieces;
}

std::set<std::string> barcodes_of(TapeStage& stage, store::Fid fid) {
    std::set<std::string> barcodes;
    for (const store::Copy& each : stage.copies_of(fid)) {
        for (const Cartridge& cartridge : stage.library().media()) {
            if (cartridge.vsn_text() == each.cartridge.vsn) barcodes.insert(cartridge.barcode);
        }
    }
    return barcodes;
}

void sync_all(TapeStage& stage) {
    const auto synced = stage.sync(2h);
    if (!synced) FAIL(describe(synced.error()));
}

// Of different objects of a few pieces each.
Book put_large(TapeStage& stage, std::size_t count, std::uint64_t bytes_max) {
    Book book;
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes bytes = pattern(1 + stage.random.below(bytes_max), stage.random.next());
        book.emplace(stage.put(bytes, static_cast<std::uint32_t>(i % stage.options.disks)), bytes);
    }
    return book;
}

MediumWork end_of_work(TapeStage& stage,
                       std::optional<MediumWork> (TapeLibrary::*work)(std::string_view) const,
                       const std::string& barcode) {
    for (int i = 0; i < 5000; ++i) {
        const auto found = (stage.library().*work)(barcode);
        if (found && found->state != MediumWork::State::kRunning) return *found;
        stage.run_for(10s);
    }
    FAIL("it does not end");
    return {};
}

MediumWork repacked_off(TapeStage& stage, const std::string& barcode) {
    const MediaOutcome begun = stage.at(0, stage.library().repack(barcode));
    INFO(begun.words);
    REQUIRE(begun.kind == MediaOutcome::Kind::kDone);
    return end_of_work(stage, &TapeLibrary::repack_work, barcode);
}

MediumWork scrubbed_whole(TapeStage& stage, const std::string& barcode) {
    const MediaOutcome begun = stage.at(0, stage.library().scrub(barcode));
    INFO(begun.words);
    REQUIRE(begun.kind == MediaOutcome::Kind::kDone);
    return end_of_work(stage, &TapeLibrary::scrub_work, barcode);
}

}  // namespace

TEST_CASE("library pieces: an object has no more than can be recorded before and after a repack",
          "[library]") {
    CHECK(pieces_max(1) == 256);
    CHECK(pieces_max(3) == 85);
    CHECK(piece_bytes_of(100, 4096, 1) == 4096);
    CHECK(piece_bytes_of(256 * 4096, 4096, 1) == 4096);
    CHECK(piece_bytes_of(256 * 4096 + 1, 4096, 1) == 8192);
    for (const std::uint64_t size : {1ULL << 40, (1ULL << 50) + 1, 123'456'789'012'345ULL}) {
        for (const std::uint32_t copies : {1U, 2U, 4U}) {
            const std::uint64_t piece = piece_bytes_of(size, 1ULL << 20, copies);
            CHECK(piece % 4096 == 0);
            CHECK((size + piece - 1) / piece <= pieces_max(copies));
        }
    }
}

TEST_CASE("library pieces: objects go to tape in pieces, leave the disks and come back",
          "[library]") {
    const std::uint32_t copies = GENERATE(1U, 2U);
    TapeStageOptions options = in_pieces(copies);
    options.io.tape.read_algo = read_algorithm(GENERATE("fifo", "grouped_read"));
    TapeStage stage(options);
    Book book;
    for (const std::uint64_t size : {std::uint64_t{1}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece,
                                     5 * kPiece - 4096, 7 * kPiece + 4097}) {
        const Bytes bytes = pattern(size, size);
        book.emplace(stage.put(bytes, static_cast<std::uint32_t>(book.size() % 2)), bytes);
    }
    sync_all(stage);
    for (const auto& [fid, bytes] : book) {
        CHECK(pieces_of(stage, fid) == expected_pieces(bytes.size(), kPiece, copies));
    }
    release_all(stage, book);
    const std::uint64_t blocks = stage.owned_blocks();
    stage.restart();
    check_all(stage, book);
    CHECK(stage.owned_blocks() == blocks);
    stage.stop();
}

TEST_CASE("library pieces: an object larger than every cartridge goes to several", "[library]") {
    TapeStageOptions options = on_small_cartridges();
    options.drives = GENERATE(1U, 2U);
    TapeStage stage(options);
    const Bytes large = pattern((24UL << 20) + 5000, 1);
    const Bytes small = pattern(1000, 2);
    const store::Fid fid = stage.put(large);
    const store::Fid other = stage.put(small);
    sync_all(stage);
    CHECK(pieces_of(stage, fid) == expected_pieces(large.size(), options.pool.piece_bytes));
    REQUIRE(barcodes_of(stage, fid).size() >= 2);
    release_all(stage, {{fid, large}, {other, small}});

    check_all(stage, {{fid, large}, {other, small}});
    // What has changed goes there anew, with all of its pieces.
    const Bytes changed = pattern(20UL << 20, 3);
    stage.overwrite(fid, changed);
    sync_all(stage);
    CHECK(pieces_of(stage, fid) == expected_pieces(changed.size(), options.pool.piece_bytes));
    REQUIRE(stage.release(fid).has_value());
    check_all(stage, {{fid, changed}, {other, small}});
}

TEST_CASE("library pieces: what changes while its pieces are written is not partly old",
          "[library]") {
    TapeStageOptions options = in_pieces();
    options.pool.migrate_age = 1s;
    TapeStage stage(options);
    stage.run_for(5min);
    Book book;
    std::size_t between = 0;
    const auto is_writing = [&stage] {
        const auto drives = stage.library().drives();
        return std::ranges::any_of(drives,
                                   [](const DriveRow& each) { return each.activity == "writing"; });
    };
    for (int round = 0; round < 12; ++round) {
        const store::Fid fid = stage.put(pattern(6 * kPiece, stage.random.next()));
        for (int i = 0; i < 100'000 && !is_writing(); ++i) stage.run_for(1ms);
        stage.run_for(Duration(static_cast<Duration::rep>(stage.random.below(20)) * 1ms));
        if (is_writing()) ++between;
        const Bytes changed = pattern(4 * kPiece + 100, stage.random.next());
        stage.overwrite(fid, changed);
        book.emplace(fid, changed);
        sync_all(stage);
        CHECK(pieces_of(stage, fid) == expected_pieces(changed.size(), kPiece));
    }
    CHECK(between > 0);
    release_all(stage, book);
    check_all(stage, book);
}

TEST_CASE("library pieces: a repack moves those that are on its cartridge", "[library]") {
    TapeStage stage(on_small_cartridges());
    const Bytes large = pattern((20UL << 20) + 5000, 1);
    const store::Fid fid = stage.put(large);
    sync_all(stage);
    REQUIRE(stage.release(fid).has_value());
    const std::set<std::string> before = barcodes_of(stage, fid);
    REQUIRE(before.size() == 2);

    const MediumWork work = repacked_off(stage, *before.begin());
    INFO(work.reason);
    CHECK(work.state == MediumWork::State::kDone);
    CHECK(work.copies > 1);
    CHECK(work.copies_done == work.copies);
    const std::set<std::string> afterwards = barcodes_of(stage, fid);
    CHECK_FALSE(afterwards.contains(*before.begin()));
    CHECK(afterwards.contains(*before.rbegin()));
    CHECK(pieces_of(stage, fid) == expected_pieces(large.size(), 1UL << 20));
    CHECK(stage.is_released(fid));
    check_all(stage, {{fid, large}});
}

TEST_CASE("library pieces: a scrub reads each of them", "[library]") {
    TapeStage stage(on_small_cartridges());
    const Bytes large = pattern((20UL << 20) + 5000, 1);
    const store::Fid fid = stage.put(large);
    sync_all(stage);
    REQUIRE(stage.release(fid).has_value());
    std::uint64_t copies = 0;
    std::uint64_t bytes = 0;
    for (const std::string& barcode : barcodes_of(stage, fid)) {
        const MediumWork work = scrubbed_whole(stage, barcode);
        CHECK(work.state == MediumWork::State::kDone);
        CHECK(work.copies_done == work.copies);
        CHECK(cartridge(stage, barcode).damaged_copies == 0);
        copies += work.copies_done;
        bytes += work.bytes_done;
    }
    CHECK(copies == 21);
    CHECK(bytes == large.size());
}

// Pieces of both sizes have all bytes together, but no chain of whole pieces reaches the end.
TEST_CASE("library pieces: those of before and after a change of their size are one object",
          "[library]") {
    TapeStageOptions options = in_pieces();
    options.cartridges = 6;
    TapeStage stage(options);
    stage.piece_bytes = 3 * kPiece;
    stage.restart();
    const Bytes bytes = pattern(8 * kPiece + 100, 1);
    const store::Fid fid = stage.put(bytes);
    sync_all(stage);
    REQUIRE(pieces_of(stage, fid) == expected_pieces(bytes.size(), 3 * kPiece));
    // All but the first piece are lost.
    const store::Copy first = stage.copies_of(fid).front();
    std::vector<store::CopyKey> lost;
    for (const store::Copy& each : stage.copies_of(fid)) {
        if (each.offset > first.offset) lost.push_back(store::key_of(each));
    }
    const auto dropped = stage.at_home(
        fid, stage.volume(0).drop_copies(std::move(lost), store::Volume::Loss::kRefused, {}));
    REQUIRE(dropped.has_value());
    stage.piece_bytes = 2 * kPiece;
    stage.restart();

    sync_all(stage);
    std::multimap<std::uint64_t, std::uint64_t> both = expected_pieces(bytes.size(), 2 * kPiece);
    both.erase(0);
    both.emplace(0, 3 * kPiece);
    REQUIRE(pieces_of(stage, fid) == both);
    REQUIRE(stage.release(fid).has_value());
    check_all(stage, {{fid, bytes}});
    stage.stop();
}

TEST_CASE("library pieces: power cuts at any moment lose none", "[library][swarm]") {
    const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 17));
    CAPTURE(seed);
    TapeStageOptions options = in_pieces(seed % 3 == 0 ? 2 : 1);
    options.seed = seed;
    options.pool.migrate_age = 2s;
    options.cartridges = 8;
    options.cartridge_bytes = seed % 2 == 0 ? 20UL << 20 : 64UL << 20;
    TapeStage stage(options);
    Book book;
    for (int round = 0; round < 5; ++round) {
        book.merge(put_large(stage, 2, 5 * kPiece));
        for (const auto& [fid, bytes] : book) {
            const std::uint64_t luck = stage.random.below(3);
            if (luck == 0) [[maybe_unused]]
                const auto released = stage.release(fid);
            if (luck == 1) [[maybe_unused]]
                const auto recalled = stage.recall(fid);
        }
        const auto span = Duration(static_cast<Duration::rep>(stage.random.below(120)) * 1s);
        stage.lose_power_within(600, span);
        if (seed % 4 == 0) stage.piece_bytes = kPiece * (1 + stage.random.below(3));
        stage.start();
    }
    check_all(stage, book);
    stage.run_for(1min);  // The library may not be open yet.
    for (int tries = 0; tries < 5 && !stage.sync(1h); ++tries) stage.run_for(1min);
    release_all(stage, book);
    check_all(stage, book);
    stage.stop();
}
