#include "lrs/scheduler.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace fopd::lrs {

namespace {

std::uint64_t in_ns(Instant instant) {
    return static_cast<std::uint64_t>(instant.time_since_epoch().count());
}

}  // namespace

Scheduler::Scheduler(core::Reactor& reactor, std::unique_ptr<Policy> policy,
                     eh::EpochHandler* epochs, std::span<const EpochPart> parts)
    : Timer([](Timer& timer) { static_cast<Scheduler&>(timer).dispatch(); }),
      reactor_(reactor),
      policy_(std::move(policy)),
      epochs_(epochs),
      frame_(parts),
      epoch_timer_(*this),
      hand_over_timer_(*this),
      late_timer_(*this) {
    ENSURE(policy_ != nullptr);
    waiting_.emplace_back(++last_waiting_number_, policy_);
    if (epochs_ != nullptr) ask_for_epoch();
}

void Scheduler::incoming(Request& request) {
    ENSURE(!is_shut_down_);
    ENSURE(request.state_ == Request::State::kOutside);
    request.state_ = Request::State::kQueued;
    request.number_ = 0;
    const Instant now = reactor_.now();
    request.attributes.arrived_at = now;

    LaneFigures& lane = lane_of(request);
    if (lane.queued.get() == 0) lane.oldest_ns.set(in_ns(now));
    lane.queued.add(1);
    if (request.attributes.lane == Lane::kData) {
        wait_for_turn(request, now);
    } else {
        control_.push(request);
    }
    if (request.late_ != nullptr && request.attributes.deadline != kNever) {
        request.deadline_place_.scheduler = this;
        deadlines_.arm(request.deadline_place_, request.attributes.deadline);
    }
    dispatch();
}

// During a handover a new request waits behind the older ones, and no policy holds it.
void Scheduler::wait_for_turn(Request& request, Instant now) {
    if (!is_handing_over()) {
        policy_->push(request, now);
    } else if (waiting_.back().policy != nullptr) {
        waiting_.emplace_back(++last_waiting_number_, nullptr);
    }
    Waiting& last = waiting_.back();
    request.number_ = last.number;
    last.requests.push_back(request);
}

void Scheduler::next(Getter& getter, Asked asked) {
    getter.asked_ = asked;
    if (!getter.linked()) getters_.push_back(getter);
    dispatch();
}

void Scheduler::remove(Request& request) {
    ENSURE(request.queued());
    const bool is_data = request.attributes.lane == Lane::kData;
    Policy* const holder = is_data ? holder_of(request) : nullptr;
    if (holder != nullptr) holder->remove(request);
    if (!is_data) control_.remove(request);
    leave_lane(request);
    lane_of(request).removed.add(1);
    request.state_ = Request::State::kOutside;
    note_held_back();
}

void Scheduler::complete(Request& request) {
    ENSURE(request.state_ == Request::State::kDelivered);
    request.state_ = Request::State::kOutside;
    // A request popped by an earlier policy, or by none, is not reported to this policy.
    const bool is_of_policy = request.number_ == policy_number_;
    if (is_of_policy) policy_->complete(request, reactor_.now());
    dispatch();
}

void Scheduler::use(std::unique_ptr<Policy> policy) {
    ENSURE(policy != nullptr);
    policy_ = std::move(policy);
    if (held_back_since_ != kNever) count_held_back(reactor_.now());
    tally_ = {};
    ++policy_number_;
    policy_figures_.switches.add(1);
    begin_hand_over();
}

bool Scheduler::adapt(const PolicySettings& settings, const PolicyParts& parts) {
    switch (policy_->adapt(settings, parts, reactor_.now())) {
        case Policy::Adapted::kNot: return false;
        case Policy::Adapted::kAtOnce: break;
        case Policy::Adapted::kByMoves: begin_hand_over(); return true;
    }
    Timer::disarm();
    dispatch();
    return true;
}

// -- handover --

// All waiting requests are now behind a new, empty first element.
void Scheduler::begin_hand_over() {
    waiting_.emplace_front(++last_waiting_number_, policy_);
    Timer::disarm();
    go_on();
}

void Scheduler::go_on() {
    hand_over();
    dispatch();
}

