// How the library decides when objects are written to tape, and which ones.

#include <algorithm>
#include <functional>
#include <utility>

#include "library/awaited_tape.h"
#include "library/outgoing_copies.h"
#include "library/tape_library.h"
#include "objects/fids.h"

namespace fopd::library {

namespace {

// The pause of a pool after a batch that failed.
constexpr Duration kAfterFailure = 10s;
// The pause after a batch whose copies a disk could not record: each attempt uses up tape.
constexpr Duration kAfterUnrecorded = 5min;
// The pause after a batch that copied no object, since their disk fails or they are in use.
constexpr Duration kAfterNothing = 1s;
// Urgent groups go first, but one of so many batches is of the group that has waited for longest:
// it is written in the end, however many urgent ones there are.
constexpr std::uint64_t kBatchesByAge = 4;
// How long it is known when a group was written that has nothing to write.
constexpr Duration kTurnKept = 10min;
// The interval of inventories while objects wait for a cartridge.
constexpr Duration kLookForMedia = 1min;
// How long objects wait for a cartridge of their pool that others use, before a blank one becomes
// one of the pool.
constexpr Duration kInUse = 30s;
// The space on tape that a batch takes, and each member, beside the bytes of the objects; an upper
// bound of the figures of CopyBatch.
constexpr std::uint64_t kBatchOverhead = 6UL << 20;
constexpr std::uint64_t kMemberOverhead = 32UL << 10;

void tell_migrated(core::EventSink& events, std::string_view pool,
                   const CopyJoin::Recorded& outcome, const Result<void>& written, Duration took) {
    const std::string result = written ? "done" : describe(written.error());
    core::emit(events, written ? core::Level::kInfo : core::Level::kWarn, "library.migrated",
               {{"pool", pool},
                {"result", std::string_view(result)},
                {"copies", outcome.copies},
                {"dead", outcome.dead},
                {"bytes", outcome.bytes},
                {"seconds", in_seconds(took)}});
}

}  // namespace

struct TapeLibrary::WaitingBatch {
    const AwaitedTape& request;
    const Pool& pool;
    std::uint64_t needed_bytes = 0;
    Instant look_at{};
};

std::map<StagedObjects::GroupKey, StagedObjects::Group> TapeLibrary::all_groups() const {
    std::map<StagedObjects::GroupKey, StagedObjects::Group> all;
    for (const auto& of_locality : groups_) {
        for (const StagedObjects::Group& each : of_locality) {
            const auto [at, is_new] = all.emplace(each.key, each);
            if (is_new) continue;
            at->second.bytes += each.bytes;
            at->second.objects += each.objects;
            at->second.oldest = std::min(at->second.oldest, each.oldest);
            at->second.is_urgent = at->second.is_urgent || each.is_urgent;
        }
    }
    return all;
}

bool TapeLibrary::is_due(const Pool& pool, const StagedObjects::Group& group) const {
    const bool is_awaited = group.key.moves ? pool.moves > 0 : pool.syncs > 0;
    return is_awaited || group.is_urgent || group.bytes >= pool.options.migrate_bytes ||
           group.objects >= pool.options.migrate_files ||
           parts_.reactor.now() >= after(group.oldest, pool.options.migrate_age);
}

// A group that may be written now.
struct TapeLibrary::Due {
    StagedObjects::GroupKey key{};
    Pool* pool = nullptr;
    bool is_urgent = false;
    Instant since{};  // It has waited: for its first batch, or since the last one.
};

// Those of all pools; `next` is made the time when there may be more.
std::vector<TapeLibrary::Due> TapeLibrary::due_groups(Instant* next) {
    std::vector<Due> due;
    const Instant now = parts_.reactor.now();
    const auto all = all_groups();
    std::erase_if(turns_, [&](const auto& each) {
        return !all.contains(each.first) && !writing_.contains(each.first) &&
               after(each.second.begun_at, kTurnKept) < now;
    });
    for (const auto& [key, group] : all) {
        Pool* const pool = find_pool(key.pool);
        // The library does not have the pool any more, or is writing this group.
        if (pool == nullptr || writing_.contains(key)) continue;
        const Instant not_before = std::max(pool->not_before, pool->paused_until);
        if (now < not_before) {
            *next = std::min(*next, not_before);
            continue;
        }
        if (!is_due(*pool, group)) {
            *next = std::min(*next, after(group.oldest, pool->options.migrate_age));
            continue;
        }
        const auto turn = turns_.find(key);
        due.push_back({.key = key,
                       .pool = pool,
                       .is_urgent = group.is_urgent || (!key.moves && pool->syncs > 0),
                       .since = turn == turns_.end()
                                    ? group.oldest
                                    : std::max(group.oldest, turn->second.begun_at)});
    }
    return due;
}

// Begins the batches that are due. Returns when to call it again at the latest.
Instant TapeLibrary::begin_batches() {
    Instant next = kNever;
    std::vector<Due> due = due_groups(&next);
    // When all drives have a batch, the end of one begins the next.
    while (!due.empty() && writing_.size() < units_.size()) {
        const bool by_age = ++batches_begun_ % kBatchesByAge == 0;
        const auto first = std::ranges::min_element(due, {}, [by_age](const Due& each) {
            return std::pair(by_age || !each.is_urgent, each.since);
        });
        writing_.insert(first->key);
        turns_[first->key].begun_at = parts_.reactor.now();
        ++first->pool->batches;
        parts_.reactor.spawn(gate_, migrate(first->key, first->pool));
        due.erase(first);
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
    const bool has_drives = has_drives_for(*pool);
    bool is_waiting = true;  // The group lacks a cartridge with room, or drives.
    bool has_looked = false;
    while (has_drives) {
        const std::uint64_t bytes = room.for_batch();
        items = co_await take_items(group,
                                    {.bytes = std::min(pool->options.migrate_bytes, bytes),
                                     .objects = std::min<std::size_t>(pool->options.migrate_files,
                                                                      1 + bytes / kMemberOverhead),
                                     .object_bytes = largest_of(*pool, room.free_bytes)});
        if (!items.empty()) break;
        is_waiting = co_await has_waiting(group);
        if (!is_waiting) break;
        if (room.blank == 0) {
            if (std::exchange(has_looked, true) || !may_look_for_media(*pool)) break;
            co_await look_again();
            room = room_for(*pool, needed);
            continue;
        }
        // No waiting object fits on the pool's cartridges.
        shelf_->promise(room.blank, pool->id);
        room = room_of(*pool, needed);
    }
    if (!has_drives) is_waiting = co_await has_waiting(group);
    if (!items.empty()) {
        pool->is_short_of_tape = false;
        pool->is_short_of_drives = false;
        turns_[group].stuck = 0;
        co_await write_batch(pool, std::move(items), room.free_bytes);
    } else if (is_waiting) {
        std::size_t given_up = 0;
        if (!has_drives) {
            say_short_of_drives(*pool);
        } else {
            given_up = co_await give_up_larger(group, largest_of(*pool, room.largest_bytes));
            if (given_up == 0) say_short_of_tape(*pool);
        }
        pool->figures->failures.add(std::max<std::size_t>(given_up, 1));
        if (given_up == 0) {
            Turn& turn = turns_[group];
            turn.stuck = ++stuck_count_;
            turn.lacks_drives = !has_drives;
        }
        pool->not_before = after(parts_.reactor.now(), kAfterFailure);
    }
    writing_.erase(group);
    --pool->batches;
    ring();
    tell_changed();
}

bool TapeLibrary::may_look_for_media(const Pool& pool) const {
    return pool.syncs > 0 || !last_look_ ||
           parts_.reactor.now() >= after(*last_look_, kLookForMedia);
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

// Whether objects of the group still wait: they may have been removed meanwhile.
Task<bool> TapeLibrary::has_waiting(StagedObjects::GroupKey group) {
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        auto job = [&group](StagingDisks& disks) { return disks.staged().has_waiting(group); };
        const auto waits = co_await homes_->call_at<bool>(locality, &job);
        if (waits && *waits) co_return true;
    }
    co_return false;
}

// Gives up the objects that no cartridges can hold.
Task<std::size_t> TapeLibrary::give_up_larger(StagedObjects::GroupKey group, std::uint64_t bytes) {
    std::size_t given_up = 0;
    if (bytes == 0) co_return given_up;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        using Named = std::pair<store::Fid, std::string>;
        auto job = [&group, bytes](StagingDisks& disks) {
            std::vector<Named> larger;
            for (const store::Fid fid : disks.staged().give_up_larger(group, bytes)) {
                larger.emplace_back(fid, disks.name_of(fid));
            }
            return larger;
        };
        const auto larger = co_await homes_->call_at<std::vector<Named>>(locality, &job);
        if (!larger) continue;
        for (const auto& [fid, name] : *larger) say_too_large(fid, name);
        given_up += larger->size();
    }
    co_return given_up;
}

Task<void> TapeLibrary::write_batch(Pool* pool, std::vector<CopyBatch::Item> items,
                                    std::uint64_t free_bytes) {
    const std::uint32_t copies = pool->options.copies;
    CopyJoin join({.reactor = parts_.reactor, .events = parts_.events, .homes = *homes_}, copies);
    const CopyBatch::Parts parts{.reactor = parts_.reactor,
                                 .gate = gate_,
                                 .clock = parts_.clock,
                                 .events = parts_.events,
                                 .homes = *homes_,
                                 .stopping = stopping_,
                                 .join = join};
    const std::uint64_t collection =
        MediaShelf::collection_number(items.front().object.group.collection);
    const Instant began_at = parts_.reactor.now();
    const CopyBatch::Wish wish{.pool = pool->options.name, .copies = copies};
    const CopyBatch::Limits limits{.piece_bytes = pool->options.piece_bytes};
    std::vector<std::unique_ptr<CopyBatch>> batches;
    for (std::uint32_t i = 0; i < copies; ++i) {
        batches.push_back(std::make_unique<CopyBatch>(parts, limits, wish, items));
    }
    const std::uint64_t bytes = std::min(batches.front()->bytes(), free_bytes);
    CopyBatches all(join, std::move(batches));
    const AwaitedTape::Scheduler scheduler{.reactor = parts_.reactor, .main = parts_.io};
    const AwaitedTape::Options options{.type = io_sched::IoType::kWrite,
                                       .priority = io_sched::IoPriority::kBackground,
                                       .pool = pool->id,
                                       .collection = collection,
                                       .cancel = &stop_};
    std::vector<io_sched::IoPart> where(copies,
                                        {.medium = io_sched::kAnyMedium, .size_bytes = bytes});
    AwaitedTape request(scheduler, all, options, std::move(where));
    WaitingBatch waiting{.request = request,
                         .pool = *pool,
                         .needed_bytes = bytes,
                         .look_at = after(began_at, kInUse)};
    waiting_batches_.push_back(&waiting);
    ring();
    auto written = co_await request;
    std::erase(waiting_batches_, &waiting);
    if (written && join.failed()) {
        written = std::unexpected(
            Error{.code = Errc::kIo, .context = "not all cartridges got their copies"});
    }
    show_drives();
    const CopyJoin::Recorded& outcome = join.recorded();
    std::optional<store::Fid> too_large;
    bool tape_ended = false;
    std::uint64_t not_copied = 0;  // The maximum, as all batches have the same objects.
    for (const auto& each : all.all()) {
        const CopyBatch::Outcome& of_batch = each->outcome();
        if (of_batch.too_large) too_large = of_batch.too_large;
        tape_ended = tape_ended || of_batch.tape_ended;
        not_copied = std::max(not_copied, of_batch.not_copied);
    }
    co_await put_back(&items, too_large);
    pool->figures->copies.add(outcome.copies + outcome.dead);
    pool->figures->copied_bytes.add(outcome.bytes);
    pool->figures->failures.add(not_copied + (too_large ? 1 : 0));
    if (outcome.copies > 0) pool->failures = 0;
    if (!written && !stopping_) note_write_failed(*pool, request.where());
    const bool did_nothing = outcome.copies == 0 && outcome.dead == 0;
    if (written && did_nothing && !tape_ended) {
        pool->not_before = after(parts_.reactor.now(), kAfterNothing);
    }
    if (outcome.unrecorded > 0) {
        ++pool->failures;
        ++pool->failures_ever;
        pool->paused_until = after(parts_.reactor.now(), kAfterUnrecorded);
    }
    const bool says_nothing = did_nothing && (written || stopping_);
    if (says_nothing) co_return;
    tell_migrated(parts_.events, pool->options.name, outcome, written,
                  parts_.reactor.now() - began_at);
}

void TapeLibrary::note_write_failed(Pool& pool, const std::vector<io_sched::IoPart>& where) {
    pool.figures->failures.add(1);
    // If there are several blank cartridges, the next batch uses another one.
    for (const io_sched::IoPart& each : where) {
        const auto used = static_cast<CartridgeId>(each.medium);
        const Cartridge* const blank = shelf_->find(used);
        if (blank != nullptr && blank->state == CartridgeState::kBlank) shelf_->withdraw(used);
    }
    ++pool.failures;
    ++pool.failures_ever;
    pool.not_before = after(parts_.reactor.now(), kAfterFailure);
}

Task<void> TapeLibrary::put_back(const std::vector<CopyBatch::Item>* items,
                                 std::optional<store::Fid> given_up) {
    std::string name;
    for (std::uint32_t locality = 0; locality < homes_->count(); ++locality) {
        std::vector<store::Fid> fids;
        for (const CopyBatch::Item& each : *items) {
            if (each.locality == locality) fids.push_back(each.object.fid);
        }
        if (fids.empty()) continue;
        const bool has_given_up = given_up && std::ranges::find(fids, *given_up) != fids.end();
        auto job = [fids = std::move(fids), given_up, has_given_up, &name](StagingDisks& disks) {
            if (has_given_up) {
                disks.staged().give_up(*given_up);
                name = disks.name_of(*given_up);
            }
            return disks.put_back(fids);
        };
        [[maybe_unused]] const auto told = co_await homes_->run_at<void>(locality, &job);
    }
    if (given_up) say_too_large(*given_up, name);
}

std::uint64_t TapeLibrary::Room::for_batch() const {
    const std::uint64_t room = free_bytes - free_bytes / 8;
    return room > kBatchOverhead ? room - kBatchOverhead : 0;
}

// The size of the largest object that can be written to cartridges with so much room. Each of its
// pieces has to fit on one cartridge; the pieces may be on different cartridges.
std::uint64_t TapeLibrary::largest_of(const Pool& pool, std::uint64_t free_bytes) {
    const std::uint64_t bytes = CopyBatch::largest_object(free_bytes);
    return bytes < pool.options.piece_bytes ? bytes : bytes * pieces_max(pool.options.copies);
}

TapeLibrary::Room TapeLibrary::room_of(const Pool& pool, std::uint64_t needed_bytes) const {
    Room room;
    std::vector<std::uint64_t> free;
    std::vector<std::uint64_t> when_empty;
    for (const Cartridge& each : shelf_->table().all()) {
        const io_sched::IoMedium* const medium =
            parts_.io.media().find(io_sched::MediumId{each.id});
        if (medium == nullptr) continue;
        const bool is_blank = each.state == CartridgeState::kBlank;
        if (each.rescue == Rescue::kRunning) continue;
        if (is_blank && !shelf_->is_promised(each.id)) {
            if (!options_.labels_blank) continue;
            // Cartridges that have failed come last.
            if (room.blank == 0 || each.failures < shelf_->find(room.blank)->failures) {
                room.blank = each.id;
            }
            when_empty.push_back(medium->free_bytes);
            continue;
        }
        if (medium->pool != pool.id) continue;
        when_empty.push_back(MediaShelf::free_bytes(medium->capacity_bytes, 0));
        if (medium->use != io_sched::MediumUse::kAll) continue;
        // The free part of a nearly full cartridge is not worth a mount.
        const bool is_nearly_full =
            medium->free_bytes < medium->capacity_bytes / MediaShelf::kNearlyFullPart;
        if (is_nearly_full && medium->free_bytes < needed_bytes) continue;
        free.push_back(medium->free_bytes);
    }
    // Each copy is on a cartridge of its own.
    const auto least_of_most = [count = pool.options.copies](std::vector<std::uint64_t>& values) {
        if (values.size() < count) return std::uint64_t{0};
        std::ranges::sort(values, std::greater{});
        return values[count - 1];
    };
    room.free_bytes = least_of_most(free);
    room.largest_bytes = least_of_most(when_empty);
    return room;
}

// Uses the cartridges of the pool until they are nearly full; then the pool gets a blank one.
TapeLibrary::Room TapeLibrary::room_for(const Pool& pool, std::uint64_t needed_bytes) {
    Room room = room_of(pool, needed_bytes);
    for (std::uint32_t i = 0; i < pool.options.copies; ++i) {
        if (room.free_bytes >= needed_bytes || room.blank == 0) break;
        shelf_->promise(room.blank, pool.id);
        room = room_of(pool, needed_bytes);
    }
    return room;
}

// Recalls and scrubs may use the cartridges of a pool for hours, while other drives are idle and
// the disks get full. Returns when to look again.
Instant TapeLibrary::offer_blanks() {
    Instant next = kNever;
    const Instant now = parts_.reactor.now();
    for (WaitingBatch* const each : waiting_batches_) {
        if (now >= each->look_at) {
            each->look_at = after(now, kInUse);
            const bool waits_in_vain = each->request.waiting() && has_idle_drives(each->pool) &&
                                       !has_idle_cartridges(each->pool, each->needed_bytes);
            const CartridgeId blank = room_of(each->pool, each->needed_bytes).blank;
            if (waits_in_vain && blank != 0) shelf_->promise(blank, each->pool.id);
        }
        next = std::min(next, each->look_at);
    }
    return next;
}

// As many as the pool writes to at once.
bool TapeLibrary::has_idle_drives(const Pool& pool) const {
    const auto idle = std::ranges::count_if(units_, [](const Unit& each) {
        return !each.drive->is_down() && !each.is_handled && each.device->is_idle();
    });
    return static_cast<std::uint64_t>(idle) >= pool.options.copies;
}

bool TapeLibrary::has_idle_cartridges(const Pool& pool, std::uint64_t needed_bytes) const {
    const auto idle = std::ranges::count_if(shelf_->table().all(), [&](const Cartridge& each) {
        const io_sched::IoMedium* const medium =
            parts_.io.media().find(io_sched::MediumId{each.id});
        return medium != nullptr && medium->pool == pool.id &&
               medium->use == io_sched::MediumUse::kAll && medium->free_bytes >= needed_bytes &&
               !is_in_use(each.id);
    });
    return static_cast<std::uint64_t>(idle) >= pool.options.copies;
}

bool TapeLibrary::has_drives_for(const Pool& pool) const {
    const auto good =
        std::ranges::count_if(units_, [](const Unit& each) { return !each.drive->is_down(); });
    return static_cast<std::uint64_t>(good) >= pool.options.copies;
}

void TapeLibrary::say_short_of_drives(Pool& pool) {
    if (std::exchange(pool.is_short_of_drives, true)) return;
    core::emit(parts_.events, core::Level::kError, "library.too_few_drives",
               {{"pool", std::string_view(pool.options.name)},
                {"copies", std::uint64_t{pool.options.copies}}});
}

void TapeLibrary::say_too_large(store::Fid fid, std::string_view name) {
    const std::string object = objects::format_fid(fid);
    core::emit(parts_.events, core::Level::kError, "library.object_too_large",
               {{"object", std::string_view(object)}, {"name", name}});
}

void TapeLibrary::say_short_of_tape(Pool& pool) {
    if (std::exchange(pool.is_short_of_tape, true)) return;
    core::emit(parts_.events, core::Level::kError, "library.no_cartridge",
               {{"pool", std::string_view(pool.options.name)}});
}

}  // namespace fopd::library
