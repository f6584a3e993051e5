#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/byte_order.h"

namespace fopd::devices {

// Data sent by a SCSI device. Numbers have their highest byte first.
using ScsiBytes = std::span<const std::byte>;

// REQUIRES, of all: the bytes have the number.
inline std::uint8_t byte_at(ScsiBytes bytes, std::size_t at) {
    return std::to_integer<std::uint8_t>(bytes[at]);
}

inline std::uint16_t two_at(ScsiBytes bytes, std::size_t at) {
    return load_big<std::uint16_t>(bytes.subspan(at, 2).data());
}

inline std::uint32_t three_at(ScsiBytes bytes, std::size_t at) {
    return std::uint32_t{byte_at(bytes, at)} << 16U | two_at(bytes, at + 1);
}

inline std::uint32_t four_at(ScsiBytes bytes, std::size_t at) {
    return load_big<std::uint32_t>(bytes.subspan(at, 4).data());
}

inline std::uint64_t eight_at(ScsiBytes bytes, std::size_t at) {
    return load_big<std::uint64_t>(bytes.subspan(at, 8).data());
}

}  // namespace fopd::devices
