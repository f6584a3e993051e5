#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

namespace fopd {

// Whole numbers in bytes, at any alignment. Little: lowest byte first, as on the wire and on disks.
// Big: highest byte first, so that the bytes sort as the numbers do.

// REQUIRES: `from` has as many bytes as the number.
template <std::unsigned_integral T>
T load_little(const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return std::endian::native == std::endian::little ? value : std::byteswap(value);
}

template <std::unsigned_integral T>
T load_big(const std::byte* from) {
    return std::byteswap(load_little<T>(from));
}

// REQUIRES: there is room for the number at `to`.
template <std::unsigned_integral T>
void store_little(std::byte* to, T value) {
    if constexpr (std::endian::native == std::endian::big) value = std::byteswap(value);
    std::memcpy(to, &value, sizeof value);
}

template <std::unsigned_integral T>
void store_big(std::byte* to, T value) {
    store_little(to, std::byteswap(value));
}

// Reads the number at an index of `bytes`. REQUIRES: it fits between `at` and the end.
template <std::unsigned_integral T>
T get_little(std::span<const std::byte> bytes, std::size_t at) {
    return load_little<T>(bytes.subspan(at, sizeof(T)).data());
}

template <std::unsigned_integral T>
void put_little(std::span<std::byte> bytes, std::size_t at, T value) {
    store_little(bytes.subspan(at, sizeof value).data(), value);
}

}  // namespace fopd
