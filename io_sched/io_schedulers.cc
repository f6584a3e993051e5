#include "io_sched/io_schedulers.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::io_sched {

std::unique_ptr<IoSchedulers> IoSchedulers::load_from_config(const IoSchedSettings& settings) {
    return std::unique_ptr<IoSchedulers>(new IoSchedulers(settings));
}

IoSchedulers::IoSchedulers(const IoSchedSettings& settings)
    : dispatch_algorithm_(*settings.dispatch_algo), request_algorithm_(*settings.request_algo) {
    const std::array algorithms{settings.read_algo, settings.write_algo, settings.format_algo};
    for (std::size_t type = 0; type < kIoTypeCount; ++type) {
        ENSURE(algorithms[type]->serves[type]);
        owned_[type] = algorithms[type]->make(settings);
        schedulers_[type] = owned_[type].get();
    }
}

void IoSchedulers::add_device(IoDevice& device) {
    devices_.push_back(&device);
}

void IoSchedulers::remove_device(IoDevice& device) {
    std::erase(devices_, &device);
    for (IoScheduler* const scheduler : schedulers_) scheduler->remove_device(device);
}

void IoSchedulers::dispatch_devices() {
    dispatch_algorithm_.dispatch(devices_, schedulers_);
}

void IoSchedulers::push_request(IoRequest& request) {
    of(request).push_request(request);
    waiting_[index(request.type)].add(1);
}

IoRequest* IoSchedulers::peek_request(Instant now) {
    std::array<IoRequest*, kIoTypeCount> peeked{};
    for (std::size_t type = 0; type < kIoTypeCount; ++type) {
        if (waiting_[type].get() > 0) peeked[type] = schedulers_[type]->peek_request(now);
    }
    return request_algorithm_.next(peeked);
}

Result<std::optional<DeviceMedium>> IoSchedulers::get_device_medium_pair(IoRequest& request,
                                                                         Instant now) {
    return of(request).get_device_medium_pair(request, now);
}

void IoSchedulers::requeue(IoRequest& request) {
    of(request).requeue(request);
}

void IoSchedulers::remove_request(IoRequest& request) {
    of(request).remove_request(request);
    core::Counter& waiting = waiting_[index(request.type)];
    waiting.set(waiting.get() - 1);
}

}  // namespace fopd::io_sched
