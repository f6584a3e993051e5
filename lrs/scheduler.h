#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string_view>
#include <vector>

#include "core/counter.h"
#include "core/histogram.h"
#include "core/intrusive_list.h"
#include "core/metrics.h"
#include "core/reactor.h"
#include "core/timer_heap.h"
#include "eh/handler.h"
#include "lrs/control_turns.h"
#include "lrs/epoch_frame.h"
#include "lrs/policy.h"
#include "lrs/request.h"

namespace fopd::lrs {

// The lanes that a getter asks for.
enum class Asked : std::uint8_t { kAny, kControl, kData };

// Links a getter into the scheduler's list of waiting getters.
class GetterPlace : public core::ListNode {
private:
    friend class Scheduler;
    Asked asked_ = Asked::kAny;
};

// Receives a request from the scheduler. A getter must not move until on_request() is called;
// destroying the getter withdraws its call of next().
class Getter : public GetterPlace {
public:
    // Receives the request, which belongs to this getter until it calls Scheduler::complete().
    // Null means that the scheduler is shut down and no request is left. May call next() again.
    virtual void on_request(Request* request) = 0;

protected:
    ~Getter() = default;
};

// The counters of a lane. Readable from any thread.
struct LaneFigures {
    core::Counter queued;     // Waiting now.
    core::Counter delivered;  // Ever given to a getter.
    core::Counter removed;    // Ever removed: by their owners, or because they were late.
    core::Counter oldest_ns;  // Arrival of the oldest waiting request; 0: none waits.
    core::Histogram waits;    // From arrival to delivery.
};

// The counters of the policies. Readable from any thread.
struct PolicyFigures {
    core::Counter switches;      // Times another policy took over.
    core::Counter held_back_ns;  // A getter and data waited, but the policy gave nothing.
    core::Counter epoch;         // The present epoch; 0: none.
};

// The request scheduler of a locality. Arriving requests wait here; each is delivered to a getter
// exactly once, in the order that the policy chooses. The scheduler implements the functions common
// to all policies: lanes, the change from one policy to another, epochs, the drain and the figures.
// Control requests bypass the policy, so that no limit can delay them: principals take turns, and
// between two data requests each principal has one (ControlTurns).
//
// A scheduler belongs to one reactor. It runs from its construction on. Destroy it after
// shutdown(), when all requests were delivered. In the simulated world a scheduler may be destroyed
// with requests in it, which are then forgotten.
class Scheduler final : core::Timer, eh::Participant {
public:
    // `epochs` is used by this scheduler only, and outlives it. Null: there are no epochs. `parts`
    // are those of the frames that are contributed to epochs; they outlive the scheduler.
    Scheduler(core::Reactor& reactor, std::unique_ptr<Policy> policy,
              eh::EpochHandler* epochs = nullptr, std::span<const EpochPart> parts = epoch_parts());

    // Takes in a request; never fails and never waits. May call getters. REQUIRES: not shut down.
    void incoming(Request& request);
    // Calls the getter once, now or later, with the next request of the lanes it asks for. Getters
    // are served in the order of their calls of next(). A getter that already waits keeps its
    // position in that order, and `asked` replaces the lanes that it asked for before.
    void next(Getter& getter, Asked asked = Asked::kAny);
    // Removes a waiting request. REQUIRES: request.queued().
    void remove(Request& request);
    // Whether the request waits because its class has reached its limit, and not because other
    // requests go first.
    // REQUIRES: request.queued().
    bool is_held_back(const Request& request) const;
    // A queued request with a Late handler is removed when its deadline passes. At most kLateMax
    // requests are removed in a turn of the reactor; no request is delivered until all late
    // requests are removed.
    static constexpr std::size_t kLateMax = 128;
    // A delivered request has ended; the policy may now release others. May call getters.
    void complete(Request& request);

    // Replaces the policy. Waiting requests are handed over to the new policy, the oldest first, so
    // that each client's requests stay in their order; the old policy delivers nothing any more. At
    // most kHandedOverMax requests are handed over in a turn of the reactor; requests that arrive
    // meanwhile wait behind the older ones. May call getters.
    void use(std::unique_ptr<Policy> policy);
    // Applies new settings to the present policy, which keeps its classes. If the policy needs it,
    // waiting requests are passed to Policy::move() in the same order and portions as in use().
    // Returns false if the policy cannot adapt. May call getters.
    bool adapt(const PolicySettings& settings, const PolicyParts& parts);
    // Handing over this many requests takes at most a millisecond.
    static constexpr std::size_t kHandedOverMax = 128;
    bool is_handing_over() const { return waiting_.size() > 1; }

    // From now on all waiting requests are delivered, even those that the policy would hold back.
    // When no request is left, every getter receives null. The caller must not call incoming()
    // afterwards.
    void shutdown();

