#pragma once

#include <expected>
#include <string_view>

#include "lrs/classes/rule_lexer.h"
#include "lrs/tbf/rule.h"

namespace fopd::lrs {

// One grammar for the configuration, for files and for commands: docs/formats/rules.md.

// "small op=read&size<64k rate=20000/s burst=64". The ids that a rule set assigns are not set yet.
std::expected<Rule, RuleMistake> parse_rule(std::string_view text);

// Parses a change of `old`; parts not given stay: "small rate=10/s". A new rate without a burst
// gets the default burst. REQUIRES: the text begins with the name of `old`.
std::expected<Rule, RuleMistake> parse_change(std::string_view text, const Rule& old);

}  // namespace fopd::lrs
