#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace fopd::lrs {

// A change of rules by hand, for any policy.
struct RuleEdit {
    enum class Verb : std::uint8_t {
        kAdd,     // A new rule, after those of the same rank.
        kChange,  // "NAME [EXPRESSION] [OPTION=…] …": parts not given stay.
        kDel,     // Removes a rule by its name, except the default rule.
        kLoad,    // Replaces all rules by those of a file.
    };

    Verb verb = Verb::kAdd;
    std::string_view text{};
    // Refused if the rules have a different version now.
    std::optional<std::uint64_t> only_at = std::nullopt;
};

// The largest file of rules: room for the most and longest rules allowed.
inline constexpr std::size_t kRuleFileBytesMax = 5UL << 20;
// The most rules, not counting the default rule.
inline constexpr std::size_t kRulesMax = 1024;

// A rule of a file.
struct RuleLine {
    std::size_t number;  // From 1.
    std::string_view text;
};
// One rule per line; lines end with LF or CR LF. Blank lines and lines that begin with '#' are
// ignored.
std::vector<RuleLine> rule_lines(std::string_view text);

}  // namespace fopd::lrs
