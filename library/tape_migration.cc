// When objects are written to tape, and which.

#include <algorithm>
#include <limits>
#include <utility>

#include "core/random.h"
#include "library/awaited_tape.h"
#include "library/tape_library.h"
#include "objects/fids.h"

namespace fopd::library {

namespace {

// After a batch that failed, its pool waits.
constexpr Duration kAfterFailure = 10s;
// After one whose copies a disk could not record: each attempt costs tape.
constexpr Duration kAfterUnrecorded = 5min;
// After one that could copy none of its objects, because their disk fails or they are in use.
constexpr Duration kAfterNothing = 1s;
// Of a batch, and of each member beside its bytes; more than what CopyBatch counts.
constexpr std::uint64_t kBatchOverhead = 6UL << 20;
constexpr std::uint64_t kMemberOverhead = 32UL << 10;

// A number for the words that keep a collection together.
std::uint64_t collection_number(const StagedObjects::GroupKey& group) {
    std::uint64_t number = 0;
    for (const char each : group.collection) {
        number = core::mix(number, static_cast<unsigned char>(each));
    }
    return group.collection.empty() ? 0 : std::max<std::uint64_t>(number, 1);
}

}  // namespace

std::map<StagedObjects::GroupKey, StagedObjects::Group> TapeLibrary::all_groups() const {
    std::map<StagedObjects::GroupKey, StagedObjects::Group> all;
    for (const auto& of_locality : groups_) {
        for (const StagedObjects::Group& each : of_locality) {
            const auto [place, is_new] = all.emplace(each.key, each);
            if (is_new) continue;
            place->second.bytes += each.bytes;
            place->second.objects += each.objects;
            place->second.oldest = std::min(place->second.oldest, each.oldest);
            place->second.is_urgent = place->second.is_urgent || each.is_urgent;
        }
    }
    return all;
}

bool TapeLibrary::is_due(const Pool& pool, const StagedObjects::Group& group) const {
    return pool.syncs > 0 || group.is_urgent || group.bytes >= pool.options.migrate_bytes ||
           group.objects >= pool.options.migrate_files ||
           parts_.reactor.now() >= after(group.oldest, pool.options.migrate_age);
}

// Returns when to look again, if nothing happens before.
Instant TapeLibrary::begin_batches() {
    Instant next = kNever;
    const Instant now = parts_.reactor.now();
    for (const auto& [key, group] : all_groups()) {
        Pool* const pool = find_pool(key.pool);
        // Not a pool of this library any more.
        if (pool == nullptr || writing_.contains(key)) continue;
        if (now < pool->not_before) {
            next = std::min(next, pool->not_before);
            continue;
        }
        if (!is_due(*pool, group)) {
            next = std::min(next, after(group.oldest, pool->options.migrate_age));
            continue;
        }
        // The end of a batch makes room for another one.
        if (writing_.size() >= units_.size()) continue;
        writing_.insert(key);
        ++pool->batches;
        parts_.reactor.spawn(gate_, migrate(key, pool));
    }
    return next;
}

Task<void> TapeLibrary::migrate(StagedObjects::GroupKey group, Pool* pool) {
    const auto all = all_groups();
    const auto found = all.find(group);
    const std::uint64_t waiting = found == all.end() ? 0 : found->second.bytes;
    const std::uint64_t wanted = std::min(waiting, pool->options.migrate_bytes);
    // Members, labels and the lists of checksums take more than the bytes of the objects.
    const std::uint64_t needed = wanted + wanted / 4 + 2 * kBatchOverhead;
    Room room = room_for(*pool, needed);
    std::vector<CopyBatch::Item> items;
    while (room.for_batch() > 0) {
        const std::uint64_t bytes = room.for_batch();
        items = co_await take_items(group,
                                    {.bytes = std::min(pool->options.migrate_bytes, bytes),
                                     .objects = std::min<std::size_t>(pool->options.migrate_files,
                                                                      1 + bytes / kMemberOverhead),
                                     .object_bytes = room.for_object()});
        if (!items.empty() || room.blank == 0) break;
        // All that wait are larger than the room on the pool's cartridges.
        shelf_->promise(room.blank, pool->id);
        room = room_of(*pool, needed);
    }
    if (items.empty()) {
        const std::uint64_t largest = CopyBatch::largest_object(room.largest_bytes);
        const std::size_t given_up = co_await give_up_larger(group, largest);
        if (given_up == 0) say_short_of_tape(*pool);
        pool->failures += kFailuresMax;
        pool->not_before = after(parts_.reactor.now(), kAfterFailure);
    } else {
        pool->is_short_of_tape = false;
        co_await write_batch(pool, std::move(items), room.free_bytes);
    }
    writing_.erase(group);
    --pool->batches;
    ring();
    changed_.wake_all();
}

Task<std::vector<CopyBatch::Item>> TapeLibrary::take_items(StagedObjects::GroupKey group,
                                                           StagedObjects::Limits limits) {
    std::vector<CopyBatch::Item> items;
    std::uint64_t bytes = 0;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        if (bytes >= limits.bytes || items.size() >= limits.objects) break;
        const StagedObjects::Limits rest{.bytes = limits.bytes - bytes,
                                         .objects = limits.objects - items.size(),
                                         .object_bytes = limits.object_bytes};
        auto job = [&group, rest](StagingDisks& disks) { return disks.staged().take(group, rest); };
        const auto taken =
            co_await homes_->call_at<std::vector<StagedObjects::Object>>(locality, &job);
        if (!taken) continue;
        for (const StagedObjects::Object& each : *taken) {
            items.push_back({.locality = locality, .object = each});
            bytes += each.size_bytes;
        }
    }
    co_return items;
}

