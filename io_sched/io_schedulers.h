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

// The three I/O schedulers of a locality, one for each type of request; the devices they share; and
// the two algorithms that assign devices to schedulers and choose the next request. Callers need
// not know which algorithms are used. Pure, like the schedulers.
class IoSchedulers {
public:
    static std::unique_ptr<IoSchedulers> load_from_config(const IoSchedSettings& settings);

    // -- devices --

    // The device is assigned to schedulers by the next dispatch_devices(), until it is removed.
    void add_device(IoDevice& device);
    // Removes the device from every scheduler.
    void remove_device(IoDevice& device);
    // Assigns the devices anew. Called before every pass, because devices are added and removed,
    // and an algorithm may consider the waiting requests.
    void dispatch_devices();

    // -- requests: as in IoScheduler, each in the scheduler of its type --

    void push_request(IoRequest& request);
    // The next request of all types.
    IoRequest* peek_request(Instant now);
    Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest& request, Instant now);
    void requeue(IoRequest& request);
    void remove_request(IoRequest& request);

    // Any thread.
    std::uint64_t waiting_count(IoType type) const { return waiting_[index(type)].get(); }

private:
    explicit IoSchedulers(const IoSchedSettings& settings);

    static std::size_t index(IoType type) { return static_cast<std::size_t>(type); }
    IoScheduler& of(const IoRequest& request) { return *schedulers_[index(request.type)]; }

    const DispatchAlgorithm& dispatch_algorithm_;
    const RequestAlgorithm& request_algorithm_;
    std::array<std::unique_ptr<IoScheduler>, kIoTypeCount> owned_;
    std::array<IoScheduler*, kIoTypeCount> schedulers_{};
    std::array<core::Counter, kIoTypeCount> waiting_;
    std::vector<IoDevice*> devices_;
};

}  // namespace fopd::io_sched
