// Goal: uploads to a tape pool do not wait for each other's room on the disks before the tapes:
// those that have no room are told so, and the oldest goes on. Method: as tape_fops_test.cc, with a
// staging on which nothing can be released.

#include "objects/upload_room.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "objects/fids.h"
#include "tests/catch.h"
#include "tests/reqh/tape_node.h"

namespace fopd::reqh::testing::tape_fops {

namespace {

constexpr std::uint64_t kPartBlocks = 64;

FakeFop& try_begin(TapeStage& tape, std::uint64_t blocks) {
    FopSpec spec{
        .type = type_of("upload_begin"),
        .body = fop::UploadBegin{.size_bytes = blocks * kBlock, .slot = tape.stage.slot(1)}};
    spec.pool = "cold";
    return tape.stage.call(std::move(spec));
}

fop::Fid begin_cold(TapeStage& tape, std::uint64_t blocks) {
    const FakeFop& begun = try_begin(tape, blocks);
    INFO(begun.answer->words);
    REQUIRE(begun.status() == fop::Status::kDone);
    return std::get<fop::UploadBeginReply>(begun.answer->body).fid;
}

enum class Carried : std::uint8_t { kInline, kInMemory };

fop::Status write_part(TapeStage& tape, fop::Fid fid, std::uint64_t first, std::uint64_t count,
                       Carried carried = Carried::kInMemory) {
    const Bytes bytes = pattern(count * kBlock, first + 1);
    const fop::Range range{.offset = first * kBlock, .length = bytes.size()};
    const auto checksums = checksums_of({range}, bytes);
    fop::UploadWrite body{
        .fid = fid,
        .range = range,
        .checksums = fop::List<std::uint32_t>(checksums.data(), checksums.size())};
    FopSpec spec{.type = type_of("upload_write")};
    if (carried == Carried::kInMemory) {
        body.source.emplace();
        spec.source = bytes;
    } else {
        spec.payload_bytes = bytes;
    }
    spec.body = body;
    return tape.stage.call(spec).status();
}

std::uint64_t room_of(TapeStage& tape) {
    return tape.stage.volume(1).space_use().room_blocks();
}

}  // namespace

TEST_CASE("reqh upload room: what older uploads need is kept, unless they are idle", "[reqh]") {
    const auto fid = [](std::uint64_t number) { return store::Fid{.high = 1, .low = number}; };
    const Instant begin{Duration{100s}};
    objects::UploadRoom room;
    room.begin(fid(1), 100, begin);
    room.begin(fid(2), 50, begin);
    CHECK(room.needed_before(fid(1), 800, begin) == 0);
    CHECK(room.needed_before(fid(2), 800, begin) == 100);
    CHECK(room.needed_before(fid(3), 800, begin) == 150);
    room.written(fid(1), 60);
    room.written(fid(2), 50);
    CHECK(room.needed_before(fid(3), 800, begin) == 40);
    // Beyond its size.
    room.written(fid(2), 20);
    CHECK(room.needed_before(fid(2), 800, begin) == 40);
    CHECK(room.needed_before(fid(3), 800, begin) == 140);
    room.gone(fid(2));

    // The size of these is unknown; the oldest has its part.
    room.begin(fid(3), 0, begin);
    room.begin(fid(4), 0, begin);
    CHECK(room.needed_before(fid(3), 800, begin) == 40);
    CHECK(room.needed_before(fid(4), 800, begin) == 140);
    CHECK(room.needed_before(fid(5), 800, begin) == 140);
    room.gone(fid(3));
    CHECK(room.needed_before(fid(4), 800, begin) == 40);

    const Instant later = after(begin, objects::UploadRoom::kIdle);
    room.tries(fid(1), after(begin, 1s));
    CHECK(room.needed_before(fid(9), 800, later) == 40);
    CHECK(room.contains(fid(1)));
    CHECK(room.needed_before(fid(9), 800, after(later, 1s)) == 0);
    CHECK_FALSE(room.contains(fid(1)));
    room.tries(fid(1), after(later, 1s));
    CHECK(room.needed_before(fid(9), 800, after(later, 1s)) == 0);
    room.begin(fid(1), 30, after(later, 1s));
    CHECK(room.needed_before(fid(9), 800, after(later, 1s)) == 30);
}

TEST_CASE("reqh upload room: an upload begins only if those that have begun can end", "[reqh]") {
    TapeStage tape;
    const std::uint64_t blocks = room_of(tape) * 2 / 5;
    const std::array<fop::Fid, 2> begun{begin_cold(tape, blocks), begin_cold(tape, blocks)};
    CHECK(try_begin(tape, blocks).status() == fop::Status::kStagingFull);
    REQUIRE(tape.stagings[1]->wanted_room.size() == 1);
    CHECK(tape.stagings[1]->wanted_room.front().second > 2 * blocks);
    // A small one has room beside them.
    CHECK(try_begin(tape, 10).status() == fop::Status::kDone);

    for (std::uint64_t at = 0; at < blocks; at += kPartBlocks) {
        CAPTURE(at, blocks);
        const std::uint64_t count = std::min(kPartBlocks, blocks - at);
        REQUIRE(write_part(tape, begun[0], at, count) == fop::Status::kDone);
        REQUIRE(write_part(tape, begun[1], at, count) == fop::Status::kDone);
    }
    CHECK(try_begin(tape, blocks).status() == fop::Status::kStagingFull);
    REQUIRE(tape.status_of("upload_abort", fop::UploadAbort{.fid = begun[0]}) ==
            fop::Status::kDone);
    tape.stage.run_for(5s);
    CHECK(try_begin(tape, blocks).status() == fop::Status::kDone);
}

TEST_CASE("reqh upload room: many uploads that begin at once do not all begin", "[reqh]") {
    TapeStage tape;
    constexpr std::size_t kMany = 12;
    const std::uint64_t blocks = room_of(tape) / 4;
    std::vector<const FakeFop*> begins;
    for (std::size_t i = 0; i < kMany; ++i) {
        FopSpec spec{
            .type = type_of("upload_begin"),
            .body = fop::UploadBegin{.size_bytes = blocks * kBlock, .slot = tape.stage.slot(1)}};
        spec.pool = "cold";
        begins.push_back(&tape.stage.send(std::move(spec), 1));
    }
    tape.stage.run_for(10s);
    const auto count = [&begins](fop::Status status) {
        return std::ranges::count_if(
            begins, [status](const FakeFop* each) { return each->status() == status; });
    };
    const auto done = count(fop::Status::kDone);
    CHECK(done >= 3);
    CHECK(done <= 4);
    CHECK(count(fop::Status::kStagingFull) == static_cast<std::ptrdiff_t>(kMany) - done);
}

TEST_CASE("reqh upload room: of uploads of unknown size the oldest goes on", "[reqh]") {
    const auto carried = GENERATE(Carried::kInMemory, Carried::kInline);
    const std::uint64_t part = carried == Carried::kInline ? 8 : kPartBlocks;
    TapeStage tape;
    const std::array<fop::Fid, 2> begun{begin_cold(tape, 0), begin_cold(tape, 0)};
    const std::uint64_t data_blocks = tape.stage.volume(1).space_use().data_blocks();
    std::uint64_t at = 0;
    for (;;) {
        REQUIRE(at < data_blocks);
        REQUIRE(write_part(tape, begun[0], at, part, carried) == fop::Status::kDone);
        const fop::Status status = write_part(tape, begun[1], at, part, carried);
        if (status == fop::Status::kStagingFull) break;
        REQUIRE(status == fop::Status::kDone);
        at += part;
    }
    const std::uint64_t end = at + data_blocks / (2 * objects::UploadRoom::kUnknownPart);
    for (std::uint64_t next = at + part; next < end; next += part) {
        REQUIRE(write_part(tape, begun[0], next, part, carried) == fop::Status::kDone);
        CHECK(write_part(tape, begun[1], at, part, carried) == fop::Status::kStagingFull);
    }
    REQUIRE(tape.status_of("upload_abort", fop::UploadAbort{.fid = begun[0]}) ==
            fop::Status::kDone);
    tape.stage.run_for(5s);
    CHECK(write_part(tape, begun[1], at, part, carried) == fop::Status::kDone);
}

TEST_CASE("reqh upload room: an upload that nobody writes to keeps no room for long", "[reqh]") {
    TapeStage tape;
    const std::uint64_t blocks = room_of(tape) * 3 / 5;
    const fop::Fid idle = begin_cold(tape, blocks);
    CHECK(try_begin(tape, blocks).status() == fop::Status::kStagingFull);
    tape.stage.run_for(2min);
    CHECK(try_begin(tape, blocks).status() == fop::Status::kDone);
    // It may go on while there is room.
    CHECK(write_part(tape, idle, 0, kPartBlocks) == fop::Status::kDone);
}

TEST_CASE("reqh upload room: an upload that goes on after a pause keeps room for all it lacks",
          "[reqh]") {
    TapeStage tape;
    const std::uint64_t blocks = room_of(tape) * 3 / 5;
    const fop::Fid older = begin_cold(tape, blocks);
    REQUIRE(write_part(tape, older, 0, kPartBlocks) == fop::Status::kDone);
    tape.stage.run_for(2min);
    const fop::Fid younger = begin_cold(tape, 0);

    // The older one is not idle any more, but slow.
    std::uint64_t written = kPartBlocks;
    std::uint64_t at = 0;
    for (;;) {
        REQUIRE(at < blocks);
        REQUIRE(write_part(tape, older, written, 1) == fop::Status::kDone);
        ++written;
        const fop::Status status = write_part(tape, younger, at, kPartBlocks);
        if (status == fop::Status::kStagingFull) break;
        REQUIRE(status == fop::Status::kDone);
        at += kPartBlocks;
    }
    while (written < blocks) {
        CAPTURE(written, blocks);
        const std::uint64_t count = std::min(kPartBlocks, blocks - written);
        REQUIRE(write_part(tape, older, written, count) == fop::Status::kDone);
        written += count;
    }
}

}  // namespace fopd::reqh::testing::tape_fops
