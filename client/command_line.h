// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace fopd::client {

// How the command line is checked, explained, and refused: in words for people, without the names
// that types and checks have in the library that parses it.

// A whole number, or a number of seconds, with both bounds allowed.
CLI::Validator whole_between(std::uint64_t low, std::uint64_t high);
CLI::Validator seconds_between(double low, double high);
// One of these words.
CLI::Validator one_of(std::vector<std::string> words);
// A size as the configuration has it, such as 4k or 1MiB, which becomes a number of bytes.
CLI::Validator size_between(std::uint64_t low, std::uint64_t high);

// A span such as "90s", "15min", "12h" or "7d", of a hundred years at most. None: the text has
// another form.
std::optional<std::int64_t> seconds_in(std::string_view text);

// `help put` as `put --help`; all other words as they are.
std::vector<std::string> with_help_option(std::vector<std::string> words);

// Formats --help: the name of each value, its meaning and its default.
class HelpPage final : public CLI::Formatter {
public:
    HelpPage();
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_desc(const CLI::Option* option) const override;
    std::string make_usage(const CLI::App* app, std::string name) const override;
};

// Why a command line is refused, with the verb, and what to do instead.
std::string refusal(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fopd::client
