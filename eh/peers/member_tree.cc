// The reduction: contributions go up the tree of a view, the start of the epoch comes down.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/ensure.h"
#include "eh/peers/member.h"

namespace fopd::eh::peers {

namespace {

// An abort leads this many rounds ahead at most, so that no lie leads to the last number. A member
// that has missed more is told again.
constexpr std::uint32_t kRoundsMissedMax = 1 << 16;

}  // namespace

Member::Child* Member::child_at(std::size_t position) {
    const std::size_t index = position - first_child();
    return position < first_child() || index >= children_.size() ? nullptr : &children_[index];
}

// The parent, or the root itself.
bool Member::is_from_above(std::size_t position) const {
    if (is_root_position()) return false;
    return position == 0 || position == parent_of(position_, options_->fanout);
}

void Member::begin_round(std::uint32_t round) {
    round_ = round;
    for (Child& child : children_) {
        child.is_ready = false;
        child.report = {};
    }
    is_reported_ = false;
    report_ = {};
    resend_at_ = kNever;
    closing_since_ = kNever;
    first_at_ = kNever;
    if (duty_) {
        duty_->polled_at = kNever;
        duty_->polled.clear();
        duty_->answers.clear();
        duty_->evict.clear();
        duty_->to_front.clear();
        duty_->admitted_in_closing = false;
    }
}

void Member::note_closing(Instant since, Instant now) {
    closing_since_ = std::min(closing_since_, since);
    if (first_at_ == kNever)
        first_at_ = std::max(now, after(closing_since_, options_->first_delay()));
}

// When a member below began to wait, as it says. All have called after the last epoch began, so an
// earlier time is a lie: by that the root would evict others that have time left.
Instant Member::waiting_since(std::uint64_t waited_us, Instant now) const {
    const Instant since = now - span_of(waited_us);
    const bool is_known = duty_ && duty_->started_at != kNever;
    return is_known ? std::max(since, duty_->started_at) : since;
}

// -- up --

void Member::on_ready(const Peer& from, std::size_t position, const Message& message,
                      const Ready& ready, Instant now) {
    Child* const child = child_at(position);
    if (child == nullptr) return drop(from);
    child->has_view = true;
    if (message.round < round_) return answer_old_round(from, message.round);
    if (message.round > round_) {
        // This member has missed how its round ended; its parent knows.
        if (!is_root_position()) send(peer_at(parent_of(position_, options_->fanout)), First{});
        return;
    }
    const std::size_t below = subtree_size(position, view_->size(), options_->fanout);
    if (std::uint64_t{ready.count} + ready.leavers != below) return drop(from);
    child->has_start = true;
    if (child->is_ready) {
        if (child->report.data != ready.data) tell(EventKind::kOtherBytes, from.name);
        return;
    }
    child->is_ready = true;
    child->report = ready;
    note_closing(waiting_since(ready.waited_us, now), now);
    try_fold(now);
}

void Member::on_first(const Peer& from, std::size_t position, const Message& message,
                      const First& first, Instant now) {
    if (child_at(position) == nullptr) return drop(from);
    if (message.round < round_) return answer_old_round(from, message.round);
    if (message.round == round_) note_closing(waiting_since(first.waited_us, now), now);
}

// Tells a member that is behind how its round has ended. An epoch starts when all have reported, so
// it can have missed one start only, the last one; all other rounds were aborted.
void Member::answer_old_round(const Peer& to, std::uint32_t round) {
    if (last_start_.view == view_number() && last_start_.round == round) {
        send_round(
            to, round,
            Start{
                .epoch = last_start_.epoch, .count = last_start_.count, .data = last_start_.data});
    } else {
        send_round(to, round, Abort{.next_round = round_});
    }
}

// The result is as long as the shortest contribution, so it does not depend on the tree.
void Member::add_to(Ready& sum, const Ready& part) const {
    sum.leavers += part.leavers;
    if (part.count == 0) return;
    if (sum.count == 0) {
        sum.data = part.data;
    } else {
        const std::size_t size_bytes = std::min(sum.data.size(), part.data.size());
        sum.data.resize(size_bytes - size_bytes % options_->rules.granule);
        if (options_->rules.combine != nullptr) {
            options_->rules.combine(sum.data, sum.data,
                                    std::span(part.data).first(sum.data.size()));
        }
    }
    sum.count += part.count;
}

void Member::try_fold(Instant now) {
    if (!seated_ || has_promised() || is_reported_ || standing_ == Standing::kLost) return;
    if (!std::ranges::all_of(children_, &Child::is_ready)) return;
    const bool contributes = call_.has_value() && standing_ == Standing::kMember && takes_part();
    const bool leaves = takes_part() && standing_ == Standing::kLeaving;
    if (takes_part() && !contributes && !leaves) return;
    Ready report;
    if (leaves) report.leavers = 1;
    if (contributes) {
        add_to(report, {.count = 1, .data = call_->data});
        call_->is_folded = true;
    }
    for (const Child& child : children_) add_to(report, child.report);
    report.waited_us = waited_us(closing_since_, now);
    report_ = std::move(report);
    is_reported_ = true;
    if (is_root_position()) return decide(now);
    send(peer_at(parent_of(position_, options_->fanout)), report_);
    resend_step_ = options_->resend;
    resend_at_ = after(now, resend_step_);
}

// -- down --

void Member::send_down(const Body& body, std::uint32_t round) {
    for (std::size_t i = 0; i < children_.size(); ++i)
        send_round(peer_at(first_child() + i), round, body);
}

void Member::on_start(const Peer& from, std::size_t position, const Message& message,
                      const Start& start) {
    const bool is_last = last_start_.view == view_number() && last_start_.round == message.round;
    if (message.round < round_ && is_last) {
        if (position == 0) send_round(from, message.round, StartAck{.is_alone = true});
        acknowledge_start();
        return;
    }
    if (message.round != round_ || !is_reported_ || start.epoch <= newest_) return;
    if (!is_in_block(start.epoch, view_->view())) return drop(from);
    take_start({.view = view_number(),
                .round = round_,
                .epoch = start.epoch,
                .count = start.count,
                .data = start.data});
    if (position == 0 && parent_of(position_, options_->fanout) != 0)
        send_round(from, message.round, StartAck{.is_alone = true});
    acknowledge_start();
}

void Member::take_start(StartRecord record) {
    const std::uint32_t round = round_;
    last_start_ = std::move(record);
    newest_ = last_start_.epoch;
    for (Child& child : children_) child.has_start = false;
    send_down(
        Start{.epoch = last_start_.epoch, .count = last_start_.count, .data = last_start_.data},
        round);
    const bool was_for_call = call_ && call_->is_folded;
    begin_round(round + 1);
    if (++good_epochs_ >= 10) failures_ = 0;
    if (!was_for_call) return;
    epoch_ = last_start_.epoch;
    answer(epoch_, last_start_.data);
}

// To the parent, when all below have the start.
void Member::acknowledge_start() {
    if (is_root_position() || !std::ranges::all_of(children_, &Child::has_start)) return;
    send_round(peer_at(parent_of(position_, options_->fanout)), last_start_.round, StartAck{});
}

void Member::on_start_ack(std::size_t position, const Message& message, const StartAck& ack) {
    if (last_start_.view != view_number() || last_start_.round != message.round) return;
    // It speaks of its sender only, not of the members below it: the root has asked for it.
    if (ack.is_alone) {
        if (duty_) duty_->has_start.insert(static_cast<std::uint32_t>(position));
        return;
    }
    Child* const child = child_at(position);
    if (child == nullptr || std::exchange(child->has_start, true)) return;
    if (!std::ranges::all_of(children_, &Child::has_start)) return;
    if (duty_) duty_->start_due = kNever;
    acknowledge_start();
}

void Member::on_abort(const Message& message, const Abort& abort) {
    if (message.round != round_ || abort.next_round <= round_) return;
    take_abort(round_ + std::min(abort.next_round - round_, kRoundsMissedMax));
}

// The member stays one, and may call again.
void Member::take_abort(std::uint32_t next_round) {
    send_down(Abort{.next_round = next_round}, round_);
    const bool ends_call = call_ && standing_ == Standing::kMember && takes_part();
    begin_round(next_round);
    if (!ends_call) return;
    const EpochNumber epoch = epoch_;
    fail_call(Errc::kBusy, ENOLINK, "not all nodes answer");
    epoch_ = epoch;
}

// -- time --

void Member::on_tree_time(Instant now) {
    if (now >= news_at_) {
        const bool all_have = std::ranges::all_of(children_, &Child::has_view);
        if (!all_have) tell_children();
        news_step_ *= 2;
        const bool is_last = all_have || news_step_ > options_->root_silent;
        news_at_ = is_last ? kNever : after(now, news_step_);
    }
    if (is_root_position()) return;
    if (ask_at_ != kNever && now >= ask_at_) {
        // The beats stop when the parent is dead; the root may be alive.
        const Instant silent = after(root_heard_, options_->ask_after());
        if (now >= silent) send(root_peer(), Ask{});
        ask_at_ = std::max(silent, after(now, options_->beat() / 2));
    }
    if (has_promised()) return;
    const Peer parent = peer_at(parent_of(position_, options_->fanout));
    if (is_reported_ && now >= resend_at_) {
        report_.waited_us = waited_us(closing_since_, now);
        send(parent, report_);
        resend_step_ = std::min(2 * resend_step_, options_->beat());
        resend_at_ = after(now, resend_step_);
    }
    if (!is_reported_ && now >= first_at_) {
        // The calls below have ended with errors, and nobody above knew of them. Newer ones are
        // told of again.
        if (now > after(closing_since_, options_->watchdog()))
            closing_since_ = call_ ? call_->ready_since : kNever;
        const bool is_closing = closing_since_ != kNever;
        if (is_closing) send(parent, First{.waited_us = waited_us(closing_since_, now)});
        first_at_ = is_closing ? after(now, options_->beat()) : kNever;
    }
}

}  // namespace fopd::eh::peers
