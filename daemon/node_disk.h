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
#include "objects/background_device.h"
#include "objects/stores.h"
#include "store/name_sink.h"
#include "store/settings.h"
#include "store/volume.h"

namespace fopd::daemon {

enum class DiskStage : std::uint8_t {
    kOpening,
    kServing,  // In use; its devices::Health says how well it works.
    kDamaged,  // Readable as far as possible; never written to.
    kGivenUp,  // Unusable; closed.
    kClosed,
};

// The word shown to administrators.
const char* to_string(DiskStage stage);
// Whether a disk in this stage has an open volume.
inline bool is_open(DiskStage stage) {
    return stage == DiskStage::kServing || stage == DiskStage::kDamaged;
}

// Shared by all disks of a node; outlives them.
struct DiskWorld {
    core::Reactor& control;
    DiskBay* bay = nullptr;  // Null for a node that never has disks.
    core::EventSink& events;
    core::Entropy& entropy;
    const core::Clock& clock;
    devices::NodeId node{};
    store::StoreSettings store{};
    store::SweepOptions sweep{};
};

// One configured disk, from its path to its objects: opens the device, reads its label, formats a
// blank disk, finds or rebuilds its index, replays its log. A disk that cannot be used is given up
// with a reason in words, and is never written to.
//
// Its tasks run on its locality's reactor, one at a time; between tasks the control reactor may
// read and change it. The control reactor destroys it, after the locality's loop has ended or after
// the locality has had a turn since the last task.
class NodeDisk final : objects::DamageObserver {
public:
    struct HomeLocality {
        std::uint32_t index = 0;
        core::Reactor& reactor;
    };
    NodeDisk(const DiskWorld& world, const HomeLocality& locality,
             devices::DeviceSettings settings);
    ~NodeDisk();
    NodeDisk(const NodeDisk&) = delete;
    NodeDisk& operator=(const NodeDisk&) = delete;

    const devices::DeviceSettings& settings() const { return settings_; }
    const HomeLocality& locality() const { return locality_; }
    // The gate that its tasks enter.
    core::Gate& duties() { return duties_; }

    // The parts of the disk's locality: the I/O scheduler, the stores in which fops find objects,
    // and the sink for names. All parts outlive the disk. Set on the locality's reactor, before
    // any task.
    struct Home {
        io_sched::MainScheduler& io;
        objects::Stores& stores;
        store::NameSink& names;
    };
    void use(const Home& home) { home_.emplace(home); }

    // -- tasks, in this order, each once --

    // Opens the device and identifies it. Writes nothing. If the device is a file that is to be
    // made, the disk is absent afterwards; after allow_making(), a second call makes the file.
    Task<void> look();
    // Formats the disk if it is blank, and opens its volume. REQUIRES: a blank disk has got a slot
    // by use_slot().
    Task<void> begin();
    // REQUIRES: the volume is no longer in use.
    Task<void> close();
    // Closes the disk and labels it as released: other nodes may format it, and this node can open
    // it again. REQUIRES: the disk is empty.
    Task<void> release();

    // -- in between --

    // Whether the disk's file is missing and the configuration wants it to be made.
    bool is_absent() const { return is_absent_ && stage() == DiskStage::kOpening; }
    // The reason why the file was not made yet. REQUIRES: is_absent().
    const std::string& absence() const { return absence_; }
    void allow_making() { may_make_ = true; }
    // Whether the disk was given up because its device could not be opened.
    bool was_not_opened() const { return stage() == DiskStage::kGivenUp && health() == nullptr; }
    // Sets the slot and the id that the table of slots has for this disk, whose label could not be
    // read. REQUIRES: was_not_opened().
    void set_recorded_slot(store::Slot slot, const devices::DiskId& disk);
    // Whether the disk is blank, and needs a slot before begin() formats it.
    bool is_new() const { return was_blank() && stage() == DiskStage::kOpening; }
    bool was_blank() const { return is_new_; }
    void use_slot(store::Slot slot) { slot_.store(slot, std::memory_order_release); }
    // The disk's slot, if the disk belongs to this node or is about to. disk_id() does not change
    // once this is set. May be called while look() runs.
    std::optional<store::Slot> slot() const {
        const std::int32_t slot = slot_.load(std::memory_order_acquire);
        if (slot == kNoSlot) return std::nullopt;
        return static_cast<store::Slot>(slot);
    }
    const devices::DiskId& disk_id() const { return disk_id_; }
    // `advice` says what the administrator can do, or what the consequence is. It is shown in the
    // log and in the list of devices, but not to clients.
    void give_up(std::string cause, std::string advice = {});
    // Replaces the reason: the disk's slot was written off. REQUIRES: was_not_opened().
    void note_written_off();
    // The cause, and behind a semicolon the advice if there is one.
    std::string reason() const { return advice_.empty() ? cause_ : cause_ + "; " + advice_; }
    // The cause without the advice, for clients.
    const std::string& cause() const { return cause_; }

