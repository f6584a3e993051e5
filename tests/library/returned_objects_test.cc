// Goal: a recalled object stays on its disk for those who have waited for it, and no longer, so
// that the next recall gets its room. Method: as staging_room_test.cc; a disk on which one of
// several large objects has room at a time, as the rest of it is pinned.

#include "library/returned_objects.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/gate.h"
#include "objects/disk_use.h"
#include "objects/home_volume.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

constexpr std::uint64_t kLargeBlocks = 2000;
constexpr std::uint64_t kLargeBytes = kLargeBlocks * 4096;

store::ClientId client_of(std::uint8_t number) {
    return {.bytes = {std::byte{number}}};
}

store::Fid returned_fid(std::uint64_t number) {
    return {.high = 1ULL << 48, .low = number};
}

// As a client does: it asks, waits, and reads all of the object.
Task<void> recall_and_read(StagingDisks* disks, store::Fid fid, std::uint64_t* done) {
    const store::ClientId client = client_of(9);
    RecallWish wish{.fid = fid, .client = client};
    const auto asked = co_await disks->recall(std::move(wish), {});
    ENSURE(asked.has_value());
    const auto end = co_await disks->wait_for_recall(fid, client, {});
    ENSURE(end.has_value());
    ENSURE(end->how == RecallEnd::How::kDone);
    disks->note_read(fid, client, kLargeBytes);
    ++*done;
}

Task<void> wait_as(StagingDisks* disks, store::Fid fid, store::ClientId client, bool* is_back) {
    const auto end = co_await disks->wait_for_recall(fid, client, {});
    ENSURE(end.has_value());
    *is_back = end->how == RecallEnd::How::kDone;
}

// The disk is at the last locality; the library is at the first.
class NarrowDisk {
public:
    explicit NarrowDisk(std::uint32_t localities) : stage(options_for(localities)) {}

    // Objects that are on tape only, and of which one has room on the disk at a time.
    std::vector<store::Fid> put_large(std::size_t count) {
        const std::uint32_t disk = stage.options.localities - 1;
        std::vector<store::Fid> fids;
        for (std::size_t i = 0; i < count; ++i) {
            fids.push_back(stage.put(pattern(kLargeBytes, i), disk));
            REQUIRE(stage.sync().has_value());
            REQUIRE(stage.release(fids.back()).has_value());
            stage.run_for(10s);
        }
        std::uint64_t seed = 1000;
        while (stage.volume(disk).space_use().room_blocks() > kLargeBlocks + kLargeBlocks / 2) {
            const store::Fid fid = stage.put(pattern(250UL * 4096, ++seed), disk);
            REQUIRE(stage.recall(fid, 24h) == RecallAsked::kOnDisk);
        }
        REQUIRE(stage.sync().has_value());
        stage.run_for(10s);
        return fids;
    }
    // Whether a drive works for a recall within a few seconds. The work itself takes the drive up
    // to two minutes: it may have to unload, load and locate.
    bool goes_on() {
        for (int i = 0; i < 30 && !is_on_its_way(); ++i) stage.run_for(100ms);
        return is_on_its_way();
    }
    bool is_on_its_way() {
        const auto& drives = stage.io().media().drives();
        const auto reads = [](const auto& each) {
            return each->running_count(io_sched::IoType::kRead) > 0;
        };
        return stage.io().waiting_count(io_sched::IoType::kRead) > 0 ||
               std::ranges::any_of(drives, reads);
    }
    StagingDisks* disks() { return &stage.staging(stage.options.localities - 1); }
    core::Reactor& reactor() { return stage.reactor(stage.options.localities - 1); }

    TapeStage stage;

private:
    static TapeStageOptions options_for(std::uint32_t localities) {
        TapeStageOptions options;
        options.localities = localities;
        options.disks = localities;
        options.pool.staging_high = 0;  // Nothing leaves by itself.
        options.pool.migrate_age = 24h;
        return options;
    }
};

