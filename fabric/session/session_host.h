#pragma once

#include <array>
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
#include "fabric/session/session.h"
#include "fabric/session/traffic_share.h"
#include "fop/key.h"
#include "fop/message.h"
#include "fop/protection.h"

namespace fopd::fabric {

struct HostOptions {
    MachineOptions machine;
    std::uint32_t send_buffer_count = 512;
    std::uint32_t send_buffer_bytes = 36U << 10;
    // How many messages each peer may always have in flight to this host, without a buffer from the
    // shared pool. With fewer than three, an answered ping would leave too few credits for fops,
    // and the answer would need an answer itself.
    std::uint16_t message_credits_floor = 3;
    std::uint16_t message_credits_max = 32;
    // How many fops each client may always have in flight here. Further fops use credits of the
    // common total.
    std::uint16_t fop_credits_floor = 8;
    std::uint16_t fop_credits_max = 64;
    std::uint16_t control_credits = 4;
    std::uint32_t fop_credits_total = 4096;
    // Loans: how many fops may wait for their turn in addition to these credits, for one session
    // and in total.
    std::uint16_t fop_loans_max = 256;
    std::uint32_t fop_loans_total = 8192;
    // The bytes that fops on loans may bring in total, not counting a few hundred bytes of each.
    std::uint32_t fop_loan_bytes_total = 8U << 20;
    // When loans are short, a pass looks at so many sessions, and the next one at those after them.
    std::uint32_t loans_settled_per_pass = 1024;
    std::uint32_t inline_max = 12U << 10;
    // Lower than the default only in benchmarks, which measure the gain from several fops in a
    // message.
    std::uint32_t fops_per_message_max = fop::kFopsMax;
    Duration lease{30s};
    Duration handshake_timeout{5s};
    fop::Protection protection = fop::Protection::kSeal;
};

// The use of a send buffer. Each use leaves some buffers for the uses that follow it here.
enum class SendUse : std::uint8_t {
    kFops,       // Requests and replies.
    kControl,    // Credits, pings and the like, which keep a session alive.
    kHandshake,  // Handshakes. A handshake that finds no buffer ends.
};

// A message being written or sent.
struct SendBuffer final : TransferOp {
    SendBuffer(SessionHost& owner, std::span<std::byte> memory, void* registration);

    SessionHost& host;
    const LocalMemory whole;
    fop::MessageWriter writer;
    fop::MessageKind kind = fop::MessageKind::kControl;
    Session* session = nullptr;
    TrafficShare* share = nullptr;  // The share in which it counts; null: none.
    Instant sent_at = kNever;
};

// Counters of a host, readable from any thread.
struct HostStatistics {
    core::Counter sessions;  // Sessions that are open now.
    core::Counter opened;    // Sessions that were opened so far.
    core::Counter refused;   // Sessions that were refused in the handshake, for any reason.
    core::Counter silent;    // Connections that ended without a greeting.
    // Connections of strangers, by kind.
    std::array<core::Counter, Stranger::kKindCount> strangers;
    core::Counter broken;   // Ended because the peer violated the protocol.
    core::Counter expired;  // Ended by the lease or the deadline of the handshake.
    core::Counter lost;     // Ended by the network or the peer.
    core::Counter garbage;  // Messages that are malformed or name no session.
    // Messages that are not sealed with the session's key, are repeated, came over another
    // connection, or are not part of a handshake.
    core::Counter unsealed;
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
    // REQUIRES: closed. Does not hold at the end of a simulated world, where a process may end at
    // any time.
    ~SessionHost();
    SessionHost(const SessionHost&) = delete;
    SessionHost& operator=(const SessionHost&) = delete;

    // Once. kUnsupported: the transport cannot protect sessions as the options say.
    Result<void> open(Transport& transport);
    // Waits until all pending messages have left; false if they have not by the deadline. Awaited
    // by one coroutine at a time.
    Task<bool> sent(Instant deadline);
    // Ends the remaining sessions, waits until the transport uses none of their memory, and frees
    // everything. Once.
    Task<void> close();

    // Accepts a request to connect; the outcome is reported by on_open() or on_end(). `admission`
    // is used when the client proves its key, so its owner may change it until then. REQUIRES: the
    // hello was decoded without error, and the admission stays at its address.
    struct Accepting {
        fop::ConnectHello hello;
        std::uint16_t locality = 0;
        std::uint64_t incarnation = 0;
        const fop::Admission* admission = nullptr;
    };
    Session& accept(std::unique_ptr<ConnectionRequest> request, const Accepting& accepting,
                    SessionUser& user);
    // Begins a connection; the outcome is reported in the same way.
    struct Connecting {
        Address server;
        fop::ClientId client;
        fop::Credentials credentials;
    };
    Session& connect(const Connecting& connecting, SessionUser& user);

