// The handshake of a session.
#include <algorithm>

#include "core/printable.h"
#include "fabric/session/session_host.h"

namespace fopd::fabric {

namespace {

constexpr std::string_view kMalformed = "the handshake is malformed";
constexpr std::string_view kNotProved = "not authenticated";
constexpr Duration kLeaseMin = 10ms;

Errc error_of(fop::RefusalReason reason) {
    switch (reason) {
        case fop::RefusalReason::kDenied:
        case fop::RefusalReason::kAuthenticationNeeded: return Errc::kDenied;
        case fop::RefusalReason::kVersion: return Errc::kUnsupported;
        case fop::RefusalReason::kMalformed: return Errc::kInvalid;
        case fop::RefusalReason::kBusy:
        case fop::RefusalReason::kDraining: return Errc::kBusy;
    }
    return Errc::kDenied;
}

}  // namespace

// For the server. Takes only the ClientHello that the connect data promised, and then only a
// message that proves the key: nobody but this client can have sent these. A stranger that listens
// on the network can send other messages, so these are ignored.
bool Session::take_greeting(std::span<const std::byte> envelope) {
    if (!greeted_) {
        if (!server_handshake_->is_promised(envelope)) return false;
        greeted_ = true;
        ++next_in_;
        disbelief_.clear();
        greeting_.assign(envelope.begin(), envelope.end());
        if (state_ == State::kHandshaking) host_.greetings_.push_back(*this);
        return true;
    }
    if (server_handshake_->proves(envelope)) {
        ++next_in_;
        follow(server_handshake_->consume(envelope, *admission_));
        return true;
    }
    if (const auto refused = fop::decode_refused(envelope); refused) {
        disbelief_.clear();
        core::append_printable(disbelief_, refused->words);
    }
    return false;
}

void Session::on_greeting(const fop::Prefix& prefix, std::span<const std::byte> message) {
    const auto envelope = fop::read_handshake(message);
    const bool fits = envelope && prefix.sequence == next_in_;
    if (role_ == Role::kClient) {
        // Only servers that this client has connected to can send this.
        if (!fits) return end(Errc::kInvalid, kMalformed);
        ++next_in_;
        return follow(client_handshake_->consume(*envelope));
    }
    if (fits && take_greeting(*envelope)) return;
    host_.statistics_.unsealed.add(1);
    if (disbelief_.empty()) disbelief_ = greeted_ ? kNotProved : kMalformed;
}

void Session::answer_greeting() {
    const std::vector<std::byte> greeting = std::exchange(greeting_, {});
    if (state_ != State::kHandshaking) return;
    follow(server_handshake_->consume(greeting, *admission_));
}

void Session::follow(const fop::HandshakeStep& step) {
    if (!step.send.empty()) {
        SendBuffer* const buffer = host_.take_buffer(*this, SendUse::kHandshake);
        if (buffer == nullptr) {
            constexpr std::string_view kReason = "no buffer for the handshake";
            note_unfinished(kReason);
            return end(Errc::kNoSpace, kReason);
        }
        const std::size_t bytes =
            fop::write_handshake(buffer->whole.bytes, next_prefix(), step.send);
        send(*buffer, bytes);
    }
    switch (step.state) {
        case fop::HandshakeState::kRunning: return;
        case fop::HandshakeState::kProved: {
            identity_ = server_handshake_->session().identity;
            share_name_ = fop::share_name(identity_);
            host_.join_share(*this);
            const SessionUser::Verdict verdict = user_.on_proved(*this);
            return follow(
                verdict.refusal.empty()
                    ? server_handshake_->welcome(verdict.resumed)
                    : server_handshake_->refuse(fop::RefusalReason::kBusy, verdict.refusal));
        }
        case fop::HandshakeState::kRefused:
            return refuse(role_ == Role::kServer ? server_handshake_->refusal()
                                                 : client_handshake_->refusal());
        case fop::HandshakeState::kDone: return open();
    }
}

void Session::open() {
    if (role_ == Role::kServer) {
        open_as_server();
    } else {
        open_as_client();
    }
    state_ = State::kOpen;
    connection_->trust_peer(share_name_);
    last_heard_at_ = host_.reactor_.now();
    host_.statistics_.sessions.add(1);
    host_.statistics_.opened.add(1);
    note_opened();
    on_deadline();  // From now on the timer watches the lease.
    user_.on_open(*this);
}

void Session::open_as_server() {
    const fop::ServerSession& outcome = server_handshake_->session();
    const HostOptions& options = host_.options_;
    keys_ = outcome.keys;
    send_key_ = &keys_.server;
    receive_key_ = &keys_.client;
    peer_message_bytes_max_ = std::min(outcome.client.message_bytes_max, options.send_buffer_bytes);
    inline_max_ = options.inline_max;
    send_credits_ = outcome.client.message_credits;
    fop_grants_[index_of(fop::Lane::kData)] = std::make_unique<CreditGrant>(
        host_.fop_credits_, options.fop_credits_floor, options.fop_credits_max);
    fop_grants_[index_of(fop::Lane::kData)]->belongs_to(share_->fop_credits);
    fop_grants_[index_of(fop::Lane::kControl)] = std::make_unique<CreditGrant>(
        host_.fop_credits_, options.control_credits, options.control_credits);
    encrypt({.send = outcome.records.server, .receive = outcome.records.client});
    server_handshake_.reset();
}

void Session::open_as_client() {
    const fop::ClientSession& outcome = client_handshake_->session();
    identity_.name = outcome.name;
    identity_.rights = outcome.rights;
    keys_ = outcome.keys;
    send_key_ = &keys_.client;
    receive_key_ = &keys_.server;
    peer_message_bytes_max_ =
        std::min(outcome.server.message_bytes_max, host_.options_.send_buffer_bytes);
    inline_max_ = outcome.server.inline_max;
    lease_ = std::max<Duration>(outcome.server.lease, kLeaseMin);
    send_credits_ = outcome.grant.message_credits;
    fop_credits_[index_of(fop::Lane::kData)] = outcome.grant.fop_credits_data;
    fop_credits_[index_of(fop::Lane::kControl)] = outcome.grant.fop_credits_control;
    resumed_ = outcome.resumed;
    encrypt({.send = outcome.records.client, .receive = outcome.records.server});
    client_handshake_.reset();
}

// Both sides have sent and received their last message of the handshake.
void Session::encrypt(const Connection::Keys& keys) {
    if (host_.options_.protection == fop::Protection::kEncrypt) connection_->encrypt(keys);
}

// The peer learns the reason if the message still reaches it.
void Session::refuse(const fop::Refusal& refusal) {
    std::string words;
    core::append_printable(words, refusal.words);
    if (role_ == Role::kServer) count_refusal(words);
    const Errc code = error_of(refusal.reason);
    const bool leaving = refusal.by == fop::RefusedBy::kUs && sends_in_flight_ > 0;
    fail(Error{.code = code, .context = "handshake"}, words, leaving);
}

void Session::count_refusal(std::string_view reason) {
    SessionHost::Refused refused{.peer = peer_, .reason = reason, .session = handle_};
    const bool is_known = server_handshake_ != nullptr && server_handshake_->claimed();
    if (is_known && server_handshake_->claimed()->kind != fop::AuthKind::kNone) {
        refused.key_id = server_handshake_->claimed()->key_id;
    }
    host_.count_refusal(refused);
}

// Each run of fopctl opens a session, so the event has the level kDebug.
void Session::note_opened() {
    if (role_ != Role::kServer || !host_.events_.wants(core::Level::kDebug)) return;
    emit(host_.events_, core::Level::kDebug, "fabric.session_opened",
         {{"session", std::string_view(format_session_id(handle_))},
          {"peer", std::string_view(peer_)},
          {"principal", std::string_view(identity_.name)},
          {"user", std::string_view(identity_.user)}});
}

// The client ended before it had proved its identity; a refusal is logged elsewhere.
void Session::note_unfinished(std::string_view reason) {
    if (role_ != Role::kServer || state_ == State::kOpen) return;
    emit(host_.events_, core::Level::kWarn, "fabric.handshake_ended",
         {{"session", std::string_view(format_session_id(handle_))},
          {"peer", std::string_view(peer_)},
          {"reason", reason}});
}

void Session::on_handshake_deadline() {
    if (state_ == State::kHandshaking && !disbelief_.empty()) {
        return follow(server_handshake_->refuse(
            greeted_ ? fop::RefusalReason::kDenied : fop::RefusalReason::kMalformed,
            greeted_ ? kNotProved : kMalformed));
    }
    const std::string_view reason =
        state_ == State::kConnecting ? "no connection in time" : "no handshake in time";
    host_.statistics_.expired.add(1);
    note_unfinished(reason);
    return fail(Error{.code = Errc::kTimedOut, .context = "handshake"}, reason);
}

}  // namespace fopd::fabric
