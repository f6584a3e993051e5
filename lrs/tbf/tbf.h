#pragma once

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
#include "lrs/policy.h"
#include "lrs/rule_book.h"
#include "lrs/tbf/rule_set.h"
#include "lrs/tbf/settings.h"

namespace fopd::lrs {

// The shared state of the policies of a node's localities.
struct TbfShare {
    std::shared_ptr<BucketTable> buckets{};
    RuleSetPtr rules{};

    friend bool operator==(const TbfShare&, const TbfShare&) = default;
};

// Creates the policy of a locality. Without a share it has rules and buckets of its own, with a
// hash key made from the seed. REQUIRES: the settings were checked.
std::unique_ptr<Policy> make_tbf(const TbfSettings& settings, const TbfShare& share,
                                 std::uint64_t seed);

// Creates the shared state, and updates it to the settings. Used by one thread.
class TbfNode final : public RuleBook {
public:
    // The versions of rules are higher than `version`.
    explicit TbfNode(std::uint64_t seed, std::uint64_t version = 0)
        : seed_(seed), revisions_(version + 1) {}

    TbfShare share(const TbfSettings& settings, Instant now);
    // Unchanged rules keep their classes and buckets. REQUIRES: the settings were checked.
    const RuleSetPtr& revision(const TbfSettings& settings, Instant now);

    OrderedRulesPtr rules(const PolicySettings& settings, Instant now) override;
    std::optional<RuleMistakes> edit(PolicySettings& settings, const RuleEdit& edit,
                                     Instant now) override;

private:
    const std::uint64_t seed_;
    std::shared_ptr<BucketTable> buckets_;  // Made on first use.
    RuleRevisions revisions_;
    TbfSettings settings_{};
};

// Token buckets: rules divide the requests into classes, and each class has a bucket. Requests of a
// class are served in the order of arrival. A class without tokens does not hold back others;
// classes with tokens take turns. A rule may also have one bucket for all its classes together:
// classes that wait for it stand in the rule's line, and take turns as well. Buckets belong to the
// node: the policies of all its localities share one table of buckets and one rule set.
class Tbf final : public Policy {
public:
    struct Options {
        // The most classes a locality knows at a time. Idle classes make room for new ones. If no
        // class is idle, requests of unknown classes share the bucket of their rule.
        std::size_t classes_max = 16384;
        // A class that has no requests for this long is forgotten.
        Duration forget_after = 60s;
    };

    Tbf(std::shared_ptr<BucketTable> buckets, RuleSetPtr rules, const Options& options);
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

    // Replaces the rules, also for waiting requests. The caller must call pop() again. Returns
    // kByMoves if a waiting request may belong to another class under the new rules.
    Adapted set_rules(RuleSetPtr rules, Instant now);
    const RuleSet& rules() const { return *rules_; }

    // The number of classes it keeps. For tests.
    std::size_t class_count() const { return classes_.count(); }

private:
    struct TrafficClass;
    // The list node of a class in its rule's line: classes that have tokens of their own and wait
    // for tokens of the rule's common bucket.
    struct LinePlace : core::ListNode {};
    struct RuleLine {
        core::IntrusiveList<LinePlace> waiting;  // The longest waiting first.
        std::uint32_t order = 0;                 // The order of its entry in the heap; 0: no entry.
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
    Request* pop_line(std::uint32_t place, Instant now);
    void schedule_line(std::uint32_t place);
    std::uint32_t place_of(const Rule& rule) const {
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

    static std::string_view rule_name(const TrafficClass& known);
    ClassView view_of(TrafficClass& known, Instant now) const;

    const std::shared_ptr<BucketTable> buckets_;
    RuleSetPtr rules_;
    RuleMemo memo_;  // Belongs to rules_.
    const Options options_;

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
