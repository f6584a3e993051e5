#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "io_sched/dispatch.h"
#include "io_sched/fair_share.h"
#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

struct IoSchedSettings;

// An algorithm for disks that orders the requests of one type, and gives each a device and a
// medium.
struct Algorithm {
    std::string_view name;                  // The word users write in the configuration.
    std::string_view summary;               // One line, for lists and documents.
    std::array<bool, kIoTypeCount> serves;  // The types it is suitable for.
    std::unique_ptr<IoScheduler> (*make)(const IoSchedSettings& settings);
};

// Decides which devices each scheduler may use.
struct DispatchAlgorithm {
    std::string_view name;
    std::string_view summary;
    std::array<bool, kIoFamilyCount> suits;  // The families it is suitable for.
    std::unique_ptr<DeviceDispatch> (*make)(const FairShareOptions& options);
};

// Chooses the scheduler whose request goes next.
struct RequestAlgorithm {
    std::string_view name;
    std::string_view summary;
    std::unique_ptr<RequestDispatch> (*make)(const DriveCounts& weights);
};

// All algorithms, by name. Static.
std::span<const Algorithm> algorithms();
std::span<const DispatchAlgorithm> dispatch_algorithms();
std::span<const RequestAlgorithm> request_algorithms();

// The algorithms used when the configuration names none.
const Algorithm& default_algorithm();
const DispatchAlgorithm& default_dispatch_algorithm();
const RequestAlgorithm& default_request_algorithm();

}  // namespace fopd::io_sched
