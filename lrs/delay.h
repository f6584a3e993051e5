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

// A fault to test with: of a hundred requests, `percent` come at a random time between min and max
// after they arrived, the others at once. Which and when is drawn from the seed. Those of a client
// overtake each other.
std::unique_ptr<Policy> make_delay(const DelaySettings& settings, std::uint64_t seed);

}  // namespace fopd::lrs
