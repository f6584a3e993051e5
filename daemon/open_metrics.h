#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/metrics.h"

namespace fopd::daemon {

inline constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// The figures of all sources in the OpenMetrics text format, 1.0. Families are sorted by name, the
// samples of a family are in the order of collection. A name that ends in _seconds, _bytes or
// _ratio states its unit. Histograms have the buckets 1, 2.5 and 5 of each power of ten from 1 µs
// to 1000 s; a value within 1/16 below such a limit may be counted one bucket higher. REQUIRES: all
// samples of a name have one type, and no two have the same labels.
std::string render_open_metrics(std::span<const core::MetricSource* const> sources);

}  // namespace fopd::daemon
