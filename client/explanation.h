// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "client/time_ledger.h"

namespace fopd::client {

// For people: a table of all parts that took time, and a line for the slowest fop. Empty without
// calls.
std::string explanation(const TimeLedger::Figures& figures);
// The same for programs, in seconds.
nlohmann::ordered_json explanation_json(const TimeLedger::Figures& figures);

}  // namespace fopd::client
