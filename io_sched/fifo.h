#pragma once

#include <memory>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

struct IoSchedSettings;

// Serves each device's requests in the order of arrival.
std::unique_ptr<IoScheduler> make_fifo(const IoSchedSettings& settings);

}  // namespace fopd::io_sched
