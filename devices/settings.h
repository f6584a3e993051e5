#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

inline constexpr std::uint32_t kTapeCopiesMax = 4;

enum class Family : std::uint8_t { kDisk, kTape };

// An item of the section `pools`.
struct PoolSettings {
    std::string name = {};
    Family family = Family::kDisk;
    // Of a tape pool: the disk pool that its uploads land on. Empty for a disk pool.
    std::optional<std::string> staging = {};
    std::optional<std::uint64_t> quota_bytes = {};
    std::uint32_t copies = 1;  // Of a tape pool: on how many cartridges each object is.
};

config::ListSection<DeviceSettings> devices_section();
config::ListSection<PoolSettings> pools_section();

// Checks the staging of all pools, after the section has passed its own checks: a tape pool needs
// one, and it is a disk pool that exists. Mistakes of the section `pools`; empty if there are none.
std::vector<config::Mistake> check_staging(const std::vector<PoolSettings>& pools);
// Checks that each tape pool is one of those whose tapes a library of the node has. Likewise.
std::vector<config::Mistake> check_libraries(const std::vector<PoolSettings>& pools,
                                             std::span<const std::string> served);

// Checks both together, after the sections have passed their own checks: finds each device whose
// pool does not exist or is a tape pool, and all devices with one path. Empty if there is no
// problem.
std::vector<std::string> check_devices(const std::vector<DeviceSettings>& devices,
                                       const std::vector<PoolSettings>& pools);

}  // namespace fopd::devices
