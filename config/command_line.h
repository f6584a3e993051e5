#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace fopd::config {

// How the command line of a program is checked, explained, and refused: in words for people,
// without the names that types and checks have in the library that parses it.

// A whole number, or a number of seconds, with both bounds allowed.
CLI::Validator whole_between(std::uint64_t low, std::uint64_t high);
CLI::Validator seconds_between(double low, double high);
// One of these words. Help pages have them as the name of the value: seal|encrypt.
CLI::Validator one_of(std::vector<std::string> words);
// A size as the configuration has it, such as 4k or 1MiB, which becomes a number of bytes.
CLI::Validator size_between(std::uint64_t low, std::uint64_t high);

// Formats --help: the name of each value, its meaning and its default.
class HelpPage final : public CLI::Formatter {
public:
    HelpPage();
    std::string make_option_opts(const CLI::Option* option) const override;
    std::string make_option_desc(const CLI::Option* option) const override;
    std::string make_usage(const CLI::App* app, std::string name) const override;
    std::string make_subcommand(const CLI::App* verb) const override;
};

// The verb or the group of verbs that was being parsed, and its words without the program's name;
// the program itself if it has no verbs.
struct ChosenVerb {
    const CLI::App* app;
    std::string words;
};
ChosenVerb chosen_verb(const CLI::App& app);
bool has_verbs(const CLI::App& app);

// "; did you mean X?", or nothing if no known word is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// Why a command line is refused, with the verb, and what to do instead. A missing or unknown verb
// is for the program to explain.
std::string refusal(const CLI::App& app, const CLI::ParseError& error);

}  // namespace fopd::config
