// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::client {

// Divides a line into words and removes quotes as a shell does. Blanks separate words. In '...'
// everything is literal. A backslash makes the next character literal; in "..." only a " or a
// backslash. A # at the beginning of a word begins a comment. $ and * are ordinary characters. The
// error is a message for people.
std::expected<std::vector<std::string>, std::string> shell_words(std::string_view line);

}  // namespace fopd::client
