// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

#include "fop/key.h"

namespace fopd::client {

// Errors are reasons for people: they may name the file, and quote nothing of it.

// Reads a key from a file of 64 hexadecimal digits. A file that others can read is refused.
std::expected<fop::Key, std::string> read_key_file(const std::string& path);

// The bytes of a token, which is given as itself or as the name of the file that holds it. An error
// quotes nothing of a text that may be a token.
std::expected<std::vector<std::byte>, std::string> read_token(const std::string& token_or_file);

}  // namespace fopd::client