void Scheduler::hand_over() {
    if (is_shut_down_) return;
    const Instant now = reactor_.now();
    std::size_t left = kHandedOverMax;
    Waiting& first = waiting_.front();
    while (is_handing_over()) {
        Waiting& next = *std::next(waiting_.begin());
        if (next.requests.empty()) {
            waiting_.erase(std::next(waiting_.begin()));
            continue;
        }
        // now() is constant within a turn, so this fires in the next one.
        if (left-- == 0) return reactor_.arm(hand_over_timer_, after(now, 1ns));
        auto& request = static_cast<Request&>(*next.requests.pop_front());
        if (next.policy == policy_) {
            policy_->move(request, now);
        } else {
            if (next.policy != nullptr) next.policy->remove(request);
            policy_->push(request, now);
        }
        request.number_ = first.number;
        first.requests.push_back(request);
    }
}

Policy* Scheduler::holder_of(const Request& request) const {
    const auto holds = std::ranges::find(waiting_, request.number_, &Waiting::number);
    ENSURE(holds != waiting_.end());
    return holds->policy.get();
}

void Scheduler::shutdown() {
    if (is_shut_down_) return;
    is_shut_down_ = true;
    epoch_timer_.disarm();
    hand_over_timer_.disarm();
    if (epochs_ != nullptr) epochs_->last_epoch(epoch_);
    dispatch();
}

// -- epochs --

void Scheduler::ask_for_epoch() {
    ready_latest_ = kNever;
    ready_at_ = kNever;
    asked_at_ = reactor_.now();
    std::array<std::byte, eh::kEpochBytesMax> room{};
    const auto frame = std::span(room).first(frame_.size_bytes());
    const std::string_view name = policy_->epoch_part();
    const auto part = name.empty() ? std::span<std::byte>() : frame_.fill(frame, name);
    if (!part.empty()) policy_->write_epoch(part, reactor_.now());
    const auto asked = epochs_->next_epoch(epoch_, frame, *this);
    if (!asked) on_epoch(std::unexpected(asked.error()), {});
}

// Becomes ready again when the epoch is over for the policy, and after half of the timeout at the
// latest: other nodes wait for this one, also when it is idle. If the epoch could not be agreed on,
// asks again as a participant without a known epoch, and continues to schedule meanwhile.
void Scheduler::on_epoch(Result<eh::EpochNumber> epoch, std::span<const std::byte> data) {
    if (is_shut_down_) return;
    epoch_ = epoch.value_or(eh::kFirstEpoch);
    policy_figures_.epoch.set(static_cast<std::uint64_t>(epoch_));
    const Instant now = reactor_.now();
    ready_latest_ = after(now, epochs_->rules().timeout / 2);
    ready_at_ = ready_latest_;
    reactor_.arm(epoch_timer_, ready_at_);
    is_others_epoch_ = frame_.is_filled(data);
    if (epoch) {
        // The policy may be another one than when this node became ready. No node has begun the
        // epoch before that.
        EpochPartData part = frame_.part(data, policy_->epoch_part());
        const eh::EpochRules& rules = epochs_->rules();
        part.expires_at = after(asked_at_, std::min(rules.timeout, rules.left_out_after));
        policy_->start_epoch(*epoch, part, now);
    } else {
        policy_->lose_epoch(epoch.error(), now);
    }
    dispatch();
}

// An epoch that is over is asked about in a later turn: the handler may answer at once, and an
// epoch without requests may be over at once. A policy without a part in epochs does not keep those
// of other nodes waiting, which change their policies one by one.
void Scheduler::note_epoch_over() {
    if (ready_latest_ == kNever || is_shut_down_ || epoch_ == eh::kFirstEpoch) return;
    const bool is_bystander = is_others_epoch_ && policy_->epoch_part().empty();
    const Instant policy_over_at = is_bystander ? Instant{} : policy_->epoch_over_at();
    const Instant over_at = std::max(policy_over_at, after(reactor_.now(), 1ns));
    const Instant ready_at = std::min(over_at, ready_latest_);
    if (ready_at == ready_at_ || ready_at_ <= reactor_.now()) return;
    ready_at_ = ready_at;
    reactor_.arm(epoch_timer_, ready_at_);
}

// -- requests --

