#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrs/by_place.h"
#include "lrs/crr.h"
#include "lrs/delay.h"
#include "lrs/mclock/mclock.h"
#include "lrs/policy.h"
#include "lrs/rule_book.h"
#include "lrs/tbf/tbf.h"

namespace fopd::lrs {

struct PolicyEntry;

// Every policy there is, by name. Lives for ever.
std::span<const PolicyEntry> policies();

// The one in force where the configuration names none.
const PolicyEntry& default_policy();

struct DeadlineSettings {
    const PolicyEntry* policy = &default_policy();  // Another one.
    Duration wait_max = 1s;
    friend bool operator==(const DeadlineSettings&, const DeadlineSettings&) = default;
};

// What there is to set of each policy; in the configuration a map under its name.
struct PolicySettings {
    CrrSettings crr;
    ByPlaceSettings orr;
    ByPlaceSettings trr;
    DelaySettings delay;
    DeadlineSettings deadline;
    MclockSettings mclock;
    TbfSettings tbf;
    friend bool operator==(const PolicySettings&, const PolicySettings&) = default;
};

// What the policies of a node's localities have in common, for those that are the node's.
struct PolicyShare {
    TbfShare tbf{};
    MclockShare mclock{};

    friend bool operator==(const PolicyShare&, const PolicyShare&) = default;
};
// Makes it. One thread.
struct PolicyNode {
    // Rules have higher versions than that.
    explicit PolicyNode(std::uint64_t seed, std::uint64_t version = 0)
        : tbf(seed, version), mclock(seed, version) {}

    TbfNode tbf;
    MclockNode mclock;
};

// What a policy is made of, besides its settings.
struct PolicyParts {
    std::uint64_t seed = 0;  // All that it draws comes from it.
    PolicyShare share{};
};

struct PolicyEntry {
    // What its promises are about: the node as a whole, or what waits in one locality.
    enum class Scope : std::uint8_t { kLocality, kNode };
    // Whether the requests of a client stay in the order of their arrival.
    enum class ClientOrder : std::uint8_t { kKept, kMixed };

    std::string_view name;     // The word users write in the configuration.
    std::string_view summary;  // One line, for lists and documents.
    Scope scope;
    ClientOrder client_order;
    std::unique_ptr<Policy> (*make)(const PolicySettings& settings, const PolicyParts& parts);
    // Whether both settings are the same to it.
    bool (*is_same)(const PolicySettings& one, const PolicySettings& other);
    // The name of the class that such a request would be of. Null: it has no classes.
    std::string (*class_of)(const RequestAttributes& request, const PolicySettings& settings,
                            const PolicyParts& parts) = nullptr;
    // Which policy it is on top of, that is on top of none. Null: of none.
    const PolicyEntry* (*inner)(const PolicySettings& settings) = nullptr;
    // What localities have in common. Null: nothing.
    PolicyShare (*share)(PolicyNode& node, const PolicySettings& settings, Instant now) = nullptr;
    // Null, both: it has no rules.
    RuleBook& (*rule_book)(PolicyNode& node) = nullptr;
    // Replaces the rules of `settings` by those of a file, as far as each can be read by itself.
    std::optional<RuleMistakes> (*set_rules)(PolicySettings& settings,
                                             std::string_view file) = nullptr;
};

// Which policy, and how it is set; the settings of the others do not count.
struct PolicyChoice : PolicySettings {
    const PolicyEntry* policy = &default_policy();

    std::unique_ptr<Policy> make(const PolicyParts& parts) const {
        return policy->make(*this, parts);
    }
    // That which decides: the inner one, where there is one.
    const PolicyEntry& decides() const;
    // The policy whose rules are shown and changed: the one that decides, or tbf where that one has
    // no rules.
    const PolicyEntry& with_rules() const;
    // What localities have in common. Requires: the settings were checked.
    PolicyShare share(PolicyNode& node, Instant now) const;
    // The same without the texts of rules, which localities have in their share.
    PolicyChoice for_localities() const;
    // Whether that is something.
    bool is_of_node() const { return decides().scope == PolicyEntry::Scope::kNode; }
    // Whether a policy made of the one may adapt to the other.
    bool is_kind_of(const PolicyChoice& other) const {
        return policy == other.policy && &decides() == &other.decides();
    }
    // The name of the class that such a request would be of.
    std::string class_of(const RequestAttributes& request, const PolicyParts& parts) const;

    friend bool operator==(const PolicyChoice& one, const PolicyChoice& other) {
        return one.policy == other.policy && one.policy->is_same(one, other);
    }
};

}  // namespace fopd::lrs