    const LaneFigures& figures(Lane lane) const { return figures_[index_of(lane)]; }
    // The figures of the policies since the start. collect() exports them.
    const PolicyFigures& policy_figures() const { return policy_figures_; }
    // The figures of the policy's classes. A policy without classes has one, the whole data lane.
    std::vector<ClassFigures> class_figures();
    // News of the classes that have changed since the last call or have waiting requests.
    std::vector<ClassNews> take_class_news();
    // The class of a request that waits, or that a getter has just received. Empty for a control
    // request, and for a request that no policy holds or has chosen. Valid until on_request() ends,
    // or, outside of it, until the next call of the scheduler.
    // REQUIRES: request.queued() or request.delivered().
    ClassLabel class_of(const Request& request) const;
    // Any thread.
    void collect(core::MetricSink& sink, std::string_view locality) const;

private:
    // Waiting data requests, the oldest first, and the policy that holds them. The policy is null
    // for requests that arrived during a handover and were not pushed to a policy yet.
    struct Waiting {
        std::uint32_t number = 0;  // Unique.
        std::shared_ptr<Policy> policy;
        core::IntrusiveList<ArrivalPlace> requests{};
    };

    static std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }
    LaneFigures& lane_of(const Request& request) {
        return figures_[index_of(request.attributes.lane)];
    }
    bool asks_for_data() { return !getters_.empty() && getters_.front().asked_ != Asked::kControl; }
    bool has_data() const { return figures(Lane::kData).queued.get() > 0; }

    // Fires when this scheduler becomes ready for the next epoch.
    class EpochTimer final : public core::Timer {
    public:
        explicit EpochTimer(Scheduler& owner)
            : Timer([](Timer& timer) { static_cast<EpochTimer&>(timer).owner_.ask_for_epoch(); }),
              owner_(owner) {}

    private:
        Scheduler& owner_;
    };
    // Continues the handover in the next turn of the reactor.
    class HandOverTimer final : public core::Timer {
    public:
        explicit HandOverTimer(Scheduler& owner)
            : Timer([](Timer& timer) { static_cast<HandOverTimer&>(timer).owner_.go_on(); }),
              owner_(owner) {}

    private:
        Scheduler& owner_;
    };

    // Removes late requests.
    class LateTimer final : public core::Timer {
    public:
        explicit LateTimer(Scheduler& owner)
            : Timer([](Timer& timer) { static_cast<LateTimer&>(timer).owner_.dispatch(); }),
              owner_(owner) {}

    private:
        Scheduler& owner_;
    };
    friend Request::DeadlinePlace;

    void ask_for_epoch();
    void note_epoch_over();
    void on_epoch(Result<eh::EpochNumber> epoch, std::span<const std::byte> data) override;

    void visit_classes(Instant now, const ClassVisitor& visitor);
    void dispatch();
    bool end_late();
    void end_late(Request& request);
    void note_held_back();
    void count_held_back(Instant now);
    Request* take(Asked asked);
    Request* take_data();
    Request* oldest_of(Lane lane);
    void leave_lane(Request& request);

    void wait_for_turn(Request& request, Instant now);
    Policy* holder_of(const Request& request) const;
    void begin_hand_over();
    void hand_over();
    void go_on();

    core::Reactor& reactor_;
    std::shared_ptr<Policy> policy_;
    std::uint32_t policy_number_ = 1;  // Changes with each policy.
    PolicyFigures policy_figures_;
    ClassTally tally_;  // Since the policy was put into use.
    eh::EpochHandler* const epochs_;
    const EpochFrame frame_;
    EpochTimer epoch_timer_;
    eh::EpochNumber epoch_ = eh::kFirstEpoch;
    bool is_others_epoch_ = false;   // Policies of other nodes contributed to it.
    Instant asked_at_{};             // When it became ready for the last epoch.
    Instant ready_latest_ = kNever;  // Latest time to ask for the next epoch; kNever: asked.
    Instant ready_at_ = kNever;      // When epoch_timer_ fires.
    std::array<LaneFigures, kLaneCount> figures_;
    ControlTurns control_;
    // All waiting data requests, the oldest first. The first element has the requests that policy_
    // holds; the requests of all other elements must be handed over to policy_.
    std::list<Waiting> waiting_;
    std::uint32_t last_waiting_number_ = 0;
    HandOverTimer hand_over_timer_;
    core::TimerHeap deadlines_;  // The deadlines of queued requests with a Late handler.
    LateTimer late_timer_;
    Instant late_at_ = kNever;  // When late_timer_ fires; not after the first deadline.
    core::IntrusiveList<Getter> getters_;
    Instant held_back_since_ = kNever;
    bool dispatching_ = false;
    bool is_shut_down_ = false;
};

}  // namespace fopd::lrs
