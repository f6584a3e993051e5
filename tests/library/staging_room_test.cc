// Goal: room is made on a staging disk for uploads that do not fit, and for nobody else.
// Method: as tape_library_test.cc; a change that did not fit is played by want_room().

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <malloc.h>

#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

constexpr std::size_t kObjectBlocks = 250;

TapeStageOptions one_disk() {
    TapeStageOptions options;
    options.disks = 1;
    options.localities = 1;
    options.pool.staging_high = 0;  // Nothing leaves by itself.
    options.pool.migrate_age = 24h;
    return options;
}

std::vector<store::Fid> put_equal_objects(TapeStage& stage, std::size_t count) {
    std::vector<store::Fid> fids;
    for (std::size_t i = 0; i < count; ++i) {
        fids.push_back(stage.put(pattern(kObjectBlocks * 4096, i)));
        stage.run_for(1s);
    }
    return fids;
}

std::uint64_t free_blocks(TapeStage& stage) {
    return stage.volume(0).space_use().room_blocks();
}

std::size_t released_count(TapeStage& stage, const std::vector<store::Fid>& fids) {
    std::size_t count = 0;
    for (const store::Fid fid : fids) count += stage.is_released(fid) ? 1 : 0;
    return count;
}

}  // namespace

TEST_CASE("library: room that is wanted is made from what is on tape, the oldest first",
          "[library]") {
    TapeStage stage(one_disk());
    const auto fids = put_equal_objects(stage, 20);
    REQUIRE(stage.sync().has_value());
    stage.run_for(10min);
    REQUIRE(released_count(stage, fids) == 0);

    const std::uint64_t wanted = free_blocks(stage) + 3 * kObjectBlocks - 10;
    stage.staging(0).want_room(fids.front().slot(), wanted);
    stage.run_for(10s);
    CHECK(free_blocks(stage) >= wanted);
    CHECK(released_count(stage, fids) == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(stage.is_released(fids[i]));
}

TEST_CASE("library: room that is wanted makes objects go to tape at once", "[library]") {
    TapeStage stage(one_disk());
    const auto fids = put_equal_objects(stage, 20);
    stage.run_for(1h);
    REQUIRE(stage.copies_of(fids.front()).empty());

    const std::uint64_t wanted = free_blocks(stage) + 5 * kObjectBlocks;
    for (int tries = 0; tries < 60 && free_blocks(stage) < wanted; ++tries) {
        // As long as the change is tried again.
        stage.staging(0).want_room(fids.front().slot(), wanted);
        stage.run_for(10s);
    }
    CHECK(free_blocks(stage) >= wanted);
    CHECK(released_count(stage, fids) == 5);
    for (std::size_t i = 0; i < fids.size(); ++i) {
        CHECK(stage.recalled(fids[i]) == pattern(kObjectBlocks * 4096, i));
    }
}

TEST_CASE("library: room that nobody wants any more is not made", "[library]") {
    TapeStage stage(one_disk());
    const auto fids = put_equal_objects(stage, 4);
    stage.staging(0).want_room(fids.front().slot(), free_blocks(stage) + kObjectBlocks);
    stage.run_for(5min);
    REQUIRE(released_count(stage, fids) == 0);
    REQUIRE(stage.sync().has_value());
    stage.run_for(10min);
    CHECK(released_count(stage, fids) == 0);
}

TEST_CASE("library: a disk that is full to the last block is emptied", "[library]") {
    TapeStage stage(one_disk());
    std::vector<store::Fid> fids;
    std::size_t size = kObjectBlocks * 4096;
    while (size >= 4096) {
        if (free_blocks(stage) < 4 * size / 4096) {
            size /= 2;
            continue;
        }
        fids.push_back(stage.put(pattern(size, fids.size())));
        stage.run_for(1s);
    }
    const store::SpaceUse use = stage.volume(0).space_use();
    REQUIRE(use.free_blocks < use.used_blocks / 20);
    const std::uint64_t wanted = use.used_blocks / 2;
    for (int tries = 0; tries < 60 && free_blocks(stage) < wanted; ++tries) {
        stage.staging(0).want_room(fids.front().slot(), wanted);
        stage.run_for(10s);
    }
    CHECK(free_blocks(stage) >= wanted);
}

// -- recalls --

namespace {

using RecordChange = void (*)(store::Object& record, std::uint64_t number);

// The object's record gets a number, in a field that `set` knows.
Task<Result<void>> change_record(store::Volume* volume, store::Fid fid, std::uint64_t number,
                                 RecordChange set) {
    auto room = co_await volume->reserve(store::kPutRecordBytesMax, {});
    if (!room) co_return std::unexpected(room.error());
    const auto found = volume->map().find(fid);
    if (!found) co_return std::unexpected(found.error());
    store::Object object = **found;
    set(object, number);
    object.next_attributes();
    store::ValueBuffer value;
    store::Change change;
    change.records.put(store::Key::object(fid), store::write_object(value, object));
    const auto begun =
        volume->begin(change, std::move(*room), store::Durability::kDurable, store::Data::kNone);
    if (!begun) co_return begun;
    const auto finished = co_await volume->finish(&change);
    if (!finished) co_return std::unexpected(finished.error());
    co_return Result<void>{};
}

// What the record of a released object says of the blocks that it had.
Task<Result<void>> set_released_blocks(store::Volume* volume, store::Fid fid,
                                       std::uint64_t blocks) {
    return change_record(volume, fid, blocks, [](store::Object& record, std::uint64_t number) {
        record.released_blocks = number;
    });
}

Task<Result<void>> set_pool(store::Volume* volume, store::Fid fid, objects::PoolId pool) {
    return change_record(volume, fid, pool, [](store::Object& record, std::uint64_t number) {
        record.pool = static_cast<objects::PoolId>(number);
    });
}

Task<Result<void>> record_recall(store::Volume* volume, store::Fid fid, std::uint64_t number,
                                 std::uint8_t priority = kRecallPriorityDefault) {
    const store::Recall recall{.ticket = (volume->newest().epoch << 32U) + number,
                               .priority = priority};
    const auto put = co_await volume->put_recall(fid, recall, {});
    if (!put) co_return std::unexpected(put.error());
    co_return Result<void>{};
}

}  // namespace

TEST_CASE("library: the release of an object of a disk pool is wrong, whenever it is asked for",
          "[library]") {
    TapeStage stage(one_disk());
    const store::Fid fid = stage.put(pattern(4096, 1));
    REQUIRE(stage.sync().has_value());
    auto changing = set_pool(&stage.volume(0), fid, objects::pool_id("fast"));
    REQUIRE(stage.at_home(fid, std::move(changing)).has_value());
    const auto released = stage.release(fid);
    REQUIRE_FALSE(released.has_value());
    CHECK(released.error().code == Errc::kInvalid);
}

TEST_CASE("library: a recall takes its space at its turn, from what is on tape", "[library]") {
    TapeStage stage(one_disk());
    const Bytes bytes = pattern(8 * kObjectBlocks * 4096, 99);
    const store::Fid large = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(large).has_value());
    std::vector<store::Fid> fids;
    while (free_blocks(stage) > 3 * kObjectBlocks) {
        fids.push_back(stage.put(pattern(kObjectBlocks * 4096, fids.size())));
        stage.run_for(1s);
    }
    REQUIRE(stage.sync().has_value());

    REQUIRE(stage.recall(large) == RecallAsked::kWaiting);
    CHECK(released_count(stage, fids) == 0);
    REQUIRE(stage.wait_for(large).how == RecallEnd::How::kDone);
    CHECK(stage.read(large) == bytes);
    const std::size_t gone = released_count(stage, fids);
    CHECK(gone >= 5);
    CHECK(gone <= 7);
}

