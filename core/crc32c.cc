#include "core/crc32c.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
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

#define FOPD_TARGET_WIDE __attribute__((target("avx512f,vpclmulqdq,sse4.2,pclmul")))

// Replaces 16 bytes (each 16 of the 64) by others of the same checksum, which are to be added to
// the bytes that stand `Bytes` further on.
template <std::size_t Bytes>
FOPD_TARGET_WIDE __m128i moved(__m128i value) {
    const __m128i factors = _mm_set_epi64x(shift_factor(Bytes), shift_factor(Bytes + 8));
    return _mm_xor_si128(_mm_clmulepi64_si128(value, factors, 0x00),
                         _mm_clmulepi64_si128(value, factors, 0x11));
}

template <std::size_t Bytes>
FOPD_TARGET_WIDE __m512i moved(__m512i value) {
    const __m512i factors = _mm512_set4_epi64(shift_factor(Bytes), shift_factor(Bytes + 8),
                                              shift_factor(Bytes), shift_factor(Bytes + 8));
    return _mm512_xor_si512(_mm512_clmulepi64_epi128(value, factors, 0x00),
                            _mm512_clmulepi64_epi128(value, factors, 0x11));
}

constexpr std::size_t kWide = sizeof(__m512i);
// Four independent values keep the multiplier busy, which has a latency of several cycles.
constexpr std::size_t kWideRound = 4 * kWide;

FOPD_TARGET_WIDE __m512i load_wide(const std::byte* from) {
    return _mm512_loadu_si512(from);
}

// The plain intrinsic makes GCC 12 warn of an uninitialized value.
template <int Number>
FOPD_TARGET_WIDE __m128i quarter(__m512i value) {
    return _mm512_maskz_extracti32x4_epi32(0xf, value, Number);
}

// Twice as fast as the CRC instruction.
FOPD_TARGET_WIDE std::uint32_t crc32c_by_wide_products(std::span<const std::byte> bytes,
                                                       std::uint32_t seed) {
    if (bytes.size() < kWideRound) return crc32c_by_instruction(bytes, seed);
    const std::byte* at = bytes.data();
    std::size_t left = bytes.size() - kWideRound;
    const __m512i before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~seed)));
    __m512i first = _mm512_xor_si512(load_wide(at), before);
    __m512i second = load_wide(at + kWide);
    __m512i third = load_wide(at + 2 * kWide);
    __m512i fourth = load_wide(at + 3 * kWide);
    for (at += kWideRound; left >= kWideRound; at += kWideRound, left -= kWideRound) {
        first = _mm512_xor_si512(moved<kWideRound>(first), load_wide(at));
        second = _mm512_xor_si512(moved<kWideRound>(second), load_wide(at + kWide));
        third = _mm512_xor_si512(moved<kWideRound>(third), load_wide(at + 2 * kWide));
        fourth = _mm512_xor_si512(moved<kWideRound>(fourth), load_wide(at + 3 * kWide));
    }
    const __m512i upper = _mm512_xor_si512(moved<3 * kWide>(first), moved<2 * kWide>(second));
    const __m512i lower = _mm512_xor_si512(moved<kWide>(third), fourth);
    const __m512i wide = _mm512_xor_si512(upper, lower);
    const __m128i value =
        _mm_xor_si128(_mm_xor_si128(moved<48>(quarter<0>(wide)), moved<32>(quarter<1>(wide))),
                      _mm_xor_si128(moved<16>(quarter<2>(wide)), quarter<3>(wide)));
    std::uint64_t crc = _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(value)));
    crc = _mm_crc32_u64(crc, static_cast<std::uint64_t>(_mm_extract_epi64(value, 1)));
    return crc32c_by_instruction({at, left}, ~static_cast<std::uint32_t>(crc));
}

#endif

std::uint32_t choose_first(std::span<const std::byte> bytes, std::uint32_t seed);

// All threads that still find choose_first here choose the same function.
constinit std::atomic<Crc32cFunction> chosen = choose_first;

std::uint32_t choose_first(std::span<const std::byte> bytes, std::uint32_t seed) {
    const Crc32cFunction best = crc32c_functions().front();
    chosen.store(best, std::memory_order_relaxed);
    return best(bytes, seed);
}

// Uses look-up tables only.
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

}  // namespace

std::vector<Crc32cFunction> crc32c_functions() {
    std::vector<Crc32cFunction> functions;
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq")) {
            functions.push_back(crc32c_by_wide_products);
        }
        functions.push_back(crc32c_by_instruction);
    }
#endif
    functions.push_back(crc32c_by_tables);
    return functions;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
    return chosen.load(std::memory_order_relaxed)(bytes, seed);
}

}  // namespace fopd::core
