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

// The base of a call for the node by which it is in the client's lists of calls.
class InCalls : public core::ListNode {};

// The server gives up a call this much earlier than the caller, who has `left` time, so that the
// reply can still tell the caller which wait of the fop was too long.
Duration answer_margin(Duration left);

// The arguments of a call. All borrowed memory must stay valid until the call has returned.
struct CallRequest {
    const fop::FopType* type = nullptr;
    fop::RequestBody body{};
    fop::RequestHeader header{};
    std::span<const std::byte> token{};
    std::span<const std::byte> payload{};  // Travels in the message: at most inline_max().
    std::span<std::byte> reply_into{};     // Receives the payload of the reply.
    // Memory that the server may read (source) and write (target), for bodies with descriptors.
    std::span<std::byte> source{};
    std::span<std::byte> target{};
    Instant deadline = kNever;
    core::CancelSource* cancel = nullptr;
};

struct Answer {
    fop::Status status = fop::Status::kDone;
    fop::ReplyBody body;
    std::unique_ptr<std::byte[]> borrowed{};  // Memory that the body refers to.
    std::size_t payload_bytes = 0;            // How much of reply_into was filled.
    std::string words;                        // The reason of a failure, for people.
    // The request must not run twice and was sent more than once, so an earlier life of the server
    // may have run it.
    bool sent_before = false;
};

// Receives the parts of the time of each answered call.
class TimesUser {
public:
    // `unsent`: the time until the client could send the request for the first time. `total`: the
    // time until the answer arrived. Called on the client's reactor.
    virtual void on_times(const fop::TimeSpent& at_server, Duration unsent, Duration total) = 0;

protected:
    ~TimesUser() = default;
};

struct ClientOptions {
    Address server;
    fop::Credentials credentials;
    // The pause between attempts to connect doubles from backoff_min to backoff_max, and a random
    // part of it is waited, at least a half. It is backoff_min again after a session in which a
    // call was answered, or that lasted for backoff_max.
    Duration backoff_min{50ms};
    Duration backoff_max{5s};
    // For how long after its first transmission a call may be sent again to a server that records
    // the reply in its store. Well below the time for which the server keeps the reply.
    Duration recorded_max{30min};
    // When a call is given up, its memory may still be open to the server. If the transport cannot
    // take the memory back, the server has this time to release it; then the client ends the
    // session and connects again.
    Duration let_go_max{50ms};
    TimesUser* times = nullptr;  // Null: the server is not asked for times. Outlives the client.
};

// Makes calls to one locality of one server: the locality of the address, or the one that the
// server has chosen. The calls share a session, which the client makes again whenever it is lost.
//
// In a new session the client sends the calls in flight again. Calls that may run twice, and calls
// whose replies the store records, may be sent to a later life of the server. All other calls are
// sent only to the same life, which knows which of them it has run; if that life has ended, the
// call ends with an unknown outcome. A call whose reply the store records, and which the server
// puts off when it is sent again, is repeated under its number until the server has looked for the
// record.
//
// Lives on the reactor of its host.
class Client final : SessionUser, core::Timer {
public:
    class Call;

    Client(SessionHost& host, ClientOptions options);
    // REQUIRES: close() has returned. In the simulated world, where a process may end at any time,
    // it is enough that no call is pending.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Connects, and connects again whenever the session is lost, until close().
    void start();
    // Waits until a session is open. Fails as soon as the server refuses, or at the deadline with
    // the error of the last attempt; with Tries::kFirst, when the first attempt fails.
    enum class Tries : std::uint8_t { kFirst, kUntilDeadline };
    Task<Result<void>> connected(Instant deadline, Tries tries,
                                 core::CancelSource* cancel = nullptr);
    // Ends every call as kClosed. Await it once, before the client is destroyed.
    Task<void> close();

    // Awaiting the call gives a Result<Answer>. The answer is the server's, whatever its status; or
    // kTryAgain for a request that was not sent because the server drains or admits no client now.
    // Without an answer the error is kTimedOut, kCancelled, kClosed, kDenied (the server refuses
    // the session) or kInvalid (the request does not fit into a message). Allocates no memory
    // unless the answer has words, texts or lists.
    Call call(const CallRequest& request);

