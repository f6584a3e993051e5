#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/events.h"
#include "daemon/disk_report.h"

namespace fopd::daemon {

// A disk with this part of its space in use, or more, is reported.
inline constexpr std::uint64_t kNearlyFullPercent = 95;

// A part of a whole that is not 0, rounded down.
std::uint64_t percent_of(std::uint64_t part, std::uint64_t whole);
// The part of the disk's space that is in use; 0 while it is unknown.
std::uint64_t used_percent(const DiskReport& disk);

// Tells administrators when a disk is nearly full, and when it has space again. Lives on the
// control reactor.
class SpaceWatch {
public:
    explicit SpaceWatch(core::EventSink& events) : events_(events) {}

    // Called every few seconds with all disks of the node.
    void look_at(const std::vector<DiskReport>& disks);

private:
    core::EventSink& events_;
    std::set<std::string> nearly_full_;  // Devices.
};

}  // namespace fopd::daemon
