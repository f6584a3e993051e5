// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "config/command_line.h"

namespace fopd::client {

using config::one_of;
using config::seconds_between;
using config::size_between;
using config::whole_between;

// A span such as "90s", "15min", "12h" or "7d", of a hundred years at most. None: the text has
// another form.
std::optional<std::int64_t> seconds_in(std::string_view text);

// `help put` as `put --help`; all other words as they are.
std::vector<std::string> with_help_option(std::vector<std::string> words);

// Why a command line is refused, with the verb, and what to do instead.
std::string refusal(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fopd::client