// Keeps room for a recall that the library does not know, as if a cartridge were being loaded.
Task<Result<void>> keep_room_for(NarrowDisk* narrow, store::Fid fid) {
    store::Volume& volume = narrow->stage.volume(0);
    const store::Recall recall{.ticket = (volume.newest().epoch << 32U) + 1000,
                               .priority = kRecallPriorityDefault};
    const auto put = co_await volume.put_recall(fid, recall, {});
    if (!put) co_return std::unexpected(put.error());
    co_return co_await narrow->disks()->returning().make_room(fid);
}

// An upload begins on the disk of the object, and keeps room for so many blocks.
void begin_upload_beside(TapeStage& stage, store::Fid fid, std::uint64_t blocks) {
    objects::HomeVolume& home = stage.home_volume_of(fid);
    objects::DiskUse::Owner& owner =
        home.use().owner({.pool = objects::pool_id(stage.options.pool.name), .owner = "alice"});
    const store::Fid upload{.high = fid.high, .low = fid.low + 1000};
    home.uploads().expect(upload, {.owner = &owner, .left_blocks = blocks});
    home.uploads().stay(upload, home.volume().space_use(), stage.world.now());
    REQUIRE(home.uploads().keeps_room(upload));
}

}  // namespace

TEST_CASE("library returned: an object stays until all who wait have read it, or its time is over",
          "[library]") {
    const store::Fid one = returned_fid(1);
    const store::Fid two = returned_fid(2);
    const store::Fid three = returned_fid(3);
    const std::vector<store::ClientId> both{client_of(1), client_of(2)};
    const Instant soon{1s};
    ReturnedObjects returned;
    CHECK_FALSE(returned.next_due().has_value());
    returned.add({.fid = one, .size_bytes = 100, .until = Instant{30s}}, both);
    returned.add({.fid = two, .size_bytes = 100, .until = Instant{31s}}, {});
    returned.add({.fid = three, .size_bytes = 100, .until = Instant{32s}}, both);

    // Another client, and parts of it.
    CHECK_FALSE(returned.note_read(one, client_of(3), 100, soon));
    CHECK_FALSE(returned.note_read(one, client_of(1), 60, soon));
    CHECK_FALSE(returned.note_read(one, client_of(2), 100, soon));
    CHECK_FALSE(returned.note_read(one, client_of(1), 39, soon));
    CHECK(returned.contains(one));
    CHECK(returned.note_read(one, client_of(1), 1, soon));
    CHECK_FALSE(returned.contains(one));
    CHECK_FALSE(returned.note_read(one, client_of(1), 100, soon));

    // Nobody is known to wait for it, then one is; who waits twice reads once.
    CHECK_FALSE(returned.note_read(two, client_of(1), 100, soon));
    returned.add_reader(two, client_of(1));
    returned.add_reader(two, client_of(1));
    returned.add_reader(two, store::ClientId{});
    CHECK(returned.note_read(two, client_of(1), 100, soon));

    // It has come back again before its first time was over.
    returned.add({.fid = one, .size_bytes = 100, .until = Instant{40s}}, {});
    for (const store::Fid fid : {one, two, three}) {
        REQUIRE(returned.next_due().has_value());
        CHECK(returned.next_due()->fid == fid);
        returned.end(*returned.next_due());
    }
    CHECK_FALSE(returned.contains(three));
    CHECK(returned.contains(one));
    CHECK(returned.next_due()->until == Instant{40s});
    returned.end(*returned.next_due());
    CHECK_FALSE(returned.contains(one));
    CHECK_FALSE(returned.next_due().has_value());
}

TEST_CASE("library returned: an object stays longer while one who waited reads it", "[library]") {
    const store::Fid one = returned_fid(1);
    const store::Fid two = returned_fid(2);
    const std::vector<store::ClientId> first{client_of(1)};
    ReturnedObjects returned;
    returned.add({.fid = one, .size_bytes = 100, .until = Instant{30s}}, first);
    returned.add({.fid = two, .size_bytes = 100, .until = Instant{31s}}, first);
    CHECK_FALSE(returned.note_read(one, client_of(1), 10, Instant{50s}));
    // Others do not count.
    CHECK_FALSE(returned.note_read(one, client_of(2), 10, Instant{90s}));

    CHECK(returned.next_due()->fid == one);
    returned.end(*returned.next_due());
    CHECK(returned.contains(one));
    CHECK(returned.next_due()->fid == two);
    returned.end(*returned.next_due());
    CHECK_FALSE(returned.contains(two));
    CHECK(returned.next_due()->until == Instant{50s});
    returned.end(*returned.next_due());
    CHECK_FALSE(returned.contains(one));
    CHECK_FALSE(returned.next_due().has_value());
}

