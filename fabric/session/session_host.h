#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/counter.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/poller.h"
#include "core/timer_heap.h"
#include "core/wait_queue.h"
#include "fabric/session/credit_loans.h"
#include "fabric/session/send_share.h"
#include "fabric/session/session.h"
#include "fop/message.h"

namespace fopd::fabric {

struct HostOptions {
    MachineOptions machine;
    std::uint32_t send_buffer_count = 512;
    std::uint32_t send_buffer_bytes = 36U << 10;
    // Messages each peer may have under way here; the first ones cost nobody a buffer. With fewer
    // than three, an answer to a ping would leave it too few for fops, and need an answer itself.
    std::uint16_t message_credits_floor = 3;
    std::uint16_t message_credits_max = 32;
    // Fops each client may have here, and all of them together beyond the first few.
    std::uint16_t fop_credits_floor = 8;
    std::uint16_t fop_credits_max = 64;
    std::uint16_t control_credits = 4;
    std::uint32_t fop_credits_total = 4096;
    // Fops that may wait for their turn beyond these credits: of a session, and of all together.
    std::uint16_t fop_loans_max = 256;
    std::uint32_t fop_loans_total = 8192;
    // What those may bring, all together, beyond a few hundred bytes each.
    std::uint32_t fop_loan_bytes_total = 8U << 20;
    std::uint32_t inline_max = 12U << 10;
    // Fewer only show what sending them together brings.
    std::uint32_t fops_per_message_max = fop::kFopsMax;
    Duration lease{30s};
    Duration handshake_timeout{5s};
};

// What a buffer is taken for.
enum class SendUse : std::uint8_t {
    kFops,       // Requests and replies.
    kControl,    // What keeps a session going: also when fops find no buffer.
    kHandshake,  // Also when neither of those finds one; without one it ends.
};

// A message on its way out, and the writer that puts it together.
struct SendBuffer final : TransferOp {
    SendBuffer(SessionHost& owner, std::span<std::byte> memory, void* registration);

    SessionHost& host;
    const LocalMemory whole;
    fop::MessageWriter writer;
    fop::MessageKind kind = fop::MessageKind::kControl;
    Session* session = nullptr;
    SendShare* share = nullptr;  // That it counts against; null: none.
    Instant sent_at = kNever;
};

// What a host has seen, readable from any thread.
struct HostStatistics {
    core::Counter sessions;  // Open now.
    core::Counter opened;    // Ever.
    core::Counter refused;   // In the handshake, for whatever reason.
    core::Counter silent;    // Connections that ended before they said what they want.
    core::Counter broken;    // Ended because the peer broke the protocol.
    core::Counter expired;   // Ended by the lease or the handshake's deadline.
    core::Counter lost;      // Ended by the network or the peer's end.
    core::Counter garbage;   // Messages that are none, or name no session.
    core::Counter
        unsealed;  // Not sealed with the session's key, repeated, or no part of a handshake.
    core::Counter messages_in;
    core::Counter messages_out;
    core::Counter bytes_in;
    core::Counter bytes_out;
    core::Counter bytes_pulled;
    core::Counter bytes_pushed;
};

// The sessions of one locality or one client, over one transfer machine. Lives on one reactor.
class SessionHost final : MessageUser, core::Poller {
public:
    SessionHost(core::Reactor& reactor, core::EventSink& events, core::Entropy& entropy,
                const HostOptions& options);
    // Requires: closed; in the simulated world, where a process may go at any time, also else.
    ~SessionHost();
    SessionHost(const SessionHost&) = delete;
    SessionHost& operator=(const SessionHost&) = delete;

    // Once.
    Result<void> open(Transport& transport);
    // Waits until what was to be sent has left; false when it has not by the deadline. Awaited by
    // one coroutine at a time.
    Task<bool> sent(Instant deadline);
    // Ends what is left of the sessions, waits until the transport holds no memory any more, and
    // gives everything back. Once.
    Task<void> close();

    // Accepts a connection request; the user hears on_open() or on_end(). `admission` is asked when
    // the client proves its key, not before: its owner may change it until then. Requires: the
    // hello was decoded without an error, and the admission keeps its address.
    struct Accepting {
        fop::ConnectHello hello;
        std::uint16_t locality = 0;
        std::uint64_t incarnation = 0;
        const fop::Admission* admission = nullptr;
    };
    Session& accept(std::unique_ptr<ConnectionRequest> request, const Accepting& accepting,
                    SessionUser& user);
    // Begins a connection, likewise.
    struct Connecting {
        Address server;
        fop::ClientId client;
        fop::Credentials credentials;
    };
    Session& connect(const Connecting& connecting, SessionUser& user);

