#pragma once

#include <cstdint>

#include "devices/disk_label.h"

namespace fopd::devices::testing {

inline std::array<std::byte, 16> counting_id(std::uint8_t first) {
    std::array<std::byte, 16> id;
    for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(first + i);
    return id;
}

// That of docs/formats/label.md.
inline Label example_label() {
    return {.disk = counting_id(0x10),
            .owner = counting_id(0xa0),
            .generation = 2,
            .size_bytes = 8UL << 30,
            .created_unix_ns = 1'800'000'000'000'000'000,
            .segment_bytes = 1U << 20,
            .slot = 3,
            .state = LabelState::kActive,
            .pool = "fast"};
}

}  // namespace fopd::devices::testing