// Callbacks to getters and to completing callers may call back into the scheduler: the outermost
// call serves all requests, so the stack does not grow.
void Scheduler::dispatch() {
    if (dispatching_) return;
    dispatching_ = true;
    while (end_late() && !getters_.empty()) {
        Request* const request = take(getters_.front().asked_);
        if (request == nullptr && !is_shut_down_) break;
        getters_.pop_front()->on_request(request);
    }
    dispatching_ = false;
    note_held_back();
    note_epoch_over();
}

// Called before anything is delivered. Returns false if late requests are left.
bool Scheduler::end_late() {
    const Instant now = reactor_.now();
    for (std::size_t left = kLateMax; left > 0 && deadlines_.fire_next(now);) --left;
    const Instant next = deadlines_.next_deadline();
    if (next == kNever) return true;
    // now() is constant within a turn, so the rest is handled in the next one.
    const Instant due = std::max(next, after(now, 1ns));
    if (!late_timer_.armed() || due < late_at_) {
        late_at_ = due;
        reactor_.arm(late_timer_, due);
    }
    return next > now;
}

void Scheduler::end_late(Request& request) {
    const Request::Waited waited =
        is_held_back(request) ? Request::Waited::kForLimit : Request::Waited::kForOthers;
    // The class may end with the request.
    const ClassLabel label = class_of(request);
    const std::string name(label.name);
    const std::string rule(label.rule);
    remove(request);
    request.late_(request, waited, {.name = name, .rule = rule});
}

void Request::DeadlinePlace::on_time(core::Timer& timer) {
    auto& place = static_cast<DeadlinePlace&>(timer);
    place.scheduler->end_late(place.request);
}

void Scheduler::note_held_back() {
    const bool held_back = asks_for_data() && has_data();
    if (held_back == (held_back_since_ != kNever)) return;
    const Instant now = reactor_.now();
    if (!held_back) count_held_back(now);
    held_back_since_ = held_back ? now : kNever;
}

void Scheduler::count_held_back(Instant now) {
    const Duration held = now - held_back_since_;
    policy_figures_.held_back_ns.add(static_cast<std::uint64_t>(held.count()));
    tally_.add_throttled(held);
    held_back_since_ = now;
}

Request* Scheduler::take(Asked asked) {
    const bool is_any = asked == Asked::kAny;
    const bool control_first = is_any ? control_.goes_first() : asked == Asked::kControl;
    Request* request = control_first ? control_.pop() : take_data();
    if (request == nullptr && is_any) request = control_first ? take_data() : control_.pop();
    if (request == nullptr) return nullptr;

    const bool is_data = request->attributes.lane == Lane::kData;
    if (is_data) control_.begin_run();
    leave_lane(*request);
    LaneFigures& lane = lane_of(*request);
    lane.delivered.add(1);
    const Instant now = reactor_.now();
    lane.waits.record(now - request->arrived_at());
    if (is_data) tally_.add_request(request->attributes.size_bytes, now);
    request->state_ = Request::State::kDelivered;
    return request;
}

Request* Scheduler::take_data() {
    if (!has_data()) return nullptr;
    if (is_shut_down_) {
        Request* const oldest = oldest_of(Lane::kData);
        Policy* const holder = holder_of(*oldest);
        if (holder != nullptr) holder->let_pass(*oldest, reactor_.now());
        oldest->number_ = 0;
        return oldest;
    }
    const Policy::Next next = policy_->pop(reactor_.now());
    if (next.request != nullptr) next.request->number_ = policy_number_;
    if (next.request == nullptr && next.again != kNever) reactor_.arm(*this, next.again);
    return next.request;
}

// Null: none waits.
Request* Scheduler::oldest_of(Lane lane) {
    if (lane == Lane::kControl) return control_.oldest();
    for (Waiting& waiting : waiting_) {
        if (!waiting.requests.empty()) return &static_cast<Request&>(waiting.requests.front());
    }
    return nullptr;
}

void Scheduler::leave_lane(Request& request) {
    request.deadline_place_.disarm();
    request.ArrivalPlace::unlink();
    LaneFigures& lane = lane_of(request);
    lane.queued.set(lane.queued.get() - 1);
    const Request* const oldest = oldest_of(request.attributes.lane);
    lane.oldest_ns.set(oldest == nullptr ? 0 : in_ns(oldest->arrived_at()));
}

