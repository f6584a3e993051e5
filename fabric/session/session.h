#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
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
struct TrafficShare;

// The id of a session in hexadecimal digits, as in the ids of its fops.
std::string format_session_id(std::uint64_t id);

// Callbacks of a session, called from the host's turn. on_gone() is the last one.
class SessionUser {
public:
    // For the server: the client has proved its identity; decides whether the session may open.
    struct Verdict {
        std::string_view refusal = {};  // The reason, at most 64 bytes; empty: it may open.
        bool resumed = false;           // The server remembers requests of this client.
    };
    virtual Verdict on_proved(Session& session) = 0;
    // Both sides know each other's identity; messages may be sent.
    virtual void on_open(Session& session) = 0;
    // on_requests() is for the server, on_replies() for the client. False means that the peer
    // violated the protocol, and ends the session.
    virtual bool on_requests(Session& session, const fop::RequestsView& requests) = 0;
    virtual bool on_replies(Session& session, const fop::RepliesView& replies) = 0;
    // The peer no longer wants the answers to these requests; they are valid during the call.
    virtual void on_cancelled(Session& session, std::span<const std::uint64_t> requests) = 0;
    // The server will not access the memory of a cancelled request any more.
    virtual void on_let_go(Session& session, std::uint64_t request) = 0;
    // The client has received the replies to all requests with ids below `before`.
    virtual void on_acknowledged(Session& session, std::uint64_t before) = 0;
    // The peer takes no more requests: it drains.
    virtual void on_bye(Session& session, std::string_view words) = 0;
    // Pending messages may be written now. Called at the end of a turn, if wants_turn() was called
    // or if there is room again after replies() or requests() returned null.
    virtual void on_turn_end(Session& session) = 0;
    // The session has ended. `words` explain the error to people; they are the peer's, if it gave
    // any.
    virtual void on_end(Session& session, const Error& error, std::string_view words) = 0;
    // The connection is gone, too: the peer can no longer reach memory that was opened to it. The
    // session is destroyed after this call.
    virtual void on_gone(Session& session) = 0;

protected:
    ~SessionUser() = default;
};

// A session may be in several lists of its host at a time; each list needs a base class.
class InTurnEnd : public core::ListNode {};
class InTransferQueue : public core::ListNode {};
class InGreetings : public core::ListNode {};
class InBufferQueue : public core::ListNode {};
class InControlQueue : public core::ListNode {};
class InEnds : public core::ListNode {};

