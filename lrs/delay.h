#pragma once

#include <cstdint>
#include <memory>

#include "config/record.h"
#include "lrs/policy.h"

namespace fopd::lrs {

struct DelaySettings {
    Duration min = 100ms;
    Duration max = 1s;
    std::uint32_t percent = 100;
    friend bool operator==(const DelaySettings&, const DelaySettings&) = default;
};
config::Record<DelaySettings> delay_record();

// A fault for tests: `percent` of a hundred requests are delayed by a random time between min and
// max, the others are served at once. The choice and the delays are drawn from the seed. Requests
// of one client may overtake each other.
std::unique_ptr<Policy> make_delay(const DelaySettings& settings, std::uint64_t seed);

}  // namespace fopd::lrs
