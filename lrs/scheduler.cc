#include "lrs/scheduler.h"

#include <utility>

namespace fopd::lrs {

namespace {

// After so many control requests in a row one of data has its turn: a flood of pings must not keep
// the others' data waiting for ever.
constexpr std::uint32_t kControlRunMax = 32;

std::uint64_t in_ns(Instant instant) {
    return static_cast<std::uint64_t>(instant.time_since_epoch().count());
}

}  // namespace

Scheduler::Scheduler(core::Reactor& reactor, std::unique_ptr<Policy> policy)
    : Timer([](Timer& timer) { static_cast<Scheduler&>(timer).dispatch(); }),
      reactor_(reactor),
      policy_(std::move(policy)) {
    ENSURE(policy_ != nullptr);
}

void Scheduler::incoming(Request& request) {
    ENSURE(!is_shut_down_);
    ENSURE(request.state_ == Request::State::kOutside);
    request.state_ = Request::State::kQueued;
    request.arrived_at_ = reactor_.now();

    LaneState& lane = lane_of(request);
    if (lane.waiting.empty()) lane.figures.oldest_ns.set(in_ns(request.arrived_at_));
    lane.waiting.push_back(request);
    lane.figures.queued.add(1);
    if (request.attributes.lane == Lane::kData) policy_->push(request, request.arrived_at_);
    dispatch();
}

void Scheduler::next(Getter& getter) {
    getters_.push_back(getter);
    dispatch();
}

void Scheduler::remove(Request& request) {
    ENSURE(request.queued());
    if (request.attributes.lane == Lane::kData) policy_->remove(request);
    LaneState& lane = lane_of(request);
    leave_lane(lane, request);
    lane.figures.removed.add(1);
    request.state_ = Request::State::kOutside;
}

void Scheduler::complete(Request& request) {
    ENSURE(request.state_ == Request::State::kDelivered);
    request.state_ = Request::State::kOutside;
    if (request.attributes.lane == Lane::kData) policy_->complete(request, reactor_.now());
    dispatch();
}

void Scheduler::shutdown() {
    is_shut_down_ = true;
    dispatch();
}

// Getters and those who complete requests may call back into the scheduler: the outermost call
// serves them all, and the stack does not grow with what waits.
void Scheduler::dispatch() {
    if (dispatching_) return;
    dispatching_ = true;
    while (!getters_.empty()) {
        Request* const request = take();
        if (request == nullptr && !is_shut_down_) break;
        getters_.pop_front()->on_request(request);
    }
    dispatching_ = false;
}

Request* Scheduler::take() {
    const bool control_first = control_run_ < kControlRunMax;
    Request* request = control_first ? take_control() : take_data();
    if (request == nullptr) request = control_first ? take_data() : take_control();
    if (request == nullptr) return nullptr;

    const bool is_data = request->attributes.lane == Lane::kData;
    control_run_ = is_data ? 0 : control_run_ + 1;
    LaneState& lane = lane_of(*request);
    leave_lane(lane, *request);
    lane.figures.delivered.add(1);
    request->state_ = Request::State::kDelivered;
    return request;
}

Request* Scheduler::take_control() {
    LaneState& lane = lanes_[index_of(Lane::kControl)];
    return lane.waiting.empty() ? nullptr : &static_cast<Request&>(lane.waiting.front());
}

Request* Scheduler::take_data() {
    LaneState& lane = lanes_[index_of(Lane::kData)];
    if (lane.waiting.empty()) return nullptr;
    if (is_shut_down_) {
        auto& oldest = static_cast<Request&>(lane.waiting.front());
        policy_->remove(oldest);
        return &oldest;
    }
    const Policy::Next next = policy_->pop(reactor_.now());
    if (next.request == nullptr && next.again != kNever) reactor_.arm(*this, next.again);
    return next.request;
}

void Scheduler::leave_lane(LaneState& lane, Request& request) {
    request.ArrivalPlace::unlink();
    lane.figures.queued.set(lane.figures.queued.get() - 1);
    const bool empty = lane.waiting.empty();
    lane.figures.oldest_ns.set(
        empty ? 0 : in_ns(static_cast<Request&>(lane.waiting.front()).arrived_at_));
}

Duration Scheduler::oldest_wait(Lane lane) const {
    const LaneFigures& seen = figures(lane);
    if (seen.queued.get() == 0) return Duration::zero();
    const auto arrived = static_cast<std::int64_t>(seen.oldest_ns.get());
    return reactor_.now() - Instant(Duration(arrived));
}

void Scheduler::collect(core::MetricSink& sink, std::string_view locality) const {
    for (std::size_t index = 0; index < kLaneCount; ++index) {
        const LaneFigures& seen = lanes_[index].figures;
        const std::array labels{core::Label{"locality", locality},
                                core::Label{"lane", kLaneNames[index]}};
        sink.gauge("fopd_lrs_queued", "Requests that wait for their turn.", labels,
                   static_cast<double>(seen.queued.get()));
        sink.counter("fopd_lrs_delivered", "Requests that had their turn.", labels,
                     static_cast<double>(seen.delivered.get()));
        sink.counter("fopd_lrs_removed", "Requests that were given up while they waited.", labels,
                     static_cast<double>(seen.removed.get()));
    }
}

}  // namespace fopd::lrs
