#include "daemon/store_layout.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

std::string missing_of(const reqh::PoolPlace& pool, const reqh::StoreLayout& layout,
                       const NodeDisks& disks) {
    std::vector<std::string> all;
    for (const reqh::SlotPlace& place : layout.slots) {
        if (place.pool == pool.id && !place.disk.empty()) all.push_back(place.disk);
    }
    if (all.empty()) return {};
    // One of these is where it was, perhaps.
    const std::vector<std::string> strangers = disks.strangers_of(pool.name);
    all.insert(all.begin(), strangers.begin(), strangers.end());
    std::string text;
    for (const std::string& each : all) text += (text.empty() ? "" : ", ") + each;
    return text;
}

}  // namespace

reqh::StoreLayout make_store_layout(const std::vector<devices::PoolSettings>& pools,
                                    const NodeDisks& disks) {
    reqh::StoreLayout layout;
    for (const devices::PoolSettings& each : pools) add_pool(layout, each.name);
    for (const SlotEntry& entry : disks.slots().entries()) {
        reqh::SlotPlace place{.slot = entry.slot,
                              .pool = add_pool(layout, entry.pool),
                              .state = reqh::SlotState::kMissing};
        const auto disk = std::ranges::find_if(
            disks.all(), [&entry](const auto& each) { return each->slot() == entry.slot; });
        if (disk != disks.all().end()) {
            place.locality = (*disk)->place().locality;
            place.state = state_of((*disk)->stage());
        }
        if (entry.use == SlotUse::kEmpty) place.state = reqh::SlotState::kReleased;
        if (entry.use == SlotUse::kWrittenOff) place.state = reqh::SlotState::kWrittenOff;
        place.disk = disks.why_missing(entry);
        layout.slots.push_back(std::move(place));
    }
    for (reqh::PoolPlace& pool : layout.pools) pool.missing = missing_of(pool, layout, disks);
    return layout;
}

void keep_counts(reqh::StoreLayout& layout, const reqh::StoreLayout& before) {
    for (reqh::PoolPlace& pool : layout.pools) {
        if (const reqh::PoolPlace* const old = before.find_pool(pool.id)) pool.quota = old->quota;
    }
}

namespace {

// What is left of a block is no block.
reqh::Amount limit_of(std::optional<std::uint64_t> bytes, std::optional<std::uint64_t> objects) {
    constexpr std::uint64_t kUnlimited = reqh::QuotaAccount::kUnlimited;
    return {.blocks = bytes ? *bytes / devices::kBlockBytes : kUnlimited,
            .objects = objects.value_or(kUnlimited)};
}

const PrincipalQuota* find(const Quotas& quotas, std::string_view pool, std::string_view owner) {
    const auto found = std::ranges::find_if(quotas.of_principals, [&](const auto& each) {
        return each.pool == pool && each.principal == owner;
    });
    return found == quotas.of_principals.end() ? nullptr : &*found;
}

}  // namespace

void set_quotas(const reqh::StoreLayout& layout, const Quotas& quotas) {
    for (const reqh::PoolPlace& pool : layout.pools) {
        const auto settings =
            std::ranges::find(quotas.of_pools, pool.name, &devices::PoolSettings::name);
        const bool is_configured = settings != quotas.of_pools.end();
        pool.quota->whole().set_limit(
            limit_of(is_configured ? settings->quota_bytes : std::nullopt, std::nullopt));
        for (const reqh::PoolQuota::Owner& owner : pool.quota->owners()) {
            const bool has_one = find(quotas, pool.name, owner.name) != nullptr;
            if (!has_one) owner.account->set_limit(limit_of(std::nullopt, std::nullopt));
        }
    }
    for (const PrincipalQuota& each : quotas.of_principals) {
        const reqh::PoolPlace* const pool = layout.find_pool(reqh::pool_id(each.pool));
        if (pool == nullptr) continue;
        pool->quota->account_of(each.principal).set_limit(limit_of(each.bytes, each.objects));
    }
}

}  // namespace fopd::daemon
