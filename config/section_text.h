#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace fopd::config {

// The text of a configuration file with other lines for one of its sections; a section that it has
// not comes last. All that stands elsewhere stays as it is, comments too: those between two
// sections belong to the second. Or why that cannot be done.
std::expected<std::string, std::string> replace_section(std::string_view text,
                                                        std::string_view name,
                                                        std::string_view lines);

}  // namespace fopd::config
