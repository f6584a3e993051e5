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

// Reads a duration such as "90s", "15min", "12h" or "7d", at most a hundred years. None: the text
// has another form.
std::optional<std::int64_t> seconds_in(std::string_view text);

// Turns `help put` into `put --help`; leaves other words unchanged.
std::vector<std::string> with_help_option(std::vector<std::string> words);

// Gives the values of options their names for help pages, in the program and all of its verbs.
void name_values(CLI::App& app);

// The error message for the command line `words`, which `app` has refused with `error`: the verb,
// the reason for the refusal, and the way to correct it.
std::string refusal(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& words);

}  // namespace fopd::client
