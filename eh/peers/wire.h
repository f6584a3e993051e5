#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/byte_order.h"

namespace fopd::eh::peers {

// One description of a layout serves both directions: a function template calls the same methods of
// a WireWriter and a WireReader. Numbers are little-endian.
class WireWriter {
public:
    static constexpr bool kReads = false;

    template <std::unsigned_integral T>
    void number(T value) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof value);
        store_little(bytes_.data() + at, value);
    }
    void flag(bool value) { number<std::uint8_t>(value ? 1 : 0); }
    void signed_number(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
    void text(const std::string& value, std::size_t /*size_max*/) {
        number(static_cast<std::uint8_t>(value.size()));
        blob(std::as_bytes(std::span(value)));
    }
    void data(const std::vector<std::byte>& value, std::size_t /*size_max*/) {
        number(static_cast<std::uint16_t>(value.size()));
        blob(value);
    }
    template <typename T, typename Each>
    void list(const std::vector<T>& values, std::size_t /*count_max*/, const Each& each) {
        number(static_cast<std::uint32_t>(values.size()));
        for (const T& value : values) each(value);
    }
    std::vector<std::byte> take() { return std::move(bytes_); }

private:
    void blob(std::span<const std::byte> from) {
        bytes_.insert(bytes_.end(), from.begin(), from.end());
    }

    std::vector<std::byte> bytes_;
};

// Strict: a field that is too long, not canonical or cut short makes ok() false, and reads as
// zeros.
class WireReader {
public:
    static constexpr bool kReads = true;

    explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <std::unsigned_integral T>
    void number(T& value) {
        const auto from = take(sizeof value);
        value = from.empty() ? T{0} : load_little<T>(from.data());
    }
    void flag(bool& value) {
        std::uint8_t byte = 0;
        number(byte);
        if (byte > 1) fail();
        value = byte == 1;
    }
    void signed_number(std::int64_t& value) {
        std::uint64_t bits = 0;
        number(bits);
        value = static_cast<std::int64_t>(bits);
    }
    void text(std::string& value, std::size_t size_max) {
        std::uint8_t size = 0;
        number(size);
        if (size > size_max) return fail();
        const auto from = take(size);
        value.assign(reinterpret_cast<const char*>(from.data()), from.size());
    }
    void data(std::vector<std::byte>& value, std::size_t size_max) {
        std::uint16_t size = 0;
        number(size);
        if (size > size_max) return fail();
        const auto from = take(size);
        value.assign(from.begin(), from.end());
    }
    template <typename T, typename Each>
    void list(std::vector<T>& values, std::size_t count_max, const Each& each) {
        std::uint32_t count = 0;
        number(count);
        // Each value takes a byte or more.
        if (count > count_max || count > bytes_.size()) return fail();
        values.resize(count);
        for (T& value : values) each(value);
    }
    void fail() {
        ok_ = false;
        bytes_ = {};
    }
    bool ok() const { return ok_; }
    bool at_end() const { return bytes_.empty(); }

private:
    std::span<const std::byte> take(std::size_t size) {
        if (size > bytes_.size()) fail();
        if (!ok_) return {};
        const auto taken = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return taken;
    }

    std::span<const std::byte> bytes_;
    bool ok_ = true;
};

inline constexpr bool kHostIsBig = std::endian::native == std::endian::big;

}  // namespace fopd::eh::peers
