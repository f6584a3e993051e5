// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "client/load_times.h"
#include "client/time_ledger.h"

namespace fopd::client {

// For people: a table of all parts that took time, and a line for the slowest fop. Empty without
// calls.
std::string explanation(const TimeLedger::Figures& figures);
// Returns the same figures for programs, in seconds.
nlohmann::ordered_json explanation_json(const TimeLedger::Figures& figures);
// For people, a line for each part that took time. `seconds_by_part` has the total, too.
std::string parts_page(const nlohmann::json& seconds_by_part);

// The mean and the 99th percentile of all parts of a load's fops. Empty without fops.
std::string load_explanation(const LoadTimes& times);
nlohmann::ordered_json load_explanation_json(const LoadTimes& times);

}  // namespace fopd::client
