#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lrs/crr.h"
#include "lrs/delay.h"
#include "lrs/epoch_groups/epoch_groups.h"
#include "lrs/mclock/mclock.h"
#include "lrs/policy.h"
#include "lrs/rule_book.h"
#include "lrs/sorted_turns.h"
#include "lrs/tbf/tbf.h"

namespace fopd::lrs {

struct PolicyEntry;

// All policies, sorted by name. Static.
std::span<const PolicyEntry> policies();

// The policy if the configuration names none.
const PolicyEntry& default_policy();

struct DeadlineSettings {
    const PolicyEntry* policy = &default_policy();  // The inner policy.
    Duration wait_max = 1s;
    friend bool operator==(const DeadlineSettings&, const DeadlineSettings&) = default;
};

// The settings of each policy; in the configuration, a map under the policy's name.
struct PolicySettings {
    CrrSettings crr;
    SortedTurnsSettings orr;
    SortedTurnsSettings trr;
    DelaySettings delay;
    DeadlineSettings deadline;
    EpochGroupsSettings epoch_groups;
    MclockSettings mclock;
    TbfSettings tbf;
    friend bool operator==(const PolicySettings&, const PolicySettings&) = default;
};

// The shared state of the policies of a node's localities, for policies that work for the whole
// node.
struct PolicyShare {
    TbfShare tbf{};
    MclockShare mclock{};
    EpochGroupsShare epoch_groups{};

    friend bool operator==(const PolicyShare&, const PolicyShare&) = default;
};
// Creates the shared state. Used by one thread.
struct PolicyNode {
    // Each version of the rules is higher than `version`.
    explicit PolicyNode(std::uint64_t seed, std::uint64_t version = 0)
        : tbf(seed, version), mclock(seed, version), epoch_groups(seed, version) {}

    // Applies to shares that are made later.
    void set_cluster(const ClusterFacts& facts) { tbf.set_facts(facts); }

    TbfNode tbf;
    MclockNode mclock;
    EpochGroupsNode epoch_groups;
};

// The parts that a policy is created from, besides its settings.
struct PolicyParts {
    std::uint64_t seed = 0;  // The source of all its random choices.
    PolicyShare share{};
};

struct PolicyEntry {
    // Whether the policy's guarantees hold for all nodes that take part in epochs together, for the
    // whole node, or for the requests of each locality.
    enum class Scope : std::uint8_t { kLocality, kNode, kCluster };
    // Whether the requests of a client stay in the order of their arrival.
    enum class ClientOrder : std::uint8_t { kKept, kMixed };

    std::string_view name;     // The word users write in the configuration.
    std::string_view summary;  // One line, for lists and documents.
    Scope scope;
    ClientOrder client_order;
    std::unique_ptr<Policy> (*make)(const PolicySettings& settings, const PolicyParts& parts);
    // Whether both have the same settings for this policy.
    bool (*is_same)(const PolicySettings& one, const PolicySettings& other);
    // Returns the name of the class that the request belongs to. Null: the policy has no classes.
    std::string (*class_of)(const RequestAttributes& request, const PolicySettings& settings,
                            const PolicyParts& parts) = nullptr;
    // Returns the inner policy that this policy runs on top of. An inner policy has no inner policy
    // itself. Null: there is none.
    const PolicyEntry* (*inner)(const PolicySettings& settings) = nullptr;
    // The shared state of the localities. Null: none.
    PolicyShare (*share)(PolicyNode& node, const PolicySettings& settings, Instant now) = nullptr;
    // This and set_rules are null if the policy has no rules.
    RuleBook& (*rule_book)(PolicyNode& node) = nullptr;
    // Replaces the rules of `settings` by those of a file. Checks each rule, but not the rules as a
    // whole.
    std::optional<RuleMistakes> (*set_rules)(PolicySettings& settings,
                                             std::string_view file) = nullptr;
};

// A policy and its settings; the settings of the other policies are ignored.
struct PolicyChoice : PolicySettings {
    const PolicyEntry* policy = &default_policy();

    std::unique_ptr<Policy> make(const PolicyParts& parts) const {
        return policy->make(*this, parts);
    }
    // The policy that decides: the inner one, if there is one.
    const PolicyEntry& decides() const;
    // The policy whose rules are shown and changed: the deciding one, or tbf if the deciding one
    // has no rules.
    const PolicyEntry& with_rules() const;
    // The shared state of the localities. REQUIRES: the settings were checked.
    PolicyShare share(PolicyNode& node, Instant now) const;
    // A copy without the rules' texts; localities have the rules in their shared state.
    PolicyChoice for_localities() const;
    // Whether a policy made from one choice can adapt to the other.
    bool is_kind_of(const PolicyChoice& other) const {
        return policy == other.policy && &decides() == &other.decides();
    }
    // The name of the class that the request belongs to.
    std::string class_of(const RequestAttributes& request, const PolicyParts& parts) const;

    friend bool operator==(const PolicyChoice& one, const PolicyChoice& other) {
        return one.policy == other.policy && one.policy->is_same(one, other);
    }
};

}  // namespace fopd::lrs
