#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "core/buffer_pool.h"
#include "core/counter.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/intrusive_list.h"
#include "core/metrics.h"
#include "core/reactor.h"
#include "core/reused_objects.h"
#include "core/timer_heap.h"
#include "fabric/rpc/incoming.h"
#include "lrs/scheduler.h"
#include "objects/stores.h"
#include "reqh/admission.h"
#include "reqh/fom.h"
#include "reqh/fop_audit.h"
#include "reqh/fop_load.h"
#include "reqh/fop_metrics.h"
#include "reqh/fop_record.h"
#include "reqh/operation_pool.h"
#include "reqh/shares.h"
#include "reqh/tokens.h"

namespace fopd::reqh {

// Limits that may change while the handler runs.
struct RequestHandlerLimits {
    std::uint32_t max_foms = 128;
    std::optional<Duration> io_wait_goal = AdmissionRule{}.io_wait_goal;
    Duration slow_fop = 500ms;   // A fop that takes this long is logged.
    bool audit_changes = false;  // Whether the audit trail has each change of an object.
};

// The parts that the handler uses. They outlive the handler, and belong to its locality or are
// thread-safe.
struct RequestHandlerParts {
    core::Reactor& reactor;
    core::Gate& work;  // Entered by the foms; open until drain() was called.
    core::BufferPool& buffers;
    lrs::Scheduler& requests;
    TokenVerdicts& tokens;
    core::EventSink& events;
    objects::Stores* stores = nullptr;              // Null: the node has no disks.
    std::uint64_t locality = 0;                     // Its number, for events.
    const library::LibraryDoor* library = nullptr;  // Null: the node has no tape library.
};

// A fom that has run for this long is reported as hung, once. If it waits for its client then, that
// is reported instead, and it is reported as hung when it has waited for something else for this
// long.
inline constexpr Duration kHungAfter = 2min;
// A fom that has waited for another fop for this long does not count among those that may run.
inline constexpr Duration kParkAfter = 100ms;
// A disk for which a fom has waited for this long does not answer: none of the foms that run for it
// counts among those that may run, and there may be half as many of them as may run in all. Further
// fops are answered kTryAgain.
inline constexpr Duration kDiskAnswersWithin = 5s;
// Fops that were slow only because they were queued are an event this often at most.
inline constexpr Duration kQueuedReportedEvery = 1s;

// A locality's request handler: passes each arriving fop to the request scheduler, takes the next
// one when another fom may run, and executes it up to its reply. Every fop is answered exactly
// once, including fops that are cancelled, late, or still queued when the node stops.
//
// Lives on its reactor, except where stated otherwise. To end it: call drain(), close the gate and
// wait, then destroy the handler. Allocates a Fom for each concurrent fop; the sessions' credits,
// and their shares of the memory for requests, bound the number.
class RequestHandler final : public fabric::IncomingUser, lrs::Getter, FomOwner, core::Timer {
public:
    RequestHandler(const RequestHandlerParts& parts, const RequestHandlerLimits& limits);

    void on_incoming(fabric::IncomingFop& fop) override;

    // Takes effect at once: if more foms run than are allowed now, none starts until enough have
    // ended.
    void set_limits(const RequestHandlerLimits& limits);

    // From now on, fops that are queued or arrive are answered kTryAgain. Idempotent.
    void drain();
    // Cancels the running foms. REQUIRES: drain() was called.
    void cut_off();

    // The fops that run, and the `queued_max` oldest of those that wait for their turn.
    FopList in_flight(std::size_t queued_max) const;
    // The last fops that took longer than the limit for slow fops, the oldest first.
    FopList slow() const;
    // A fop that is queued, runs, or is among the last that finished or were slow.
    std::optional<FopRecord> trace(FopId id) const;

    // Any thread may call the functions below.
    std::uint64_t running_count() const { return running_count_.get(); }
    // Fops that were ever reported as hung.
    std::uint64_t hung_count() const { return hung_count_.get(); }
    const Admission& admission() const { return admission_; }
    const FopMetrics& metrics() const { return metrics_; }
    const FopLoad& load() const { return load_; }

private:
    void on_request(lrs::Request* request) override;
    void count_load(const Fom& fom, fop::Status status);
    void on_cancelled(Fom& fom) override;
    void on_late(Fom& fom, lrs::Request::Waited waited) override;
    void on_finished(Fom& fom, fop::Reply reply) override;
    void on_no_share(Fom& fom, const Error& why) override;
    void on_client_slow(Fom& fom) override;
    void on_client_back(Fom& fom) override;
    void on_client_late(Fom& fom) override;
    void on_client_in_time(Fom& fom) override;
    bool is_client_late(const Fom& fom) const override;
    bool is_wanted_by_others(const Fom& fom) const override;

    bool is_held_up() const;
    bool has_share(Fom& fom);
    void have_turn(Fom& fom);
    void start(Fom& fom);
    void start_those_with_share();
    void leave_queues(Fom& fom);
    void ask();
    bool has_room() const { return draining_ || admission_.has_room(); }
    void finish(Fom& fom, const fop::Reply& reply);
    void look_for_hung();
    // While no fom of a lane may start, looks for those that have waited for another fop for
    // kParkAfter, or for a disk that does not answer: they use neither core nor disk, so others may
    // run beside them.
    void park();
    void park(Fom& fom);
    void unpark(Fom& fom);
    void find_silent_disks(Instant now);
    bool has_silent_disk(const Fom& fom) const {
        return silent_disks_.contains(fom.attributes.device);
    }
    const fop::Reply* why_not_now(Fom& fom) const;
    bool has_place_at_disk(const Fom& fom) const;
    Instant look_at(const Fom& fom) const;
    FopRecord describe(const Fom& fom) const;
    // Whether the event of a fop that was slow only because it was queued may be written: of a
    // class that is held back there may be thousands a second.
    bool may_report_queued();
    enum class SlowBy : std::uint8_t { kItself, kQueue };
    void report_slow(const Fom& fom, const FopRecord& record, const fop::Reply& reply, SlowBy by);
    void report_hung(Fom& fom);

    struct ParkTimer final : core::Timer {
        explicit ParkTimer(RequestHandler& owner) : Timer(&on_time), handler(owner) {}
        static void on_time(core::Timer& timer) { static_cast<ParkTimer&>(timer).handler.park(); }
        RequestHandler& handler;
    };

    core::Reactor& reactor_;
    core::Gate& work_;
    lrs::Scheduler& requests_;
    core::EventSink& events_;
    const std::uint64_t locality_;
    Duration slow_fop_;
    TokenCache tokens_;
    TokenChecksBeforeTurn early_checks_;
    OperationPool operations_;
    const FomServices services_;
    core::ReusedObjects<Fom> foms_;
    mutable core::IntrusiveList<RunningPlace> running_;  // In the order of their start.
    core::Counter running_count_;
    core::Counter hung_count_;
    Admission admission_;
    core::BufferPool& buffers_;
    Shares shares_;           // Of the buffers.
    Fom* held_up_ = nullptr;  // The newest that waits for its share, while it waits.
    FopMetrics metrics_;
    FopLoad load_{metrics_};
    FopHistory history_;
    SlowFops slow_;
    Instant queued_reported_again_at_{};
    FopAudit audit_;
    ParkTimer park_timer_{*this};
    std::size_t parked_count_ = 0;
    // The slots of disks that do not answer, and how many foms run for each.
    std::map<std::uint32_t, std::size_t> silent_disks_;
    bool draining_ = false;
    bool cut_off_ = false;
};

}  // namespace fopd::reqh
