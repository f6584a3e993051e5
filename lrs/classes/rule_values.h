#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/expression.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

// Adds a word to what the values of `key` are compared with, and how it is written to `text`; or
// says what is wrong with it.
std::optional<RuleMistake> add_rule_value(Key key, const RuleToken& word, Test::Values& values,
                                          std::string& text);

// Nothing when it is no whole number, or too large.
std::optional<std::uint64_t> whole_number(std::string_view text);

// For whoever wrote a word that is none of `words`.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

}  // namespace fopd::lrs
