// SPDX-License-Identifier: BSD-2-Clause
#include "client/command_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "config/nearest.h"
#include "config/problem.h"
#include "config/units.h"
#include "core/printable.h"
#include "core/whole_number.h"

namespace fopd::client {

namespace {

constexpr std::size_t kNameColumns = 28;

// 1000000 as itself, 0.01 without trailing zeros.
std::string shown_number(double number) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), number,
                                   std::chars_format::general, 10);
    return {text.data(), end.ptr};
}

CLI::Validator check(std::function<std::string(std::string&)> look) {
    return {std::move(look), ""};
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    const auto near = config::nearest(word, known);
    return near ? "; did you mean " + *near + "?" : "";
}

// In lines that end before the edge of a terminal. The library indents them.
std::string wrapped(std::string_view text) {
    constexpr std::size_t kWidth = 79 - kNameColumns;
    std::string lines;
    while (text.size() > kWidth) {
        const std::size_t end = text.substr(0, kWidth + 1).rfind(' ');
        if (end == text.npos || end == 0) break;
        lines.append(text.substr(0, end)).append("\n");
        text.remove_prefix(end + 1);
    }
    return lines.append(text);
}

// The verb or group that was being parsed, and its words without the program's name.
struct Chosen {
    const CLI::App* app;
    std::string words;
};
Chosen chosen_of(const CLI::App& app) {
    Chosen chosen{.app = &app, .words = {}};
    while (!chosen.app->get_subcommands().empty()) {
        chosen.app = chosen.app->get_subcommands().front();
        chosen.words += (chosen.words.empty() ? "" : " ") + chosen.app->get_name();
    }
    return chosen;
}

bool is_group(const CLI::App& app) {
    return !app.get_subcommands(nullptr).empty();
}

std::vector<std::string> verbs_of(const CLI::App& app) {
    std::vector<std::string> verbs;
    for (const CLI::App* each : app.get_subcommands(nullptr)) verbs.push_back(each->get_name());
    return verbs;
}

std::vector<std::string> options_of(const CLI::App& app) {
    std::vector<std::string> options;
    for (const CLI::App* each = &app; each != nullptr; each = each->get_parent()) {
        for (const CLI::Option* option : each->get_options()) {
            for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
        }
    }
    return options;
}

// Verbs of other programs, and the verb of fopctl that does the same.
struct OtherName {
    std::string_view word;
    std::string_view verb;
};
constexpr std::array kOtherNames{
    OtherName{"cat", "get"},   OtherName{"cp", "put"},     OtherName{"copy", "put"},
    OtherName{"delete", "rm"}, OtherName{"del", "rm"},     OtherName{"download", "get"},
    OtherName{"list", "ls"},   OtherName{"move", "mv"},    OtherName{"remove", "rm"},
    OtherName{"rename", "mv"}, OtherName{"upload", "put"},
};

std::string words_about_verb(const CLI::App& group, const std::vector<std::string>& rest) {
    const auto unknown = std::ranges::find_if(
        rest, [](const std::string& word) { return !word.starts_with('-') || word.size() == 1; });
    const std::vector<std::string> known = verbs_of(group);
    if (unknown == rest.end()) return "a verb is missing; known here: " + config::joined(known);
    const bool is_whole = group.get_parent() == nullptr;
    const auto other = std::ranges::find(kOtherNames, *unknown, &OtherName::word);
    const std::string near = is_whole && other != kOtherNames.end()
                                 ? "; did you mean " + std::string(other->verb) + "?"
                                 : did_you_mean(*unknown, known);
    return "there is no verb " + config::shown_key(*unknown) +
           (!near.empty() ? near
            : is_whole    ? "; fopctl --help lists all verbs"
                          : "; known here: " + config::joined(known));
}

// Complains about the words that are left over after parsing.
std::string words_about_rest(const CLI::App& verb, const std::vector<std::string>& rest) {
    for (const std::string& word : rest) {
        if (!word.starts_with('-') || word.size() < 2) continue;
        const std::string name = word.substr(0, word.find('='));
        const std::vector<std::string> known = options_of(verb);
        if (std::ranges::find(known, name) != known.end()) {
            return name + " must stand behind " + verb.get_name();
        }
        return "there is no option " + config::shown_key(name) + did_you_mean(name, known);
    }
    const bool takes_values =
        !verb.get_options([](const CLI::Option* option) { return option->get_positional(); })
             .empty();
    return config::in_quotes(rest.front()) + " is too much: " + verb.get_name() +
           (takes_values ? " takes fewer values" : " takes no values");
}

}  // namespace

