// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace fopd::client {

// A value of the server's as people read it, safe for a terminal: text without quotes, a list with
// commas, null as "-".
std::string shown(const nlohmann::json& value);

// A number with `digits` after the point.
std::string fixed(double number, int digits);

// "8.0 GiB", "512 B".
std::string size_of(std::uint64_t bytes);

// "3d 4h", "2h 5m", "1m 7s", "3.2s".
std::string span_of(double seconds);

// Lines of aligned columns; numbers to the right, two blanks between.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace fopd::client
