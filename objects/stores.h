#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
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

struct PoolPlace {
    PoolId id = 0;
    std::string name;
    // Its disks that may have objects nobody knows of, for people; empty: all can be read.
    std::string missing = {};
    std::shared_ptr<PoolQuota> quota = std::make_shared<PoolQuota>();
};

enum class SlotState : std::uint8_t {
    kOnline,
    kReadOnly,    // Some of what was on its disk is lost.
    kMissing,     // Its disk is not there, or of no use.
    kReleased,    // It was let go, with nothing on it, or there never was anything.
    kWrittenOff,  // What was on it is forgotten.
};

struct SlotPlace {
    store::Slot slot = 0;
    std::uint32_t locality = 0;  // Its home: only there are its objects known.
    PoolId pool = 0;
    SlotState state = SlotState::kOnline;
    std::string disk = {};  // Which disk is missing, for people.
};

// Which pools and slots the node has, also those whose disk is missing. Never changed, only
// replaced as a whole.
struct StoreLayout {
    std::uint64_t version = 0;  // Greater than that of every layout before.
    std::vector<PoolPlace> pools;
    std::size_t default_pool = 0;  // Of `pools`: for fops that name none.
    std::vector<SlotPlace> slots;  // By ascending slot.

    // Null: there is none. An empty name is the default pool's.
    const PoolPlace* find_pool(std::string_view name) const;
    const PoolPlace* find_pool(PoolId id) const;
    const SlotPlace* find_slot(store::Slot slot) const;
};
using StoreLayoutPtr = std::shared_ptr<const StoreLayout>;

// -- what one of them has --

// A disk whose objects this locality answers for.
struct HomeDisk {
    std::array<std::byte, 16> disk_id{};
    PoolId pool = 0;
    // Open, perhaps to be read only; its slot is in the layout. Outlives its being here.
    store::Volume* volume = nullptr;
    io_sched::MediumId medium{};  // What the locality's scheduler calls it.
};

// What it works with; all of it outlives the stores.
struct StoresParts {
    std::uint32_t locality = 0;
    core::Reactor& reactor;
    io_sched::MainScheduler& io;
    core::BufferPool& buffers;
    const core::Clock& clock;
    core::EventSink& events;
    Names& names;  // Of the whole node, as this locality reaches them.
};

class HomeVolume;

// Where the foms of a locality find objects: those of its own disks at once, others through the
// locality that is their home. Made before any disk is opened, so that those of all localities can
// be introduced to each other; disks come later, and go when nobody holds them any more.
//
// Lives on its reactor, but for what says otherwise.
class Stores {
public:
    explicit Stores(const StoresParts& parts);
    ~Stores();
    Stores(const Stores&) = delete;
    Stores& operator=(const Stores&) = delete;

    // Those of all localities, by their index, this one among them; they outlive all foms. Before
    // the first fom.
    void introduce(std::span<Stores* const> all) { all_.assign(all.begin(), all.end()); }
    // What is in force for fops that start from now on.
    void set_layout(StoreLayoutPtr layout);
    // Requires: no disk of that slot is here.
    void add(const HomeDisk& disk);
    // Requires: there is no HomeVolume::Hold on the disk.
    void remove(store::Slot slot);

    // What is done here for fops of other localities, and after the reply of others, ends.
    // Requires: no fom of any locality runs any more; the disks are still here.
    Task<void> stop();

    const StoreLayout& layout() const { return *layout_; }
    // For a caller that uses the layout in more than one reactor turn.
    const StoreLayoutPtr& layout_ptr() const { return layout_; }
    // A disk of this locality; null when its home is elsewhere, or its disk is not there, or about
    // to go. It is there for this turn: who needs it longer takes a HomeVolume::Hold.
    HomeVolume* find(store::Slot slot);
    // Its disk was let go with nothing on it, or is about to be.
    bool was_released(store::Slot slot);
    // What was on its disk is lost for good.
    bool was_written_off(store::Slot slot) const;
    std::span<const std::unique_ptr<HomeVolume>> volumes() const { return volumes_; }
    Stores& at(std::uint32_t locality) const { return *all_[locality]; }
    std::span<Stores* const> all() const { return all_; }

    // Counts the tasks of this locality that are not foms.
    core::Gate& duties() { return duties_; }
    // Cancelled by stop().
    core::CancelSource& stopping() { return stopping_; }
    // From any thread.
    const StoresParts& parts() const { return parts_; }

private:
    std::vector<std::unique_ptr<HomeVolume>>::iterator place_of(store::Slot slot);
    void join_quota(HomeVolume& volume);

    const StoresParts parts_;
    std::vector<Stores*> all_;
    StoreLayoutPtr layout_;
    std::vector<std::unique_ptr<HomeVolume>> volumes_;  // Few.
    core::Gate duties_;
    core::CancelSource stopping_;
};

}  // namespace fopd::objects
