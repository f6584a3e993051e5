#include "fabric/session/session.h"

#include <algorithm>
#include <charconv>

#include "fabric/session/session_host.h"
#include "fop/mac.h"

namespace fopd::fabric {

std::string format_session_id(std::uint64_t id) {
    std::array<char, 16> text{};
    char* const end = std::to_chars(text.data(), text.data() + text.size(), id, 16).ptr;
    return {text.data(), end};
}

namespace {

// Messages of one session that the transport may have. With more, the peer does not keep up, and
// further fops can still be packed together.
constexpr std::uint32_t kSendsInFlightMax = 16;
// The last credit is for control messages: without it a side could not return credits.
constexpr std::uint32_t kCreditsForFops = 2;
constexpr std::uint32_t kCreditsForControl = 1;
// Beyond this, a client that takes no messages is not told; its session ends anyway.
constexpr std::size_t kLetGoMax = 1024;
// Both sides' counts stay far below; a peer that grants more violates the protocol.
constexpr std::uint32_t kCreditsMax = 1U << 20;
// How long the last message, such as a refusal, may take to leave.
constexpr Duration kFarewellMax = 1s;
// A client that ends in order says that it leaves.
constexpr std::string_view kLostWords =
    "lost: the client disconnected without ending its session, or the network failed";
constexpr Error kTurnedAway{.code = Errc::kBusy, .context = "the server takes no more connections"};
// A peer is accepted only if it can receive every request or reply without payload.
static_assert(fop::kMessageBytesMin >= fop::kRequestOverheadMax);
static_assert(fop::kMessageBytesMin >= fop::kReplyOverheadMax);
static_assert(fop::kMessageBytesMin >= fop::kControlBytesMax);

}  // namespace

void Transfer::on_complete(TransferOp& op) {
    auto& self = static_cast<Transfer&>(op);
    Session* const session = std::exchange(self.session_, nullptr);
    session->host().on_transferred(*session, self);
    self.done(self);
}

Session::Session(SessionHost& host, Role role, std::uint64_t handle, SessionUser& user)
    : host_(host),
      user_(user),
      role_(role),
      handle_(handle),
      message_grant_(host.message_credits_, host.options_.message_credits_floor,
                     host.options_.message_credits_max),
      lease_(host.options_.lease),
      created_at_(host.reactor_.now()),
      last_heard_at_(created_at_),
      last_sent_at_(created_at_),
      last_pinged_at_(created_at_) {}

Session::~Session() = default;

// -- ConnectionUser --

void Session::on_connected(std::span<const std::byte> answer) {
    if (state_ != State::kConnecting) return;
    state_ = State::kHandshaking;
    last_heard_at_ = host_.reactor_.now();
    if (role_ == Role::kServer) {
        // The client sends first, and its greeting may have arrived already.
        if (greeted_) host_.greetings_.push_back(*this);
        return;
    }
    const auto accepted = fop::decode_accept_hello(answer);
    if (!accepted) return end(accepted.error().code, accepted.error().context);
    accepted_ = *accepted;
    peer_handle_ = accepted_.session;
    const fop::ConnectData data{.connect = connect_hello_, .accept = fop::encode(accepted_)};
    follow({.state = fop::HandshakeState::kRunning, .send = client_handshake_->start(data)});
}

void Session::on_closed(const Error& reason, std::string_view words) {
    if (state_ == State::kEnding) return;  // The session was ending anyway.
    if (!disbelief_.empty() && state_ != State::kOpen) {
        count_refusal(disbelief_);
        return fail(reason, words);
    }
    host_.statistics_.lost.add(1);
    note_unfinished("the connection was lost");
    if (role_ == Role::kServer && words.empty()) {
        if (reason.code == Errc::kClosed) words = kLostWords;
        // The peer has sent what the transport cannot read: the context says what.
        if (reason.code == Errc::kInvalid) words = reason.context;
    }
    // An acceptor refuses before it has seen a key, so its refusal is temporary and not about this
    // client.
    const bool turned_away = state_ == State::kConnecting && reason.code == Errc::kDenied;
    fail(turned_away ? kTurnedAway : reason, words);
}

// -- messages in --

void Session::on_message(const fop::Prefix& prefix, std::span<const std::byte> message) {
    if (state_ == State::kEnding) return;  // The message was in flight when the session ended.
    if (prefix.kind == fop::MessageKind::kHandshake) {
        const bool too_early = role_ == Role::kClient && state_ == State::kConnecting;
        if (state_ != State::kOpen && !too_early) return on_greeting(prefix, message);
        host_.statistics_.unsealed.add(1);
        return;
    }
    const fop::MacInput input = fop::mac_input(message);
    const bool sealed = state_ == State::kOpen &&
                        fop::same_bytes(fop::mac(*receive_key_, input.prefix, input.envelope).bytes,
                                        fop::read_mac(message));
    // A stranger that listens on the network has repeated a sealed message that was received
    // before.
    if (!sealed || prefix.sequence < next_in_) {
        return drop_unsealed(sealed ? "repeated" : "not sealed with the session's key");
    }
    if (prefix.sequence > next_in_) {
        host_.statistics_.broken.add(1);
        return end(Errc::kCorrupt, "a message of the peer is missing");
    }
    ++next_in_;
    last_heard_at_ = host_.reactor_.now();
    ++statistics_.messages_in;
    statistics_.bytes_in += message.size();
    host_.statistics_.messages_in.add(1);
    host_.statistics_.bytes_in.add(message.size());
    if (!message_grant_.use()) {
        host_.statistics_.broken.add(1);
        return end(Errc::kInvalid, "the peer sent a message without a credit");
    }
    // Its buffer is free again when this returns.
    message_grant_.done();
    if (prefix.kind != fop::MessageKind::kControl) message_grant_.grow();
    if (!on_opened_message(prefix, message) && state_ == State::kOpen) {
        host_.statistics_.broken.add(1);
        return end(Errc::kInvalid, "the peer does not keep to the protocol");
    }
    if (state_ == State::kOpen && message_grant_.urgent()) wants_turn();
}

void Session::drop_unsealed(std::string_view reason) {
    host_.statistics_.unsealed.add(1);
    emit(host_.events_, core::Level::kWarn, "fabric.unsealed_message",
         {{"session", std::string_view(format_session_id(handle_))},
          {"names_peer", std::string_view(peer_)},
          {"reason", reason}});
}

bool Session::on_opened_message(const fop::Prefix& prefix, std::span<const std::byte> message) {
    send_credits_ += prefix.message_credits;
    fop_credits_[index_of(fop::Lane::kData)] += prefix.fop_credits;
    if (send_credits_ > kCreditsMax) return false;
    if (prefix.fop_credits > 0 && role_ == Role::kServer) return false;
    if (wants_room_ || prefix.fop_credits > 0) wants_turn();
    if (prefix.acknowledged > acknowledged_by_peer_) {
        acknowledged_by_peer_ = prefix.acknowledged;
        user_.on_acknowledged(*this, acknowledged_by_peer_);
    }
    switch (prefix.kind) {
        case fop::MessageKind::kRequests: {
            if (role_ != Role::kServer) return false;
            const auto requests = fop::read_requests(message);
            return requests && user_.on_requests(*this, *requests);
        }
        case fop::MessageKind::kReplies: {
            if (role_ != Role::kClient) return false;
            const auto replies = fop::read_replies(message);
            return replies && user_.on_replies(*this, *replies);
        }
        case fop::MessageKind::kControl: {
            const auto control = fop::read_control(message);
            return control && on_control(*control);
        }
        case fop::MessageKind::kHandshake: break;
    }
    return false;
}

bool Session::on_control(const fop::Control& control) {
    if (control.ping != 0) {
        pong_due_ = control.ping;
        // Nothing but pings since the last one: credits beyond the first few are more useful to
        // others.
        if (statistics_.fops == fops_at_last_ping_) {
            surrender_asked_ = message_grant_.excess();
            if (role_ == Role::kServer) {
                surrender_fops_asked_ = fop_grants_[index_of(fop::Lane::kData)]->excess();
            }
        }
        fops_at_last_ping_ = statistics_.fops;
        wants_turn();
    }
    if (control.surrender_messages > 0 || control.surrender_fops > 0) {
        surrender_due_ = control.surrender_messages;
        surrender_fops_due_ = control.surrender_fops;
        wants_turn();
    }
    if (!message_grant_.given_up(control.surrendered_messages)) return false;
    if (control.surrendered_fops > 0) {
        if (role_ != Role::kServer) return false;
        CreditGrant& grant = fop_grant(fop::Lane::kData);
        loans_asked_again_at_ = Instant::min();
        const std::uint32_t lent_before = grant.lent();
        if (!grant.given_up(control.surrendered_fops)) return false;
        give_loans_back(lent_before - grant.lent(), lent_before);
    }
    if (!(role_ == Role::kServer ? control.let_go : control.cancel).empty()) return false;
    if (!control.cancel.empty()) user_.on_cancelled(*this, control.cancel);
    for (const std::uint64_t request : control.let_go) user_.on_let_go(*this, request);
    if (control.bye != fop::Bye::kNone) user_.on_bye(*this, control.words);
    return true;
}

// -- messages out --

bool Session::may_send(std::uint32_t credits_needed) {
    if (state_ != State::kOpen) return false;
    if (send_credits_ >= credits_needed && sends_in_flight_ < kSendsInFlightMax) return true;
    wants_room_ = true;
    return false;
}

fop::MessageWriter* Session::open_writer() {
    if (open_message_ == nullptr) return nullptr;
    if (open_message_->writer.count() < host_.options_.fops_per_message_max) {
        return &open_message_->writer;
    }
    send_message();
    return nullptr;
}

fop::MessageWriter* Session::replies() {
    if (fop::MessageWriter* const open = open_writer()) return open;
    return begin_message(fop::MessageKind::kReplies, {});
}

fop::MessageWriter* Session::requests(const fop::RequestHeader& header) {
    if (fop::MessageWriter* const open = open_writer()) return open;
    return begin_message(fop::MessageKind::kRequests, header);
}

fop::MessageWriter* Session::begin_message(fop::MessageKind kind,
                                           const fop::RequestHeader& header) {
    if (!may_send(kCreditsForFops)) return nullptr;
    open_message_ = host_.take_buffer(*this, SendUse::kFops);
    if (open_message_ == nullptr) return nullptr;
    open_message_->kind = kind;
    const auto room = open_message_->whole.bytes.first(peer_message_bytes_max_);
    if (kind == fop::MessageKind::kRequests) {
        open_message_->writer.start_requests(room, header);
    } else {
        open_message_->writer.start_replies(room);
    }
    if (!at_turn_end_) wants_turn();
    return &open_message_->writer;
}

void Session::send_message() {
    SendBuffer* const buffer = std::exchange(open_message_, nullptr);
    if (buffer == nullptr) return;
    if (buffer->writer.empty()) return host_.give_back(*buffer);
    send(*buffer, buffer->writer.seal(next_prefix()));
}

fop::PrefixFields Session::next_prefix() {
    fop::PrefixFields fields{.session = peer_handle_, .sequence = next_out_++};
    if (state_ != State::kOpen) return fields;
    fields.message_credits = message_grant_.next_grant();
    fields.acknowledged = acknowledged_;
    if (role_ == Role::kServer) {
        fields.fop_credits = fop_grants_[index_of(fop::Lane::kData)]->next_grant();
    }
    --send_credits_;
    return fields;
}

void Session::send(SendBuffer& buffer, std::size_t bytes) {
    const auto message = buffer.whole.bytes.first(bytes);
    if (state_ == State::kOpen) {
        const fop::MacInput input = fop::mac_input(message);
        fop::write_mac(message, fop::mac(*send_key_, input.prefix, input.envelope).bytes);
    }
    buffer.local = {.bytes = message, .registration = buffer.whole.registration};
    buffer.sent_at = last_sent_at_ = host_.reactor_.now();
    if (sends_in_flight_++ == 0) oldest_send_at_ = send_moved_at_ = last_sent_at_;
    ++statistics_.messages_out;
    statistics_.bytes_out += bytes;
    host_.statistics_.messages_out.add(1);
    host_.statistics_.bytes_out.add(bytes);
    connection_->send(buffer);
}

// Sends complete in order, so the remaining ones began after this one.
void Session::on_sent(SendBuffer& buffer) {
    --sends_in_flight_;
    oldest_send_at_ = buffer.sent_at;
    send_moved_at_ = host_.reactor_.now();
    host_.give_back(buffer);
    if (wants_room_) wants_turn();
    if (state_ == State::kEnding && sends_in_flight_ == 0) {
        is_leaving_ = false;
        deadline_.disarm();
        wants_end();
    }
}

void Session::wants_turn() {
    InTurnEnd& place = *this;
    if (state_ == State::kOpen && !place.linked()) host_.turn_end_.push_back(place);
}

void Session::end_turn() {
    if (state_ != State::kOpen) return;
    wants_room_ = false;
    const bool had_promise = has_promise_;
    at_turn_end_ = true;
    user_.on_turn_end(*this);
    at_turn_end_ = false;
    if (state_ != State::kOpen) return;
    send_message();
    send_control_if_due();
    if (had_promise) host_.end_promise(*this);
}

void Session::send_control_if_due() {
    const bool due = pong_due_ != 0 || ping_due_ || bye_due_ || !cancelled_.empty() ||
                     surrender_asked_ > 0 || surrender_due_ > 0 || surrender_fops_asked_ > 0 ||
                     surrender_fops_due_ > 0 || message_grant_.urgent() || owes_fop_credits();
    if (!due || !may_send(kCreditsForControl)) return;
    SendBuffer* const buffer = host_.take_buffer(*this, SendUse::kControl);
    if (buffer == nullptr) return;

    fop::Control control{.ping = ping_due_ ? next_out_ + 1 : 0,
                         .pong = std::exchange(pong_due_, 0),
                         .surrender_messages = std::exchange(surrender_asked_, std::uint16_t{0}),
                         .surrender_fops = std::exchange(surrender_fops_asked_, std::uint16_t{0})};
    if (const std::uint16_t asked = std::exchange(surrender_due_, std::uint16_t{0}); asked > 0) {
        // Besides the credit for this message two stay: one for fops, one for control.
        const std::uint32_t spare = send_credits_ > 3 ? send_credits_ - 3 : 0;
        control.surrendered_messages =
            static_cast<std::uint16_t>(std::min<std::uint32_t>(asked, spare));
        send_credits_ -= control.surrendered_messages;
    }
    if (const std::uint16_t asked = std::exchange(surrender_fops_due_, std::uint16_t{0});
        asked > 0) {
        std::uint32_t& held = fop_credits_[index_of(fop::Lane::kData)];
        control.surrendered_fops =
            static_cast<std::uint16_t>(std::min<std::uint32_t>(asked, held > 1 ? held - 1 : 0));
        held -= control.surrendered_fops;
    }
    const std::size_t told = std::min(cancelled_.size(), fop::kCancelsMax);
    (role_ == Role::kClient ? control.cancel : control.let_go) = std::span(cancelled_).first(told);
    if (bye_due_) {
        control.bye = fop::Bye::kDraining;
        control.words = bye_words_;
    }
    ping_due_ = bye_due_ = false;
    const std::size_t bytes =
        buffer->writer.write_control(buffer->whole.bytes, next_prefix(), control);
    cancelled_.erase(cancelled_.begin(), cancelled_.begin() + static_cast<std::ptrdiff_t>(told));
    send(*buffer, bytes);
    if (!cancelled_.empty()) wants_turn();
}

void Session::use_fop_credit(fop::Lane lane) {
    ENSURE(fop_credits_[index_of(lane)] > 0);
    --fop_credits_[index_of(lane)];
    ++statistics_.fops;
}

void Session::cancel_request(std::uint64_t request) {
    cancelled_.push_back(request);
    wants_turn();
}

void Session::let_go(std::uint64_t request) {
    if (cancelled_.size() < kLetGoMax) cancelled_.push_back(request);
    wants_turn();
}

void Session::say_bye(std::string_view words) {
    bye_due_ = true;
    bye_words_ = words;
    wants_turn();
}

void Session::leave(std::string_view words) {
    if (state_ != State::kOpen) return end(Errc::kClosed, words);
    bye_due_ = true;
    bye_words_ = words;
    send_control_if_due();
    const bool leaving = sends_in_flight_ > 0;
    fail(Error{.code = Errc::kClosed, .context = "session"}, words, leaving);
}

// -- transfers --

void Session::start(Transfer& transfer) {
    ENSURE(transfer.session_ == nullptr);
    transfer.session_ = this;
    if (state_ != State::kOpen) {
        transfer.session_ = nullptr;
        transfer.result = std::unexpected(Error{.code = Errc::kClosed, .context = "session"});
        transfer.done(transfer);
        return;
    }
    transfers_waiting_.push_back(transfer);
    host_.want_transfer_of(*this);
}

bool Session::give_up(Transfer& transfer) {
    if (!transfer.linked()) return connection_->give_up(transfer);
    static_cast<core::ListNode&>(transfer).unlink();
    transfer.session_ = nullptr;
    transfer.result = std::unexpected(Error{.code = Errc::kCancelled, .context = "transfer"});
    transfer.done(transfer);
    return true;
}

// -- time --

void Session::Deadline::on_time(core::Timer& timer) {
    static_cast<Deadline&>(timer).session.on_deadline();
}

// One timer for everything that is limited in time: connecting and handshake together, the silence
// of the peer, a message that does not leave, transfers without progress, the last message.
void Session::on_deadline() {
    const Instant now = host_.reactor_.now();
    if (state_ == State::kEnding) {
        is_leaving_ = false;
        return wants_end();
    }
    if (state_ != State::kOpen) return on_handshake_deadline();
    const Instant silent_at = after(last_heard_at_, lease_);
    const Instant stuck_at = sends_in_flight_ > 0 ? after(oldest_send_at_, lease_) : kNever;
    // A peer may send messages and yet not serve access to its memory.
    const Instant still_at = transfers_in_flight_ > 0 ? after(transfer_moved_at_, lease_) : kNever;
    if (now >= std::min({silent_at, stuck_at, still_at})) {
        host_.statistics_.expired.add(1);
        fail(Error{.code = Errc::kTimedOut, .context = "lease"},
             now >= silent_at  ? "the peer is silent"
             : now >= stuck_at ? "the peer takes no messages"
                               : "no transfer with the peer moves");
        return;
    }
    Instant next = std::min({silent_at, stuck_at, still_at, after(now, lease_)});
    if (role_ == Role::kClient) {
        // Only clients ping: the server has no interest in a session that its client does not use.
        Instant ping_at = after(std::max(last_sent_at_, last_pinged_at_), lease_ / 2);
        if (now >= ping_at) {
            ping_due_ = true;
            last_pinged_at_ = now;
            wants_turn();
            ping_at = after(now, lease_ / 2);
        }
        next = std::min(next, ping_at);
    }
    host_.reactor_.arm(deadline_, next);
}

// -- the end --

void Session::end(Errc code, std::string_view words) {
    fail(Error{.code = code, .context = "session"}, words);
}

void Session::fail(const Error& error, std::string_view words, bool leaving) {
    if (state_ == State::kEnding) return;
    if (state_ == State::kOpen) {
        host_.statistics_.sessions.set(host_.statistics_.sessions.get() - 1);
        if (role_ == Role::kServer) {
            give_all_loans_back();
            emit(host_.events_, core::Level::kInfo, "fabric.session_ended",
                 {{"session", std::string_view(format_session_id(handle_))},
                  {"peer", std::string_view(peer_)},
                  {"principal", std::string_view(identity_.name)},
                  {"reason", words.empty() ? std::string_view(to_string(error.code)) : words}});
        }
    }
    state_ = State::kEnding;
    deadline_.disarm();
    static_cast<InTurnEnd&>(*this).unlink();
    static_cast<InTransferQueue&>(*this).unlink();
    static_cast<InGreetings&>(*this).unlink();
    static_cast<InBufferQueue&>(*this).unlink();
    static_cast<InControlQueue&>(*this).unlink();
    host_.end_promise(*this);
    if (open_message_ != nullptr) host_.give_back(*std::exchange(open_message_, nullptr));
    is_leaving_ = leaving;
    if (leaving) host_.reactor_.arm(deadline_, after(host_.reactor_.now(), kFarewellMax));
    wants_end();
    while (Transfer* transfer = transfers_waiting_.pop_front()) {
        transfer->session_ = nullptr;
        transfer->result = std::unexpected(Error{.code = Errc::kClosed, .context = "session"});
        transfer->done(*transfer);
    }
    user_.on_end(*this, error, words);
}

void Session::wants_end() {
    InEnds& place = *this;
    if (!is_leaving_ && !place.linked()) host_.ends_.push_back(place);
}

void Session::disconnect() {
    if (connection_ != nullptr) connection_->close();
}

bool Session::can_be_buried() const {
    return connection_ == nullptr || connection_->in_flight() == 0;
}

}  // namespace fopd::fabric
