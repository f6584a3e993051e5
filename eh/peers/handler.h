#pragma once

#include <cstdint>
#include <expected>
#include <map>
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

// Sends messages to other members. A message may be lost, arrive late or twice, and overtake
// others.
class MessageSender {
public:
    virtual void send(const Peer& to, const Message& message) = 0;
    // The number of requests to join that other daemons have taken so far. Each of them is answered
    // if it is valid.
    virtual std::uint64_t requests_taken() const = 0;
    // The last problem with messages to the member of this name, as words that follow its name:
    // that it cannot be reached or takes no messages, at which address, and why. Empty if it has
    // taken the last message, or none was sent.
    virtual std::string problem_with(const std::string& name) const = 0;

protected:
    ~MessageSender() = default;
};

// Observes the calls of the nodes' participants and their answers. For tests.
class EpochObserver {
public:
    // The rules by which contributions are combined, including the bytes that mark() appends.
    virtual EpochRules rules(const EpochRules& plain) const = 0;
    // A node is about to contribute `data`. It may append bytes to tell this call from others.
    virtual void mark(const std::string& node, std::vector<std::byte>& data) = 0;
    // The call was accepted. It must be answered within `longest`.
    virtual void on_call(const std::string& node, Duration longest) = 0;
    // The node leaves: it has taken part in epochs, or was about to join.
    virtual void on_leave(const std::string& node, Incarnation incarnation) = 0;
    // The node is about to execute this effect. False: its process ends now, without executing it.
    virtual bool on_effect(const std::string& node, const Effect& effect) = 0;
    // Called before the participant gets the answer to its call. Removes the bytes that mark() has
    // appended.
    virtual void on_answer(const std::string& node, Incarnation incarnation, Answer& answer) = 0;
    // The node has done all that its member asked for.
    virtual void on_settled(const std::string& node, const Member& member) = 0;

protected:
    ~EpochObserver() = default;
};

// The state of a node's epochs, for administrators.
struct EpochStatus {
    struct Seen {
        std::string name{};
        // kLost: another daemon that should be a member, and is not. kDetached: this node, if it
        // is no member. kUnknown: this node is no member, and so does not know the state of others.
        enum class State : std::uint8_t {
            kMember,
            kReady,
            kLost,
            kDetached,
            kUnknown
        } state = State::kMember;
    };
    EpochState state = EpochState::kDetached;
    EpochNumber epoch = kFirstEpoch;
    ViewNumber view = 0;
    std::string root{};
    std::vector<Seen> members{};
    std::string last_error{};
    std::optional<Duration> last_error_age{};  // Empty: there was none.
    // The time from a call to its epoch: the median and the 99th percentile.
    Duration median{};
    Duration p99{};
};

// Figures for other threads.
struct EpochFigures {
    core::Counter view;
    core::Counter members;
    core::Counter failing;       // 1 if the last call ended with an error, otherwise 0.
    core::Counter failed;        // Calls that ended with an error.
    core::Counter evictions;     // Evictions that this node decided as root.
    core::Counter dropped;       // Messages that were invalid.
    core::Counter store_failed;  // Calls of the view store that failed, or were refused.
    core::Histogram seconds;     // The time from a call to its epoch.
};

// The epoch handler of a node with peers. Passes all events to its Member, and executes the effects
// that the Member requests. Lives on one reactor.
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

    // Called when the node serves: from now on it may join. A call made before waits for begin(),
    // but not longer than any other call.
    void begin();
    // Called after last_epoch(): waits until the node has left. False: it has not left by the
    // deadline.
    Task<bool> left(Instant deadline);
    // Ends a pending call. From now on it sends and asks nothing, and refuses calls.
    void stop();

    const EpochRules& rules() const override { return rules_; }
    Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                            Participant& participant) override;
    void last_epoch(EpochNumber current) override;
    // Lets epochs go on without a majority of the members, see Member::waive_majority(). Returns
    // for how long at most, or the reason why this daemon cannot decide it.
    std::expected<Duration, std::string> waive_majority();

    // A message has arrived. The sender has proved that it has the peer key, and states its name.
    // False: the message was not taken, because the node takes part in no epochs yet, or stop() was
    // called.
    bool on_message(const Peer& from, std::span<const std::byte> message);

    const MemberOptions& options() const { return options_; }
    EpochStatus status() const;
    const EpochFigures& figures() const { return figures_; }

private:
    // A call that waits for begin(), or until the incarnation is durable.
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
    // Whether this difference of rules has not been reported in the last minute.
    bool is_new_difference(const Event& event);
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
    bool has_heard_ = false;  // A message has arrived since the process started.
    // MessageSender::requests_taken() when the member was last held back.
    std::uint64_t taken_before_ = 0;
    std::string viewless_;  // The daemon that was asked last, if it is in no view.
    std::optional<Early> early_;
    std::optional<Incarnation> persisting_;
    bool file_busy_ = false;
    Instant read_again_at_ = kNever;  // The next try to read the file.
    // The file's last failure was reported, and no call has succeeded since.
    bool file_failed_ = false;
    std::string last_error_;
    Instant last_error_at_{};
    std::string read_error_;  // Why the last read of the view failed; empty: it succeeded.
    bool is_lost_ = false;    // The loss was reported, and no epoch has come since.
    ViewHandle noted_view_;   // The last view that was logged; null: none yet.
    std::string root_;        // The name of that view's root; empty: not known yet.
    std::string awaited_;     // The missing members in the last event about that.
    struct Difference {
        UnlikeRule rule = UnlikeRule::kNone;
        Instant told_at{};
    };
    std::map<std::string, Difference> differences_;  // Reported ones, by the other daemon.
    core::WaitQueue left_;
    EpochFigures figures_;
};

}  // namespace fopd::eh::peers
