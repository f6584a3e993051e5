#include "sim/epochs/epoch_watch.h"

namespace fopd::sim {

namespace {

// Whether one process is the root of both. A root that contributes again has a new incarnation.
bool is_same_root(const eh::View& old, const eh::View& next) {
    if (old.roster.empty() || next.roster.empty()) return false;
    const eh::RosterEntry& before = old.roster.front();
    const eh::RosterEntry& now = next.roster.front();
    if (before.name != now.name) return false;
    return before.incarnation == now.incarnation || !before.takes_part;
}

}  // namespace

void EpochWatch::require(bool holds, std::string_view law, const std::string& about) {
    if (!holds && broken_.empty()) broken_ = std::string(law) + ": " + about;
}

void EpochWatch::on_commit(const eh::ViewHandle& view) {
    const std::string which = "view " + std::to_string(view->number());
    require(view->number() == views_.size() + 1, "store", which);
    if (!views_.empty()) {
        check_block(views_.back()->view(), view->view());
        note_removed(views_.back()->view(), *view);
    }
    for (const eh::RosterEntry& entry : view->view().roster) {
        const auto removed = removed_.find(entry.name);
        if (removed != removed_.end() && removed->second.contains(entry.incarnation))
            require(false, "I8", which + " has " + entry.name + " again");
    }
    views_.push_back(view);
}

// Blocks increase, so all are disjoint if each is from the one before.
void EpochWatch::check_block(const eh::View& old, const eh::View& next) {
    const bool is_same = next.epoch_low == old.epoch_low && next.epoch_high >= old.epoch_high &&
                         is_same_root(old, next);
    require(is_same || next.epoch_low > old.epoch_high, "I11",
            "view " + std::to_string(next.number) + " has epochs from " +
                std::to_string(next.epoch_low) + ", the one before up to " +
                std::to_string(old.epoch_high));
}

void EpochWatch::note_removed(const eh::View& old, const eh::CommittedView& next) {
    for (const eh::RosterEntry& entry : old.roster) {
        if (!next.find(entry.name, entry.incarnation))
            removed_[entry.name].insert(entry.incarnation);
    }
}

void EpochWatch::on_epoch(const std::string& member, const eh::peers::Answer& answer) {
    const eh::EpochNumber epoch = *answer.epoch;
    const std::string who = member + " in epoch " + std::to_string(epoch);
    eh::EpochNumber& newest = newest_[member];
    require(epoch > newest, "I2", who + " after " + std::to_string(newest));
    newest = epoch;
    const Epoch seen{.view = answer.view, .data = answer.data};
    const auto [known, is_new] = epochs_.try_emplace(epoch, seen);
    require(known->second == seen, "I1", who);
    const eh::CommittedView* const of = view(answer.view);
    if (of == nullptr) return require(false, "I7", who + " of no committed view");
    require(eh::is_in_block(epoch, of->view()), "I11", who + " beyond its block");
    require(of->find(member).has_value(), "I8", who + " is no member");
}

const eh::CommittedView* EpochWatch::view(eh::ViewNumber number) const {
    return number == 0 || number > views_.size() ? nullptr : views_[number - 1].get();
}

eh::EpochNumber EpochWatch::newest() const {
    return epochs_.empty() ? eh::kFirstEpoch : epochs_.rbegin()->first;
}

eh::EpochNumber EpochWatch::newest(std::string_view member) const {
    const auto found = newest_.find(member);
    return found == newest_.end() ? eh::kFirstEpoch : found->second;
}

}  // namespace fopd::sim
