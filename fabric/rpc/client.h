#pragma once

#include <array>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/cancel.h"
#include "core/random.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "fabric/session/session_host.h"
#include "fop/fop_type.h"
#include "fop/message.h"

namespace fopd::fabric {

class Client;

// The list of calls a call is in, beside that of its CancelSource.
class InCalls : public core::ListNode {};

// What a caller wants of a server. Everything borrowed stays until the call has returned.
// How much earlier than the caller the server gives up a call that has so much time left, so that
// the caller hears from the server what the fop waited for.
Duration answer_margin(Duration left);

struct CallRequest {
    const fop::FopType* type = nullptr;
    fop::RequestBody body{};
    fop::RequestHeader header{};
    std::span<const std::byte> token{};
    std::span<const std::byte> payload{};  // Travels in the message: at most inline_max().
    std::span<std::byte> reply_into{};     // Where the payload of the reply goes.
    // Memory the server may transfer from and to, where the body has room for descriptors.
    std::span<std::byte> source{};
    std::span<std::byte> target{};
    Instant deadline = kNever;
    core::CancelSource* cancel = nullptr;
};

struct Answer {
    fop::Status status = fop::Status::kDone;
    fop::ReplyBody body;
    std::unique_ptr<std::byte[]> borrowed{};  // What the body refers to.
    std::size_t payload_bytes = 0;            // Of reply_into.
    std::string words;                        // Why it failed, for people.
    // The request was sent before, and must not run twice: whoever had it then may have run it.
    bool sent_before = false;
};

struct ClientOptions {
    Address server;
    fop::Credentials credentials;
    // Between two tries to connect, doubling from the first to the last, and a random part of it.
    Duration backoff_min{50ms};
    Duration backoff_max{5s};
    // How long after it was first sent a call may be sent again to a server that remembers it in
    // its store; well below how long it does.
    Duration recorded_max{30min};
    // A call that was given up and has memory open to the server ends the session, so that it is
    // made again, when the server does not let go of the memory within this.
    Duration let_go_max{50ms};
};

// Calls to one locality of one server, over one session that is made again whenever it is lost: the
// locality of the address, or the one that the server has chosen.
// Calls that were under way then are sent again: those that may run twice and those that the store
// remembers to any life of the server, others only to the same one, which knows which of them it
// has run. Where it does not, the outcome is unknown, and the call says so.
//
// Lives on the reactor of its host.
class Client final : SessionUser, core::Timer {
public:
    class Call;

    Client(SessionHost& host, ClientOptions options);
    // Requires: closed, or, in the simulated world, where a process may go at any time, without
    // calls.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Begins to connect, and goes on doing so until close().
    void start();
    // Until there is a session. Fails as soon as the server refuses, and at the deadline with what
    // the last try failed with; with `tries` of kFirst when the first try fails.
    enum class Tries : std::uint8_t { kFirst, kUntilDeadline };
    Task<Result<void>> connected(Instant deadline, Tries tries);
    // Every call ends as kClosed. Awaited once, before the client is destroyed.
    Task<void> close();

    // Result<Answer>: the server's answer, whatever its status, or kTryAgain for a request that it
    // has not had, as long as it drains or lets nobody in for now; an error when there is none:
    // kTimedOut, kCancelled, kClosed, kDenied when the server refuses the session, kInvalid when
    // the request does not fit. Allocates nothing where the answer has no words, and its body
    // neither texts nor lists.
    Call call(const CallRequest& request);

    bool open() const { return session_ != nullptr && session_->state() == Session::State::kOpen; }
    // Requires: open.
    const Session& session() const { return *session_; }
    const fop::ClientId& id() const { return id_; }
    // Why there is no session, in the server's words or the network's.
    const std::string& last_problem() const { return last_problem_; }
    std::uint64_t reconnects() const { return reconnects_; }
    std::size_t calls_under_way() const { return outstanding_; }

private:
    // A request the server may have. Its number is id % kSlotCount.
    struct Slot {
        std::uint64_t id = 0;
        Call* call = nullptr;  // Null: given up, and its answer is still to come.
        fop::Lane lane = fop::Lane::kData;
        bool used = false;
    };

