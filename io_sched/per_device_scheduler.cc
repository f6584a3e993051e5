#include "io_sched/per_device_scheduler.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/ensure.h"

namespace fopd::io_sched {

// The requests that wait for one device.
class PerDeviceScheduler::Queue {
public:
    Queue(IoDevice& device, const MakeOrder& make_order)
        : device_(device),
          medium_(*device.medium()),
          foreground_(make_order()),
          background_(make_order()) {}

    IoDevice& device() const { return device_; }
    MediumId medium() const { return medium_; }
    std::size_t count() const { return count_; }

    void push(IoRequest& request) {
        order_of(request).push(request);
        ++count_;
    }
    IoRequest* next(Instant now) {
        if (count_ == 0) return nullptr;
        IoRequest* const background = background_->next(now);
        IoRequest* const foreground = foreground_->next(now);
        if (background == nullptr) return foreground;
        if (foreground == nullptr) return background;
        // A background request must not be next while an older foreground request waits: the choice
        // between reads and writes goes by age, so it would hold that one up behind all reads.
        const bool is_its_turn =
            foreground_run_ >= kForegroundRunMax && background->arrival() < foreground->arrival();
        return is_its_turn ? background : foreground;
    }
    void take(IoRequest& request) {
        order_of(request).take(request);
        --count_;
        const bool passed_by =
            request.priority == IoPriority::kForeground && background_->oldest() != nullptr;
        foreground_run_ = passed_by ? foreground_run_ + 1 : 0;
    }
    void remove(IoRequest& request) {
        order_of(request).remove(request);
        --count_;
    }
    IoRequest* any() {
        IoRequest* const foreground = foreground_->oldest();
        return foreground != nullptr ? foreground : background_->oldest();
    }

private:
    Order& order_of(const IoRequest& request) {
        return request.priority == IoPriority::kForeground ? *foreground_ : *background_;
    }

