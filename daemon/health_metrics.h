#pragma once

#include <array>

#include "core/counter.h"
#include "core/metrics.h"
#include "daemon/health.h"

namespace fopd::daemon {

// The problems of a node as metrics, as they were last published: a scrape does not wait for the
// control thread, which knows them.
class HealthMetrics final : public core::MetricSource {
public:
    // On the control reactor.
    void publish(const NodeHealth& health);
    // From any thread.
    void collect(core::MetricSink& sink) const override;

private:
    std::array<core::Counter, NodeHealth::kCauses.size()> counts_;  // By cause.
};

}  // namespace fopd::daemon