bool Scheduler::is_held_back(const Request& request) const {
    ENSURE(request.queued());
    if (request.attributes.lane != Lane::kData) return false;
    const Policy* const holder = holder_of(request);
    return holder != nullptr && holder->is_held_back(request, reactor_.now());
}

// -- figures --

void Scheduler::visit_classes(Instant now, const ClassVisitor& visitor) {
    const LaneFigures& data = figures(Lane::kData);
    std::uint64_t shown = 0;
    const auto show = [&](const ClassView& of) {
        shown += of.queued;
        visitor(of);
    };
    if (policy_->visit_classes(now, show)) {
        if (data.queued.get() == shown) return;
        // Requests that are not handed over yet have no class.
        ClassTally none;
        return visitor({.name = kOtherClasses,
                        .sort_position = std::numeric_limits<std::uint32_t>::max(),
                        .queued = data.queued.get() - shown,
                        .tally = none});
    }
    const bool is_held_back = held_back_since_ != kNever;
    visitor({.name = kAllClasses,
             .queued = data.queued.get(),
             .is_throttled = is_held_back,
             .throttled_now = is_held_back ? now - held_back_since_ : Duration::zero(),
             .oldest = has_data() ? Instant(Duration(data.oldest_ns.get())) : kNever,
             .tally = tally_});
}

std::vector<ClassFigures> Scheduler::class_figures() {
    std::vector<ClassFigures> all;
    const Instant now = reactor_.now();
    visit_classes(now, [&](const ClassView& of) { all.push_back(figures_of(of, now)); });
    return all;
}

ClassLabel Scheduler::class_of(const Request& request) const {
    ENSURE(request.queued() || request.delivered());
    if (request.attributes.lane != Lane::kData) return {};
    const bool is_chosen = request.delivered() && request.number_ == policy_number_;
    const Policy* const holder = request.queued() ? holder_of(request)
                                 : is_chosen      ? policy_.get()
                                                  : nullptr;
    return holder == nullptr ? ClassLabel{} : holder->class_of(request);
}

std::vector<ClassNews> Scheduler::take_class_news() {
    std::vector<ClassNews> all;
    const Instant now = reactor_.now();
    visit_classes(now, [&](const ClassView& of) {
        const ClassTotals added = of.tally.take_news(of.throttled_now);
        if (added.is_nothing() && of.queued == 0) return;
        const RecentRate::PerSecond recent = of.tally.per_second(now);
        all.push_back({.name = std::string(of.name),
                       .rule = std::string(of.rule),
                       .added = added,
                       .now = {.queued = of.queued,
                               .oldest = of.oldest == kNever ? Duration::zero() : now - of.oldest,
                               .operations_per_second = recent.requests,
                               .bytes_per_second = recent.bytes,
                               .cluster = of.cluster}});
    });
    return all;
}

void Scheduler::collect(core::MetricSink& sink, std::string_view locality) const {
    for (std::size_t index = 0; index < kLaneCount; ++index) {
        const LaneFigures& seen = figures_[index];
        const std::array labels{core::Label{"locality", locality},
                                core::Label{"lane", kLaneNames[index]}};
        sink.gauge("fopd_lrs_queued", "Requests that wait for their turn.", labels,
                   static_cast<double>(seen.queued.get()));
        sink.counter("fopd_lrs_delivered", "Requests that had their turn.", labels,
                     static_cast<double>(seen.delivered.get()));
        sink.counter("fopd_lrs_removed", "Requests that were given up, or late, while they waited.",
                     labels, static_cast<double>(seen.removed.get()));
        sink.time_histogram("fopd_lrs_wait_seconds", "How long requests waited for their turn.",
                            labels, seen.waits, core::Buckets::kTwelve);
    }
    const std::array labels{core::Label{"locality", locality}};
    sink.counter("fopd_lrs_policy_switches", "Times another policy took over.", labels,
                 static_cast<double>(policy_figures_.switches.get()));
    sink.counter("fopd_lrs_held_back_seconds",
                 "Time in which a request could have run, and the policy let none.", labels,
                 static_cast<double>(policy_figures_.held_back_ns.get()) * 1e-9);
    sink.gauge("fopd_epoch", "The epoch that the request scheduler is in.", labels,
               static_cast<double>(policy_figures_.epoch.get()));
}

}  // namespace fopd::lrs
