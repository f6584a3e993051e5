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
#include "lrs/policy.h"
#include "lrs/request.h"

namespace fopd::lrs {

// Which requests a getter asks for.
enum class Asked : std::uint8_t { kAny, kControl };

// Its place among those who ask.
class GetterPlace : public core::ListNode {
private:
    friend class Scheduler;
    Asked asked_ = Asked::kAny;
};

// Who asks for a request. It stays where it is until it was called; one that is destroyed asks no
// more.
class Getter : public GetterPlace {
public:
    // The request, which is this getter's until it calls Scheduler::complete(); null when the
    // scheduler is shut down and nothing is left. May ask for the next one from within.
    virtual void on_request(Request* request) = 0;

protected:
    ~Getter() = default;
};

// What a lane has seen. Readable from any thread.
struct LaneFigures {
    core::Counter queued;     // Waiting now.
    core::Counter delivered;  // Ever given to a getter.
    core::Counter removed;    // Ever taken out: by whoever brought them, or when they were late.
    core::Counter oldest_ns;  // When the oldest that waits arrived; 0 when none does.
    core::Histogram waits;    // From arrival to delivery.
};

// What the policies have done. Readable from any thread.
struct PolicyFigures {
    core::Counter switches;      // Times another policy took over.
    core::Counter held_back_ns;  // In which somebody asked, data waited, and the policy gave none.
    core::Counter epoch;         // That it is in; 0: none.
};

// A locality's request scheduler: what arrives waits here, each request is given to a getter
// exactly once, and in which order is the policy's choice. What does not depend on the policy is
// here: lanes, the change from one policy to another, epochs, the drain, the figures. Control
// requests are served in the order of arrival, before data, and by no policy, so that none can hold
// them back.
//
// Lives on its reactor. Construction starts it; shutdown(), when the getters have had everything,
// is followed by destruction. One that is destroyed with its world forgets what it holds.
class Scheduler final : core::Timer, eh::Participant {
public:
    // The epoch handler is this scheduler's alone, and outlives it. Null: there are no epochs.
    Scheduler(core::Reactor& reactor, std::unique_ptr<Policy> policy,
              eh::EpochHandler* epochs = nullptr);

    // Takes in a request; never fails and never waits. May call getters. Requires: not shut down.
    void incoming(Request& request);
    // The getter is called once, now or later, with the next request there is for it; getters are
    // served in the order they asked. One that asks already goes on in its place, for what it wants
    // now.
    void next(Getter& getter, Asked asked = Asked::kAny);
    // Takes out a request that waits. Requires: request.queued().
    void remove(Request& request);
    // Whether it waits because its class may have no more now, not because others go first.
    // Requires: request.queued().
    bool is_held_back(const Request& request) const;
    // A queued request with a handler for lateness is removed when its deadline passes. At most so
    // many are removed in a turn of the reactor; none is delivered until all late ones are removed.
    static constexpr std::size_t kLateMax = 128;
    // A request that was delivered has ended: a policy may let others run. May call getters.
    void complete(Request& request);

    // From now on this policy decides, also about what waits already: that is handed over, the
    // oldest first, so that each client's requests stay in their order, and nothing is given out
    // before. Not more than kHandedOverMax in a turn of the reactor; what comes meanwhile waits
    // behind. May call getters.
    void use(std::unique_ptr<Policy> policy);
    // The policy goes on with other settings, and what it knows of classes. What waits it looks at
    // again in the same way. False: it cannot. May call getters.
    bool adapt(const PolicySettings& settings, const PolicyParts& parts);
    // A millisecond's work at most.
    static constexpr std::size_t kHandedOverMax = 128;
    bool is_handing_over() const { return waiting_.size() > 1; }

    // From now on everything that waits is delivered, whatever the policy would hold back, and when
    // nothing is left every getter gets null. The caller brings nothing any more.
    void shutdown();
    bool is_shut_down() const { return is_shut_down_; }

    const LaneFigures& figures(Lane lane) const { return figures_[index_of(lane)]; }
    const PolicyFigures& policy_figures() const { return policy_figures_; }
    // How long the oldest of the lane has waited.
    Duration oldest_wait(Lane lane) const;
    // Of the classes of the policy; where it has none, the whole lane as one.
    std::vector<ClassFigures> class_figures();
    // Of those of which something is new since the last call, or something waits.
    std::vector<ClassNews> take_class_news();
    // Any thread.
    void collect(core::MetricSink& sink, std::string_view locality) const;

private:
    // Data that waits, the oldest first, and what holds it. Null: it came while others were handed
    // over, and nothing does yet.
    struct Waiting {
        std::uint32_t number = 0;  // Different for each.
        std::shared_ptr<Policy> policy;
        core::IntrusiveList<ArrivalPlace> requests{};
    };

    static std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }
    LaneFigures& lane_of(const Request& request) {
        return figures_[index_of(request.attributes.lane)];
    }
    bool asks_for_data() { return !getters_.empty() && getters_.front().asked_ == Asked::kAny; }
    bool has_data() const { return figures(Lane::kData).queued.get() > 0; }

    // Says when this scheduler is ready for the next epoch.
    class EpochTimer final : public core::Timer {
    public:
        explicit EpochTimer(Scheduler& owner)
            : Timer([](Timer& timer) { static_cast<EpochTimer&>(timer).owner_.ask_for_epoch(); }),
              owner_(owner) {}

    private:
        Scheduler& owner_;
    };
    // Goes on handing over.
    class HandOverTimer final : public core::Timer {
    public:
        explicit HandOverTimer(Scheduler& owner)
            : Timer([](Timer& timer) { static_cast<HandOverTimer&>(timer).owner_.go_on(); }),
              owner_(owner) {}

    private:
        Scheduler& owner_;
    };

    // Takes out what is late.
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
    void on_epoch(Result<eh::EpochNumber> epoch, std::span<const std::byte> data) override;

    void visit_classes(Instant now, const ClassVisitor& visitor);
    void dispatch();
    bool end_late();
    void end_late(Request& request);
    void note_held_back();
    void count_held_back(Instant now);
    Request* take(Asked asked);
    Request* take_control();
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
    std::uint32_t policy_number_ = 1;  // Another for each policy.
    PolicyFigures policy_figures_;
    ClassTally tally_;  // Since the policy decides.
    eh::EpochHandler* const epochs_;
    EpochTimer epoch_timer_;
    eh::EpochNumber epoch_ = eh::kFirstEpoch;
    std::array<LaneFigures, kLaneCount> figures_;
    core::IntrusiveList<ArrivalPlace> control_;  // That waits, the oldest first.
    // All data that waits, the oldest first. The first is what the policy holds; what is in others
    // has to be handed over to it.
    std::list<Waiting> waiting_;
    std::uint32_t last_waiting_number_ = 0;
    HandOverTimer hand_over_timer_;
    core::TimerHeap deadlines_;  // Of what waits and can be late.
    LateTimer late_timer_;
    Instant late_at_ = kNever;  // When it is armed for, while it is; never later than the first.
    core::IntrusiveList<Getter> getters_;
    std::uint32_t control_run_ = 0;  // Control requests delivered since the last of data.
    Instant held_back_since_ = kNever;
    bool dispatching_ = false;
    bool is_shut_down_ = false;
};

}  // namespace fopd::lrs
