// SPDX-License-Identifier: BSD-2-Clause
#include "client/disk_table.h"

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "client/colours.h"
#include "client/table.h"

namespace fopd::client {

namespace {

using nlohmann::json;

constexpr std::size_t kIndent = 4;

// An older daemon does not tell it.
std::string percent_shown(const json& disk) {
    const json percent = disk.value("used_percent", json());
    return percent.is_null() ? "-" : shown(percent) + "%";
}

// A scrub in progress may have found more than is recorded.
std::uint64_t damaged_blocks(const json& disk) {
    const json scrub = disk.value("scrub", json::object());
    return std::max(disk.value("damaged_blocks", std::uint64_t{0}),
                    scrub.value("damaged_blocks", std::uint64_t{0}));
}

std::string damage_shown(const json& disk) {
    return std::to_string(damaged_blocks(disk));
}

std::string reason_lines(const json& disk) {
    const std::string reason = shown(disk.at("reason"));
    return reason.empty() ? "" : folded(shown(disk.at("name")) + ": " + reason, kIndent);
}

std::string problem_lines(const json& disk) {
    std::string lines;
    const std::string name = shown(disk.at("name"));
    if (const std::uint64_t damaged = damaged_blocks(disk); damaged > 0) {
        lines += folded(name + ": " + std::to_string(damaged) + " damaged block" +
                            (damaged == 1 ? "" : "s") +
                            ": replace the objects that the log names, then scrub it",
                        kIndent);
    }
    if (disk.value("nearly_full", false)) {
        lines += name + ": it is nearly full: " + percent_shown(disk) + " are in use\n";
    }
    return lines;
}

std::string head_table(const json& devices) {
    return table(devices, {{"DEVICE", "name"},
                           {"POOL", "pool"},
                           {"STATE", "state", state_shown, Column::Kind::kWhole},
                           {"CAPACITY", "capacity", size_shown},
                           {"FREE", "free", size_shown},
                           {"USED", "", percent_shown},
                           {"SLOT", "slot"},
                           {"ERRORS", "errors"},
                           {"DAMAGED", "", damage_shown}});
}

}  // namespace

std::string disk_table(const json& devices) {
    std::string page = head_table(devices);
    for (const json& each : devices) page += reason_lines(each);
    return page;
}

std::string disk_page(const json& devices) {
    std::string page = head_table(devices);
    for (const json& each : devices) page += reason_lines(each) + problem_lines(each);
    if (devices.empty()) return page;
    return page + "\n" +
           table(devices, {{"DEVICE", "name"},
                           {"LOCALITY", "locality"},
                           {"PATH", "path", shown, Column::Kind::kWhole}});
}

}  // namespace fopd::client
