#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/memory_disk.h"
#include "store/map_index.h"
#include "store/volume.h"
#include "store/volume_check.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/store/simulated_machine.h"

namespace fopd::store::testing::tape {

inline constexpr Fid kObject{.high = 3ULL << 48, .low = 1};
inline constexpr Fid kOther{.high = 3ULL << 48, .low = 2};
inline constexpr VsnText kFirst{'A', 'A', '0', '0', '0', '1'};
inline constexpr VsnText kSecond{'A', 'A', '0', '0', '0', '2'};
inline constexpr std::uint64_t kBlocks = 8;
inline constexpr std::uint64_t kBytes = kBlocks * 4096;

enum class Start : std::uint8_t { kWithIndex, kWithoutIndex };

// A volume that can be opened again.
class TapeBench : fopd::testing::Replay {
public:
    TapeBench() : Replay(1), world(1) {
        start();
        REQUIRE(run(volume->format()).has_value());
        REQUIRE(run(volume->open(Volume::Mode::kServe)).has_value());
    }
    ~TapeBench() { machine->drop_coroutines(); }

    void start_again(Start how) {
        REQUIRE(run(volume->close()).has_value());
        start_closed(how);
    }
    // REQUIRES: it is closed.
    void start_closed(Start how) {
        if (how == Start::kWithoutIndex) {
            index_image.entries.clear();
            index_image.applied = 0;
        }
        start();
        REQUIRE(run(volume->open(Volume::Mode::kServe)).has_value());
    }

    template <typename T>
    T run(Task<T> task) {
        auto result = world.run(machine->reactor(), std::move(task));
        REQUIRE(result.has_value());
        return std::move(*result);
    }
    core::WaitOptions soon() { return {.deadline = after(machine->reactor().now(), 10s)}; }

