#pragma once

#include <optional>

#include "core/time.h"
#include "lrs/classes/ordered_rules.h"
#include "lrs/classes/rule_edit.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

struct PolicySettings;

// The rules of a policy that has some, as they are shown and changed. One thread.
class RuleBook {
public:
    virtual ~RuleBook() = default;

    // Those of the settings. Rules that are the same as before keep their classes and buckets.
    // Requires: the settings were checked.
    virtual OrderedRulesPtr rules(const PolicySettings& settings, Instant now) = 0;
    // Changes the rules of `settings`, as a whole or not at all.
    virtual std::optional<RuleMistakes> edit(PolicySettings& settings, const RuleEdit& edit,
                                             Instant now) = 0;
};

}  // namespace fopd::lrs
