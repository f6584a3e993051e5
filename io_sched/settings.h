#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/section.h"
#include "core/time.h"
#include "io_sched/algorithms.h"
#include "io_sched/drive_algorithms.h"
#include "io_sched/read_order.h"

namespace fopd::io_sched {

// How many drives of a technology each type of request gets, at least and at most.
struct TechnologyLimits {
    const devices::DriveModel* technology = devices::find_drive_model("lto9");
    DriveCounts min{};
    DriveCounts max{};

    friend bool operator==(const TechnologyLimits&, const TechnologyLimits&) = default;
};

// `io_sched.tape`: the algorithms for tape drives.
struct TapeSettings {
    const DriveAlgorithm* read_algo = &default_drive_algorithm();
    const DriveAlgorithm* write_algo = &default_drive_algorithm();
    const DriveAlgorithm* format_algo = &default_drive_algorithm();
    const DispatchAlgorithm* dispatch_algo = &default_dispatch_algorithm();
    const RequestAlgorithm* request_algo = &default_request_algorithm();
    // Empty: by the cost of the waiting requests.
    std::optional<DriveCounts> fair_share_weights{};
    std::vector<TechnologyLimits> fair_share_limits{};
    DriveCounts request_fair_share_weights{1, 1, 1};

    ReadOrder grouped_read_order = ReadOrder::kAuto;
    std::uint64_t grouped_read_mount_bytes = 100ULL << 30;
    std::uint32_t grouped_read_mount_files = 1000;
    Duration grouped_read_mount_age{0};
    Duration grouped_read_max_wait = 30min;
    Duration grouped_read_stay_mounted{0};
    Duration grouped_write_max_wait = 30min;

    FairShareOptions fair_share() const;
    // Whether there are limits for other technologies and none for this one: then these are
    // missing.
    bool lacks_limits_for(Technology technology) const;
    friend bool operator==(const TapeSettings&, const TapeSettings&) = default;
};

// The section `io_sched` of the configuration: the algorithms for disks, and those for tape drives.
struct IoSchedSettings {
    const Algorithm* read_algo = &default_algorithm();
    const Algorithm* write_algo = &default_algorithm();
    const Algorithm* format_algo = &default_algorithm();
    const DispatchAlgorithm* dispatch_algo = &default_dispatch_algorithm();
    const RequestAlgorithm* request_algo = &default_request_algorithm();
    DriveCounts request_fair_share_weights{1, 1, 1};
    Duration elevator_max_wait = 500ms;
    std::optional<Duration> latency_goal{};  // Empty: the default for the kind of disk.
    std::uint32_t depth_max = 128;
    TapeSettings tape{};

    friend bool operator==(const IoSchedSettings&, const IoSchedSettings&) = default;
};

config::Section<IoSchedSettings> io_sched_section();

}  // namespace fopd::io_sched
