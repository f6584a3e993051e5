// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string>

namespace fopd::client {

// Whether a file is refused that others can read or change, or that is another user's.
enum class Guard : std::uint8_t { kNone, kOwnerAlone };

// How many bytes of a short file there are, at most as many as there is room for; or why it cannot
// be read, which names the file. A pipe is nobody else's whatever its mode.
std::expected<std::size_t, std::string> read_secret_file(const std::string& path,
                                                         std::span<char> into, Guard guard);

}  // namespace fopd::client