    // Says that somebody was refused before there was a session.
    void count_refusal(std::string_view peer, std::string_view reason);
    // Says that so many connected, never asked for a session, and were ended.
    void count_silent(std::uint32_t count) { statistics_.silent.add(count); }

    // Every session that is not ending; `visit` may end the one it is called with.
    void for_each(const std::function<void(Session&)>& visit);

    core::Reactor& reactor() { return reactor_; }
    core::EventSink& events() { return events_; }
    core::Entropy& entropy() { return entropy_; }
    TransferMachine& machine() { return *machine_; }
    const HostOptions& options() const { return options_; }
    const HostStatistics& statistics() const { return statistics_; }
    // Sessions of any state.
    std::size_t session_count() const { return count_; }
    // Nothing is held for anybody: no session, and all buffers and credits are back.
    bool at_rest() const;

private:
    friend Session;
    friend SendBuffer;
    friend Transfer;

    void on_message(std::span<const std::byte> message) override;
    bool poll() override { return false; }
    void flush() override;
    Duration sleep_max() override {
        const bool is_idle = turn_end_.empty() && greetings_.empty() && ends_.empty();
        return is_idle ? Duration::max() : Duration{0};
    }
    Look look() const override { return Look::kIfItPays; }

    struct LoanTimer final : core::Timer {
        explicit LoanTimer(SessionHost& owner) : Timer(&on_time), host(owner) {}
        static void on_time(core::Timer& timer);
        SessionHost& host;
    };
    // Runs while sessions wait for buffers.
    struct Shortage final : core::Timer {
        explicit Shortage(SessionHost& owner) : Timer(&on_time), host(owner) {}
        static void on_time(core::Timer& timer) {
            static_cast<Shortage&>(timer).host.end_slowest();
        }
        SessionHost& host;
    };

    Session* find(std::uint64_t handle);
    Session& add(Session::Role role, SessionUser& user);
    void bury(Session& session);
    // The session's principal is known from now on; at a client, all sessions are one principal's.
    void join_share(Session& session);
    void leave_share(Session& session);
    // Null when there is none for this use, or the session or its principal has its share of those
    // left: it gets a turn when that has changed.
    SendBuffer* take_buffer(Session& session, SendUse use);
    bool has_room(Session& session, SendUse use);
    void give_back(SendBuffer& buffer);
    // Starts a timer that asks sessions with unused loans to return them, for sessions that lack
    // some.
    void settle_loans_soon();
    void end_promise(Session& session);
    void wake_waiting();
    void wake_for_control();
    // Buffers that may be taken for this.
    std::size_t left_for(SendUse use) const;
    void end_slowest();
    void answer_greetings();
    void start_transfers();
    void on_transferred(Session& session, Transfer& transfer);

    core::Reactor& reactor_;
    core::EventSink& events_;
    core::Entropy& entropy_;
    const HostOptions options_;
    std::unique_ptr<TransferMachine> machine_;

    std::vector<std::unique_ptr<Session>> slots_;
    std::vector<std::uint32_t> free_slots_;
    std::size_t count_ = 0;
    // Those whose connection is to be closed, or which nothing holds any more.
    core::IntrusiveList<InEnds> ends_;

    CreditPool message_credits_;
    CreditPool fop_credits_;
    CreditLoans loans_;
    LoanTimer loan_timer_{*this};

    std::span<std::byte> send_memory_;
    std::vector<std::unique_ptr<SendBuffer>> buffers_;
    std::vector<SendBuffer*> free_buffers_;
    std::map<std::string, SendShare> send_shares_;
    // Sessions that wait for a send buffer. promised_ of the free buffers are set aside for
    // sessions that were woken and have not taken theirs yet.
    SendTurns<InBufferQueue> want_buffer_;
    SendTurns<InControlQueue> want_control_;
    bool handshake_lacked_ = false;  // A handshake ended for want of a buffer.
    std::size_t promised_ = 0;
    Shortage shortage_{*this};

    core::IntrusiveList<InTurnEnd> turn_end_;
    core::IntrusiveList<InTransferTurn> transfer_turn_;
    core::IntrusiveList<InGreetings> greetings_;
    std::uint32_t transfers_in_flight_ = 0;

    core::WaitQueue empty_;     // close() waits for the last session.
    core::WaitQueue all_sent_;  // sent() for the last message.
    bool closing_ = false;
    HostStatistics statistics_;
};

}  // namespace fopd::fabric
