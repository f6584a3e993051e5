#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/metrics.h"

namespace fopd::daemon {

inline constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// The figures of all sources in the OpenMetrics text format, 1.0. Families come in the order of
// their names, the samples of one in the order they were collected. A name that ends in _seconds,
// _bytes or _ratio says its unit. Histograms have the buckets 1, 2.5 and 5 of each power of ten
// from 1 µs to 1000 s; a value within 1/16 below such a limit may be counted one bucket higher.
// Requires: one name has one type, and no two samples of it the same labels.
std::string render_open_metrics(std::span<const core::MetricSource* const> sources);

}  // namespace fopd::daemon
