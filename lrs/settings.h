#pragma once

#include <cstdint>

#include "config/section.h"
#include "lrs/policies.h"

namespace fopd::lrs {

// The section `lrs` of the configuration.
struct LrsSettings : PolicyChoice {
    std::uint32_t max_foms = 128;
};

config::Section<LrsSettings> lrs_section();

}  // namespace fopd::lrs
