// Goal: uploads to a tape pool do not wait for each other's room on the disks before the tapes:
// those that have no room are told so, and the oldest goes on. Method: as tape_fops_test.cc, with a
// staging on which nothing can be released.
// The file is long because the rules are tested by themselves first, and then with a node.

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "objects/disk_use.h"
#include "objects/fids.h"
#include "objects/open_uploads.h"
#include "objects/pool_quota.h"
#include "reqh/write_plan.h"
#include "tests/catch.h"
#include "tests/reqh/tape_node.h"

namespace fopd::reqh::testing::tape_fops {

namespace {

constexpr std::uint64_t kPartBlocks = 64;

FakeFop& try_begin(TapeStage& tape, std::uint64_t blocks, std::string_view who = "alice") {
    FopSpec spec{
        .type = type_of("upload_begin"),
        .body = fop::UploadBegin{.size_bytes = blocks * kBlock, .slot = tape.stage.slot(1)}};
    spec.pool = "cold";
    spec.principal = who;
    return tape.stage.call(std::move(spec));
}

fop::Fid begin_cold(TapeStage& tape, std::uint64_t blocks, std::string_view who = "alice") {
    const FakeFop& begun = try_begin(tape, blocks, who);
    INFO(begun.answer->words);
    REQUIRE(begun.status() == fop::Status::kDone);
    return std::get<fop::UploadBeginReply>(begun.answer->body).fid;
}

enum class Carried : std::uint8_t { kInline, kInMemory };

// A write of an upload. It outlives the fop, whose lists are its own.
class Part {
public:
    Part(std::uint64_t first, std::uint64_t count)
        : bytes_(pattern(count * kBlock, first + 1)),
          range_{.offset = first * kBlock, .length = bytes_.size()},
          checksums_(checksums_of({range_}, bytes_)) {}

    FopSpec spec(fop::Fid fid, Carried carried) const {
        fop::UploadWrite body{
            .fid = fid,
            .range = range_,
            .checksums = fop::List<std::uint32_t>(checksums_.data(), checksums_.size())};
        FopSpec spec{.type = type_of("upload_write")};
        if (carried == Carried::kInMemory) {
            body.source.emplace();
            spec.source = bytes_;
        } else {
            spec.payload_bytes = bytes_;
        }
        spec.body = body;
        return spec;
    }
    // Each part that the server pulls takes a second.
    FopSpec slow(fop::Fid fid) const {
        FopSpec spec = this->spec(fid, Carried::kInMemory);
        spec.transfer_time = 1s;
        return spec;
    }

private:
    const Bytes bytes_;
    const fop::Range range_;
    const std::vector<std::uint32_t> checksums_;
};

fop::Status write_part(TapeStage& tape, fop::Fid fid, std::uint64_t first, std::uint64_t count,
                       Carried carried = Carried::kInMemory, std::string_view who = "alice") {
    const Part part(first, count);
    FopSpec spec = part.spec(fid, carried);
    spec.principal = who;
    return tape.stage.call(std::move(spec)).status();
}

// All that an upload lacks.
void write_rest(TapeStage& tape, fop::Fid fid, std::uint64_t from, std::uint64_t blocks,
                std::string_view who = "alice") {
    for (std::uint64_t at = from; at < blocks; at += kPartBlocks) {
        CAPTURE(at, blocks);
        const std::uint64_t count = std::min(kPartBlocks, blocks - at);
        REQUIRE(write_part(tape, fid, at, count, Carried::kInMemory, who) == fop::Status::kDone);
    }
}

std::uint64_t room_of(TapeStage& tape) {
    return tape.stage.volume(1).space_use().room_blocks();
}

}  // namespace

namespace {

// The uploads of a disk with 800 blocks, all of them free.
class Uploads {
public:
    static store::Fid fid(std::uint64_t number) { return {.high = 1, .low = number}; }

