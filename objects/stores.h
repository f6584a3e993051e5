#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer_pool.h"
#include "core/cancel.h"
#include "core/clock.h"
#include "core/events.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/task.h"
#include "objects/block_io.h"
#include "objects/names.h"
#include "objects/pool_quota.h"
#include "store/fid.h"
#include "store/volume.h"

namespace fopd::io_sched {
class MainScheduler;
enum class MediumId : std::uint32_t;
}  // namespace fopd::io_sched

namespace fopd::objects {

// -- the layout, which is the same on all localities of a node --

struct LayoutPool {
    PoolId id = 0;
    std::string name;
    // The disk pool whose disks its uploads land on. Every tape pool has one, and no disk pool.
    std::optional<PoolId> staging = {};
    // In words, its missing disks, which may have further objects; empty: all disks can be read.
    std::string missing = {};
    std::shared_ptr<PoolQuota> quota = std::make_shared<PoolQuota>();

    bool is_on_tape() const { return staging.has_value(); }
    // The pool whose disks take its new objects.
    PoolId disk_pool() const { return staging.value_or(id); }
};

enum class SlotState : std::uint8_t {
    kOnline,
    kReadOnly,    // Some of its disk's data is lost.
    kMissing,     // Its disk is absent or unusable.
    kReleased,    // Its disk was released empty, or never had an object.
    kWrittenOff,  // Its disk's data is forgotten.
};

struct LayoutSlot {
    store::Slot slot = 0;
    std::uint32_t locality = 0;  // The index of its home locality.
    PoolId pool = 0;             // The pool of its disk; objects on it may be of another pool.
    SlotState state = SlotState::kOnline;
    std::string disk = {};  // In words, the missing disk.
};

// The pools and slots of the node, including slots whose disk is missing. Immutable, replaced as a
// whole.
struct StoreLayout {
    std::uint64_t version = 0;  // Greater than that of all earlier layouts.
    std::vector<LayoutPool> pools;
    std::size_t default_pool = 0;   // Index in `pools`; for fops that name none.
    std::vector<LayoutSlot> slots;  // By ascending slot.

    // Null: there is none. An empty name means the default pool.
    const LayoutPool* find_pool(std::string_view name) const;
    const LayoutPool* find_pool(PoolId id) const;
    const LayoutSlot* find_slot(store::Slot slot) const;
    // Whether the disks of a disk pool may have objects of other pools.
    bool is_staging(PoolId disk_pool) const;
};
using StoreLayoutPtr = std::shared_ptr<const StoreLayout>;

// -- the stores of one locality --

// Notified of damage on a disk.
class DamageObserver {
public:
    // Called when a read or a scrub has found a damaged block, and when a scrub has ended: the
    // counts of HomeVolume are up to date.
    virtual void damage_changed() = 0;

protected:
    ~DamageObserver() = default;
};

// A disk whose home is this locality.
struct HomeDisk {
    std::array<std::byte, 16> disk_id{};
    PoolId pool = 0;  // The disk's; each object has its own in its record.
    // Open, possibly read-only; its slot is in the layout. Must stay open until remove().
    store::Volume* volume = nullptr;
    io_sched::MediumId medium{};       // Its id in the locality's I/O scheduler.
    DamageObserver* damage = nullptr;  // Outlives the volume. Null: there is none.
};

// The parts that the stores use; they outlive the stores.
struct StoresParts {
    std::uint32_t locality = 0;
    core::Reactor& reactor;
    io_sched::MainScheduler& io;
    core::BufferPool& buffers;
    const core::Clock& clock;
    core::EventSink& events;
    Names& names;  // All names of the node, as reached from this locality.
};

class HomeVolume;

// Where the foms of a locality find objects: on its own disks directly, others through their home
// localities. Created before any disk is opened, so that the stores of all localities can be
// introduced to each other; disks are added later, and removed when no hold on them is left.
//
// Lives on its reactor, except where stated otherwise.
class Stores {
public:
    explicit Stores(const StoresParts& parts);
    ~Stores();
    Stores(const Stores&) = delete;
    Stores& operator=(const Stores&) = delete;

    // The stores of all localities, by index, including this one; they outlive all foms. Called
    // before the first fom.
    void introduce(std::span<Stores* const> all) { all_.assign(all.begin(), all.end()); }
    // Sets the layout for fops that start from now on.
    void set_layout(StoreLayoutPtr layout);
    // REQUIRES: no disk of that slot is here.
    void add(const HomeDisk& disk);
    // REQUIRES: there is no HomeVolume::Hold on the disk.
    void remove(store::Slot slot);

    // Ends the work done here for fops of other localities and after replies. REQUIRES: no fom runs
    // on any locality; the disks are still here.
    Task<void> stop();

    const StoreLayout& layout() const { return *layout_; }
    // For a caller that uses the layout in more than one reactor turn.
    const StoreLayoutPtr& layout_ptr() const { return layout_; }
    // A disk of this locality; null if its home is elsewhere, its disk is absent, or it is about to
    // be removed. Valid for this reactor turn; for longer use, take a HomeVolume::Hold.
    HomeVolume* find(store::Slot slot);
    // A disk of this locality, for reads and writes that yield to those of clients.
    BlockIo::Disk in_background(const HomeVolume& home) const;
    // Whether its disk was released empty, or is about to be.
    bool was_released(store::Slot slot);
    // Whether its disk's data was written off.
    bool was_written_off(store::Slot slot) const;
    std::span<const std::unique_ptr<HomeVolume>> volumes() const { return volumes_; }
    Stores& at(std::uint32_t locality) const { return *all_[locality]; }
    std::span<Stores* const> all() const { return all_; }

    // Counts the tasks of this locality that are not foms.
    core::Gate& duties() { return duties_; }
    // Cancelled by stop().
    core::CancelSource& stopping() { return stopping_; }
    // Any thread.
    const StoresParts& parts() const { return parts_; }

private:
    std::vector<std::unique_ptr<HomeVolume>>::iterator find_volume(store::Slot slot);
    void join_quotas(HomeVolume& volume);

    const StoresParts parts_;
    std::vector<Stores*> all_;
    StoreLayoutPtr layout_;
    std::vector<std::unique_ptr<HomeVolume>> volumes_;  // Few.
    core::Gate duties_;
    core::CancelSource stopping_;
};

}  // namespace fopd::objects
