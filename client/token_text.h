// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

namespace fopd::client {

// The bytes of a token that is given as itself or as the file it is in. Otherwise why there is
// none, which may name the file and quotes nothing of it, nor of what may be a token.
std::expected<std::vector<std::byte>, std::string> read_token(const std::string& token_or_file);

}  // namespace fopd::client
