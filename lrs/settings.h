#pragma once

#include <cstdint>
#include <optional>

#include "config/section.h"
#include "core/time.h"
#include "lrs/policies.h"

namespace fopd::lrs {

// The section `lrs` of the configuration.
struct LrsSettings : PolicyChoice {
    std::uint32_t max_foms = 128;
    std::optional<Duration> io_wait_goal = 1ms;
};

config::Section<LrsSettings> lrs_section();

}  // namespace fopd::lrs
