#pragma once

#include <cstdint>

#include "config/section.h"
#include "core/time.h"

namespace fopd::store {

// The section `store` of the configuration.
struct StoreSettings {
    Duration flush_interval = 1s;
    Duration checkpoint_interval = 5s;
    Duration upload_timeout = 1h;
    std::uint64_t overlay_bytes = 64ULL << 20;
    std::uint64_t scrub_bytes_per_second = 50ULL << 20;
    Duration scrub_age_max = 35 * 24h;  // 0: any age.
    std::uint64_t coalesce_bytes_per_second = 8ULL << 20;
    std::uint64_t zeros_ahead_bytes = 64ULL << 20;
    bool discard = false;
};

config::Section<StoreSettings> store_section();

}  // namespace fopd::store
