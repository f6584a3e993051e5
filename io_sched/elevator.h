#pragma once

#include <memory>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

struct IoSchedSettings;

// Each device's requests by offset, upwards, then again from the lowest. One that has waited for
// longer than `elevator_max_wait` goes first; after it, a batch goes in the order of the sweep, so
// that a device with too much to do still saves its way.
std::unique_ptr<IoScheduler> make_elevator(const IoSchedSettings& settings);

}  // namespace fopd::io_sched
