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

// Where the writers of a batch meet, one for each cartridge that gets copies of its objects: copies
// are recorded when all cartridges have theirs durably. Until then each writer keeps its drive, so
// that nothing else happens to the cartridge.
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

    // By locality.
    using Copies = std::map<std::uint32_t, std::vector<store::Copy>>;
    // Once for each writer: its copies are durable. Returns when those of all are recorded, or
    // false: another writer has failed, and none is.
    Task<bool> arrive(Copies copies);
    // Records copies that wait for no others.
    Task<void> record(Copies copies);
    // A writer has failed, or never begun.
    void fail();
    // What is written has become useless.
    bool failed() const { return failed_; }

    struct Recorded {
        std::uint64_t copies = 0;
        // Written, but of objects that have changed meanwhile, or lack other copies.
        std::uint64_t dead = 0;
        std::uint64_t unrecorded = 0;  // Written, but their disk could not record them.
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