TEST_CASE("library: a recall waits while nothing can leave the full disk", "[library]") {
    TapeStage stage(one_disk());
    const Bytes bytes = pattern(8 * kObjectBlocks * 4096, 99);
    const store::Fid large = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(large).has_value());
    std::vector<store::Fid> fids;
    while (free_blocks(stage) > 3 * kObjectBlocks) {
        fids.push_back(stage.put(pattern(kObjectBlocks * 4096, fids.size())));
    }
    // None of these has a copy yet: the recall makes the library write them.
    REQUIRE(stage.recall(large) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(large).how == RecallEnd::How::kDone);
    CHECK(stage.read(large) == bytes);
    CHECK(released_count(stage, fids) >= 5);
}

TEST_CASE("library: a recall without space on its disk says so, and waits without a drive",
          "[library]") {
    TapeStageOptions options = one_disk();
    options.drives = 1;
    TapeStage stage(options);
    const Bytes bytes = pattern(8 * kObjectBlocks * 4096, 99);
    const store::Fid large = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(large).has_value());
    std::vector<store::Fid> fids;
    while (free_blocks(stage) > 3 * kObjectBlocks) {
        fids.push_back(stage.put(pattern(kObjectBlocks * 4096, fids.size())));
        REQUIRE(stage.recall(fids.back(), 24h) == RecallAsked::kOnDisk);
    }
    REQUIRE(stage.sync().has_value());

    REQUIRE(stage.recall(large) == RecallAsked::kWaiting);
    stage.run_for(5min);
    CHECK(stage.events.count("library.recalls_wait") == 1);
    unload_all(stage);
    const std::size_t mounted = stage.events.count("library.mounted");
    stage.run_for(2h);
    CHECK(stage.events.count("library.mounted") == mounted);
    CHECK(stage.events.count("library.recalls_wait") == 1);
    CHECK(stage.library().recalls(10).size() == 1);

    // The pins end.
    REQUIRE(stage.wait_for(large, 25h).how == RecallEnd::How::kDone);
    CHECK(stage.read(large) == bytes);
}

