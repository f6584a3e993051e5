#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "lrs/classes/class_rule.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

// A rule whose classes are the groups that have turns.
struct GroupRule : ClassRule {
    // The turns of each of its groups in a round.
    std::uint32_t weight = 1;

    // In the form that parse_group_rule() reads.
    std::string text() const;
};

// "zone-a address=10.1.0.0/16 weight=2 by=none": docs/formats/rules.md.
std::expected<GroupRule, RuleMistake> parse_group_rule(std::string_view text);

// Parses a change of `old`; parts not given stay: "zone-a weight=3". REQUIRES: the text begins with
// the name of `old`.
std::expected<GroupRule, RuleMistake> parse_group_change(std::string_view text,
                                                         const GroupRule& old);

}  // namespace fopd::lrs
