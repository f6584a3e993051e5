// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace fopd::client {

// The disks of a node, for people: a table, and below it why disks are not in state good.
std::string disk_table(const nlohmann::json& devices);

// The table of disk_table(), further problems of the disks, and the disks' paths.
std::string disk_page(const nlohmann::json& devices);

}  // namespace fopd::client
