#include "daemon/health_metrics.h"

#include <cstdint>

namespace fopd::daemon {

void HealthMetrics::publish(const NodeHealth& health) {
    std::array<std::uint64_t, NodeHealth::kCauses.size()> counts{};
    for (const NodeHealth::Problem& each : health.problems) {
        ++counts[static_cast<std::size_t>(each.cause)];
    }
    for (std::size_t i = 0; i < counts.size(); ++i) counts_[i].set(counts[i]);
}

void HealthMetrics::collect(core::MetricSink& sink) const {
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        const NodeHealth::CauseRow& row = NodeHealth::kCauses[i];
        const std::array labels{core::Label{"severity", to_string(row.level)},
                                core::Label{"cause", row.name}};
        sink.gauge("fopd_health_problems", "Problems that fopctl health reports.", labels,
                   static_cast<double>(counts_[i].get()));
    }
}

}  // namespace fopd::daemon
