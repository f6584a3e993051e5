#pragma once

#include "core/clock.h"
#include "core/metrics.h"

namespace fopd::daemon {

// The kernel's figures of this process, under the names that Prometheus clients use. A figure that
// cannot be read is left out.
class ProcessMetrics final : public core::MetricSource {
public:
    // Created when the process starts.
    explicit ProcessMetrics(const core::Clock& clock);
    void collect(core::MetricSink& sink) const override;

private:
    const double started_s_;  // Unix time.
};

}  // namespace fopd::daemon
