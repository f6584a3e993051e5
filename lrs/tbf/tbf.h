#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lrs/classes/bucket_table.h"
#include "lrs/classes/class_table.h"
#include "lrs/classes/ready_heap.h"
#include "lrs/policy.h"
#include "lrs/tbf/cluster_shares.h"
#include "lrs/tbf/demand.h"
#include "lrs/tbf/node.h"
#include "lrs/tbf/rule_set.h"

namespace fopd::lrs {

// Token buckets: rules divide the requests into classes, and each class has a bucket. Requests of a
// class are served in the order of arrival. A class without tokens does not hold back others;
// classes with tokens take turns. A rule may also have one bucket for all its classes together:
// classes that wait for it stand in the rule's line, and take turns as well. Buckets belong to the
// node: the policies of all its localities share one table of buckets and one rule set. A limit of
// a cluster is divided among its nodes in each epoch; a bucket has the node's share.
class Tbf final : public Policy {
public:
    struct Options {
        // The most classes a locality knows at a time. Idle classes make room for new ones. If no
        // class is idle, requests of unknown classes share the bucket of their rule.
        std::size_t classes_max = 16384;
        // A class that has no requests for this long is forgotten.
        Duration forget_after = 60s;
    };

    // `cluster` null: limits of a cluster apply to this node alone.
    Tbf(std::shared_ptr<BucketTable> buckets, RuleSetPtr rules, const Options& options,
        std::shared_ptr<ClusterNode> cluster = nullptr);
    ~Tbf() override;

    void push(Request& request, Instant now) override;
    Next pop(Instant now) override;
    void remove(Request& request) override;
    void complete(Request& /*request*/, Instant /*now*/) override {}
    void let_pass(Request& request, Instant now) override;
    Adapted adapt(const PolicySettings& settings, const PolicyParts& parts, Instant now) override;
    void move(Request& request, Instant now) override;
    bool is_held_back(const Request& request, Instant now) const override;
    bool visit_classes(Instant now, const ClassVisitor& visitor) override;
    ClassLabel class_of(const Request& request) const override;

    // Without limits of a cluster the policy has no part of the frame, and is ready for each epoch
    // at once.
    std::string_view epoch_part() const override {
        return has_cluster_rules_ ? kTbfPart.name : std::string_view();
    }
    void write_epoch(std::span<std::byte> room, Instant now) override;
    void start_epoch(eh::EpochNumber epoch, const EpochPartData& data, Instant now) override;
    void lose_epoch(const Error& reason, Instant now) override;
    Instant epoch_over_at() const override;
    // `cut_off`: the share of a node that is cut off from the others, in percent of a limit.
    // Nothing: 100 divided by the number of nodes.
    void set_cluster(Duration interval, std::optional<std::uint32_t> cut_off);

    // Replaces the rules, also for waiting requests. The caller must call pop() again. Returns
    // kByMoves if a waiting request may belong to another class under the new rules.
    Adapted set_rules(RuleSetPtr rules, Instant now);
    const RuleSet& rules() const { return *rules_; }

    // The number of classes it has memory for. visit_classes() leaves out those whose rule is gone
    // and that have no requests.
    std::size_t class_count() const { return classes_.count(); }

private:
    struct ClusterClass;
    struct TrafficClass;
    // The list node of a class in its rule's line: classes that have tokens of their own and wait
    // for tokens of the rule's common bucket.
    struct LinePlace : core::ListNode {};
    struct RuleLine {
        core::IntrusiveList<LinePlace> waiting;  // The longest waiting first.
        std::uint32_t order = 0;                 // The order of its entry in the heap; 0: no entry.
        // The amounts that all classes of the rule want, if the limit is that of a cluster.
        WantedAmount operations{};
        WantedAmount bytes{};
        SteadyDemand operations_demand{};
        SteadyDemand bytes_demand{};
    };
    // Set in a heap entry's index if it is the index of a rule's line, not of a class.
    static constexpr std::uint32_t kOfLine = std::uint32_t{1} << 31;

