#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>

namespace fopd::sim::testing {

// A number that whoever runs a swarm has set.
inline std::optional<std::uint64_t> number_in(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
}

}  // namespace fopd::sim::testing