// Objects that no cartridge can have. Pieces of an object are on several cartridges.
Task<std::size_t> TapeLibrary::give_up_larger(StagedObjects::GroupKey group, std::uint64_t bytes) {
    std::size_t given_up = 0;
    if (bytes == 0 || bytes >= CopyBatch::Limits{}.piece_bytes) co_return given_up;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [&group, bytes](StagingDisks& disks) {
            return disks.staged().give_up_larger(group, bytes);
        };
        const auto fids = co_await homes_->call_at<std::vector<store::Fid>>(locality, &job);
        if (!fids) continue;
        for (const store::Fid fid : *fids) say_too_large(fid);
        given_up += fids->size();
    }
    co_return given_up;
}

Task<void> TapeLibrary::write_batch(Pool* pool, std::vector<CopyBatch::Item> items,
                                    std::uint64_t free_bytes) {
    const CopyBatch::Parts parts{.reactor = parts_.reactor,
                                 .gate = gate_,
                                 .clock = parts_.clock,
                                 .events = parts_.events,
                                 .homes = *homes_,
                                 .stopping = stopping_};
    const std::uint64_t collection = collection_number(items.front().object.group);
    const Instant began_at = parts_.reactor.now();
    CopyBatch batch(parts, CopyBatch::Limits{}, pool->options.name, std::move(items));
    const AwaitedTape::Scheduler scheduler{.reactor = parts_.reactor, .main = parts_.io};
    const AwaitedTape::Options options{.type = io_sched::IoType::kWrite,
                                       .priority = io_sched::IoPriority::kBackground,
                                       .pool = pool->id,
                                       .collection = collection,
                                       .wait = {.cancel = &stop_}};
    std::vector<io_sched::IoPart> where{
        {.medium = io_sched::kAnyMedium, .size_bytes = std::min(batch.bytes(), free_bytes)}};
    AwaitedTape request(scheduler, batch, options, std::move(where));
    const auto written = co_await request;
    show_drives();
    const CopyBatch::Outcome& outcome = batch.outcome();
    co_await put_back(&batch.all(), outcome.too_large);
    if (outcome.copies > 0) pool->failures = 0;
    if (!written && !stopping_) {
        ++pool->failures;
        pool->not_before = after(parts_.reactor.now(), kAfterFailure);
    }
    const bool did_nothing = outcome.copies == 0 && outcome.dead == 0;
    if (written && did_nothing && !outcome.tape_ended) {
        pool->not_before = after(parts_.reactor.now(), kAfterNothing);
    }
    if (outcome.unrecorded > 0) {
        ++pool->failures;
        pool->not_before = after(parts_.reactor.now(), kAfterUnrecorded);
    }
    const bool says_nothing = did_nothing && (written || stopping_);
    if (says_nothing) co_return;
    core::emit(parts_.events, written ? core::Level::kInfo : core::Level::kWarn, "library.migrated",
               {{"pool", std::string_view(pool->options.name)},
                {"result", written ? std::string_view("done") : written.error().context},
                {"copies", outcome.copies},
                {"dead", outcome.dead},
                {"bytes", outcome.bytes},
                {"seconds", in_seconds(parts_.reactor.now() - began_at)}});
}