    std::uint32_t next_order() {
        if (++last_order_ == 0) ++last_order_;
        return last_order_;
    }
    void enter(TrafficClass& to, Request& request, Instant now);
    // Whether the request has waited since before rules changed, and was not moved yet.
    bool is_unmoved(const Request& request) const {
        return static_cast<const PolicyPlace&>(request).number != generation_;
    }
    void end_unmoved(TrafficClass& from, Instant now);
    void rest(TrafficClass& idle, Instant now);

    TrafficClass& class_of(const Request& request, const Rule& rule, Instant now);
    TrafficClass& own_class_of(const Rule& rule);
    bool make_room();
    void drop_class(TrafficClass& gone);
    void forget_idle(Instant now);

    // Whether the class and the rule had tokens for the class's first request, or which bucket
    // lacked them.
    enum class Taken : std::uint8_t { kAll, kNoneOfItsOwn, kNoneOfTheRule };
    Taken take_tokens(TrafficClass& from, Ticks now) const;
    Request& serve(TrafficClass& from, Instant now);

    void line_up(TrafficClass& waiting);
    Request* pop_line(std::uint32_t index, Instant now);
    void schedule_line(std::uint32_t index);
    std::uint32_t index_of(const Rule& rule) const {
        return static_cast<std::uint32_t>(&rule - rules_->rules().data());
    }

    void schedule(TrafficClass& waiting);
    ReadyHeap::Entry next_entry_of(TrafficClass& waiting);
    void unschedule(TrafficClass& waiting);
    void tidy_heap();

    bool adopt_rules(const RuleSet& before, Instant now);
    void adopt_rule(TrafficClass& kept, const Rule& rule, Instant now);
    void doom(TrafficClass& gone);
    void drop_doomed();
    void let_go_of_waiting();
    void schedule_all();

    // -- limits of a cluster --

    // What the class's first request costs now. Nothing: the node has no share of the rate.
    std::optional<Charge> charge_for(TrafficClass& from, const Paces& paces, const Bucket& bucket,
                                     Ticks now) const;
    std::optional<Charge> charge_by_share(const Charge& charge, const Bucket& bucket,
                                          Ticks now) const;
    ClassHash ids_of_all(const Rule& rule) const;
    void count_demands(Duration elapsed);
    void count_demand(TrafficClass& known, Duration elapsed);
    void count_one(SteadyDemand& steady, std::uint64_t id, const WantedAmount& wanted,
                   const Pace& pace, Duration elapsed);
    std::vector<ClusterDemand> told_demands();
    void settle(const ClassHash& ids, Bucket& bucket, const Paces& paces);
    void settle(TrafficClass& known);
    void wake_in_cluster(TrafficClass& woken);
    void look_again();
    std::optional<ClassInCluster> in_cluster(const TrafficClass& known, Ticks now) const;

    static std::string_view rule_name(const TrafficClass& known);
    ClassView view_of(TrafficClass& known, Instant now) const;

    const std::shared_ptr<BucketTable> buckets_;
    RuleSetPtr rules_;
    RuleMemo memo_;  // Belongs to rules_.
    const Options options_;
    ClusterShares shares_;
    Duration cluster_interval_ = TbfSettings{}.cluster_interval;
    bool has_cluster_rules_ = false;
    bool has_news_ = false;      // A class has woken up since the last contribution to an epoch.
    Instant counted_at_{};       // When demands were counted last.
    std::uint64_t moved_ = 0;    // The largest part of a rate by which a demand has changed.
    Instant begun_at_{};         // When the present epoch began.
    Instant renew_at_ = kNever;  // When another epoch is due, so that no share expires.
    // When shares may have changed without a new epoch: other localities have added to them, or
    // they expire.
    Ticks look_again_at_ = kNeverTicks;
    Ticks shares_end_at_ = kNeverTicks;

    ClassTable<TrafficClass> classes_;
    std::size_t doomed_count_ = 0;            // Classes of removed rules.
    std::vector<std::uint32_t> doomed_idle_;  // Indices of those without requests.
    ReadyHeap ready_;
    std::size_t scheduled_count_ = 0;  // Classes and lines with a valid heap entry.
    std::vector<RuleLine> lines_;      // One for each rule.
    std::uint32_t last_order_ = 0;
    std::uint64_t generation_ = 1;  // Increased when a change of rules requires moves.
    Instant now_{};                 // The time of the last call.
};

}  // namespace fopd::lrs
