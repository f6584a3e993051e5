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

    // These rules, of which those that are as they were in `before` keep their classes and meters.
    // Without a default rule it has the weight 1.
    static Loaded load(std::span<const std::string> rules, const Ptr& before = nullptr);
    // The default rule alone.
    static Ptr none(std::uint64_t version);

    // What all classes reserve together.
    std::uint64_t reserved_per_second() const;
    // "gold 2 x 500/s, silver 100/s".
    std::string reservations_text() const;

private:
    void settle(MclockRule& rule, const MclockRules* before);
    void put_in_order();

    std::uint64_t last_id_ = 0;
};

}  // namespace fopd::lrs
