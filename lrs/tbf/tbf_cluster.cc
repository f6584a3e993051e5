// The limits of a cluster in tbf: docs/decisions/0065-limits-of-a-cluster.md.
#include <algorithm>
#include <utility>

#include "lrs/tbf/tbf.h"
#include "lrs/tbf/traffic_class.h"

namespace fopd::lrs {

namespace {

// When the localities of a node have surely all heard of an epoch that has begun, in parts of the
// interval.
constexpr int kSettledParts = 16;
// A shorter time says nothing about a rate.
constexpr int kCountedParts = 2;
// When an epoch ends in which shares are to grow.
constexpr int kMovingParts = 8;

void add_wanted(WantedAmount& sum, const WantedAmount& other) {
    sum.arrived += other.arrived;
    sum.waiting += other.waiting;
    sum.one = std::max(sum.one, other.one);
}

}  // namespace

void Tbf::set_cluster(Duration interval, std::optional<std::uint32_t> cut_off) {
    cluster_interval_ = interval;
    std::optional<Share> share;
    if (cut_off) share = static_cast<Share>(std::uint64_t{kWholeShare} * *cut_off / 100);
    shares_.set_cut_off(share);
}

// -- what it contributes --

ClassHash Tbf::ids_of_all(const Rule& rule) const {
    KeyedHash hash(shares_.node().key);
    // The hash of a class begins with the length of the rule's name. A client that chose its job's
    // name could make a class with this id otherwise.
    hash.add(~std::uint64_t{0});
    hash.add(rule.name);
    hash.add("all");
    return hash.result();
}

void Tbf::write_epoch(std::span<std::byte> room, Instant now) {
    now_ = now;
    has_news_ = false;
    const bool is_first = counted_at_ == Instant{};
    const Duration elapsed = is_first ? cluster_interval_ : now - counted_at_;
    // An epoch that ends early, so that shares can grow, uses the demands of the epoch before.
    moved_ = 0;
    if (elapsed >= cluster_interval_ / kCountedParts) {
        counted_at_ = now;
        count_demands(elapsed);
    }
    std::vector<ClusterDemand> demands = told_demands();
    shares_.write(room, demands, moved_);
}

void Tbf::count_demands(Duration elapsed) {
    if (!has_cluster_rules_) return;
    for (RuleLine& line : lines_) line.operations = line.bytes = {};
    classes_.for_each([&](TrafficClass& known) {
        if (known.cluster != nullptr) count_demand(known, elapsed);
    });
    for (const Rule& rule : rules_->rules()) {
        if (!rule.is_cluster) continue;
        RuleLine& line = lines_[index_of(rule)];
        const ClassHash ids = ids_of_all(rule);
        const Paces& paces = rule.all_paces;
        count_one(line.operations_demand, ids.low, line.operations, paces.operations, elapsed);
        count_one(line.bytes_demand, ids.high, line.bytes, paces.bytes, elapsed);
    }
}

void Tbf::count_demand(TrafficClass& known, Duration elapsed) {
    ClusterClass& cluster = *known.cluster;
    const ClassTotals& totals = known.tally.totals();
    // Requests may also have been removed.
    const auto arrived = [](std::uint64_t now, std::uint64_t& before) {
        const std::uint64_t last = std::exchange(before, now);
        return now > last ? now - last : 0;
    };
    const WantedAmount operations{.arrived = arrived(totals.served + known.queued, cluster.arrived),
                                  .waiting = known.queued,
                                  .one = 1};
    WantedAmount bytes{
        .arrived = arrived(totals.bytes + cluster.queued_bytes, cluster.arrived_bytes),
        .waiting = cluster.queued_bytes};
    const std::uint64_t requests = operations.arrived + operations.waiting;
    if (requests > 0) bytes.one = (bytes.arrived + bytes.waiting) / requests;
    const Paces& paces = known.rule->paces;
    count_one(cluster.operations, cluster.ids.low, operations, paces.operations, elapsed);
    count_one(cluster.bytes, cluster.ids.high, bytes, paces.bytes, elapsed);
    RuleLine& line = lines_[index_of(*known.rule)];
    add_wanted(line.operations, operations);
    add_wanted(line.bytes, bytes);
}

void Tbf::count_one(SteadyDemand& steady, std::uint64_t id, const WantedAmount& wanted,
                    const Pace& pace, Duration elapsed) {
    if (!pace.is_limit()) return;
    const std::uint64_t before = steady.told();
    const std::uint64_t told = steady.next(wanted, pace, elapsed, cluster_interval_);
    const std::uint64_t change = told > before ? told - before : before - told;
    moved_ = std::max(moved_, shares_.part_of_rate(id, change));
}

std::vector<ClusterDemand> Tbf::told_demands() {
    std::vector<ClusterDemand> demands;
    if (!has_cluster_rules_) return demands;
    const auto add = [&demands](std::uint64_t id, const SteadyDemand& steady, const Rule& rule) {
        if (steady.told() > 0) demands.push_back({id, steady.told(), rule.terms, rule.terms});
    };
    classes_.for_each([&](const TrafficClass& known) {
        if (known.cluster == nullptr) return;
        add(known.cluster->ids.low, known.cluster->operations, *known.rule);
        add(known.cluster->ids.high, known.cluster->bytes, *known.rule);
    });
    for (const Rule& rule : rules_->rules()) {
        if (!rule.is_cluster) continue;
        add(ids_of_all(rule).low, lines_[index_of(rule)].operations_demand, rule);
        add(ids_of_all(rule).high, lines_[index_of(rule)].bytes_demand, rule);
    }
    return demands;
}

// -- epochs --

void Tbf::start_epoch(eh::EpochNumber epoch, const EpochPartData& data, Instant now) {
    now_ = now;
    begun_at_ = now;
    const bool has_end = data.expires_at != kNever;
    shares_end_at_ = has_end ? ticks_at(data.expires_at) : kNeverTicks;
    renew_at_ = has_end ? now + std::max(Duration::zero(), (data.expires_at - now) / 2) : kNever;
    shares_.begin(epoch, data, ticks_at(now));
    if (!has_cluster_rules_) return;
    const Ticks ticks = ticks_at(now);
    classes_.for_each([this, ticks](TrafficClass& known) {
        if (known.cluster == nullptr) return;
        // A debt is in the time of the present share, so it is converted with each change.
        const bool is_in_use = known.queued > 0 || known.cluster->operations.told() > 0 ||
                               known.cluster->bytes.told() > 0 || !known.bucket->is_full(ticks);
        if (is_in_use) settle(known);
    });
    for (const Rule& rule : rules_->rules()) {
        if (rule.is_cluster) settle(ids_of_all(rule), *rule.all_bucket, rule.all_paces);
    }
    look_again();
    if (shares_.node().localities > 1) {
        look_again_at_ =
            std::min(look_again_at_, ticks_at(now + cluster_interval_ / kSettledParts));
    }
}

void Tbf::lose_epoch(const Error& /*reason*/, Instant now) {
    now_ = now;
    shares_.lose();
    look_again();
}

Instant Tbf::epoch_over_at() const {
    if (!has_cluster_rules_) return kNever;
    if (shares_.is_moving())
        return std::min(after(begun_at_, cluster_interval_ / kMovingParts), renew_at_);
    const bool is_in_use = has_news_ || shares_.has_demand();
    return is_in_use ? std::min(after(begun_at_, cluster_interval_), renew_at_) : renew_at_;
}

void Tbf::settle(const ClassHash& ids, Bucket& bucket, const Paces& paces) {
    const Ticks now = ticks_at(now_);
    if (paces.operations.is_limit()) {
        shares_.settle({.id = ids.low,
                        .meter = bucket.operations,
                        .share = bucket.operations_share,
                        .depth = paces.operations.depth()},
                       now);
    }
    if (paces.bytes.is_limit()) {
        shares_.settle({.id = ids.high,
                        .meter = bucket.bytes,
                        .share = bucket.bytes_share,
                        .depth = paces.bytes.depth()},
                       now);
    }
}

void Tbf::settle(TrafficClass& known) {
    if (known.cluster->settled_in == shares_.count()) return;
    known.cluster->settled_in = shares_.count();
    settle(known.cluster->ids, *known.bucket, known.rule->paces);
}

void Tbf::wake_in_cluster(TrafficClass& woken) {
    has_news_ = true;
    settle(woken);
}

// The shares may be others than when the waiting classes were put into the heap.
void Tbf::look_again() {
    // When the shares have expired, the node may use the share of a node that is cut off.
    look_again_at_ = ticks_at(now_) < shares_end_at_ ? shares_end_at_ : kNeverTicks;
    if (!has_cluster_rules_) return;
    classes_.for_each([this](TrafficClass& known) {
        if (known.cluster == nullptr || known.queued == 0 || known.order == 0) return;
        unschedule(known);
        schedule(known);
    });
    for (const Rule& rule : rules_->rules()) {
        RuleLine& line = lines_[index_of(rule)];
        if (!rule.is_cluster || line.order == 0) continue;
        line.order = 0;
        --scheduled_count_;
        schedule_line(index_of(rule));
    }
    tidy_heap();
}

// -- shares --

std::optional<Charge> Tbf::charge_by_share(const Charge& charge, const Bucket& bucket,
                                           Ticks now) const {
    const auto by = [&](Ticks cost, const ShareCell& cell) -> std::optional<Ticks> {
        if (cost == 0) return 0;
        const Share share = shares_.usable(cell, now);
        if (share == 0) return std::nullopt;
        return cost_by(cost, share);
    };
    const auto operation = by(charge.operation, bucket.operations_share);
    const auto bytes = by(charge.bytes, bucket.bytes_share);
    if (!operation || !bytes) return std::nullopt;
    return Charge{.operation = *operation, .bytes = *bytes};
}

std::optional<ClassInCluster> Tbf::in_cluster(const TrafficClass& known, Ticks now) const {
    if (known.cluster == nullptr) return std::nullopt;
    ClassInCluster in{.share = 1, .is_cut_off = !shares_.is_in(now)};
    const auto look = [&](const ClassHash& ids, const Bucket& bucket, const Paces& paces) {
        const auto one = [&](const Pace& pace, const ShareCell& cell, std::uint64_t id) {
            if (!pace.is_limit()) return;
            in.share = std::min(in.share, static_cast<double>(shares_.share_of(id, cell, now)) /
                                              static_cast<double>(kWholeShare));
            in.differs = in.differs || shares_.differs(id);
        };
        one(paces.operations, bucket.operations_share, ids.low);
        one(paces.bytes, bucket.bytes_share, ids.high);
    };
    look(known.cluster->ids, *known.bucket, known.rule->paces);
    look(ids_of_all(*known.rule), *known.rule->all_bucket, known.rule->all_paces);
    in.differs = in.differs || shares_.keys_differ();
    return in;
}

}  // namespace fopd::lrs
