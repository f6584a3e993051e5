#include "lrs/tbf/tbf.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/ensure.h"
#include "lrs/policies.h"
#include "lrs/tbf/traffic_class.h"

namespace fopd::lrs {

namespace {

// Stale heap entries allowed in addition to as many as there are valid ones.
constexpr std::size_t kUntrueMax = 64;
// Classes of removed rules that are dropped in one step.
constexpr int kDroppedMax = 4;

bool has_limit(const Paces& paces) {
    return paces.operations.is_limit() || paces.bytes.is_limit();
}
bool has_limit(const Rule& rule) {
    return has_limit(rule.paces);
}

Charge charge_of(const Paces& paces, const Request& request) {
    Charge charge;
    if (paces.operations.is_limit()) charge.operation = paces.operations.cost_of(1);
    if (paces.bytes.is_limit()) charge.bytes = paces.bytes.cost_of(request.attributes.size_bytes);
    return charge;
}

Duration in_duration(Ticks ticks) {
    return Duration(ticks / kTicksPerNs);
}

}  // namespace

std::unique_ptr<Policy> make_tbf(const TbfSettings& settings, const TbfShare& share,
                                 std::uint64_t seed) {
    const TbfShare used =
        share.buckets != nullptr ? share : TbfNode(seed).share(settings, Instant{});
    auto policy = std::make_unique<Tbf>(used.buckets, used.rules, Tbf::Options{}, used.cluster);
    policy->set_cluster(settings.cluster_interval, settings.cut_off);
    return policy;
}

Tbf::Tbf(std::shared_ptr<BucketTable> buckets, RuleSetPtr rules, const Options& options,
         std::shared_ptr<ClusterNode> cluster)
    : buckets_(std::move(buckets)),
      rules_(std::move(rules)),
      options_(options),
      shares_(cluster != nullptr ? std::move(cluster) : std::make_shared<ClusterNode>()),
      classes_(options.classes_max) {
    ENSURE(buckets_ != nullptr);
    ENSURE(rules_ != nullptr);
    lines_ = std::vector<RuleLine>(rules_->rules().size());
    has_cluster_rules_ = std::ranges::any_of(rules_->rules(), &Rule::is_cluster);
}

Tbf::~Tbf() {
    classes_.for_each([this](TrafficClass& known) {
        if (known.is_from_table) buckets_->release(*known.bucket);
    });
}

void Tbf::push(Request& request, Instant now) {
    now_ = now;
    forget_idle(now);
    enter(class_of(request, rules_->rule_for(request.attributes, &memo_), now), request, now);
}

void Tbf::enter(TrafficClass& to, Request& request, Instant now) {
    static_cast<PolicyPlace&>(request).queue = &to;
    static_cast<PolicyPlace&>(request).number = generation_;
    to.waiting.push_back(request);
    if (to.cluster != nullptr) to.cluster->queued_bytes += request.attributes.size_bytes;
    if (++to.queued > 1) return;
    to.KnownClass::unlink();
    to.since = ticks_at(now);
    if (to.cluster != nullptr) wake_in_cluster(to);
    schedule(to);
}

Policy::Next Tbf::pop(Instant now) {
    now_ = now;
    forget_idle(now);
    const Ticks ticks = ticks_at(now);
    if (ticks >= look_again_at_) look_again();
    while (!ready_.empty()) {
        const ReadyHeap::Entry top = ready_.top();
        const bool is_line = (top.index & kOfLine) != 0;
        const std::uint32_t line = top.index & ~kOfLine;
        TrafficClass* const first = is_line ? nullptr : classes_.at(top.index);
        const bool is_true = is_line            ? lines_[line].order == top.order
                             : first != nullptr ? first->order == top.order
                                                : false;
        if (!is_true) {
            ready_.pop_top();
            continue;
        }
        if (top.at > ticks) return {.again = instant_at(std::min(top.at, look_again_at_))};
        if (is_line) {
            Request* const request = pop_line(line, now);
            if (request != nullptr) return {.request = request};
            continue;
        }
        switch (take_tokens(*first, ticks)) {
            // Another locality may have taken the tokens.
            case Taken::kNoneOfItsOwn: ready_.replace_top(next_entry_of(*first)); continue;
            case Taken::kNoneOfTheRule:
                ready_.pop_top();
                unschedule(*first);
                line_up(*first);
                continue;
            case Taken::kAll: break;
        }
        Request& request = serve(*first, now);
        if (first->queued > 0) {
            ready_.replace_top(next_entry_of(*first));
        } else {
            ready_.pop_top();
            unschedule(*first);
            rest(*first, now);
        }
        return {.request = &request};
    }
    return {.again = instant_at(look_again_at_)};
}

// Inlined, so that classes without limits of a cluster pay nothing for those with.
[[gnu::always_inline]] inline std::optional<Charge> Tbf::charge_for(TrafficClass& from,
                                                                    const Paces& paces,
                                                                    const Bucket& bucket,
                                                                    Ticks now) const {
    const Charge charge = charge_of(paces, from.head());
    if (from.cluster == nullptr) return charge;
    return charge_by_share(charge, bucket, now);
}

// REQUIRES: a request waits. If the line of its rule is not empty, the class joins the line.
Tbf::Taken Tbf::take_tokens(TrafficClass& from, Ticks now) const {
    const Rule& rule = *from.rule;
    const bool has_all_limit = has_limit(rule.all_paces);
    const bool is_in_line = from.LinePlace::linked();
    if (has_all_limit && !is_in_line && !lines_[index_of(rule)].waiting.empty())
        return Taken::kNoneOfTheRule;
    const auto charge = charge_for(from, rule.paces, *from.bucket, now);
    if (!charge || !from.bucket->take(now, from.since, *charge, rule.paces))
        return Taken::kNoneOfItsOwn;
    if (!has_all_limit) return Taken::kAll;
    const auto of_all = charge_for(from, rule.all_paces, *rule.all_bucket, now);
    if (of_all && rule.all_bucket->take(now, from.since, *of_all, rule.all_paces))
        return Taken::kAll;
    from.bucket->give_back(*charge, rule.paces);
    return Taken::kNoneOfTheRule;
}

// REQUIRES: the tokens for its first request were taken.
Request& Tbf::serve(TrafficClass& from, Instant now) {
    const Ticks ticks = ticks_at(now);
    Request& request = from.head();
    from.tally.add_throttled(in_duration(from.throttled_ticks(ticks)));
    from.tally.add_request(request.attributes.size_bytes, now);
    static_cast<PolicyPlace&>(request).unlink();
    from.since = ticks;
    --from.queued;
    if (from.cluster != nullptr) from.cluster->queued_bytes -= request.attributes.size_bytes;
    return request;
}

void Tbf::remove(Request& request) {
    auto& from = *static_cast<TrafficClass*>(static_cast<PolicyPlace&>(request).queue);
    if (is_unmoved(request)) {
        static_cast<PolicyPlace&>(request).unlink();
        return end_unmoved(from, now_);
    }
    const bool was_head = &from.head() == &request;
    static_cast<PolicyPlace&>(request).unlink();
    if (from.cluster != nullptr) from.cluster->queued_bytes -= request.attributes.size_bytes;
    if (from.queued == 1)
        from.tally.add_throttled(in_duration(from.throttled_ticks(ticks_at(now_))));
    if (--from.queued == 0) {
        unschedule(from);
        from.LinePlace::unlink();
        rest(from, now_);
    } else if (was_head && from.order != 0) {
        // The next request may be smaller, and may go earlier.
        unschedule(from);
        schedule(from);
    }
    tidy_heap();
}

void Tbf::let_pass(Request& request, Instant now) {
    now_ = now;
    auto& from = *static_cast<TrafficClass*>(static_cast<PolicyPlace&>(request).queue);
    from.tally.add_request(request.attributes.size_bytes, now);
    remove(request);
}

// -- classes --

Tbf::TrafficClass& Tbf::class_of(const Request& request, const Rule& rule, Instant now) {
    if (rule.classes_by.is_empty()) return own_class_of(rule);
    const ClassHash hash = rule.class_of(request.attributes, buckets_->key());
    if (TrafficClass* const known = classes_.find(hash)) return *known;

    // Earlier requests of the rule's own class, from when there was no room, must be served first.
    TrafficClass* const own = classes_.find(rule.own_class(buckets_->key()));
    if (own != nullptr && !own->has_nothing()) return *own;
    if (!make_room()) return own_class_of(rule);
    Bucket* bucket = rule.own_bucket.get();
    if (has_limit(rule)) {
        bucket = buckets_->acquire(rule.bucket_of(hash, buckets_->key()), ticks_at(now));
        if (bucket == nullptr) return own_class_of(rule);
    }
    TrafficClass& made = classes_.add(hash, rule, *bucket);
    made.is_from_table = has_limit(rule);
    made.name = rule.class_name(request.attributes);
    if (rule.is_cluster) {
        made.cluster = std::make_unique<ClusterClass>(
            rule.cluster_class(request.attributes, shares_.node().key));
    }
    return made;
}

Tbf::TrafficClass& Tbf::own_class_of(const Rule& rule) {
    const ClassHash hash = rule.own_class(buckets_->key());
    if (TrafficClass* const known = classes_.find(hash)) return *known;
    TrafficClass& made = classes_.add(hash, rule, *rule.own_bucket);
    made.name = rule.own_class_name();
    if (rule.is_cluster) {
        made.cluster = std::make_unique<ClusterClass>(rule.own_cluster_class(shares_.node().key));
    }
    return made;
}

bool Tbf::make_room() {
    if (classes_.count() - doomed_count_ < options_.classes_max) return true;
    TrafficClass* const idle = classes_.longest_idle();
    if (idle == nullptr) return false;
    drop_class(*idle);
    return true;
}

// Its bucket stays in the table until it is full.
void Tbf::drop_class(TrafficClass& gone) {
    ENSURE(gone.has_nothing());
    if (gone.rule == nullptr) --doomed_count_;
    if (gone.is_from_table) buckets_->release(*gone.bucket);
    classes_.drop(gone);
}

void Tbf::rest(TrafficClass& idle, Instant now) {
    if (!idle.has_nothing()) return;
    if (idle.rule != nullptr) return classes_.fell_idle(idle, now);
    drop_class(idle);
}

void Tbf::forget_idle(Instant now) {
    if (!doomed_idle_.empty()) drop_doomed();
    classes_.forget_idle(now, options_.forget_after,
                         [this](TrafficClass& idle) { drop_class(idle); });
}

// -- lines of rules --

void Tbf::line_up(TrafficClass& waiting) {
    waiting.at = kNeverTicks;  // Unknown.
    const std::uint32_t index = index_of(*waiting.rule);
    lines_[index].waiting.push_back(waiting);
    if (lines_[index].order == 0) schedule_line(index);
}

// REQUIRES: the line's entry is at the top.
Request* Tbf::pop_line(std::uint32_t index, Instant now) {
    RuleLine& line = lines_[index];
    ready_.pop_top();
    line.order = 0;
    --scheduled_count_;
    if (line.waiting.empty()) return nullptr;
    auto& first = static_cast<TrafficClass&>(line.waiting.front());
    Request* served = nullptr;
    switch (take_tokens(first, ticks_at(now))) {
        case Taken::kAll:
            first.LinePlace::unlink();
            served = &serve(first, now);
            if (first.queued > 0) {
                schedule(first);
            } else {
                rest(first, now);
            }
            break;
        case Taken::kNoneOfItsOwn:
            first.LinePlace::unlink();
            schedule(first);
            break;
        case Taken::kNoneOfTheRule: break;
    }
    schedule_line(index);
    return served;
}

// Puts the line into the heap, at the time at which its first class is ready.
void Tbf::schedule_line(std::uint32_t index) {
    RuleLine& line = lines_[index];
    if (line.waiting.empty()) return;
    auto& first = static_cast<TrafficClass&>(line.waiting.front());
    const Bucket& bucket = *first.rule->all_bucket;
    const Paces& paces = first.rule->all_paces;
    const auto charge = charge_for(first, paces, bucket, ticks_at(now_));
    const Ticks ready = charge ? bucket.ready_at(*charge, paces) : kNeverTicks;
    line.order = next_order();
    ready_.push(
        {.at = std::max(ready, first.since), .order = line.order, .index = index | kOfLine});
    ++scheduled_count_;
}

// -- when classes can be served --

void Tbf::schedule(TrafficClass& waiting) {
    if (waiting.rule->paces.is_blocked) {
        waiting.at = kNeverTicks;
        return;
    }
    ready_.push(next_entry_of(waiting));
    ++scheduled_count_;
}

ReadyHeap::Entry Tbf::next_entry_of(TrafficClass& waiting) {
    const Paces& paces = waiting.rule->paces;
    const auto charge = charge_for(waiting, paces, *waiting.bucket, ticks_at(now_));
    const Ticks ready = charge ? waiting.bucket->ready_at(*charge, paces) : kNeverTicks;
    waiting.at = std::max(ready, waiting.since);
    waiting.order = next_order();
    return {.at = waiting.at, .order = waiting.order, .index = waiting.index};
}

// Its entry stays in the heap as a stale one.
void Tbf::unschedule(TrafficClass& waiting) {
    if (waiting.order == 0) return;
    waiting.order = 0;
    --scheduled_count_;
}

void Tbf::tidy_heap() {
    if (ready_.size() <= 2 * scheduled_count_ + kUntrueMax) return;
    ready_.clear();
    classes_.for_each([this](const TrafficClass& known) {
        if (known.order == 0) return;
        ready_.push({.at = known.at, .order = known.order, .index = known.index});
    });
    for (std::uint32_t index = 0; index < lines_.size(); ++index) {
        if (std::exchange(lines_[index].order, 0) == 0) continue;
        --scheduled_count_;
        schedule_line(index);
    }
}

// -- changes of rules --

Policy::Adapted Tbf::set_rules(RuleSetPtr rules, Instant now) {
    ENSURE(rules != nullptr);
    now_ = now;
    const RuleSetPtr before = std::exchange(rules_, std::move(rules));
    has_cluster_rules_ = std::ranges::any_of(rules_->rules(), &Rule::is_cluster);
    memo_ = {};
    const bool must_move = adopt_rules(*before, now);
    if (must_move) let_go_of_waiting();
    schedule_all();
    return must_move ? Adapted::kByMoves : Adapted::kAtOnce;
}

void Tbf::move(Request& request, Instant now) {
    ENSURE(is_unmoved(request));
    now_ = now;
    auto& from = *static_cast<TrafficClass*>(static_cast<PolicyPlace&>(request).queue);
    TrafficClass& to = from.must_move
                           ? class_of(request, rules_->rule_for(request.attributes, &memo_), now)
                           : from;
    static_cast<PolicyPlace&>(request).unlink();
    enter(to, request, now);
    end_unmoved(from, now);
}

void Tbf::end_unmoved(TrafficClass& from, Instant now) {
    if (--from.unmoved > 0) return;
    from.must_move = false;
    rest(from, now);
}

// Keeps the classes of rules that still exist. A class's requests need not be moved unless its rule
// was removed or now comes after a rule that it did not come after before. Returns whether waiting
// requests may belong to other classes now.
bool Tbf::adopt_rules(const RuleSet& before, Instant now) {
    std::unordered_map<std::uint64_t, std::size_t> positions_before;
    for (std::size_t i = 0; i < before.rules().size(); ++i) {
        positions_before.emplace(before.rules()[i].id, i);
    }
    struct KeptRule {
        const Rule* rule;
        bool is_overtaken;
    };
    std::unordered_map<std::uint64_t, KeptRule> kept_rules;
    bool has_new = false;
    std::size_t last_before = 0;  // The highest old position of the rules passed so far.
    for (const Rule& rule : rules_->rules()) {
        const auto position_before = positions_before.find(rule.id);
        if (position_before == positions_before.end()) {
            has_new = true;
            continue;
        }
        const bool is_overtaken = has_new || position_before->second < last_before;
        last_before = std::max(last_before, position_before->second);
        kept_rules.emplace(rule.id, KeptRule{.rule = &rule, .is_overtaken = is_overtaken});
    }

    const Ticks ticks = ticks_at(now);
    bool must_move = false;
    classes_.for_each([&](TrafficClass& known) {
        if (known.rule == nullptr) return;
        known.tally.add_throttled(in_duration(known.throttled_ticks(ticks)));
        known.since = ticks;
        const auto kept = kept_rules.find(known.rule->id);
        const bool is_gone = kept == kept_rules.end();
        if (!is_gone) adopt_rule(known, *kept->second.rule, now);
        const bool is_other = is_gone || kept->second.is_overtaken;
        // Stays set for requests that were not moved after the previous change.
        known.must_move = !known.has_nothing() && (is_other || known.must_move);
        must_move = must_move || (is_other && !known.has_nothing());
        if (is_gone) doom(known);
    });
    return must_move;
}

void Tbf::doom(TrafficClass& gone) {
    if (gone.is_from_table) buckets_->release(*gone.bucket);
    gone.is_from_table = false;
    gone.bucket = nullptr;
    gone.rule = nullptr;
    gone.cluster = nullptr;
    ++doomed_count_;
    if (!gone.has_nothing()) return;
    gone.KnownClass::unlink();
    doomed_idle_.push_back(gone.index);
}

// A few at a time, so that no call takes long.
void Tbf::drop_doomed() {
    for (int i = 0; i < kDroppedMax && !doomed_idle_.empty(); ++i) {
        TrafficClass* const gone = classes_.at(doomed_idle_.back());
        doomed_idle_.pop_back();
        drop_class(*gone);
    }
}

// Waiting requests become list nodes without a list: a moved or removed one unlinks itself from its
// neighbours.
void Tbf::let_go_of_waiting() {
    ++generation_;
    classes_.for_each([](TrafficClass& known) {
        if (known.queued == 0) return;
        known.unmoved += std::exchange(known.queued, 0);
        if (known.cluster != nullptr) known.cluster->queued_bytes = 0;
        std::destroy_at(&known.waiting);
        std::construct_at(&known.waiting);
    });
}

void Tbf::adopt_rule(TrafficClass& kept, const Rule& rule, Instant now) {
    const Rule& before = *kept.rule;
    const bool was_own = kept.is_own();
    kept.rule = &rule;
    if (before.limits_id == rule.limits_id) return;

    const bool is_one_of_many = kept.hash != rule.own_class(buckets_->key());
    Bucket* bucket = nullptr;
    if (is_one_of_many && has_limit(rule)) {
        BucketStart start;
        if (!was_own) start = carried_over(*kept.bucket, before.limits, rule.limits, ticks_at(now));
        bucket =
            buckets_->acquire(rule.bucket_of(kept.hash, buckets_->key()), ticks_at(now), start);
    }
    if (bucket != nullptr && kept.cluster != nullptr) bucket->take_shares_of(*kept.bucket);
    if (kept.is_from_table) buckets_->release(*kept.bucket);
    kept.is_from_table = bucket != nullptr;
    kept.bucket = bucket != nullptr ? bucket : rule.own_bucket.get();
}

void Tbf::schedule_all() {
    ready_.clear();
    scheduled_count_ = 0;
    lines_ = std::vector<RuleLine>(rules_->rules().size());
    classes_.for_each([this](TrafficClass& known) {
        known.order = 0;
        known.LinePlace::unlink();
        if (known.queued > 0) schedule(known);
    });
}

// -- figures --

// Empty: the rule was removed, and the class waits for its end.
std::string_view Tbf::rule_name(const TrafficClass& known) {
    return known.rule == nullptr ? std::string_view() : std::string_view(known.rule->name);
}

// The rules of a set are contiguous, in their order.
ClassView Tbf::view_of(TrafficClass& known, Instant now) const {
    const Ticks ticks = ticks_at(now);
    const auto& rules = rules_->rules();
    const bool is_doomed = known.rule == nullptr;
    const auto index = is_doomed ? std::ssize(rules) : known.rule - rules.data();
    return {.name = known.name,
            .rule = rule_name(known),
            .sort_position = static_cast<std::uint32_t>(index),
            .queued = known.queued + known.unmoved,
            .is_throttled = known.is_throttled(ticks),
            .throttled_now = in_duration(known.throttled_ticks(ticks)),
            .oldest = known.queued > 0 ? known.head().arrived_at() : kNever,
            .tally = known.tally,
            .cluster = in_cluster(known, ticks)};
}

Policy::Adapted Tbf::adapt(const PolicySettings& settings, const PolicyParts& parts, Instant now) {
    const TbfShare& share = parts.share.tbf;
    // The ids of classes in the cluster depend on its key.
    if (share.buckets != buckets_ || share.cluster.get() != &shares_.node()) return Adapted::kNot;
    set_cluster(settings.tbf.cluster_interval, settings.tbf.cut_off);
    return set_rules(share.rules, now);
}

bool Tbf::is_held_back(const Request& request, Instant now) const {
    const auto* const of =
        static_cast<const TrafficClass*>(static_cast<const PolicyPlace&>(request).queue);
    return of->is_throttled(ticks_at(now));
}

ClassLabel Tbf::class_of(const Request& request) const {
    const auto* const of =
        static_cast<const TrafficClass*>(static_cast<const PolicyPlace&>(request).queue);
    return {.name = of->name, .rule = rule_name(*of)};
}

bool Tbf::visit_classes(Instant now, const ClassVisitor& visitor) {
    classes_.for_each([&](TrafficClass& known) {
        const bool is_over = known.rule == nullptr && known.has_nothing();
        if (!is_over) visitor(view_of(known, now));
    });
    return true;
}

}  // namespace fopd::lrs
