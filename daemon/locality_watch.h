#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "core/cancel.h"
#include "core/events.h"
#include "core/reactor.h"
#include "core/task.h"
#include "daemon/class_ledger.h"
#include "daemon/locality.h"
#include "daemon/service_manager.h"
#include "daemon/tape_watch.h"

namespace fopd::daemon {

class Pulse;

// Watches that the localities of a node still run: sends each a pulse again and again, reports
// those that do not answer, and feeds the watchdog of the service manager when all have answered.
// Lives on the control reactor.
class LocalityWatch {
public:
    // All of it outlives the watch.
    struct World {
        core::Reactor& control;
        core::EventSink& events;
        ServiceManager& manager;
        // Receive the figures that each locality's answer to a pulse contains.
        ClassLedger& classes;
        TapeWatch& tapes;
    };
    explicit LocalityWatch(const World& world);
    ~LocalityWatch();
    LocalityWatch(const LocalityWatch&) = delete;
    LocalityWatch& operator=(const LocalityWatch&) = delete;

    // Called for all localities, in the order of their numbers, before run().
    void add(Locality& locality);
    // Sends the pulses, at least four times within the watchdog's timeout, until stop().
    Task<void> run();
    void stop() { stopped_.cancel(); }
    bool all_pulses_are_back() const;

    // The time since the locality last answered. Beyond kStuckAfter the locality counts as stuck.
    Duration silent_for(std::size_t locality) const;
    static constexpr Duration kStuckAfter = 5s;

private:
    void look_at_pulses();

    const World world_;
    std::vector<std::unique_ptr<Pulse>> pulses_;
    core::CancelSource stopped_;
};

}  // namespace fopd::daemon
