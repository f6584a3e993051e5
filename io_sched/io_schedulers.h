#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/counter.h"
#include "io_sched/algorithms.h"
#include "io_sched/io_scheduler.h"
#include "io_sched/settings.h"

namespace fopd::io_sched {

// The I/O schedulers of a family in a locality, one for each type of request or one for several;
// the devices they share; and the two algorithms that assign devices to schedulers and choose the
// next request. Callers need not know which algorithms are used. Pure, like the schedulers.
class IoSchedulers {
public:
    // Makes the I/O schedulers of disks.
    static std::unique_ptr<IoSchedulers> load_from_config(const IoSchedSettings& settings);
    // Makes the I/O schedulers of tape drives; `media` outlives them.
    static std::unique_ptr<IoSchedulers> load_from_config(const TapeSettings& settings,
                                                          const IoMedia& media);

    struct Served {
        std::unique_ptr<IoScheduler> scheduler;
        std::array<bool, kIoTypeCount> types{};
    };
    // REQUIRES: each type is served by exactly one scheduler.
    IoSchedulers(std::vector<Served> schedulers, std::unique_ptr<DeviceDispatch> device_dispatch,
                 std::unique_ptr<RequestDispatch> request_dispatch);

    // -- devices --

    // The device is assigned to schedulers by the next dispatch_devices(), until it is removed.
    void add_device(IoDevice& device);
    // Removes the device from every scheduler.
    void remove_device(IoDevice& device);
    // Assigns the devices anew. Called before every pass, because devices are added and removed,
    // and an algorithm may consider the waiting requests.
    void dispatch_devices(Instant now);

    // -- requests: as in IoScheduler, each in the scheduler of its type --

    void push_request(IoRequest& request);
    // The next request of all types.
    IoRequest* peek_request(Instant now);
    Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest& request, Instant now);
    void requeue(IoRequest& request);
    void remove_request(IoRequest& request);
    // Removes a request all of whose parts were given to devices.
    void remove_taken(IoRequest& request);
    bool retry(IoRequest& request, IoPart& part, const IoDevice& device);
    // When a pass may find something to do though nothing but the time changes.
    Instant next_time(Instant now) const;

    bool has_waiting() const;
    bool has_devices() const { return !devices_.empty(); }
    // Any thread.
    std::uint64_t waiting_count(IoType type) const { return waiting_[index(type)].get(); }

private:
    static std::size_t index(IoType type) { return static_cast<std::size_t>(type); }
    std::size_t number_of(const IoRequest& request) const { return serving_[index(request.type)]; }
    IoScheduler& of(const IoRequest& request) { return *loads_[number_of(request)].scheduler; }

    const std::unique_ptr<DeviceDispatch> device_dispatch_;
    const std::unique_ptr<RequestDispatch> request_dispatch_;
    std::vector<std::unique_ptr<IoScheduler>> owned_;
    std::vector<SchedulerLoad> loads_;  // One for each scheduler.
    std::vector<IoRequest*> peeked_;    // The request of each scheduler, during peek_request().
    std::array<std::size_t, kIoTypeCount> serving_{};  // The scheduler of each type.
    std::array<core::Counter, kIoTypeCount> waiting_;
    std::vector<IoDevice*> devices_;
};

}  // namespace fopd::io_sched
