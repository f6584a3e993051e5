// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::client {

// The words of a line, as a shell divides and unquotes them: blanks between; '...' is as it is; in
// "..." a backslash stands before " and \\; elsewhere it stands before any character; # at the
// beginning of a word begins a comment. Nothing is replaced: $ and * are ordinary. The error is the
// reason.
std::expected<std::vector<std::string>, std::string> shell_words(std::string_view line);

}  // namespace fopd::client
