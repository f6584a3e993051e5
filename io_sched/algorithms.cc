#include "io_sched/algorithms.h"

#include <algorithm>

#include "io_sched/dispatch.h"
#include "io_sched/elevator.h"
#include "io_sched/fifo.h"

namespace fopd::io_sched {

namespace {

// The only code that knows every algorithm. To add one: write it and add its row.
constexpr std::array kAlgorithms{
    Algorithm{
        "elevator", "By offset, upwards; the overdue first.", {true, true, false}, &make_elevator},
    Algorithm{"fifo", "In the order of arrival.", {true, true, true}, &make_fifo},
};
constexpr std::array kDispatchAlgorithms{
    DispatchAlgorithm{"fair_share",
                      "Each scheduler has drives in proportion to what waits.",
                      {false, true},
                      [](const FairShareOptions& options) -> std::unique_ptr<DeviceDispatch> {
                          return std::make_unique<FairShareDispatch>(options);
                      }},
    DispatchAlgorithm{"none",
                      "Every scheduler uses every device.",
                      {true, true},
                      [](const FairShareOptions&) -> std::unique_ptr<DeviceDispatch> {
                          return std::make_unique<ShareAllDevices>();
                      }},
};
constexpr std::array kRequestAlgorithms{
    RequestAlgorithm{"fair_share", "In proportion to weights, by the cost of requests.",
                     [](const DriveCounts& weights) -> std::unique_ptr<RequestDispatch> {
                         return std::make_unique<FairShareRequests>(weights);
                     }},
    RequestAlgorithm{"fifo", "From the scheduler whose next request is the oldest.",
                     [](const DriveCounts&) -> std::unique_ptr<RequestDispatch> {
                         return std::make_unique<OldestRequest>();
                     }},
};

// Sorted, without duplicates.
constexpr bool in_order(const auto& table) {
    using Row = std::ranges::range_value_t<decltype(table)>;
    return std::ranges::adjacent_find(table, std::ranges::greater_equal{}, &Row::name) ==
           table.end();
}
static_assert(in_order(kAlgorithms), "not sorted, or two share a name");
static_assert(in_order(kDispatchAlgorithms), "not sorted, or two share a name");
static_assert(in_order(kRequestAlgorithms), "not sorted, or two share a name");

constexpr std::size_t kDefault = 1;
static_assert(kAlgorithms[kDefault].name == "fifo");
static_assert(std::ranges::all_of(kAlgorithms[kDefault].serves, std::identity{}));
static_assert(kDispatchAlgorithms[kDefault].name == "none");
static_assert(kRequestAlgorithms[kDefault].name == "fifo");

}  // namespace

std::span<const Algorithm> algorithms() {
    return kAlgorithms;
}
std::span<const DispatchAlgorithm> dispatch_algorithms() {
    return kDispatchAlgorithms;
}
std::span<const RequestAlgorithm> request_algorithms() {
    return kRequestAlgorithms;
}

const Algorithm& default_algorithm() {
    return kAlgorithms[kDefault];
}
const DispatchAlgorithm& default_dispatch_algorithm() {
    return kDispatchAlgorithms[kDefault];
}
const RequestAlgorithm& default_request_algorithm() {
    return kRequestAlgorithms[kDefault];
}

}  // namespace fopd::io_sched
