#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/metrics.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "daemon/json_writer.h"
#include "daemon/node_disk.h"
#include "daemon/slot_table.h"

namespace fopd::daemon {

// A disk as its administrator sees it.
struct DiskReport {
    std::string name = {};
    devices::Family family = devices::Family::kDisk;
    std::string pool = {};
    std::string path = {};
    const char* state = "";  // opening, good, suspect, read-only, given-up, closed, removed
    bool read_only = false;
    std::string reason = {};  // Why it is not good.
    // Nothing, and empty, as long as nobody knows.
    std::optional<std::uint64_t> capacity_bytes = {};
    std::optional<std::uint64_t> free_bytes = {};
    std::optional<store::Slot> slot = {};
    std::string disk = {};  // Its id.
    std::uint32_t locality = 0;
    std::uint64_t errors = 0;
    // Of its newest scrub.
    const char* scrub = "";  // never, running, done, ended, failed
    std::uint64_t scrub_total_bytes = 0;
    std::uint64_t scrub_read_bytes = 0;
    std::uint64_t scrub_damaged_blocks = 0;
};
void write_disk(JsonWriter& json, const DiskReport& disk);

// The disks of a node, spread over its localities: opens them all at once, gives new ones their
// slots, and closes them again; between that one comes or goes at a time. Lives on the control
// reactor; the disks' own work is done on their localities' reactors. At a stop this never waits
// for them without a deadline.
class NodeDisks {
public:
    // All but the list outlive it.
    NodeDisks(const DiskWorld& world, const std::vector<core::Reactor*>& localities,
              const std::vector<devices::DeviceSettings>& settings);
    ~NodeDisks();
    NodeDisks(const NodeDisks&) = delete;
    NodeDisks& operator=(const NodeDisks&) = delete;

    // None was there at the start.
    bool empty() const { return began_empty_; }
    const std::vector<std::unique_ptr<NodeDisk>>& all() const { return disks_; }
    // Null: there is none of this name.
    NodeDisk* find(const std::string& name) const;

    // Every disk is open, or given up, when it returns. No deadline: a start waits for its disks.
    Task<void> open();
    // Requires: nobody uses the disks any more, and an open() has ended. False when some have not
    // ended by the deadline: what they hold cannot be given back.
    Task<bool> close(Instant deadline);

    // -- one disk, while no other comes or goes --

    // One more, where there are the fewest. It is open, or given up, after open_one().
    NodeDisk& add(devices::DeviceSettings settings);
    Task<void> open_one(NodeDisk* disk);
    // There is nothing on it, and nobody finds it any more: it is let go. Then release().
    void note_released(const NodeDisk& disk);
    Task<void> release(NodeDisk* disk);
    // It is none of these any more. Requires: it is closed, or was given up.
    std::unique_ptr<NodeDisk> take_out(NodeDisk* disk);
    // Somebody took it out, and it may come back: it is in the reports.
    void remember(const NodeDisk& disk);
    bool forget(const std::string& name);
    bool remembers(const std::string& name) const;
    // Which slot of the table the disk of this name has or had, as far as anybody could see.
    std::optional<store::Slot> slot_of(const std::string& name) const;
    // The other way round; empty when nobody knows.
    std::string name_of(std::optional<store::Slot> slot) const;
    // Whoever has the slot now; null when nobody is open there.
    const NodeDisk* open_disk_of(const SlotEntry& entry) const;
    // What is on its disk is forgotten, durably: the disk is not the node's any more. Requires: the
    // slot is in the table, and its disk is not open.
    Result<void> write_off(store::Slot slot);

    // Why the disk of a slot cannot be read, as people call it; empty when it can.
    std::string why_missing(const SlotEntry& entry) const;
    // The slots that may have objects and whose disks nobody can find, in words.
    std::vector<std::string> lost_slots() const;
    // Slots that were given up and have no objects as far as known, in words.
    std::vector<std::string> strangers_of(const std::string& pool) const;

    // Which slots there are, also of disks that are elsewhere. After open().
    const SlotTable& slots() const { return slots_; }
    std::vector<DiskReport> reports() const;
    // From any thread.
    void collect(core::MetricSink& sink) const;

private:
    class Errand;
    // What is known of a disk besides what it publishes itself.
    struct Known {
        std::string reason;
        std::optional<store::Slot> slot;
        std::string disk;
    };
    // One that was taken out.
    struct Away {
        devices::DeviceSettings settings;
        Known known;
    };
    enum class Errands : std::uint8_t { kLook, kBegin, kRelease, kClose };

    void add_at(std::uint32_t locality, devices::DeviceSettings settings);
    std::size_t index_of(const NodeDisk* disk) const;
    Task<std::size_t> send_all(Errands what, Instant deadline);
    Task<void> send(std::size_t index, Errands what);
    void look_at(std::size_t index);
    DiskReport report_of(std::size_t index) const;
    void read_slots();
    void sort_out();
    void sort_out(NodeDisk& disk);
    // Why it cannot be one of this node's disks beside those that came before; empty when it can.
    std::string conflict_of(const NodeDisk& disk) const;
    void give_slots();
    bool is_in_table(const DiskReport& report) const;
    Result<void> write_slots();
    void note_open();
    // Null: it is not one of these.
    const NodeDisk* disk_of(const SlotEntry& entry) const;

    const DiskWorld world_;
    const std::vector<core::Reactor*> localities_;
    const bool began_empty_;
    core::WaitQueue answered_;
    // Held while `disks_` is changed, or read by another thread.
    mutable std::mutex shown_;
    std::vector<std::unique_ptr<NodeDisk>> disks_;
    std::vector<std::unique_ptr<Errand>> errands_;  // One for each disk.
    std::vector<Known> known_;                      // Likewise.
    std::vector<Away> away_;
    SlotTable slots_;
    // What is known to be kept of it; nothing after a failure that left the one or the other.
    std::optional<std::string> slots_written_ = std::string();
};

}  // namespace fopd::daemon
