#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/intrusive_list.h"
#include "core/timer_heap.h"
#include "fabric/session/credits.h"
#include "fabric/session/transfer.h"
#include "fabric/transport.h"
#include "fop/fop_type.h"
#include "fop/handshake.h"
#include "fop/key.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"

namespace fopd::fabric {

class Session;
class SessionHost;
struct SendBuffer;

// Whom a session works for. Called from the host's turn. on_gone() is the last call.
class SessionUser {
public:
    // For the server: the client has proved its identity; decides whether the session may open.
    struct Verdict {
        std::string_view refusal = {};  // The reason, at most 64 bytes; empty: it may open.
        bool resumed = false;           // The server remembers requests of this client.
    };
    virtual Verdict on_proved(Session& session) = 0;
    // Both sides know who the other is; messages may be sent.
    virtual void on_open(Session& session) = 0;
    // Each is for one of the two sides. False ends the session: the peer must not send that.
    virtual bool on_requests(Session& session, const fop::RequestsView& requests) = 0;
    virtual bool on_replies(Session& session, const fop::RepliesView& replies) = 0;
    // The peer no longer wants the answer to a request.
    virtual void on_cancelled(Session& session, std::uint64_t request) = 0;
    // The server reaches no more for the memory of a request that was cancelled.
    virtual void on_let_go(Session& session, std::uint64_t request) = 0;
    // The client has the replies to all requests with smaller ids.
    virtual void on_acknowledged(Session& session, std::uint64_t before) = 0;
    // The peer takes no more requests: it drains.
    virtual void on_bye(Session& session, std::string_view words) = 0;
    // What is waiting to be sent may be added now: it is the end of a turn, and either wants_turn()
    // was called or there is room again after there was none.
    virtual void on_turn_end(Session& session) = 0;
    // `words` say more than the error, for people; the peer's own where it gave any.
    virtual void on_end(Session& session, const Error& error, std::string_view words) = 0;
    // Its connection is gone, too: the peer cannot reach memory any more that was opened for it.
    // The session is destroyed after this.
    virtual void on_gone(Session& session) = 0;

protected:
    ~SessionUser() = default;
};

// The lists of its host that a session may be in, a base for each.
class InTurnEnd : public core::ListNode {};
class InTransferTurn : public core::ListNode {};
class InGreetings : public core::ListNode {};
class InBufferQueue : public core::ListNode {};
class InControlQueue : public core::ListNode {};
class InEnds : public core::ListNode {};

// A connection both of whose ends know each other: messages that are sealed and counted, credits
// both ways, a lease, transfers in turn with those of other sessions. Its host owns it, and it
// lives on the host's reactor.
//
// Because receive buffers are shared, a message does not show which connection it came by. One that
// is not sealed with this session's key is therefore dropped and counted, and says nothing about
// the session it names.
class Session final : ConnectionUser,
                      InTurnEnd,
                      InTransferTurn,
                      InGreetings,
                      InBufferQueue,
                      InControlQueue,
                      InEnds {
public:
    enum class Role : std::uint8_t { kServer, kClient };
    enum class State : std::uint8_t {
        kConnecting,   // The transport has not said yet whether there is a connection.
        kHandshaking,  // There is one; who the other is has to be proved.
        kOpen,
        kEnding,  // Of no use any more; the transport still holds memory, or a last message leaves.
    };
    struct Statistics {
        std::uint64_t messages_in = 0;
        std::uint64_t messages_out = 0;
        std::uint64_t bytes_in = 0;  // Of messages; transfers count by themselves.
        std::uint64_t bytes_out = 0;
        std::uint64_t bytes_transferred = 0;
        std::uint64_t fops = 0;
    };

    Session(SessionHost& host, Role role, std::uint64_t handle, SessionUser& user);
    ~Session();

    Role role() const { return role_; }
    State state() const { return state_; }
    // By which the peer names this session in its messages.
    std::uint64_t handle() const { return handle_; }
    // By which both sides know it: the server's handle. It stands in descriptors.
    std::uint64_t id() const { return role_ == Role::kServer ? handle_ : peer_handle_; }
    const std::string& peer() const { return peer_; }
    // Who the client has proved to be; at the client, whom the server took it for.
    const fop::Identity& identity() const { return identity_; }
    const fop::ClientId& client_id() const { return client_id_; }
    // What the server said about itself when it accepted; for the client.
    const fop::AcceptHello& accepted() const { return accepted_; }
    // The server knows what this client has asked before; for the client.
    bool resumed() const { return resumed_; }
    // The largest payload that travels in a message to the server.
    std::uint32_t inline_max() const { return inline_max_; }
    const fop::MacKey& descriptor_key() const { return keys_.descriptor; }
    Instant created_at() const { return created_at_; }
    Instant last_heard_at() const { return last_heard_at_; }
    const Statistics& statistics() const { return statistics_; }
    SessionHost& host() { return host_; }

    // -- messages; while open --

    // The message that is being put together, to add to; null when none can be sent now: no credit,
    // too many under way, no buffer. on_turn_end() comes when that has changed. What is in it
    // leaves at the end of the turn, or with send_message().
    fop::MessageWriter* replies();
    fop::MessageWriter* requests(const fop::RequestHeader& header);
    void send_message();
    // on_turn_end() at the end of this turn.
    void wants_turn();

    // What the client may send, by the server's word.
    std::uint32_t fop_credits(fop::Lane lane) const { return fop_credits_[index_of(lane)]; }
    void use_fop_credit(fop::Lane lane);
    void regain_fop_credit(fop::Lane lane) { ++fop_credits_[index_of(lane)]; }
    // Tells the server, in this turn, that the reply to a request is not wanted any more.
    void cancel_request(std::uint64_t request);
    // Tells the client, in this turn, that no transfer of a cancelled request is under way, and
    // that none will be.
    void let_go(std::uint64_t request);
    // Tells the server, with the next message, that all replies before this one are there.
    void acknowledge(std::uint64_t before) { acknowledged_ = before; }

    // The server's book of what the client may send.
    CreditGrant& fop_grant(fop::Lane lane) { return *fop_grants_[index_of(lane)]; }
    // A fop that came with a data credit, and so many bytes, waits for its turn: the client may
    // send another one like it beside it, if there is a loan for that, now or later.
    void fop_waits(std::uint32_t bytes);
    void fop_waits_no_more(std::uint32_t bytes);
    // Whether one that came on a loan may wait with so many bytes: not when those that wait have
    // all that the session's own credits and its loans are for, and no more is left. Requires:
    // open.
    [[nodiscard]] bool may_wait(std::uint32_t bytes);
    void count_fops(std::uint64_t count) { statistics_.fops += count; }
    // Tells the client to send no more requests.
    void say_bye(std::string_view words);

    // -- transfers; while open --

    // Starts it when it is this session's turn; `done` is called once, from the host's turn.
    void start(Transfer& transfer);
    // Takes back what has not been started; its `done` is called at once, cancelled. False: the
    // transport has it, and only its completion or the session's end brings the memory back.
    bool withdraw(Transfer& transfer);

    // Ends it: the user hears on_end() at once, and everything in flight completes.
    void end(Errc code, std::string_view words);

private:
    friend SessionHost;
    friend SendBuffer;

    struct Deadline final : core::Timer {
        explicit Deadline(Session& owner) : Timer(&on_time), session(owner) {}
        static void on_time(core::Timer& timer);
        Session& session;
    };

    static std::size_t index_of(fop::Lane lane) { return static_cast<std::size_t>(lane); }

    // What the transport says.
    void on_connected(std::span<const std::byte> answer) override;
    void on_closed(const Error& reason, std::string_view words) override;

    // What the host found in a message that names this session.
    void on_message(const fop::Prefix& prefix, std::span<const std::byte> message);
    void on_greeting(const fop::Prefix& prefix, std::span<const std::byte> message);
    bool take_greeting(std::span<const std::byte> envelope);
    // Handles the first greeting, when the host has time: this computes the key exchange.
    void answer_greeting();
    bool on_opened_message(const fop::Prefix& prefix, std::span<const std::byte> message);
    bool on_control(const fop::Control& control);
    void follow(const fop::HandshakeStep& step);
    void open();
    void open_as_server();
    void open_as_client();
    void refuse(const fop::Refusal& refusal);
    void note_unfinished(std::string_view reason);

    bool may_send(std::uint32_t credits_needed);
    // Of the message that is being put together, if it takes another fop.
    fop::MessageWriter* open_writer();
    fop::MessageWriter* begin_message(fop::MessageKind kind, const fop::RequestHeader& header);
    fop::PrefixFields next_prefix();
    void send(SendBuffer& buffer, std::size_t bytes);
    void on_sent(SendBuffer& buffer);
    void send_control_if_due();
    bool owes_fop_credits() const;
    bool borrow_for_waiting();
    void settle_loans();
    void give_loans_back(std::uint32_t count, std::uint32_t had);
    void give_all_loans_back();
    // How many of the waiting bytes are beyond what its own credits are for.
    std::uint32_t bytes_on_loans(std::uint32_t waiting);
    void end_turn();
    void on_deadline();
    void on_handshake_deadline();
    void fail(const Error& error, std::string_view words, bool leaving = false);
    // The host's turn for what is left to be done at the end.
    void wants_end();
    void disconnect();
    bool can_be_buried() const;

    SessionHost& host_;
    SessionUser& user_;
    const Role role_;
    State state_ = State::kConnecting;
    const std::uint64_t handle_;
    std::uint64_t peer_handle_ = 0;
    std::unique_ptr<Connection> connection_;
    // The one of our side, until it is open.
    std::unique_ptr<fop::ServerHandshake> server_handshake_;
    std::unique_ptr<fop::ClientHandshake> client_handshake_;
    const fop::Admission* admission_ = nullptr;  // In force now; its owner replaces what is in it.
    fop::ConnectHello::Bytes connect_hello_{};
    std::vector<std::byte> greeting_;  // The client's first one, as long as nobody answered it.
    bool greeted_ = false;
    // Why a handshake message was ignored that the client may have sent; in printable words.
    std::string disbelief_;
    std::string peer_;
    fop::Identity identity_;
    std::string share_name_;           // Of its identity.
    std::uint32_t loan_bytes_ = 0;     // That its loans are for.
    std::uint32_t loan_size_ = 0;      // How many the next loan is for.
    std::uint32_t waiting_bytes_ = 0;  // Of all fops that wait.
    fop::ClientId client_id_{};
    fop::AcceptHello accepted_{};
    bool resumed_ = false;
    fop::SessionKeys keys_;
    const fop::MacKey* send_key_ = nullptr;     // Of keys_.
    const fop::MacKey* receive_key_ = nullptr;  // Likewise.
    std::uint32_t inline_max_ = 0;
    std::uint32_t peer_message_bytes_max_ = 0;

    std::uint64_t next_out_ = 0;
    std::uint64_t next_in_ = 0;
    std::uint64_t acknowledged_ = 0;
    std::uint64_t acknowledged_by_peer_ = 0;

    std::uint32_t send_credits_ = 0;
    std::uint32_t sends_in_flight_ = 0;
    Instant send_moved_at_{};   // When one ended, or the first of those in flight began.
    bool is_leaving_ = false;   // It ends when its last message has left.
    bool wants_room_ = false;   // A sender was told that nothing can be sent now.
    bool has_promise_ = false;  // A free buffer is set aside for this session.
    CreditGrant message_grant_;
    std::array<std::unique_ptr<CreditGrant>, 2> fop_grants_;
    std::array<std::uint32_t, 2> fop_credits_{};

    SendBuffer* open_message_ = nullptr;
    bool at_turn_end_ = false;  // What is added now leaves now.
    // To tell the peer of: the client of requests it gives up, the server of those it lets go of.
    std::vector<std::uint64_t> cancelled_;
    std::uint64_t pong_due_ = 0;
    bool ping_due_ = false;
    bool bye_due_ = false;
    std::string bye_words_;
    std::uint16_t surrender_asked_ = 0;  // Of the peer, with the next control message.
    std::uint16_t surrender_due_ = 0;    // By the peer, of us.
    std::uint16_t surrender_fops_asked_ = 0;
    std::uint16_t surrender_fops_due_ = 0;

    core::IntrusiveList<Transfer> transfers_waiting_;
    std::uint32_t transfers_in_flight_ = 0;
    Instant transfer_moved_at_;  // When one ended, or the first of those in flight began.

    Duration lease_;
    Deadline deadline_{*this};
    Instant created_at_;
    Instant last_heard_at_;
    Instant last_sent_at_;
    Instant last_pinged_at_;
    Instant oldest_send_at_ = kNever;
    std::uint64_t fops_at_last_ping_ = 0;
    Statistics statistics_;
};

}  // namespace fopd::fabric
