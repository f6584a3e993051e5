// A new root after a silent one: promises of a majority, then a view with the members that
// promised.

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "eh/peers/member.h"

namespace fopd::eh::peers {

// The members next to the root try first; far ones wait until these had time to succeed.
Duration Member::stagger(std::size_t position) const {
    const std::size_t rank = position == 0 ? 0 : position - 1;
    const Duration step = options_->grace / 2;
    if (rank < 8) return step * static_cast<int>(rank);
    return step * static_cast<int>(8 + rank * 2'654'435'761U % 32);
}

// Only a member of the newest view, or a later incarnation of one.
Instant Member::candidate_at() const {
    if (!is_shared() || duty_ || candidacy_ || phase_ != Phase::kNone || store_busy_) return kNever;
    std::size_t position = 0;
    if (standing_ == Standing::kMember && seated_) {
        position = position_;
    } else if (standing_ == Standing::kJoining && !seated_ && !is_persisting_ &&
               record_ != nullptr && !record_->empty() && join_at_ != kNever) {
        const auto found = record_->find(self_.name);
        if (!found) return kNever;
        position = *found;
    } else {
        return kNever;
    }
    const Instant silent = after(root_heard_, options_->root_silent + stagger(position));
    return std::max(silent, candidate_not_before_);
}

void Member::begin_candidacy(const ViewHandle& target, Instant now) {
    candidacy_ = Candidacy{.target = target, .began = now, .resend_at = now};
    count_promises(now);
    on_takeover_time(now);
}

// The root of the view with this number, as far as it is known here. Incarnation 0: not known.
RosterEntry Member::root_of(ViewNumber number) const {
    for (const ViewHandle& view : {view_, record_}) {
        if (view != nullptr && view->number() == number && !view->empty()) return view->root();
    }
    return {.name = root_hint_.name, .address = root_hint_.address};
}

// The incarnation of this name in that view; nothing if the view is not known here, or lacks it.
std::optional<Incarnation> Member::incarnation_in(ViewNumber number,
                                                  const std::string& name) const {
    for (const ViewHandle& view : {view_, record_}) {
        if (view == nullptr || view->number() != number) continue;
        if (const auto position = view->find(name)) return view->at(*position).incarnation;
    }
    return std::nullopt;
}

// Tells a daemon whose number is out of reach, because its file is damaged or somebody has lied to
// it, the known one.
void Member::refuse_number(const Peer& to, const Message& message, Incarnation known) {
    drop(to);
    send_as(to, message.view, static_cast<std::uint32_t>(message.incarnation),
            Refuse{.reason = RefuseReason::kIncarnation, .incarnation = known});
}

// Whether the candidate is the root's next process, so that the root's incarnation is gone. One at
// another address may be a second daemon of the root's name, and the root may be alive.
bool Member::is_restarted_root(const Peer& from, const Message& message,
                               const Promise& promise) const {
    const RosterEntry root = root_of(message.view);
    return from.name == root.name && promise.address == root.address &&
           message.incarnation > root.incarnation;
}

// Whoever promises must not have heard from the root for long, unless the root was started again.
void Member::on_promise(const Peer& from, const Message& message, const Promise& promise,
                        Instant now) {
    if (from.name == self_.name) {
        const bool is_second = seated_ && message.incarnation != sent_incarnation();
        const Peer to{.name = from.name, .address = promise.address};
        return is_second ? refuse_second(to, message.incarnation) : void();
    }
    if (!is_shared() && from.name != options_->root.name) return drop(from);
    if (duty_ && message.view == view_number()) return send(from, Beat{});
    if (seated_ && message.view < view_number()) return send_nack(from, message.incarnation);
    if (duty_) {
        // Another root has made a newer view, if the sender is right: the store knows.
        if (phase_ == Phase::kNone) ask_store(ReadFor::kNews);
        return;
    }
    if (const UnlikeRule rule = unlike(promise.rules); rule != UnlikeRule::kNone) {
        // Names are free where no list of members is configured.
        if (unlike_.size() >= kRosterMax || !unlike_.insert(from.name).second) return;
        tell_unlike(from.name, rule);
        return send_as(from, message.view, static_cast<std::uint32_t>(message.incarnation),
                       Refuse{.reason = RefuseReason::kRules, .rule = rule});
    }
    const auto known = incarnation_in(message.view, from.name);
    const bool is_possible =
        known ? is_plausible(message.incarnation, *known) : message.incarnation <= kIncarnationMax;
    if (!is_possible) return refuse_number(from, message, known.value_or(0));
    const bool root_is_gone = is_restarted_root(from, message, promise);
    const bool is_silent = now >= after(root_heard_, options_->root_silent);
    const bool has_promised_it = promised() >= message.view;
    if (!root_is_gone && !is_silent && !has_promised_it) return;
    if (!has_promised_it) {
        note_promise(message.view);
        // The sender has time to become root before this member tries the same.
        candidate_not_before_ = after(now, options_->root_silent);
    }
    const bool is_member = standing_ == Standing::kMember && seated_ && takes_part();
    const bool wants_join = standing_ == Standing::kJoining && !seated_ && !is_persisting_;
    PromiseAck ack{.is_member = is_member, .wants_join = wants_join, .address = self_.address};
    if (call_) ack.waited_us = waited_us(call_->ready_since, now);
    if (last_start_.view == message.view) ack.record = last_start_;
    send_as(from, message.view, round_, std::move(ack));
}

void Member::on_promise_ack(const Peer& from, const Message& message, const PromiseAck& ack,
                            Instant now) {
    if (!candidacy_ || message.view != candidacy_->target->number()) return;
    if (phase_ == Phase::kSwapping || phase_ == Phase::kSettling) return;
    const auto position = candidacy_->target->find(from.name);
    if (!position || from.name == self_.name) return drop(from);
    const Incarnation known_to_all = candidacy_->target->at(*position).incarnation;
    if (!is_plausible(message.incarnation, known_to_all))
        return refuse_number(from, message, known_to_all);
    if (message.incarnation < known_to_all) {
        // It has lost its file, and can only join with a higher number.
        if (ack.wants_join) {
            send_as(from, message.view, static_cast<std::uint32_t>(message.incarnation),
                    Refuse{.reason = RefuseReason::kIncarnation, .incarnation = known_to_all});
        }
        return;
    }
    const auto known = candidacy_->incarnations.find(from.name);
    if (known != candidacy_->incarnations.end() && known->second > message.incarnation) return;
    candidacy_->granted[from.name] = ack;
    candidacy_->incarnations[from.name] = message.incarnation;
    count_promises(now);
}

// Whether a member that has not promised itself yet has heard from the root again.
bool Member::is_root_back(Instant now) const {
    const bool is_seated = seated_ && view_number() == candidacy_->target->number();
    return is_seated && promised_ < view_number() &&
           now < after(root_heard_, options_->root_silent);
}

// How long a candidate waits for more promises than it needs: members whose promises are late have
// to join again. The root's next process waits longer. It has not waited for the root's silence
// before, as other candidates have, and members that are cut off may still use their shares of
// limits.
Duration Member::wait_for_late() const {
    const bool is_own = candidacy_->target->root().name == self_.name;
    return is_own ? 2 * options_->grace : options_->grace;
}

void Member::count_promises(Instant now) {
    Candidacy& candidacy = *candidacy_;
    const std::size_t votes = candidacy.granted.size() + 1;
    const std::size_t all = candidacy.target->size();
    // No other daemon can be root of a view that only this one keeps.
    const bool is_enough = !is_shared() && options_->quorum == Quorum::kStore;
    if (2 * votes <= all && !is_enough && !waives_majority(now)) {
        candidacy.majority_at = kNever;
        return;
    }
    if (candidacy.majority_at == kNever) candidacy.majority_at = now;
    if (votes < all && now < after(candidacy.majority_at, wait_for_late())) return;
    if (store_busy_ || phase_ != Phase::kNone) return;
    if (is_root_back(now)) {
        candidacy_.reset();
        return;
    }
    const View next = taken_over();
    note_promise(candidacy.target->number());
    candidacy.resend_at = kNever;
    candidacy.majority_at = kNever;
    if (begin_swap(SwapKind::kTakeOver, share(next))) return;
    candidacy_.reset();
    candidate_not_before_ = after(now, options_->back_off_max);
}

// As a candidate that too few members answer.
void Member::tell_awaited(Instant now) {
    Candidacy& candidacy = *candidacy_;
    if (candidacy.majority_at != kNever || now < after(candidacy.began, options_->root_silent))
        return;
    if (std::exchange(candidacy.has_told, true)) return;
    Event event{.kind = EventKind::kAwaits, .view = candidacy.target->number()};
    for (const RosterEntry& entry : candidacy.target->view().roster) {
        if (entry.name != self_.name && !candidacy.granted.contains(entry.name))
            event.left_out.push_back(entry.name);
    }
    effects_.emplace_back(std::move(event));
}

View Member::taken_over() const {
    const CommittedView& old = *candidacy_->target;
    View next = old.view();
    ++next.number;
    next.epoch_low = old.view().epoch_high + 1;
    next.epoch_high = next.epoch_low + options_->block - 1;
    // It has had epochs of views that the store has lost.
    if (newest_ > old.view().epoch_high) take_block(next, newest_);

    next.rules_hash = options_->rules_hash;
    const auto own = old.find(self_.name);
    const bool is_member = seated_ && own && view_->at(position_) == old.at(*own);
    next.roster.clear();
    next.roster.push_back({.name = self_.name,
                           .incarnation = incarnation_,
                           .address = self_.address,
                           .joined = is_member ? old.at(*own).joined : next.number});
    StartRecord newest;
    if (last_start_.view == old.number() && is_in_block(last_start_.epoch, old.view()))
        newest = last_start_;
    std::vector<RosterEntry> joiners;
    for (const RosterEntry& entry : old.view().roster) {
        const auto found = candidacy_->granted.find(entry.name);
        if (found == candidacy_->granted.end()) continue;
        const PromiseAck& ack = found->second;
        const Incarnation incarnation = candidacy_->incarnations.at(entry.name);
        if (ack.record.view == old.number() && is_in_block(ack.record.epoch, old.view()) &&
            ack.record.epoch > newest.epoch) {
            newest = ack.record;
        }
        if (ack.is_member && incarnation == entry.incarnation) {
            next.roster.push_back(entry);
            next.roster.back().takes_part = true;
        } else if (ack.wants_join && incarnation > entry.incarnation) {
            joiners.push_back({.name = entry.name,
                               .incarnation = incarnation,
                               .address = ack.address,
                               .joined = next.number});
        }
    }
    std::ranges::sort(joiners, {}, &RosterEntry::name);
    next.roster.insert(next.roster.end(), joiners.begin(), joiners.end());
    if (newest.view != 0) next.carry = std::move(newest);
    note_gone(old.view(), next);
    return next;
}

void Member::on_takeover_time(Instant now) {
    if (!candidacy_) {
        if (now < candidate_at()) return;
        candidate_not_before_ = after(now, options_->grace);
        ask_store(ReadFor::kCandidacy);
        return;
    }
    if (phase_ != Phase::kNone) return;
    if (candidacy_->majority_at != kNever) count_promises(now);
    if (!candidacy_ || phase_ != Phase::kNone || now < candidacy_->resend_at) return;
    candidacy_->resend_at = after(now, 2 * options_->resend);
    if (is_root_back(now)) {
        candidacy_.reset();
        return;
    }
    tell_awaited(now);
    for (const RosterEntry& entry : candidacy_->target->view().roster) {
        // Another daemon of this one's name may live at another address, and says so.
        const bool is_own = entry.name == self_.name && entry.address == self_.address;
        if (is_own || candidacy_->granted.contains(entry.name)) continue;
        send_as({.name = entry.name, .address = entry.address}, candidacy_->target->number(), 0,
                Promise{.address = self_.address, .rules = rules()});
    }
}

}  // namespace fopd::eh::peers
