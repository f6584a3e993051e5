#pragma once

#include <optional>

#include "core/time.h"
#include "lrs/classes/ordered_rules.h"
#include "lrs/classes/rule_edit.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

struct PolicySettings;

// The rules of a policy, to be shown and changed. Used by one thread.
class RuleBook {
public:
    virtual ~RuleBook() = default;

    // The rules in `settings`. Unchanged rules keep their classes and buckets. REQUIRES: the
    // settings were checked.
    virtual OrderedRulesPtr rules(const PolicySettings& settings, Instant now) = 0;
    // Changes the rules of `settings`, completely or not at all.
    virtual std::optional<RuleMistakes> edit(PolicySettings& settings, const RuleEdit& edit,
                                             Instant now) = 0;
};

}  // namespace fopd::lrs