    // -- on its locality's reactor, between begin() and close() --

    // Null if the disk was given up. The volume may be open for reading only.
    store::Volume* volume() const { return volume_.get(); }
    // The disk's id in the locality's I/O scheduler.
    io_sched::MediumId medium() const { return io_sched::MediumId{*slot()}; }
    // Updates the figures. `check_findings`: how many the disk's newest check has.
    void publish(std::uint64_t check_findings = 0);
    // Passes all entries of the disk's index to `show`. REQUIRES: the volume exists until this
    // ends.
    Task<Result<void>> show_index(store::IndexShow* show) { return index_->show_all(show); }

    // -- from any thread --

    DiskStage stage() const { return stage_.load(std::memory_order_acquire); }
    // Null until the device is open.
    const devices::Health* health() const { return health_.load(std::memory_order_acquire); }
    struct Figures {
        core::Counter capacity_bytes;
        core::Counter free_bytes;
        core::Counter checksum_errors;
        core::Counter index_is_full;  // 1 while the index has no space left.
        core::Counter log_is_full;    // 1 while it refuses changes that add data.
        core::Counter coalesced_bytes;
        core::Counter recorded_replies;
        core::Counter recorded_replies_max;
        core::Counter refused_replies;  // Replies refused for lack of room.
        core::Counter scrub_state;      // objects::ScrubProgress::State
        core::Counter scrub_total_bytes;
        core::Counter scrub_read_bytes;
        core::Counter scrub_damaged_blocks;
        core::Counter scrubs_done;        // Complete ones, since the volume was opened.
        core::Counter scrub_done_damage;  // Damaged blocks found by the last of these.
        core::Counter met_damage;         // Damaged blocks that reads have met since then.
        core::Counter check_findings;
        core::Counter busy_ppm;  // Busy time between the last two calls of publish().
    };
    const Figures& figures() const { return figures_; }

private:
    enum class Finding : std::uint8_t { kFound, kMade };
    static constexpr std::int32_t kNoSlot = -1;

    bool is_to_be_made(const Error& error) const;
    Task<Result<void>> format();
    Task<Result<void>> mark_active();
    Task<Result<void>> close_volume();
    Task<Result<void>> find_index();
    Task<Result<void>> make_index(const char* why);
    Task<Result<void>> open_volume();
    Task<Result<void>> try_open(store::Volume::Mode mode);
    Task<Result<void>> open_damaged(Error error);
    // The health of the node shows damage at once, not only after the next publish().
    void damage_changed() override;
    void publish_damage(const objects::HomeVolume& found);
    void offer();
    Task<void> let_go();
    void make_volume();
    void probe_if_due();
    Task<void> probe();
    void report(core::Level level, std::string_view event, std::string_view reason) const;
    void report_opened(Duration took) const;
    void enter(DiskStage stage) { stage_.store(stage, std::memory_order_release); }

    const DiskWorld& world_;
    const devices::DeviceSettings settings_;
    const HomeLocality locality_;
    core::Gate duties_;
    core::Gate probes_;  // At most one read at a time.

    std::unique_ptr<BayDisk> bay_disk_;
    std::optional<devices::WatchedDevice> device_;  // Kept after close, for its health.
    std::optional<devices::DiskLabel> label_;
    std::unique_ptr<store::Index> index_;
    std::optional<objects::BackgroundDevice> background_;  // Used by the volume.
    std::unique_ptr<store::Volume> volume_;

    std::optional<Home> home_;
    bool offered_ = false;  // Registered with the I/O scheduler and the stores.

    bool may_make_ = false;  // look() may make the file.
    bool is_absent_ = false;
    std::string absence_;
    bool is_new_ = false;
    bool is_released_ = false;  // Set the label to released on close.
    devices::DiskId disk_id_{};
    std::atomic<std::int32_t> slot_ = kNoSlot;
    store::LogDamage damage_;  // Found by the last try_open().
    std::string cause_;
    std::string advice_;

    std::atomic<DiskStage> stage_ = DiskStage::kOpening;
    std::atomic<const devices::Health*> health_ = nullptr;
    Figures figures_;
    Instant published_at_{};
    Duration busy_before_{};
};

// A power of two such that a disk has no more than 65 536 segments, from 1 to 64 MiB.
std::uint32_t segment_bytes_for(std::uint64_t disk_bytes);

}  // namespace fopd::daemon
