#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lrs/classes/bucket_table.h"
#include "lrs/classes/class_table.h"
#include "lrs/classes/ready_heap.h"
#include "lrs/mclock/cost.h"
#include "lrs/mclock/rule_set.h"
#include "lrs/mclock/settings.h"
#include "lrs/policy.h"
#include "lrs/rule_book.h"

namespace fopd::lrs {

// What the policies of a node's localities have in common.
struct MclockShare {
    std::shared_ptr<BucketTable> buckets{};
    MclockRules::Ptr rules{};
    CostModel costs{};

    friend bool operator==(const MclockShare&, const MclockShare&) = default;
};

// The policy of a locality. Without a share it has rules and meters of its own, whose key is made
// of the seed. Requires: the settings were checked.
std::unique_ptr<Policy> make_mclock(const MclockSettings& settings, const MclockShare& share,
                                    std::uint64_t seed);

// Makes the share, and keeps up with the settings. One thread.
class MclockNode final : public RuleBook {
public:
    // The rules have higher versions than that.
    explicit MclockNode(std::uint64_t seed, std::uint64_t version = 0)
        : seed_(seed), version_(version) {}

    // Rules that are as before keep their classes and meters. Requires: the settings were checked.
    const MclockShare& share(const MclockSettings& settings);

    OrderedRulesPtr rules(const PolicySettings& settings, Instant now) override;
    std::optional<RuleMistakes> edit(PolicySettings& settings, const RuleEdit& edit,
                                     Instant now) override;

private:
    const std::uint64_t seed_;
    const std::uint64_t version_;
    MclockShare share_;  // Made when somebody wants it.
    MclockSettings settings_{};
};

// Shares: rules divide the requests into classes, and each class has what is reserved for it first,
// and of the rest as its weight says, up to its limit. Requests of a class are served in the order
// they came. What is reserved and what limits are the node's: the classes of all its localities
// have the same meters. Weights are those of a locality.
//
// A class may have something reserved: a time line on which it is served once for each request that
// it pays for, and which falls behind by a second at most while it waits. Its limit is such a line
// too, which falls behind by 10 ms at most. Neither gains anything while nothing waits. A third
// line, of no time, is the class's share: what it was served, divided by its weight. The class
// whose is the least is next, and one that comes begins where the others are; a new one a turn
// later.
class Mclock final : public Policy {
public:
    struct Options {
        // Classes it knows at a time, besides those that reserve something; those that wait for
        // nothing make room for others, and when there is none, new ones are one class of their
        // rule.
        std::size_t classes_max = 16384;
        // A class that is not used for so long is forgotten.
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

    std::size_t class_count() const { return classes_.count(); }
    // Of each class, and of each rule with what its forgotten classes had, by the rules' order.
    std::vector<ClassFigures> class_figures(Instant now);
    std::vector<ClassFigures> rule_figures(Instant now);

private:
    // What was served, divided by the weight.
    using Virtual = std::int64_t;
    // Where a class is looked for, if anything of it waits.
    enum class State : std::uint8_t { kIdle, kReady, kAtLimit };
    // Each class has one entry in each at most. What it says is never later than what is true: it
    // is looked at again when it gets to the top.
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

    // The class whose entry is at the top; null when that was of no use and is gone, or was early
    // and is corrected.
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
    RuleMemo memo_;  // Of the share's rules.
    const Options options_;

    ClassTable<TrafficClass> classes_;
    std::size_t limited_count_ = 0;  // Classes that reserve nothing.
    std::array<ReadyHeap, kQueueCount> queues_;
    std::size_t stale_count_ = 0;  // Entries of classes that are gone.
    std::uint32_t last_order_ = 0;
    Virtual virtual_now_ = 0;   // How far those are that are served by their shares.
    Virtual virtual_most_ = 0;  // How far the farthest is.
    std::uint64_t queued_ = 0;
    Instant now_{};                              // The last that was said.
    std::map<std::uint64_t, ClassTotals> past_;  // Of forgotten classes, by their rule's id.
};

}  // namespace fopd::lrs
