#include "daemon/quota_metrics.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <tuple>
#include <vector>

#include "daemon/space_watch.h"
#include "devices/device.h"

namespace fopd::daemon {

namespace {

using objects::Amount;
using objects::PoolQuota;
using objects::QuotaAccount;

double bytes_of(std::uint64_t blocks) {
    return static_cast<double>(blocks) * devices::kBlockBytes;
}

struct Shown {
    std::string_view principal;
    Amount used;
    Amount limit;
};

// -1: it has none.
int quota_percent(const Shown& shown) {
    const auto part = [](std::uint64_t used, std::uint64_t limit) {
        if (limit == QuotaAccount::kUnlimited) return -1;
        return limit == 0 ? 100 : static_cast<int>(percent_of(used, limit));
    };
    return std::max(part(shown.used.blocks, shown.limit.blocks),
                    part(shown.used.objects, shown.limit.objects));
}

std::vector<Shown> shown_of(const PoolQuota& pool) {
    std::vector<Shown> all;
    for (const PoolQuota::Owner& each : pool.owners()) {
        all.push_back(
            {.principal = each.name, .used = each.account->used(), .limit = each.account->limit()});
    }
    if (all.size() <= kPrincipalsShownMax) return all;
    std::ranges::sort(all, std::ranges::greater{}, [](const Shown& each) {
        return std::tuple(quota_percent(each), each.used.blocks, each.used.objects, each.principal);
    });
    all.resize(kPrincipalsShownMax);
    return all;
}

void collect_principal(core::MetricSink& sink, std::string_view pool, const Shown& shown) {
    const std::array labels{core::Label{"pool", pool}, core::Label{"principal", shown.principal}};
    sink.gauge("fopd_principal_used_bytes",
               "Space that objects of the principal take in the pool, on disk or on tape.", labels,
               bytes_of(shown.used.blocks));
    sink.gauge("fopd_principal_objects", "Objects and uploads of the principal in the pool.",
               labels, static_cast<double>(shown.used.objects));
    if (shown.limit.blocks != QuotaAccount::kUnlimited) {
        sink.gauge("fopd_principal_quota_bytes", "The most space that the principal may take.",
                   labels, bytes_of(shown.limit.blocks));
    }
    if (shown.limit.objects != QuotaAccount::kUnlimited) {
        sink.gauge("fopd_principal_quota_objects", "The most objects that the principal may have.",
                   labels, static_cast<double>(shown.limit.objects));
    }
}

}  // namespace

void collect_quotas(core::MetricSink& sink, const objects::StoreLayout& layout) {
    for (const objects::LayoutPool& pool : layout.pools) {
        const std::array labels{core::Label{"pool", pool.name}};
        const Amount used = pool.quota->whole().used();
        const Amount limit = pool.quota->whole().limit();
        sink.gauge("fopd_pool_used_bytes",
                   "Space that objects take in the pool, on disk or on tape.", labels,
                   bytes_of(used.blocks));
        sink.gauge("fopd_pool_objects", "Objects and uploads in the pool.", labels,
                   static_cast<double>(used.objects));
        if (limit.blocks != QuotaAccount::kUnlimited) {
            sink.gauge("fopd_pool_quota_bytes", "The most space that objects may take in the pool.",
                       labels, bytes_of(limit.blocks));
        }
        for (const Shown& each : shown_of(*pool.quota)) collect_principal(sink, pool.name, each);
    }
}

}  // namespace fopd::daemon
