#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"
#include "config/section.h"
#include "core/time.h"
#include "lrs/classes/rule_lexer.h"
#include "lrs/policies.h"

namespace fopd::lrs {

// The section `lrs` of the configuration.
struct LrsSettings : PolicyChoice {
    std::uint32_t max_foms = 128;
    std::optional<Duration> io_wait_goal = 1ms;
};

config::Section<LrsSettings> lrs_section();

// A key of a policy's map, or of the section beside these maps, and its value as the configuration
// has it: "quantum", "16".
struct NamedValue {
    std::string key;
    std::string value;
};
// The settings with another policy, and with other values of its keys or the section's; the rest
// stays.
std::expected<LrsSettings, config::Problems> with_policy(const LrsSettings& settings,
                                                         std::string_view policy,
                                                         std::span<const NamedValue> values);
// Replaces all rules of the policy that decides by the rules of a file. When `policy`, with
// `values`, runs on top of another policy, that one's rules are replaced. Returns the mistakes, if
// any; then nothing was changed.
std::optional<RuleMistakes> set_rules(LrsSettings& settings, std::string_view policy,
                                      std::span<const NamedValue> values, std::string_view file);
// What is set in a policy's map but for lists, which are its rules.
std::vector<NamedValue> values_of(const LrsSettings& settings, const PolicyEntry& policy);
// What is set in the section beside the policy and these maps.
std::vector<NamedValue> section_values(const LrsSettings& settings);

// The keys that have other values in `next`, "lrs.crr.quantum".
std::vector<std::string> keys_that_differ(const LrsSettings& settings, const LrsSettings& next);

// The section as it stands in a file: the policy, and what is not as it is without being said.
std::string to_yaml(const LrsSettings& settings);

}  // namespace fopd::lrs
