#pragma once

#include <vector>

#include "daemon/access.h"
#include "daemon/node_disks.h"
#include "devices/settings.h"
#include "objects/stores.h"

namespace fopd::daemon {

// Builds the pools and slots that the node's fops find. It has all slots of the slot table, with
// the disk of each if that is present; all configured pools, with the default pool first; and the
// pools of absent disks.
objects::StoreLayout make_store_layout(const std::vector<devices::PoolSettings>& pools,
                                       const NodeDisks& disks);

// Pools in both layouts keep the counts of their quotas.
void keep_counts(objects::StoreLayout& layout, const objects::StoreLayout& before);

struct Quotas {
    const std::vector<devices::PoolSettings>& of_pools;
    const std::vector<PrincipalQuota>& of_principals;
};
// Sets the limits of all pools and principals in the layout. Those without a quota in `quotas`
// become unlimited.
void set_quotas(const objects::StoreLayout& layout, const Quotas& quotas);

}  // namespace fopd::daemon
