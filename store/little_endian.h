#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>

namespace fopd::store {

// Numbers as they are stored on disks, lowest byte first. REQUIRES: the bytes have room for the
// number.
template <std::unsigned_integral T>
void put_little(std::span<std::byte> bytes, std::size_t at, T value) {
    static_assert(std::endian::native == std::endian::little, "swap the bytes here");
    std::memcpy(bytes.subspan(at, sizeof value).data(), &value, sizeof value);
}

template <std::unsigned_integral T>
T get_little(std::span<const std::byte> bytes, std::size_t at) {
    static_assert(std::endian::native == std::endian::little, "swap the bytes here");
    T value;
    std::memcpy(&value, bytes.subspan(at, sizeof value).data(), sizeof value);
    return value;
}

}  // namespace fopd::store