    Verdict on_proved(Session&) override { return {}; }
    void on_open(Session& session) override;
    bool on_requests(Session&, const fop::RequestsView&) override { return false; }
    bool on_replies(Session& session, const fop::RepliesView& replies) override;
    void on_cancelled(Session&, std::uint64_t) override {}
    void on_let_go(Session& session, std::uint64_t request) override;
    void on_acknowledged(Session&, std::uint64_t) override {}
    void on_bye(Session& session, std::string_view words) override;
    void on_turn_end(Session& session) override;
    void on_end(Session& session, const Error& error, std::string_view words) override;
    void on_gone(Session& session) override;

    static void on_time(core::Timer& timer);
    void connect();
    void give_up(Call& call, Errc why);
    void forsake(Call& call, Errc why);
    bool send(Session& session, Call& call);
    bool may_send_again(const Call& call, bool remembers) const;
    void fail_all(const Error& error);
    void acknowledge(Session& session);
    bool same_header(const fop::RequestHeader& header) const;
    void keep_header(const fop::RequestHeader& header);
    void forget(Slot& slot);
    void leave_if_done(Session& session);
    void turn_away();
    Answer not_taken() const;

    SessionHost& host_;
    const ClientOptions options_;
    fop::ClientId id_;
    core::Random jitter_;
    Session* session_ = nullptr;  // Until it is gone.
    // Who has what was sent: a life of the server, and one of its localities, to which the client
    // returns until it is not let in there.
    std::uint64_t incarnation_ = 0;
    std::optional<std::uint16_t> locality_;
    bool was_open_ = false;
    bool closing_ = false;
    // The server takes no new requests for now: it drains, or lets nobody in. What it has not had
    // is answered kTryAgain in its place.
    bool turned_away_ = false;
    Duration backoff_;
    std::uint64_t reconnects_ = 0;

    // Of the message that is being put together.
    std::string job_;
    std::string pool_;
    std::string user_;
    std::uint8_t priority_ = 0;

    std::uint64_t next_number_ = 1;
    std::vector<Slot> slots_;  // As many as were ever used at a time.
    std::vector<std::uint16_t> free_slots_;
    std::size_t outstanding_ = 0;
    // Each lane has its own credits, so that a call of one never waits behind those of the other.
    struct LaneCalls {
        core::IntrusiveList<InCalls> waiting;  // To be sent, by their numbers.
        core::IntrusiveList<InCalls> sent;     // The server may have them; likewise.
    };
    static constexpr std::array kLanes{fop::Lane::kControl, fop::Lane::kData};
    LaneCalls& calls_of(const Call& call);
    bool has_sent() const;
    std::array<LaneCalls, kLanes.size()> lanes_;  // By fop::Lane.

    core::WaitQueue state_changed_;
    std::optional<Error> refusal_;
    Error last_error_{.code = Errc::kClosed, .context = "not connected"};
    std::string last_problem_;
    std::uint64_t failures_ = 0;
};

// Used by co_await only.
class Client::Call final : InCalls, core::Timer, core::CancelHook {
public:
    Call(Client& client, const CallRequest& request)
        : Timer(&on_time), CancelHook(&on_cancel), client_(client), request_(request) {}
    ~Call();

    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> handle);
    [[nodiscard]] Result<Answer> await_resume() { return std::move(outcome_); }

private:
    friend Client;
    static void on_time(core::Timer& timer);
    static void on_cancel(core::CancelHook& hook);
    void finish(Result<Answer> outcome);
    bool open_memory(const Session& session, fop::RequestBody& body);
    void close_memory();
    bool has_memory_open() const { return source_ || target_; }

    Client& client_;
    CallRequest request_;
    std::coroutine_handle<> handle_;
    std::uint64_t id_ = 0;
    bool sent_ = false;  // In the session there is.
    bool sent_before_ = false;
    Instant first_sent_at_ = kNever;
    bool given_up_ = false;  // Waits for the server to let go of its memory.
    Errc why_given_up_ = Errc::kCancelled;
    std::optional<RemoteMemory> source_;
    std::optional<RemoteMemory> target_;
    Result<Answer> outcome_;
};

}  // namespace fopd::fabric
