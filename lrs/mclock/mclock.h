#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "lrs/classes/bucket_table.h"
#include "lrs/classes/class_table.h"
#include "lrs/classes/ready_heap.h"
#include "lrs/mclock/cost.h"
#include "lrs/mclock/rule_set.h"
#include "lrs/mclock/settings.h"
#include "lrs/policy.h"
#include "lrs/rule_book.h"

namespace fopd::lrs {

// The shared state of the policies of a node's localities.
struct MclockShare {
    std::shared_ptr<BucketTable> buckets{};
    MclockRules::Ptr rules{};
    CostModel costs{};

    friend bool operator==(const MclockShare&, const MclockShare&) = default;
};

// Creates the policy of a locality. Without a share it has rules and meters of its own, with a hash
// key made from the seed. REQUIRES: the settings were checked.
std::unique_ptr<Policy> make_mclock(const MclockSettings& settings, const MclockShare& share,
                                    std::uint64_t seed);

// Creates the shared state, and updates it to the settings. Used by one thread.
class MclockNode final : public RuleBook {
public:
    // The versions of rules are higher than `version`.
    explicit MclockNode(std::uint64_t seed, std::uint64_t version = 0)
        : seed_(seed), version_(version) {}

    // Unchanged rules keep their classes and meters. REQUIRES: the settings were checked.
    const MclockShare& share(const MclockSettings& settings);

    OrderedRulesPtr rules(const PolicySettings& settings, Instant now) override;
    std::optional<RuleMistakes> edit(PolicySettings& settings, const RuleEdit& edit,
                                     Instant now) override;

private:
    const std::uint64_t seed_;
    const std::uint64_t version_;
    MclockShare share_;  // Created on first use.
    MclockSettings settings_{};
};

// Reservations, weights and limits: rules divide the requests into classes. Each class first gets
// its reservation; the rest is divided by weight, up to each class's limit. Requests of a class are
// served in the order of arrival. Reservations and limits are those of the node: a class has the
// same meters in all localities. Weights count within a locality.
//
// A class has up to three time lines. The reservation line advances with each request served from
// the reservation, and may fall behind real time by one second while requests wait. The limit line
// works the same way, and may fall behind by 10 ms. Neither accumulates anything while no request
// waits. The share line is virtual time: the cost served, divided by the weight. The class with the
// lowest share is next; a class that becomes busy starts at the others' present share, and a new
// class one turn later.
class Mclock final : public Policy {
public:
    struct Options {
        // The most classes without a reservation that are known at a time. Idle classes make room
        // for new ones; if no class is idle, requests of unknown classes of a rule form one class.
        std::size_t classes_max = 16384;
        // A class that has no requests for this long is forgotten.
        Duration forget_after = 60s;
    };

    Mclock(MclockShare share, const Options& options);
    ~Mclock() override;

    void push(Request& request, Instant now) override;
    Next pop(Instant now) override;
    void remove(Request& request) override;
    void complete(Request& /*request*/, Instant /*now*/) override {}
    void let_pass(Request& request, Instant now) override;
    bool is_held_back(const Request& request, Instant now) const override;
    bool visit_classes(Instant now, const ClassVisitor& visitor) override;
    ClassLabel class_of(const Request& request) const override;

private:
    // Virtual time: the cost served, divided by the weight.
    using Virtual = std::int64_t;
    // The state of a class's waiting requests; kIdle: none waits.
    enum class State : std::uint8_t { kIdle, kReady, kAtLimit };
    // Each class has at most one entry in each queue. An entry's key is never later than the
    // class's true key; it is checked when it gets to the top.
    enum Queue : std::size_t { kReserved, kByShare, kAtLimits, kOverLimits };
    static constexpr std::size_t kQueueCount = 4;
    struct TrafficClass;

    TrafficClass& class_of(const Request& request, const MclockRule& rule, Instant now);
    TrafficClass& own_class_of(const MclockRule& rule);
    TrafficClass& add_class(const ClassHash& hash, const MclockRule& rule);
    bool make_room();
    void drop_class(TrafficClass& gone);

    Request* pop_reserved(Ticks now);
    Request* pop_by_share(Ticks now);
    Request* pop_over_limit(Ticks now);
    bool end_limits(Ticks now);
    Request& serve(TrafficClass& of, Ticks now, Ticks throttled);
    void charge_share(TrafficClass& of, Cost cost);
    void charge_share_reserved(TrafficClass& of, Cost cost);
    void move_lines_back();

    // The class of the top entry; null if that entry was stale and has been removed, or was too
    // early and has been corrected.
    TrafficClass* settle_top(Queue queue);
    static bool belongs(const TrafficClass& known, Queue queue);
    static std::int64_t key_of(const TrafficClass& known, Queue queue);
    void enter(TrafficClass& known, Queue queue);
    void enter_queues(TrafficClass& known);
    void set_state(TrafficClass& known, Ticks now);
    void leave_waiting(TrafficClass& from, Request& request);
    void tidy_queues();
    Cost cost_of(const Request& request) const {
        return share_.costs.cost_of(request.attributes.size_bytes);
    }
    ClassView view_of(TrafficClass& known, Instant now) const;

    const MclockShare share_;
    RuleMemo memo_;  // Belongs to the share's rules.
    const Options options_;

    ClassTable<TrafficClass> classes_;
    std::size_t limited_count_ = 0;  // Classes without a reservation.
    std::array<ReadyHeap, kQueueCount> queues_;
    std::size_t stale_count_ = 0;  // Entries of dropped classes.
    std::uint32_t last_order_ = 0;
    Virtual virtual_now_ = 0;   // The share at which classes are served now.
    Virtual virtual_most_ = 0;  // The highest share of any class.
    std::uint64_t queued_ = 0;
    Instant now_{};  // The time of the last call.
};

}  // namespace fopd::lrs
