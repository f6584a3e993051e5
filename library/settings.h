#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/list_section.h"
#include "devices/settings.h"
#include "library/options.h"

namespace fopd::library {

enum class LabelBlank : std::uint8_t { kAuto, kYes, kNo };

// An item of the section `libraries`.
struct LibrarySettings {
    std::string name = {};
    LibraryKind kind = LibraryKind::kVirtual;
    std::string path = {};
    std::vector<std::string> drive_paths = {};
    std::uint32_t drives = LibraryOptions{}.drives;
    std::uint32_t cartridges = LibraryOptions{}.cartridges;
    std::string model = LibraryOptions{}.model;
    std::optional<std::uint64_t> cartridge_bytes = {};
    LibraryTiming timing = LibraryTiming::kNone;
    LabelBlank label_blank = LabelBlank::kAuto;
    std::uint32_t drive_failures = HealthLimits{}.drive_failures;
    std::uint32_t cartridge_failures = HealthLimits{}.cartridge_failures;
    std::string pool = {};
    std::uint64_t migrate_bytes = TapePoolOptions{}.migrate_bytes;
    std::uint32_t migrate_files = TapePoolOptions{}.migrate_files;
    Duration migrate_age = TapePoolOptions{}.migrate_age;
    std::uint64_t piece_bytes = TapePoolOptions{}.piece_bytes;
    std::uint32_t staging_high = TapePoolOptions{}.staging_high;
    std::uint32_t staging_low = TapePoolOptions{}.staging_low;
};

config::ListSection<LibrarySettings> libraries_section();

// Checks that the pool of each library is a tape pool. Called when both sections have passed their
// own checks. Returns the mistakes in the section `libraries`; empty if there are none.
std::vector<config::Mistake> check_pools(const std::vector<LibrarySettings>& libraries,
                                         const std::vector<devices::PoolSettings>& pools);

// The options of the node's library; nothing: the node has none. REQUIRES: check_pools() found no
// problem.
std::optional<LibraryOptions> options_of(const std::vector<LibrarySettings>& libraries,
                                         const std::vector<devices::PoolSettings>& pools);

}  // namespace fopd::library
