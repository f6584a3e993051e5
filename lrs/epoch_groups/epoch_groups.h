#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/intrusive_list.h"
#include "lrs/classes/class_table.h"
#include "lrs/classes/keyed_hash.h"
#include "lrs/epoch_groups/group_demand.h"
#include "lrs/epoch_groups/rule_set.h"
#include "lrs/epoch_groups/settings.h"
#include "lrs/policy.h"
#include "lrs/rule_book.h"

namespace fopd::lrs {

// The shared state of the policies of a node's localities.
struct EpochGroupsShare {
    GroupRules::Ptr rules{};
    HashKey key{};  // A secret of the node, by which its tables of classes are indexed.

    friend bool operator==(const EpochGroupsShare&, const EpochGroupsShare&) = default;
};

// Creates the policy of a locality. Without a share it has rules of its own. REQUIRES: the settings
// were checked.
std::unique_ptr<Policy> make_epoch_groups(const EpochGroupsSettings& settings,
                                          const EpochGroupsShare& share, std::uint64_t seed);

// Creates the shared state, and updates it to the settings. Used by one thread.
class EpochGroupsNode final : public RuleBook {
public:
    // The versions of rules are higher than `version`.
    explicit EpochGroupsNode(std::uint64_t seed, std::uint64_t version = 0);

    // REQUIRES: the settings were checked.
    const EpochGroupsShare& share(const EpochGroupsSettings& settings);

    OrderedRulesPtr rules(const PolicySettings& settings, Instant now) override;
    std::optional<RuleMistakes> edit(PolicySettings& settings, const RuleEdit& edit,
                                     Instant now) override;

private:
    EpochGroupsShare share_;
    std::vector<std::string> texts_;  // Of share_.rules.
};

// In each epoch the nodes serve the same group of requests first, so that an application whose
// requests go to many nodes gets all of them served at the same time. Requests of a group are
// served in the order of arrival.
//
// A group's turn ends when none of its requests wait here, or after the length that is set. Then
// the node is ready for the next epoch, and contributes the groups that wait; the combination tells
// all nodes whose turn is next. Until then, and whenever there are no epochs, this locality goes
// through its groups on its own, by the same tags.
class EpochGroups final : public Policy {
public:
    struct Options {
        // The most groups that are known at a time. Idle groups make room for new ones; if none is
        // idle, requests of unknown groups of a rule form one group.
        std::size_t groups_max = 16384;
        // A group that has no requests for this long is forgotten.
        Duration forget_after = 60s;
        GroupId (*id_of)(std::string_view name) = group_id_of;
    };
    // An epoch in which nobody waits lasts this long, or the length of a turn if that is shorter:
    // so an idle node does not keep the others waiting, and costs little.
    static constexpr Duration kIdleLength = 100ms;
    // An epoch lasts at least this part of the length of a turn, if others are served meanwhile:
    // many groups with few requests do not make many epochs.
    static constexpr int kShortestParts = 100;

    EpochGroups(EpochGroupsShare share, EpochGroupsSettings settings, const Options& options);
    ~EpochGroups() override;

    void push(Request& request, Instant now) override;
    Next pop(Instant now) override;
    void remove(Request& request) override;
    void complete(Request& /*request*/, Instant /*now*/) override {}
    void let_pass(Request& request, Instant now) override;
    Adapted adapt(const PolicySettings& settings, const PolicyParts& parts, Instant now) override;
    bool visit_classes(Instant now, const ClassVisitor& visitor) override;
    ClassLabel class_of(const Request& request) const override;

    std::string_view epoch_part() const override { return kGroupsPartName; }
    void write_epoch(std::span<std::byte> room, Instant now) override;
    void start_epoch(eh::EpochNumber epoch, const EpochPartData& data, Instant now) override;
    void lose_epoch(const Error& reason, Instant now) override;
    Instant epoch_over_at() const override;

private:
    struct Group;
    // The group of the epoch, in the list of those whose turn it is.
    class TurnPlace : public core::ListNode {};
    // The groups with waiting requests, by their next tags after own_last_.
    using Line = std::multimap<Tag, Group*>;
    enum class State : std::uint8_t { kNew, kInEpoch, kAlone };

    Group& group_of(const Request& request);
    Group& add_group(const ClassHash& hash, const GroupRule& rule, std::string name);
    bool make_room();
    void begin_waiting(Group& group);
    void stop_waiting(Group& group);
    void leave(Group& from, Request& request);
    Request* take(Group& from, Instant now);
    Request* take_own(Instant now);
    void move_tag(Group& group);
    void begin_turn();

    const EpochGroupsShare share_;
    RuleMemo memo_;  // Belongs to the share's rules.
    EpochGroupsSettings settings_;
    const Options options_;

    ClassTable<Group> groups_;
    Line line_;
    Instant now_{};  // The time of the last call.

    // -- of the epoch --

    State state_ = State::kNew;
    Tag last_;  // The last turn that the nodes have agreed on.
    std::optional<GroupId> turn_;
    core::IntrusiveList<TurnPlace> turn_groups_;  // Those of turn_ that have waiting requests.
    Instant begun_at_{};
    std::vector<GroupDemand> demands_;  // Used while the part is written.
    EpochDemand in_all_;                // What the nodes contributed to it.

    // -- of this locality alone --

    Tag own_last_;  // The last turn. With each turn of an epoch it is that one again.
    Group* own_turn_ = nullptr;
    Instant own_end_{};  // Of that turn.
};

}  // namespace fopd::lrs
