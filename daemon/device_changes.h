#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/events.h"
#include "core/reactor.h"
#include "core/task.h"
#include "daemon/locality.h"
#include "daemon/node_disks.h"
#include "objects/disk_departure.h"
#include "store/name_sink.h"

namespace fopd::daemon {

// What became of a disk that was to come, or to go.
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
    std::string words = {};  // Why the change failed; empty if it is done.
    bool try_later = false;  // A later try may succeed.
    // Of one that is forgotten, with what was known to be on it.
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

// Disks that come to a node which runs, and go. One that comes is opened like those at the start,
// and serves from then on; one goes only when nothing is on it, and is then free for any node, or
// when it is lost, and what was on it with it.
// Lives on the control reactor.
class DeviceChanges {
public:
    // All of it outlives this.
    struct Parts {
        core::Reactor& control;
        core::EventSink& events;
        NodeDisks& disks;
        std::vector<std::unique_ptr<Locality>>& localities;
        // Tells all localities which disks there are.
        std::function<Task<void>()> publish_layout;
        // All names of the node, as they are reached from here.
        std::function<store::NameSink&()> names;
        // Clients of an earlier life of the node may be on their way back: what they want is not
        // known.
        std::function<bool()> clients_may_return;
        // Nobody stops the node.
        std::function<bool()> goes_on;
    };
    explicit DeviceChanges(Parts parts) : parts_(std::move(parts)) {}

    // One at a time. Requires for both: the node has disks, and serves.
    // The disk is among the node's afterwards, also when it had to be given up.
    Task<DeviceOutcome> add(devices::DeviceSettings settings);
    // `keep`: it stays in the reports, as removed. Requires: there is such a disk.
    enum class Keep : std::uint8_t { kNo, kYes };
    Task<DeviceOutcome> remove(std::string name, Keep keep);

    // Forgets the objects of a disk that is lost, and that it was the node's: should it turn up
    // again, it is a stranger's. A crash leaves a disk that is missing, or one that is forgotten;
    // what was begun is finished by doing it again. Requires: the slot is in the table, is not
    // empty, and has no disk that is open.
    struct Lost {
        store::Slot slot = 0;
        std::string device = {};  // As it was called; empty: nobody knows.
        bool is_sure = false;     // Else it is only said what would be lost.
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
