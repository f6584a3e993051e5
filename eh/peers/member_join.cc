// How a process becomes a member, and the handling of answers of the view store.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"
#include "eh/peers/member.h"

namespace fopd::eh::peers {

namespace {

constexpr const char* kOtherRules = "other nodes have other rules for epochs";
// A daemon whose incarnation nobody knows begins below this one.
constexpr Incarnation kUnknownMax = Incarnation{1} << 40;
// An incarnation is this far above the known one of its name at most: no daemon asks so often in
// vain.
constexpr Incarnation kLeapMax = Incarnation{1} << 24;
// A daemon believes that the known incarnation of its name is this far above its own at most.
// Whoever joins under the name, with higher and higher numbers, needs a million views to get there.
constexpr Incarnation kBelievedMax = Incarnation{1} << 44;

// A number above `known`. Daemons that had different numbers before get different ones.
Incarnation number_behind(Incarnation known, Incarnation before) {
    constexpr std::uint64_t kSpread = 1 << 16;
    return known + 1 + core::mix(1, before) % kSpread;
}

}  // namespace

// Whether a daemon may have this incarnation, if `known` is the newest one that is known of its
// name; 0: none is.
bool Member::is_plausible(Incarnation incarnation, Incarnation known) {
    return incarnation <= std::min(kIncarnationMax, std::max(known, kUnknownMax) + kLeapMax);
}

CommonRules Member::rules() const {
    const auto ns = [](Duration span) { return static_cast<std::uint64_t>(span.count()); };
    return {.hash = options_->rules_hash,
            .timeout_ns = ns(options_->rules.timeout),
            .grace_ns = ns(options_->grace),
            .root_silent_ns = ns(options_->root_silent),
            .fanout = static_cast<std::uint32_t>(options_->fanout)};
}

Join Member::request_to_join() const {
    return {.address = self_.address, .rules = rules(), .newest = newest_};
}

// Gives the root of `next` a block of its own, behind the numbers up to `had` that are heeded.
void Member::take_block(View& next, EpochNumber had) const {
    next.epoch_low = std::max(next.epoch_high, std::min(had, kNewestHeeded)) + 1;
    next.epoch_high = next.epoch_low + options_->block - 1;
}

// kNone: the rules are the same.
UnlikeRule Member::unlike(const CommonRules& other) const {
    const CommonRules own = rules();
    if (other.hash == own.hash) return UnlikeRule::kNone;
    if (other.timeout_ns != own.timeout_ns) return UnlikeRule::kTimeout;
    if (other.grace_ns != own.grace_ns) return UnlikeRule::kGrace;
    if (other.root_silent_ns != own.root_silent_ns) return UnlikeRule::kRootSilent;
    if (other.fanout != own.fanout) return UnlikeRule::kFanout;
    return UnlikeRule::kPolicies;
}

// Each attempt to join uses a new incarnation.
void Member::begin_join(Instant now) {
    if (standing_ == Standing::kLeaving) unseat();
    standing_ = Standing::kJoining;
    join_at_ = kNever;
    claim_at_ = kNever;
    create_at_ = kNever;
    found_until_ = {};
    if (!seated_) root_heard_ = now;
    // Somebody has lied about a higher number, and no root puts its epochs behind that. This member
    // would take none of their lower numbers.
    if (!seated_) newest_ = std::min(newest_, kNewestHeeded);
    if (!is_shared()) root_hint_ = options_->root;
    if (std::exchange(is_persisting_, true)) return;
    effects_.emplace_back(Persist{.incarnation = durable_ + 1});
}

void Member::on_persisted(Incarnation incarnation, Instant now) {
    is_persisting_ = false;
    if (incarnation <= durable_) {
        // A higher one of this name was found meanwhile.
        if (standing_ == Standing::kJoining) begin_join(now);
        return;
    }
    durable_ = incarnation;
    if (standing_ != Standing::kJoining) return;
    incarnation_ = incarnation;
    if (!seated_) promised_anew_ = 0;
    join_at_ = std::max(now, join_not_before_);
    read_at_ = join_at_;
    if (!seated_) root_heard_ = join_at_;
    on_time(now);
}

void Member::go_on_joining(Instant now) {
    join_at_ = after(now, options_->grace);
    if (seated_) {
        if (!duty_) return;
        duty_->wants_in = true;
        return maybe_change(now);
    }
    const bool knows_root = !root_hint_.name.empty() && root_hint_.name != self_.name;
    if (reaches_store() && (!knows_root || now >= read_at_) && !candidacy_) {
        if (ask_store(ReadFor::kJoin)) read_at_ = after(now, options_->root_silent);
    }
    if (!knows_root) return;
    send(root_hint_, request_to_join());
}

// The roster or the root has a higher incarnation of this name. Another daemon of the name may hear
// the same: the two must not go on with one number.
void Member::pass_incarnation(Incarnation known) {
    durable_ = std::max(durable_, number_behind(known, durable_));
}

// The number of this daemon is so high that no root takes it: its file is damaged, or it was told
// a wrong number. It goes on like a daemon that has lost its file.
void Member::begin_behind(Incarnation known) {
    durable_ = number_behind(known, durable_);
    given_up_ = 0;
}

// The root's next incarnation takes over from it: nobody else answers at the root's address.
void Member::claim(Instant now) {
    const bool may = claim_at_ != kNever && standing_ == Standing::kJoining && !seated_ &&
                     !is_persisting_ && record_ != nullptr && phase_ == Phase::kNone && !candidacy_;
    claim_at_ = kNever;
    if (may) begin_candidacy(record_, now);
}

// Takes a view that was read from the store or received from another member. Null: ignored.
void Member::learn(const ViewHandle& record, Instant now) {
    if (record == nullptr) return;
    // Another has made the view that this candidate was about to make.
    if (candidacy_ && record->number() > candidacy_->target->number()) candidacy_.reset();
    if (standing_ == Standing::kJoining && !seated_) return use_record(record, now);
    adopt(record, news_heard_of(*record), now);
}

void Member::use_record(const ViewHandle& record, Instant now) {
    if (is_persisting_ || phase_ != Phase::kNone || candidacy_) return;
    if (record != nullptr && record->gone(self_.name) >= incarnation_) {
        pass_incarnation(record->gone(self_.name));
        return begin_join(now);
    }
    if (record == nullptr || record->empty()) {
        if (looks_for_members(now)) return;
        return create_view(record, now);
    }
    const bool is_new = record_ == nullptr || record_->number() < record->number();
    const auto position = record->find(self_.name);
    if (position && record->at(*position).incarnation > incarnation_) {
        pass_incarnation(record->at(*position).incarnation);
        return begin_join(now);
    }
    if (position && record->at(*position).incarnation == incarnation_)
        return adopt(record, std::nullopt, now);
    record_ = record;
    // The root was this node, and its earlier incarnation is gone. In a shared store a root at
    // another address may be another daemon of the same name.
    const bool is_own = !is_shared() || record->root().address == self_.address;
    if (position && *position == 0 && is_own) {
        if (!is_shared()) return begin_candidacy(record, now);
        if (claim_at_ != kNever) return;
        // If another daemon has this name and lives, it answers. Otherwise this comes back.
        claim_at_ = after(now, options_->grace);
        return send({.name = self_.name, .address = self_.address}, request_to_join());
    }
    root_hint_ = {.name = record->root().name, .address = record->root().address};
    if (!is_new) return;
    root_heard_ = now;
    send(root_hint_, request_to_join());
}

// Asks the daemons that this one knows whether they are members. Somebody may have removed or
// emptied the view while they run, and a second cluster must not begin beside them. True: one of
// them is, or may still say so.
bool Member::looks_for_members(Instant now) {
    // A root that alone has the store makes all views, whatever others say.
    if (!is_shared()) return false;
    if (now < found_until_) return true;
    if (options_->others.empty()) return false;
    const bool is_gone = std::exchange(found_until_, Instant{}) != Instant{};
    if (create_at_ != kNever && !is_gone) return now < create_at_;
    // The one that has answered has ended since: another one knows more, or nobody does.
    if (is_gone) root_hint_ = {};
    create_at_ = after(now, options_->grace);
    for (const Peer& other : options_->others) {
        if (other.name != self_.name) send(other, request_to_join());
    }
    return true;
}

// There are no members.
void Member::create_view(const ViewHandle& record, Instant now) {
    if (store_busy_) return;
    View next;
    if (record != nullptr) next = record->view();
    ++next.number;
    take_block(next, newest_);
    next.rules_hash = options_->rules_hash;
    next.roster = {{.name = self_.name,
                    .incarnation = incarnation_,
                    .address = self_.address,
                    .joined = next.number}};
    if (record != nullptr) note_gone(record->view(), next);
    if (begin_swap(SwapKind::kCreate, share(std::move(next)))) return;
    end_join(Errc::kNoSpace, EOVERFLOW, "the numbers of epochs are used up", now);
}

void Member::on_join(const Peer& from, const Message& message, const Join& join, Instant now) {
    const Peer to{.name = from.name, .address = join.address};
    const auto refuse = [&](RefuseReason reason, Incarnation incarnation,
                            UnlikeRule rule = UnlikeRule::kNone) {
        send_round(to, static_cast<std::uint32_t>(message.incarnation),
                   Refuse{.reason = reason, .incarnation = incarnation, .rule = rule});
    };
    if (message.incarnation == 0 || join.newest < 0 || join.newest > kEpochMax) return drop(from);
    if (!duty_) {
        if (from.name == self_.name && message.incarnation == incarnation_) return claim(now);
        // One that is in no view says so: its silence would look like a network that brings
        // nothing.
        if (!seated_) return send(to, Redirect{});
        return send(to, Redirect{.root = root_peer().name, .root_address = root_peer().address});
    }
    if (const UnlikeRule rule = unlike(join.rules); rule != UnlikeRule::kNone) {
        tell_unlike(from.name, rule);
        return refuse(RefuseReason::kRules, 0, rule);
    }
    if (from.name == self_.name) {
        // The request is this member's own, from before it became root, or a second daemon has its
        // name.
        const bool is_own = message.incarnation == sent_incarnation();
        return is_own ? void() : refuse_second(to, message.incarnation);
    }
    const auto seat = view_->find(from.name);
    const Incarnation gone = view_->gone(from.name);  // 0 for a member.
    const Incarnation newest = seat ? view_->at(*seat).incarnation : gone;
    if (!is_plausible(message.incarnation, newest)) {
        drop(from);
        return refuse(RefuseReason::kIncarnation, newest);
    }
    if (gone >= message.incarnation) return refuse(RefuseReason::kIncarnation, gone);
    Instant not_before{};
    const Joiner* const known = duty_->joiners.find(from.name);
    if (seat) {
        const RosterEntry& old = view_->at(*seat);
        if (old.incarnation == message.incarnation) return send_view(to, false);
        if (old.incarnation > message.incarnation)
            return refuse(RefuseReason::kIncarnation, old.incarnation);
        if (known == nullptr || known->incarnation != message.incarnation) {
            // Two daemons of one name, unless the old one is gone.
            send(peer_at(*seat), Poll{});
            not_before = after(now, options_->grace);
        }
    }
    send(to, Beat{});
    if (duty_->joiners.size() >= kRosterMax - view_->size()) return;
    if (known != nullptr && known->incarnation >= message.incarnation) return;
    duty_->joiners.put(from.name, {.incarnation = message.incarnation,
                                   .address = join.address,
                                   .not_before = not_before,
                                   .newest = std::min(join.newest, kNewestHeeded),
                                   .replaces = seat.has_value()});
    note_admission(now);
}

// Another daemon has the name of this member, which lives.
void Member::refuse_second(const Peer& to, Incarnation incarnation) {
    tell_second(to.name, to.address);
    send_round(to, static_cast<std::uint32_t>(incarnation),
               Refuse{.reason = RefuseReason::kSecondOfName,
                      .incarnation = sent_incarnation(),
                      .address = self_.address});
}

// A daemon stops while it joins. If it is in the view that is being written, it leaves that one.
void Member::on_joiner_leaves(const Peer& from, Incarnation incarnation) {
    if (swap_next_ != nullptr && swap_next_->find(from.name, incarnation)) {
        duty_->leavers.insert(from.name);
        return;
    }
    const Joiner* const joiner = duty_->joiners.find(from.name);
    if (joiner != nullptr && joiner->incarnation <= incarnation) duty_->joiners.erase(from.name);
    send_nack(from, incarnation);
}

void Member::on_redirect(const Peer& from, const Redirect& redirect, Instant now) {
    if (standing_ != Standing::kJoining || seated_) return;
    // The sender is in no view itself. It is asked again soon, like everybody else.
    if (redirect.root.empty()) return;
    found_until_ = after(now, options_->root_silent);
    if (redirect.root == self_.name || redirect.root == root_hint_.name) return;
    if (!is_shared()) {
        if (unlike_.insert(from.name).second) tell_unlike(from.name, UnlikeRule::kRoot);
        return;
    }
    root_hint_ = {.name = redirect.root, .address = redirect.root_address};
    join_at_ = std::max(now, join_not_before_);
}

void Member::on_refuse(const Peer& from, const Refuse& refuse, Instant now) {
    if (refuse.reason == RefuseReason::kSecondOfName) tell_second(self_.name, refuse.address);
    if (refuse.reason == RefuseReason::kRules) {
        tell_unlike(from.name, refuse.rule);
        // One that does not promise; others may.
        if (candidacy_) return;
    }
    if (standing_ != Standing::kJoining || seated_) return;
    if (refuse.reason == RefuseReason::kIncarnation) {
        if (refuse.incarnation > kIncarnationMax) return drop(from);
        // The store decides about the view that this daemon writes with its number.
        if (swap_ != SwapKind::kNone) return;
        if (!is_plausible(incarnation_, refuse.incarnation)) {
            candidacy_.reset();
            begin_behind(refuse.incarnation);
        } else if (refuse.incarnation <= std::max(durable_, kUnknownMax) + kBelievedMax) {
            pass_incarnation(refuse.incarnation);
        } else {
            return drop(from);
        }
        return begin_join(now);
    }
    if (refuse.reason == RefuseReason::kRules) {
        end_join(Errc::kInvalid, EPROTO, kOtherRules, now);
    } else if (swap_ == SwapKind::kNone) {
        candidacy_.reset();
        end_join(Errc::kDenied, EEXIST, "another daemon has this name", now);
    }
}

void Member::end_join(Errc code, std::int32_t os_errno, const char* context, Instant now) {
    standing_ = Standing::kDetached;
    join_at_ = kNever;
    claim_at_ = kNever;
    back_off(now);
    fail_call(code, os_errno, context);
}

// -- the view store --

bool Member::ask_store(ReadFor reason) {
    if (store_busy_) return false;
    store_busy_ = true;
    read_for_ = reason;
    effects_.emplace_back(ReadStore{});
    return true;
}

// False: the numbers of epochs are used up. Nobody could read the view, and so nobody replace it.
bool Member::begin_swap(SwapKind kind, const ViewHandle& next) {
    ENSURE(!store_busy_);
    if (next->view().epoch_high > kEpochMax) {
        tell(EventKind::kNumbersUsedUp, {});
        return false;
    }
    View written = next->view();
    written.writer = {.name = self_.name, .incarnation = incarnation_, .attempt = ++attempts_};
    swap_ = kind;
    swap_next_ = share(std::move(written));
    write_swap();
    return true;
}

void Member::write_swap() {
    phase_ = Phase::kSwapping;
    store_busy_ = true;
    effects_.emplace_back(SwapStore{.expected = swap_next_->number() - 1, .next = swap_next_});
}

// Whatever the store answers later is not waited for.
void Member::forget_swap() {
    if (phase_ == Phase::kNone) return;
    if (store_busy_) store_ignored_ = true;
    phase_ = Phase::kNone;
    swap_ = SwapKind::kNone;
    swap_next_.reset();
    settle_at_ = kNever;
}

void Member::on_view_read(const Result<ViewHandle>& stored, Instant now) {
    store_busy_ = false;
    if (std::exchange(store_ignored_, false)) return;
    const Result<ViewHandle> read = normalised(stored);
    switch (read_for_) {
        case ReadFor::kJoin:
            if (read && standing_ == Standing::kJoining && !seated_) use_record(*read, now);
            break;
        case ReadFor::kNews:
            if (read) learn(*read, now);
            break;
        case ReadFor::kCandidacy:
            candidate_not_before_ = after(now, options_->grace);
            if (read && lost_view(*read)) {
                note_lost_view(*read);
                candidate_not_before_ = after(now, lost_pause_);
                break;
            }
            if (!read || *read == nullptr) break;
            note_found_view();
            if ((*read)->number() == view_number() && seated_ && !duty_) {
                begin_candidacy(*read, now);
            } else if (is_new() && record_ != nullptr && (*read)->find(self_.name) &&
                       (*read)->number() == record_->number()) {
                begin_candidacy(*read, now);
            } else {
                learn(*read, now);
            }
            break;
        case ReadFor::kProbe:
            if (phase_ != Phase::kProbing) break;
            phase_ = Phase::kNone;
            if (duty_) on_probed(read, now);
            break;
        case ReadFor::kSettle: on_settled(read, now); break;
    }
    read_handover(now);
    if (duty_) maybe_change(now);
}

// As root, before it changes the view.
void Member::on_probed(const Result<ViewHandle>& read, Instant now) {
    if (!read) {
        duty_->change_at = after(now, options_->grace);
    } else if (lost_view(*read)) {
        note_lost_view(*read);
        duty_->change_at = after(now, lost_pause_);
    } else if ((*read)->number() == view_number()) {
        note_found_view();
        duty_->change_at = kNever;
        change_view(now);
    } else {
        tell(EventKind::kAbdicates, {});
        learn(*read, now);
        if (duty_ && view_number() < (*read)->number()) lose_seat(now);
    }
}

// Whether the store has less than this member is in: its view was removed, or an older one put back
// in its place, perhaps with other views after it, or somebody has changed it. Then it is as if the
// store failed.
bool Member::lost_view(const ViewHandle& record) const {
    if (!seated_) return false;
    if (record == nullptr || record->number() < view_number()) return true;
    if (record->number() > view_number()) return false;
    return record->view().writer != view_->view().writer ||
           !record->find(self_.name, sent_incarnation());
}

void Member::note_lost_view(const ViewHandle& record) {
    lost_pause_ = std::clamp(2 * lost_pause_, options_->grace,
                             std::max(options_->grace, options_->back_off_max));
    if (std::exchange(is_view_lost_, true)) return;
    effects_.emplace_back(Event{.kind = EventKind::kViewLost,
                                .view = view_number(),
                                .found = record == nullptr ? 0 : record->number()});
}

void Member::note_found_view() {
    is_view_lost_ = false;
    lost_pause_ = {};
}

void Member::on_view_swapped(Swapped outcome, Instant now) {
    store_busy_ = false;
    if (std::exchange(store_ignored_, false) || swap_ == SwapKind::kNone) return;
    if (outcome == Swapped::kYes) return end_swap(now);
    phase_ = outcome == Swapped::kUnknown ? Phase::kSettling : Phase::kRefused;
    settle_at_ = after(now, options_->grace);
    ask_store(ReadFor::kSettle);
}

// A view that was written in the end may still come after an unknown outcome: as long as the store
// has the old view, only writing the same one again brings certainty.
void Member::on_settled(const Result<ViewHandle>& read, Instant now) {
    if (!read || swap_ == SwapKind::kNone) return;
    const ViewHandle& record = *read;
    const ViewNumber number = record == nullptr ? 0 : record->number();
    if (number == swap_next_->number() && record->view().writer == swap_next_->view().writer)
        return end_swap(now);
    if (number >= swap_next_->number()) return lose_swap(record, now);
    if (phase_ == Phase::kRefused) {
        candidacy_.reset();
        forget_swap();
        if (!duty_) return;
        // The store takes no view just now, and is asked again later; epochs go on meanwhile.
        duty_->change_at = after(now, options_->grace);
        return decide(now);
    }
    write_swap();
}

void Member::end_swap(Instant now) {
    const SwapKind kind = swap_;
    const ViewHandle next = std::exchange(swap_next_, nullptr);
    phase_ = Phase::kNone;
    swap_ = SwapKind::kNone;
    settle_at_ = kNever;
    const ViewHandle before = candidacy_ ? candidacy_->target : nullptr;
    const bool takes_over = kind == SwapKind::kTakeOver && before != nullptr;
    std::optional<ViewDifference> news = news_of(takes_over ? before : view_, *next);
    if (duty_ && !next->find(self_.name)) {
        if (!next->empty()) tell_successor(*next, news);
        release_leavers(*next);
    }
    adopting_ = kind;
    adopt(next, std::move(news), now);
    adopting_ = SwapKind::kNone;
    if (takes_over && duty_ && view_number() == next->number()) tell_takeover(before->view());
    if (duty_) maybe_change(now);
}

void Member::lose_swap(const ViewHandle& record, Instant now) {
    if (duty_) tell(EventKind::kAbdicates, {});
    forget_swap();
    candidacy_.reset();
    learn(record, now);
}

}  // namespace fopd::eh::peers
