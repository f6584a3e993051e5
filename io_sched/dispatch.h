#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

// A scheduler of a family, as the algorithms between the schedulers see it.
struct SchedulerLoad {
    IoScheduler* scheduler = nullptr;
    std::array<bool, kIoTypeCount> serves{};
    std::uint64_t waiting_count = 0;
    std::uint64_t waiting_cost = 0;  // The sum of cost_of().
};

// The cost of the request to a device. For disks in the weights of the queue depth, for drives in
// milliseconds.
std::uint64_t cost_of(const IoRequest& request);

// Decides which devices each scheduler may use. An object for each family: it may keep state.
class DeviceDispatch {
public:
    virtual ~DeviceDispatch() = default;

    // Called before every pass, with all devices of the family. Adds devices to schedulers and
    // removes them.
    virtual void dispatch(std::span<IoDevice* const> devices, std::span<SchedulerLoad> schedulers,
                          Instant now) = 0;
    // The device was removed from every scheduler and does not come back.
    virtual void forget(IoDevice& /*device*/) {}
    // When dispatch() may do something though nothing but the time changes.
    virtual Instant next_time(Instant /*now*/) const { return kNever; }
};

// Chooses the scheduler whose request goes next. An object for each family: it may keep state.
class RequestDispatch {
public:
    virtual ~RequestDispatch() = default;

    // Returns one of the requests that are not null; null if all are. There is one for each
    // scheduler. Changes nothing.
    virtual IoRequest* next(std::span<IoRequest* const> peeked) const = 0;
    // A request of that scheduler was given to its devices.
    virtual void taken(std::size_t /*scheduler*/, std::uint64_t /*cost*/) {}
};

// Device dispatch `none`: every scheduler may use every device.
class ShareAllDevices final : public DeviceDispatch {
public:
    void dispatch(std::span<IoDevice* const> devices, std::span<SchedulerLoad> schedulers,
                  Instant now) override;
};

// Request dispatch `fifo`: the oldest of the schedulers' next requests. This is not the overall
// order of arrival, because a scheduler's next request need not be its oldest.
class OldestRequest final : public RequestDispatch {
public:
    IoRequest* next(std::span<IoRequest* const> peeked) const override;
};

}  // namespace fopd::io_sched
