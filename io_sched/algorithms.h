#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

struct IoSchedSettings;

// How the requests of one type are ordered, and which device and medium each gets.
struct Algorithm {
    std::string_view name;                  // The word users write in the configuration.
    std::string_view summary;               // One line, for lists and documents.
    std::array<bool, kIoTypeCount> serves;  // The types it makes sense for.
    std::unique_ptr<IoScheduler> (*make)(const IoSchedSettings& settings);
};

// Which devices each scheduler may use.
struct DispatchAlgorithm {
    std::string_view name;
    std::string_view summary;
    // Called before every pass. `devices` are all there are.
    void (*dispatch)(std::span<IoDevice* const> devices, std::span<IoScheduler* const> schedulers);
};

// From which scheduler the next request is taken.
struct RequestAlgorithm {
    std::string_view name;
    std::string_view summary;
    // One of those that are not null; null when all are.
    IoRequest* (*next)(std::span<IoRequest* const, kIoTypeCount> peeked);
};

// All there are, by name. They live for ever.
std::span<const Algorithm> algorithms();
std::span<const DispatchAlgorithm> dispatch_algorithms();
std::span<const RequestAlgorithm> request_algorithms();

// The algorithms used when the configuration names none.
const Algorithm& default_algorithm();
const DispatchAlgorithm& default_dispatch_algorithm();
const RequestAlgorithm& default_request_algorithm();

}  // namespace fopd::io_sched