    // Counts and logs that a peer was refused.
    struct Refused {
        std::string_view peer;
        std::string_view reason;
        std::uint64_t session = 0;              // 0: refused before it had one.
        std::optional<fop::KeyId> key_id = {};  // The id of the key that it claims to have.
    };
    void count_refusal(const Refused& refused);
    // Counts peers that connected, sent nothing and were disconnected.
    void count_silent(std::uint32_t count) { statistics_.silent.add(count); }
    void count_stranger(Stranger::Kind kind) {
        statistics_.strangers[static_cast<std::size_t>(kind)].add(1);
    }

    // Visits every session that is not ending; `visit` may end the session.
    void for_each(const std::function<void(Session&)>& visit);

    core::Reactor& reactor() { return reactor_; }
    core::EventSink& events() { return events_; }
    core::Entropy& entropy() { return entropy_; }
    TransferMachine& machine() { return *machine_; }
    const HostOptions& options() const { return options_; }
    const HostStatistics& statistics() const { return statistics_; }
    // Sessions of any state.
    std::size_t session_count() const { return count_; }
    // True if there is no session and all buffers and credits have been returned.
    bool at_rest() const;

private:
    friend Session;
    friend SendBuffer;
    friend Transfer;

    void on_message(std::span<const std::byte> message, const Connection* by) override;
    // The machine, or with `tcp` the kernel, tells when something has come.
    Look look() const override { return Look::kNoNeed; }
    bool poll() override { return sleep_max() == Duration{0}; }
    void end_of_turn() override;
    Duration sleep_max() override {
        const bool is_idle = turn_end_.empty() && greetings_.empty() && ends_.empty();
        return is_idle ? Duration::max() : Duration{0};
    }

    struct LoanTimer final : core::Timer {
        explicit LoanTimer(SessionHost& owner) : Timer(&on_time), host(owner) {}
        static void on_time(core::Timer& timer);
        SessionHost& host;
    };
    // The timer that runs while sessions wait for buffers.
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
    // Called when the session's principal is known. At a client all sessions belong to one
    // principal.
    void join_share(Session& session);
    // Null if no buffer is left for this use, or if the session or its principal has its share.
    // Then the session gets a turn when that has changed.
    SendBuffer* take_buffer(Session& session, SendUse use);
    bool has_room(Session& session, SendUse use);
    void give_back(SendBuffer& buffer);
    // Starts the timer that asks sessions to return unused loans, if other sessions lack loans.
    void settle_loans_soon();
    void arm_loan_timer();
    void settle_some_loans();
    void end_promise(Session& session);
    void wake_waiting();
    void wake_for_control();
    // The number of buffers that this use may take.
    std::size_t left_for(SendUse use) const;
    void end_slowest();
    void answer_greetings();
    // How many transfers the transport may work on beside those in flight.
    std::uint32_t transfers_left() const;
    // Called when the session has transfers to start.
    void want_transfer_of(Session& session);
    void start_transfers();
    void on_transferred(Session& session, Transfer& transfer);

    core::Reactor& reactor_;
    core::EventSink& events_;
    core::Entropy& entropy_;
    const HostOptions options_;
    std::unique_ptr<TransferMachine> machine_;

    std::vector<std::unique_ptr<Session>> sessions_;  // Null: ended.
    std::vector<std::uint32_t> free_indexes_;
    std::size_t count_ = 0;
    // Sessions whose connection must be closed, or that can be destroyed.
    core::IntrusiveList<InEnds> ends_;

    CreditPool message_credits_;
    CreditPool fop_credits_;
    CreditLoans loans_;
    LoanTimer loan_timer_{*this};
    std::size_t next_to_settle_ = 0;  // The index of the session that the next pass begins with.
    // Whether a session lacked loans since the last pass that began with the first session.
    bool are_loans_lacked_ = false;

    std::span<std::byte> send_memory_;
    std::vector<std::unique_ptr<SendBuffer>> buffers_;
    std::vector<SendBuffer*> free_buffers_;
    std::map<std::string, TrafficShare> shares_;
    // Sessions that wait for a send buffer. `promised_` is the number of free buffers reserved for
    // sessions that were woken and have not taken a buffer yet.
    ShareTurns<InBufferQueue> want_buffer_;
    ShareTurns<InControlQueue> want_control_;
    ShareTurns<InTransferQueue> want_transfer_;
    bool handshake_lacked_ = false;  // A handshake ended because it found no buffer.
    std::size_t promised_ = 0;
    Shortage shortage_{*this};

    core::IntrusiveList<InTurnEnd> turn_end_;
    core::IntrusiveList<InGreetings> greetings_;
    std::uint32_t transfers_in_flight_ = 0;

    core::WaitQueue empty_;     // close() waits for the last session.
    core::WaitQueue all_sent_;  // sent() for the last message.
    bool closing_ = false;
    HostStatistics statistics_;
};

}  // namespace fopd::fabric
