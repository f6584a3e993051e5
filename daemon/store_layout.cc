#include "daemon/store_layout.h"

#include <algorithm>

namespace fopd::daemon {

namespace {

reqh::PoolId add_pool(reqh::StoreLayout& layout, const std::string& name) {
    const reqh::PoolId id = reqh::pool_id(name);
    if (layout.find_pool(id) == nullptr) layout.pools.push_back({.id = id, .name = name});
    return id;
}

reqh::SlotState state_of(DiskStage stage) {
    if (stage == DiskStage::kServing) return reqh::SlotState::kOnline;
    return stage == DiskStage::kDamaged ? reqh::SlotState::kReadOnly : reqh::SlotState::kMissing;
}

}  // namespace

reqh::StoreLayout make_store_layout(const std::vector<devices::PoolSettings>& pools,
                                    const SlotTable& slots,
                                    const std::vector<std::unique_ptr<NodeDisk>>& disks,
                                    std::size_t locality_count) {
    reqh::StoreLayout layout;
    for (const devices::PoolSettings& each : pools) add_pool(layout, each.name);
    for (const SlotEntry& entry : slots.entries()) {
        reqh::SlotPlace place{.slot = entry.slot,
                              .pool = add_pool(layout, entry.pool),
                              .state = reqh::SlotState::kMissing};
        const auto disk = std::ranges::find_if(
            disks, [&entry](const auto& each) { return each->slot() == entry.slot; });
        if (disk != disks.end()) {
            place.locality = (*disk)->place().locality;
            place.state = state_of((*disk)->stage());
        }
        layout.slots.push_back(place);
    }
    for (reqh::PoolPlace& pool : layout.pools) {
        pool.quota = std::make_shared<reqh::PoolQuota>(locality_count);
    }
    set_quotas(layout, pools);
    return layout;
}

void set_quotas(const reqh::StoreLayout& layout, const std::vector<devices::PoolSettings>& pools) {
    for (const devices::PoolSettings& each : pools) {
        const reqh::PoolPlace* const pool = layout.find_pool(reqh::pool_id(each.name));
        if (pool == nullptr) continue;
        const std::uint64_t unlimited = reqh::PoolQuota::kUnlimited;
        pool->quota->set_limit(each.quota_bytes ? *each.quota_bytes / devices::kBlockBytes
                                                : unlimited);
    }
}

}  // namespace fopd::daemon
