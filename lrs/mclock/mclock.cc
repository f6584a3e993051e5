#include "lrs/mclock/mclock.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"
#include "lrs/mclock/edit.h"
#include "lrs/policies.h"

namespace fopd::lrs {

namespace {

// How far a class with waiting requests may fall behind its reservation and still get all of it.
constexpr Ticks kReservationLateMax = kTicksPerSecond;
// How far a class with waiting requests may fall behind its limit and still get all of it: late
// polling does not reduce the rate.
constexpr Ticks kLimitLateMax = kTicksPerSecond / 100;
// The most requests by which a reservation can put a class's share ahead of the others': when there
// is capacity for all again, the class waits for no more than this.
constexpr std::int64_t kAheadMax = 64;
// Classes taken out of the at-limit state in one step, so that no step takes long.
constexpr int kEndedMax = 8;
// Stale entries allowed in addition to as many as there are valid ones.
constexpr std::size_t kStaleMax = 64;

// With 8 fractional bits, weight 1000 is exact to one part in 4 million.
constexpr int kShareBits = 8;
constexpr std::int64_t share_step(std::uint32_t weight) {
    return (std::int64_t{1} << 24) / weight;
}
constexpr std::int64_t share_of(Cost cost, std::int64_t step) {
    return std::max<std::int64_t>(1, (cost * step) >> kShareBits);
}
static_assert(kCostMax <= std::numeric_limits<std::int64_t>::max() / share_step(1));
// Share lines are moved back before they overflow.
constexpr std::int64_t kVirtualMax = std::int64_t{1} << 60;

Duration in_duration_of(Ticks ticks) {
    return Duration(ticks / kTicksPerNs);
}

ClassShares granted_by(const MclockRule& rule) {
    return {.reservation = rule.shares.reservation,
            .weight = rule.shares.weight,
            .limit = rule.shares.limit,
            .is_soft = rule.shares.is_soft};
}

}  // namespace

struct alignas(64) Mclock::TrafficClass : KnownClass {
    TrafficClass(const ClassHash& of, const MclockRule& by)
        : KnownClass(of), rule(&by), step(share_step(by.shares.weight)) {}

    Request& head() { return static_cast<Request&>(waiting.front()); }
    bool is_soft() const { return rule->shares.is_soft; }
    bool is_at_limit(Ticks now) const { return limit != nullptr && limit->paid_at() > now; }
    // Its lines start when its requests began to wait, but at most `late_max` ago.
    Ticks start(Ticks now, Ticks late_max) const { return std::max(busy_since, now - late_max); }
    bool take_limit(Ticks now, Ticks time) const {
        return limit == nullptr || limit->take_from(start(now, kLimitLateMax), now, time);
    }
    bool take_reservation(Ticks now, Ticks time) const {
        return reservation->take_from(start(now, kReservationLateMax), now, time);
    }
    // How long its first request has been delayed by the limit.
    Ticks throttled_ticks(Ticks now) const {
        if (queued == 0 || limit == nullptr) return 0;
        return std::max<Ticks>(0, std::min(limit->paid_at(), now) - since);
    }

    // The members that each push and pop reads come first, in adjacent memory.
    core::IntrusiveList<PolicyPlace> waiting;
    const MclockRule* rule;
    std::int64_t step;  // The step of its share line for a cost of one.
    Virtual share = 0;
    std::uint64_t queued = 0;
    Meter* limit = nullptr;        // Null: no limit.
    Meter* reservation = nullptr;  // Null: no reservation.
    Ticks busy_since = 0;          // Requests have waited without a break since then.
    Ticks since = 0;               // When the first request became the first.
    std::uint32_t order = 0;       // Unique.
    State state = State::kIdle;
    std::array<bool, kQueueCount> has_entry{};
    bool is_limited = false;  // Counted in limited_count_.
    bool is_new = true;       // It never had a waiting request.
    ClassTally tally;

