#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/record.h"
#include "config/types.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

// Mistakes of a rule that depend on the other rules.
RuleMistake unknown_rule(std::string_view name, const std::vector<std::string>& names);
RuleMistake double_rule(std::string_view name);
RuleMistake too_many_rules();
RuleMistake other_version(std::uint64_t version, std::uint64_t wanted);

// Reports each at its position in the list `rules` of a configuration.
void complain_of(const RuleMistakes& mistakes, config::Complaints& complaints);
// A mistake in a single rule of a configuration.
config::Mistake mistake_in_rule(const RuleMistake& mistake);

// The type of a rule in the configuration, which stays a text. `parse` checks it.
template <typename Rule>
config::TypePtr<std::string> rule_type(
    const std::string& example, std::expected<Rule, RuleMistake> (*parse)(std::string_view text)) {
    return std::make_shared<config::ScalarType<std::string>>(
        "a rule such as \"" + example + "\"",
        [parse](const config::Node& scalar) -> std::expected<std::string, config::Mistake> {
            const auto rule = parse(scalar.text);
            if (rule) return scalar.text;
            return std::unexpected(mistake_in_rule(rule.error()));
        },
        [](const std::string& rule) { return config::quoted_scalar(rule); });
}

}  // namespace fopd::lrs
