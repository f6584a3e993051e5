#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "daemon/start_problem.h"

namespace fopd::daemon {

// A secret of 32 bytes; its memory is wiped when it goes.
class Key {
public:
    static constexpr std::size_t kSizeBytes = 32;

    Key() = default;
    ~Key();
    Key(Key&& other) noexcept;
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;
    Key& operator=(Key&&) = delete;

    std::array<std::byte, kSizeBytes>& bytes() { return bytes_; }
    const std::array<std::byte, kSizeBytes>& bytes() const { return bytes_; }

private:
    std::array<std::byte, kSizeBytes> bytes_{};
};

// Reads 64 hexadecimal digits, and a newline or none, from a regular file that its owner alone can
// read; root may let its group read it too. The message of a refusal names the file and never its
// contents.
Started<Key> read_key_file(const std::string& path);

}  // namespace fopd::daemon
