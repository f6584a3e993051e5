#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fopd::core {

enum class Quotes : std::uint8_t { kKeep, kEscape };

// Appends `text` so that it stays on one line and cannot control a terminal: control characters
// (C0, DEL, C1), line separators, characters that reorder the line, and invalid UTF-8 are written
// as \n, \r, \t or \xHH. With Quotes::kEscape also " as \" and \ as \\.
void append_printable(std::string& out, std::string_view text, Quotes quotes = Quotes::kKeep);
std::string printable(std::string_view text);

}  // namespace fopd::core
