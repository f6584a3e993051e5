#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/counter.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "daemon/disk_bay.h"
#include "devices/disk_label.h"
#include "devices/watched_device.h"
#include "io_sched/main_scheduler.h"
#include "objects/stores.h"
#include "store/name_sink.h"
#include "store/settings.h"
#include "store/volume.h"

namespace fopd::daemon {

enum class DiskStage : std::uint8_t {
    kOpening,
    kServing,  // What its health says of it counts.
    kDamaged,  // What can be read of it can be read; it is never written to.
    kGivenUp,  // Of no use, and let go.
    kClosed,
};

// As its administrator sees it.
const char* to_string(DiskStage stage);

// What all disks of a node work with; it outlives them.
struct DiskWorld {
    core::Reactor& control;
    DiskBay* bay = nullptr;  // Null when there are no disks.
    core::EventSink& events;
    core::Entropy& entropy;
    const core::Clock& clock;
    devices::NodeId node{};
    store::StoreSettings store{};
    store::SweepOptions sweep{};
};

// One configured disk, from its path to the objects on it: opened, recognised by its label, taken
// if it is blank, its index found or made anew, its log replayed. A disk that cannot be used is
// given up with a reason in words, and never written to.
//
// Its tasks run on its locality's reactor, one at a time; between them it may be looked at and
// changed from the control reactor. It is destroyed there, when the locality's loop has ended, or
// after the locality has had a turn since the last task.
class NodeDisk {
public:
    struct Place {
        std::uint32_t locality = 0;
        core::Reactor& reactor;
    };
    NodeDisk(const DiskWorld& world, const Place& place, devices::DeviceSettings settings);
    ~NodeDisk();
    NodeDisk(const NodeDisk&) = delete;
    NodeDisk& operator=(const NodeDisk&) = delete;

    const devices::DeviceSettings& settings() const { return settings_; }
    const Place& place() const { return place_; }
    // What its tasks run in.
    core::Gate& duties() { return duties_; }

    // What its locality has for its disks, all of which outlives them: the way to devices, where
    // fops find objects, who wants to know their names. On the locality's reactor, before any task.
    struct Home {
        io_sched::MainScheduler& io;
        objects::Stores& stores;
        store::NameSink& names;
    };
    void use(const Home& home) { home_.emplace(home); }

    // -- tasks, in this order, each once --

    // Opens the device, and finds out what it is. Writes nothing.
    Task<void> look();
    // Takes a disk that is to be taken, and opens what is on it.
    Task<void> begin();
    // Requires: nobody holds the volume any more.
    Task<void> close();
    // Closes the disk and lets other nodes take it; this node can open it again. Requires: the disk
    // is empty.
    Task<void> release();

    // -- in between --

    // It is to be taken, for which it needs a slot.
    bool is_new() const { return was_blank() && stage() == DiskStage::kOpening; }
    bool was_blank() const { return is_new_; }
    void use_slot(store::Slot slot) { slot_ = slot; }
    // Of a disk that is ours, or will be.
    std::optional<store::Slot> slot() const { return slot_; }
    const devices::DiskId& disk_id() const { return disk_id_; }
    void give_up(std::string reason);
    const std::string& reason() const { return reason_; }

    // -- on its locality's reactor, between begin() and close() --

    // Null when the disk was given up. May be read only.
    store::Volume* volume() const { return volume_.get(); }
    // What the locality's scheduler calls it.
    io_sched::MediumId medium() const { return io_sched::MediumId{*slot_}; }
    // Brings the figures up to date.
    void publish();
    // Of its index, as it is now. Requires: there is a volume, until it ends.
    Task<Result<void>> show_index(store::IndexShow* show) { return index_->show_all(show); }

    // -- from any thread --

    DiskStage stage() const { return stage_.load(std::memory_order_acquire); }
    // Null until the device is open.
    const devices::Health* health() const { return health_.load(std::memory_order_acquire); }
    struct Figures {
        core::Counter capacity_bytes;
        core::Counter free_bytes;
        core::Counter checksum_errors;
        core::Counter index_is_full;  // 1 while there is no space for it.
        core::Counter log_is_full;    // 1 while what adds is refused for that.
        core::Counter coalesced_bytes;
        core::Counter recorded_replies;
        core::Counter recorded_replies_max;
        core::Counter refused_replies;  // For which there was no room.
        core::Counter scrub_state;      // objects::ScrubProgress::State
        core::Counter scrub_total_bytes;
        core::Counter scrub_read_bytes;
        core::Counter scrub_damaged_blocks;
        core::Counter busy_ppm;  // Of the time between the last two calls of publish().
    };
    const Figures& figures() const { return figures_; }

private:
    enum class Finding : std::uint8_t { kFound, kMade };

    Task<Result<void>> take();
    Task<Result<void>> come_back();
    Task<Result<void>> close_volume();
    Task<Result<void>> find_index();
    Task<Result<void>> make_index(const char* why);
    Task<Result<void>> open_volume();
    Task<Result<void>> try_open(store::Volume::Mode mode);
    Task<Result<void>> open_damaged(Error error);
    void offer();
    Task<void> let_go();
    void make_volume();
    void report(core::Level level, std::string_view event, std::string_view reason) const;
    void report_opened(Duration took) const;
    void enter(DiskStage stage) { stage_.store(stage, std::memory_order_release); }

    const DiskWorld& world_;
    const devices::DeviceSettings settings_;
    const Place place_;
    core::Gate duties_;

    std::unique_ptr<BayDisk> bay_disk_;
    std::optional<devices::WatchedDevice> device_;  // Stays when closed: its health may be asked.
    std::optional<devices::DiskLabel> label_;
    std::unique_ptr<store::Index> index_;
    std::unique_ptr<store::Volume> volume_;

    std::optional<Home> home_;
    bool offered_ = false;  // The scheduler and the stores have it.

    bool is_new_ = false;
    bool is_released_ = false;  // When it closes.
    std::optional<store::Slot> slot_;
    devices::DiskId disk_id_{};
    store::LogDamage damage_;  // That the last try_open() came upon.
    std::string reason_;

    std::atomic<DiskStage> stage_ = DiskStage::kOpening;
    std::atomic<const devices::Health*> health_ = nullptr;
    Figures figures_;
    Instant published_at_{};
    Duration busy_before_{};
};

// A power of two such that a disk has no more than 65 536 segments, from 1 to 64 MiB.
std::uint32_t segment_bytes_for(std::uint64_t disk_bytes);

}  // namespace fopd::daemon
