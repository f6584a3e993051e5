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

// The buckets in which a histogram is exported, by their limits: 1 and 2.5 of each power of ten
// from 25 µs to 10 s; or the powers of ten from 1 ms to 1 s, for a name with many series.
enum class Buckets : std::uint8_t { kTwelve, kFour };

// Receives the figures of one collection of the metrics. Names are in OpenMetrics form, with the
// prefix "fopd_" ("process_" for figures that all programs have) and without a counter's suffix
// "_total"; `help` is one sentence. All text is borrowed during the call.
class MetricSink {
public:
    virtual ~MetricSink() = default;
    virtual void counter(std::string_view name, std::string_view help,
                         std::span<const Label> labels, double value) = 0;
    virtual void gauge(std::string_view name, std::string_view help, std::span<const Label> labels,
                       double value) = 0;
    // The histogram has nanoseconds, and is exported in seconds.
    virtual void time_histogram(std::string_view name, std::string_view help,
                                std::span<const Label> labels, const Histogram& value,
                                Buckets buckets) = 0;
};

// A source of metrics. collect() may be called at any time, on a separate thread: it reads Counters
// and Histograms, and never waits for a locality.
class MetricSource {
public:
    virtual ~MetricSource() = default;
    virtual void collect(MetricSink& sink) const = 0;
};

}  // namespace fopd::core
