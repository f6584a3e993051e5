#pragma once

#include <cstdint>
#include <optional>

#include "config/section.h"
#include "core/time.h"
#include "io_sched/algorithms.h"

namespace fopd::io_sched {

// The section `io_sched` of the configuration.
struct IoSchedSettings {
    const Algorithm* read_algo = &default_algorithm();
    const Algorithm* write_algo = &default_algorithm();
    const Algorithm* format_algo = &default_algorithm();
    const DispatchAlgorithm* dispatch_algo = &default_dispatch_algorithm();
    const RequestAlgorithm* request_algo = &default_request_algorithm();
    Duration elevator_max_wait = 500ms;
    std::optional<Duration> latency_goal{};  // Empty: the default for the kind of disk.
    std::uint32_t depth_max = 128;
};

config::Section<IoSchedSettings> io_sched_section();

}  // namespace fopd::io_sched
