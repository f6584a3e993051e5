#pragma once

#include <span>

#include "io_sched/io_scheduler.h"

namespace fopd::io_sched {

// Device dispatch `none`: every scheduler may use every device.
void share_all_devices(std::span<IoDevice* const> devices,
                       std::span<IoScheduler* const> schedulers);

// Request dispatch `fifo`: the oldest of the schedulers' next requests. This is not the overall
// order of arrival, because a scheduler's next request need not be its oldest.
IoRequest* oldest_request(std::span<IoRequest* const, kIoTypeCount> peeked);

}  // namespace fopd::io_sched
