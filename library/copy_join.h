#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/events.h"
#include "core/reactor.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "library/home_doors.h"
#include "store/copy.h"

namespace fopd::library {

// Joins the writers of a batch, one for each cartridge that gets copies of the objects. The copies
// are recorded when all writers have made theirs durable. Until then each writer keeps its drive,
// so that nothing else happens to the cartridge.
class CopyJoin {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        core::EventSink& events;
        HomeDoors& homes;
    };
    CopyJoin(const Parts& parts, std::uint32_t writers)
        : parts_(parts), missing_(writers), over_(parts.reactor) {}

    // The copies by the locality of their objects.
    using Copies = std::map<std::uint32_t, std::vector<store::Copy>>;
    // Called once by each writer, when its copies are durable. Returns true when the copies of all
    // writers are recorded; false if another writer has failed, so that none is recorded.
    Task<bool> arrive(Copies copies);
    // Records copies at once, without waiting for other writers.
    Task<void> record(Copies copies);
    // A writer has failed, or never begun.
    void fail();
    // A writer has failed, so the copies of all writers are useless.
    bool failed() const { return failed_; }

    struct Recorded {
        std::uint64_t copies = 0;
        // Written, but their objects have changed meanwhile, or lack other copies.
        std::uint64_t dead = 0;
        std::uint64_t unrecorded = 0;  // Written, but a disk failed to record them.
        std::uint64_t bytes = 0;
    };
    const Recorded& recorded() const { return recorded_; }

private:
    const Parts parts_;
    std::uint32_t missing_;
    bool failed_ = false;
    bool done_ = false;
    Copies copies_;
    Recorded recorded_;
    core::WaitQueue over_;
};

}  // namespace fopd::library
