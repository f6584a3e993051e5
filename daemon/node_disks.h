#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "core/reactor.h"
#include "core/wait_queue.h"
#include "daemon/damage_record.h"
#include "daemon/disk_report.h"
#include "daemon/locality_order.h"
#include "daemon/node_disk.h"
#include "daemon/slot_file.h"
#include "daemon/slot_table.h"

namespace fopd::daemon {

// A slot that may have objects and whose disk is not open.
struct MissingSlot {
    store::Slot slot = 0;
    devices::DiskId disk{};
    std::string pool = {};
    std::string device = {};  // The disk's name, as far as known.
    std::string reason = {};
};

// The disks of a node, spread over its localities. Opens all of them at once, assigns slots to new
// ones, and closes them; in between, one disk at a time is added or removed. Lives on the control
// reactor; the disks' own work runs on their localities' reactors. When the node stops, every wait
// for a disk has a deadline.
class NodeDisks {
public:
    // `world` and the reactors outlive it.
    NodeDisks(const DiskWorld& world, const std::vector<core::Reactor*>& localities,
              const std::vector<devices::DeviceSettings>& settings);
    ~NodeDisks();
    NodeDisks(const NodeDisks&) = delete;
    NodeDisks& operator=(const NodeDisks&) = delete;

    // True if no disk was configured at the start.
    bool empty() const { return began_empty_; }
    const std::vector<std::unique_ptr<NodeDisk>>& all() const { return disks_; }
    // Null if there is no disk of this name.
    NodeDisk* find(const std::string& name) const;

    // On return every disk is open or given up. No deadline: a start waits for its disks.
    Task<void> open();
    // REQUIRES: the disks are no longer in use, and open() has ended. Returns false if some have
    // not closed by the deadline: their resources cannot be released.
    Task<bool> close(Instant deadline);

    // -- one disk, while no other is added or removed --

    // Adds a disk, on the locality with the fewest. After open_one() it is open or given up.
    NodeDisk& add(devices::DeviceSettings settings);
    Task<void> open_one(NodeDisk* disk);
    // Records that the disk's slot is empty. The disk has no data and can no longer be found by
    // fops. Call release() next.
    void note_released(const NodeDisk& disk);
    Task<void> release(NodeDisk* disk);
    // Removes the disk from this set. REQUIRES: it is closed, or was given up.
    std::unique_ptr<NodeDisk> take_out(NodeDisk* disk);
    // Keeps a removed disk in the reports, because it may be added again.
    void remember(const NodeDisk& disk);
    bool forget(const std::string& name);
    bool remembers(const std::string& name) const;
    // The slots in the table that disks of this name have, or had and are missing from, as far as
    // known.
    std::set<store::Slot> slots_of(const std::string& name) const;
    // The name of the slot's disk; empty if unknown.
    std::string name_of(std::optional<store::Slot> slot) const;
    // The disk that has the slot and is not given up; null if there is none.
    const NodeDisk* open_disk_of(const SlotEntry& entry) const;
    // Writes the slot off, durably: the disk's data is forgotten and the disk is not the node's any
    // more. REQUIRES: the slot is in the table, and its disk is not open.
    Result<void> write_off(store::Slot slot);

    // In words, why the disk of a slot cannot be read; empty if it can.
    std::string why_missing(const SlotEntry& entry) const;
    // In words, the slots that may have objects and that no configured disk has. Empty before
    // open() has ended.
    std::vector<std::string> lost_slots() const;
    // Empty before open() has ended.
    std::vector<MissingSlot> missing_slots() const;
    // In words, the given-up disks of the pool that were not blank and cannot be matched to a slot.
    std::vector<std::string> strangers_of(const std::string& pool) const;

    // Records the damage found by scrubs and reads in the table, so that it is known after a
    // restart. Called every few seconds, and before the disks close.
    void note_damage();

    // All slots, including those of absent disks. Valid after open().
    const SlotTable& slots() const { return slots_; }
    // The configured and the removed disks.
    std::vector<DiskReport> reports() const;
    // The reports of reports(), and those of missing disks that are not configured.
    std::vector<DiskReport> reports_of_all() const;
    // From any thread.
    void collect(core::MetricSink& sink) const;

private:
    // A disk that was removed.
    struct Away {
        devices::DeviceSettings settings;
        DiskFacts known;
    };
    // One of the disk's tasks.
    using DiskTask = Task<void> (NodeDisk::*)();

    void add_at(std::uint32_t locality, devices::DeviceSettings settings);
    std::size_t index_of(const NodeDisk* disk) const;
    Task<std::size_t> send_all(DiskTask what, Instant deadline);
    Task<std::size_t> send_to(std::vector<std::size_t> which, DiskTask what, Instant deadline);
    Task<void> send(std::size_t index, DiskTask what);
    void start(std::size_t index, DiskTask what);
    std::vector<std::size_t> sort_absent();
    bool may_make(NodeDisk& disk);
    const SlotEntry* missing_slot_of(const devices::DeviceSettings& settings) const;
    void look_at(std::size_t index);
    DiskReport report_of(std::size_t index) const;
    void sort_out();
    void sort_out(NodeDisk& disk);
    // Why the disk conflicts with this node's earlier disks; empty if it does not.
    std::string conflict_of(const NodeDisk& disk) const;
    void give_slots();
    // Null if the report's disk does not have the slot that it claims.
    const SlotEntry* entry_of(const DiskReport& report) const;
    std::int64_t wall_s() const;
    void note_open();
    void record_open(const NodeDisk& disk);
    // Null if the disk is not in this set.
    const NodeDisk* disk_of(const SlotEntry& entry) const;

    const DiskWorld world_;
    const std::vector<core::Reactor*> localities_;
    const bool began_empty_;
    bool opened_ = false;    // open() has ended.
    core::WaitQueue ended_;  // Some order has ended.
    // Held while `disks_` is changed, or read by another thread.
    mutable std::mutex shown_;
    std::vector<std::unique_ptr<NodeDisk>> disks_;
    std::vector<std::unique_ptr<LocalityOrder>> orders_;  // One for each disk.
    std::vector<DiskFacts> known_;                        // One for each disk.
    // One for each disk. The figures that they show are changed and read with shown_ held.
    std::vector<DamageRecord> damage_;
    std::vector<Away> away_;
    SlotTable slots_;
    SlotFile slot_file_;
    Instant write_again_at_{};
};

}  // namespace fopd::daemon
