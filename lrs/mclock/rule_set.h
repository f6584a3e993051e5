#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>

#include "lrs/classes/ordered_rules.h"
#include "lrs/classes/rule_list.h"
#include "lrs/mclock/rule.h"

namespace fopd::lrs {

extern const RuleGrammar<MclockRule> kMclockGrammar;

class MclockRules final : public OrderedRulesOf<MclockRule> {
public:
    using Ptr = std::shared_ptr<const MclockRules>;
    using Loaded = std::expected<Ptr, RuleMistakes>;

    // Parses the rules. Rules that are the same in `before` keep their classes and meters. If no
    // default rule is given, it has weight 1.
    static Loaded load(std::span<const std::string> rules, const Ptr& before = nullptr);
    // Only the default rule.
    static Ptr none(std::uint64_t version);

    // The sum of the reservations of all classes.
    std::uint64_t reserved_per_second() const;
    // "gold 2 x 500/s, silver 100/s".
    std::string reservations_text() const;

private:
    void settle(MclockRule& rule, const MclockRules* before);
    void put_in_order();

    std::uint64_t last_id_ = 0;
};

}  // namespace fopd::lrs
