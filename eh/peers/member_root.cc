// The decisions of the root of a view: when an epoch begins, which members are evicted, which
// daemons are admitted.

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "eh/peers/member.h"

namespace fopd::eh::peers {

void Member::begin_duty(bool was_root, Instant now) {
    if (!was_root) {
        duty_ = Duty{.next = view_->view().epoch_low};
        if (adopting_ == SwapKind::kCreate)
            duty_->held_until = after(now, options_->bootstrap_timeout);
        duty_->wants_out = standing_ == Standing::kLeaving;
        if (adopting_ != SwapKind::kTakeOver) tell(EventKind::kView, {});
    }
    duty_->next = std::max({duty_->next, view_->view().epoch_low, newest_ + 1});
    duty_->view_since = now;
    duty_->beat_at = now;
    duty_->start_due = kNever;
    duty_->has_start.clear();
}

// The root leaves, and the next member becomes root. There may be none: then the view is empty.
bool Member::hands_over() const {
    return duty_->wants_out && is_shared() && standing_ == Standing::kLeaving;
}

// Others may leave at the same time, and have to be let go, too.
bool Member::is_leaving_root() const {
    return duty_->wants_out && standing_ == Standing::kLeaving && (is_shared() || takes_part());
}

bool Member::is_held(Instant now) const {
    return now < duty_->held_until && view_->participants() < options_->expect;
}

// -- the epoch --

// All members are ready. While a change of the view may be written, no epoch begins: the view has
// the last one in its record.
void Member::decide(Instant now) {
    if (!is_reported_ || is_frozen() || is_held(now) || report_.count == 0) return;
    ENSURE(report_.count + report_.leavers == view_->participants());
    if (duty_->next > view_->view().epoch_high) return;
    start_epoch(now);
}

void Member::start_epoch(Instant now) {
    take_start({.view = view_number(),
                .round = round_,
                .epoch = duty_->next++,
                .count = report_.count,
                .data = std::move(report_.data)});
    duty_->started_at = now;
    duty_->doubt_since = kNever;
    duty_->has_start.clear();
    duty_->start_retried = false;
    duty_->start_due = children_.empty() ? kNever : after(now, options_->grace);
    if (!duty_->joiners.empty() || !duty_->leavers.empty()) note_admission(now);
}

void Member::abort_epoch() {
    take_abort(round_ + 1);
}

// -- the timeout --

Instant Member::poll_due() const {
    if (closing_since_ == kNever || is_reported_ || duty_->polled_at != kNever) return kNever;
    const Instant over = after(closing_since_, options_->rules.timeout);
    const Instant heard = after(duty_->view_since, options_->grace);
    return std::max({over, heard, duty_->poll_not_before});
}

// When the pending calls of all members end with an error, and the members stay in the view: the
// store does not answer, or too many members are silent.
Instant Member::give_up_due() const {
    if (closing_since_ == kNever) return kNever;
    const Duration span = options_->rules.timeout + 2 * options_->grace + options_->root_silent / 2;
    return std::max(after(closing_since_, span), after(duty_->view_since, 2 * options_->grace));
}

void Member::add_below(std::size_t position, std::set<std::uint32_t>& to) const {
    std::size_t first = position;
    std::size_t width = 1;
    while (first < view_->size()) {
        for (std::size_t at = first; at < std::min(first + width, view_->size()); ++at)
            to.insert(static_cast<std::uint32_t>(at));
        first = first * options_->fanout + 1;
        width *= options_->fanout;
    }
}

// Asks each of those whose subtree has not reported, directly.
void Member::poll(Instant now) {
    duty_->polled.clear();
    duty_->answers.clear();
    duty_->polled_at = now;
    for (std::size_t i = 0; i < children_.size(); ++i) {
        if (!children_[i].is_ready) add_below(first_child() + i, duty_->polled);
    }
    for (const std::uint32_t position : duty_->polled) send(peer_at(position), Poll{});
    if (duty_->polled.empty()) decide_eviction(now);
}

void Member::on_poll(std::size_t position, const Message& message) {
    if (position != 0) return;
    PollAck ack;
    if (standing_ == Standing::kLeaving) {
        ack.state = PollState::kLeaving;
    } else if (message.round <= round_ && call_) {
        // Somebody may have lied to this member that the root's round is over. Then the root makes
        // a new view, in which rounds begin again.
        ack.state = is_reported_ ? PollState::kComplete : PollState::kReady;
    }
    for (std::size_t i = 0; i < children_.size(); ++i) {
        if (!children_[i].is_ready)
            ack.missing.push_back(static_cast<std::uint32_t>(first_child() + i));
    }
    send(root_peer(), std::move(ack));
}

void Member::on_poll_ack(const Peer& from, std::size_t position, const Message& message,
                         const PollAck& ack, Instant now) {
    if (!duty_) return;
    const Joiner* const second = duty_->joiners.find(from.name);
    if (second != nullptr && second->not_before != Instant{}) {
        tell_second(from.name, second->address);
        send_round({.name = from.name, .address = second->address},
                   static_cast<std::uint32_t>(second->incarnation),
                   Refuse{.reason = RefuseReason::kSecondOfName,
                          .incarnation = message.incarnation,
                          .address = view_->at(position).address});
        duty_->joiners.erase(from.name);
    }
    if (message.round < round_) return answer_old_round(from, message.round);
    const auto at = static_cast<std::uint32_t>(position);
    if (duty_->polled_at == kNever || !duty_->polled.contains(at)) return;
    duty_->answers[at] = ack;
    if (duty_->answers.size() == duty_->polled.size()) decide_eviction(now);
}

void Member::decide_eviction(Instant now) {
    Evictions out;
    std::vector<std::string> suspects;
    for (const std::uint32_t position : duty_->polled) {
        const auto found = duty_->answers.find(position);
        const std::string& name = view_->at(position).name;
        const bool is_silent = found == duty_->answers.end();
        if (is_silent || found->second.state == PollState::kBusy) {
            out.emplace(name, is_silent ? EvictedFor::kSilence : EvictedFor::kBusyness);
        } else if (found->second.state == PollState::kLeaving) {
            duty_->leavers.insert(name);
        } else if (found->second.state == PollState::kComplete) {
            // It has reported, and its parent has not heard it.
            const std::size_t parent = parent_of(position, options_->fanout);
            const auto above = duty_->answers.find(static_cast<std::uint32_t>(parent));
            const Child* const child = child_at(position);
            const bool is_missed = child != nullptr
                                       ? !child->is_ready
                                       : above != duty_->answers.end() &&
                                             std::ranges::find(above->second.missing, position) !=
                                                 above->second.missing.end();
            if (is_missed) suspects.push_back(name);
        }
    }
    const bool contributes = call_.has_value() && standing_ == Standing::kMember;
    const bool root_is_out = takes_part() && !contributes && standing_ != Standing::kLeaving;
    duty_->polled_at = kNever;
    duty_->poll_not_before = after(now, options_->grace);
    if (out.empty() && !root_is_out) {
        duty_->to_front = std::move(suspects);
        return maybe_change(now);
    }
    if (!may_evict(out, root_is_out, now)) {
        // More than half are silent: more likely this node is cut off than all of them.
        abort_epoch();
        if (duty_->doubt_since == kNever) {
            duty_->doubt_since = now;
        } else if (is_shared() && now >= after(duty_->doubt_since, options_->root_silent)) {
            tell(EventKind::kAbdicates, {});
            lose_seat(now);
        }
        return;
    }
    duty_->evict = std::move(out);
    duty_->to_front = std::move(suspects);
    if (root_is_out) duty_->wants_out = true;
    maybe_change(now);
}

bool Member::may_evict(const Evictions& out, bool root_is_out, Instant now) const {
    return options_->quorum == Quorum::kStore || waives_majority(now) ||
           keeps_majority(out, root_is_out);
}

// More than half of the participants, or half of them with the lowest name. Those in `out` that
// have joined after the last epoch, and so never contributed, do not count: names can be invented,
// and must not outnumber the members.
bool Member::keeps_majority(const Evictions& out, bool root_is_out) const {
    std::size_t all = 0;
    std::size_t kept = 0;
    const std::string* lowest = nullptr;
    bool keeps_lowest = false;
    const ViewNumber begun = std::max(last_start_.view, view_->view().carry.view);
    for (std::size_t i = 0; i < view_->size(); ++i) {
        const RosterEntry& entry = view_->at(i);
        if (!entry.takes_part || duty_->leavers.contains(entry.name)) continue;
        const bool is_kept = i == 0 ? !root_is_out : !out.contains(entry.name);
        if (!is_kept && begun != 0 && entry.joined > begun) continue;
        ++all;
        if (is_kept) ++kept;
        if (lowest == nullptr || entry.name < *lowest) {
            lowest = &entry.name;
            keeps_lowest = is_kept;
        }
    }
    return 2 * kept > all || (2 * kept == all && keeps_lowest);
}

// -- the start --

// Members that do not acknowledge a start get it directly, then they are evicted.
void Member::retry_start(Instant now) {
    std::set<std::uint32_t> without;
    for (std::size_t i = 0; i < children_.size(); ++i) {
        if (!children_[i].has_start) add_below(first_child() + i, without);
    }
    for (const std::uint32_t position : duty_->has_start) without.erase(position);
    duty_->start_due = kNever;
    if (without.empty() || last_start_.view != view_number()) return;
    if (!std::exchange(duty_->start_retried, true)) {
        for (const std::uint32_t position : without)
            answer_old_round(peer_at(position), last_start_.round);
        duty_->start_due = after(now, options_->grace);
        return;
    }
    Evictions out;
    for (const std::uint32_t position : without)
        out.emplace(view_->at(position).name, EvictedFor::kNoStart);
    if (!may_evict(out, false, now)) return;
    duty_->evict.merge(out);
    maybe_change(now);
}

// -- changes of the view --

void Member::note_admission(Instant now) {
    if (duty_->admit_at == kNever) duty_->admit_at = after(now, options_->join_batch);
}

bool Member::needs_block() const {
    const View& view = view_->view();
    return view.epoch_high - duty_->next < options_->block / 4;
}

// While the first epoch waits for members, each joiner is admitted. Later, each change of the view
// delays the members that are ready, so at most one admits joiners while they wait.
bool Member::may_admit() const {
    const bool is_bootstrapping =
        duty_->held_until > duty_->view_since && view_->participants() < options_->expect;
    return is_bootstrapping || closing_since_ == kNever || !duty_->admitted_in_closing;
}

bool Member::wants_change(Instant now) const {
    const Duty& duty = *duty_;
    if (!duty.evict.empty() || !duty.to_front.empty() || duty.wants_bump) return true;
    if (duty.wants_out && standing_ != Standing::kLeaving && takes_part()) return true;
    if (needs_block()) return true;
    if (duty.wants_in && standing_ == Standing::kJoining && !takes_part() && may_admit())
        return true;
    const bool is_time = now >= duty.admit_at;
    const auto is_here = [&](const std::string& name) { return view_->find(name).has_value(); };
    if (is_time && is_leaving_root()) return true;
    if (is_time && std::ranges::any_of(duty.leavers, is_here)) return true;
    // Other members wait for a process that has ended, so it is replaced without delay. Each change
    // of the view delays all members, so after the first such change further joiners are collected.
    if (now >= duty.joiners.first_replacing()) return is_time || !duty.admitted_in_closing;
    return is_time && now >= duty.joiners.first_new() && may_admit();
}

// Asks the store first: as long as it does not answer, epochs go on with the same members.
void Member::maybe_change(Instant now) {
    if (!duty_ || phase_ != Phase::kNone || store_busy_) return;
    if (!duty_->leavers.empty() || is_leaving_root()) note_admission(now);
    if (duty_->change_at != kNever && now < duty_->change_at) return;
    duty_->change_at = kNever;
    if (!wants_change(now)) return;
    if (ask_store(ReadFor::kProbe)) phase_ = Phase::kProbing;
}

void Member::change_view(Instant now) {
    if (!wants_change(now)) return;
    duty_->evicting = duty_->evict;
    if (begin_swap(SwapKind::kDuty, share(next_view(now)))) return;
    duty_->change_at = after(now, options_->back_off_max);
}

View Member::next_view(Instant now) const {
    const Duty& duty = *duty_;
    const View& old = view_->view();
    View next = old;
    ++next.number;
    if (last_start_.view == old.number) next.carry = last_start_;
    std::vector<RosterEntry> first;
    std::vector<RosterEntry> others;
    const auto is_at_front = [&](const std::string& name) {
        return std::ranges::find(duty.to_front, name) != duty.to_front.end();
    };
    for (std::size_t i = 1; i < old.roster.size(); ++i) {
        const RosterEntry& entry = old.roster[i];
        const Joiner* const joiner = duty.joiners.find(entry.name);
        const bool is_replaced = joiner != nullptr && joiner->replaces && now >= joiner->not_before;
        if (is_replaced || duty.evict.contains(entry.name) || duty.leavers.contains(entry.name))
            continue;
        (is_at_front(entry.name) ? first : others).push_back(entry);
    }
    first.insert(first.end(), others.begin(), others.end());
    EpochNumber had = duty.next - 1;  // By a member of the next view.
    for (const auto& [name, joiner] : duty.joiners.all()) {
        if (now < joiner.not_before || first.size() + 1 >= kRosterMax) continue;
        const auto known = view_->find(name);
        if (known && view_->at(*known).incarnation >= joiner.incarnation) continue;
        // Each newcomer that is silent would make those that wait now wait longer.
        if (!joiner.replaces && !may_admit()) continue;
        first.push_back({.name = name,
                         .incarnation = joiner.incarnation,
                         .address = joiner.address,
                         .joined = next.number});
        had = std::max(had, joiner.newest);
    }
    RosterEntry root = old.roster.front();
    if (hands_over()) {
        // The next root gets a block of its own.
        next.roster = std::move(first);
        take_block(next, had);
        note_gone(old, next);
        return next;
    }
    if (had >= duty.next || duty.next > old.epoch_high) {
        // A member has had epochs of views that the store has lost.
        take_block(next, had);
    } else if (needs_block()) {
        next.epoch_high += options_->block;
    }
    if (duty.wants_out) root.takes_part = false;
    if (duty.wants_in && standing_ == Standing::kJoining && !root.takes_part) {
        root.takes_part = true;
        root.incarnation = incarnation_;
        root.joined = next.number;
    }
    next.roster = {std::move(root)};
    next.roster.insert(next.roster.end(), first.begin(), first.end());
    note_gone(old, next);
    return next;
}

void Member::note_change_committed(const View& old, Instant now) {
    Duty& duty = *duty_;
    tell(EventKind::kView, {});
    for (const RosterEntry& entry : old.roster) {
        if (entry.name == self_.name) continue;
        if (view_->find(entry.name, entry.incarnation)) continue;
        const bool has_left = duty.leavers.contains(entry.name);
        const bool is_replaced = view_->find(entry.name).has_value();
        if (!has_left && !is_replaced) tell_eviction(entry.name);
        if (!is_replaced)
            send_nack({.name = entry.name, .address = entry.address}, entry.incarnation);
    }
    std::erase_if(duty.leavers, [&](const std::string& name) { return !view_->find(name); });
    duty.joiners.follow(*view_);
    duty.wants_bump = false;
    if (!takes_part()) duty.wants_out = false;
    if (takes_part()) duty.wants_in = false;
    duty.admit_at = kNever;
    if (!duty.joiners.empty()) note_admission(now);
    duty.admitted_in_closing = closing_since_ != kNever;
}

// -- time --

void Member::on_root_time(Instant now) {
    if (now >= duty_->held_until) duty_->held_until = Instant{};
    if (now >= duty_->beat_at) {
        send_down(Beat{}, round_);
        duty_->beat_at = after(now, options_->beat());
    }
    if (!is_reported_ && now >= first_at_) {
        send_down(Closing{.waited_us = waited_us(closing_since_, now)}, round_);
        first_at_ = after(now, options_->beat());
    }
    if (now >= duty_->start_due) retry_start(now);
    if (now >= poll_due() && !is_held(now)) poll(now);
    if (duty_ && duty_->polled_at != kNever && now >= after(duty_->polled_at, options_->grace))
        decide_eviction(now);
    if (duty_ && now >= give_up_due()) abort_epoch();
    if (!duty_) return;
    decide(now);
    maybe_change(now);
}

Instant Member::next_root_deadline() const {
    const Duty& duty = *duty_;
    Instant due = give_up_due();
    const auto or_at = [&](Instant at) { due = std::min(due, at); };
    if (!children_.empty()) or_at(duty.beat_at);
    or_at(duty.start_due);
    // Held: the end of the hold comes first, or the call gives up.
    const bool is_holding =
        duty.held_until > duty.view_since && view_->participants() < options_->expect;
    or_at(is_holding && poll_due() != kNever ? std::max(poll_due(), duty.held_until) : poll_due());
    if (is_holding && is_reported_ && duty.held_until > duty.view_since) or_at(duty.held_until);
    if (duty.polled_at != kNever) or_at(after(duty.polled_at, options_->grace));
    if (phase_ != Phase::kNone || store_busy_) return due;
    const Instant replacing = duty.joiners.first_replacing();
    Instant change = duty.admitted_in_closing ? std::max(replacing, duty.admit_at) : replacing;
    if (may_admit()) change = std::min(change, std::max(duty.joiners.first_new(), duty.admit_at));
    if (!duty.leavers.empty() || is_leaving_root()) change = std::min(change, duty.admit_at);
    if (duty.change_at != kNever) change = std::min(change, duty.change_at);
    if (change == kNever) return due;
    or_at(duty.change_at == kNever ? change : std::max(change, duty.change_at));
    return due;
}

}  // namespace fopd::eh::peers
