#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/record.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

// Mistakes of a rule that depend on the other rules.
RuleMistake unknown_rule(std::string_view name, const std::vector<std::string>& names);
RuleMistake double_rule(std::string_view name);
RuleMistake too_many_rules();
RuleMistake other_version(std::uint64_t version, std::uint64_t wanted);

// Reports each at its position in the list `rules` of a configuration.
void complain_of(const RuleMistakes& mistakes, config::Complaints& complaints);

}  // namespace fopd::lrs