    IoDevice& device_;
    const MediumId medium_;
    const std::unique_ptr<Order> foreground_;
    const std::unique_ptr<Order> background_;
    std::size_t count_ = 0;
    std::uint32_t foreground_run_ = 0;
};

PerDeviceScheduler::PerDeviceScheduler(MakeOrder make_order) : make_order_(std::move(make_order)) {}

PerDeviceScheduler::~PerDeviceScheduler() = default;

void PerDeviceScheduler::push_request(IoRequest& request) {
    ENSURE(request.missing_count() > 0);
    enter(request);
}

IoRequest* PerDeviceScheduler::peek_request(Instant now) {
    if (peeked_ != nullptr) return peeked_;
    peeked_ = without_device_.oldest();
    if (peeked_ != nullptr) return peeked_;
    for (const auto& queue : queues_) {
        IoRequest* const next = queue->next(now);
        if (next == nullptr || !queue->device().has_room(next->type)) continue;
        if (peeked_ == nullptr || next->arrival() < peeked_->arrival()) peeked_ = next;
    }
    return peeked_;
}

Result<std::optional<DeviceMedium>> PerDeviceScheduler::get_device_medium_pair(IoRequest& request,
                                                                               Instant /*now*/) {
    ENSURE(&request == peeked_);
    ENSURE(request.missing_count() > 0);
    const Choice waits{.queue = static_cast<Queue*>(request.queue_state.queue),
                       .part = request.queue_state.part};
    const Choice choice = waits.queue != nullptr ? waits : choose(request);
    if (choice.queue == nullptr) {
        return std::unexpected(
            Error{.code = Errc::kNotFound, .context = "no device has the medium"});
    }
    IoDevice& device = choice.queue->device();
    if (!device.has_room(request.type)) return std::nullopt;

    if (waits.queue != nullptr) {
        waits.queue->take(request);
        request.queue_state.queue = nullptr;
    }
    request.take(choice.part);
    return DeviceMedium{.device = &device, .part = choice.part};
}

void PerDeviceScheduler::requeue(IoRequest& request) {
    ENSURE(&request == peeked_);
    peeked_ = nullptr;
    leave(request);
    enter(request);
}

void PerDeviceScheduler::remove_request(IoRequest& request) {
    if (peeked_ == &request) peeked_ = nullptr;
    leave(request);
}

void PerDeviceScheduler::add_device(IoDevice& device) {
    ENSURE(device.is_fixed());
    if (Queue* const known = find(*device.medium()); known != nullptr) {
        ENSURE(&known->device() == &device);
        return;
    }
    queues_.push_back(std::make_unique<Queue>(device, make_order_));
    AgeList without_device;
    while (IoRequest* const request = without_device_.oldest()) {
        AgeList::remove(*request);
        without_device.push(*request);
    }
    while (IoRequest* const request = without_device.oldest()) {
        remove_request(*request);
        enter(*request);
    }
}

void PerDeviceScheduler::remove_device(IoDevice& device) {
    if (has_device(device)) forget(*find(*device.medium()));
}

bool PerDeviceScheduler::has_device(const IoDevice& device) const {
    if (!device.medium()) return false;
    const Queue* const queue = find(*device.medium());
    return queue != nullptr && &queue->device() == &device;
}

bool PerDeviceScheduler::retry(IoRequest& request, IoPart& /*part*/, const IoDevice& /*device*/) {
    return request.type == IoType::kRead && request.has_spare();
}

IoDevice* PerDeviceScheduler::reclaim_device(const Reclaim& what) {
    if (what.kind != Reclaim::Kind::kTake) return nullptr;
    for (const auto& queue : queues_) {
        IoDevice& device = queue->device();
        if (queue->count() > 0 || device.technology() != what.technology) continue;
        forget(*queue);
        return &device;
    }
    return nullptr;
}

// The best part to wait with: on a device with room, otherwise on the least loaded device.
PerDeviceScheduler::Choice PerDeviceScheduler::choose(const IoRequest& request) const {
    Choice best;
    std::tuple<bool, std::size_t> least;
    for (std::size_t part = 0; part < request.parts.size(); ++part) {
        if (request.parts[part].state != IoPart::State::kWaiting) continue;
        Queue* const queue = find(request.parts[part].medium);
        if (queue == nullptr) continue;
        const IoDevice& device = queue->device();
        const std::tuple burden(!device.has_room(request.type),
                                queue->count() + device.in_flight());
        if (best.queue == nullptr || burden < least) {
            best = {.queue = queue, .part = part};
            least = burden;
        }
    }
    return best;
}

PerDeviceScheduler::Queue* PerDeviceScheduler::find(MediumId medium) const {
    for (const auto& queue : queues_) {
        if (queue->medium() == medium) return queue.get();
    }
    return nullptr;
}

void PerDeviceScheduler::enter(IoRequest& request) {
    const Choice choice = choose(request);
    request.queue_state.queue = choice.queue;
    request.queue_state.part = static_cast<std::uint16_t>(choice.part);
    if (choice.queue != nullptr) {
        choice.queue->push(request);
    } else {
        without_device_.push(request);
    }
}

void PerDeviceScheduler::leave(IoRequest& request) {
    if (auto* const queue =
            static_cast<Queue*>(std::exchange(request.queue_state.queue, nullptr))) {
        queue->remove(request);
    } else {
        AgeList::remove(request);  // In no list if all its parts are in flight.
    }
}

void PerDeviceScheduler::forget(Queue& queue) {
    const auto at = std::ranges::find(queues_, &queue, &std::unique_ptr<Queue>::get);
    ENSURE(at != queues_.end());
    const std::unique_ptr<Queue> leaving = std::move(*at);
    queues_.erase(at);
    while (IoRequest* const request = leaving->any()) {
        remove_request(*request);
        enter(*request);
    }
}

}  // namespace fopd::io_sched
