// SPDX-License-Identifier: BSD-2-Clause
#include "client/command_line.h"

#include <algorithm>
#include <array>

#include "config/problem.h"
#include "core/whole_number.h"

namespace fopd::client {

namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
    std::vector<std::string> verbs;
    for (const CLI::App* each : app.get_subcommands(nullptr)) verbs.push_back(each->get_name());
    return verbs;
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

// What help pages call the value of an option. Completion of shells goes by FILE, POOL, OBJECT,
// PRINCIPAL and CARTRIDGE. Options with a choice of words are not here: they have these words.
struct ValueName {
    std::string_view option;
    const char* value;
};
constexpr std::array kValueNames{
    ValueName{"admin", "FILE"},
    ValueName{"server", "ADDRESS"},
    ValueName{"key", "FILE"},
    ValueName{"token", "FILE"},
    ValueName{"job", "NAME"},
    ValueName{"timeout", "SECONDS"},
    ValueName{"interval", "SECONDS"},
    ValueName{"count", "NUMBER"},
    ValueName{"pool", "POOL"},
    ValueName{"collection", "NAME"},
    ValueName{"medium", "CARTRIDGE"},
    ValueName{"slot", "NUMBER"},
    ValueName{"size", "SIZE"},
    ValueName{"depth", "NUMBER"},
    ValueName{"jobs", "NUMBER"},
    ValueName{"seconds", "SECONDS"},
    ValueName{"object", "OBJECT"},
    ValueName{"object-size", "SIZE"},
    ValueName{"principals", "FILE"},
    ValueName{"config", "FILE"},
    ValueName{"public", "FILE"},
    ValueName{"rights", "RIGHTS"},
    ValueName{"groups", "GROUPS"},
    ValueName{"quota", "QUOTA"},
    ValueName{"out", "FILE"},
    ValueName{"issuer", "FILE"},
    ValueName{"principal", "PRINCIPAL"},
    ValueName{"fid", "FID"},
    ValueName{"expires", "TIME"},
    ValueName{"generation", "NUMBER"},
    ValueName{"rules", "FILE"},
    ValueName{"if-version", "NUMBER"},
    ValueName{"max-delete", "NUMBER"},
    ValueName{"group", "GROUP"},
    ValueName{"offset", "OFFSET"},
    ValueName{"length", "LENGTH"},
    ValueName{"pin", "TIME"},
    ValueName{"priority", "NUMBER"},
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
                                 : config::did_you_mean(*unknown, known);
    return "there is no verb " + config::shown_key(*unknown) +
           (!near.empty() ? near
            : is_whole    ? "; fopctl --help lists all verbs"
                          : "; known here: " + config::joined(known));
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

void name_values(CLI::App& app) {
    for (CLI::Option* const option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            const auto known = std::ranges::find(kValueNames, name, &ValueName::option);
            const bool is_flag = option->get_items_expected_max() == 0;
            if (known != kValueNames.end() && !is_flag) option->type_name(known->value);
        }
    }
    for (CLI::App* const verb : app.get_subcommands(nullptr)) name_values(*verb);
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& words) {
    const config::ChosenVerb chosen = config::chosen_verb(app);
    std::vector<std::string> rest = app.remaining(true);
    std::erase(rest, "--");
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    const bool is_about_verb =
        is_missing || (is_unknown && (rest.empty() || !rest.front().starts_with('-')));
    const std::string verb = chosen.words.empty() ? "" : chosen.words + ": ";
    if (is_about_verb && config::has_verbs(*chosen.app)) {
        return verb + words_about_verb(*chosen.app, rest);
    }
    // `drive NAME up` for `drive up NAME`: the word left over does not follow the verb.
    const auto from_verb = std::ranges::find(words, chosen.app->get_name());
    if (is_about_verb && !rest.empty() &&
        std::find(from_verb, words.end(), rest.front()) == words.end()) {
        return verb + config::in_quotes(rest.front()) + " must come after " +
               chosen.app->get_name() + "; see fopctl " + chosen.words + " --help";
    }
    return config::refusal(app, error);
}

}  // namespace fopd::client
