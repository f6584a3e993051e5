#include "daemon/space_watch.h"

namespace fopd::daemon {

namespace {

// Below this part the disk counts as having space again; so it is not reported again and again.
constexpr std::uint64_t kSpaceAgainPercent = 90;

}  // namespace

std::uint64_t percent_of(std::uint64_t part, std::uint64_t whole) {
    return static_cast<std::uint64_t>(static_cast<double>(part) * 100.0 /
                                      static_cast<double>(whole));
}

std::uint64_t used_percent(const DiskReport& disk) {
    if (!disk.capacity_bytes || !disk.free_bytes || *disk.capacity_bytes == 0) return 0;
    return percent_of(*disk.capacity_bytes - *disk.free_bytes, *disk.capacity_bytes);
}

void SpaceWatch::look_at(const std::vector<DiskReport>& disks) {
    std::set<std::string> nearly_full;
    for (const DiskReport& disk : disks) {
        const bool was_nearly_full = nearly_full_.contains(disk.name);
        const std::uint64_t limit = was_nearly_full ? kSpaceAgainPercent : kNearlyFullPercent;
        const bool is_nearly_full = used_percent(disk) >= limit;
        if (is_nearly_full) nearly_full.insert(disk.name);
        if (is_nearly_full == was_nearly_full || !disk.capacity_bytes) continue;
        emit(events_, is_nearly_full ? core::Level::kWarn : core::Level::kInfo,
             is_nearly_full ? "daemon.device_nearly_full" : "daemon.device_has_space",
             {{"device", std::string_view(disk.name)},
              {"pool", std::string_view(disk.pool)},
              {"free_bytes", *disk.free_bytes},
              {"capacity_bytes", *disk.capacity_bytes}});
    }
    nearly_full_ = std::move(nearly_full);
}

}  // namespace fopd::daemon
