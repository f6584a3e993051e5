// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>

namespace fopd::client {

// How many bytes of a short file there are, at most as many as there is room for; or why it cannot
// be read, which names the file.
std::expected<std::size_t, std::string> read_secret_file(const std::string& path,
                                                         std::span<char> into);

}  // namespace fopd::client