TEST_CASE("library returned: who reads nothing, or little, does not keep an object for ever",
          "[library]") {
    const store::Fid one = returned_fid(1);
    const store::Fid two = returned_fid(2);
    const std::vector<store::ClientId> first{client_of(1)};
    ReturnedObjects returned;
    returned.add({.fid = one, .size_bytes = 100, .until = Instant{30s}}, first);
    returned.add({.fid = two, .size_bytes = 100, .until = Instant{31s}}, first);
    CHECK_FALSE(returned.note_read(one, client_of(1), 0, Instant{50s}));
    CHECK_FALSE(returned.note_read(two, client_of(1), 1, Instant{20min}));
    returned.end(*returned.next_due());
    CHECK_FALSE(returned.contains(one));

    REQUIRE(returned.next_due()->fid == two);
    returned.end(*returned.next_due());
    REQUIRE(returned.contains(two));
    CHECK(returned.next_due()->until == after(Instant{31s}, ReturnedObjects::kMoreMax));
    CHECK_FALSE(returned.note_read(two, client_of(1), 1, Instant{20min}));
    returned.end(*returned.next_due());
    CHECK_FALSE(returned.contains(two));
}

TEST_CASE("library returned: the number of objects, and of readers of each, is bounded",
          "[library]") {
    ReturnedObjects returned;
    const store::Fid one = returned_fid(0);
    returned.add({.fid = one, .size_bytes = 100, .until = Instant{30s}}, {});
    for (std::size_t i = 0; i <= ReturnedObjects::kReadersMax; ++i) {
        returned.add_reader(one, client_of(static_cast<std::uint8_t>(i + 1)));
    }
    // One of the readers is not known, so the object stays for it.
    for (std::size_t i = 0; i <= ReturnedObjects::kReadersMax; ++i) {
        const store::ClientId reader = client_of(static_cast<std::uint8_t>(i + 1));
        CHECK_FALSE(returned.note_read(one, reader, 100, Instant{31s}));
    }
    CHECK(returned.contains(one));
    returned.end(*returned.next_due());
    CHECK_FALSE(returned.contains(one));

    for (std::size_t i = 0; i < ReturnedObjects::kObjectsMax; ++i) {
        returned.add({.fid = returned_fid(i), .size_bytes = 1, .until = Instant{30s}}, {});
    }
    const store::Fid other = returned_fid(ReturnedObjects::kObjectsMax);
    returned.add({.fid = other, .size_bytes = 1, .until = Instant{30s}}, {});
    CHECK_FALSE(returned.contains(other));
    returned.end(*returned.next_due());
    returned.add({.fid = other, .size_bytes = 1, .until = Instant{30s}}, {});
    CHECK(returned.contains(other));
}

TEST_CASE("library returned: the time that is over is that of the given object", "[library]") {
    const store::Fid one = returned_fid(1);
    const store::Fid two = returned_fid(2);
    ReturnedObjects returned;
    returned.add({.fid = two, .size_bytes = 100, .until = Instant{30s}}, {});
    const ReturnedObjects::Due due = *returned.next_due();
    // Now this one is the next.
    returned.add({.fid = one, .size_bytes = 100, .until = Instant{30s}}, {});
    returned.end(due);
    CHECK(returned.contains(one));
    CHECK_FALSE(returned.contains(two));
    returned.end(due);
    CHECK(returned.contains(one));
}

