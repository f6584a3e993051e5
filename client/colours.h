// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>
#include <unistd.h>

namespace fopd::client {

// The colours of what fopctl prints on terminals. The text means the same without them.
enum class Tint : unsigned char { kNone, kGood, kWarning, kBad };

// `wish` is "always", "never" or "auto". "auto": colours on a terminal, unless NO_COLOR is set or
// TERM=dumb. Without this call there are no colours. Called before threads are started.
void choose_colours(std::string_view wish);

// The text in its colour, for standard output or standard error.
std::string tinted(std::string_view text, Tint tint, int fd = STDOUT_FILENO);

// The tint for a state of a node, a locality or a disk, or for the health of a node.
Tint tint_of_state(std::string_view state);
// The state for people, safe for a terminal.
std::string state_shown(const nlohmann::json& state);

}  // namespace fopd::client
