#pragma once

#include <cstdint>
#include <string_view>

namespace fopd::daemon {

// The text formats of /metrics.
enum class MetricsFormat : std::uint8_t {
    kText,         // The older one of Prometheus, version 0.0.4.
    kOpenMetrics,  // Version 1.0.0.
};

// The value of the header Content-Type for an answer in this format.
std::string_view content_type_of(MetricsFormat format);

// The format that the value of the header Accept asks for, by its q values. The older one if the
// header is empty, names neither, or gives OpenMetrics no preference by its name.
MetricsFormat preferred_format(std::string_view accept);

}  // namespace fopd::daemon
