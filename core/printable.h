#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace fopd::core {

// How many bytes the first character of `text` takes: 1 to 4, or 0 when they are no valid UTF-8
// (RFC 3629: neither overlong nor a surrogate). Requires: `text` is not empty.
std::size_t utf8_length(std::string_view text);

enum class Quotes { kKeep, kEscape };

// Appends `text` such that it stays on its line and cannot command a terminal: control characters
// (C0, DEL, C1), line separators, characters that reorder the line, and bytes that are no UTF-8 are
// written as \n, \r, \t or \xHH. With Quotes::kEscape also " as \" and \ as \\.
void append_printable(std::string& out, std::string_view text, Quotes quotes = Quotes::kKeep);

}  // namespace fopd::core
