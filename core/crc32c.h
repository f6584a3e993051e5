#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fopd::core {

// CRC-32C (Castagnoli), as in RFC 3720. `seed` is the checksum of the preceding bytes: crc32c(b,
// crc32c(a)) is the checksum of a followed by b. The first call selects an implementation for the
// processor. Thread-safe.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

// Uses look-up tables only, as crc32c() does on processors without a CRC instruction. For tests.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace fopd::core
