// SPDX-License-Identifier: BSD-2-Clause
#include "client/disk_table.h"

#include <nlohmann/json.hpp>

#include "client/table.h"

namespace fopd::client {

std::string disk_table(const nlohmann::json& devices) {
    std::string page = table(devices, {{"DEVICE", "name"},
                                       {"POOL", "pool"},
                                       {"STATE", "state"},
                                       {"CAPACITY", "capacity", size_shown},
                                       {"USED", "used", size_shown},
                                       {"FREE", "free", size_shown},
                                       {"SLOT", "slot"},
                                       {"LOCALITY", "locality"},
                                       {"ERRORS", "errors"},
                                       {"PATH", "path"}});
    for (const nlohmann::json& at : devices) {
        if (at.at("reason").get<std::string>().empty()) continue;
        page += shown(at.at("name")) + ": " + shown(at.at("reason")) + "\n";
    }
    return page;
}

}  // namespace fopd::client
