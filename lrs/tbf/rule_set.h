#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/time.h"
#include "lrs/classes/ordered_rules.h"
#include "lrs/classes/rule_edit.h"
#include "lrs/classes/rule_list.h"
#include "lrs/tbf/rule.h"
#include "lrs/tbf/rule_parser.h"

namespace fopd::lrs {

extern const RuleGrammar<Rule> kTbfGrammar;

class RuleSet final : public OrderedRulesOf<Rule> {
public:
    using OrderedRulesOf::find;
    // Null: there is no such rule.
    const Rule* find(std::uint64_t id) const;

private:
    friend class RuleRevisions;
};
using RuleSetPtr = std::shared_ptr<const RuleSet>;

// The rules in force. Changes them completely or not at all. Used by one thread; the rule sets may
// be used by any.
class RuleRevisions {
public:
    // Begins with the default rule only, which has no limit.
    explicit RuleRevisions(std::uint64_t version = 1);

    const RuleSetPtr& current() const { return current_; }

    using Edited = std::expected<RuleSetPtr, RuleMistakes>;
    Edited apply(const RuleEdit& edit, Instant now);
    // Replaces all rules. If no default rule is given, it has no limit. Unchanged rules keep their
    // classes and buckets.
    Edited load(std::span<const std::string> rules, Instant now);

private:
    void settle(Rule& rule, const Rule* old, Instant now);
    static void settle_all(Rule& rule, const Rule* old, Instant now);
    Edited put_in_force(std::vector<Rule> rules, Instant now);

    RuleSetPtr current_;
    std::uint64_t last_id_ = 0;
};

}  // namespace fopd::lrs
