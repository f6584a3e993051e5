#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fopd::core {

// CRC-32C (Castagnoli), as in RFC 3720. `seed` is the checksum of the bytes before these, so that
// crc32c(b, crc32c(a)) is that of a and b in one piece. The first call finds out what the processor
// offers; callable from every thread.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

// The same by tables alone: what processors without an instruction for it do.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace fopd::core