    bool open() const { return session_ != nullptr && session_->state() == Session::State::kOpen; }
    // REQUIRES: open.
    const Session& session() const { return *session_; }
    const fop::ClientId& id() const { return id_; }
    // The reason why no session is open, as the server or the network gave it.
    const std::string& last_problem() const { return last_problem_; }
    // The server does not have the locality that the address names.
    bool lacks_locality() const { return lacks_locality_; }
    // How often a session was opened again after the first one.
    std::uint64_t reconnects() const { return reconnects_; }
    // The number of calls that the server knows of, or whose memory it may still use.
    std::size_t calls_in_flight() const { return outstanding_; }

private:
    // More than the credits and loans of any server.
    static constexpr std::size_t kCallsMax = fop::kRequestPlaces;
    // The memory of a call that is open to the server: what it may read, and what it may write.
    using OpenMemory = std::array<std::optional<RemoteMemory>, 2>;
    // A request that was sent. Its number is id % kCallsMax.
    struct CallState {
        std::uint64_t id = 0;
        Call* call = nullptr;  // Null: the call was given up, and its answer is pending.
        fop::Lane lane = fop::Lane::kData;
        bool used = false;
        // Memory that was taken back while the server's answer is still pending.
        OpenMemory taken_back{};
    };

    Verdict on_proved(Session&) override { return {}; }
    void on_open(Session& session) override;
    bool on_requests(Session&, const fop::RequestsView&) override { return false; }
    bool on_replies(Session& session, const fop::RepliesView& replies) override;
    void on_cancelled(Session&, std::span<const std::uint64_t>) override {}
    void on_let_go(Session& session, std::uint64_t request) override;
    void on_acknowledged(Session&, std::uint64_t) override {}
    void on_bye(Session& session, std::string_view words) override;
    void on_turn_end(Session& session) override;
    void on_end(Session& session, const Error& error, std::string_view words) override;
    void on_gone(Session& session) override;

    // The pause before calls that were put off are sent again.
    class Pause final : public core::Timer {
    public:
        explicit Pause(Client& client) : Timer(&on_time), client_(client) {}

    private:
        static void on_time(core::Timer& timer) {
            static_cast<Pause&>(timer).client_.send_put_off();
        }
        Client& client_;
    };
    static constexpr Duration kPutOffMin = 10ms;
    static constexpr Duration kPutOffMax = 1s;

    static void on_time(core::Timer& timer);
    void connect();
    static void insert(core::IntrusiveList<InCalls>& calls, InCalls& added);
    void put_off(Call& call);
    void send_put_off();
    void give_up(Call& call, Errc why);
    void forsake(Call& call, Errc why);
    bool send(Session& session, Call& call);
    bool may_send_again(const Call& call, bool remembers) const;
    void fail_all(const Error& error);
    void acknowledge(Session& session);
    bool same_header(const fop::RequestHeader& header) const;
    void keep_header(const fop::RequestHeader& header);
    void tell_times(const Call& call, const fop::TimeSpent& at_server) const;
    void forget(CallState& state);
    void close_memory(OpenMemory& memory);
    void leave_if_done(Session& session);
    void turn_away();
    Answer not_taken() const;

    SessionHost& host_;
    const ClientOptions options_;
    fop::ClientId id_;
    core::Random jitter_;
    Session* session_ = nullptr;  // Until on_gone().
    // The life and the locality of the server that received the calls. The client returns to this
    // locality until it is refused there.
    std::uint64_t incarnation_ = 0;
    std::optional<std::uint16_t> locality_;
    bool was_open_ = false;
    bool closing_ = false;
    // The server drains or admits no client now. Calls that were not sent end with kTryAgain.
    bool turned_away_ = false;
    bool lacks_locality_ = false;
    Duration backoff_;            // The next pause between attempts to connect.
    Instant opened_at_ = kNever;  // Of the session; kNever: it is not open.
    std::uint64_t reconnects_ = 0;
    Pause pause_;
    Duration put_off_pause_ = kPutOffMin;  // The next one; doubles until a call is answered.

    // The header of the open message.
    std::string job_;
    std::string pool_;
    std::string user_;
    std::uint8_t priority_ = 0;

    std::uint64_t next_number_ = 1;
    std::vector<CallState> calls_;  // Grows to the largest number in use at a time.
    std::vector<std::uint16_t> free_numbers_;
    std::size_t outstanding_ = 0;
    // Each lane has its own credits, so a control call never waits behind data calls.
    struct LaneCalls {
        // Each in the order of numbers; calls that wait to be sent and have no number come last.
        core::IntrusiveList<InCalls> waiting;
        core::IntrusiveList<InCalls> sent;
        core::IntrusiveList<InCalls> put_off;  // Sent again after a pause, under the same number.
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
    bool take_back_memory();
    bool has_memory_open() const { return open_memory_[0] || open_memory_[1]; }

    Client& client_;
    CallRequest request_;
    std::coroutine_handle<> handle_;
    std::uint64_t id_ = 0;
    bool sent_ = false;  // In the current session.
    bool sent_before_ = false;
    Instant first_sent_at_ = kNever;
    Instant began_at_{};
    bool given_up_ = false;  // Waits until the server releases the call's memory.
    Errc why_given_up_ = Errc::kCancelled;
    OpenMemory open_memory_;
    Result<Answer> outcome_;
};

}  // namespace fopd::fabric
