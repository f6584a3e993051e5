#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/list_section.h"

namespace fopd::devices {

// An item of the section `devices`: a disk.
struct DeviceSettings {
    std::string name = {};
    std::string path = {};
    std::optional<std::uint64_t> size_bytes = {};  // The size of a file that the daemon creates.
    bool thin = false;
    std::string pool = {};
};

enum class Family : std::uint8_t { kDisk };

// An item of the section `pools`.
struct PoolSettings {
    std::string name = {};
    Family family = Family::kDisk;
    std::optional<std::uint64_t> quota_bytes = {};
};

config::ListSection<DeviceSettings> devices_section();
config::ListSection<PoolSettings> pools_section();

// Checks both together, after the sections have passed their own checks: finds each device
// whose pool does not exist, and all devices with one path. Empty if there is no problem.
std::vector<std::string> check_devices(const std::vector<DeviceSettings>& devices,
                                       const std::vector<PoolSettings>& pools);

}  // namespace fopd::devices
