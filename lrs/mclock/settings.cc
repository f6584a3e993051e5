#include "lrs/mclock/settings.h"

#include <expected>

#include "config/types.h"
#include "lrs/classes/rule_mistakes.h"

namespace fopd::lrs {

namespace {

config::TypePtr<std::uint64_t> operations_per_second() {
    const std::string allowed = "a rate such as 20000/s";
    return std::make_shared<config::ScalarType<std::uint64_t>>(
        allowed,
        [allowed](const config::Node& scalar) -> std::expected<std::uint64_t, config::Mistake> {
            const auto rate = config::parse_rate(scalar.text);
            if (!rate) return std::unexpected(rate.error());
            if (rate->unit == config::Rate::Unit::kOperations && rate->per_second > 0) {
                return rate->per_second;
            }
            return std::unexpected(config::Mistake{
                config::in_quotes(scalar.text) + " is not a rate of requests", "write " + allowed});
        },
        [](const std::uint64_t& rate) {
            return config::plain_scalar(std::to_string(rate) + "/s");
        });
}

// Checks that need all rules together.
void check_mclock(const MclockSettings& settings, config::Complaints& complaints) {
    const auto loaded = MclockRules::load(settings.rules);
    if (!loaded) {
        complain_of(loaded.error(), complaints);
        return;
    }
    if (const auto wrong = overbooked(settings, **loaded)) {
        complaints.add("capacity", wrong->wrong, wrong->right);
    }
}

}  // namespace

std::optional<RuleMistake> overbooked(const MclockSettings& settings, const MclockRules& rules) {
    const std::uint64_t reserved = rules.reserved_per_second();
    if (reserved == 0) return std::nullopt;
    const std::string in_all = "the rules reserve " + std::to_string(reserved) + "/s in all (" +
                               rules.reservations_text() + ")";
    if (!settings.capacity) {
        return RuleMistake{
            .wrong = in_all + ", and the node's capacity is not set",
            .right =
                "set lrs.mclock.capacity to the rate that the node can serve, such as 20000/s"};
    }
    if (reserved <= *settings.capacity) return std::nullopt;
    return RuleMistake{
        .wrong = in_all + ", of a capacity of " + std::to_string(*settings.capacity) + "/s",
        .right = "reserve less, or set a larger lrs.mclock.capacity if the node has it"};
}

config::Record<MclockSettings> mclock_record() {
    config::Record<MclockSettings> record;
    record.field(
        "capacity", &MclockSettings::capacity, config::none_or(operations_per_second()),
        "The rate that the node can serve; the sum of all reservations must not exceed it.",
        {.reload = config::Reload::kLive});
    record.field(
        "cost_unit", &MclockSettings::cost_unit,
        config::none_or(config::size({.min = CostModel::kUnitMin})),
        "So many bytes of data cost as much as a fop without data. none: data cost nothing.",
        {.reload = config::Reload::kLive});
    record.field(
        "rules", &MclockSettings::rules,
        config::list_of(
            rule_type("gold user=ann reservation=500/s weight=4 limit=2000/s", &parse_mclock_rule),
            {.length_max = kRulesMax + 1}),
        "The classes and their shares; docs/formats/rules.md.", {.reload = config::Reload::kLive});
    record.check(check_mclock);
    return record;
}

}  // namespace fopd::lrs
