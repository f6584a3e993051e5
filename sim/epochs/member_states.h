#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "eh/peers/member.h"
#include "sim/epochs/epoch_watch.h"

namespace fopd::sim {

// Checks the laws of epochs that the state of a member must keep after each of its steps. Members
// are identified by their index. A value: a copy continues independently.
class MemberStates {
public:
    MemberStates(std::vector<std::string> names, std::size_t fanout);

    // Whether on_step() would find nothing wrong and note nothing new.
    bool has_seen(std::size_t member, const eh::peers::Member& state) const;
    // REQUIRES: the watch has been told of all views that were committed.
    void on_step(EpochWatch& watch, std::size_t member, const eh::peers::Member& state);
    // The process has ended.
    void on_crash(std::size_t member) { processes_[member] = {}; }
    // The numbers of views begin again.
    void on_views_lost() { final_.clear(); }

    // Views that a member has moved on from.
    std::size_t left_views() const { return final_.size(); }
    std::uint64_t fingerprint() const;

private:
    struct Process {
        eh::peers::LeftView left{};
        eh::ViewNumber seen_view = 0;
    };

    // The member's own contribution, and those of its children.
    std::size_t contributions_max(std::size_t member, const eh::peers::Member& state) const;

    std::vector<std::string> names_;
    std::size_t fanout_;
    std::vector<Process> processes_;
    std::map<eh::ViewNumber, eh::EpochNumber> final_;  // By left view: its newest epoch.
};

}  // namespace fopd::sim
