#pragma once

#include <cstdint>
#include <map>

#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "objects/stores.h"

namespace fopd::objects {

struct CoalescerOptions {
    std::uint64_t bytes_per_second = 0;  // That are read, and written; 0: nothing is done.
    Duration interval = 10min;           // From one way through a disk to the next.
    Duration idle = 1s;                  // Without changes, before anything is done.
    // So many neighbours in 256 KiB of an object that are none on the disk are too many.
    std::uint32_t breaks_max = 3;
};

// Brings together on the disk what lies together in an object: short overwrites leave its blocks
// scattered, and reading it takes an operation for each. It goes through all extents of a disk,
// when something has changed, and while nothing does; bytes are read and written without a lock,
// and the object's blocks are locked only while the change that moves them is made durable, if they
// are still what they were.
class Coalescer {
public:
    // The stores outlive it; its work is one of their duties.
    Coalescer(Stores& stores, const CoalescerOptions& options)
        : stores_(stores), options_(options) {}

    // Once, when the disks that there are have been opened.
    void start();

private:
    class Pass;

    Task<void> run();
    Task<void> go_through(store::Slot slot);

    Stores& stores_;
    const CoalescerOptions options_;
    std::map<store::Slot, store::Receipt> seen_;  // The newest change, after the last pass.
};

}  // namespace fopd::objects
