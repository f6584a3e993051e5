#include "lrs/settings.h"

#include <algorithm>
#include <utility>

#include "config/nearest.h"
#include "config/types.h"
#include "config/yaml_reader.h"

namespace fopd::lrs {

namespace {

std::string summary_of(std::string_view policy) {
    return std::string(std::ranges::find(policies(), policy, &PolicyEntry::name)->summary);
}

enum class Wanted : std::uint8_t { kAll, kInner };

config::TypePtr<const PolicyEntry*> policy_names(Wanted wanted) {
    std::vector<std::pair<std::string, const PolicyEntry*>> words;
    for (const PolicyEntry& entry : policies()) {
        if (wanted == Wanted::kAll || entry.inner == nullptr)
            words.emplace_back(entry.name, &entry);
    }
    return config::choice<const PolicyEntry*>(std::move(words));
}

config::Record<DeadlineSettings> deadline_record() {
    config::Record<DeadlineSettings> record;
    record.field("policy", &DeadlineSettings::policy, policy_names(Wanted::kInner),
                 "The policy for fops that have not waited for too long.",
                 {.reload = config::Reload::kLive});
    record.field("wait_max", &DeadlineSettings::wait_max, config::duration({.min = 1ms, .max = 1h}),
                 "Fops that have waited for this time run before all others, the oldest first.",
                 {.reload = config::Reload::kLive});
    return record;
}

}  // namespace

config::Section<LrsSettings> lrs_section() {
    config::Section<LrsSettings> section("lrs", "Which fop runs next, and how many at a time.");
    section.field<const PolicyEntry*>("policy", &LrsSettings::policy, policy_names(Wanted::kAll),
                                      "The order in which waiting fops run.",
                                      {.reload = config::Reload::kLive});
    section.field(
        "max_foms", &LrsSettings::max_foms,
        config::integer<std::uint32_t>({.min = 1, .max = 65536}),
        "How many data fops run at a time in each locality, at most; the others wait in the "
        "policy's order. With io_wait_goal large ones are fewer.",
        {.reload = config::Reload::kLive});
    section.field(
        "io_wait_goal", &LrsSettings::io_wait_goal,
        config::none_or(config::duration({.min = 10us, .max = 10s})),
        "Fewer fops run while their reads and writes wait longer than this for their devices, on "
        "average, so that more fops wait in the policy's order. Each counts once, and once more "
        "for each 64KiB. A fop begins while the others count for less than a limit from 16 to 4 "
        "times max_foms: 31 fops of 1MiB run by default. none: only max_foms counts.",
        {.reload = config::Reload::kLive});
    section.field<CrrSettings>("crr", &LrsSettings::crr, config::map_of(crr_record()),
                               summary_of("crr"));
    section.field<DeadlineSettings>("deadline", &LrsSettings::deadline,
                                    config::map_of(deadline_record()), summary_of("deadline"));
    section.field<DelaySettings>("delay", &LrsSettings::delay, config::map_of(delay_record()),
                                 summary_of("delay"));
    section.field<EpochGroupsSettings>("epoch_groups", &LrsSettings::epoch_groups,
                                       config::map_of(epoch_groups_record()),
                                       summary_of("epoch_groups"));
    section.field<MclockSettings>("mclock", &LrsSettings::mclock, config::map_of(mclock_record()),
                                  summary_of("mclock"));
    section.field<SortedTurnsSettings>("orr", &LrsSettings::orr,
                                       config::map_of(sorted_turns_record("an object")),
                                       summary_of("orr"));
    section.field<TbfSettings>("tbf", &LrsSettings::tbf, config::map_of(tbf_record()),
                               summary_of("tbf"));
    section.field<SortedTurnsSettings>("trr", &LrsSettings::trr,
                                       config::map_of(sorted_turns_record("a device")),
                                       summary_of("trr"));
    return section;
}

namespace {

const config::Section<LrsSettings>& the_section() {
    static const config::Section<LrsSettings> section = lrs_section();
    return section;
}

config::Node empty_map() {
    config::Node map;
    map.kind = config::Node::Kind::kMap;
    return map;
}

config::Node& value_of(config::Node& map, std::string_view key) {
    const auto entry = std::ranges::find(map.entries, key, &config::NodeEntry::key);
    if (entry != map.entries.end()) return entry->value;
    return map.entries.emplace_back(config::NodeEntry{std::string(key), {}, {}}).value;
}

// The entries that differ from `usual`; both have the same keys.
config::Node without_usual(const config::Node& map, const config::Node& usual) {
    config::Node rest = empty_map();
    for (const config::NodeEntry& entry : map.entries) {
        const config::Node* const before = config::find(usual, entry.key);
        if (to_line(entry.value) == to_line(*before)) continue;
        const bool is_map = entry.value.kind == config::Node::Kind::kMap;
        rest.entries.push_back(
            {entry.key, {}, is_map ? without_usual(entry.value, *before) : entry.value});
    }
    return rest;
}

constexpr std::string_view kPolicy = "policy";

// The section's own keys, without the policy and the policies' maps.
std::vector<std::string> section_keys() {
    std::vector<std::string> keys;
    for (const config::KeyDescription& each : the_section().describe()) {
        const bool is_map = each.shape == config::KeyDescription::Shape::kMap;
        if (!is_map && each.key != kPolicy) keys.push_back(each.key);
    }
    return keys;
}

// The keys of a policy's map; a policy may have none.
std::vector<std::string> policy_keys(std::string_view policy) {
    std::vector<std::string> keys;
    for (const config::KeyDescription& each : the_section().describe()) {
        if (each.key != policy) continue;
        for (const config::KeyDescription& own : each.keys) keys.push_back(own.key);
    }
    return keys;
}

bool has_key(std::string_view key, const std::vector<std::string>& keys) {
    return std::ranges::find(keys, key) != keys.end();
}

config::Problem unknown_key(std::string_view policy, const std::string& key) {
    std::vector<std::string> known = policy_keys(policy);
    std::string right = known.empty()
                            ? std::string(policy) + " has nothing to set"
                            : "known here: " + config::joined(known) + " of " + std::string(policy);
    right += known.empty() ? "; known here: " : "; ";
    right += config::joined(section_keys()) + " of lrs";
    for (std::string& each : section_keys()) known.push_back(std::move(each));
    if (const auto near = config::nearest(key, known)) {
        right = "did you mean " + config::in_quotes(*near) + "? " + right;
    }
    return {.file = {},
            .position = {},
            .key = "lrs." + std::string(policy) + "." + config::shown_key(key),
            .wrong = "unknown key",
            .right = std::move(right)};
}

// Parses a single value, as it would follow a key.
std::expected<config::Node, config::Problem> read_setting(const NamedValue& named,
                                                          std::string_view path) {
    config::Problems problems;
    auto root = config::read_yaml("v: " + named.value, problems);
    const bool is_one = problems.empty() && root && root->entries.size() == 1;
    if (is_one) return std::move(root->entries.front().value);
    return std::unexpected(
        config::Problem{.file = {},
                        .position = {},
                        .key = std::string(path),
                        .wrong = config::in_quotes(named.value) + " is not a value",
                        .right = "write it as it stands in the configuration, 16 or [a, b]"});
}

}  // namespace

std::expected<LrsSettings, config::Problems> with_policy(const LrsSettings& settings,
                                                         std::string_view policy,
                                                         std::span<const NamedValue> values) {
    config::Node root = the_section().write(settings);
    value_of(root, kPolicy) = config::plain_scalar(std::string(policy));
    const auto entry = std::ranges::find(policies(), policy, &PolicyEntry::name);
    // If there is no such policy, only that is reported, not its keys.
    for (const NamedValue& named : values) {
        if (entry == policies().end()) break;
        const bool is_own = has_key(named.key, policy_keys(policy));
        if (!is_own && !has_key(named.key, section_keys())) {
            return std::unexpected(config::Problems{unknown_key(policy, named.key)});
        }
        auto value =
            read_setting(named, (is_own ? "lrs." + std::string(policy) : "lrs") + "." + named.key);
        if (!value) return std::unexpected(config::Problems{std::move(value.error())});
        value_of(is_own ? value_of(root, policy) : root, named.key) = *std::move(value);
    }
    config::Problems problems;
    auto next = the_section().read(root, the_section().name(), problems);
    if (!next) return std::unexpected(std::move(problems));
    return *std::move(next);
}

namespace {

// The deciding policy's name.
std::string_view decider_of(const LrsSettings& settings, std::string_view policy,
                            std::span<const NamedValue> values) {
    const auto entry = std::ranges::find(policies(), policy, &PolicyEntry::name);
    if (entry == policies().end() || entry->inner == nullptr) return policy;
    const auto said = std::ranges::find(values, kPolicy, &NamedValue::key);
    return said != values.end() ? std::string_view(said->value) : entry->inner(settings)->name;
}

}  // namespace

std::optional<RuleMistakes> set_rules(LrsSettings& settings, std::string_view policy,
                                      std::span<const NamedValue> values, std::string_view file) {
    const std::string_view decider = decider_of(settings, policy, values);
    const auto entry = std::ranges::find(policies(), decider, &PolicyEntry::name);
    if (entry != policies().end() && entry->set_rules != nullptr)
        return entry->set_rules(settings, file);
    return RuleMistake{.column = 0,
                       .wrong = "the policy " + config::shown_key(decider) + " has no rules",
                       .right = "tbf, mclock and epoch_groups have some"};
}

std::vector<NamedValue> values_of(const LrsSettings& settings, const PolicyEntry& policy) {
    const config::Node root = the_section().write(settings);
    const config::Node* const map = config::find(root, policy.name);
    if (map == nullptr) return {};
    std::vector<NamedValue> values;
    for (const config::NodeEntry& entry : map->entries) {
        if (entry.value.kind == config::Node::Kind::kList) continue;
        values.push_back({entry.key, config::to_line(entry.value)});
    }
    return values;
}

std::vector<NamedValue> section_values(const LrsSettings& settings) {
    const config::Node root = the_section().write(settings);
    std::vector<NamedValue> values;
    for (const std::string& key : section_keys()) {
        values.push_back({key, config::to_line(*config::find(root, key))});
    }
    return values;
}

std::vector<std::string> keys_that_differ(const LrsSettings& settings, const LrsSettings& next) {
    config::Changes changes;
    LrsSettings merged = next;
    the_section().carry_over(settings, merged, the_section().name(), changes);
    std::vector<std::string> keys;
    for (const config::Change& change : changes) keys.push_back(change.path);
    return keys;
}

std::string to_yaml(const LrsSettings& settings) {
    const config::Node all = the_section().write(settings);
    config::Node said = without_usual(all, the_section().write(LrsSettings{}));
    if (config::find(said, kPolicy) == nullptr) {
        said.entries.insert(said.entries.begin(),
                            {std::string(kPolicy), {}, *config::find(all, kPolicy)});
    }
    config::Node root = empty_map();
    root.entries.push_back({the_section().name(), {}, std::move(said)});
    return config::to_yaml(root);
}

}  // namespace fopd::lrs
