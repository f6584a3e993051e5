#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/byte_order.h"
#include "core/ensure.h"

namespace fopd::fop {

// Parses fixed layouts; numbers are little-endian. Reading past the end gives zeros and makes ok()
// false permanently, so the caller needs to check only once, at the end.
class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    template <std::unsigned_integral T>
    T number() {
        const auto from = take(sizeof(T));
        return from.empty() ? T{0} : load_little<T>(from.data());
    }
    std::span<const std::byte> take(std::size_t count) {
        if (count > bytes_.size()) {
            ok_ = false;
            bytes_ = {};
            return {};
        }
        const auto taken = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return taken;
    }
    void take_into(std::span<std::byte> to) {
        const auto from = take(to.size());
        if (!from.empty()) std::memcpy(to.data(), from.data(), to.size());
    }
    // A length byte, followed by the text.
    std::string_view short_text() {
        const auto text = take(number<std::uint8_t>());
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }

    bool ok() const { return ok_; }
    // All reads succeeded, and no bytes are left.
    bool complete() const { return ok_ && bytes_.empty(); }

private:
    std::span<const std::byte> bytes_;
    bool ok_ = true;
};

// Builds fixed layouts. REQUIRES: the buffer has room for everything that is written.
class ByteWriter {
public:
    explicit ByteWriter(std::span<std::byte> into) : into_(into) {}

    template <std::unsigned_integral T>
    void number(T value) {
        store_little(take(sizeof(T)), value);
    }
    void put(std::span<const std::byte> bytes) {
        std::byte* const to = take(bytes.size());
        if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    }
    void short_text(std::string_view text) {
        ENSURE(text.size() <= 255);
        number(static_cast<std::uint8_t>(text.size()));
        put(std::as_bytes(std::span(text)));
    }

    std::size_t size() const { return size_; }
    std::span<const std::byte> written() const { return into_.first(size_); }

private:
    std::byte* take(std::size_t count) {
        ENSURE(count <= into_.size() - size_);
        std::byte* const at = into_.data() + size_;
        size_ += count;
        return at;
    }

    std::span<std::byte> into_;
    std::size_t size_ = 0;
};

}  // namespace fopd::fop
