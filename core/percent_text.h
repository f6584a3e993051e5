#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fopd::core {

// Any text as one word of visible ASCII, for the lines of a file: each other byte, and each '%', is
// written as '%' and two hexadecimal digits in lower case.
std::string percent_encoded(std::string_view text);

// Nothing if a byte should have been encoded, or a '%' is not followed by two such digits. Also
// decodes bytes that need not have been encoded.
std::optional<std::string> percent_decoded(std::string_view word);

}  // namespace fopd::core
