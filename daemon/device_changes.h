#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/reactor.h"
#include "core/task.h"
#include "daemon/locality.h"
#include "daemon/node_disks.h"
#include "daemon/node_layout.h"
#include "daemon/node_life.h"
#include "objects/disk_departure.h"
#include "objects/name_parts.h"
#include "store/name_sink.h"

namespace fopd::daemon {

// The outcome of adding, removing or forgetting a disk.
struct DeviceOutcome {
    enum class Kind : std::uint8_t {
        kAdded,
        kRemoved,
        kForgotten,
        kNotAdded,
        kNotRemoved,
        kNotForgotten,
    };
    std::string device;
    Kind kind = Kind::kAdded;
    std::string words = {};   // Why the change failed; empty if it is done.
    bool try_later = false;   // A later try may succeed.
    bool is_unknown = false;  // There is no such device, or no such slot.
    // A disk that was forgotten, with the number of objects that it was known to have.
    struct Lost {
        store::Slot slot = 0;
        std::string disk = {};
        std::string pool = {};
        std::uint64_t object_count = 0;
    };
    std::optional<Lost> lost = {};

    bool done() const { return words.empty(); }
};
const char* to_string(DeviceOutcome::Kind kind);

// Adds disks to a running node and removes them. An added disk is opened as at the start, and
// serves from then on. A disk is removed only when it is empty, and may then be taken by any node;
// a lost disk is forgotten together with its objects. Lives on the control reactor.
class DeviceChanges {
public:
    // All parts outlive the object.
    struct Parts {
        core::Reactor& control;
        core::EventSink& events;
        NodeDisks& disks;
        std::vector<std::unique_ptr<Locality>>& localities;
        NodeLayout& layout;
        const std::unique_ptr<objects::NameParts>& names;  // Null without disks.
        const NodeLife& life;
    };
    explicit DeviceChanges(const Parts& parts) : parts_(parts) {}

    // Only one call of add(), remove() or forget() may run at a time. REQUIRES for add() and
    // remove(): the node has disks, and serves.
    //
    // Adds a disk. Afterwards it is one of the node's disks, even if it could not be opened.
    Task<DeviceOutcome> add(devices::DeviceSettings settings);
    // `keep`: the disk stays in the reports, as removed. REQUIRES: the node has such a disk.
    enum class Keep : std::uint8_t { kNo, kYes };
    Task<DeviceOutcome> remove(std::string name, Keep keep);

    // Forgets the objects of a lost disk, and writes off its slot: if the disk turns up again, it
    // is treated as a foreign disk. After a crash the disk is either still missing or already
    // forgotten; calling this again completes the work. REQUIRES: the slot is in the table, is not
    // empty, and its disk is not open.
    struct Lost {
        store::Slot slot = 0;
        std::string device = {};  // The device's configured name; empty if unknown.
        bool is_sure = false;     // If false, only reports what would be lost.
    };
    Task<DeviceOutcome> forget(Lost lost);

private:
    struct Leaving {
        NodeDisk* disk = nullptr;
        objects::DiskDeparture departure;
    };

    Task<DeviceOutcome> remove_open(NodeDisk* disk);
    Task<Result<void>> make_leave(Leaving* leaving);
    Task<Result<objects::DiskContents>> look(Leaving* leaving);
    Task<Result<objects::DiskContents>> wait_until_heard(Leaving* leaving, Instant deadline);
    Task<void> call_off(Leaving* leaving);
    Task<void> drop(NodeDisk* disk);
    Task<Result<std::uint64_t>> count_claims(store::Slot slot);
    Task<Result<void>> forget_names(store::NameSink::Origin origin);
    Task<void> look_at_replaced_again();
    DeviceOutcome not_removed(const NodeDisk& disk, std::string words, bool try_later) const;

    const Parts parts_;
};

}  // namespace fopd::daemon