TEST_CASE("library: objects that cannot leave a full disk are not looked at again and again",
          "[library]") {
    constexpr std::uint64_t kObjects = 600;
    TapeStageOptions options = one_disk();
    options.pool.staging_high = 1;
    options.pool.staging_low = 0;
    TapeStage stage(options);
    std::vector<store::Fid> fids;
    for (std::uint64_t i = 0; i < kObjects; ++i) {
        fids.push_back(stage.put(pattern(4096, i)));
        REQUIRE(stage.recall(fids.back(), 24h) == RecallAsked::kOnDisk);
    }
    REQUIRE(stage.sync().has_value());
    stage.run_for(1min);
    const std::uint64_t first = stage.staging(0).release_tries();
    std::uint64_t most = 0;  // In a turn.
    stage.staging(0).want_room(fids.front().slot(), free_blocks(stage) + 1);
    const Instant soon = after(stage.world.now(), 500ms);
    for (std::uint64_t last = first; stage.world.step(soon);) {
        const std::uint64_t tries = stage.staging(0).release_tries();
        most = std::max(most, tries - last);
        last = tries;
    }
    CHECK(most <= 200);
    const std::uint64_t before = stage.staging(0).release_tries();
    CHECK(before - first >= kObjects);

    const Instant begin = stage.world.now();
    for (int i = 0; i < 100; ++i) {
        stage.overwrite(fids.front(), pattern(4096, kObjects));
        stage.run_for(5ms);
    }
    const auto seconds = static_cast<std::uint64_t>((stage.world.now() - begin) / 1s);
    CHECK(stage.staging(0).release_tries() - before <= (seconds + 2) * kObjects);
    CHECK(released_count(stage, fids) == 0);

    // What can leave does so soon.
    const store::Fid other = stage.put(pattern(4096, 2 * kObjects));
    REQUIRE(stage.sync().has_value());
    stage.run_for(10s);
    CHECK(stage.is_released(other));
}

TEST_CASE("library: an object that is larger than its disk is not brought back", "[library]") {
    TapeStage stage(one_disk());
    const store::Fid fid = stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    store::Volume* const volume = &stage.volume(0);
    REQUIRE(stage.at_home(fid, set_released_blocks(volume, fid, 1UL << 20)).has_value());

    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    const RecallEnd end = stage.wait_for(fid);
    CHECK(end.how == RecallEnd::How::kFailed);
    CHECK(end.reason == "the object is larger than its disk");
    CHECK(stage.is_released(fid));
}

TEST_CASE("library: nothing leaves the disk for two recalls that do not fit on it together",
          "[library]") {
    TapeStage stage(one_disk());
    const std::array<store::Fid, 2> large{stage.put(pattern(4096, 98)),
                                          stage.put(pattern(4096, 99))};
    REQUIRE(stage.sync().has_value());
    store::Volume* const volume = &stage.volume(0);
    const std::uint64_t blocks = volume->space_use().data_blocks() * 3 / 5;
    std::uint64_t number = 1000;
    for (const store::Fid fid : large) {
        REQUIRE(stage.release(fid).has_value());
        REQUIRE(stage.at_home(fid, set_released_blocks(volume, fid, blocks)).has_value());
        REQUIRE(stage.at_home(fid, record_recall(volume, fid, ++number)).has_value());
    }
    std::vector<store::Fid> fids;
    while (free_blocks(stage) > 3 * kObjectBlocks) {
        fids.push_back(stage.put(pattern(kObjectBlocks * 4096, fids.size())));
        stage.run_for(1s);
    }
    REQUIRE(stage.sync().has_value());

    ReturningObjects& returning = stage.staging(0).returning();
    REQUIRE(stage.at_home(large[0], returning.make_room(large[0])).has_value());
    const std::size_t gone = released_count(stage, fids);
    REQUIRE(gone > 0);
    REQUIRE(gone < fids.size());
    const auto made = stage.at_home(large[1], returning.make_room(large[1]));
    REQUIRE_FALSE(made.has_value());
    CHECK(made.error().code == Errc::kNoSpace);
    stage.run_for(1min);
    CHECK(released_count(stage, fids) == gone);
}

