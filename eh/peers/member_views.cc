// Views: how they reach a member, and the changes that a new view makes to its state.

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/ensure.h"
#include "eh/peers/member.h"

namespace fopd::eh::peers {

namespace {

// The longest view of which parts are kept until all have arrived.
constexpr std::size_t kViewBytesMax = kRosterMax * (kMemberNameMax + kMemberAddressMax + 32);

bool fits_in_message(const ViewDifference& difference) {
    // An upper bound of the bytes of its message.
    std::size_t bytes = 512 + difference.rest.carry.data.size();
    for (const GoneMember& gone : difference.rest.gone) bytes += 12 + gone.name.size();
    bytes += 4 * (difference.first.size() + difference.removed.size());
    for (const RosterEntry& entry : difference.added)
        bytes += 32 + entry.name.size() + entry.address.size();
    return bytes <= kViewPartMax;
}

}  // namespace

void Member::seat(ViewHandle view, Instant now) {
    const auto position = view->find(self_.name);
    ENSURE(position.has_value());
    durable_ = incarnation_ = view->at(*position).incarnation;
    standing_ = Standing::kMember;
    take_seat(view, *position, now);
    for (Child& child : children_) child.has_view = true;
    news_at_ = kNever;
}

// The member takes part in no view up to this number. No view contains an incarnation that has not
// asked to join yet. So for a new incarnation that is in no view only its own promises count,
// because view numbers begin again when a store has lost its view.
ViewNumber Member::over() const {
    return is_new() ? promised() : std::max(view_number(), promised());
}

bool Member::is_new() const {
    return standing_ == Standing::kJoining && !seated_ && !is_persisting_;
}

void Member::note_promise(ViewNumber number) {
    promised_ = std::max(promised_, number);
    promised_anew_ = std::max(promised_anew_, number);
}

// Takes part in a committed view, or learns that it is not in it.
void Member::adopt(const ViewHandle& next, std::optional<ViewDifference> news, Instant now) {
    if (next->number() <= over()) return;
    const bool begins_again = next->number() <= std::max(view_number(), promised_);
    auto position = next->find(self_.name, sent_incarnation());
    // A root that contributes again has a new incarnation from this view on.
    if (!position && duty_) position = next->find(self_.name, incarnation_);
    // A member that has given up its membership stays out, even if the view has it: its next
    // incarnation joins.
    if (!seated_ && incarnation_ <= given_up_) position.reset();
    if (!position && begins_again) return;
    if (!position) {
        if (seated_) {
            tell_gone(next->empty() ? std::string() : next->root().name);
            lose_seat(now);
        }
        if (!next->empty()) {
            root_hint_ = {.name = next->root().name, .address = next->root().address};
            if (record_ == nullptr || record_->number() < next->number()) record_ = next;
        }
        return;
    }
    // Whoever made the view has let this member in by mistake.
    if (next->view().rules_hash != options_->rules_hash) return refuse_view(*next, now);
    if (begins_again) {
        promised_ = promised_anew_;
        last_start_ = {};
        left_view_ = {};
    }
    majority_waived_until_ = {};
    take_carry(next->view());
    // Somebody has lied about an epoch so high: later ones have lower numbers.
    if (newest_ > std::max(kNewestHeeded, next->view().epoch_high)) newest_ = kNewestHeeded;
    const bool takes_part = next->at(*position).takes_part;
    if (standing_ == Standing::kJoining && takes_part) {
        standing_ = Standing::kMember;
        if (call_) call_->ready_since = now;
        tell(EventKind::kJoined, {});
    } else if (standing_ == Standing::kDetached && takes_part) {
        // It has left since it asked to join.
        standing_ = Standing::kLeaving;
        leave_until_ = after(now, options_->root_silent);
        leave_read_at_ = after(now, options_->grace);
    } else if (!takes_part && (standing_ == Standing::kLeaving || standing_ == Standing::kMember)) {
        if (call_ && standing_ == Standing::kMember) fail_call(Errc::kClosed, ESTALE, "evicted");
        tell_gone({});
        standing_ = Standing::kDetached;
    }
    news_ = std::move(news);
    take_seat(next, *position, now);
}

void Member::refuse_view(const CommittedView& next, Instant now) {
    tell_unlike(next.root().name, UnlikeRule::kNone);
    if (seated_) return lose_seat(now);
    if (standing_ == Standing::kJoining)
        end_join(Errc::kInvalid, EPROTO, "the view has other rules", now);
}

void Member::take_seat(const ViewHandle& next, std::size_t position, Instant now) {
    const ViewHandle before = std::exchange(view_, next);
    const bool was_root = duty_.has_value();
    const Instant closing = seated_ ? closing_since_ : kNever;
    if (seated_ && before->at(position_).takes_part && standing_ == Standing::kMember) {
        const bool began = last_start_.view == before->number();
        left_view_ = {.view = before->number(), .newest = began ? last_start_.epoch : 0};
    }
    seated_ = true;
    position_ = position;
    children_.assign(child_count(position, next->size(), options_->fanout), Child{});
    assembly_ = {};
    record_.reset();
    handover_.reset();
    join_at_ = standing_ == Standing::kJoining ? join_at_ : kNever;
    root_heard_ = now;
    unlike_.clear();
    ask_at_ = after(now, options_->ask_after());
    if (swap_ != SwapKind::kNone) forget_swap();
    candidacy_.reset();
    begin_round(1);
    // The timeout is not restarted: other members may have waited for a long time.
    if (call_ && standing_ == Standing::kMember) {
        call_->is_folded = false;
        closing_since_ = call_->ready_since;
        if (closing != kNever) closing_since_ = std::min(closing, closing_since_);
        first_at_ = std::max(now, after(closing_since_, options_->first_delay()));
    }
    if (is_root_position()) {
        begin_duty(was_root, now);
    } else {
        duty_.reset();
        if (phase_ == Phase::kProbing) forget_swap();
        if (standing_ == Standing::kLeaving) leave_at_ = now;
        send(peer_at(parent_of(position_, options_->fanout)), ViewAck{});
    }
    if (!children_.empty()) {
        tell_children();
        news_step_ = 2 * options_->resend;
        news_at_ = after(now, news_step_);
    }
    if (duty_ && was_root && before != nullptr) {
        note_change_committed(before->view(), now);
        // Others wait, although this root does not, and have not reported in this view yet.
        if (closing != kNever) duty_->admitted_in_closing = true;
    }
    try_fold(now);
}

// Members of the view before may have begun an epoch that this one has not heard of.
void Member::take_carry(const View& next) {
    const StartRecord& carry = next.carry;
    if (!seated_ || carry.view != view_number() || carry.round != round_) return;
    if (!call_ || !call_->is_folded || carry.epoch <= newest_) return;
    if (!is_in_block(carry.epoch, view_->view())) return;
    last_start_ = carry;
    newest_ = epoch_ = carry.epoch;
    answer(epoch_, carry.data);
}

// The others go on without this member.
void Member::lose_seat(Instant now) {
    given_up_ = incarnation_;
    unseat();
    if (standing_ != Standing::kLeaving) back_off(now);
    standing_ = Standing::kDetached;
    fail_call(Errc::kClosed, ESTALE, "evicted");
}

void Member::unseat() {
    seated_ = false;
    duty_.reset();
    candidacy_.reset();
    forget_swap();
    assembly_ = {};
    handover_.reset();
    children_.clear();
    begin_round(1);
    news_at_ = kNever;
    ask_at_ = kNever;
    join_at_ = kNever;
}

// Waits longer before each rejoin, until epochs go well again.
void Member::back_off(Instant now) {
    const std::uint32_t doublings = std::min<std::uint32_t>(failures_++, 16);
    good_epochs_ = 0;
    if (doublings == 0) return;
    const Duration span = std::min(options_->grace * (1 << doublings), options_->back_off_max);
    // Members that were evicted together do not return together.
    std::uint64_t spread = incarnation_;
    for (const char c : self_.name) spread = spread * 131 + static_cast<unsigned char>(c);
    join_not_before_ = after(now, span + span / 64 * static_cast<int>(spread % 16));
}

void Member::hold_back(Instant now) {
    if (!seated_) back_off(now);
}

// -- telling --

void Member::tell_children() {
    for (std::size_t i = 0; i < children_.size(); ++i) {
        if (children_[i].has_view) continue;
        const std::size_t position = first_child() + i;
        send_view(peer_at(position), view_->at(position).joined < view_number());
    }
}

void Member::send_view(const Peer& to, bool has_base) {
    if (has_base && news_ && fits_in_message(*news_))
        return send(to, ViewNews{.difference = *news_});
    on_view_want(to, {.number = view_number(), .offset = 0});
}

// A root that leaves tells the next one, and does not stay to send a long view in parts: the store
// has it.
void Member::tell_successor(const CommittedView& next, const std::optional<ViewDifference>& news) {
    const Peer to{.name = next.root().name, .address = next.root().address};
    const bool has_base = view_->find(to.name, next.root().incarnation).has_value();
    if (has_base && news && fits_in_message(*news)) return send(to, ViewNews{.difference = *news});
    send_round(to, static_cast<std::uint32_t>(next.root().incarnation),
               Nack{.number = next.number(), .root = to.name, .root_address = to.address});
}

// A root that leaves with others tells them that they are out.
void Member::release_leavers(const CommittedView& next) {
    for (const RosterEntry& entry : view_->view().roster) {
        if (!duty_->leavers.contains(entry.name) || next.find(entry.name)) continue;
        Nack nack{.number = next.number(), .is_excluded = true};
        if (!next.empty()) nack.root = next.root().name;
        if (!next.empty()) nack.root_address = next.root().address;
        send_round({.name = entry.name, .address = entry.address},
                   static_cast<std::uint32_t>(entry.incarnation), std::move(nack));
    }
}

void Member::on_view_want(const Peer& from, const ViewWant& want) {
    if (view_ == nullptr || !seated_) return;
    const std::vector<std::byte>& bytes = view_->bytes();
    const std::size_t offset = want.number == view_number() ? want.offset : 0;
    if (offset >= bytes.size()) return;
    const std::size_t size = std::min(kViewPartMax, bytes.size() - offset);
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
    send(from, ViewPart{.number = view_number(),
                        .offset = static_cast<std::uint32_t>(offset),
                        .total = static_cast<std::uint32_t>(bytes.size()),
                        .bytes{first, first + static_cast<std::ptrdiff_t>(size)}});
    // The sender may have been polled while it was in an older view, and has not answered: it gets
    // the poll again, behind the last part of this view.
    const bool is_last = offset + size == bytes.size();
    if (duty_ && duty_->polled_at != kNever && is_last) send(from, Poll{});
}

// Tells the sender of an old message about this view.
void Member::send_nack(const Peer& to, Incarnation incarnation) {
    const bool is_in = view_->find(to.name, incarnation).has_value();
    send_round(to, static_cast<std::uint32_t>(incarnation),
               Nack{.number = view_number(),
                    .is_excluded = !is_in,
                    .root = view_->root().name,
                    .root_address = view_->root().address});
}

// -- hearing --

void Member::want_view(const Peer& from, ViewNumber number, Instant now) {
    if (number <= over()) return;
    if (assembly_.number > number || (assembly_.number == number && now < assembly_.again_at))
        return;
    if (assembly_.number != number) assembly_ = {.number = number, .since = now};
    assembly_.from = from;
    assembly_.again_at = after(now, 2 * options_->resend);
    send(from,
         ViewWant{.number = number, .offset = static_cast<std::uint32_t>(assembly_.bytes.size())});
}

void Member::on_view_news(const Peer& from, const ViewNews& news, Instant now) {
    const ViewDifference& difference = news.difference;
    const ViewNumber number = difference.rest.number;
    if (seated_ && number == view_number()) return send(from, ViewAck{});
    if (number <= over()) return;
    if (!seated_ || difference.base != view_number()) return want_view(from, number, now);
    auto next = apply(view_->view(), difference);
    // Somebody has lied: either the difference is wrong, or the view of this member.
    if (!next) return want_view(from, number, now);
    hear_view(from, share(*std::move(next)), difference, now);
}

void Member::on_view_part(const Peer& from, const ViewPart& part, Instant now) {
    if (seated_ && part.number == view_number()) return send(from, ViewAck{});
    if (part.number <= over()) return;
    if (part.total > kViewBytesMax || part.bytes.empty()) return drop(from);
    if (part.number < assembly_.number) return;
    if (part.number != assembly_.number) {
        if (part.offset != 0) return want_view(from, part.number, now);
        assembly_ = {.number = part.number,
                     .from = from,
                     .again_at = after(now, 2 * options_->resend),
                     .since = now};
    }
    if (part.offset != assembly_.bytes.size() || part.offset + part.bytes.size() > part.total) {
        return;
    }
    assembly_.from = from;
    assembly_.since = now;
    assembly_.bytes.insert(assembly_.bytes.end(), part.bytes.begin(), part.bytes.end());
    assembly_.again_at = Instant{};
    if (assembly_.bytes.size() < part.total) return want_view(from, part.number, now);
    auto view = decode_view(assembly_.bytes);
    assembly_ = {};
    if (!view) return drop(from);
    normalise(view->carry);
    hear_view(from, share(*std::move(view)), std::nullopt, now);
}

// A view that others tell of does not make this member root, nor take its seat away: the store has
// to show it first. One that believed a lie would be root of a view that the store does not have:
// it could not change it, and would go on in it alone.
void Member::hear_view(const Peer& from, const ViewHandle& next, std::optional<ViewDifference> news,
                       Instant now) {
    // A root that alone has the store makes all views.
    if (!is_shared() && reaches_store()) return;
    const bool is_own = !next->empty() && next->root().name == self_.name &&
                        (next->root().incarnation == sent_incarnation() ||
                         next->root().incarnation == incarnation_);
    if (!is_own) {
        const bool keeps_seat = next->find(self_.name, sent_incarnation()) &&
                                next->view().rules_hash == options_->rules_hash;
        const bool is_of_only_root = !is_shared() && from.name == options_->root.name;
        if (!seated_ || keeps_seat || is_of_only_root || leaves_anyway())
            return adopt(next, std::move(news), now);
        return check_exclusion(next->number(), now);
    }
    if (!reaches_store()) return drop(from);
    note_handover({.number = next->number(), .view = next, .news = std::move(news)}, now);
}

// Another member says that this one is the root of a newer view. It may end now and not say it
// again, so the store is read until it has the view: otherwise nobody would be root until the
// others find out that the root is silent. Also during a candidacy, which was for the view before.
void Member::note_handover(Handover heard, Instant now) {
    // A root that another member calls the root of a newer view is told so again.
    if (duty_) {
        if (phase_ == Phase::kNone) ask_store(ReadFor::kNews);
        return;
    }
    const bool is_new = !handover_ || handover_->number != heard.number;
    if (is_new) {
        heard.read_at = now;
        heard.pause = options_->resend;
        handover_ = std::move(heard);
    } else if (handover_->view == nullptr) {
        handover_->view = std::move(heard.view);
        handover_->news = std::move(heard.news);
    }
    handover_->until = after(now, options_->root_silent);
    read_handover(now);
}

// While another answer of the store is awaited, its arrival is the next occasion.
bool Member::reads_handover() const {
    return handover_ && phase_ == Phase::kNone && !store_busy_;
}

void Member::read_handover(Instant now) {
    if (handover_ && (now >= handover_->until || handover_->number <= over())) handover_.reset();
    if (!reads_handover() || now < handover_->read_at) return;
    handover_->read_at = after(now, handover_->pause);
    handover_->pause = std::min(2 * handover_->pause, options_->grace);
    ask_store(ReadFor::kNews);
}

// How the next view follows from `base`, which the store had; nothing if it is another view.
std::optional<ViewDifference> Member::news_of(const ViewHandle& base,
                                              const CommittedView& next) const {
    if (!seated_ || base == nullptr || next.number() != base->number() + 1) return std::nullopt;
    return difference(base->view(), next.view());
}

// How the view that the store has follows from the one of other members. This member was told of
// its own view, and that may be a lie; a difference from a lie would make a third view of theirs.
// So nothing, unless the root has sent a difference that leads to what the store has.
std::optional<ViewDifference> Member::news_heard_of(const CommittedView& next) const {
    if (!handover_ || handover_->view == nullptr) return std::nullopt;
    if (handover_->view->view() != next.view()) return std::nullopt;
    return handover_->news;
}

// Somebody says that a newer view has no seat for this member, which may be a lie. The store shows
// whether there is such a view, or the only root does. If that fails, it is tried again when
// somebody says so again: each member of the newer view does, to whom this one sends a message.
void Member::check_exclusion(ViewNumber number, Instant now) {
    if (!is_shared()) return send(options_->root, ViewWant{.number = number});
    if (phase_ != Phase::kNone || now < read_at_ || !ask_store(ReadFor::kNews)) return;
    read_at_ = after(now, options_->grace);
}

void Member::on_nack(const Peer& from, const Nack& nack, Instant now) {
    if (nack.is_promised) {
        // A member has given this view up, and waits for the next one.
        if (duty_ && nack.number == view_number()) duty_->wants_bump = true;
        return;
    }
    // A root that alone has the store makes all views. This one is of before its file was lost, or
    // a lie.
    if (!is_shared() && reaches_store()) return;
    if (!seated_ && standing_ == Standing::kLeaving && nack.is_excluded && nack.root == from.name) {
        // The root has taken the request to join back.
        tell(EventKind::kLeft, {});
        standing_ = Standing::kDetached;
        return;
    }
    if (nack.number <= view_number()) return;
    root_hint_ = {.name = nack.root, .address = nack.root_address};
    const bool is_successor = nack.root == self_.name && !nack.is_excluded;
    if (is_successor && !seated_ && standing_ == Standing::kJoining) {
        read_at_ = now;
        join_at_ = std::max(now, join_not_before_);
    }
    if (!seated_) return;
    if (is_successor && is_shared()) return note_handover({.number = nack.number}, now);
    if (!nack.is_excluded) return want_view(from, nack.number, now);
    if (!leaves_anyway()) return check_exclusion(nack.number, now);
    tell_gone(nack.root);
    lose_seat(now);
}

}  // namespace fopd::eh::peers
