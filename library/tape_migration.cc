// When objects are written to tape, and which.

#include <algorithm>
#include <utility>

#include "core/random.h"
#include "library/awaited_tape.h"
#include "library/tape_library.h"
#include "objects/fids.h"

namespace fopd::library {

namespace {

// After a batch that failed, its pool waits.
constexpr Duration kAfterFailure = 10s;
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
        }
    }
    return all;
}

bool TapeLibrary::is_due(const Pool& pool, const StagedObjects::Group& group) const {
    return pool.syncs > 0 || group.bytes >= pool.options.migrate_bytes ||
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
    const std::uint64_t room = room_for(*pool, wanted);
    if (room == 0) {
        say_short_of_tape(*pool);
        pool->failures += kFailuresMax;
        pool->not_before = after(parts_.reactor.now(), kAfterFailure);
    } else {
        pool->is_short_of_tape = false;
        const StagedObjects::Limits limits{
            .bytes = std::min(pool->options.migrate_bytes, room),
            .objects =
                std::min<std::size_t>(pool->options.migrate_files, 1 + room / kMemberOverhead)};
        auto items = co_await take_items(group, limits);
        if (!items.empty()) co_await write_batch(pool, std::move(items));
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
                                         .objects = limits.objects - items.size()};
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

Task<void> TapeLibrary::write_batch(Pool* pool, std::vector<CopyBatch::Item> items) {
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
        {.medium = io_sched::kAnyMedium, .size_bytes = batch.bytes()}};
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
    const bool says_nothing = outcome.copies == 0 && outcome.dead == 0 && (written || stopping_);
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
    if (given_up) {
        const std::string object = objects::format_fid(*given_up);
        core::emit(parts_.events, core::Level::kError, "library.object_too_large",
                   {{"object", std::string_view(object)}});
    }
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

// A cartridge of the pool is used until it is nearly full; then a blank one becomes one of the
// pool.
std::uint64_t TapeLibrary::room_for(Pool& pool, std::uint64_t wanted_bytes) {
    // Members, labels and the lists of checksums take more than the bytes of the objects.
    const std::uint64_t needed = wanted_bytes + wanted_bytes / 4 + 2 * kBatchOverhead;
    std::uint64_t most = 0;
    CartridgeId blank = 0;
    for (const Cartridge& each : shelf_->table().all()) {
        const io_sched::IoMedium* const medium =
            parts_.io.media().find(io_sched::MediumId{each.id});
        if (medium == nullptr) continue;
        const bool is_blank = each.state == CartridgeState::kBlank;
        if (is_blank && !shelf_->is_promised(each.id)) {
            if (blank == 0) blank = each.id;
            continue;
        }
        const bool is_ours = medium->pool == pool.id && medium->use == io_sched::MediumUse::kAll;
        if (!is_ours) continue;
        // What is left of a nearly full cartridge is not worth a mount.
        const bool is_nearly_full =
            medium->free_bytes < medium->capacity_bytes / MediaShelf::kNearlyFullPart;
        if (is_nearly_full && medium->free_bytes < needed) continue;
        most = std::max(most, medium->free_bytes);
    }
    if (most < needed && blank != 0) {
        shelf_->promise(blank, pool.id);
        most = std::max(most, parts_.io.media().find(io_sched::MediumId{blank})->free_bytes);
    }
    const std::uint64_t room = most - most / 8;
    return room > kBatchOverhead ? room - kBatchOverhead : 0;
}

void TapeLibrary::say_short_of_tape(Pool& pool) {
    if (std::exchange(pool.is_short_of_tape, true)) return;
    core::emit(parts_.events, core::Level::kError, "library.no_cartridge",
               {{"pool", std::string_view(pool.options.name)}});
}

}  // namespace fopd::library
