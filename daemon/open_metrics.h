#pragma once

#include <span>
#include <string>

#include "core/metrics.h"
#include "daemon/metrics_format.h"

namespace fopd::daemon {

// The figures of all sources as text. Families are sorted by name, the samples of a family are in
// the order of collection. In OpenMetrics, a name that ends in _seconds, _bytes or _ratio states
// its unit, and the text ends with "# EOF"; in the older format, a counter's family has the name of
// its samples. A value of a histogram within 1/16 below the limit of a bucket may be counted
// one bucket higher. REQUIRES: all samples of a name have one type, and no two have the same
// labels.
std::string render_metrics(MetricsFormat format,
                           std::span<const core::MetricSource* const> sources);

}  // namespace fopd::daemon
