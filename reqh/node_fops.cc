#include <algorithm>
#include <cstdint>
#include <vector>

#include "fop/listing.h"
#include "library/media_shelf.h"
#include "reqh/every_locality.h"
#include "reqh/object_fops.h"
#include "reqh/operation.h"
#include "reqh/tape_fops.h"

namespace fopd::reqh {

namespace {

// The state of a slot's disk.
struct SlotFigures {
    store::Slot slot = 0;
    bool is_open = false;
    bool serves = false;
    std::uint64_t total_bytes = 0;
    std::uint64_t free_bytes = 0;
    objects::ObjectCount::Counts objects{};

    std::uint64_t objects_of(objects::PoolId pool) const {
        const auto found = objects.find(pool);
        return found == objects.end() ? 0 : found->second;
    }
};

void look_at_slots(objects::Stores& stores, std::span<SlotFigures> slots) {
    for (SlotFigures& each : slots) {
        objects::HomeVolume* const home = stores.find(each.slot);
        if (home == nullptr) continue;
        const store::SpaceUse use = home->volume().space_use();
        each.is_open = true;
        each.objects = home->objects().get();
        each.serves = home->volume().serving() && !home->is_leaving();
        each.total_bytes = use.total_blocks * fop::kBlockBytes;
        each.free_bytes = use.room_blocks() * fop::kBlockBytes;
    }
}

// Asks each locality for the figures of its slots.
Task<std::vector<SlotFigures>> look_at_all_slots(Operation* operation) {
    std::vector<SlotFigures> slots;
    for (const objects::LayoutSlot& slot : operation->stores().layout().slots) {
        slots.push_back({.slot = slot.slot});
    }
    auto look = [&slots](objects::Stores& there) { look_at_slots(there, slots); };
    co_await at_every_locality(operation, &look);
    co_return slots;
}

fop::ListedSlotState state_of(const objects::LayoutSlot& slot, const SlotFigures& figures) {
    const bool is_unused = slot.state == objects::SlotState::kReleased ||
                           slot.state == objects::SlotState::kWrittenOff;
    if (is_unused) return fop::ListedSlotState::kUnused;
    if (!figures.is_open || slot.state == objects::SlotState::kMissing)
        return fop::ListedSlotState::kMissing;
    const bool writes = figures.serves && slot.state == objects::SlotState::kOnline;
    return writes ? fop::ListedSlotState::kOnline : fop::ListedSlotState::kReadOnly;
}

// The pools whose new objects the slot takes, its disk's own last: older clients keep the last one.
std::vector<const objects::LayoutPool*> pools_of(const objects::LayoutSlot& slot,
                                                 const objects::StoreLayout& layout) {
    std::vector<const objects::LayoutPool*> pools;
    for (const objects::LayoutPool& pool : layout.pools) {
        if (pool.staging == slot.pool) pools.push_back(&pool);
    }
    pools.push_back(layout.find_pool(slot.pool));
    return pools;
}

}  // namespace

Task<fop::Reply> run_slots(Operation* operation) {
    operation->enter(Phase::kExecute);
    const objects::StoreLayoutPtr layout = operation->stores().layout_ptr();
    const auto slots = co_await look_at_all_slots(operation);
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    const objects::LayoutPool* const by_default = layout->find_pool("");
    for (std::size_t i = 0; i < slots.size(); ++i) {
        const objects::LayoutSlot& slot = layout->slots[i];
        bool fits = true;
        for (const objects::LayoutPool* const pool : pools_of(slot, *layout)) {
            fits = fits && writer.add({.slot = slot.slot,
                                       .locality = static_cast<std::uint16_t>(slot.locality),
                                       .state = state_of(slot, slots[i]),
                                       .in_default_pool = pool != nullptr && pool == by_default,
                                       .free_bytes = slots[i].free_bytes,
                                       .pool = pool == nullptr ? std::string_view() : pool->name});
        }
        if (!fits) {
            co_return operation->refuse({.status = fop::Status::kInternal,
                                         .words = "there are more slots than a reply can list"});
        }
    }
    co_return fop::Reply{.payload = writer.written(),
                         .body = fop::SlotsReply{.version = layout->version}};
}

namespace {

// Of a tape pool: what its objects take, on disks and tape once, as their quota says; the capacity
// of the cartridges that are labelled for it, and what can still be written to these.
void add_tapes(const objects::LayoutPool& pool, std::span<const library::Cartridge> cartridges,
               fop::PoolEntry& entry) {
    entry.used_bytes = pool.quota->whole().used().blocks * fop::kBlockBytes;
    for (const library::Cartridge& each : cartridges) {
        if (each.pool != pool.name) continue;
        entry.total_bytes += each.capacity_bytes;
        if (each.state != library::CartridgeState::kOk) continue;
        entry.free_bytes += library::MediaShelf::free_bytes(each);
    }
}

}  // namespace

Task<fop::Reply> run_statfs(Operation* operation) {
    operation->enter(Phase::kExecute);
    const objects::StoreLayoutPtr layout = operation->stores().layout_ptr();
    const auto slots = co_await look_at_all_slots(operation);
    const auto cartridges = co_await list_cartridges(operation);
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    fop::StatfsReply all;
    for (const objects::LayoutPool& pool : layout->pools) {
        fop::PoolEntry entry{.pool = pool.name};
        for (std::size_t i = 0; i < slots.size(); ++i) {
            entry.objects += slots[i].objects_of(pool.id);
            // The space of a disk is its own pool's, whatever pools its objects are of.
            if (layout->slots[i].pool != pool.id) continue;
            entry.total_bytes += slots[i].total_bytes;
            entry.free_bytes += slots[i].free_bytes;
        }
        entry.used_bytes = entry.total_bytes - std::min(entry.total_bytes, entry.free_bytes);
        all.total_bytes += entry.total_bytes;
        all.used_bytes += entry.used_bytes;
        all.free_bytes += entry.free_bytes;
        all.objects += entry.objects;
        if (pool.is_on_tape()) add_tapes(pool, cartridges, entry);
        if (!writer.add(entry)) {
            co_return operation->refuse({.status = fop::Status::kInternal,
                                         .words = "there are more pools than a reply can list"});
        }
    }
    co_return fop::Reply{.payload = writer.written(), .body = all};
}

// -- sync --

namespace {

struct SyncQuestion {
    fop::Receipt asked{};
    bool about_all = false;  // Covers the slot's newest change, whatever its number.
};
struct SyncAnswer {
    fop::Receipt receipt{};
    bool is_lost = false;
};

// Makes a slot's changes durable, and reports how far the changes of the given incarnation are
// durable.
Task<Granted<SyncAnswer>> sync_slot(Operation* operation, SyncQuestion question) {
    const auto homed = operation->find_home(question.asked.slot);
    // A released disk was empty and closed in order: nothing that was written to it is lost.
    const bool is_released = !homed && operation->stores().was_released(question.asked.slot);
    if (is_released) co_return SyncAnswer{.receipt = question.asked};
    if (!homed) co_return refused(homed.error());
    store::Volume& volume = operation->volume();
    const store::Receipt newest = volume.newest();
    const fop::Receipt now{
        .incarnation = newest.epoch, .seq = newest.seq, .slot = question.asked.slot};
    const fop::Receipt asked = question.about_all ? now : question.asked;
    // If the incarnation is so old that its end is unknown, any of its changes may be lost.
    fop::Receipt answer{.incarnation = now.incarnation,
                        .seq = volume.last_seq_of(asked.incarnation).value_or(0),
                        .slot = asked.slot};
    if (asked.incarnation == now.incarnation) {
        const Waiting waiting = operation->waits_for({.what = WaitsFor::kLog});
        const auto synced = co_await volume.sync(operation->wait());
        if (!synced && volume.serving()) co_return refused(synced.error());
        answer.seq = synced ? now.seq : volume.durable_seq();
    }
    co_return SyncAnswer{.receipt = answer, .is_lost = answer.seq < asked.seq};
}

}  // namespace

Task<fop::Reply> run_sync(Operation* operation) {
    operation->enter(Phase::kExecute);
    const objects::StoreLayoutPtr layout = operation->stores().layout_ptr();
    operation->work().receipts.clear();
    const auto asked = operation->body<fop::Sync>().receipts;
    const std::size_t count = asked.empty() ? layout->slots.size() : asked.size();
    fop::Status status = fop::Status::kDone;
    for (std::size_t i = 0; i < count; ++i) {
        SyncQuestion question{.about_all = asked.empty()};
        if (!asked.empty()) question.asked = asked[i];
        if (asked.empty()) {
            const objects::SlotState state = layout->slots[i].state;
            if (state != objects::SlotState::kOnline && state != objects::SlotState::kReadOnly)
                continue;
            question.asked.slot = layout->slots[i].slot;
        }
        const objects::LayoutSlot* const slot = layout->find_slot(question.asked.slot);
        if (slot != nullptr && slot->state == objects::SlotState::kReleased) {
            operation->work().receipts.push_back(question.asked);
            continue;
        }
        // Changes that were durable there are lost, too.
        if (slot != nullptr && slot->state == objects::SlotState::kWrittenOff) {
            operation->work().receipts.push_back({.slot = question.asked.slot});
            status = fop::Status::kLost;
            continue;
        }
        const auto locality = operation->layout().locality_of(question.asked.slot);
        if (!locality) co_return operation->refuse(locality.error());
        const auto job = [operation, question] { return sync_slot(operation, question); };
        const auto synced = co_await operation->run_at<SyncAnswer>(*locality, job);
        if (!synced) co_return operation->refuse(synced.error());
        if (synced->is_lost) status = fop::Status::kLost;
        // With all slots, a disk that was removed just now has no receipt.
        const bool has_receipt = synced->receipt.incarnation > 0;
        if (has_receipt) operation->work().receipts.push_back(synced->receipt);
    }
    co_return fop::Reply{.status = status,
                         .body = fop::SyncReply{.receipts = operation->work().receipts}};
}

}  // namespace fopd::reqh
