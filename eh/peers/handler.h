#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "core/counter.h"
#include "core/events.h"
#include "core/histogram.h"
#include "core/reactor.h"
#include "core/task.h"
#include "core/timer_heap.h"
#include "core/wait_queue.h"
#include "eh/handler.h"
#include "eh/peers/member.h"
#include "eh/small_file.h"
#include "eh/view_store.h"

namespace fopd::eh::peers {

// Sends messages to other members. A message may be lost, come late or twice, and overtake others.
class MessageSender {
public:
    virtual void send(const Peer& to, const Message& message) = 0;
    // Requests to join that other daemons have taken so far. Each of them is answered.
    virtual std::uint64_t requests_taken() const = 0;
    // Where the member of this name cannot be reached, and why, or why it refuses messages; empty
    // if the last message to it has reached it, or there was none.
    virtual std::string problem_with(const std::string& name) const = 0;

protected:
    ~MessageSender() = default;
};

// Follows the calls of the nodes' participants, and what becomes of them. For tests.
class EpochObserver {
public:
    // The rules for contributions as mark() makes them.
    virtual EpochRules rules(const EpochRules& plain) const = 0;
    // A node is about to contribute `data`. It may append bytes to tell this call from others.
    virtual void mark(const std::string& node, std::vector<std::byte>& data) = 0;
    // The call was accepted. It must be answered within `longest`.
    virtual void on_call(const std::string& node, Duration longest) = 0;
    // The node, which takes part or wants to, leaves.
    virtual void on_leave(const std::string& node, Incarnation incarnation) = 0;
    // The node is about to do this; false: its process ends now, and does nothing any more.
    virtual bool on_effect(const std::string& node, const Effect& effect) = 0;
    // The call is answered, before its participant is told. Removes what mark() has appended.
    virtual void on_answer(const std::string& node, Incarnation incarnation, Answer& answer) = 0;
    // The node has done all that its member asked for.
    virtual void on_settled(const std::string& node, const Member& member) = 0;

protected:
    ~EpochObserver() = default;
};

// The epochs of a node, as an administrator sees them.
struct EpochStatus {
    struct Seen {
        std::string name{};
        // kLost: it should be a member, and is not. kUnknown: this node, which is none, cannot
        // tell.
        enum class State : std::uint8_t { kMember, kReady, kLost, kUnknown } state = State::kMember;
    };
    EpochState state = EpochState::kDetached;
    EpochNumber epoch = kFirstEpoch;
    ViewNumber view = 0;
    std::string root{};
    std::vector<Seen> members{};
    std::string last_error{};
    std::optional<Duration> last_error_age{};  // Empty: there was none.
    // From a call to its epoch: half of them, and 99 of 100, took at most this time.
    Duration median{};
    Duration p99{};
};

// Figures for other threads.
struct EpochFigures {
    core::Counter view;
    core::Counter members;
    core::Counter failing;       // 1: the last call ended with an error.
    core::Counter failed;        // Calls that ended with an error.
    core::Counter evictions;     // By this node as root.
    core::Counter dropped;       // Messages that made no sense.
    core::Counter store_failed;  // Calls of the view store that failed, or were refused.
    core::Histogram seconds;     // From a call to its epoch.
};

// The epoch handler of a node with peers: executes what its Member asks for. Lives on one reactor.
class PeersHandler final : public EpochHandler, ViewStoreUser, SmallFileUser, core::Timer {
public:
    struct Parts {
        core::Reactor& reactor;
        core::EventSink& events;
        MessageSender& links;
        SmallFile& incarnation;  // Keeps the last incarnation that may have been used.
        ViewStore& views;
        EpochObserver* observer = nullptr;  // Null: none.
    };
    PeersHandler(const Parts& parts, const MemberOptions& options, Peer self);
    PeersHandler(const PeersHandler&) = delete;
    PeersHandler& operator=(const PeersHandler&) = delete;

    // The node serves: it may join. A call that was made before waits for that, and no longer than
    // every other call.
    void begin();
    // Waits until the node has left, after last_epoch(); false if it has not by the deadline.
    Task<bool> left(Instant deadline);
    // Ends a pending call. From now on it sends and asks nothing, and refuses calls.
    void stop();

    const EpochRules& rules() const override { return rules_; }
    Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                            Participant& participant) override;
    void last_epoch(EpochNumber current) override;
    // Epochs may go on without a majority of the members: Member::waive_majority(). How long that
    // lasts at most, or why this daemon cannot decide on it.
    std::expected<Duration, std::string> waive_majority();

    // The sender has proved the peer key, and states its name. False: the message was not taken,
    // because the node takes part in no epochs yet, or any more.
    bool on_message(const Peer& from, std::span<const std::byte> message);

    const MemberOptions& options() const { return options_; }
    EpochStatus status() const;
    const EpochFigures& figures() const { return figures_; }

private:
    // A call that waits for begin(), and for the incarnation.
    struct Early {
        EpochNumber current = kFirstEpoch;
        std::vector<std::byte> data{};
    };

    void on_file_read(Result<std::vector<std::byte>> bytes) override;
    void on_file_replaced(Replaced replaced) override;
    void on_view_read(Result<ViewHandle> view) override;
    void on_view_swapped(Swapped outcome) override;
    static void on_time(core::Timer& timer);
    bool is_running() const { return member_.has_value() && !stopped_; }
    Incarnation first_incarnation() const;
    void use_incarnation(Incarnation durable);
    void on_early_time();
    void arm_early();
    void settle();
    void execute(Effect& effect);
    void persist(Incarnation incarnation);
    void answer(Answer answered);
    void note_answer(const Result<EpochNumber>& epoch);
    void note_error(std::string reason);
    std::string reason_of(const Error& error) const;
    std::string reason_of_silence() const;
    bool is_unreachable() const;
    void hold_back_if_unreachable(const Result<EpochNumber>& epoch);
    void note_view();
    void report_takeover(const Event& event);
    void report_awaited(const Event& event);
    void report(const Event& event);
    void report_file(const Error& error);

    const Parts parts_;
    const EpochRules rules_;  // Of the participant.
    const MemberOptions options_;
    const Peer self_;
    std::optional<Member> member_;  // Empty until the incarnation file was read.
    bool began_ = false;
    bool stopped_ = false;
    bool settling_ = false;
    Participant* participant_ = nullptr;  // Set while a call is pending.
    Instant called_at_{};
    bool has_heard_ = false;          // A message has come in the life of this process.
    std::uint64_t taken_before_ = 0;  // Requests that others had taken when it was held back last.
    std::string viewless_;  // A daemon that was asked last, and is in no view; empty: none.
    std::optional<Early> early_;
    std::optional<Incarnation> persisting_;
    bool file_busy_ = false;
    Instant read_again_at_ = kNever;  // The next try to read the file.
    bool file_failed_ = false;        // Its last failure was reported, and it has not worked since.
    std::string last_error_;
    Instant last_error_at_{};
    std::string read_error_;  // Why the view was not read the last time; empty: it was.
    bool is_lost_ = false;    // The loss was reported, and no epoch has come since.
    ViewHandle noted_view_;   // The log has it; null: none yet.
    std::string root_;        // Of that view; empty: not known yet.
    std::string awaited_;     // The members that were reported last as missing.
    core::WaitQueue left_;
    EpochFigures figures_;
};

}  // namespace fopd::eh::peers
