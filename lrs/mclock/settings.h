#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/record.h"
#include "lrs/mclock/cost.h"
#include "lrs/mclock/rule_set.h"

namespace fopd::lrs {

// The settings of mclock. The rules are texts for MclockRules::load().
struct MclockSettings {
    // The requests without data that the node can serve per second. The sum of the reservations
    // must not exceed this number.
    std::optional<std::uint64_t> capacity{};
    std::optional<std::uint64_t> cost_unit = CostModel::kUnit;  // Bytes that cost as much as one.
    std::vector<std::string> rules{};

    friend bool operator==(const MclockSettings&, const MclockSettings&) = default;
};

config::Record<MclockSettings> mclock_record();

// The mistake if the sum of the reservations exceeds the capacity; nothing otherwise.
std::optional<RuleMistake> overbooked(const MclockSettings& settings, const MclockRules& rules);

}  // namespace fopd::lrs
