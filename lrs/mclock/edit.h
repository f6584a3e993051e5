#pragma once

#include <expected>

#include "lrs/classes/rule_edit.h"
#include "lrs/mclock/rule_set.h"
#include "lrs/mclock/settings.h"

namespace fopd::lrs {

// The settings whose rules, which are `rules`, were changed so: as a whole or not at all.
std::expected<MclockSettings, RuleMistakes> edit_mclock(const MclockSettings& settings,
                                                        const MclockRules::Ptr& rules,
                                                        const RuleEdit& edit);

}  // namespace fopd::lrs
