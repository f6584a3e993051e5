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

// A key of a policy's map, or of the section itself, and its value as in the configuration:
// "quantum", "16".
struct NamedValue {
    std::string key;
    std::string value;
};
// The settings with another policy, and with other values of the policy's or the section's keys;
// the rest stays.
std::expected<LrsSettings, config::Problems> with_policy(const LrsSettings& settings,
                                                         std::string_view policy,
                                                         std::span<const NamedValue> values);
// Replaces all rules of the policy that decides by the rules of a file. When `policy`, with
// `values`, runs on top of another policy, that one's rules are replaced. Returns the mistakes, if
// any; then nothing was changed.
std::optional<RuleMistakes> set_rules(LrsSettings& settings, std::string_view policy,
                                      std::span<const NamedValue> values, std::string_view file);
// The values of a policy's map, except lists, which are its rules.
std::vector<NamedValue> values_of(const LrsSettings& settings, const PolicyEntry& policy);
// The section's own values, without the policy and the policies' maps.
std::vector<NamedValue> section_values(const LrsSettings& settings);

// The keys whose values differ in `next`, such as "lrs.crr.quantum".
std::vector<std::string> keys_that_differ(const LrsSettings& settings, const LrsSettings& next);

// The section as written to a file: the policy, and all settings that are not the default.
std::string to_yaml(const LrsSettings& settings);

}  // namespace fopd::lrs
