#pragma once

#include "core/result.h"
#include "core/task.h"
#include "devices/device.h"
#include "store/aligned_memory.h"

namespace fopd::store {

// Writes zeros into blocks that a device has never written, so that later writes to them are fast.
// Blocks that were written are skipped; the device knows them, also after a start. Lives on the
// device's reactor.
class HoleFiller {
public:
    // The device outlives it.
    explicit HoleFiller(devices::Device& device) : device_(device) {}

    // Whether the first write to a block is slow on this device.
    bool is_of_use() const { return device_.geometry().slow_holes; }
    // Writes one buffer of zeros at a time. False: it was stopped or interrupted, or the device
    // could not tell where its holes are. Errors are those of writes. REQUIRES: until it ends, the
    // content of the range is not used and nothing else writes to it.
    Task<Result<bool>> fill(devices::Stretch range);
    // Ends fill() after the write in flight; later calls write nothing.
    void stop() { stopped_ = true; }
    // Ends the fill() in progress only.
    void interrupt() { interrupted_ = true; }

private:
    Result<void> prepare();

    devices::Device& device_;
    AlignedMemory zeros_;  // Allocated when it is first needed.
    bool stopped_ = false;
    bool interrupted_ = false;
};

}  // namespace fopd::store
