#include "daemon/store_layout.h"

#include <algorithm>
#include <string>
#include <utility>

namespace fopd::daemon {

namespace {

objects::PoolId add_pool(objects::StoreLayout& layout, const std::string& name) {
    const objects::PoolId id = objects::pool_id(name);
    if (layout.find_pool(id) == nullptr) layout.pools.push_back({.id = id, .name = name});
    return id;
}

objects::SlotState state_of(DiskStage stage) {
    if (stage == DiskStage::kServing) return objects::SlotState::kOnline;
    return stage == DiskStage::kDamaged ? objects::SlotState::kReadOnly
                                        : objects::SlotState::kMissing;
}

std::string missing_of(const objects::LayoutPool& pool, const objects::StoreLayout& layout,
                       const NodeDisks& disks) {
    std::vector<std::string> all;
    for (const objects::LayoutSlot& slot : layout.slots) {
        if (slot.pool == pool.disk_pool() && !slot.disk.empty()) all.push_back(slot.disk);
    }
    if (all.empty()) return {};
    // One of these may be the missing disk.
    const objects::LayoutPool* const disk_pool = layout.find_pool(pool.disk_pool());
    const std::vector<std::string> strangers =
        disks.strangers_of(disk_pool == nullptr ? pool.name : disk_pool->name);
    all.insert(all.begin(), strangers.begin(), strangers.end());
    std::string text;
    for (const std::string& each : all) text += (text.empty() ? "" : ", ") + each;
    return text;
}

const NodeDisk* given_up_disk_of(const NodeDisks& disks, const SlotEntry& entry) {
    const auto found = std::ranges::find_if(
        disks.all(), [&entry](const auto& each) { return each->slot() == entry.slot; });
    return found == disks.all().end() ? nullptr : found->get();
}

}  // namespace

objects::StoreLayout make_store_layout(const std::vector<devices::PoolSettings>& pools,
                                       const NodeDisks& disks) {
    objects::StoreLayout layout;
    for (const devices::PoolSettings& each : pools) {
        objects::LayoutPool pool{.id = objects::pool_id(each.name), .name = each.name};
        if (each.staging) pool.staging = objects::pool_id(*each.staging);
        layout.pools.push_back(std::move(pool));
    }
    for (const SlotEntry& entry : disks.slots().entries()) {
        objects::LayoutSlot slot{.slot = entry.slot,
                                 .pool = add_pool(layout, entry.pool),
                                 .state = objects::SlotState::kMissing};
        const NodeDisk* disk = disks.open_disk_of(entry);
        if (disk == nullptr) disk = given_up_disk_of(disks, entry);
        if (disk != nullptr) {
            slot.locality = disk->locality().index;
            slot.state = state_of(disk->stage());
        }
        if (entry.use == SlotUse::kEmpty) slot.state = objects::SlotState::kReleased;
        if (entry.use == SlotUse::kWrittenOff) slot.state = objects::SlotState::kWrittenOff;
        slot.disk = disks.why_missing(entry);
        layout.slots.push_back(std::move(slot));
    }
    for (objects::LayoutPool& pool : layout.pools) pool.missing = missing_of(pool, layout, disks);
    return layout;
}

void keep_counts(objects::StoreLayout& layout, const objects::StoreLayout& before) {
    for (objects::LayoutPool& pool : layout.pools) {
        if (const objects::LayoutPool* const old = before.find_pool(pool.id))
            pool.quota = old->quota;
    }
}

namespace {

// Rounded down to whole blocks.
objects::Amount limit_of(std::optional<std::uint64_t> bytes, std::optional<std::uint64_t> objects) {
    constexpr std::uint64_t kUnlimited = objects::QuotaAccount::kUnlimited;
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

void set_quotas(const objects::StoreLayout& layout, const Quotas& quotas) {
    for (const objects::LayoutPool& pool : layout.pools) {
        const auto settings =
            std::ranges::find(quotas.of_pools, pool.name, &devices::PoolSettings::name);
        const bool is_configured = settings != quotas.of_pools.end();
        pool.quota->whole().set_limit(
            limit_of(is_configured ? settings->quota_bytes : std::nullopt, std::nullopt));
        for (const objects::PoolQuota::Owner& owner : pool.quota->owners()) {
            const bool has_one = find(quotas, pool.name, owner.name) != nullptr;
            if (!has_one) owner.account->set_limit(limit_of(std::nullopt, std::nullopt));
        }
    }
    for (const PrincipalQuota& each : quotas.of_principals) {
        const objects::LayoutPool* const pool = layout.find_pool(objects::pool_id(each.pool));
        if (pool == nullptr) continue;
        pool->quota->account_of(each.principal).set_limit(limit_of(each.bytes, each.objects));
    }
}

}  // namespace fopd::daemon