// An authenticated connection: sealed and numbered messages, credits in both directions, a lease,
// and transfers that take turns with those of other sessions. The host owns the session; it lives
// on the host's reactor.
//
// A message names its session. `tcp` and `mem` also tell which connection has delivered it, and one
// that came over another connection is dropped and counted. `ofi` does not tell, so that only the
// seal proves the sender. A message that is not sealed with the session's key is dropped and
// counted, too. None of these has an effect on the session.
class Session final : ConnectionUser,
                      InTurnEnd,
                      InTransferQueue,
                      InGreetings,
                      InBufferQueue,
                      InControlQueue,
                      InEnds {
public:
    enum class Role : std::uint8_t { kServer, kClient };
    enum class State : std::uint8_t {
        kConnecting,   // The transport is making the connection.
        kHandshaking,  // Connected; the two sides prove their identity.
        kOpen,
        kEnding,  // The transport still uses memory of the session, or its last message leaves.
    };
    struct Statistics {
        std::uint64_t messages_in = 0;
        std::uint64_t messages_out = 0;
        std::uint64_t bytes_in = 0;  // Bytes of messages; bytes_transferred counts transfers.
        std::uint64_t bytes_out = 0;
        std::uint64_t bytes_transferred = 0;
        std::uint64_t fops = 0;
    };

    Session(SessionHost& host, Role role, std::uint64_t handle, SessionUser& user);
    ~Session();

    Role role() const { return role_; }
    State state() const { return state_; }
    // The number by which the peer names this session in its messages.
    std::uint64_t handle() const { return handle_; }
    // The number by which both sides name this session, for example in descriptors: the server's
    // handle.
    std::uint64_t id() const { return role_ == Role::kServer ? handle_ : peer_handle_; }
    const std::string& peer() const { return peer_; }
    // The identity that the client has proved; at the client, the one that the server has assigned.
    const fop::Identity& identity() const { return identity_; }
    const fop::ClientId& client_id() const { return client_id_; }
    // For the client: the server's description of itself, from the handshake.
    const fop::AcceptHello& accepted() const { return accepted_; }
    // For the client: whether the server remembers earlier requests of this client.
    bool resumed() const { return resumed_; }
    // The largest payload that travels in a message to the server.
    std::uint32_t inline_max() const { return inline_max_; }
    const fop::MacKey& descriptor_key() const { return keys_.descriptor; }
    Instant created_at() const { return created_at_; }
    Instant last_heard_at() const { return last_heard_at_; }
    const Statistics& statistics() const { return statistics_; }
    SessionHost& host() { return host_; }

    // -- messages; while open --

    // The open message, to add to. It leaves at the end of the turn, or with send_message(). Null
    // if no message can be sent now, for want of a credit or a buffer or because too many are in
    // flight; on_turn_end() is called when that has changed.
    fop::MessageWriter* replies();
    fop::MessageWriter* requests(const fop::RequestHeader& header);
    void send_message();
    // Asks for a call of on_turn_end() at the end of this turn.
    void wants_turn();

    // For the client: how many fops the server lets it send.
    std::uint32_t fop_credits(fop::Lane lane) const { return fop_credits_[index_of(lane)]; }
    void use_fop_credit(fop::Lane lane);
    void regain_fop_credit(fop::Lane lane) { ++fop_credits_[index_of(lane)]; }
    // Tells the server, in this turn, that the client has given up a request.
    void cancel_request(std::uint64_t request);
    // Tells the client, in this turn, that a cancelled request has no transfer in flight and will
    // start none.
    void let_go(std::uint64_t request);
    // Tells the server, with the next message, that the replies to all requests with ids below
    // `before` have arrived.
    void acknowledge(std::uint64_t before) { acknowledged_ = before; }

    // For the server: the credits that the client has for fops.
    CreditGrant& fop_grant(fop::Lane lane) { return *fop_grants_[index_of(lane)]; }
    // A fop that came with a data credit and so many bytes waits for its turn. The client may send
    // another fop meanwhile, once there is a loan for it.
    void fop_waits(std::uint32_t bytes);
    void fop_waits_no_more(std::uint32_t bytes);
    // Whether a fop that used a loan may wait with so many bytes. False: the waiting fops use all
    // bytes of the session's own credits and of its loans, and no more bytes can be lent. REQUIRES:
    // the session is open.
    [[nodiscard]] bool may_wait(std::uint32_t bytes);
    void count_fops(std::uint64_t count) { statistics_.fops += count; }
    // Tells the client to send no more requests.
    void say_bye(std::string_view words);
    // Ends the session like end(), after a last message about this to the peer, which then counts
    // the session as ended and not as lost. REQUIRES: no memory is open to the peer.
    void leave(std::string_view words);

    // -- transfers; while open --

    // Starts the transfer when it is this session's turn. Its `done` is called once, from the
    // host's turn.
    void start(Transfer& transfer);
    // Gives up a transfer. When this returns true, the memory of the transfer is not used any more.
    // `done` is called at once if the transfer was still queued, otherwise in the next turn. False:
    // the transport cannot give the transfer up; its memory is in use until the transfer completes
    // or the session ends.
    bool give_up(Transfer& transfer);

    // Ends the session: calls on_end() at once, and completes all operations in flight.
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

    // -- ConnectionUser --
    void on_connected(std::span<const std::byte> answer) override;
    void on_closed(const Error& reason, std::string_view words) override;

    // The host calls these with messages that name this session.
    void on_message(const fop::Prefix& prefix, std::span<const std::byte> message);
    void drop_unsealed(std::string_view reason);
    void on_greeting(const fop::Prefix& prefix, std::span<const std::byte> message);
    bool take_greeting(std::span<const std::byte> envelope);
    // Handles the client's first greeting. The host calls this when it has time, because the key
    // exchange takes long to compute.
    void answer_greeting();
    bool on_opened_message(const fop::Prefix& prefix, std::span<const std::byte> message);
    bool on_control(const fop::Control& control);
    void follow(const fop::HandshakeStep& step);
    void open();
    void open_as_server();
    void open_as_client();
    void encrypt(const Connection::Keys& keys);
    void refuse(const fop::Refusal& refusal);
    void count_refusal(std::string_view reason);
    void note_opened();
    void note_unfinished(std::string_view reason);

    bool may_send(std::uint32_t credits_needed);
    // The writer of the open message; null if it has no room for another fop.
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
    // How many of the waiting bytes exceed the bytes of the session's own credits.
    std::uint32_t bytes_on_loans(std::uint32_t waiting);
    void end_turn();
    void on_deadline();
    void on_handshake_deadline();
    void fail(const Error& error, std::string_view words, bool leaving = false);
    // Asks the host for a turn to finish the end of the session.
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
    // The handshake of this side, until the session is open.
    std::unique_ptr<fop::ServerHandshake> server_handshake_;
    std::unique_ptr<fop::ClientHandshake> client_handshake_;
    // The current admission, which its owner updates in place.
    const fop::Admission* admission_ = nullptr;
    fop::ConnectHello::Bytes connect_hello_{};
    std::vector<std::byte> greeting_;  // The client's first message, until it is answered.
    bool greeted_ = false;
    // Why a handshake message was ignored that may have come from the client; printable.
    std::string disbelief_;
    std::string peer_;
    fop::Identity identity_;
    std::string share_name_;  // The share that the identity counts against.
    // The share named share_name_; null until the identity is proved.
    TrafficShare* share_ = nullptr;
    std::uint32_t loan_bytes_ = 0;     // All bytes lent to this session.
    std::uint32_t loan_size_ = 0;      // The bytes that the next loan lends.
    std::uint32_t waiting_bytes_ = 0;  // The bytes of all fops that wait for their turn.
    fop::ClientId client_id_{};
    fop::AcceptHello accepted_{};
    bool resumed_ = false;
    fop::SessionKeys keys_;
    const fop::MacKey* send_key_ = nullptr;     // Points into keys_.
    const fop::MacKey* receive_key_ = nullptr;  // Points into keys_.
    std::uint32_t inline_max_ = 0;
    std::uint32_t peer_message_bytes_max_ = 0;

    std::uint64_t next_out_ = 0;
    std::uint64_t next_in_ = 0;
    std::uint64_t acknowledged_ = 0;
    std::uint64_t acknowledged_by_peer_ = 0;

    std::uint32_t send_credits_ = 0;
    std::uint32_t sends_in_flight_ = 0;
    Instant send_moved_at_{};   // When a send last completed, or sending began.
    bool is_leaving_ = false;   // The session ends when its last message has left.
    bool wants_room_ = false;   // The user was refused a message and waits for room.
    bool has_promise_ = false;  // A free buffer is reserved for this session.
    CreditGrant message_grant_;
    std::array<std::unique_ptr<CreditGrant>, 2> fop_grants_;
    std::array<std::uint32_t, 2> fop_credits_{};

    SendBuffer* open_message_ = nullptr;
    bool at_turn_end_ = false;  // In on_turn_end(): messages leave at once.
    // Requests to report to the peer: cancelled ones (client), or released ones (server).
    std::vector<std::uint64_t> cancelled_;
    std::uint64_t pong_due_ = 0;
    bool ping_due_ = false;
    bool bye_due_ = false;
    std::string bye_words_;
    // Credits that the next control message asks back from the peer, and credits that the peer has
    // asked back.
    std::uint16_t surrender_asked_ = 0;
    std::uint16_t surrender_due_ = 0;
    std::uint16_t surrender_fops_asked_ = 0;
    // No request to return loans is sent before this time.
    Instant loans_asked_again_at_ = Instant::min();
    std::uint16_t surrender_fops_due_ = 0;

    core::IntrusiveList<Transfer> transfers_waiting_;
    std::uint32_t transfers_in_flight_ = 0;
    Instant transfer_moved_at_;  // When a transfer last succeeded, or transferring began.

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
