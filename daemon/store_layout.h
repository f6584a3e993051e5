#pragma once

#include <memory>
#include <vector>

#include "daemon/access.h"
#include "daemon/node_disks.h"
#include "devices/settings.h"
#include "objects/stores.h"

namespace fopd::daemon {

// The pools and slots that the node's fops find: all slots of the table, each with its disk if it
// is present; the configured pools, the first of which is the default for requests that name none,
// and the pools of absent disks.
objects::StoreLayout make_store_layout(const std::vector<devices::PoolSettings>& pools,
                                       const NodeDisks& disks);

// Pools that are in both layouts keep their counts.
void keep_counts(objects::StoreLayout& layout, const objects::StoreLayout& before);

// Applies the quotas of pools and of principals in them; all others are unlimited.
struct Quotas {
    const std::vector<devices::PoolSettings>& of_pools;
    const std::vector<PrincipalQuota>& of_principals;
};
void set_quotas(const objects::StoreLayout& layout, const Quotas& quotas);

}  // namespace fopd::daemon
