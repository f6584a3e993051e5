#include "io_sched/io_schedulers.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::io_sched {

namespace {

// One for each type. `media` is what the algorithms of drives take besides.
template <typename Settings, typename... Media>
std::vector<IoSchedulers::Served> make_schedulers(const Settings& settings, const Media&... media) {
    const std::array algorithms{settings.read_algo, settings.write_algo, settings.format_algo};
    std::vector<IoSchedulers::Served> schedulers;
    for (std::size_t type = 0; type < kIoTypeCount; ++type) {
        ENSURE(algorithms[type]->serves[type]);
        auto& served = schedulers.emplace_back(algorithms[type]->make(settings, media...));
        served.types[type] = true;
    }
    return schedulers;
}

}  // namespace

std::unique_ptr<IoSchedulers> IoSchedulers::load_from_config(const IoSchedSettings& settings) {
    return std::make_unique<IoSchedulers>(
        make_schedulers(settings), settings.dispatch_algo->make({}),
        settings.request_algo->make(settings.request_fair_share_weights));
}

std::unique_ptr<IoSchedulers> IoSchedulers::load_from_config(const TapeSettings& settings,
                                                             const IoMedia& media) {
    return std::make_unique<IoSchedulers>(
        make_schedulers(settings, media), settings.dispatch_algo->make(settings.fair_share()),
        settings.request_algo->make(settings.request_fair_share_weights));
}

IoSchedulers::IoSchedulers(std::vector<Served> schedulers,
                           std::unique_ptr<DeviceDispatch> device_dispatch,
                           std::unique_ptr<RequestDispatch> request_dispatch)
    : device_dispatch_(std::move(device_dispatch)),
      request_dispatch_(std::move(request_dispatch)),
      peeked_(schedulers.size()) {
    std::array<int, kIoTypeCount> served_by{};
    for (Served& served : schedulers) {
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            if (!served.types[type]) continue;
            ++served_by[type];
            serving_[type] = loads_.size();
        }
        loads_.push_back({.scheduler = served.scheduler.get(), .serves = served.types});
        owned_.push_back(std::move(served.scheduler));
    }
    ENSURE(std::ranges::count(served_by, 1) == std::ptrdiff_t{kIoTypeCount});
}

void IoSchedulers::add_device(IoDevice& device) {
    devices_.push_back(&device);
}

void IoSchedulers::remove_device(IoDevice& device) {
    std::erase(devices_, &device);
    for (const SchedulerLoad& load : loads_) load.scheduler->remove_device(device);
    device_dispatch_->forget(device);
}

void IoSchedulers::dispatch_devices(Instant now) {
    device_dispatch_->dispatch(devices_, loads_, now);
}

void IoSchedulers::push_request(IoRequest& request) {
    SchedulerLoad& load = loads_[number_of(request)];
    load.scheduler->push_request(request);
    ++load.waiting_count;
    request.queue_state.cost = cost_of(request);
    load.waiting_cost += request.queue_state.cost;
    waiting_[index(request.type)].add(1);
}

IoRequest* IoSchedulers::peek_request(Instant now) {
    for (std::size_t i = 0; i < loads_.size(); ++i) {
        const bool waits = loads_[i].waiting_count > 0;
        peeked_[i] = waits ? loads_[i].scheduler->peek_request(now) : nullptr;
    }
    return request_dispatch_->next(peeked_);
}

Result<std::optional<DeviceMedium>> IoSchedulers::get_device_medium_pair(IoRequest& request,
                                                                         Instant now) {
    return of(request).get_device_medium_pair(request, now);
}

void IoSchedulers::requeue(IoRequest& request) {
    of(request).requeue(request);
}

void IoSchedulers::remove_request(IoRequest& request) {
    SchedulerLoad& load = loads_[number_of(request)];
    load.scheduler->remove_request(request);
    --load.waiting_count;
    load.waiting_cost -= request.queue_state.cost;
    core::Counter& waiting = waiting_[index(request.type)];
    waiting.set(waiting.get() - 1);
}

void IoSchedulers::remove_taken(IoRequest& request) {
    remove_request(request);
    request_dispatch_->taken(number_of(request), request.queue_state.cost);
}

bool IoSchedulers::retry(IoRequest& request, IoPart& part, const IoDevice& device) {
    return of(request).retry(request, part, device);
}

Instant IoSchedulers::next_time(Instant now) const {
    Instant next = device_dispatch_->next_time(now);
    for (const SchedulerLoad& load : loads_) {
        if (load.waiting_count > 0) next = std::min(next, load.scheduler->next_time(now));
    }
    return next;
}

bool IoSchedulers::has_waiting() const {
    return std::ranges::any_of(loads_,
                               [](const SchedulerLoad& load) { return load.waiting_count > 0; });
}

}  // namespace fopd::io_sched
