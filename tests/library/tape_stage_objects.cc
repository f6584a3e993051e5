// The objects of a TapeStage: how they are made, changed, read, recalled and released.

#include <algorithm>
#include <utility>

#include "core/crc32c.h"
#include "objects/block_io.h"
#include "objects/home_volume.h"
#include "objects/object_change.h"
#include "store/aligned_memory.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

namespace fopd::library::testing {

using objects::kBlock;

Bytes pattern(std::size_t size_bytes, std::uint64_t seed) {
    core::Random random(seed + 1);
    Bytes bytes(size_bytes);
    for (std::byte& each : bytes) each = static_cast<std::byte>(random.next());
    return bytes;
}

StagingDisks& TapeStage::staging_of(store::Fid fid) {
    return staging(home_of(disk_of(fid)));
}

objects::HomeVolume& TapeStage::home_volume_of(store::Fid fid) {
    return *localities_[home_of(disk_of(fid))]->stores->find(fid.slot());
}

std::optional<store::Fid> TapeStage::find_name(std::string_view wanted, std::uint32_t locality) {
    const objects::ObjectName of_pool{.pool = objects::pool_id(options.pool.name), .name = wanted};
    const auto found = at(locality, localities_[locality]->names.find(of_pool));
    REQUIRE(found.has_value());
    if (!*found) return std::nullopt;
    return (*found)->fid;
}

bool TapeStage::exists(store::Fid fid) {
    if (disk_of(fid) >= options.disks) return false;
    const auto object = volume(disk_of(fid)).map().find(fid);
    REQUIRE(object.has_value());
    const bool exists = object->has_value();
    volume(disk_of(fid)).map().release();
    return exists;
}

// Its texts are the object's while it stays as it is.
store::Object TapeStage::attributes(store::Fid fid) {
    const auto object = volume(disk_of(fid)).map().find(fid);
    REQUIRE(object.has_value());
    REQUIRE(object->has_value());
    return **object;
}

// A new content for the object, or its removal.
Task<Result<void>> TapeStage::change(store::Fid fid, const Bytes* bytes) {
    Locality& locality = *localities_[home_of(disk_of(fid))];
    objects::HomeVolume& home = *locality.stores->find(fid.slot());
    const objects::HomeVolume::Hold hold(home);
    objects::RangeLock lock;
    const objects::LockRequest whole{
        .fid = fid, .range = objects::kWholeObject, .mode = objects::LockMode::kExclusive};
    const auto locked = co_await home.locks().acquire(lock, whole, {});
    if (!locked) co_return locked;
    objects::ObjectChange change(home);
    const objects::PoolOwner alice{.pool = objects::pool_id(options.pool.name), .owner = "alice"};
    change.set_block_owner(alice);
    if (bytes == nullptr) {
        const auto blocks = co_await home.volume().count_owned(fid, {});
        if (!blocks) co_return std::unexpected(blocks.error());
        change.will_free(alice, {.blocks = *blocks});
        change.remove(fid);
        auto room = co_await change.reserve(0, {}, store::Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        const auto removed = co_await change.commit(std::move(*room));
        if (!removed) co_return std::unexpected(removed.error());
        co_return Result<void>{};
    }
    const std::size_t blocks = (bytes->size() + kBlock - 1) / kBlock;
    for (std::uint64_t at = 0; at < blocks; at += 1024) {
        const std::uint64_t count = std::min<std::uint64_t>(blocks - at, 1024);
        const auto charged = change.charge_holes(fid, {.first = at, .count = count});
        if (!charged) co_return std::unexpected(charged.error());
    }
    auto memory = store::AlignedMemory::allocate(std::max<std::size_t>(blocks, 1) * kBlock);
    if (!memory) co_return std::unexpected(memory.error());
    std::ranges::fill(memory->span(), std::byte{0});
    std::ranges::copy(*bytes, memory->span().begin());
    objects::BlockIo io;
    io.use({.reactor = locality.reactor.get(), .scheduler = &locality.io, .medium = home.medium()});
    std::deque<std::vector<std::uint32_t>> checksums;
    for (std::size_t at = 0; at < blocks;) {
        const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(blocks - at, 200));
        const auto range = co_await change.allocate(wanted, {});
        if (!range) {
            change.give_back();
            co_return std::unexpected(range.error());
        }
        auto& sums = checksums.emplace_back();
        for (std::size_t i = 0; i < range->count; ++i) {
            sums.push_back(core::crc32c(memory->span().subspan((at + i) * kBlock, kBlock)));
        }
        change.records().extent(fid, {.first = at, .block = range->block, .checksums = sums});
        const core::Buffer from{.data = memory->span().data() + at * kBlock,
                                .size_bytes = range->count * kBlock};
        io.write(from, range->block, {});
        const auto written = co_await io.wait();
        if (!written) co_return written;
        at += range->count;
    }
    const auto before = home.volume().map().find(fid);
    if (!before) co_return std::unexpected(before.error());
    store::Object object = *before ? **before : store::Object{.version = 0, .mode = 0600};
    object.pool = objects::pool_id(options.pool.name);
    object.size_bytes = bytes->size();
    if (bytes->empty()) {
        object.is_released = false;
        object.released_blocks = 0;
    }
    object.owner = "alice";
    if (!before->has_value()) {
        object.collection = collection;
        object.group = group;
        object.name = name;
        object.name_version = name.empty() ? 0 : ++name_version;
    }
    object.changed = world.clock().wall();
    object.next_content();
    change.put_object(fid, object);
    auto room = co_await change.reserve(0, {});
    if (!room) co_return std::unexpected(room.error());
    const auto done = co_await change.commit(std::move(*room));
    if (!done) co_return std::unexpected(done.error());
    co_return Result<void>{};
}

store::Fid TapeStage::put(const Bytes& bytes, std::uint32_t disk) {
    Locality& locality = *localities_[home_of(disk)];
    const store::Fid fid = locality.stores->find(static_cast<store::Slot>(1 + disk))->make_fid();
    const auto done = at_home(fid, change(fid, &bytes));
    if (!done) FAIL(describe(done.error()));
    return fid;
}

void TapeStage::overwrite(store::Fid fid, const Bytes& bytes) {
    const auto done = at_home(fid, change(fid, &bytes));
    if (!done) FAIL(describe(done.error()));
}

void TapeStage::remove(store::Fid fid) {
    const auto done = at_home(fid, change(fid, nullptr));
    if (!done) FAIL(describe(done.error()));
}

Task<Result<std::optional<Bytes>>> TapeStage::read_all(store::Fid fid) {
    Locality& locality = *localities_[home_of(disk_of(fid))];
    objects::HomeVolume& home = *locality.stores->find(fid.slot());
    const auto object = home.volume().map().find(fid);
    if (!object) co_return std::unexpected(object.error());
    ENSURE(object->has_value());
    if ((*object)->is_released) co_return std::optional<Bytes>();
    const std::uint64_t size = (*object)->size_bytes;
    const std::uint64_t blocks = (size + kBlock - 1) / kBlock;
    auto memory = store::AlignedMemory::allocate(std::max<std::size_t>(blocks, 1) * kBlock);
    if (!memory) co_return std::unexpected(memory.error());
    std::ranges::fill(memory->span(), std::byte{0});
    struct Run {
        std::uint64_t first = 0;
        std::uint64_t block = 0;
        std::uint64_t count = 0;
    };
    std::vector<Run> runs;
    for (std::uint64_t at = 0; at < blocks; at += 1024) {
        const std::uint64_t count = std::min<std::uint64_t>(blocks - at, 1024);
        auto extents = home.volume().map().extents(fid, {.first = at, .count = count});
        for (;;) {
            const auto extent = extents.next();
            if (!extent) co_return std::unexpected(extent.error());
            if (!extent->has_value()) break;
            runs.push_back({.first = (*extent)->first,
                            .block = (*extent)->block,
                            .count = (*extent)->count()});
        }
    }
    objects::BlockIo io;
    io.use({.reactor = locality.reactor.get(), .scheduler = &locality.io, .medium = home.medium()});
    for (const Run& run : runs) {
        const core::Buffer into{.data = memory->span().data() + run.first * kBlock,
                                .size_bytes = run.count * kBlock};
        io.read(into, run.block, {});
        const auto got = co_await io.wait();
        if (!got) co_return std::unexpected(got.error());
    }
    const auto bytes = memory->span().first(size);
    co_return std::optional<Bytes>(Bytes(bytes.begin(), bytes.end()));
}

std::optional<Bytes> TapeStage::read(store::Fid fid) {
    auto bytes = at_home(fid, read_all(fid));
    if (!bytes) FAIL(describe(bytes.error()));
    return *std::move(bytes);
}

bool TapeStage::is_released(store::Fid fid) {
    const auto object = volume(disk_of(fid)).map().find(fid);
    REQUIRE(object.has_value());
    REQUIRE(object->has_value());
    const bool is_released = (*object)->is_released;
    volume(disk_of(fid)).map().release();
    return is_released;
}

std::uint64_t TapeStage::owned_blocks() {
    std::uint64_t blocks = 0;
    const objects::PoolOwner alice{.pool = objects::pool_id(options.pool.name), .owner = "alice"};
    for (std::uint32_t i = 0; i < options.disks; ++i) {
        objects::Stores& stores = *localities_[home_of(i)]->stores;
        objects::HomeVolume& home = *stores.find(static_cast<store::Slot>(1 + i));
        blocks += home.use().owner(alice).amount().blocks;
    }
    return blocks;
}

std::vector<store::Copy> TapeStage::copies_of(store::Fid fid) {
    const auto copies = volume(disk_of(fid)).copies_of(fid);
    REQUIRE(copies.has_value());
    return *copies;
}

Bytes TapeStage::recalled(store::Fid fid) {
    auto bytes = read(fid);
    for (int tries = 0; !bytes && tries < 3; ++tries) {
        const auto asked = recall(fid);
        if (!asked) FAIL(describe(asked.error()));
        const RecallEnd end = wait_for(fid);
        INFO(end.reason);
        REQUIRE(end.how == RecallEnd::How::kDone);
        bytes = read(fid);
    }
    REQUIRE(bytes.has_value());
    return *std::move(bytes);
}

Result<void> TapeStage::sync(Duration patience) {
    const core::WaitOptions wait{.deadline = after(world.now(), patience)};
    return at(0, library().sync(options.pool.name, wait));
}

Result<void> TapeStage::release(store::Fid fid) {
    const core::WaitOptions wait{.deadline = after(world.now(), 1min)};
    return at_home(fid, staging_of(fid).release(fid, wait));
}

Result<RecallAsked> TapeStage::recall(store::Fid fid, Duration pin) {
    const core::WaitOptions wait{.deadline = after(world.now(), 1min)};
    return at_home(fid, staging_of(fid).recall({.fid = fid, .pin = pin}, wait));
}

RecallEnd TapeStage::wait_for(store::Fid fid, Duration patience) {
    const core::WaitOptions wait{.deadline = after(world.now(), patience)};
    const auto end = at_home(fid, staging_of(fid).wait_for_recall(fid, {}, wait));
    if (!end) FAIL(describe(end.error()));
    return *end;
}

// -- what several tests do --

Book put_some(TapeStage& stage, std::size_t count, std::size_t size_max) {
    Book book;
    for (std::size_t i = 0; i < count; ++i) {
        const Bytes bytes = pattern(1 + stage.random.below(size_max), stage.random.next());
        const auto disk = static_cast<std::uint32_t>(i % stage.options.disks);
        book.emplace(stage.put(bytes, disk), bytes);
    }
    return book;
}

void release_all(TapeStage& stage, const Book& book) {
    for (const auto& [fid, bytes] : book) {
        const auto released = stage.release(fid);
        if (!released) FAIL(describe(released.error()));
        REQUIRE(released.has_value());
    }
}

void check_all(TapeStage& stage, const Book& book) {
    for (const auto& [fid, bytes] : book) {
        const Bytes found = stage.recalled(fid);
        const bool is_same = found == bytes;
        REQUIRE(is_same);
    }
}

}  // namespace fopd::library::testing
