#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fopd::lrs {

// How rules are changed by hand, of whatever policy they are.
struct RuleEdit {
    enum class Verb : std::uint8_t {
        kAdd,     // A new rule, behind those of its rank.
        kChange,  // "NAME [EXPRESSION] [OPTION=…] …": what is not said stays.
        kDel,     // By its name. The default rule stays.
        kLoad,    // All rules of a file, and no others.
    };

    Verb verb = Verb::kAdd;
    std::string_view text{};
    // Refused when the rules have another version meanwhile.
    std::optional<std::uint64_t> only_at = std::nullopt;
};

// No file of rules is longer: it has room for as many as there may be, each as long as may be.
inline constexpr std::size_t kRuleFileBytesMax = 5UL << 20;
// Besides the default rule.
inline constexpr std::size_t kRulesMax = 1024;

// A rule of a file.
struct RuleLine {
    std::size_t number;  // From 1.
    std::string_view text;
};
// A rule a line, which ends as in UNIX or in DOS; blank lines and those that begin with '#' do not
// count.
std::vector<RuleLine> rule_lines(std::string_view text);

}  // namespace fopd::lrs