TEST_CASE("library returned: a recall goes on when those who waited for another have read it",
          "[library]") {
    const auto localities = GENERATE(1U, 2U);
    CAPTURE(localities);
    NarrowDisk narrow(localities);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(2);
    core::Gate gate;
    bool is_back = false;
    REQUIRE(stage.recall(fids[0]) == RecallAsked::kWaiting);
    narrow.reactor().spawn(gate, wait_as(narrow.disks(), fids[0], client_of(1), &is_back));
    REQUIRE(stage.wait_for(fids[0]).how == RecallEnd::How::kDone);
    stage.run_for(1s);
    REQUIRE(is_back);

    REQUIRE(stage.recall(fids[1]) == RecallAsked::kWaiting);
    stage.run_for(8s);
    CHECK(stage.is_released(fids[1]));
    narrow.disks()->note_read(fids[0], client_of(2), kLargeBytes);
    narrow.disks()->note_read(fids[0], client_of(1), kLargeBytes - 4096);
    stage.run_for(2s);
    CHECK(stage.is_released(fids[1]));
    CHECK_FALSE(stage.is_released(fids[0]));

    REQUIRE_FALSE(narrow.is_on_its_way());
    narrow.disks()->note_read(fids[0], client_of(1), 4096);
    CHECK(narrow.goes_on());
    REQUIRE(stage.wait_for(fids[1]).how == RecallEnd::How::kDone);
    CHECK(stage.is_released(fids[0]));
    CHECK(stage.read(fids[1]) == pattern(kLargeBytes, 1));
}

TEST_CASE("library returned: a recall goes on when nobody has read another in its time",
          "[library]") {
    const auto localities = GENERATE(1U, 2U);
    CAPTURE(localities);
    NarrowDisk narrow(localities);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(2);
    REQUIRE(stage.recall(fids[0]) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(fids[0]).how == RecallEnd::How::kDone);
    const Instant back_at = stage.world.now();

    REQUIRE(stage.recall(fids[1]) == RecallAsked::kWaiting);
    stage.run_for(29s - (stage.world.now() - back_at));
    REQUIRE_FALSE(stage.is_released(fids[0]));
    REQUIRE_FALSE(narrow.is_on_its_way());
    stage.run_for(1s);
    CHECK(narrow.goes_on());
    CHECK(stage.is_released(fids[0]));
    REQUIRE(stage.wait_for(fids[1]).how == RecallEnd::How::kDone);
}

TEST_CASE("library returned: recalls that need the same room get it in turn, without pauses",
          "[library]") {
    const auto localities = GENERATE(1U, 2U);
    CAPTURE(localities);
    constexpr std::uint64_t kCount = 4;
    NarrowDisk narrow(localities);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(kCount);
    core::Gate gate;
    std::uint64_t done = 0;
    for (const store::Fid fid : fids) {
        narrow.reactor().spawn(gate, recall_and_read(narrow.disks(), fid, &done));
    }
    for (int i = 0; i < 600 && done == 0; ++i) stage.run_for(1s);
    // The cartridge is in a drive now.
    stage.run_for(5s);
    CHECK(done == kCount);
    stage.run_for(10min);
    REQUIRE(done == kCount);
}

TEST_CASE("library returned: a recall that waits for room goes on when an object is removed",
          "[library]") {
    NarrowDisk narrow(1);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(2);
    REQUIRE(stage.recall(fids[0], 24h) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(fids[0]).how == RecallEnd::How::kDone);
    REQUIRE(stage.recall(fids[1]) == RecallAsked::kWaiting);
    // The pauses of its own tries are long by now.
    stage.run_for(10min);
    REQUIRE(stage.is_released(fids[1]));

    REQUIRE_FALSE(narrow.is_on_its_way());
    stage.remove(fids[0]);
    CHECK(narrow.goes_on());
    REQUIRE(stage.wait_for(fids[1]).how == RecallEnd::How::kDone);
}

