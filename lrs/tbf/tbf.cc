#include "lrs/tbf/tbf.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"
#include "lrs/policies.h"

namespace fopd::lrs {

namespace {

// Entries of the heap that may be untrue beside those that are true.
constexpr std::size_t kUntrueMax = 64;

bool has_limit(const Rule& rule) {
    return rule.paces.operations.is_limit() || rule.paces.bytes.is_limit();
}

Charge charge_of(const Rule& rule, const Request& request) {
    Charge charge;
    const Paces& paces = rule.paces;
    if (paces.operations.is_limit()) charge.operation = paces.operations.cost_of(1);
    if (paces.bytes.is_limit()) charge.bytes = paces.bytes.cost_of(request.attributes.size_bytes);
    return charge;
}

Duration in_duration(Ticks ticks) {
    return Duration(ticks / kTicksPerNs);
}

}  // namespace

struct alignas(64) Tbf::TrafficClass : KnownClass {
    TrafficClass(const ClassHash& of, const Rule& by, Bucket& from)
        : KnownClass(of), bucket(&from), rule(&by) {}

    Request& head() { return static_cast<Request&>(waiting.front()); }
    bool is_own() const { return bucket == rule->own_bucket.get(); }
    // What it has waited for tokens since it last had some.
    Ticks throttled_ticks(Ticks now) const {
        return queued == 0 ? 0 : std::max<Ticks>(0, std::min(at, now) - since);
    }

    // What each push and pop looks at comes first, side by side.
    core::IntrusiveList<PolicyPlace> waiting;
    Bucket* bucket;
    const Rule* rule;
    std::uint32_t order = 0;  // Of its entry in the heap; 0: it has none.
    std::uint64_t queued = 0;
    Ticks since = 0;  // The head is the head since then.
    Ticks at = 0;     // When it can go.
    ClassTally tally;