    Bucket* bucket = nullptr;  // In the table of buckets, if it has one there.
    std::string name;
};

std::unique_ptr<Policy> make_mclock(const MclockSettings& settings, const MclockShare& share,
                                    std::uint64_t seed) {
    const MclockShare used = share.buckets != nullptr ? share : MclockNode(seed).share(settings);
    return std::make_unique<Mclock>(used, Mclock::Options{});
}

const MclockShare& MclockNode::share(const MclockSettings& settings) {
    const bool is_first = share_.buckets == nullptr;
    if (is_first) {
        core::Random random(seed_);
        const HashKey key{.first = random.next(), .second = random.next()};
        share_.buckets = std::make_shared<BucketTable>(key);
        share_.rules = MclockRules::none(version_);
    }
    if (is_first || settings.rules != settings_.rules) {
        auto loaded = MclockRules::load(settings.rules, share_.rules);
        ENSURE(loaded.has_value());
        share_.rules = *std::move(loaded);
    }
    share_.costs = CostModel(settings.cost_unit);
    settings_ = settings;
    return share_;
}

OrderedRulesPtr MclockNode::rules(const PolicySettings& settings, Instant /*now*/) {
    return share(settings.mclock).rules;
}

std::optional<RuleMistakes> MclockNode::edit(PolicySettings& settings, const RuleEdit& edit,
                                             Instant /*now*/) {
    auto edited = edit_mclock(settings.mclock, share(settings.mclock).rules, edit);
    if (!edited) return edited.error();
    settings.mclock = *std::move(edited);
    return std::nullopt;
}

Mclock::Mclock(MclockShare share, const Options& options)
    : share_(std::move(share)), options_(options), classes_(options.classes_max) {
    ENSURE(share_.buckets != nullptr);
    ENSURE(share_.rules != nullptr);
}

Mclock::~Mclock() {
    classes_.for_each([this](TrafficClass& known) {
        if (known.bucket != nullptr) share_.buckets->release(*known.bucket);
    });
}

void Mclock::push(Request& request, Instant now) {
    now_ = now;
    classes_.forget_idle(now, options_.forget_after,
                         [this](TrafficClass& idle) { drop_class(idle); });
    TrafficClass& to = class_of(request, share_.rules->rule_for(request.attributes, &memo_), now);
    static_cast<PolicyPlace&>(request).queue = &to;
    to.waiting.push_back(request);
    ++queued_;
    if (++to.queued > 1) return;
    to.KnownClass::unlink();
    to.since = to.busy_since = ticks_at(now);
    // A new class begins as if it had just had a turn: otherwise a stream of new classes, each
    // starting at the others' share, would always go first.
    const Virtual begin = to.is_new ? share_of(cost_of(request), to.step) : 0;
    to.share = std::max(to.share, virtual_now_ + begin);
    to.is_new = false;
    set_state(to, ticks_at(now));
}

Policy::Next Mclock::pop(Instant now) {
    now_ = now;
    const Ticks ticks = ticks_at(now);
    if (virtual_most_ > kVirtualMax) move_lines_back();
    for (;;) {
        const bool has_more = end_limits(ticks);
        Request* request = pop_reserved(ticks);
        if (request == nullptr) request = pop_by_share(ticks);
        if (request == nullptr && !has_more) request = pop_over_limit(ticks);
        if (request != nullptr) return {.request = request};
        if (has_more) continue;
        const ReadyHeap& at_limits = queues_[kAtLimits];
        while (!at_limits.empty() && settle_top(kAtLimits) == nullptr) {
        }
        return {.again = at_limits.empty() ? kNever : instant_at(at_limits.top().at)};
    }
}

void Mclock::remove(Request& request) {
    auto& from = *static_cast<TrafficClass*>(static_cast<PolicyPlace&>(request).queue);
    if (from.queued == 1)
        from.tally.add_throttled(in_duration_of(from.throttled_ticks(ticks_at(now_))));
    leave_waiting(from, request);
}

void Mclock::let_pass(Request& request, Instant now) {
    now_ = now;
    auto& from = *static_cast<TrafficClass*>(static_cast<PolicyPlace&>(request).queue);
    from.tally.add_request(request.attributes.size_bytes, now);
    remove(request);
}

// -- choosing the next request --

// Makes classes ready whose limit allows a request again. Returns whether there may be more of
// them.
bool Mclock::end_limits(Ticks now) {
    for (int ended = 0; ended < kEndedMax;) {
        if (queues_[kAtLimits].empty() || queues_[kAtLimits].top().at > now) return false;
        TrafficClass* const known = settle_top(kAtLimits);
        if (known == nullptr || known->is_at_limit(now)) continue;
        ++ended;
        // A class gains no share while it is held back, except for its next turn.
        known->share =
            std::max(known->share, virtual_now_ - share_of(cost_of(known->head()), known->step));
        known->state = State::kReady;
        enter_queues(*known);
    }
    return !queues_[kAtLimits].empty() && queues_[kAtLimits].top().at <= now;
}

Request* Mclock::pop_reserved(Ticks now) {
    while (!queues_[kReserved].empty() && queues_[kReserved].top().at <= now) {
        TrafficClass* const first = settle_top(kReserved);
        if (first == nullptr) continue;
        const Cost cost = cost_of(first->head());
        const Ticks throttled = first->throttled_ticks(now);
        // A request from the reservation is charged to a soft limit, too, but is not held back by
        // it.
        const Ticks limit_time = first->rule->limit_pace.time_of(cost);
        const bool has_limit = first->take_limit(now, limit_time);
        if (!has_limit && !first->is_soft()) continue;
        if (!first->take_reservation(now, first->rule->reservation_pace.time_of(cost))) {
            if (has_limit && first->limit != nullptr) first->limit->give_back(limit_time);
            continue;
        }
        charge_share_reserved(*first, cost);
        first->tally.note_reserved();
        return &serve(*first, now, throttled);
    }
    return nullptr;
}

Request* Mclock::pop_by_share(Ticks now) {
    while (!queues_[kByShare].empty()) {
        TrafficClass* const first = settle_top(kByShare);
        if (first == nullptr) continue;
        const Cost cost = cost_of(first->head());
        const Ticks throttled = first->throttled_ticks(now);
        // Another locality may have taken the tokens.
        if (!first->take_limit(now, first->rule->limit_pace.time_of(cost))) {
            set_state(*first, now);
            continue;
        }
        charge_share(*first, cost);
        first->tally.note_by_weight();
        return &serve(*first, now, throttled);
    }
    return nullptr;
}

// Requests beyond a soft limit are not charged to the limit: when other classes have requests
// again, the class still has its full limit.
Request* Mclock::pop_over_limit(Ticks now) {
    while (!queues_[kOverLimits].empty()) {
        TrafficClass* const first = settle_top(kOverLimits);
        if (first == nullptr) continue;
        charge_share(*first, cost_of(first->head()));
        first->tally.note_over_limit();
        return &serve(*first, now, first->throttled_ticks(now));
    }
    return nullptr;
}

Request& Mclock::serve(TrafficClass& of, Ticks now, Ticks throttled) {
    Request& request = of.head();
    of.tally.add_throttled(in_duration_of(throttled));
    of.tally.add_request(request.attributes.size_bytes, now_);
    leave_waiting(of, request);
    of.since = now;
    if (of.queued > 0) set_state(of, now);
    return request;
}

void Mclock::charge_share(TrafficClass& of, Cost cost) {
    virtual_now_ = std::max(virtual_now_, of.share);
    of.share += share_of(cost, of.step);
    virtual_most_ = std::max(virtual_most_, of.share);
}

void Mclock::charge_share_reserved(TrafficClass& of, Cost cost) {
    const Virtual part = share_of(cost, of.step);
    of.share = std::min(of.share + part, std::max(of.share, virtual_now_ + kAheadMax * part));
    virtual_most_ = std::max(virtual_most_, of.share);
}

void Mclock::move_lines_back() {
    const Virtual by = virtual_now_;
    classes_.for_each(
        [by](TrafficClass& known) { known.share = std::max<Virtual>(0, known.share - by); });
    virtual_now_ = 0;
    virtual_most_ -= by;
    tidy_queues();
}

// -- queues --

bool Mclock::belongs(const TrafficClass& known, Queue queue) {
    switch (queue) {
        case kReserved: return known.queued > 0 && known.reservation != nullptr;
        case kByShare: return known.state == State::kReady;
        case kAtLimits: return known.state == State::kAtLimit;
        case kOverLimits: return known.state == State::kAtLimit && known.is_soft();
    }
    return false;
}

std::int64_t Mclock::key_of(const TrafficClass& known, Queue queue) {
    switch (queue) {
        case kReserved: {
            const Ticks due = known.reservation->paid_at();
            return known.rule->has_hard_limit() ? std::max(due, known.limit->paid_at()) : due;
        }
        case kByShare:
        case kOverLimits: return known.share;
        case kAtLimits: return known.limit->paid_at();
    }
    return 0;
}

Mclock::TrafficClass* Mclock::settle_top(Queue queue) {
    ReadyHeap& heap = queues_[queue];
    const ReadyHeap::Entry top = heap.top();
    TrafficClass* const known = classes_.at(top.index);
    if (known == nullptr || known->order != top.order) {
        heap.pop_top();
        --stale_count_;
        return nullptr;
    }
    if (!belongs(*known, queue)) {
        heap.pop_top();
        known->has_entry[queue] = false;
        return nullptr;
    }
    const std::int64_t key = key_of(*known, queue);
    if (key <= top.at) return known;
    heap.replace_top({.at = key, .order = top.order, .index = top.index});
    return nullptr;
}

void Mclock::enter(TrafficClass& known, Queue queue) {
    if (known.has_entry[queue] || !belongs(known, queue)) return;
    known.has_entry[queue] = true;
    queues_[queue].push({.at = key_of(known, queue), .order = known.order, .index = known.index});
}

void Mclock::enter_queues(TrafficClass& known) {
    enter(known, kReserved);
    enter(known, kByShare);
    enter(known, kAtLimits);
    enter(known, kOverLimits);
}

// REQUIRES: a request waits.
void Mclock::set_state(TrafficClass& known, Ticks now) {
    known.state = known.is_at_limit(now) ? State::kAtLimit : State::kReady;
    enter_queues(known);
}

void Mclock::leave_waiting(TrafficClass& from, Request& request) {
    static_cast<PolicyPlace&>(request).unlink();
    --queued_;
    if (--from.queued == 0) {
        from.state = State::kIdle;
        classes_.fell_idle(from, now_);
    }
    // When nothing waits, no class is ahead of another.
    if (queued_ == 0) virtual_now_ = virtual_most_;
}

void Mclock::tidy_queues() {
    for (ReadyHeap& heap : queues_) heap.clear();
    stale_count_ = 0;
    classes_.for_each([this](TrafficClass& known) {
        known.has_entry = {};
        if (known.queued > 0) enter_queues(known);
    });
}

// -- classes --

Mclock::TrafficClass& Mclock::class_of(const Request& request, const MclockRule& rule,
                                       Instant now) {
    if (rule.classes_by.is_empty() && rule.reserved == nullptr) return own_class_of(rule);
    const ClassHash hash = rule.class_of(request.attributes, share_.buckets->key());
    if (TrafficClass* const known = classes_.find(hash)) return *known;

    if (rule.reserved != nullptr) {
        ReservedClasses::Meters* const meters = rule.reserved->find_or_add(hash);
        if (meters == nullptr) return own_class_of(rule);
        TrafficClass& made = add_class(hash, rule);
        made.reservation = &meters->reservation;
        if (rule.shares.limit) made.limit = &meters->limit;
        made.name = rule.class_name(request.attributes);
        return made;
    }

    // Earlier requests of the rule's own class, from when there was no room, must be served first.
    TrafficClass* const own = classes_.find(rule.own_class(share_.buckets->key()));
    if (own != nullptr && own->queued > 0) return *own;
    if (!make_room()) return own_class_of(rule);
    Bucket* bucket = nullptr;
    if (rule.shares.limit) {
        bucket =
            share_.buckets->acquire(rule.bucket_of(hash, share_.buckets->key()), ticks_at(now));
        if (bucket == nullptr) return own_class_of(rule);
    }
    TrafficClass& made = add_class(hash, rule);
    made.bucket = bucket;
    if (bucket != nullptr) made.limit = &bucket->operations;
    made.is_limited = true;
    ++limited_count_;
    made.name = rule.class_name(request.attributes);
    return made;
}

Mclock::TrafficClass& Mclock::own_class_of(const MclockRule& rule) {
    const ClassHash hash = rule.own_class(share_.buckets->key());
    if (TrafficClass* const known = classes_.find(hash)) return *known;
    TrafficClass& made = add_class(hash, rule);
    if (rule.shares.limit) made.limit = &rule.own_bucket->operations;
    made.name = rule.own_class_name();
    return made;
}

Mclock::TrafficClass& Mclock::add_class(const ClassHash& hash, const MclockRule& rule) {
    TrafficClass& made = classes_.add(hash, rule);
    if (++last_order_ == 0) ++last_order_;
    made.order = last_order_;
    return made;
}

bool Mclock::make_room() {
    while (limited_count_ >= options_.classes_max) {
        TrafficClass* const idle = classes_.longest_idle();
        if (idle == nullptr) return false;
        drop_class(*idle);
    }
    return true;
}

// Its meters remain: a bucket until it is full, a reservation's meters as long as the rule.
void Mclock::drop_class(TrafficClass& gone) {
    ENSURE(gone.queued == 0);
    if (gone.bucket != nullptr) share_.buckets->release(*gone.bucket);
    if (gone.is_limited) --limited_count_;
    stale_count_ += static_cast<std::size_t>(std::ranges::count(gone.has_entry, true));
    classes_.drop(gone);
    if (stale_count_ > kStaleMax + 2 * classes_.count()) tidy_queues();
}

// -- figures --

// The rules of a set are contiguous, in their order.
ClassView Mclock::view_of(TrafficClass& known, Instant now) const {
    const Ticks ticks = ticks_at(now);
    return {.name = known.name,
            .rule = known.rule->name,
            .sort_position = static_cast<std::uint32_t>(known.rule - share_.rules->rules().data()),
            .queued = known.queued,
            .is_throttled = known.queued > 0 && known.is_at_limit(ticks),
            .throttled_now = in_duration_of(known.throttled_ticks(ticks)),
            .oldest = known.queued > 0 ? known.head().arrived_at() : kNever,
            .tally = known.tally,
            .shares = granted_by(*known.rule)};
}

bool Mclock::is_held_back(const Request& request, Instant now) const {
    const auto* const of =
        static_cast<const TrafficClass*>(static_cast<const PolicyPlace&>(request).queue);
    return of->is_at_limit(ticks_at(now));
}

ClassLabel Mclock::class_of(const Request& request) const {
    const auto* const of =
        static_cast<const TrafficClass*>(static_cast<const PolicyPlace&>(request).queue);
    return {.name = of->name, .rule = of->rule->name};
}

bool Mclock::visit_classes(Instant now, const ClassVisitor& visitor) {
    classes_.for_each([&](TrafficClass& known) { visitor(view_of(known, now)); });
    return true;
}

}  // namespace fopd::lrs
