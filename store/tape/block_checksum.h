#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fopd::store {

// The CRC-32C of a block of 4096 bytes that begins with `bytes` and is filled up with zeros.
std::uint32_t block_checksum(std::span<const std::byte> bytes);

// The CRC-32C of checksums, as Member::checksum, after those that gave `seed`.
std::uint32_t checksum_of(std::span<const std::uint32_t> checksums, std::uint32_t seed = 0);

}  // namespace fopd::store
