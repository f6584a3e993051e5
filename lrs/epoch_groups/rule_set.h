#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>

#include "lrs/classes/ordered_rules.h"
#include "lrs/classes/rule_list.h"
#include "lrs/epoch_groups/rule.h"

namespace fopd::lrs {

extern const RuleGrammar<GroupRule> kGroupGrammar;

class GroupRules final : public OrderedRulesOf<GroupRule> {
public:
    using Ptr = std::shared_ptr<const GroupRules>;
    using Loaded = std::expected<Ptr, RuleMistakes>;

    // Parses the rules. If no default rule is given, its groups are jobs.
    static Loaded load(std::span<const std::string> rules, std::uint64_t version);
};

}  // namespace fopd::lrs
