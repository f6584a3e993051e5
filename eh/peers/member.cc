#include "eh/peers/member.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"

namespace fopd::eh::peers {

namespace {

std::unexpected<Error> refused(Errc code, std::int32_t os_errno, const char* context) {
    return std::unexpected(Error{.code = code, .os_errno = os_errno, .context = context});
}

template <typename... Kinds>
bool is_one_of(const Body& body) {
    return (std::holds_alternative<Kinds>(body) || ...);
}

}  // namespace

Member::Member(const MemberOptions& options, Peer self, Incarnation durable, Instant now)
    : options_(&options),
      self_(std::move(self)),
      durable_(durable),
      root_heard_(now),
      root_hint_(options.root) {
    ENSURE(options.fanout > 0);
    ENSURE(options.block > 0);
}

// -- the contract --

Result<void> Member::next_epoch(EpochNumber current, std::span<const std::byte> data, Instant now) {
    if (data.size() > kEpochBytesMax) return std::unexpected(kTooMuchData);
    if (call_) return std::unexpected(kAlreadyWaiting);
    if (current != kFirstEpoch && current != epoch_) return std::unexpected(kOtherEpoch);
    const std::size_t whole = data.size() - data.size() % options_->rules.granule;
    call_ = Call{.data{data.begin(), data.begin() + static_cast<std::ptrdiff_t>(whole)},
                 .began = now,
                 .ready_since = now};
    if (standing_ == Standing::kMember) {
        note_closing(now, now);
        try_fold(now);
    } else if (current != kFirstEpoch) {
        // The participant does not know yet that its node was evicted.
        fail_call(Errc::kClosed, ESTALE, "evicted");
    } else {
        begin_join(now);
    }
    return {};
}

void Member::last_epoch(Instant now) {
    if (call_) fail_call(Errc::kCancelled, ECANCELED, "left");
    epoch_ = kFirstEpoch;
    if (standing_ == Standing::kLeaving) return;
    join_at_ = kNever;
    if (standing_ != Standing::kMember && !may_be_admitted()) {
        standing_ = Standing::kDetached;
        return;
    }
    standing_ = Standing::kLeaving;
    claim_at_ = kNever;
    if (swap_ == SwapKind::kNone) candidacy_.reset();
    leave_until_ = after(now, options_->root_silent);
    leave_at_ = now;
    leave_read_at_ = after(now, options_->grace);
    if (duty_) duty_->wants_out = true;
    try_fold(now);
    on_time(now);
}

void Member::waive_majority(Instant now) {
    majority_waived_until_ = after(now, options_->watchdog());
    if (candidacy_ && phase_ == Phase::kNone) count_promises(now);
    on_time(now);
}

// Whether this member has asked to join, so that a view may contain it although it does not want to
// join any more.
bool Member::may_be_admitted() const {
    if (standing_ != Standing::kJoining || is_persisting_) return false;
    if (seated_ || swap_ != SwapKind::kNone) return swap_ != SwapKind::kNone;
    return !root_hint_.name.empty() && root_hint_.name != self_.name;
}

void Member::answer(Result<EpochNumber> epoch, std::vector<std::byte> data) {
    ENSURE(call_.has_value());
    call_.reset();
    effects_.emplace_back(
        Answer{.epoch = epoch, .data = std::move(data), .view = last_start_.view});
}

void Member::fail_call(Errc code, std::int32_t os_errno, const char* context) {
    if (!call_) return;
    epoch_ = kFirstEpoch;
    answer(refused(code, os_errno, context), {});
}

EpochState Member::state() const {
    if (!seated_) return EpochState::kDetached;
    if (view_->participants() == 0) return EpochState::kIdle;
    return closing_since_ == kNever ? EpochState::kWaiting : EpochState::kClosing;
}

std::size_t Member::contributions() const {
    const auto held = std::ranges::count(children_, true, &Child::is_ready);
    return static_cast<std::size_t>(held) + (call_ || is_reported_ ? 1U : 0U);
}

// -- messages --

void Member::send(const Peer& to, Body body) {
    send_round(to, round_, std::move(body));
}

void Member::send_round(const Peer& to, std::uint32_t round, Body body) {
    send_as(to, view_number(), round, std::move(body));
}

void Member::send_as(const Peer& to, ViewNumber view, std::uint32_t round, Body body) {
    effects_.emplace_back(Send{.to = to,
                               .message{.view = view,
                                        .round = round,
                                        .incarnation = sent_incarnation(),
                                        .body = std::move(body)}});
}

void Member::tell(EventKind kind, std::string name) {
    effects_.emplace_back(Event{.kind = kind, .name = std::move(name), .view = view_number()});
}

// This member is not in the view that `root` has made.
void Member::tell_gone(std::string root) {
    const bool has_left = standing_ == Standing::kLeaving;
    tell(has_left ? EventKind::kLeft : EventKind::kEvicted,
         has_left ? std::string() : std::move(root));
}

// As root.
void Member::tell_eviction(const std::string& name) {
    const auto found = duty_->evicting.find(name);
    effects_.emplace_back(
        Event{.kind = EventKind::kEvicts,
              .name = name,
              .view = view_number(),
              .reason = found == duty_->evicting.end() ? EvictedFor::kNothing : found->second});
}

// Reports that this member has become root in place of the root of the view `before`.
void Member::tell_takeover(const View& before) {
    Event event{
        .kind = EventKind::kTakesOver, .name = before.roster.front().name, .view = view_number()};
    for (const RosterEntry& entry : before.roster) {
        if (!view_->find(entry.name)) event.left_out.push_back(entry.name);
    }
    effects_.emplace_back(std::move(event));
}

void Member::tell_second(const std::string& name, const std::string& address) {
    effects_.emplace_back(Event{
        .kind = EventKind::kSecondOfName, .name = name, .view = view_number(), .address = address});
}

void Member::tell_unlike(const std::string& name, UnlikeRule rule) {
    effects_.emplace_back(
        Event{.kind = EventKind::kRefused, .name = name, .view = view_number(), .rule = rule});
}

void Member::drop(const Peer& from) {
    ++dropped_;
    tell(EventKind::kDropped, from.name);
}

Peer Member::peer_at(std::size_t position) const {
    const RosterEntry& entry = view_->at(position);
    return {.name = entry.name, .address = entry.address};
}

ViewHandle Member::share(View view) const {
    if (options_->pool != nullptr) return options_->pool->share(std::move(view));
    return std::make_shared<const CommittedView>(std::move(view));
}

// Data of the other byte order are converted before they are combined or delivered.
void Member::swap_bytes(std::vector<std::byte>& data) const {
    const std::size_t excess = data.size() % options_->rules.granule;
    data.erase(data.end() - static_cast<std::ptrdiff_t>(excess), data.end());
    if (options_->rules.swap_bytes != nullptr) options_->rules.swap_bytes(data);
}

void Member::normalise(StartRecord& record) const {
    if (std::exchange(record.is_foreign, false)) swap_bytes(record.data);
}

void Member::normalise(Message& message) const {
    if (auto* const ack = std::get_if<PromiseAck>(&message.body)) normalise(ack->record);
    if (auto* const news = std::get_if<ViewNews>(&message.body))
        normalise(news->difference.rest.carry);
    if (!std::exchange(message.is_foreign, false)) return;
    if (auto* const ready = std::get_if<Ready>(&message.body)) swap_bytes(ready->data);
    if (auto* const start = std::get_if<Start>(&message.body)) swap_bytes(start->data);
}

Result<ViewHandle> Member::normalised(const Result<ViewHandle>& read) const {
    if (!read || *read == nullptr || !(*read)->view().carry.is_foreign) return read;
    View view = (*read)->view();
    normalise(view.carry);
    return share(std::move(view));
}

void Member::on_message(const Peer& from, Message message, Instant now) {
    // A daemon whose file is damaged may ask with any number, and is told the known one.
    const bool is_asking = is_one_of<Join, Promise, PromiseAck>(message.body);
    if (message.incarnation > kIncarnationMax && !is_asking) return drop(from);
    normalise(message);
    const Body& body = message.body;
    if (const auto* const news = std::get_if<ViewNews>(&body)) {
        on_view_news(from, *news, now);
    } else if (const auto* const part = std::get_if<ViewPart>(&body)) {
        on_view_part(from, *part, now);
    } else if (const auto* const want = std::get_if<ViewWant>(&body)) {
        on_view_want(from, *want);
    } else if (const auto* const nack = std::get_if<Nack>(&body)) {
        // `round` says which incarnation was meant: its lower half is enough to tell them apart.
        if (message.round == static_cast<std::uint32_t>(sent_incarnation()))
            on_nack(from, *nack, now);
    } else if (const auto* const join = std::get_if<Join>(&body)) {
        on_join(from, message, *join, now);
    } else if (std::holds_alternative<Leave>(body) && duty_ &&
               !view_->find(from.name, message.incarnation)) {
        on_joiner_leaves(from, message.incarnation);
    } else if (const auto* const redirect = std::get_if<Redirect>(&body)) {
        on_redirect(from, *redirect, now);
    } else if (const auto* const refuse = std::get_if<Refuse>(&body)) {
        if (message.round == static_cast<std::uint32_t>(incarnation_))
            on_refuse(from, *refuse, now);
    } else if (const auto* const promise = std::get_if<Promise>(&body)) {
        on_promise(from, message, *promise, now);
    } else if (const auto* const ack = std::get_if<PromiseAck>(&body)) {
        on_promise_ack(from, message, *ack, now);
    } else {
        on_tree_message(from, message, now);
    }
    if (duty_) maybe_change(now);
}

// Messages between members of one view.
void Member::on_tree_message(const Peer& from, const Message& message, Instant now) {
    const Body& body = message.body;
    if (!seated_) {
        // A beat answers a request to join: the root has it.
        const bool is_looking = create_at_ != kNever || now < found_until_;
        if (std::holds_alternative<Beat>(body) && is_looking) {
            found_until_ = after(now, options_->root_silent);
            if (from.name != self_.name) root_hint_ = from;
        }
        if (std::holds_alternative<Beat>(body) && from.name == root_hint_.name) root_heard_ = now;
        // The poll is for the process that this daemon was before. The answer says that it has
        // ended.
        if (std::holds_alternative<Poll>(body) && standing_ == Standing::kJoining &&
            !is_persisting_) {
            send(from, PollAck{});
        }
        return;
    }
    if (duty_ && std::holds_alternative<PollAck>(body)) {
        const Joiner* const joiner = duty_->joiners.find(from.name);
        if (joiner != nullptr && joiner->incarnation == message.incarnation)
            return duty_->joiners.may_enter_now(from.name);
    }
    if (message.view < view_number()) return send_nack(from, message.incarnation);
    const auto position = view_->find(from.name, message.incarnation);
    if (message.view > view_number()) {
        // A root that alone has the store makes all views. This one is of before its file was lost.
        if (duty_ && !is_shared()) return;
        return want_view(from, message.view, now);
    }
    if (!position || *position == position_) return drop(from);
    const bool is_order = is_one_of<Start, Abort, Closing, Poll, Beat>(body);
    if (has_promised()) {
        // The root learns that it lives in a view that nobody finishes any more.
        if (is_order) {
            send_round(root_peer(), static_cast<std::uint32_t>(view_->root().incarnation),
                       Nack{.number = view_number(), .is_promised = true});
        }
        return;
    }
    if (is_order && !is_from_above(*position)) return drop(from);
    if (is_one_of<Start, Abort, Closing, Poll>(body)) root_heard_ = now;

    if (const auto* const ready = std::get_if<Ready>(&body)) {
        on_ready(from, *position, message, *ready, now);
    } else if (const auto* const first = std::get_if<First>(&body)) {
        on_first(from, *position, message, *first, now);
    } else if (const auto* const closing = std::get_if<Closing>(&body)) {
        if (message.round != round_) return;
        const Instant since = now - span_of(closing->waited_us);
        const bool is_news = closing_since_ == kNever || since < closing_since_;
        note_closing(since, now);
        if (is_news) send_down(body, round_);
    } else if (const auto* const start = std::get_if<Start>(&body)) {
        on_start(from, *position, message, *start);
    } else if (const auto* const start_ack = std::get_if<StartAck>(&body)) {
        on_start_ack(*position, message, *start_ack);
    } else if (const auto* const abort = std::get_if<Abort>(&body)) {
        on_abort(message, *abort);
    } else if (std::holds_alternative<Poll>(body)) {
        on_poll(*position, message);
    } else if (const auto* const poll_ack = std::get_if<PollAck>(&body)) {
        on_poll_ack(from, *position, message, *poll_ack, now);
    } else if (const auto* const beat = std::get_if<Beat>(&body)) {
        root_heard_ = std::max(root_heard_, now - span_of(beat->age_us));
        if (*position != 0 || parent_of(position_, options_->fanout) == 0) send_down(body, round_);
    } else if (std::holds_alternative<Ask>(body)) {
        if (duty_) send(from, Beat{});
    } else if (std::holds_alternative<ViewAck>(body)) {
        if (Child* const child = child_at(*position)) child->has_view = true;
    } else if (std::holds_alternative<Leave>(body)) {
        if (duty_) duty_->leavers.insert(from.name);
    }
}

// -- time --

void Member::on_time(Instant now) {
    if (call_ && now >= after(call_->began, options_->watchdog())) on_watchdog(now);
    if (seated_) on_tree_time(now);
    if (standing_ == Standing::kLeaving && now >= leave_until_) {
        if (duty_ && !is_shared()) {
            leave_until_ = kNever;
        } else {
            tell(EventKind::kLeft, {});
            unseat();
            standing_ = Standing::kDetached;
        }
    }
    if (standing_ == Standing::kLeaving && !duty_) go_on_leaving(now);
    if (join_at_ != kNever && now >= join_at_) go_on_joining(now);
    if (now >= claim_at_) claim(now);
    if (assembly_.number != 0 && now >= assembly_.again_at) {
        // Somebody may have invented the number, and while the view is asked for, those with lower
        // numbers are not heard. If it exists, a member of it tells of it again.
        const bool is_stuck = now >= after(assembly_.since, 2 * options_->grace);
        const bool is_old = assembly_.number <= over();
        if (is_old || is_stuck || now >= after(root_heard_, 2 * options_->root_silent)) {
            assembly_ = {};
        } else {
            want_view(assembly_.from, assembly_.number, now);
        }
    }
    if ((phase_ == Phase::kSettling || phase_ == Phase::kRefused) && now >= settle_at_) {
        settle_at_ = after(now, options_->grace);
        ask_store(ReadFor::kSettle);
    }
    read_handover(now);
    on_takeover_time(now);
    if (duty_) on_root_time(now);
}

// A root that leaves may end before its last messages arrive. This member may be the next root
// then, and learns that from the store only.
bool Member::reads_while_leaving() const {
    return standing_ == Standing::kLeaving && seated_ && !duty_ && is_shared();
}

void Member::go_on_leaving(Instant now) {
    if (now >= leave_at_) {
        const Peer& root = seated_ ? root_peer() : root_hint_;
        if (!root.name.empty() && root.name != self_.name) send(root, Leave{});
        leave_at_ = after(now, options_->resend);
    }
    if (!reads_while_leaving() || now < leave_read_at_) return;
    leave_read_at_ = after(now, options_->grace);
    ask_store(ReadFor::kNews);
}

Instant Member::next_deadline() const {
    Instant due = kNever;
    const auto or_at = [&](Instant at) { due = std::min(due, at); };
    if (call_) or_at(after(call_->began, options_->watchdog()));
    if (seated_) {
        if (!has_promised()) {
            if (is_reported_ && !is_root_position()) or_at(resend_at_);
            if (!is_reported_) or_at(first_at_);
        }
        or_at(news_at_);
        if (!duty_ && !is_root_position()) or_at(ask_at_);
    }
    if (standing_ == Standing::kLeaving) {
        or_at(leave_until_);
        if (!duty_) or_at(leave_at_);
        if (reads_while_leaving()) or_at(leave_read_at_);
    }
    or_at(join_at_);
    or_at(claim_at_);
    if (assembly_.number != 0) or_at(assembly_.again_at);
    if (phase_ == Phase::kSettling || phase_ == Phase::kRefused) or_at(settle_at_);
    if (reads_handover()) or_at(handover_->read_at);
    if (candidacy_) {
        // While the store is asked whether a swap has happened, a candidate does nothing.
        if (phase_ == Phase::kNone) {
            or_at(candidacy_->resend_at);
            if (candidacy_->majority_at != kNever && !store_busy_)
                or_at(after(candidacy_->majority_at, wait_for_late()));
        }
    } else {
        or_at(candidate_at());
    }
    if (duty_) or_at(next_root_deadline());
    return due;
}

// The others may begin the epoch that the call was for. This node takes no part in it any more, nor
// in its view: the next call joins as a new incarnation.
void Member::on_watchdog(Instant now) {
    tell(EventKind::kLost, {});
    const bool was_seated = seated_;
    given_up_ = incarnation_;
    unseat();
    standing_ = Standing::kLost;
    if (was_seated) back_off(now);
    fail_call(Errc::kTimedOut, ETIMEDOUT, "no epoch in time");
}

// -- for status and tests --

bool Member::is_ready(std::size_t position) const {
    if (position == position_) return call_.has_value();
    const std::size_t first = first_child();
    return position >= first && position < first + children_.size() &&
           children_[position - first].is_ready;
}

std::uint64_t Member::fingerprint(Instant now) const {
    std::uint64_t hash = 1;
    const auto add = [&](std::uint64_t value) { hash = core::mix(hash, value); };
    const auto add_time = [&](Instant at) {
        if (at == kNever || at <= now) return add(at == kNever ? 1 : 2);
        add(static_cast<std::uint64_t>((at - now).count()) + 3);
    };
    const auto add_age = [&](Instant at) {
        add(at == kNever ? 1 : static_cast<std::uint64_t>((now - at).count()) + 3);
    };
    const auto add_bytes = [&](const auto& bytes) {
        add(bytes.size());
        for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
            add(word);
        }
    };
    const auto add_start = [&](const StartRecord& record) {
        add(record.view);
        add(record.round);
        add(static_cast<std::uint64_t>(record.epoch));
        add_bytes(record.data);
    };
    add(durable_);
    add(incarnation_);
    add(given_up_);
    add(is_persisting_ ? 1 : 0);
    add(static_cast<std::uint64_t>(standing_));
    add(call_ ? 1 : 0);
    if (call_) {
        add_bytes(call_->data);
        add_age(call_->began);
        add_age(call_->ready_since);
        add(call_->is_folded ? 1 : 0);
    }
    add(static_cast<std::uint64_t>(epoch_));
    add(static_cast<std::uint64_t>(newest_));
    add_start(last_start_);
    add(view_number());
    add(seated_ ? position_ + 1 : 0);
    add(round_);
    add(promised_);
    add(promised_anew_);
    for (const Child& child : children_) {
        add((child.is_ready ? 1U : 0U) + (child.has_view ? 2U : 0U) + (child.has_start ? 4U : 0U));
        if (child.is_ready) add_bytes(child.report.data);
    }
    add_time(news_at_);
    add(is_reported_ ? 1 : 0);
    add_time(resend_at_);
    add_age(closing_since_);
    add_time(first_at_);
    add_age(root_heard_);
    add_time(majority_waived_until_);
    add_time(ask_at_);
    add(assembly_.number);
    add(handover_ ? handover_->number : 0);
    if (handover_) {
        add(handover_->view == nullptr ? 0 : 1);
        add_time(handover_->read_at);
        add_time(handover_->until);
    }
    add_time(join_at_);
    add_time(join_not_before_);
    add(failures_);
    add_bytes(root_hint_.name);
    add(record_ == nullptr ? 0 : record_->number());
    add_time(read_at_);
    add_time(create_at_);
    add_time(found_until_);
    add_time(claim_at_);
    add_time(leave_until_);
    add_time(leave_at_);
    add_time(leave_read_at_);
    add((store_busy_ ? 1U : 0U) + (store_ignored_ ? 2U : 0U) + (is_view_lost_ ? 4U : 0U));
    add(static_cast<std::uint64_t>(lost_pause_.count()));
    add(static_cast<std::uint64_t>(phase_));
    add(static_cast<std::uint64_t>(swap_));
    add(swap_next_ == nullptr ? 0 : swap_next_->number());
    add_time(settle_at_);
    add(duty_ ? 1 : 0);
    if (duty_) {
        add(static_cast<std::uint64_t>(duty_->next));
        add_age(duty_->view_since);
        add_age(duty_->started_at);
        add_time(duty_->polled_at);
        add_time(duty_->poll_not_before);
        add(duty_->answers.size());
        for (const auto& [at, ack] : duty_->answers) {
            add(at);
            add(static_cast<std::uint64_t>(ack.state));
        }
        for (const std::uint32_t at : duty_->polled) add(at);
        add_time(duty_->start_due);
        add(duty_->start_retried ? 1 : 0);
        for (const std::uint32_t at : duty_->has_start) add(at);
        for (const auto& [name, joiner] : duty_->joiners.all()) {
            add_bytes(name);
            add(joiner.incarnation);
        }
        for (const auto& name : duty_->leavers) add_bytes(name);
        for (const auto& [name, reason] : duty_->evict) add_bytes(name);
        for (const auto& name : duty_->to_front) add_bytes(name);
        add((duty_->wants_bump ? 1U : 0U) + (duty_->wants_out ? 2U : 0U) +
            (duty_->wants_in ? 4U : 0U) + (duty_->admitted_in_closing ? 8U : 0U));
        add_time(duty_->admit_at);
        add_time(duty_->change_at);
        add_time(duty_->beat_at);
    }
    add(candidacy_ ? candidacy_->target->number() : 0);
    if (candidacy_) {
        for (const auto& [name, ack] : candidacy_->granted) {
            add_bytes(name);
            add((ack.is_member ? 1U : 0U) + (ack.wants_join ? 2U : 0U));
            add_start(ack.record);
        }
        add_age(candidacy_->majority_at);
        add_time(candidacy_->resend_at);
    }
    return hash;
}

}  // namespace fopd::eh::peers
