#include "objects/stores.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "objects/home_volume.h"

namespace fopd::objects {

PoolId pool_id(std::string_view pool_name) {
    return core::crc32c(std::as_bytes(std::span(pool_name)));
}

const LayoutPool* StoreLayout::find_pool(std::string_view name) const {
    if (name.empty()) return default_pool < pools.size() ? &pools[default_pool] : nullptr;
    const auto found = std::ranges::find(pools, name, &LayoutPool::name);
    return found == pools.end() ? nullptr : &*found;
}

const LayoutPool* StoreLayout::find_pool(PoolId id) const {
    const auto found = std::ranges::find(pools, id, &LayoutPool::id);
    return found == pools.end() ? nullptr : &*found;
}

const LayoutSlot* StoreLayout::find_slot(store::Slot slot) const {
    const auto found = std::ranges::lower_bound(slots, slot, {}, &LayoutSlot::slot);
    return found == slots.end() || found->slot != slot ? nullptr : &*found;
}

bool StoreLayout::is_staging(PoolId disk_pool) const {
    return std::ranges::any_of(
        pools, [disk_pool](const LayoutPool& each) { return each.staging == disk_pool; });
}

Stores::Stores(const StoresParts& parts)
    : parts_(parts), layout_(std::make_shared<const StoreLayout>()) {}

Stores::~Stores() = default;

void Stores::add(const HomeDisk& disk) {
    ENSURE(find_volume(disk.volume->slot()) == volumes_.end());
    volumes_.push_back(std::make_unique<HomeVolume>(disk, parts_.reactor));
    join_quotas(*volumes_.back());
}

void Stores::remove(store::Slot slot) {
    const auto at = find_volume(slot);
    ENSURE(at != volumes_.end());
    ENSURE((*at)->hold_count() == 0);
    volumes_.erase(at);
}

void Stores::set_layout(StoreLayoutPtr layout) {
    layout_ = std::move(layout);
    for (const auto& volume : volumes_) join_quotas(*volume);
}

// Joins the quotas of all pools in the layout. Objects of other pools are counted on this disk
// only.
void Stores::join_quotas(HomeVolume& volume) {
    for (const LayoutPool& pool : layout_->pools) volume.use().join(pool.id, pool.quota);
}

Task<void> Stores::stop() {
    stopping_.cancel();
    for (const auto& volume : volumes_) volume->ending().cancel();
    co_await duties_.close(parts_.reactor);
}

std::vector<std::unique_ptr<HomeVolume>>::iterator Stores::find_volume(store::Slot slot) {
    return std::ranges::find_if(volumes_,
                                [slot](const auto& volume) { return volume->slot() == slot; });
}

bool Stores::was_released(store::Slot slot) {
    const auto here = find_volume(slot);
    if (here != volumes_.end()) return (*here)->is_shut();
    const LayoutSlot* const found = layout_->find_slot(slot);
    return found != nullptr && found->state == SlotState::kReleased;
}

bool Stores::was_written_off(store::Slot slot) const {
    const LayoutSlot* const found = layout_->find_slot(slot);
    return found != nullptr && found->state == SlotState::kWrittenOff;
}

HomeVolume* Stores::find(store::Slot slot) {
    const auto at = find_volume(slot);
    return at == volumes_.end() || (*at)->is_shut() ? nullptr : at->get();
}

BlockIo::Disk Stores::in_background(const HomeVolume& home) const {
    return {.reactor = &parts_.reactor,
            .scheduler = &parts_.io,
            .medium = home.medium(),
            .priority = io_sched::IoPriority::kBackground};
}

}  // namespace fopd::objects