TEST_CASE("library returned: a recall goes on when another that has kept room is cancelled",
          "[library]") {
    NarrowDisk narrow(1);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(2);
    REQUIRE(stage.at_home(fids[0], keep_room_for(&narrow, fids[0])).has_value());
    REQUIRE(stage.recall(fids[1]) == RecallAsked::kWaiting);
    stage.run_for(30s);
    REQUIRE(stage.is_released(fids[1]));
    REQUIRE_FALSE(narrow.is_on_its_way());

    REQUIRE(stage.at_home(fids[0], narrow.disks()->cancel_recall(fids[0], {})).has_value());
    // The library asked for room before it knew.
    const auto late = stage.at_home(fids[0], narrow.disks()->returning().make_room(fids[0]));
    REQUIRE_FALSE(late.has_value());
    CHECK(late.error().code == Errc::kNotFound);
    CHECK(narrow.goes_on());
    REQUIRE(stage.wait_for(fids[1]).how == RecallEnd::How::kDone);
    CHECK(stage.is_released(fids[0]));
}

TEST_CASE("library returned: a recall goes on when the time of room kept for another is over",
          "[library]") {
    NarrowDisk narrow(1);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(2);
    const Instant kept_at = stage.world.now();
    REQUIRE(stage.at_home(fids[0], keep_room_for(&narrow, fids[0])).has_value());
    REQUIRE(stage.recall(fids[1]) == RecallAsked::kWaiting);
    stage.run_for(after(kept_at, 179s) - stage.world.now());
    REQUIRE(stage.is_released(fids[1]));
    REQUIRE_FALSE(narrow.is_on_its_way());

    stage.run_for(1s);
    CHECK(narrow.goes_on());
    REQUIRE(stage.wait_for(fids[1]).how == RecallEnd::How::kDone);
}

TEST_CASE("library returned: a recall leaves the room that an open upload keeps", "[library]") {
    NarrowDisk narrow(1);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(1);
    const std::uint64_t room = stage.volume(0).space_use().room_blocks();
    REQUIRE(room >= kLargeBlocks);
    begin_upload_beside(stage, fids[0], room - kLargeBlocks + 100);
    REQUIRE(stage.recall(fids[0]) == RecallAsked::kWaiting);
    stage.run_for(30s);
    CHECK(stage.is_released(fids[0]));
    CHECK_FALSE(narrow.is_on_its_way());

    // The upload gets no blocks, so its room is kept for a minute only.
    REQUIRE(stage.wait_for(fids[0]).how == RecallEnd::How::kDone);
    CHECK(stage.read(fids[0]) == pattern(kLargeBytes, 0));
}

TEST_CASE("library returned: a recall takes the room kept for it, though an upload has begun since",
          "[library]") {
    NarrowDisk narrow(1);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(1);
    REQUIRE(stage.at_home(fids[0], keep_room_for(&narrow, fids[0])).has_value());
    begin_upload_beside(stage, fids[0],
                        stage.volume(0).space_use().room_blocks() - kLargeBlocks + 100);
    const auto begun = stage.at_home(fids[0], narrow.disks()->returning().begin(fids[0]));
    REQUIRE(begun.has_value());
    const auto ended = stage.at_home(fids[0], narrow.disks()->returning().abandon(fids[0]));
    CHECK(ended.has_value());
}

TEST_CASE("library returned: a slow reader gets all of what came back for it", "[library]") {
    NarrowDisk narrow(1);
    TapeStage& stage = narrow.stage;
    const auto fids = narrow.put_large(2);
    core::Gate gate;
    bool is_back = false;
    REQUIRE(stage.recall(fids[0]) == RecallAsked::kWaiting);
    narrow.reactor().spawn(gate, wait_as(narrow.disks(), fids[0], client_of(1), &is_back));
    REQUIRE(stage.wait_for(fids[0]).how == RecallEnd::How::kDone);
    stage.run_for(1s);
    REQUIRE(is_back);

    REQUIRE(stage.recall(fids[1]) == RecallAsked::kWaiting);
    constexpr std::uint64_t kParts = 8;
    for (std::uint64_t i = 0; i < kParts; ++i) {
        stage.run_for(20s);
        REQUIRE_FALSE(stage.is_released(fids[0]));
        narrow.disks()->note_read(fids[0], client_of(1), kLargeBytes / kParts);
    }
    CHECK(narrow.goes_on());
    REQUIRE(stage.wait_for(fids[1]).how == RecallEnd::How::kDone);
    CHECK(stage.is_released(fids[0]));
}
