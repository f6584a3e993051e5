#include "reqh/stores.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "reqh/home_volume.h"

namespace fopd::reqh {

PoolId pool_id(std::string_view pool_name) {
    return core::crc32c(std::as_bytes(std::span(pool_name)));
}

const PoolPlace* StoreLayout::find_pool(std::string_view name) const {
    if (name.empty()) return default_pool < pools.size() ? &pools[default_pool] : nullptr;
    const auto found = std::ranges::find(pools, name, &PoolPlace::name);
    return found == pools.end() ? nullptr : &*found;
}

const PoolPlace* StoreLayout::find_pool(PoolId id) const {
    const auto found = std::ranges::find(pools, id, &PoolPlace::id);
    return found == pools.end() ? nullptr : &*found;
}

const SlotPlace* StoreLayout::find_slot(store::Slot slot) const {
    const auto found = std::ranges::lower_bound(slots, slot, {}, &SlotPlace::slot);
    return found == slots.end() || found->slot != slot ? nullptr : &*found;
}

Stores::Stores(const StoresParts& parts)
    : parts_(parts), layout_(std::make_shared<const StoreLayout>()) {}

Stores::~Stores() = default;

void Stores::add(const HomeDisk& disk) {
    ENSURE(find(disk.volume->slot()) == nullptr);
    volumes_.push_back(std::make_unique<HomeVolume>(disk, parts_.reactor));
}

void Stores::remove(store::Slot slot) {
    std::erase_if(volumes_, [slot](const auto& volume) { return volume->slot() == slot; });
}

void Stores::count_use() {
    for (const PoolPlace& pool : layout_->pools) count_use(pool.id);
}

void Stores::count_use(PoolId pool) {
    const PoolPlace* const place = layout_->find_pool(pool);
    const bool is_limited =
        place != nullptr && place->quota != nullptr && place->quota->is_limited();
    if (!is_limited) return;
    std::uint64_t used = 0;
    for (const auto& volume : volumes_) {
        if (volume->pool() == pool) used += volume->volume().space_use().used_blocks;
    }
    place->quota->set_used(parts_.locality, used);
}

Task<void> Stores::stop() {
    stopping_.cancel();
    co_await duties_.close(parts_.reactor);
}

HomeVolume* Stores::find(store::Slot slot) {
    const auto found = std::ranges::find_if(
        volumes_, [slot](const auto& volume) { return volume->slot() == slot; });
    return found == volumes_.end() ? nullptr : found->get();
}

}  // namespace fopd::reqh
