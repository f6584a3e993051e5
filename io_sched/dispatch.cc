#include "io_sched/dispatch.h"

namespace fopd::io_sched {

namespace {

// The time of a locate and a share of a mount, and the rate of a drive; not of a certain model, so
// that all requests of a family are measured alike.
constexpr std::uint64_t kTapeStartMs = 15'000;
constexpr std::uint64_t kTapeBytesPerMs = 400'000;

}  // namespace

std::uint64_t cost_of(const IoRequest& request) {
    std::uint64_t bytes = 0;
    const std::size_t needed =
        request.type == IoType::kRead ? request.required_count : request.parts.size();
    for (const IoPart& part : request.parts.first(needed)) bytes += part.size_bytes;
    if (request.family == IoFamily::kDisk) return weight_of(bytes);
    return needed * kTapeStartMs + bytes / kTapeBytesPerMs;
}

void ShareAllDevices::dispatch(std::span<IoDevice* const> devices,
                               std::span<SchedulerLoad> schedulers, Instant /*now*/) {
    for (const SchedulerLoad& load : schedulers) {
        // Removed devices have already been taken from every scheduler, so equal counts mean equal
        // sets.
        if (load.scheduler->device_count() == devices.size()) continue;
        for (IoDevice* const device : devices) load.scheduler->add_device(*device);
    }
}

IoRequest* OldestRequest::next(std::span<IoRequest* const> peeked) const {
    IoRequest* oldest = nullptr;
    for (IoRequest* const request : peeked) {
        if (request == nullptr) continue;
        if (oldest == nullptr || request->arrival() < oldest->arrival()) oldest = request;
    }
    return oldest;
}

}  // namespace fopd::io_sched
