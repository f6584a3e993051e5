#include "io_sched/dispatch.h"

namespace fopd::io_sched {

void share_all_devices(std::span<IoDevice* const> devices,
                       std::span<IoScheduler* const> schedulers) {
    for (IoScheduler* const scheduler : schedulers) {
        // Removed devices have already been taken from every scheduler, so equal counts mean equal
        // sets.
        if (scheduler->device_count() == devices.size()) continue;
        for (IoDevice* const device : devices) scheduler->add_device(*device);
    }
}

IoRequest* oldest_request(std::span<IoRequest* const, kIoTypeCount> peeked) {
    IoRequest* oldest = nullptr;
    for (IoRequest* const request : peeked) {
        if (request == nullptr) continue;
        if (oldest == nullptr || request->arrival() < oldest->arrival()) oldest = request;
    }
    return oldest;
}

}  // namespace fopd::io_sched
