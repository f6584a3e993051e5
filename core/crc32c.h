#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fopd::core {

// CRC-32C (Castagnoli), as in RFC 3720. `seed` is the checksum of the preceding bytes: crc32c(b,
// crc32c(a)) is the checksum of a followed by b. The first call selects an implementation for the
// processor. Thread-safe.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

using Crc32cFunction = std::uint32_t (*)(std::span<const std::byte>, std::uint32_t seed);
// The implementations that this processor can run. The first is the fastest, and that of crc32c().
// For tests and benches.
std::vector<Crc32cFunction> crc32c_functions();

}  // namespace fopd::core
