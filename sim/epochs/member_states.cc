#include "sim/epochs/member_states.h"

#include <utility>

#include "core/random.h"

namespace fopd::sim {

MemberStates::MemberStates(std::vector<std::string> names, std::size_t fanout)
    : names_(std::move(names)), fanout_(fanout), processes_(names_.size()) {}

std::size_t MemberStates::contributions_max(std::size_t member,
                                            const eh::peers::Member& state) const {
    if (!state.is_seated()) return 1;
    const auto position = state.view()->find(names_[member]);
    return position ? 1 + eh::child_count(*position, state.view()->size(), fanout_) : 1;
}

bool MemberStates::has_seen(std::size_t member, const eh::peers::Member& state) const {
    const Process& process = processes_[member];
    return process.left == state.left_view() &&
           (!state.is_seated() || process.seen_view == state.view_number()) &&
           state.contributions() <= contributions_max(member, state);
}

void MemberStates::on_step(EpochWatch& watch, std::size_t member, const eh::peers::Member& state) {
    const std::string& name = names_[member];
    Process& process = processes_[member];
    if (state.is_seated() && !state.view()->find(name))
        return watch.require(false, "I8", name + " has a seat in a view without it");
    const std::size_t most = contributions_max(member, state);
    if (state.contributions() > most) {
        watch.require(false, "I12",
                      name + " holds " + std::to_string(state.contributions()) +
                          " contributions, and has " + std::to_string(most - 1) + " children");
    }
    if (state.is_seated() && state.view_number() != process.seen_view) {
        process.seen_view = state.view_number();
        const eh::CommittedView* const committed = watch.view(process.seen_view);
        watch.require(committed != nullptr && committed->view() == state.view()->view(), "I7",
                      name + " is in an uncommitted view");
    }
    if (process.left == state.left_view()) return;
    process.left = state.left_view();
    if (process.left.view == 0 || !state.is_seated()) return;
    const auto [final, is_first] = final_.try_emplace(process.left.view, process.left.newest);
    watch.require(final->second == process.left.newest, "I3c",
                  name + " left view " + std::to_string(process.left.view) + " at epoch " +
                      std::to_string(process.left.newest) + ", others at " +
                      std::to_string(final->second));
}

std::uint64_t MemberStates::fingerprint() const {
    std::uint64_t hash = 1;
    for (const auto& [view, newest] : final_) {
        hash = core::mix(hash, view);
        hash = core::mix(hash, static_cast<std::uint64_t>(newest));
    }
    return hash;
}

}  // namespace fopd::sim