TEST_CASE("library: a small recall waits for a large one as long as that has its turn",
          "[library]") {
    TapeStage stage(one_disk());
    const store::Fid large = stage.put(pattern(4096, 98));
    const store::Fid small = stage.put(pattern(4096, 99));
    REQUIRE(stage.sync().has_value());
    store::Volume* const volume = &stage.volume(0);
    const std::uint64_t data_blocks = volume->space_use().data_blocks();
    for (const store::Fid fid : {large, small}) {
        const std::uint64_t blocks = fid == large ? data_blocks * 3 / 5 : 10;
        REQUIRE(stage.release(fid).has_value());
        REQUIRE(stage.at_home(fid, set_released_blocks(volume, fid, blocks)).has_value());
        REQUIRE(stage.at_home(fid, record_recall(volume, fid, 1000 + blocks)).has_value());
    }
    // An upload keeps half of the disk.
    objects::HomeVolume& home = stage.home_volume_of(large);
    const objects::HomeVolume::Hold hold(home);
    const store::Fid upload = home.make_fid();
    objects::DiskUse::Owner& owner =
        home.use().owner({.pool = objects::pool_id("cold"), .owner = "alice"});
    home.uploads().expect(upload, {.owner = &owner, .left_blocks = data_blocks / 2});
    ReturningObjects& returning = stage.staging(0).returning();
    const auto find_room = [&](store::Fid fid) {
        home.uploads().stay(upload, volume->space_use(), stage.world.now());
        const auto made = stage.at_home(fid, returning.make_room(fid));
        if (made) returning.give_up_room(fid);
        return made.has_value();
    };

    REQUIRE_FALSE(find_room(large));
    CHECK(find_room(small));
    stage.run_for(objects::RoomLine::kGrace);
    CHECK_FALSE(find_room(large));
    CHECK_FALSE(find_room(small));
    // Nothing gives the large one its room.
    for (Duration passed{0}; passed < objects::RoomLine::kTurn; passed += 30s) {
        stage.run_for(30s);
        CHECK_FALSE(find_room(large));
    }
    CHECK(find_room(small));
    home.uploads().gone(upload);
}

TEST_CASE("library: a recall of a repack waits for room without a turn", "[library]") {
    TapeStage stage(one_disk());
    const store::Fid repacked = stage.put(pattern(4096, 98));
    const store::Fid wanted = stage.put(pattern(4096, 99));
    REQUIRE(stage.sync().has_value());
    store::Volume* const volume = &stage.volume(0);
    const std::uint64_t data_blocks = volume->space_use().data_blocks();
    for (const store::Fid fid : {repacked, wanted}) {
        const bool is_wanted = fid == wanted;
        const std::uint8_t priority = is_wanted ? kRecallPriorityDefault : kRepackPriority;
        REQUIRE(stage.release(fid).has_value());
        // One that does not fit on the disk together with anything else.
        REQUIRE(stage.at_home(fid, set_released_blocks(volume, fid, data_blocks)).has_value());
        auto recording = record_recall(volume, fid, is_wanted ? 1002UL : 1001UL, priority);
        REQUIRE(stage.at_home(fid, std::move(recording)).has_value());
    }
    stage.put(pattern(10UL * 4096, 97));

    ReturningObjects& returning = stage.staging(0).returning();
    objects::RoomLine& line = stage.home_volume_of(wanted).uploads().line();
    REQUIRE_FALSE(stage.at_home(repacked, returning.make_room(repacked)).has_value());
    CHECK(line.count(stage.world.now()) == 0);
    REQUIRE_FALSE(stage.at_home(wanted, returning.make_room(wanted)).has_value());
    CHECK(line.count(stage.world.now()) == 1);
}

