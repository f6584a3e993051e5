#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace fopd::fop {

// Overwrites secret bytes; the compiler cannot optimize the call away.
void wipe(std::span<std::byte> bytes);

// Compares in time that depends only on the sizes. Spans of different sizes differ.
bool same_bytes(std::span<const std::byte> one, std::span<const std::byte> other);

// Secret bytes: wiped on destruction, compared in constant time, never printed. Initially all zero.
template <std::size_t Size>
class SecretBytes {
public:
    static constexpr std::size_t kSizeBytes = Size;

    SecretBytes() = default;
    explicit SecretBytes(std::span<const std::byte, Size> bytes) {
        std::ranges::copy(bytes, bytes_.begin());
    }
    SecretBytes(const SecretBytes&) = default;
    SecretBytes& operator=(const SecretBytes&) = default;
    ~SecretBytes() { wipe(bytes_); }

    std::span<const std::byte, Size> bytes() const { return bytes_; }
    // For the code that generates the secret.
    std::span<std::byte, Size> writable() { return bytes_; }

    friend bool operator==(const SecretBytes& one, const SecretBytes& other) {
        return same_bytes(one.bytes_, other.bytes_);
    }

private:
    std::array<std::byte, Size> bytes_{};
};

}  // namespace fopd::fop
