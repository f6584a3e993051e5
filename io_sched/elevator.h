#pragma once

#include <memory>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

struct IoSchedSettings;

// Serves each device's requests in ascending order of offset, then starts again from the lowest. A
// request that has waited longer than `elevator_max_wait` goes first; after it, a batch follows in
// the order of the sweep, so that an overloaded device still saves seeks.
std::unique_ptr<IoScheduler> make_elevator(const IoSchedSettings& settings);

}  // namespace fopd::io_sched
