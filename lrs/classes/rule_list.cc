#include "lrs/classes/rule_list.h"

namespace fopd::lrs {

void RuleListCheck::fail(std::size_t line, RuleMistake mistake) {
    if (mistakes_.size() == kMistakesMax) {
        if (more_++ == 0) more_line_ = line;
        return;
    }
    mistake.line = line;
    mistakes_.push_back(std::move(mistake));
}

void RuleListCheck::add(std::size_t line, const ClassRule& rule) {
    if (!line_of_.try_emplace(rule.name, line).second) return fail(line, double_rule(rule.name));
    // An exceeded limit is reported once, at the line that exceeds it.
    if (is_too_much_) return;
    if (rule.name != kDefaultRule) ++count_;
    auto mistake = sum_.add(rule.expression);
    if (count_ > kRulesMax) mistake = too_many_rules();
    if (!mistake) return;
    is_too_much_ = true;
    fail(line, *std::move(mistake));
}

RuleMistakes RuleListCheck::mistakes() && {
    if (more_ > 0) {
        mistakes_.push_back(
            {.line = more_line_,
             .wrong = "from here on there are " + std::to_string(more_) + " more mistakes",
             .right = "mend the others first"});
    }
    return std::move(mistakes_);
}

}  // namespace fopd::lrs
