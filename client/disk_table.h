// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace fopd::client {

// The disks of a node, for people: a table, and below it what is wrong with disks.
std::string disk_table(const nlohmann::json& devices);

}  // namespace fopd::client