TEST_CASE("library: recalls without a drive wait until there is one", "[library]") {
    TapeStageOptions options = one_disk();
    options.drives = 1;
    TapeStage stage(options);
    const auto fids = put_equal_objects(stage, 6);
    REQUIRE(stage.sync().has_value());
    for (const store::Fid fid : fids) REQUIRE(stage.release(fid).has_value());
    // Writes find out, with one cartridge after the other.
    const std::string drive = stage.library().drives().front().name;
    REQUIRE(stage.at(0, stage.library().unload(drive)).kind == MediaOutcome::Kind::kDone);
    stage.drive(0).faults().load_ppm = 1'000'000;
    stage.put(pattern(1000, 99));
    const auto is_down = [&stage] { return stage.library().drives().front().activity == "down"; };
    for (int tries = 0; tries < 20 && !is_down(); ++tries) {
        REQUIRE_FALSE(stage.sync(10min).has_value());
    }
    REQUIRE(is_down());
    for (std::size_t i = 1; i < fids.size(); ++i) {
        REQUIRE(stage.recall(fids[i]) == RecallAsked::kWaiting);
    }
    stage.run_for(1h);
    CHECK(stage.library().recalls(10).size() == 5);
    const store::Fid cancelled = fids.back();
    const core::WaitOptions wait{};
    auto cancelling = stage.staging_of(cancelled).cancel_recall(cancelled, wait);
    REQUIRE(stage.at_home(cancelled, std::move(cancelling)).has_value());
    stage.run_for(1s);
    CHECK(stage.library().recalls(10).size() == 4);

    // Somebody repairs the drive.
    stage.restart();
    stage.run_for(1h);
    for (std::size_t i = 1; i + 1 < fids.size(); ++i) CHECK_FALSE(stage.is_released(fids[i]));
    CHECK(stage.is_released(cancelled));
}

TEST_CASE("library: a recall that waits takes less than 300 bytes of memory", "[library][memory]") {
    const auto used = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
    // The sanitizers have a malloc() of their own.
    if (used() == 0) return;
    constexpr std::uint64_t kRecalls = 30'000;
    TapeStageOptions options = one_disk();
    // None is read: that would need memory of its own.
    const auto algorithms = io_sched::drive_algorithms();
    options.io.tape.read_algo = &*std::ranges::find(algorithms, std::string_view("grouped_read"),
                                                    &io_sched::DriveAlgorithm::name);
    options.io.tape.grouped_read_mount_bytes = 1ULL << 50;
    options.io.tape.grouped_read_mount_files = 1'000'000;
    options.io.tape.grouped_read_mount_age = 24h;
    options.io.tape.grouped_read_max_wait = 24h;
    options.disk_bytes = 512UL << 20;
    options.cartridge_bytes = 1UL << 30;
    TapeStage stage(options);
    std::vector<store::Fid> fids;
    for (std::uint64_t i = 0; i < kRecalls; ++i) fids.push_back(stage.put(pattern(100, i)));
    REQUIRE(stage.sync(24h).has_value());
    for (const store::Fid fid : fids) REQUIRE(stage.release(fid).has_value());
    for (std::uint64_t i = 0; i < kRecalls; ++i) {
        REQUIRE(
            stage.at_home(fids[i], record_recall(&stage.volume(0), fids[i], i + 1)).has_value());
    }
    unload_all(stage);
    stage.restart();
    const std::size_t before = used();
    const auto waiting = [&stage] { return stage.library().figures().recalls.waiting.get(); };
    for (int tries = 0; tries < 100'000 && waiting() < kRecalls; ++tries) stage.run_for(10ms);
    REQUIRE(waiting() == kRecalls);
    const double bytes = static_cast<double>(used() - before) / kRecalls;
    CAPTURE(bytes);
    CHECK(bytes < 300);

    // Making the list of so many takes long: who asks often gets the same one for some time.
    const store::Fid raised = fids.back();
    const auto priority_of_raised = [&stage, raised] {
        for (const RecallRow& each : stage.library().recalls(kRecalls)) {
            if (each.ticket == raised) return int{each.priority};
        }
        return -1;
    };
    REQUIRE(priority_of_raised() == kRecallPriorityDefault);
    RecallWish wish{.fid = raised, .priority = 200};
    const auto asked = stage.at_home(raised, stage.staging_of(raised).recall(std::move(wish), {}));
    REQUIRE(asked == RecallAsked::kWaiting);
    stage.run_for(100ms);
    CHECK(priority_of_raised() == kRecallPriorityDefault);
    stage.run_for(4s);
    CHECK(priority_of_raised() == 200);
}