std::optional<std::int64_t> seconds_in(std::string_view text) {
    struct Unit {
        std::string_view name;
        std::int64_t seconds;
    };
    static constexpr std::array kUnits{Unit{"s", 1}, Unit{"min", 60}, Unit{"h", 3600},
                                       Unit{"d", 86400}};
    static constexpr std::int64_t kMax = std::int64_t{100} * 365 * 24 * 3600;
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto* const unit = std::ranges::find(kUnits, text.substr(digits), &Unit::name);
    if (digits > 12 || unit == kUnits.end()) return std::nullopt;
    const auto count = core::whole_number<std::int64_t>(text.substr(0, digits));
    if (!count || *count == 0 || *count > kMax / unit->seconds) return std::nullopt;
    return *count * unit->seconds;
}

std::vector<std::string> with_help_option(std::vector<std::string> words) {
    if (words.empty() || words.front() != "help") return words;
    words.erase(words.begin());
    words.emplace_back("--help");
    return words;
}

CLI::Validator whole_between(std::uint64_t low, std::uint64_t high) {
    return check([low, high](std::string& text) -> std::string {
        const auto number = core::whole_number(text);
        if (number && *number >= low && *number <= high) return {};
        return "must be a whole number from " + std::to_string(low) + " to " +
               std::to_string(high) + ", not " + config::in_quotes(text);
    });
}

CLI::Validator seconds_between(double low, double high) {
    return check([low, high](std::string& text) -> std::string {
        double number = 0;
        const char* const end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data(), end, number);
        const bool is_number = error == std::errc() && at == end && std::isfinite(number);
        if (is_number && number >= low && number <= high) return {};
        return "must be a number of seconds from " + shown_number(low) + " to " +
               shown_number(high) + ", not " + config::in_quotes(text);
    });
}

CLI::Validator one_of(std::vector<std::string> words) {
    return check([words = std::move(words)](std::string& text) -> std::string {
        if (std::ranges::find(words, text) != words.end()) return {};
        const char* const kind = words.size() == 1 ? "must be " : "must be one of ";
        return kind + config::joined(words) + ", not " + config::in_quotes(text) +
               did_you_mean(text, words);
    });
}

CLI::Validator size_between(std::uint64_t low, std::uint64_t high) {
    return check([low, high](std::string& text) -> std::string {
        const auto size = config::parse_size(text);
        if (!size) return size.error().wrong + "; " + size.error().right;
        if (*size < low || *size > high) {
            return "must be from " + config::format_size(low) + " to " + config::format_size(high) +
                   ", not " + config::in_quotes(text);
        }
        text = std::to_string(*size);
        return {};
    });
}

HelpPage::HelpPage() {
    column_width(kNameColumns);
}

std::string HelpPage::make_option_opts(const CLI::Option* option) const {
    const bool is_flag = option->get_items_expected_max() == 0;
    return is_flag || option->get_positional() ? "" : " VALUE";
}

std::string HelpPage::make_option_desc(const CLI::Option* option) const {
    std::string text = option->get_description();
    std::string more;
    if (const std::string& value = option->get_default_str(); !value.empty()) {
        more = "default " + value;
    }
    if (const std::string& variable = option->get_envname(); !variable.empty()) {
        more += (more.empty() ? "or " : "; or ") + variable;
    }
    if (!more.empty()) text += " (" + more + ")";
    return wrapped(text);
}

std::string HelpPage::make_usage(const CLI::App* app, std::string name) const {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    const bool is_verb = app->get_parent() != nullptr && !is_group(*app);
    if (is_verb) usage += "Options of all verbs: fopctl --help\n";
    return usage;
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
    const Chosen chosen = chosen_of(app);
    const std::string verb = chosen.words.empty() ? "" : chosen.words + ": ";
    std::vector<std::string> rest = app.remaining(true);
    std::erase(rest, "--");
    const bool wants_verb = is_group(*chosen.app);
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    if (wants_verb &&
        (is_missing || (is_unknown && (rest.empty() || !rest.front().starts_with('-'))))) {
        return verb + words_about_verb(*chosen.app, rest);
    }
    if (is_unknown && !rest.empty()) return verb + words_about_rest(*chosen.app, rest);
    std::string words = core::printable(error.what());
    const std::string option = words.substr(0, words.find(':'));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        words = option + " needs a value";
    } else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
        words += ": give only one of them";
    }
    if (is_missing) words += "; see fopctl " + chosen.words + " --help";
    return verb + words;
}

}  // namespace fopd::client
