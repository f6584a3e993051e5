#include "lrs/classes/rule_mistakes.h"

#include "config/nearest.h"
#include "config/problem.h"

namespace fopd::lrs {

RuleMistake unknown_rule(std::string_view name, const std::vector<std::string>& names) {
    const auto near = config::nearest(name, names);
    return {.wrong = "there is no rule " + config::in_quotes(name),
            .right = near ? "did you mean " + *near + "?" : "list the rules to see their names",
            .is_unknown_rule = true};
}

RuleMistake double_rule(std::string_view name) {
    return {.wrong = "there is a rule " + config::in_quotes(name) + " already",
            .right = "give it another name, or change the one there is"};
}

RuleMistake too_many_rules() {
    return {.wrong = "there are more than 1024 rules", .right = "let rules have lists of values"};
}

RuleMistake other_version(std::uint64_t version, std::uint64_t wanted) {
    return {.wrong = "the rules have version " + std::to_string(version) + ", not " +
                     std::to_string(wanted),
            .right = "somebody has changed them; look at them again"};
}

void complain_of(const RuleMistakes& mistakes, config::Complaints& complaints) {
    for (const RuleMistake& each : mistakes) {
        complaints.add("rules[" + std::to_string(each.line - 1) + "]", each.wrong, each.right);
    }
}

config::Mistake mistake_in_rule(const RuleMistake& mistake) {
    return {"column " + std::to_string(mistake.column) + " of the rule: " + mistake.wrong,
            mistake.right};
}

}  // namespace fopd::lrs
