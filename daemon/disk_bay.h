#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/device.h"
#include "devices/label.h"
#include "devices/settings.h"
#include "objects/name_parts.h"
#include "store/index.h"

namespace fopd::daemon {

// A disk as a bay gives it: open, and nobody else's. Lives on the reactor it was opened for.
class BayDisk {
public:
    virtual ~BayDisk() = default;
    // Lives as long as this.
    virtual devices::Device& device() = 0;
    // Waits for what is under way; others may have it from then on. Once.
    virtual Task<void> close() = 0;
};

// Where a node's disks are plugged in, and what it keeps beside them: files and block devices below
// the configured paths in the real world, images in the simulated one. Outlives the node.
class DiskBay : public objects::NameIndexes {
public:
    virtual ~DiskBay() = default;

    // -- on any reactor, which is the one what they give lives on --

    virtual Task<Result<std::unique_ptr<BayDisk>>> open(core::Reactor* reactor,
                                                        devices::DeviceSettings settings) = 0;
    // The index that belongs to a disk. kNotFound: there is none; kCorrupt and kInvalid: none that
    // is of use. All three can be made anew.
    virtual Task<Result<std::unique_ptr<store::Index>>> open_index(core::Reactor* reactor,
                                                                   devices::DiskId disk) = 0;
    // An empty one, in the place of whatever is there. Requires: nobody has that open.
    virtual Task<Result<std::unique_ptr<store::Index>>> make_index(core::Reactor* reactor,
                                                                   devices::DiskId disk) = 0;

    // -- on the control reactor, which may wait for a file --

    // There will be so many disks; until now there were fewer.
    virtual Result<void> make_room(std::size_t disk_count) = 0;
    // The table of slots as text; kNotFound before it was written for the first time.
    virtual Result<std::string> read_slots() = 0;
    // Durable when it returns; after a failure the old one is there.
    virtual Result<void> write_slots(const std::string& text) = 0;
};

}  // namespace fopd::daemon
