#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/record.h"
#include "lrs/mclock/cost.h"
#include "lrs/mclock/rule_set.h"

namespace fopd::lrs {

// What there is to set of mclock. The rules are such as MclockRules::load() takes.
struct MclockSettings {
    // What the node can do in a second, in requests without data: what is reserved has to fit.
    std::optional<std::uint64_t> capacity{};
    std::optional<std::uint64_t> cost_unit = CostModel::kUnit;  // Bytes that cost as much as one.
    std::vector<std::string> rules{};

    friend bool operator==(const MclockSettings&, const MclockSettings&) = default;
};

config::Record<MclockSettings> mclock_record();

// What is wrong with what these rules reserve in all. Nothing: it fits.
std::optional<RuleMistake> overbooked(const MclockSettings& settings, const MclockRules& rules);

}  // namespace fopd::lrs
