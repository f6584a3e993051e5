#pragma once

#include <cstdint>
#include <map>

#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "objects/stores.h"

namespace fopd::objects {

struct CoalescerOptions {
    std::uint64_t bytes_per_second = 0;  // The most bytes moved in a second. 0: off.
    Duration interval = 10min;           // Between two passes over a disk.
    Duration idle = 1s;                  // Without other changes, before each move.
    // A chunk of 256 KiB of an object is moved if it is divided on the disk more often than this.
    std::uint32_t breaks_max = 3;
};

// Moves the scattered blocks of objects together on the disk: after short overwrites, a read needs
// an operation for each extent. A pass goes through all extents of a disk that has changed since
// its last pass. Before each move it waits until nothing else has changed the disk for `idle`. Data
// are read and written without a lock; the blocks are locked only while the change that moves them
// becomes durable, and only if they are unchanged.
class Coalescer {
public:
    // The stores outlive it. Its task enters Stores::duties(), so that Stores::stop() waits for its
    // end.
    Coalescer(Stores& stores, const CoalescerOptions& options)
        : stores_(stores), options_(options) {}

    // Called once, when all present disks have been opened.
    void start();

private:
    class Pass;

    Task<void> run();
    Task<void> go_through(store::Slot slot);

    Stores& stores_;
    const CoalescerOptions options_;
    // The newest change of each disk at the end of its last pass.
    std::map<store::Slot, store::Receipt> seen_;
};

}  // namespace fopd::objects
