// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace fopd::client {

// Checks, help pages and error messages of the command line. They are worded for people, without
// the names of types and checks of CLI11, which parses the command line.

// A whole number, or a number of seconds, with both bounds allowed.
CLI::Validator whole_between(std::uint64_t low, std::uint64_t high);
CLI::Validator seconds_between(double low, double high);
// One of these words.
CLI::Validator one_of(std::vector<std::string> words);
// A size in the form of the configuration, such as 4k or 1MiB. Replaces it by the number of bytes.
CLI::Validator size_between(std::uint64_t low, std::uint64_t high);

// Reads a duration such as "90s", "15min", "12h" or "7d", at most a hundred years. None: the text
// has another form.
std::optional<std::int64_t> seconds_in(std::string_view text);

// Turns `help put` into `put --help`; leaves other words unchanged.
std::vector<std::string> with_help_option(std::vector<std::string> words);

// Formats --help: the name of each value, its meaning and its default.
class HelpPage final : public CLI::Formatter {
public:
    HelpPage();
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_desc(const CLI::Option* option) const override;
    std::string make_usage(const CLI::App* app, std::string name) const override;
};

// The error message for a command line: the reason for the refusal, the verb, and the way to
// correct it.
std::string refusal(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fopd::client
