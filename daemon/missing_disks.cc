#include "daemon/missing_disks.h"

#include <array>
#include <utility>
#include <vector>

namespace fopd::daemon {

void MissingDisks::note() {
    std::map<store::Slot, std::optional<std::uint64_t>> missing;
    std::map<std::string, std::uint64_t> count_by_pool;
    for (const SlotEntry& entry : parts_.disks.slots().entries()) count_by_pool[entry.pool] = 0;
    for (const MissingSlot& each : parts_.disks.missing_slots()) {
        ++count_by_pool[each.pool];
        const auto before = missing_.find(each.slot);
        missing[each.slot] = before == missing_.end() ? std::nullopt : before->second;
        if (before != missing_.end()) continue;
        emit_each(parts_.events, core::Level::kError, "daemon.slot_missing",
                  {{"slot", std::uint64_t{each.slot}},
                   {"pool", std::string_view(each.pool)},
                   {"device", std::string_view(each.device)},
                   {"disk", std::string_view(devices::format_id(each.disk))},
                   {"reason", std::string_view(each.reason)}});
    }
    missing_ = std::move(missing);
    const std::lock_guard lock(shown_);
    count_by_pool_ = std::move(count_by_pool);
}

Task<void> MissingDisks::count() {
    const std::vector<MissingSlot> missing = parts_.disks.missing_slots();
    for (const MissingSlot& each : missing) {
        const auto counted = co_await count_of(each.slot, each.disk);
        if (!counted) co_return;  // The node stops, or its names cannot be read.
        const auto found = missing_.find(each.slot);
        if (found != missing_.end()) found->second = *counted;
    }
}

Task<Result<std::optional<std::uint64_t>>> MissingDisks::count_of(store::Slot slot,
                                                                  devices::DiskId disk) {
    store::NameSink& names = parts_.names->whole();
    const auto known = co_await names.known(disk);
    if (!known) co_return std::unexpected(known.error());
    std::optional<std::uint64_t> objects;
    if (*known == 0) co_return objects;
    std::uint64_t count = 0;
    store::NameSink::ClaimCursor cursor;
    for (;;) {
        if (parts_.life.stop_requested()) {
            co_return std::unexpected(
                Error{.code = Errc::kClosed, .context = "the node is stopping"});
        }
        auto asked = names.claims(slot, std::move(cursor));
        auto page = co_await std::move(asked);
        if (!page) co_return std::unexpected(page.error());
        count += page->claims.size();
        if (page->end) {
            objects = count;
            co_return objects;
        }
        cursor = std::move(page->next);
    }
}

std::optional<std::uint64_t> MissingDisks::objects_of(store::Slot slot) const {
    const auto found = missing_.find(slot);
    return found == missing_.end() ? std::nullopt : found->second;
}

void MissingDisks::write(JsonWriter& json) const {
    json.begin_array();
    for (const MissingSlot& each : parts_.disks.missing_slots()) {
        json.begin_object()
            .field("slot", std::uint64_t{each.slot})
            .field("pool", each.pool)
            .field("device", each.device)
            .field("disk", devices::format_id(each.disk))
            .field("reason", each.reason);
        json.field_or_null("objects", objects_of(each.slot)).end_object();
    }
    json.end_array();
}

void MissingDisks::collect(core::MetricSink& sink) const {
    const std::lock_guard lock(shown_);
    for (const auto& [pool, count] : count_by_pool_) {
        const std::array labels{core::Label{"pool", pool}};
        sink.gauge("fopd_slots_missing",
                   "Slots of the pool that may have objects and whose disk is not open.", labels,
                   static_cast<double>(count));
    }
}

}  // namespace fopd::daemon
