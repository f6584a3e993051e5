#include "store/tape/block_checksum.h"

#include <array>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::store {

std::uint32_t block_checksum(std::span<const std::byte> bytes) {
    static constexpr std::array<std::byte, 4096> kZeros{};
    ENSURE(bytes.size() <= kZeros.size());
    const std::uint32_t checksum = core::crc32c(bytes);
    if (bytes.size() == kZeros.size()) return checksum;
    return core::crc32c(std::span(kZeros).subspan(bytes.size()), checksum);
}

std::uint32_t checksum_of(std::span<const std::uint32_t> checksums, std::uint32_t seed) {
    std::array<std::byte, 4> bytes;
    for (const std::uint32_t checksum : checksums) {
        store_little(bytes.data(), checksum);
        seed = core::crc32c(bytes, seed);
    }
    return seed;
}

}  // namespace fopd::store
