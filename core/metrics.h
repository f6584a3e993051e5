#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/histogram.h"

namespace fopd::core {

struct Label {
    std::string_view key;
    std::string_view value;
};

// Takes the figures of one look at the metrics. Names are in OpenMetrics form, with the "fopd_" in
// front and without the "_total" of a counter; `help` is one sentence. All text is borrowed for the
// call.
class MetricSink {
public:
    virtual ~MetricSink() = default;
    virtual void counter(std::string_view name, std::string_view help,
                         std::span<const Label> labels, double value) = 0;
    virtual void gauge(std::string_view name, std::string_view help, std::span<const Label> labels,
                       double value) = 0;
    // Of nanoseconds; shown in seconds.
    virtual void time_histogram(std::string_view name, std::string_view help,
                                std::span<const Label> labels, const Histogram& value) = 0;
};

// Something that has figures to show. collect() is called from a thread of its own at any time: it
// reads Counters and Histograms and never waits for a locality.
class MetricSource {
public:
    virtual ~MetricSource() = default;
    virtual void collect(MetricSink& sink) const = 0;
};

}  // namespace fopd::core
