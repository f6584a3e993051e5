#include "core/crc32c.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

namespace fopd::core {

namespace {

// Polynomials are bit-reflected: the highest bit is the coefficient of x^0.
constexpr std::uint32_t kPolynomial = 0x82f63b78;

constexpr std::uint32_t times_x(std::uint32_t value) {
    return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
}

// tables[k][b]: the effect of byte b on the checksum when k more bytes follow.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

consteval Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = times_x(value);
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < tables.size(); ++k) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
        }
    }
    return tables;
}

constexpr Tables kTables = make_tables();

std::uint32_t add_byte(std::uint32_t crc, std::byte byte) {
    return (crc >> 8) ^ kTables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 0xff];
}

std::uint64_t load_word(const std::byte* from) {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

#ifdef __x86_64__

#define FOPD_TARGET_CRC __attribute__((target("sse4.2,pclmul")))

// x^(8 * bytes - 33) modulo the polynomial. The carry-less product of a checksum and this factor
// (which adds x^1), folded by the CRC instruction (which adds x^32), is the checksum of the data
// followed by that many zero bytes.
consteval std::uint32_t shift_factor(std::size_t bytes) {
    std::uint32_t value = 0x8000'0000;
    for (std::size_t i = 0; i < 8 * bytes - 33; ++i) value = times_x(value);
    return value;
}

template <std::size_t Bytes>
FOPD_TARGET_CRC std::uint64_t shifted(std::uint64_t crc) {
    constexpr std::uint32_t kFactor = shift_factor(Bytes);
    const __m128i product =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(crc)),
                             _mm_cvtsi64_si128(static_cast<long long>(kFactor)), 0);
    return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

// The instruction has a latency of three cycles and a throughput of one per cycle: three
// independent checksums, over three lanes of Lane bytes each, keep the unit busy.
template <std::size_t Lane>
FOPD_TARGET_CRC std::uint64_t add_lanes(std::uint64_t first, const std::byte* at) {
    static_assert(Lane % 8 == 0);
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < Lane; i += 8) {
        first = _mm_crc32_u64(first, load_word(at + i));
        second = _mm_crc32_u64(second, load_word(at + Lane + i));
        third = _mm_crc32_u64(third, load_word(at + 2 * Lane + i));
    }
    return shifted<2 * Lane>(first) ^ shifted<Lane>(second) ^ third;
}

// 4 KiB, the block size of all stored data, is three long lanes and two words.
constexpr std::size_t kLongLane = 1360;
constexpr std::size_t kShortLane = 128;

FOPD_TARGET_CRC std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                    std::uint32_t seed) {
    std::uint64_t crc = ~seed;
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 3 * kLongLane; at += 3 * kLongLane, left -= 3 * kLongLane) {
        crc = add_lanes<kLongLane>(crc, at);
    }
    for (; left >= 3 * kShortLane; at += 3 * kShortLane, left -= 3 * kShortLane) {
        crc = add_lanes<kShortLane>(crc, at);
    }
    for (; left >= 8; at += 8, left -= 8) crc = _mm_crc32_u64(crc, load_word(at));
    auto narrow = static_cast<std::uint32_t>(crc);
    for (; left > 0; ++at, --left) {
        narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*at));
    }
    return ~narrow;
}

#endif

using Function = std::uint32_t (*)(std::span<const std::byte>, std::uint32_t);

Function best_function() {
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
        return crc32c_by_instruction;
    }
#endif
    return crc32c_by_tables;
}

std::uint32_t choose_first(std::span<const std::byte> bytes, std::uint32_t seed);

// All threads that still find choose_first here choose the same function.
constinit std::atomic<Function> chosen = choose_first;

std::uint32_t choose_first(std::span<const std::byte> bytes, std::uint32_t seed) {
    const Function best = best_function();
    chosen.store(best, std::memory_order_relaxed);
    return best(bytes, seed);
}

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t seed) {
    std::uint32_t crc = ~seed;
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size();
    if constexpr (std::endian::native == std::endian::little) {
        for (; left >= 8; at += 8, left -= 8) {
            const std::uint64_t word = load_word(at) ^ crc;
            crc = 0;
            for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
        }
    }
    for (; left > 0; ++at, --left) crc = add_byte(crc, *at);
    return ~crc;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
    return chosen.load(std::memory_order_relaxed)(bytes, seed);
}

}  // namespace fopd::core
