#pragma once

#include <cstdint>
#include <map>

#include "core/task.h"
#include "core/time.h"
#include "objects/home_volume.h"
#include "objects/stores.h"

namespace fopd::objects {

struct CoalescerOptions {
    std::uint64_t bytes_per_second = 0;  // Read and written; 0: the coalescer does nothing.
    Duration interval = 10min;           // Between two passes over a disk.
    Duration idle = 1s;                  // How long a disk must be without changes first.
    // A piece of 256 KiB of an object is moved if it is divided on the disk more often than this.
    std::uint32_t breaks_max = 3;
};

// Moves the scattered blocks of objects together on the disk: after short overwrites, a read needs
// an operation for each extent. A pass goes through all extents of a disk, if something has changed
// since the last pass, and while no other change is made. Data are read and written without a lock;
// the blocks are locked only while the change that moves them becomes durable, and only if they are
// unchanged.
class Coalescer {
public:
    // The stores outlive it; its work is one of their duties.
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
