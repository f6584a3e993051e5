#pragma once

#include <variant>

#include "core/cancel.h"
#include "core/io.h"
#include "core/reactor.h"
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
    Origin origin_;
    Site site_;
    core::Buffer buffer_;
    objects::HomeVolume* home_ = nullptr;
    objects::HomeVolume::Hold hold_;
};

}  // namespace fopd::reqh