    bool is_from_table = false;  // Its bucket.
    // While rules change:
    bool is_doomed = false;  // There is no such rule any more.
    bool must_move = false;  // What waits in it may belong elsewhere.
    std::string name;
};

std::unique_ptr<Policy> make_tbf(const TbfSettings& settings, const TbfShare& share,
                                 std::uint64_t seed) {
    const TbfShare used =
        share.buckets != nullptr ? share : TbfNode(seed).share(settings, Instant{});
    return std::make_unique<Tbf>(used.buckets, used.rules, Tbf::Options{});
}

TbfShare TbfNode::share(const TbfSettings& settings, Instant now) {
    if (buckets_ == nullptr) {
        core::Random random(seed_);
        const HashKey key{.first = random.next(), .second = random.next()};
        buckets_ = std::make_shared<BucketTable>(key);
    }
    return {.buckets = buckets_, .rules = rules(settings, now)};
}

const RuleSetPtr& TbfNode::rules(const TbfSettings& settings, Instant now) {
    if (settings != settings_) {
        const auto loaded = rules_.load(settings.rules, {.now = now});
        ENSURE(loaded.has_value());
        settings_ = settings;
    }
    return rules_.current();
}

std::expected<TbfSettings, RuleMistake> TbfNode::edit(const TbfSettings& settings, Instant now,
                                                      const Edit& edit) {
    rules(settings, now);
    RuleBook changed = rules_;
    const auto edited = edit(changed);
    if (!edited) return std::unexpected(edited.error());
    TbfSettings next;
    for (const Rule& rule : (*edited)->rules()) {
        std::string text = rule.text();
        // It must read back, also where it is longer than what was said.
        const auto parsed = parse_rule(text);
        if (!parsed) return std::unexpected(parsed.error());
        if (text != kUnlimitedDefault) next.rules.push_back(std::move(text));
    }
    rules_ = std::move(changed);
    settings_ = std::move(next);
    return settings_;
}

Tbf::Tbf(std::shared_ptr<BucketTable> buckets, RuleSetPtr rules, const Options& options)
    : buckets_(std::move(buckets)), rules_(std::move(rules)), options_(options) {
    ENSURE(buckets_ != nullptr);
    ENSURE(rules_ != nullptr);
}

Tbf::~Tbf() {
    for (const auto& known : classes_.places()) {
        if (known && known->is_from_table) buckets_->release(*known->bucket);
    }
}

void Tbf::push(Request& request, Instant now) {
    now_ = now;
    forget_idle(now);
    TrafficClass& to = class_of(request, rules_->rule_for(request.attributes), now);
    static_cast<PolicyPlace&>(request).queue = &to;
    static_cast<PolicyPlace&>(request).number = ++last_number_;
    to.waiting.push_back(request);
    if (++to.queued > 1) return;
    to.KnownClass::unlink();
    to.since = ticks_at(now);
    schedule(to);
}

Policy::Next Tbf::pop(Instant now) {
    now_ = now;
    forget_idle(now);
    const Ticks ticks = ticks_at(now);
    while (!ready_.empty()) {
        const ReadyHeap::Entry top = ready_.top();
        TrafficClass* const first = classes_.at(top.index);
        if (first == nullptr || first->order != top.order) {
            ready_.pop_top();
            continue;
        }
        if (top.at > ticks) return {.again = instant_at(top.at)};
        Request& request = first->head();
        const Charge charge = charge_of(*first->rule, request);
        // Another locality may have been here.
        if (!first->bucket->take(ticks, first->since, charge, first->rule->paces)) {
            ready_.replace_top(next_entry_of(*first));
            continue;
        }

        first->tally.add_throttled(in_duration(first->throttled_ticks(ticks)));
        first->tally.add_request(request.attributes.size_bytes, now);
        static_cast<PolicyPlace&>(request).unlink();
        first->since = ticks;
        if (--first->queued > 0) {
            ready_.replace_top(next_entry_of(*first));
        } else {
            ready_.pop_top();
            unschedule(*first);
            classes_.fell_idle(*first, now);
        }
        return {.request = &request};
    }
    return {};
}

void Tbf::remove(Request& request) {
    auto& from = *static_cast<TrafficClass*>(static_cast<PolicyPlace&>(request).queue);
    const bool was_head = &from.head() == &request;
    static_cast<PolicyPlace&>(request).unlink();
    if (from.queued == 1)
        from.tally.add_throttled(in_duration(from.throttled_ticks(ticks_at(now_))));
    if (--from.queued == 0) {
        unschedule(from);
        classes_.fell_idle(from, now_);
    } else if (was_head && from.order != 0) {
        // The one behind it may be smaller, and go earlier.
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

    // What came before, when there was no room, must go before.
    TrafficClass* const own = classes_.find(rule.own_class(buckets_->key()));
    if (own != nullptr && own->queued > 0) return *own;
    if (!make_room()) return own_class_of(rule);
    Bucket* bucket = rule.own_bucket.get();
    if (has_limit(rule)) {
        bucket = buckets_->acquire(rule.bucket_of(hash, buckets_->key()), ticks_at(now));
        if (bucket == nullptr) return own_class_of(rule);
    }
    auto made = std::make_unique<TrafficClass>(hash, rule, *bucket);
    made->is_from_table = has_limit(rule);
    made->name = rule.class_name(request.attributes);
    return classes_.add(std::move(made));
}

Tbf::TrafficClass& Tbf::own_class_of(const Rule& rule) {
    const ClassHash hash = rule.own_class(buckets_->key());
    if (TrafficClass* const known = classes_.find(hash)) return *known;
    auto made = std::make_unique<TrafficClass>(hash, rule, *rule.own_bucket);
    made->name = rule.own_class_name();
    return classes_.add(std::move(made));
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
    ENSURE(gone.queued == 0);
    past_[gone.rule->id].add(gone.tally.totals());
    if (gone.is_from_table) buckets_->release(*gone.bucket);
    if (gone.is_doomed) --doomed_count_;
    classes_.drop(gone);
}

void Tbf::forget_idle(Instant now) {
    classes_.forget_idle(now, options_.forget_after,
                         [this](TrafficClass& idle) { drop_class(idle); });
}

// -- when they can go --

void Tbf::schedule(TrafficClass& waiting) {
    if (waiting.rule->paces.is_blocked) {
        waiting.at = kNeverTicks;
        return;
    }
    ready_.push(next_entry_of(waiting));
    ++scheduled_count_;
}

ReadyHeap::Entry Tbf::next_entry_of(TrafficClass& waiting) {
    const Charge charge = charge_of(*waiting.rule, waiting.head());
    const Ticks ready = waiting.bucket->ready_at(charge, waiting.rule->paces);
    waiting.at = std::max(ready, waiting.since);
    if (++last_order_ == 0) ++last_order_;
    waiting.order = last_order_;
    return {.at = waiting.at, .order = waiting.order, .index = waiting.index};
}

// Its entry stays where it is, and is untrue.
void Tbf::unschedule(TrafficClass& waiting) {
    if (waiting.order == 0) return;
    waiting.order = 0;
    --scheduled_count_;
}

void Tbf::tidy_heap() {
    if (ready_.size() <= 2 * scheduled_count_ + kUntrueMax) return;
    ready_.clear();
    for (const auto& known : classes_.places()) {
        if (!known || known->order == 0) continue;
        ready_.push({.at = known->at, .order = known->order, .index = known->index});
    }
}

// -- other rules --

void Tbf::set_rules(RuleSetPtr rules, Instant now) {
    ENSURE(rules != nullptr);
    now_ = now;
    const RuleSetPtr before = std::exchange(rules_, std::move(rules));
    adopt_rules(*before, now);

    std::vector<Move> moves;
    const std::size_t count = classes_.places().size();
    for (std::uint32_t i = 0; i < count; ++i) {
        TrafficClass* const known = classes_.at(i);
        if (known != nullptr && known->must_move) collect_moves(*known, now, moves);
    }
    move_all(moves, now);

    for (const auto& known : classes_.places()) {
        if (!known) continue;
        known->must_move = false;
        if (known->is_doomed) drop_class(*known);
    }
    ENSURE(doomed_count_ == 0);
    std::erase_if(past_,
                  [this](const auto& entry) { return rules_->find(entry.first) == nullptr; });
    schedule_all();
}

// Which classes stay as they are: those whose rule is still there, and before which no rule is now
// that was not before.
void Tbf::adopt_rules(const RuleSet& before, Instant now) {
    std::unordered_map<std::uint64_t, std::size_t> places_before;
    for (std::size_t i = 0; i < before.rules().size(); ++i) {
        places_before.emplace(before.rules()[i].id, i);
    }
    struct Place {
        const Rule* rule;
        bool is_overtaken;
    };
    std::unordered_map<std::uint64_t, Place> places;
    bool has_new = false;
    std::size_t last_before = 0;  // Of those passed so far, the place they had.
    for (const Rule& rule : rules_->rules()) {
        const auto place_before = places_before.find(rule.id);
        if (place_before == places_before.end()) {
            has_new = true;
            continue;
        }
        const bool is_overtaken = has_new || place_before->second < last_before;
        last_before = std::max(last_before, place_before->second);
        places.emplace(rule.id, Place{.rule = &rule, .is_overtaken = is_overtaken});
    }

    const Ticks ticks = ticks_at(now);
    for (const auto& known : classes_.places()) {
        if (!known) continue;
        known->tally.add_throttled(in_duration(known->throttled_ticks(ticks)));
        known->since = ticks;
        const auto place = places.find(known->rule->id);
        if (place == places.end()) {
            known->is_doomed = known->must_move = true;
            ++doomed_count_;
        } else {
            known->must_move = place->second.is_overtaken;
            adopt_rule(*known, *place->second.rule, now);
        }
    }
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
    if (kept.is_from_table) buckets_->release(*kept.bucket);
    kept.is_from_table = bucket != nullptr;
    kept.bucket = bucket != nullptr ? bucket : rule.own_bucket.get();
}

void Tbf::collect_moves(TrafficClass& from, Instant now, std::vector<Move>& moves) {
    from.waiting.for_each([&](PolicyPlace& place) {
        auto& request = static_cast<Request&>(place);
        TrafficClass& to = class_of(request, rules_->rule_for(request.attributes), now);
        if (&to == &from) return;
        // It will have something to wait for.
        to.KnownClass::unlink();
        place.unlink();
        --from.queued;
        moves.push_back({.request = &request, .to = &to});
    });
}

void Tbf::move_all(std::vector<Move>& moves, Instant now) {
    const auto number_of = [](const Request* request) {
        return static_cast<const PolicyPlace*>(request)->number;
    };
    std::ranges::sort(moves, {}, [&](const Move& move) { return number_of(move.request); });
    std::vector<TrafficClass*> mixed;
    for (const Move& move : moves) {
        TrafficClass& to = *move.to;
        if (to.queued == 0) to.since = ticks_at(now);
        const bool is_late = to.queued > 0 && to.waiting.back().number > number_of(move.request);
        if (is_late && (mixed.empty() || mixed.back() != &to)) mixed.push_back(&to);
        to.waiting.push_back(*move.request);
        ++to.queued;
        static_cast<PolicyPlace*>(move.request)->queue = &to;
    }

    std::vector<PolicyPlace*> in_order;
    for (TrafficClass* const to : mixed) {
        in_order.clear();
        while (PolicyPlace* const place = to->waiting.pop_front()) in_order.push_back(place);
        std::ranges::sort(in_order, {}, &PolicyPlace::number);
        for (PolicyPlace* const place : in_order) to->waiting.push_back(*place);
    }
}

void Tbf::schedule_all() {
    ready_.clear();
    scheduled_count_ = 0;
    for (const auto& known : classes_.places()) {
        if (!known) continue;
        known->order = 0;
        if (known->queued > 0) {
            schedule(*known);
        } else if (!known->KnownClass::linked()) {
            classes_.fell_idle(*known, now_);
        }
    }
}

// -- figures --

// The rules of a set stand side by side, in their order.
ClassView Tbf::view_of(TrafficClass& known, Instant now) const {
    const Ticks ticks = ticks_at(now);
    return {.name = known.name,
            .place = static_cast<std::uint32_t>(known.rule - rules_->rules().data()),
            .queued = known.queued,
            .is_throttled = known.queued > 0 && known.at > ticks,
            .throttled_now = in_duration(known.throttled_ticks(ticks)),
            .oldest = known.queued > 0 ? known.head().arrived_at() : kNever,
            .tally = known.tally};
}

bool Tbf::adapt(const PolicySettings& /*settings*/, const PolicyParts& parts, Instant now) {
    if (parts.share.tbf.buckets != buckets_) return false;
    set_rules(parts.share.tbf.rules, now);
    return true;
}

bool Tbf::visit_classes(Instant now, const ClassVisitor& visitor) {
    for (const auto& known : classes_.places()) {
        if (known) visitor(view_of(*known, now));
    }
    return true;
}

std::vector<ClassFigures> Tbf::rule_figures(Instant now) {
    std::vector<ClassFigures> all;
    for (const Rule& rule : rules_->rules()) {
        ClassFigures& figures = all.emplace_back(ClassFigures{.name = rule.name});
        const auto past = past_.find(rule.id);
        if (past == past_.end()) continue;
        figures.served = past->second.served;
        figures.bytes = past->second.bytes;
        figures.throttled = past->second.throttled;
    }
    visit_classes(now, [&](const ClassView& of) { all[of.place].add(figures_of(of, now)); });
    return all;
}

}  // namespace fopd::lrs
