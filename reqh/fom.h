#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/buffer_pool.h"
#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "core/reactor.h"
#include "core/reused_objects.h"
#include "core/task.h"
#include "core/timer_heap.h"
#include "fabric/rpc/incoming.h"
#include "fop/fop_type.h"
#include "fop/message.h"
#include "lrs/request.h"
#include "objects/stores.h"
#include "reqh/client_memory.h"
#include "reqh/fop_load.h"
#include "reqh/fop_record.h"
#include "reqh/lent.h"
#include "reqh/operation_pool.h"
#include "reqh/phase.h"
#include "reqh/progress.h"
#include "reqh/refusal.h"
#include "reqh/shares.h"
#include "reqh/tokens.h"

namespace fopd::reqh {

class Fom;

// The list node of a fom in the handler's list of running foms.
class RunningPlace : public core::ListNode {};

// A fom that has waited for its client for this long does not count as running (Admission) until
// the wait is over. When the client is slow already, because another fom has waited for it that
// long, the fom does not count from the start of its wait.
inline constexpr Duration kClientIsSlowAfter = 20ms;
// A fom that has waited for its client for this long ends if another fop waits for a
// buffer.
inline constexpr Duration kClientMayTake = 5s;
// A fom that has waited for its client for this long ends in any case: while a read waits, the
// blocks that it reads cannot be freed.
inline constexpr Duration kClientMayTakeMax = 30s;

// Creates, starts and reuses foms: the request handler. An interface, so that a fom does not depend
// on the handler, which contains all foms.
class FomOwner {
public:
    // The client gave up a fop that still waits for its turn.
    virtual void on_cancelled(Fom& fom) = 0;
    // The fom's deadline passed while it was queued; it has left the queue.
    virtual void on_late(Fom& fom, lrs::Request::Waited waited) = 0;
    // The fom has run to its end with `reply`, and may be reused at once.
    virtual void on_finished(Fom& fom, fop::Reply reply) = 0;
    // The fom waited too long for its share of the buffers.
    virtual void on_no_share(Fom& fom, const Error& why) = 0;
    // on_client_slow: the fom has waited for its client for kClientIsSlowAfter, or for less if
    // another fop of the client is late. on_client_back: the wait is over.
    virtual void on_client_slow(Fom& fom) = 0;
    virtual void on_client_back(Fom& fom) = 0;
    // on_client_late: the fom itself has waited for its client for kClientIsSlowAfter.
    // on_client_in_time: the wait is over.
    virtual void on_client_late(Fom& fom) = 0;
    virtual void on_client_in_time(Fom& fom) = 0;
    // Whether another fop of its client is late.
    virtual bool is_client_late(const Fom& fom) const = 0;
    // Whether fops of other clients wait for a buffer or for their share of the buffers, which this
    // fom could free by ending.
    virtual bool is_wanted_by_others(const Fom& fom) const = 0;

protected:
    ~FomOwner() = default;
};

// The services that all foms of a locality share.
struct FomServices {
    core::Reactor& reactor;
    core::BufferPool& buffers;
    TokenCache& tokens;
    TokenChecksBeforeTurn& early_checks;
    OperationPool& operations;
    objects::Stores* stores;              // Null: the node has no disks.
    const library::LibraryDoor* library;  // Null: the node has no tape library.
    FomOwner& owner;
};

// Runs one fop: a request in the scheduler first, then a coroutine that takes it through the
// phases. Its owner keeps the object for the next fop when this one has ended.
class Fom final : public lrs::Request,
                  public core::ReusedObject,
                  public RunningPlace,
                  public Shares::Place,
                  core::CancelHook,
                  core::Timer,
                  ClientMemory {
public:
    enum class State : std::uint8_t { kFree, kQueued, kRunning };

    explicit Fom(const FomServices& services)
        : Request([](Request& request, Waited waited, const lrs::ClassLabel& label) {
              auto& fom = static_cast<Fom&>(request);
              fom.set_class(label);
              fom.services_.owner.on_late(fom, waited);
          }),
          CancelHook([](CancelHook& hook) {
              auto& fom = static_cast<Fom&>(hook);
              fom.services_.owner.on_cancelled(fom);
          }),
          Timer([](Timer& timer) { static_cast<Fom&>(timer).on_time(); }),
          services_(services) {}

    // Takes over a queued fop of a known type that was verified. REQUIRES: free.
    void begin(fabric::IncomingFop& fop, const fop::FopType& type);
    // Whether the sender's rights, or its token's, allow this type of fop; the rights on the object
    // are checked when it is loaded. Called before the fop is queued, so that a denied fop costs
    // its class nothing; of a principal's tokens that are not known yet only so many are checked
    // here. The words of the refusal belong to the fom.
    Granted<> check_sender();
    // The fom has left the queue; from now on, it must check for cancellation itself.
    void leave_queue() {
        CancelHook::unlink();
        Timer::disarm();
    }
    // Starts the fom when its turn has come; run() then executes the phases up to the reply.
    void start();
    Task<void> run();
    // The memory that it takes when it starts, besides its buffer.
    std::uint64_t execution_bytes() const;
    // kCancelled or kTimedOut if the fop was given up or its deadline has passed.
    Result<void> check_wanted() const;
    // Enters the last phase, and ends it at once.
    void end_phases();
    // Sends the reply and releases the fop. REQUIRES: end_phases() was called.
    void reply(fop::Reply reply);

    State state() const { return state_; }
    const fabric::IncomingFop& fop() const { return *fop_; }
    fabric::IncomingFop& fop() { return *fop_; }
    const fop::FopType& type() const { return *type_; }
    FopId id() const { return {.session = fop_->caller().session, .request = fop_->request().id}; }
    const PhaseTimes& times() const { return times_; }
    Instant started_at() const { return started_at_; }
    // The class of the fop when it left the queue of the policy, and the rule of that class. Empty:
    // the fop is still queued, or no policy held it.
    const std::string& of_class() const { return of_class_; }
    const std::string& of_rule() const { return of_rule_; }
    void set_class(const lrs::ClassLabel& label) {
        of_class_ = label.name;
        of_rule_ = label.rule;
    }
    // Of its class in the figures of the load; none: it has no class.
    std::optional<NamedLoad::Row> load_class{};
    // How long its reads and writes have waited for devices. Valid after run().
    Duration io_wait() const { return io_wait_; }
    // Whether the fom was reported as waiting, or as hung. Each is reported once.
    bool reported_waiting() const { return reported_waiting_; }
    void set_reported_waiting() { reported_waiting_ = true; }
    bool reported_hung() const { return reported_hung_; }
    void set_reported_hung() { reported_hung_ = true; }
    // Parked: it waits for another fop, for tape, or for a disk that does not answer, and does not
    // count as running meanwhile.
    bool parked() const { return parked_; }
    // Whether it does not count because it waits for its client.
    bool waits_for_slow_client() const { return client_is_slow_; }
    void set_parked(bool parked) { parked_ = parked; }

    // Whether the fop needs a buffer.
    bool needs_buffer() const;
    // Whether the fop keeps its buffer until the client has sent or received bytes.
    bool waits_for_client() const;
    // The client whose share of the buffers the fom uses or waits for; null: none.
    Shares::Client* share() const { return share_; }
    void set_share(Shares::Client* share) { share_ = share; }
    // Starts the wait for its share, with the same deadline as for a buffer. REQUIRES:
    // queued.
    void wait_for_share();

    // The operation that executes it or has executed it, until the fop is released; null: none has
    // begun.
    const Operation* operation() const { return operation_; }
    const Progress& progress() const { return progress_; }
    // How its time was spent, and its longest wait, which may be that for its turn or for its share
    // of the buffers. REQUIRES: end_phases() was called.
    fop::TimeSpent time_spent() const;
    Progress::Longest longest_wait() const;

    // Describes its present state, except the status. REQUIRES: not free.
    void describe(FopRecord& record) const;

private:
    bool may_check_token();
    Granted<> check_token();
    Granted<> check_rights();
    // The pool of the fop in the present layout; null: none, or it does not exist.
    const objects::LayoutPool* pool() const;
    bool may_be_in_lent_pool() const;
    Matter matter() const;
    core::WaitOptions wait_for_buffer() const;
    Error why_no_buffer(const Error& error) const;
    void enter(Phase phase) {
        times_.enter(phase, services_.reactor.now());
        progress_.enter(phase, services_.reactor.now());
    }
    Task<Result<void>> move(Move what) override;
    void on_time();
    void on_client_time();

    const FomServices& services_;
    fabric::IncomingFop* fop_ = nullptr;
    const fop::FopType* type_ = nullptr;
    State state_ = State::kFree;
    bool reported_waiting_ = false;  // For its client.
    bool reported_hung_ = false;
    bool parked_ = false;
    Instant started_at_{};
    Duration io_wait_{};
    const Operation* operation_ = nullptr;
    PhaseTimes times_;  // Time at another locality is added when it has ended.
    Progress progress_;
    Shares::Client* share_ = nullptr;
    std::optional<Instant> waits_for_share_since_;
    Duration share_wait_{};        // The completed wait for its share.
    Instant client_since_{};       // Start of the wait for its client.
    bool client_is_slow_ = false;  // The owner was notified.
    bool client_is_late_ = false;
    bool client_given_up_ = false;
    std::string of_class_;
    std::string of_rule_;
    Lent lent_;         // The rights that the token lends.
    std::string pool_;  // The pool's name; copied, because the layout may be replaced while the fop
                        // is queued.
    std::string denial_;
};

}  // namespace fopd::reqh
