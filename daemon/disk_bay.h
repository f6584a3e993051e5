#pragma once

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

// A disk opened by a bay, for exclusive use. Lives on the reactor it was opened for.
class BayDisk {
public:
    virtual ~BayDisk() = default;
    // Lives as long as this.
    virtual devices::Device& device() = 0;
    // Waits for I/O in flight, and releases the disk to others. Called once.
    virtual Task<void> close() = 0;
};

// Whether an index that could not be opened can be rebuilt. kNotFound: there is none; kCorrupt,
// kInvalid: it is unusable.
constexpr bool can_rebuild(const Error& index) {
    return index.code == Errc::kNotFound || index.code == Errc::kCorrupt ||
           index.code == Errc::kInvalid;
}

// Opens a node's disks, and keeps the data that belongs to them but is not on them: in the real
// world, devices and files below configured paths; in the simulated world, images. Outlives the
// node.
class DiskBay : public objects::NameIndexes {
public:
    virtual ~DiskBay() = default;

    // -- on any reactor; the returned object lives on that reactor --

    virtual Task<Result<std::unique_ptr<BayDisk>>> open(core::Reactor* reactor,
                                                        devices::DeviceSettings settings) = 0;
    // The index that belongs to a disk. After some errors it can be rebuilt: see can_rebuild().
    virtual Task<Result<std::unique_ptr<store::Index>>> open_index(core::Reactor* reactor,
                                                                   devices::DiskId disk) = 0;
    // Creates an empty index, replacing an existing one. REQUIRES: the existing one is not open.
    virtual Task<Result<std::unique_ptr<store::Index>>> make_index(core::Reactor* reactor,
                                                                   devices::DiskId disk) = 0;

    // -- on the control reactor, which may block on a file --

    // Prepares for `disk_count` disks, more than before.
    virtual Result<void> make_room(std::size_t disk_count) = 0;
    // The table of slots as text; kNotFound if it was never written.
    virtual Result<std::string> read_slots() = 0;
    // Durable on return; after a failure the old table is kept.
    virtual Result<void> write_slots(const std::string& text) = 0;
};

}  // namespace fopd::daemon
