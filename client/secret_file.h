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

// Returns the bytes of a token. If `token_or_file` is not the text of a token, it is the name of a
// file that holds the text. Unlike a key's, this file may be readable by others. An error does not
// quote `token_or_file` if it is long and has no slash, because then it may be a damaged token.
std::expected<std::vector<std::byte>, std::string> read_token(const std::string& token_or_file);

}  // namespace fopd::client
