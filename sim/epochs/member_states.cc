#include "sim/epochs/member_states.h"

#include <utility>

#include "core/random.h"

namespace fopd::sim {

MemberStates::MemberStates(std::vector<std::string> names, std::size_t fanout)
    : names_(std::move(names)), fanout_(fanout), processes_(names_.size()) {}

void MemberStates::on_step(EpochWatch& watch, std::size_t member, const eh::peers::Member& state) {
    const std::string& name = names_[member];
    Process& process = processes_[member];
    std::size_t children = 0;
    if (state.is_seated()) {
        const auto position = state.view()->find(name);
        watch.require(position.has_value(), "I8", name + " has a seat in a view without it");
        if (!position) return;
        children = eh::child_count(*position, state.view()->size(), fanout_);
    }
    if (state.contributions() > children + 1) {
        watch.require(false, "I12",
                      name + " holds " + std::to_string(state.contributions()) +
                          " contributions, and has " + std::to_string(children) + " children");
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
