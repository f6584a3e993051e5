// Goal: the use and the quotas of pools and principals are metrics, of a bounded number of series.
// Method: a layout of one pool, and a sink that keeps what it is given.

#include "daemon/quota_metrics.h"

#include <map>
#include <string>

#include "core/metrics.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;
using objects::QuotaAccount;

namespace {

constexpr std::uint64_t kUnlimited = QuotaAccount::kUnlimited;

class Gauges final : public core::MetricSink {
public:
    void counter(std::string_view, std::string_view, std::span<const core::Label>,
                 double) override {
        FAIL("all of these are gauges");
    }
    void gauge(std::string_view name, std::string_view, std::span<const core::Label> labels,
               double value) override {
        std::string key(name);
        for (const core::Label& label : labels) key += " " + std::string(label.value);
        REQUIRE(all.emplace(key, value).second);
    }
    void time_histogram(std::string_view, std::string_view, std::span<const core::Label>,
                        const core::Histogram&, core::Buckets) override {
        FAIL("all of these are gauges");
    }

    std::map<std::string, double> all;
};

objects::StoreLayout layout_of_one_pool() {
    objects::StoreLayout layout;
    layout.pools.push_back({.id = 1, .name = "fast"});
    return layout;
}

}  // namespace

TEST_CASE("quota metrics: what is used, and the quotas that there are", "[daemon][metrics]") {
    const objects::StoreLayout layout = layout_of_one_pool();
    objects::PoolQuota& pool = *layout.pools.front().quota;
    pool.whole().add({.blocks = 3, .objects = 4});
    pool.account_of("alice").set_limit({.blocks = 10, .objects = kUnlimited});
    pool.account_of("bob").add({.blocks = 3, .objects = 4});
    pool.account_of("carol").set_limit({.blocks = kUnlimited, .objects = 7});
    pool.account_of("dave");
    Gauges gauges;

    collect_quotas(gauges, layout);

    CHECK(gauges.all == std::map<std::string, double>{
                            {"fopd_pool_used_bytes fast", 3 * 4096},
                            {"fopd_pool_objects fast", 4},
                            {"fopd_principal_used_bytes fast alice", 0},
                            {"fopd_principal_objects fast alice", 0},
                            {"fopd_principal_quota_bytes fast alice", 10 * 4096},
                            {"fopd_principal_used_bytes fast bob", 3 * 4096},
                            {"fopd_principal_objects fast bob", 4},
                            {"fopd_principal_used_bytes fast carol", 0},
                            {"fopd_principal_objects fast carol", 0},
                            {"fopd_principal_quota_objects fast carol", 7},
                        });

    pool.whole().set_limit({.blocks = 100, .objects = kUnlimited});
    Gauges later;
    collect_quotas(later, layout);
    CHECK(later.all.at("fopd_pool_quota_bytes fast") == 100 * 4096);
}

TEST_CASE("quota metrics: of many principals, those near their quota and the largest are shown",
          "[daemon][metrics]") {
    const objects::StoreLayout layout = layout_of_one_pool();
    objects::PoolQuota& pool = *layout.pools.front().quota;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        pool.account_of("p" + std::to_string(i)).add({.blocks = i + 1, .objects = 1});
    }
    pool.account_of("p0").set_limit({.blocks = 10, .objects = 10});
    Gauges gauges;

    collect_quotas(gauges, layout);

    CHECK(gauges.all.size() == 2 + 2 * kPrincipalsShownMax + 2);
    CHECK(gauges.all.contains("fopd_principal_quota_bytes fast p0"));
    CHECK(gauges.all.contains("fopd_principal_used_bytes fast p999"));
    CHECK(gauges.all.contains("fopd_principal_used_bytes fast p901"));
    CHECK_FALSE(gauges.all.contains("fopd_principal_used_bytes fast p900"));

    for (std::uint64_t i = 1; i < 1000; ++i) {
        pool.account_of("p" + std::to_string(i)).set_limit({.blocks = 2000, .objects = kUnlimited});
    }
    pool.account_of("p1").set_limit({.blocks = kUnlimited, .objects = 1});
    Gauges later;
    collect_quotas(later, layout);
    CHECK(later.all.contains("fopd_principal_quota_objects fast p1"));
    CHECK(later.all.contains("fopd_principal_quota_bytes fast p999"));
    CHECK_FALSE(later.all.contains("fopd_principal_quota_bytes fast p2"));
}
