#pragma once

#include <span>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

// Device dispatch `none`: every scheduler has every device.
void share_all_devices(std::span<IoDevice* const> devices,
                       std::span<IoScheduler* const> schedulers);

// Request dispatch `fifo`: the oldest of those that are next. Not the order of arrival as a whole:
// a scheduler's next is not always its oldest.
IoRequest* oldest_request(std::span<IoRequest* const, kIoTypeCount> peeked);

}  // namespace fopd::io_sched