Task<void> TapeLibrary::put_back(const std::vector<CopyBatch::Item>* items,
                                 std::optional<store::Fid> given_up) {
    if (given_up) say_too_large(*given_up);
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [items, locality, given_up](StagingDisks& disks) {
            for (const CopyBatch::Item& each : *items) {
                if (each.locality != locality) continue;
                if (given_up == each.object.fid) disks.staged().give_up(each.object.fid);
                disks.staged().put_back(each.object.fid);
            }
        };
        [[maybe_unused]] const auto told = co_await homes_->call_at<void>(locality, &job);
    }
}

std::uint64_t TapeLibrary::Room::for_batch() const {
    const std::uint64_t room = free_bytes - free_bytes / 8;
    return room > kBatchOverhead ? room - kBatchOverhead : 0;
}

std::uint64_t TapeLibrary::Room::for_object() const {
    const std::uint64_t bytes = CopyBatch::largest_object(free_bytes);
    return bytes >= CopyBatch::Limits{}.piece_bytes ? std::numeric_limits<std::uint64_t>::max()
                                                    : bytes;
}

TapeLibrary::Room TapeLibrary::room_of(const Pool& pool, std::uint64_t needed_bytes) const {
    Room room;
    for (const Cartridge& each : shelf_->table().all()) {
        const io_sched::IoMedium* const medium =
            parts_.io.media().find(io_sched::MediumId{each.id});
        if (medium == nullptr) continue;
        const bool is_blank = each.state == CartridgeState::kBlank;
        if (is_blank && !shelf_->is_promised(each.id)) {
            if (room.blank == 0) room.blank = each.id;
            room.largest_bytes = std::max(room.largest_bytes, medium->free_bytes);
            continue;
        }
        if (medium->pool != pool.id) continue;
        Cartridge empty = each;
        empty.capacity_bytes = medium->capacity_bytes;
        empty.used_bytes = 0;
        room.largest_bytes = std::max(room.largest_bytes, MediaShelf::free_bytes(empty));
        if (medium->use != io_sched::MediumUse::kAll) continue;
        // What is left of a nearly full cartridge is not worth a mount.
        const bool is_nearly_full =
            medium->free_bytes < medium->capacity_bytes / MediaShelf::kNearlyFullPart;
        if (is_nearly_full && medium->free_bytes < needed_bytes) continue;
        room.free_bytes = std::max(room.free_bytes, medium->free_bytes);
    }
    return room;
}

// A cartridge of the pool is used until it is nearly full; then a blank one becomes one of the
// pool.
TapeLibrary::Room TapeLibrary::room_for(const Pool& pool, std::uint64_t needed_bytes) {
    const Room room = room_of(pool, needed_bytes);
    if (room.free_bytes >= needed_bytes || room.blank == 0) return room;
    shelf_->promise(room.blank, pool.id);
    return room_of(pool, needed_bytes);
}

void TapeLibrary::say_too_large(store::Fid fid) {
    const std::string object = objects::format_fid(fid);
    core::emit(parts_.events, core::Level::kError, "library.object_too_large",
               {{"object", std::string_view(object)}});
}

void TapeLibrary::say_short_of_tape(Pool& pool) {
    if (std::exchange(pool.is_short_of_tape, true)) return;
    core::emit(parts_.events, core::Level::kError, "library.no_cartridge",
               {{"pool", std::string_view(pool.options.name)}});
}

}  // namespace fopd::library
