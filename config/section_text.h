#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace fopd::config {

// Replaces the lines of one section in the text of a configuration file; a missing section is
// appended. All other text stays, including comments: comments between two sections belong to the
// second. Returns an error message if that cannot be done.
std::expected<std::string, std::string> replace_section(std::string_view text,
                                                        std::string_view name,
                                                        std::string_view lines);

}  // namespace fopd::config
