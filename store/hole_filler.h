#pragma once

#include "core/result.h"
#include "core/task.h"
#include "devices/device.h"
#include "store/aligned_memory.h"

namespace fopd::store {

// Writes zeros where a device was never written, so that whoever comes there later writes faster.
// What was written already is not written again; the device knows, also after a start. Lives on the
// device's reactor.
class HoleFiller {
public:
    // The device outlives it.
    explicit HoleFiller(devices::Device& device) : device_(device) {}

    // Whether this device gains by it.
    bool is_of_use() const { return device_.geometry().slow_holes; }
    // One write at a time, in pieces. False: it was stopped, or the device could not say now where
    // its holes are. An error is one of writing. Requires: nobody has any use for what the range
    // holds, or writes to it, until this ends.
    Task<Result<bool>> fill(devices::Stretch range);
    // After the piece that is being written.
    void stop() { stopped_ = true; }

private:
    Result<void> prepare();

    devices::Device& device_;
    AlignedMemory zeros_;  // Taken when it is needed first.
    bool stopped_ = false;
};

}  // namespace fopd::store
