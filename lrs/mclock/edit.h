#pragma once

#include <expected>

#include "lrs/classes/rule_edit.h"
#include "lrs/mclock/rule_set.h"
#include "lrs/mclock/settings.h"

namespace fopd::lrs {

// The settings after a change of their rules, completely or not at all. `rules` are the parsed
// rules of `settings`.
std::expected<MclockSettings, RuleMistakes> edit_mclock(const MclockSettings& settings,
                                                        const MclockRules::Ptr& rules,
                                                        const RuleEdit& edit);

}  // namespace fopd::lrs