    Object object(Fid fid) {
        const auto found = volume->map().find(fid);
        REQUIRE(found.has_value());
        REQUIRE(found->has_value());
        Object object = **found;
        object.owner = "alice";
        object.group = "users";
        object.name = {};
        volume->map().release();
        return object;
    }
    // Writes the blocks, and so makes the next content of the object.
    Task<Result<void>> write(Fid fid, BlockRange blocks) {
        auto room = co_await volume->reserve(kPutRecordBytesMax + extent_record_bytes(64), soon());
        if (!room) co_return std::unexpected(room.error());
        const auto found = volume->map().find(fid);
        if (!found) co_return std::unexpected(found.error());
        Object next{.mode = 0600, .owner = "alice", .group = "users"};
        if (found->has_value()) next = **found;
        next.next_content();
        next.size_bytes = std::max(next.size_bytes, blocks.end() * 4096);
        Change change;
        ValueBuffer value;
        change.records.put(Key::object(fid), write_object(value, next));
        const auto added = add_extent(change, fid, blocks);
        if (!added) co_return added;
        const auto done = co_await commit(&change, std::move(*room));
        if (!done) volume->give_back(last_allocated_);
        co_return done;
    }
    Result<void> add_extent(Change& change, Fid fid, BlockRange blocks) {
        const auto range = volume->allocate(static_cast<std::uint32_t>(blocks.count));
        if (!range) return std::unexpected(range.error());
        REQUIRE(range->count == blocks.count);
        last_allocated_ = *range;
        const std::vector<std::uint32_t> checksums(blocks.count);
        change.records.extent(
            fid, {.first = blocks.first, .block = range->block, .checksums = checksums});
        return {};
    }
    Task<Result<void>> put(Fid fid, Object next) {
        auto room = co_await volume->reserve(kPutRecordBytesMax, soon());
        if (!room) co_return std::unexpected(room.error());
        Change change;
        ValueBuffer value;
        change.records.put(Key::object(fid), write_object(value, next));
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> truncate(Fid fid, std::uint64_t blocks) {
        auto room = co_await volume->reserve(kPutRecordBytesMax + kPunchRecordBytes, soon(),
                                             Purpose::kCutting);
        if (!room) co_return std::unexpected(room.error());
        Change change;
        const BlockRange rest{.first = blocks, .count = kObjectBlocksMax - blocks};
        const auto punched = co_await volume->punch(&change, fid, rest, soon());
        if (!punched) co_return std::unexpected(punched.error());
        Object next = object(fid);
        next.next_content();
        next.size_bytes = blocks * 4096;
        next.is_released = false;
        next.released_blocks = 0;
        ValueBuffer value;
        change.records.put(Key::object(fid), write_object(value, next));
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> punch(Fid fid, BlockRange blocks) {
        auto room = co_await volume->reserve(kPunchRecordBytes, soon(), Purpose::kCutting);
        if (!room) co_return std::unexpected(room.error());
        Change change;
        change.records.punch(fid, blocks.first, blocks.count);
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> remove(Fid fid) {
        auto room = co_await volume->reserve(kRemoveRecordBytes, soon(), Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        Change change;
        change.records.remove(fid);
        co_return co_await commit(&change, std::move(*room));
    }
    Task<Result<void>> bring_part(BringingBack* attempt, BlockRange blocks) {
        auto room = co_await volume->reserve(extent_record_bytes(64), soon());
        if (!room) co_return std::unexpected(room.error());
        Change change;
        const auto added = add_extent(change, attempt->fid(), blocks);
        if (!added) co_return added;
        const auto begun =
            volume->begin_part(*attempt, change, blocks, std::move(*room), Data::kNone);
        if (!begun) volume->give_back(last_allocated_);
        if (!begun) co_return begun;
        const auto finished = co_await volume->finish(&change);
        if (!finished) co_return std::unexpected(finished.error());
        co_return Result<void>{};
    }
    Task<Result<void>> commit(Change* change, Reservation room) {
        const auto begun =
            volume->begin(*change, std::move(room), Durability::kDurable, Data::kNone);
        if (!begun) co_return begun;
        const auto finished = co_await volume->finish(change);
        if (!finished) co_return std::unexpected(finished.error());
        co_return Result<void>{};
    }

    // -- what the tests do most --

    Copy copy_of(Fid fid, const VsnText& vsn, std::uint32_t file) {
        return {.fid = fid,
                .length = kBytes,
                .version = object(fid).content_version(),
                .cartridge = {.vsn = vsn, .generation = 1},
                .position = {.file = file},
                .block = file * 100ULL,
                .checksum = 7,
                .written_s = 1'800'000'000};
    }
    Result<Volume::CopiesAdded> add(std::vector<Copy> copies) {
        return run(volume->add_copies(std::move(copies), soon()));
    }
    Result<Volume::ReleasedBytes> release(Fid fid) {
        return run(volume->release(fid, object(fid).content_version(), soon()));
    }
    // An object of kBlocks blocks, with a copy, without its bytes.
    void make_released(Fid fid, std::uint32_t file = 1) {
        REQUIRE(run(write(fid, {.first = 0, .count = kBlocks})).has_value());
        REQUIRE(add({copy_of(fid, kFirst, file)}).has_value());
        REQUIRE(release(fid).has_value());
    }
    Result<bool> has_block(Fid fid, std::uint64_t block) {
        auto extents = volume->map().extents(fid, {.first = block, .count = 1});
        const auto found = extents.next();
        volume->map().release();
        if (!found) return std::unexpected(found.error());
        return found->has_value();
    }
    CheckReport check() {
        VolumeCheck check(*volume, {});
        REQUIRE(run(check.run()).has_value());
        return check.report();
    }
    // No faults; otherwise the first one.
    std::string fault() {
        const CheckReport report = check();
        return report.findings.empty() ? "" : report.findings.front().reason;
    }

    core::VirtualWorld world;
    core::Random random{1};
    devices::DiskImage image{64UL << 20};
    MapImage index_image;
    std::unique_ptr<SimulatedMachine> machine;
    std::unique_ptr<Volume> volume;

private:
    void start() {
        volume.reset();
        index_.reset();
        disk_.reset();
        if (machine) machine->drop_coroutines();
        machine = std::make_unique<SimulatedMachine>(world);
        disk_ = machine->plug_in(image, {.seed = 1});
        index_ = std::make_unique<MapIndex>(
            MapIndex::World{.reactor = machine->reactor(), .random = random}, index_image);
        volume = std::make_unique<Volume>(VolumeParts{.reactor = machine->reactor(),
                                                      .device = *disk_,
                                                      .index = *index_,
                                                      .events = events_},
                                          VolumeOptions{.slot = 3, .segment_blocks = 64});
    }

    std::unique_ptr<devices::MemoryDisk> disk_;
    std::unique_ptr<MapIndex> index_;
    core::NullEventSink events_;
    DiskRange last_allocated_;
};

template <typename T>
Errc code_of(const Result<T>& result) {
    REQUIRE(!result.has_value());
    return result.error().code;
}

}  // namespace fopd::store::testing::tape
