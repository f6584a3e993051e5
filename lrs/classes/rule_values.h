#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/classes/expression.h"
#include "lrs/classes/rule_lexer.h"

namespace fopd::lrs {

// Adds a word to the values that `key` is compared with, and its written form to `text`; or returns
// what is wrong with it.
std::optional<RuleMistake> add_rule_value(Key key, const RuleToken& word, Test::Values& values,
                                          std::string& text);

// A suggestion for a word that is not one of `words`.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& words);

}  // namespace fopd::lrs