    void begin(std::uint64_t number, std::uint64_t blocks, std::string_view who = "alice") {
        objects::DiskUse::Owner& owner = use.owner({.pool = 1, .owner = who});
        uploads.expect(fid(number),
                       {.owner = &owner, .left_blocks = blocks, .is_unknown = blocks == 0});
        stay(number);
    }
    void stay(std::uint64_t number) { uploads.stay(fid(number), space, now); }
    void write(std::uint64_t number, std::uint64_t blocks, std::uint64_t added) {
        objects::OpenUploads::Write write;
        write.begin(uploads, fid(number), blocks);
        write.took(blocks);
        write.counted(blocks, added);
        write.done(space, now);
    }
    std::uint64_t needed_before(std::uint64_t number) {
        return uploads.needed_before(fid(number), space, now);
    }
    std::uint64_t kept_from_others() { return uploads.kept_from_others(space, now); }
    bool make_way(std::uint64_t number, std::uint64_t blocks, std::string_view who) {
        const objects::OpenUploads::Refused refused{.owner = &use.owner({.pool = 1, .owner = who}),
                                                    .blocks = blocks};
        return uploads.make_way(fid(number), refused, space);
    }

    objects::DiskUse use{store::PoolShares{}};
    objects::OpenUploads uploads{use};
    store::SpaceUse space{.total_blocks = 800, .free_blocks = 800};
    Instant now{Duration{100s}};
};

}  // namespace

TEST_CASE("reqh upload room: what older uploads need is kept, unless they are idle", "[reqh]") {
    Uploads room;
    room.begin(1, 100);
    room.begin(2, 50);
    CHECK(room.needed_before(1) == 0);
    CHECK(room.needed_before(2) == 100);
    CHECK(room.needed_before(3) == 150);
    room.write(1, 60, 60);
    room.write(2, 50, 50);
    CHECK(room.needed_before(3) == 40);
    // Beyond its size.
    room.write(2, 20, 20);
    CHECK(room.needed_before(2) == 40);
    CHECK(room.needed_before(3) == 140);
    room.uploads.gone(Uploads::fid(2));

    // The size of these is unknown; the oldest has its part.
    room.begin(3, 0);
    room.begin(4, 0);
    CHECK(room.needed_before(3) == 40);
    CHECK(room.needed_before(4) == 140);
    CHECK(room.needed_before(5) == 140);
    room.uploads.gone(Uploads::fid(3));
    CHECK(room.needed_before(4) == 40);

    room.now = after(room.now, 1s);
    room.stay(1);
    room.now = after(room.now, objects::OpenUploads::kIdle - 1s);
    CHECK(room.needed_before(9) == 40);
    CHECK(room.uploads.keeps_room(Uploads::fid(1)));
    room.now = after(room.now, 1s);
    CHECK(room.needed_before(9) == 0);
    CHECK_FALSE(room.uploads.keeps_room(Uploads::fid(1)));
    // It gets on again.
    room.write(1, 10, 10);
    CHECK(room.needed_before(9) == 30);
}

TEST_CASE("reqh upload room: blocks that a write has taken or is about to take count once",
          "[reqh]") {
    Uploads room;
    room.begin(1, 100);
    room.begin(2, 0);
    objects::OpenUploads::Write older;
    older.begin(room.uploads, Uploads::fid(1), 60);
    CHECK(room.needed_before(2) == 100);
    older.took(40);
    CHECK(room.needed_before(2) == 60);

    // Of a younger one, only the write in progress counts.
    objects::OpenUploads::Write younger;
    younger.begin(room.uploads, Uploads::fid(2), 30);
    CHECK(room.needed_before(1) == 20 + 30);
    younger.took(30);
    CHECK(room.needed_before(1) == 20);

    SECTION("the change begins") {
        older.took(20);
        older.counted(60, 60);
        CHECK(room.needed_before(2) == 40);
        older.done(room.space, room.now);
        CHECK(room.needed_before(2) == 40);
    }
    SECTION("the change does not begin") {
        older.took(20);
        older.counted(60, 60);
        older.give_back();
        CHECK(room.needed_before(2) == 100);
    }
    SECTION("the bytes do not come") {
        older.give_back();
        CHECK(room.needed_before(2) == 100);
    }
    SECTION("the upload goes before its write ends") {
        room.uploads.gone(Uploads::fid(1));
        older.took(20);
        older.counted(60, 60);
        older.give_back();
        CHECK(room.needed_before(2) == 0);
    }
    younger.give_back();
    CHECK(room.needed_before(1) == 0);
}

TEST_CASE("reqh upload room: an upload is not idle while a write to it is in progress", "[reqh]") {
    Uploads room;
    room.begin(1, 100);
    objects::OpenUploads::Write slow;
    slow.begin(room.uploads, Uploads::fid(1), 40);
    room.now = after(room.now, 2 * objects::OpenUploads::kIdle);
    CHECK(room.needed_before(2) == 100);
    CHECK(room.uploads.keeps_room(Uploads::fid(1)));

    SECTION("it gets new blocks") {
        slow.took(40);
        slow.counted(40, 40);
        CHECK(room.needed_before(2) == 60);
        slow.done(room.space, room.now);
        CHECK(room.needed_before(2) == 60);
        room.now = after(room.now, objects::OpenUploads::kIdle);
    }
    SECTION("its bytes do not come") {
        slow.give_back();
    }
    CHECK(room.needed_before(2) == 0);
    CHECK_FALSE(room.uploads.keeps_room(Uploads::fid(1)));
}

TEST_CASE("reqh upload room: an upload keeps its place at the end of a write, however slow",
          "[reqh]") {
    Uploads room;
    room.begin(1, 100);
    objects::OpenUploads::Write slow;
    slow.begin(room.uploads, Uploads::fid(1), 40);
    room.now = after(room.now, 2 * objects::OpenUploads::kIdle);
    room.begin(2, 700, "bob");
    slow.took(40);
    slow.counted(40, 40);
    // An upload that keeps no room would come behind now.
    room.space.free_blocks = 50;
    slow.done(room.space, room.now);
    CHECK(room.uploads.keeps_room(Uploads::fid(1)));
    CHECK(room.needed_before(1) == 0);
    CHECK(room.needed_before(2) == 60);
}

TEST_CASE("reqh upload room: an upload that is too slow keeps no room", "[reqh]") {
    using objects::OpenUploads;
    Uploads room;
    room.space = {.total_blocks = 100'000, .free_blocks = 100'000};
    room.begin(1, 40'000);
    room.begin(2, 50'000, "bob");
    const auto pass = [&room](Duration span, std::uint64_t blocks_each_20_seconds) {
        for (Duration passed{0}; passed < span; passed += 20s) {
            room.now = after(room.now, 20s);
            room.write(1, blocks_each_20_seconds, blocks_each_20_seconds);
            room.write(2, 400, 400);
        }
    };
    constexpr std::uint64_t kInPace = 20 * OpenUploads::kBlocksPerSecondMin;

    pass(4 * OpenUploads::kPaceSpan, kInPace);
    CHECK(room.uploads.keeps_room(Uploads::fid(1)));
    pass(OpenUploads::kPaceSpan - 20s, 1);
    CHECK(room.uploads.keeps_room(Uploads::fid(1)));
    // With each block it keeps its room for a moment.
    pass(40s, 1);
    room.now = after(room.now, 1s);
    CHECK(room.needed_before(2) == 0);
    CHECK_FALSE(room.uploads.keeps_room(Uploads::fid(1)));
    CHECK(room.uploads.keeps_room(Uploads::fid(2)));
    // That it is refused then does not help it.
    room.stay(1);
    CHECK_FALSE(room.uploads.keeps_room(Uploads::fid(1)));
    // It gets on again.
    room.write(1, kInPace, kInPace);
    room.now = after(room.now, 19s);
    CHECK(room.needed_before(2) > 0);
}

TEST_CASE("reqh upload room: writes whose bytes do not come keep no room", "[reqh]") {
    using objects::OpenUploads;
    Uploads room;
    room.begin(1, 100);
    std::array<OpenUploads::Write, 2> writes;
    writes[0].begin(room.uploads, Uploads::fid(1), 10);
    for (Duration passed{0}; passed < OpenUploads::kPaceSpan; passed += 20s) {
        CHECK(room.needed_before(2) == 100);
        writes[1].begin(room.uploads, Uploads::fid(1), 10);
        room.now = after(room.now, 20s);
        writes[0].give_back();
        std::swap(writes[0], writes[1]);
    }
    // Only the write in progress counts.
    CHECK(room.needed_before(2) == 10);
    writes[0].give_back();
}

TEST_CASE("reqh upload room: an upload that waits for older ones is not too slow", "[reqh]") {
    using objects::OpenUploads;
    Uploads room;
    room.begin(1, 100);
    for (Duration passed{0}; passed < 2 * OpenUploads::kPaceSpan; passed += 20s) {
        room.now = after(room.now, 20s);
        room.stay(1);
    }
    CHECK(room.needed_before(2) == 100);
}

TEST_CASE("reqh upload room: only new blocks are progress", "[reqh]") {
    Uploads room;
    room.begin(1, 100);
    room.write(1, 10, 10);
    CHECK(room.needed_before(2) == 90);
    for (int i = 0; i < 3; ++i) {
        room.write(1, 10, 0);
        CHECK(room.needed_before(2) == 90);
        room.now = after(room.now, 20s);
    }
    CHECK(room.needed_before(2) == 0);
    room.write(1, 10, 0);
    CHECK(room.needed_before(2) == 0);
    room.write(1, 10, 1);
    CHECK(room.needed_before(2) == 89);
}

TEST_CASE("reqh upload room: the room that is kept for an owner is within its quota", "[reqh]") {
    Uploads room;
    const auto quota = std::make_shared<objects::PoolQuota>();
    room.use.join(1, quota);
    quota->account_of("alice").set_limit(
        {.blocks = 150, .objects = objects::QuotaAccount::kUnlimited});
    room.begin(1, 100);
    room.begin(2, 100);
    CHECK(room.needed_before(3) == 100);
    CHECK_FALSE(room.uploads.keeps_room(Uploads::fid(2)));
    room.begin(3, 100, "bob");
    CHECK(room.needed_before(4) == 200);
    room.write(1, 60, 60);
    // What it has written counts for the owner; here nothing was taken.
    room.stay(2);
    CHECK(room.needed_before(4) == 40 + 100 + 100);
    CHECK(quota->account_of("alice").promised_blocks() == 140);
    room.uploads.gone(Uploads::fid(1));
    room.uploads.gone(Uploads::fid(2));
    CHECK(quota->account_of("alice").promised_blocks() == 0);
}

TEST_CASE(
    "reqh upload room: an idle upload on a disk that nobody else uses takes no quota elsewhere",
    "[reqh]") {
    Uploads one;
    Uploads other;
    const auto quota = std::make_shared<objects::PoolQuota>();
    one.use.join(1, quota);
    other.use.join(1, quota);
    quota->account_of("alice").set_limit(
        {.blocks = 150, .objects = objects::QuotaAccount::kUnlimited});
    one.begin(1, 100);
    other.begin(2, 100);
    CHECK_FALSE(other.uploads.keeps_room(Uploads::fid(2)));

    other.now = after(one.now, objects::OpenUploads::kIdle);
    one.uploads.mark(Uploads::fid(1), other.now, 1h);
    CHECK(quota->account_of("alice").promised_blocks() == 0);
    other.stay(2);
    CHECK(other.uploads.keeps_room(Uploads::fid(2)));
}

TEST_CASE("reqh upload room: who keeps more than a fair part makes way for others", "[reqh]") {
    Uploads room;
    room.begin(1, 300);
    room.begin(2, 300);
    // The same owner is not helped, nor one that would not fit even then.
    CHECK_FALSE(room.make_way(3, 250, "alice"));
    CHECK_FALSE(room.make_way(3, 501, "bob"));
    CHECK(room.needed_before(3) == 600);
    CHECK(room.make_way(3, 250, "bob"));
    CHECK(room.needed_before(3) == 300);
    room.begin(3, 250, "bob");
    CHECK(room.needed_before(1) == 0);
    CHECK(room.needed_before(2) == 300 + 250);
    // What is left is no more than a fair part.
    CHECK_FALSE(room.make_way(4, 300, "bob"));
}

TEST_CASE("reqh upload room: other data leave what uploads need, up to a half", "[reqh]") {
    Uploads room;
    CHECK(room.kept_from_others() == 0);
    room.begin(1, 100);
    CHECK(room.kept_from_others() == 100);
    room.begin(2, 600, "bob");
    CHECK(room.kept_from_others() == 800 / 2);
    // Half of what is left to the others.
    room.write(2, 200, 200);
    CHECK(room.kept_from_others() == (800 - 200) / 2);
    room.uploads.gone(Uploads::fid(2));
    CHECK(room.kept_from_others() == 100);

    objects::OpenUploads::Write failing;
    failing.begin(room.uploads, Uploads::fid(1), 60);
    failing.took(60);
    failing.counted(60, 60);
    CHECK(room.kept_from_others() == 40);
    failing.give_back();
    CHECK(room.kept_from_others() == 100);
    room.now = after(room.now, objects::OpenUploads::kIdle);
    CHECK(room.kept_from_others() == 0);
}

TEST_CASE("reqh upload room: the number of uploads that keep room is bounded, for each owner too",
          "[reqh]") {
    constexpr std::uint64_t kMax = objects::OpenUploads::kKeepingMax;
    Uploads room;
    room.space.free_blocks = 10'000;
    for (std::uint64_t i = 1; i <= kMax; ++i) room.begin(i, 1);
    CHECK(room.uploads.keeps_room(Uploads::fid(kMax / 2)));
    CHECK_FALSE(room.uploads.keeps_room(Uploads::fid(kMax / 2 + 1)));
    CHECK(room.needed_before(6000) == kMax / 2);
    for (std::uint64_t i = 1; i <= kMax; ++i) room.begin(1000 + i + kMax, 1, "bob");
    CHECK(room.needed_before(6000) == kMax / 2 + kMax / 4);
    for (std::uint64_t i = 1; i <= kMax * 3 / 8; ++i) room.uploads.gone(Uploads::fid(i));
    room.stay(kMax);
    CHECK(room.uploads.keeps_room(Uploads::fid(kMax)));
}

// -- with a node --

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
    const std::uint64_t end = at + data_blocks / (2 * objects::OpenUploads::kUnknownPart);
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

TEST_CASE("reqh upload room: two writes of an upload in flight do not take what an older one needs",
          "[reqh]") {
    constexpr std::uint64_t kWindowBlocks = 256;
    TapeStage tape;
    const std::uint64_t blocks = room_of(tape) / 2;
    const fop::Fid older = begin_cold(tape, blocks);
    const fop::Fid younger = begin_cold(tape, 0);
    std::uint64_t at = 0;
    // Until there is room for one window.
    for (; room_of(tape) >= blocks + kWindowBlocks + 2 * kPartBlocks; at += kPartBlocks) {
        REQUIRE(write_part(tape, younger, at, kPartBlocks) == fop::Status::kDone);
    }
    std::deque<Part> windows;
    for (const std::uint64_t first : {at, at + kWindowBlocks}) {
        windows.emplace_back(first, kWindowBlocks);
    }
    // One whose bytes do not come takes nothing.
    FopSpec failing = windows.front().slow(younger);
    failing.failing_transfer = 0;
    CHECK(tape.stage.call(std::move(failing)).status() != fop::Status::kDone);

    std::array<const FakeFop*, 2> sent{};
    for (std::size_t i = 0; i < sent.size(); ++i) {
        sent[i] = &tape.stage.send(windows[i].slow(younger));
    }
    tape.stage.run_for(10s);
    const auto count = [&sent](fop::Status status) {
        return std::ranges::count_if(
            sent, [status](const FakeFop* each) { return each->status() == status; });
    };
    CHECK(count(fop::Status::kDone) == 1);
    CHECK(count(fop::Status::kStagingFull) == 1);
    CHECK(room_of(tape) >= blocks);
    write_rest(tape, older, 0, blocks);
}

TEST_CASE("reqh upload room: other writes leave the room that an upload needs", "[reqh]") {
    const auto way = GENERATE(WriteSpec::Way::kMemory, WriteSpec::Way::kInline);
    const std::uint64_t part = way == WriteSpec::Way::kInline ? 8 : kPartBlocks;
    TapeStage tape;
    FopSpec create{.type = type_of("create"),
                   .body = fop::Create{.slot = tape.stage.slot(1), .mode = 0600}};
    create.pool = "cold";
    const FakeFop& created = tape.stage.call(std::move(create));
    REQUIRE(created.status() == fop::Status::kDone);
    const fop::Fid other = std::get<fop::CreateReply>(created.answer->body).fid;
    const std::uint64_t room = room_of(tape);
    const std::uint64_t blocks = room / 4;
    const fop::Fid upload = begin_cold(tape, blocks);

    const Bytes bytes = pattern(part * kBlock, 5);
    const auto write_other = [&](std::uint64_t at) {
        const WriteSpec write(other, {{.offset = at * kBlock, .length = bytes.size()}}, bytes);
        return tape.stage.call(write.spec(way)).status();
    };
    std::uint64_t at = 0;
    for (;;) {
        REQUIRE(at < room);
        const fop::Status status = write_other(at);
        if (status == fop::Status::kStagingFull) break;
        REQUIRE(status == fop::Status::kDone);
        at += part;
    }
    CHECK(at >= room / 2);
    CHECK(room_of(tape) >= blocks);
    REQUIRE_FALSE(tape.stagings[1]->wanted_room.empty());
    CHECK(tape.stagings[1]->wanted_room.back().second == blocks + part);
    write_rest(tape, upload, 0, blocks);
}

TEST_CASE("reqh upload room: blocks of a write in flight are not counted twice", "[reqh]") {
    constexpr std::uint64_t kWindowBlocks = 2 * WritePlan::kChunkBlocks;
    TapeStage tape;
    const fop::Fid older = begin_cold(tape, room_of(tape) - 200);
    const fop::Fid younger = begin_cold(tape, 0);
    const std::uint64_t before = room_of(tape);
    const Part window(0, kWindowBlocks);
    const FakeFop& sent = tape.stage.send(window.slow(older));
    // Its first half has come, and is on the disk or on its way there.
    tape.stage.run_for(1500ms);
    REQUIRE(sent.transfers.size() == 2);
    REQUIRE(room_of(tape) <= before - WritePlan::kChunkBlocks);
    CHECK(write_part(tape, younger, 0, kPartBlocks) == fop::Status::kDone);
    tape.stage.run_for(10s);
    CHECK(sent.status() == fop::Status::kDone);
}

TEST_CASE("reqh upload room: who writes the same block again and again keeps no room", "[reqh]") {
    TapeStage tape;
    const std::uint64_t blocks = room_of(tape) * 3 / 5;
    const fop::Fid same = begin_cold(tape, blocks);
    REQUIRE(write_part(tape, same, 0, 1) == fop::Status::kDone);
    CHECK(try_begin(tape, blocks).status() == fop::Status::kStagingFull);
    for (int i = 0; i < 5; ++i) {
        tape.stage.run_for(30s);
        REQUIRE(write_part(tape, same, 0, 1) == fop::Status::kDone);
    }
    CHECK(try_begin(tape, blocks).status() == fop::Status::kDone);
}

TEST_CASE("reqh upload room: the uploads of one owner keep no more than its quota from others",
          "[reqh]") {
    TapeStage tape;
    tape.stage.quota_of("cold").account_of("alice").set_limit(
        {.blocks = 1000, .objects = objects::QuotaAccount::kUnlimited});
    begin_cold(tape, 900);
    begin_cold(tape, 900);
    CHECK(try_begin(tape, room_of(tape) - 1000, "bob").status() == fop::Status::kDone);
}

TEST_CASE("reqh upload room: a write beyond its owner's quota is refused before it takes room",
          "[reqh]") {
    TapeStage tape;
    tape.stage.quota_of("cold").account_of("alice").set_limit(
        {.blocks = kPartBlocks, .objects = objects::QuotaAccount::kUnlimited});
    const fop::Fid full = begin_cold(tape, 0);
    REQUIRE(write_part(tape, full, 0, kPartBlocks) == fop::Status::kDone);

    const Part beyond(kPartBlocks, kPartBlocks);
    const FakeFop& refused = tape.stage.call(beyond.slow(full));
    CHECK(refused.status() == fop::Status::kQuota);
    CHECK(refused.transfers.empty());
    // What replaces blocks adds none.
    CHECK(write_part(tape, full, 0, kPartBlocks) == fop::Status::kDone);
}

TEST_CASE("reqh upload room: an upload larger than a fair part leaves room for other owners",
          "[reqh]") {
    TapeStage tape;
    const std::uint64_t room = room_of(tape);
    const fop::Fid large = begin_cold(tape, room * 4 / 5);
    const std::uint64_t blocks = room * 2 / 5;
    CHECK(try_begin(tape, blocks).status() == fop::Status::kStagingFull);
    const fop::Fid others = begin_cold(tape, blocks, "bob");
    std::uint64_t at = 0;
    for (;;) {
        REQUIRE(at < room * 4 / 5);
        const fop::Status status = write_part(tape, large, at, kPartBlocks);
        if (status == fop::Status::kStagingFull) break;
        REQUIRE(status == fop::Status::kDone);
        at += kPartBlocks;
    }
    CHECK(at > room / 5);
    write_rest(tape, others, 0, blocks - kPartBlocks, "bob");
    FopSpec abort{.type = type_of("upload_abort"), .body = fop::UploadAbort{.fid = others}};
    abort.principal = "bob";
    REQUIRE(tape.stage.call(std::move(abort)).status() == fop::Status::kDone);
    tape.stage.run_for(5s);
    CHECK(write_part(tape, large, at, kPartBlocks) == fop::Status::kDone);
}

TEST_CASE("reqh upload room: open uploads keep room again when they go on after a restart",
          "[reqh]") {
    TapeStage tape;
    const std::uint64_t room = room_of(tape);
    const std::array<std::uint64_t, 2> blocks{room * 3 / 5, room / 5};
    const std::array<fop::Fid, 2> begun{begin_cold(tape, blocks[0]), begin_cold(tape, blocks[1])};
    for (const fop::Fid fid : begun) {
        REQUIRE(write_part(tape, fid, 0, kPartBlocks) == fop::Status::kDone);
    }
    tape.stage.run_for(1s);
    tape.restart();
    for (const fop::Fid fid : begun) {
        REQUIRE(write_part(tape, fid, kPartBlocks, kPartBlocks) == fop::Status::kDone);
    }
    CHECK(try_begin(tape, blocks[0]).status() == fop::Status::kStagingFull);
    for (std::size_t i = 0; i < begun.size(); ++i) {
        write_rest(tape, begun[i], 2 * kPartBlocks, blocks[i]);
        CHECK(tape.status_of("upload_commit", fop::UploadCommit{.fid = begun[i],
                                                                .size_bytes = blocks[i] * kBlock,
                                                                .blocks = blocks[i]}) ==
              fop::Status::kDone);
    }
}

}  // namespace fopd::reqh::testing::tape_fops
