#pragma once

#include <memory>
#include <vector>

#include "daemon/access.h"
#include "daemon/node_disks.h"
#include "devices/settings.h"
#include "objects/stores.h"

namespace fopd::daemon {

// Which pools and slots the fops of a node find: all that the table has, each with its disk if that
// is there. The pools are those of the configuration, the first of them for who names none, and
// those of disks that are elsewhere.
objects::StoreLayout make_store_layout(const std::vector<devices::PoolSettings>& pools,
                                       const NodeDisks& disks);

// What is counted in pools that both have goes on to be counted.
void keep_counts(objects::StoreLayout& layout, const objects::StoreLayout& before);

// Puts the quotas into force: those of the pools, and of principals in them. Others have none.
struct Quotas {
    const std::vector<devices::PoolSettings>& of_pools;
    const std::vector<PrincipalQuota>& of_principals;
};
void set_quotas(const objects::StoreLayout& layout, const Quotas& quotas);

}  // namespace fopd::daemon
