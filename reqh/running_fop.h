#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "core/cancel.h"
#include "core/io.h"
#include "core/reactor.h"
#include "core/remote_task.h"
#include "core/task.h"
#include "fabric/rpc/incoming.h"
#include "fop/fop_type.h"
#include "fop/message.h"
#include "objects/home_volume.h"
#include "objects/stores.h"
#include "reqh/client_memory.h"
#include "reqh/lent.h"
#include "reqh/phase.h"
#include "reqh/progress.h"
#include "reqh/refusal.h"
#include "store/volume.h"

namespace fopd::library {
struct LibraryDoor;
}

namespace fopd::reqh {

// A fop that runs: its request, the locality and the disk that it uses now, its phases and waits.
//
// It begins and ends on the locality of its session. In between it may move to other localities,
// and belongs to the reactor of the one that it is on.
class RunningFop {
public:
    // The parts that the fom passes in. The fom leaves `fop` unchanged until the fop has ended.
    struct Origin {
        fabric::IncomingFop* fop = nullptr;
        const fop::FopType* type = nullptr;
        ClientMemory* client = nullptr;
        Progress* progress = nullptr;
        Lent lent{};            // To the sender, by the token.
        core::Buffer buffer{};  // Empty for fops that need none.
        core::Reactor* reactor = nullptr;
        objects::Stores* stores = nullptr;              // Null: the node has no disks.
        const library::LibraryDoor* library = nullptr;  // Null: the node has no tape library.
    };
    // The locality that the fop is on.
    struct Site {
        core::Reactor* reactor = nullptr;
        objects::Stores* stores = nullptr;  // Null: the node has no disks.
        PhaseTimes* times = nullptr;
        core::CancelSource* cancel = nullptr;
    };

    RunningFop(const RunningFop&) = delete;
    RunningFop& operator=(const RunningFop&) = delete;

    // -- the request --

    const fop::Request& request() const { return origin_.fop->request(); }
    template <typename Body>
    const Body& body() const {
        return std::get<Body>(request().body);
    }
    const fop::RequestHeader& header() const { return origin_.fop->header(); }
    const fop::FopType& type() const { return *origin_.type; }
    const fabric::Caller& caller() const { return origin_.fop->caller(); }
    const Lent& lent() const { return origin_.lent; }
    Instant deadline() const { return origin_.fop->deadline(); }
    core::WaitOptions wait() const { return {.deadline = deadline(), .cancel = site_.cancel}; }
    // kCancelled if the fop was cancelled, kTimedOut if its deadline has passed.
    Granted<> check_wanted() const;

    // -- where it is --

    const Origin& origin() const { return origin_; }
    const Site& site() const { return site_; }
    core::Reactor& reactor() const { return *site_.reactor; }
    objects::Stores& stores() const { return *site_.stores; }
    WallTime wall() const { return stores().parts().clock.wall(); }
    const core::Buffer& buffer() const { return buffer_; }
    // The disk that it uses. REQUIRES: one was selected at this locality.
    objects::HomeVolume& home() const { return *home_; }
    store::Volume& volume() const { return home_->volume(); }
    // kReadOnly, with the reason, if the disk accepts no changes.
    Granted<> check_serving() const;
    // kReadOnly if the disk has failed and the shown state of the object may be lost.
    Granted<> check_certain(store::Fid fid) const;

    // -- other localities --

    // Runs `job()`, a task of steps, at another locality. The steps use that locality, and leave no
    // state there. kTryAgain if the server is stopping.
    template <typename Value, typename Job>
    Task<Granted<Value>> run_at(std::uint32_t locality, Job job);

    // Awaits a task that another locality executes, and shows the wait in the fop's progress.
    template <typename Value>
    Task<Value> elsewhere(Task<Value> task) {
        const Waiting waiting = waits_for({.what = WaitsFor::kLocality});
        co_return co_await std::move(task);
    }

    // -- its progress --

    void enter(Phase phase) const {
        site_.times->enter(phase, reactor().now());
        origin_.progress->enter(phase, reactor().now());
    }
    // Shows in the fop's progress what the fop waits for, until the result is destroyed.
    Waiting waits_for(const Wait& wait) const { return {*origin_.progress, reactor(), wait}; }

protected:
    RunningFop() = default;
    ~RunningFop() = default;

    void begin_at(const Origin& origin) { origin_ = origin; }
    // No disk is selected there yet.
    void move_to(const Site& site);
    void select(objects::HomeVolume& home);
    void select_none() { home_ = nullptr; }
    // The hold of the selected disk, which belongs to the disk's reactor.
    objects::HomeVolume::Hold& hold() { return hold_; }

private:
    template <typename Value, typename Job>
    Task<Granted<Value>> run_and_let_go(Job* job);
    template <typename Value, typename Job>
    Task<Granted<Value>> visit(Job* job);

    Origin origin_;
    Site site_;
    core::Buffer buffer_;
    objects::HomeVolume* home_ = nullptr;
    objects::HomeVolume::Hold hold_;
};

// A hold of a disk belongs to the disk's reactor, and is released there.
template <typename Value, typename Job>
Task<Granted<Value>> RunningFop::run_and_let_go(Job* job) {
    auto ran = co_await (*job)();
    hold_ = objects::HomeVolume::Hold();
    co_return ran;
}

// At another locality: the way there ends here, and the way back begins.
template <typename Value, typename Job>
Task<Granted<Value>> RunningFop::visit(Job* job) {
    origin_.progress->end_wait(reactor().now());
    auto ran = co_await run_and_let_go<Value>(job);
    origin_.progress->begin_wait({.what = WaitsFor::kLocality}, reactor().now());
    co_return ran;
}

// Keeps the locks, names and disk hold of this locality while `job` runs on the other locality.
template <typename Value, typename Job>
Task<Granted<Value>> RunningFop::run_at(std::uint32_t locality, Job job) {
    objects::Stores& there = stores().at(locality);
    objects::HomeVolume::Hold own = std::move(hold_);
    if (&there == &stores()) {
        auto ran = co_await run_and_let_go<Value>(&job);
        hold_ = std::move(own);
        co_return ran;
    }
    const Site here = site_;
    PhaseTimes times = *here.times;
    core::CancelSource cancel;
    core::CancelThere forwarded(*here.cancel, *here.reactor, there.parts().reactor, cancel);
    move_to(
        {.reactor = &there.parts().reactor, .stores = &there, .times = &times, .cancel = &cancel});
    origin_.progress->begin_wait({.what = WaitsFor::kLocality}, here.reactor->now());
    auto visiting = [this, &job] { return visit<Value>(&job); };
    auto ran = co_await core::run_task_on<Granted<Value>>(*here.reactor, there.parts().reactor,
                                                          there.duties(), visiting);
    co_await forwarded.end();
    origin_.progress->end_wait(here.reactor->now());
    move_to(here);
    hold_ = std::move(own);
    *here.times = times;
    if (!ran) co_return refused(fop::Status::kTryAgain, "the server is stopping");
    co_return std::move(*ran);
}

}  // namespace fopd::reqh
