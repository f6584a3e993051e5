#pragma once

#include <memory>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

struct IoSchedSettings;

// Each device's requests by age.
std::unique_ptr<IoScheduler> make_fifo(const IoSchedSettings& settings);

}  // namespace fopd::io_sched
