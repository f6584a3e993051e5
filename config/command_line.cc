#include "config/command_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>
#include <utility>

#include "config/nearest.h"
#include "config/problem.h"
#include "config/units.h"
#include "core/printable.h"
#include "core/whole_number.h"

namespace fopd::config {

namespace {

constexpr std::size_t kNameColumns = 28;

// What the library calls the types of values whose option has no name for its value.
constexpr std::array<std::string_view, 5> kLibraryTypes{"TEXT", "UINT", "INT", "FLOAT", ""};

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

// The words of one_of() in a help page, which completion of shells reads, too.
std::string choices_in_help(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : "|") + word;
    return text;
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

const CLI::App& program_of(const CLI::App& app) {
    const CLI::App* each = &app;
    while (each->get_parent() != nullptr) each = each->get_parent();
    return *each;
}

// "fopctl put", as typed before --help.
std::string whole_name(const CLI::App& verb) {
    const std::string name = verb.get_name();
    return verb.get_parent() == nullptr ? name : whole_name(*verb.get_parent()) + " " + name;
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

// Complains about the words that are left over after parsing.
std::string words_about_rest(const CLI::App& verb, const std::vector<std::string>& rest) {
    for (const std::string& word : rest) {
        if (!word.starts_with('-') || word.size() < 2) continue;
        const std::string name = word.substr(0, word.find('='));
        const std::vector<std::string> known = options_of(verb);
        if (std::ranges::find(known, name) != known.end()) {
            return name + " must come after " + verb.get_name();
        }
        const std::string near = did_you_mean(name, known);
        return "there is no option " + shown_key(name) +
               (near.empty() ? "; see " + whole_name(verb) + " --help" : near);
    }
    int most = 0;
    for (const CLI::Option* option : verb.get_options()) {
        if (option->get_positional()) most += option->get_items_expected_max();
    }
    return "unexpected " + in_quotes(rest.front()) + ": " + verb.get_name() + " takes " +
           (most == 0   ? "no values"
            : most == 1 ? "at most 1 value"
                        : "at most " + std::to_string(most) + " values");
}

// Of a value that is missing, that was given twice, or that a flag was given.
std::string words_about_values(const std::string& option, const std::string& words) {
    if (words.find("At Most") != words.npos) return option + " is given more than once";
    if (words.find("flag override") != words.npos) {
        return words.substr(0, words.find(' ')) + " takes no value";
    }
    return option + " needs a value";
}

}  // namespace

ChosenVerb chosen_verb(const CLI::App& app) {
    ChosenVerb chosen{.app = &app, .words = {}};
    while (!chosen.app->get_subcommands().empty()) {
        chosen.app = chosen.app->get_subcommands().front();
        chosen.words += (chosen.words.empty() ? "" : " ") + chosen.app->get_name();
    }
    return chosen;
}

bool has_verbs(const CLI::App& app) {
    return !app.get_subcommands(nullptr).empty();
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
    const auto near = nearest(word, known);
    return near ? "; did you mean " + *near + "?" : "";
}

CLI::Validator whole_between(std::uint64_t low, std::uint64_t high) {
    return check([low, high](std::string& text) -> std::string {
        const auto number = core::whole_number(text);
        if (number && *number >= low && *number <= high) return {};
        return "must be a whole number from " + std::to_string(low) + " to " +
               std::to_string(high) + ", not " + in_quotes(text);
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
               shown_number(high) + ", not " + in_quotes(text);
    });
}

CLI::Validator one_of(std::vector<std::string> words) {
    std::string choices = choices_in_help(words);
    return {[words = std::move(words)](std::string& text) -> std::string {
                if (std::ranges::find(words, text) != words.end()) return {};
                const char* const kind = words.size() == 1 ? "must be " : "must be one of ";
                return kind + joined(words) + ", not " + in_quotes(text) +
                       did_you_mean(text, words);
            },
            std::move(choices)};
}

CLI::Validator size_between(std::uint64_t low, std::uint64_t high) {
    return check([low, high](std::string& text) -> std::string {
        const auto size = parse_size(text);
        if (!size) return size.error().wrong + "; " + size.error().right;
        if (*size < low || *size > high) {
            return "must be from " + format_size(low) + " to " + format_size(high) + ", not " +
                   in_quotes(text);
        }
        text = std::to_string(*size);
        return {};
    });
}

HelpPage::HelpPage() {
    column_width(kNameColumns);
}

std::string HelpPage::make_option_opts(const CLI::Option* option) const {
    if (option->get_items_expected_max() == 0) return "";  // A flag.
    // The library has a colon between a type and what checks say of its values; of our checks only
    // one_of() says something.
    const std::string type = option->get_type_name();
    const std::size_t colon = type.find(':');
    const std::string name = type.substr(0, colon);
    const bool has_choices = colon != type.npos;
    if (option->get_positional()) return has_choices ? " " + type.substr(colon + 1) : "";
    const bool is_named = std::ranges::find(kLibraryTypes, name) == kLibraryTypes.end();
    const std::string value = is_named      ? name
                              : has_choices ? type.substr(colon + 1)
                                            : std::string("VALUE");
    return option->get_items_expected_min() == 0 ? " [" + value + "]" : " " + value;
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
    std::string needed;
    for (const CLI::Option* option : app->get_options()) {
        if (!option->get_required() || option->get_positional()) continue;
        needed += " " + option->get_name() + make_option_opts(option);
    }
    // Behind the word for the others, which stands before the values without a name.
    const std::string others = "[" + get_label("OPTIONS") + "]";
    if (const std::size_t at = usage.find(others); at != usage.npos) {
        usage.insert(at + others.size(), needed);
    }
    const bool is_verb = app->get_parent() != nullptr && !has_verbs(*app);
    if (is_verb) usage += "Options of all verbs: " + program_of(*app).get_name() + " --help\n";
    return usage;
}

std::string HelpPage::make_subcommand(const CLI::App* verb) const {
    std::ostringstream page;
    CLI::detail::format_help(page, verb->get_name(), wrapped(verb->get_description()),
                             kNameColumns);
    return page.str();
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
    const ChosenVerb chosen = chosen_verb(app);
    const std::string verb = chosen.words.empty() ? "" : chosen.words + ": ";
    std::vector<std::string> rest = app.remaining(true);
    std::erase(rest, "--");
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    if (is_unknown && !rest.empty()) return verb + words_about_rest(*chosen.app, rest);
    std::string words = core::printable(error.what());
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        words = words_about_values(words.substr(0, words.find(':')), words);
    } else if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
        words += ": give only one of them";
    } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        words += "; see " + whole_name(*chosen.app) + " --help";
    }
    return verb + words;
}

}  // namespace fopd::config
