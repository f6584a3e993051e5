#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ensure.h"
#include "core/virtual_world.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "fop/bodies.h"
#include "io_sched/disk.h"
#include "io_sched/main_scheduler.h"
#include "lrs/fifo.h"
#include "objects/block_io.h"
#include "objects/coalescer.h"
#include "objects/name_router.h"
#include "objects/names.h"
#include "objects/replaced_objects.h"
#include "objects/store_upkeep.h"
#include "objects/stores.h"
#include "reqh/request_handler.h"
#include "store/map_index.h"
#include "store/names.h"
#include "store/volume.h"
#include "tests/reqh/fake_fop.h"

namespace fopd::reqh::testing {

using objects::kBlock;
inline constexpr std::uint16_t kFirstSlot = 3;

struct StageOptions {
    std::uint32_t localities = 1;
    std::uint32_t disks = 1;
    std::uint64_t disk_bytes = 16UL << 20;
    std::uint64_t seed = 7;
    std::size_t buffer_count = 8;
    devices::DiskFaults faults{};
    std::uint64_t quota_blocks = objects::QuotaAccount::kUnlimited;
    std::map<std::string, objects::Amount> owner_limits{};
    // With it there is a tape pool "cold", whose staging is "fast".
    std::optional<std::uint64_t> cold_quota_blocks{};
    objects::UpkeepOptions upkeep{};
    objects::CoalescerOptions coalescer{};
    bool slow_holes = false;
    std::uint64_t overlay_bytes = 4UL << 20;
    store::SweepOptions sweep{};
    const library::LibraryDoor* library = nullptr;  // Null: the node has no tape library.
    fopd::testing::Replay::Seed whose_seed = fopd::testing::Replay::Seed::kOfTest;
};

// A node with disks, from its localities' request handlers down; it can lose its power and start
// again. Fops arrive at the locality that is said, whatever their object's home is.
class StoreStage : fopd::testing::Replay {
public:
    StoreStage() : StoreStage(StageOptions{}) {}
    explicit StoreStage(const StageOptions& options);
    ~StoreStage();

    // -- the node --

    void start();
    // An orderly end.
    void stop();
    // The power goes: what was not flushed is there, or not.
    void lose_power();
    void restart() {
        lose_power();
        start();
    }
    bool running() const { return !localities_.empty(); }
    // While it does not run: a disk is not there, or there again; what is kept of names is lost.
    void take_away(std::uint32_t disk) { remains_[disk]->is_away = true; }
    void bring_back(std::uint32_t disk) { remains_[disk]->is_away = false; }
    // For good.
    void write_off(std::uint32_t disk) {
        remains_[disk]->is_away = true;
        remains_[disk]->is_written_off = true;
    }
    void lose_names() { std::ranges::fill(name_images_, store::MapImage{}); }

    // -- fops --

    FakeFop& send(FopSpec spec, std::uint32_t locality = 0);
    // Lets it run to its answer.
    FakeFop& call(FopSpec spec, std::uint32_t locality = 0);
    void wait_for(FakeFop& fop);
    void run_for(Duration span) { world.run_for(span); }
    // The locality does not turn for so long.
    void stall(std::uint32_t locality, Duration span) {
        world.stall(*localities_[locality]->reactor, after(world.now(), span));
    }

    // -- what most tests do; they require that it is done --

    fop::Fid create(std::string_view name = {}, std::uint16_t slot = kFirstSlot);
    void write(fop::Fid fid, std::uint64_t offset, const Bytes& bytes);
    Bytes read(fop::Fid fid, std::uint64_t offset, std::uint64_t length);
    fop::Attributes stat(fop::Fid fid);

    // -- to be looked at --

    objects::Stores& stores(std::uint32_t locality = 0) { return *localities_[locality]->stores; }
    store::Volume& volume(std::uint32_t disk = 0) { return *machines_[disk]->volume; }
    // Behind the back of the disk.
    void tell_names(const store::NameChanges* changes, std::uint32_t disk = 0);
    // In this life.
    std::int64_t event_count(std::string_view name) const {
        std::int64_t count = 0;
        for (const auto& locality : localities_) {
            count += std::ranges::count(locality->events.events, name, &KeptEvents::Event::name);
        }
        return count;
    }
    // The last event of that name in this life of a locality; null: there is none.
    const KeptEvents::Event* last_event(std::string_view name, std::uint32_t locality = 0) const {
        const auto& events = localities_[locality]->events.events;
        const auto found =
            std::ranges::find(events.rbegin(), events.rend(), name, &KeptEvents::Event::name);
        return found == events.rend() ? nullptr : &*found;
    }
    devices::DiskImage& image(std::uint32_t disk = 0) { return remains_[disk]->image; }
    store::MapImage& index_image(std::uint32_t disk = 0) { return remains_[disk]->index; }
    devices::MemoryDisk& disk(std::uint32_t number = 0) { return *machines_[number]->disk; }
    RequestHandler& handler(std::uint32_t locality = 0) { return *localities_[locality]->handler; }
    lrs::Scheduler& requests(std::uint32_t locality = 0) { return localities_[locality]->requests; }
    devices::Power& power() { return *power_; }
    objects::PoolQuota& quota() { return *quota_; }
    objects::PoolQuota& quota_of(std::string_view pool) {
        return *stores().layout().find_pool(pool)->quota;
    }
    bool all_buffers_are_back() const;
    // That localities have sent to each other in this life.
    std::uint64_t message_count() const;
    // That the first disk remembers.
    std::size_t reply_count();
    // Of one of the disks, whatever the number.
    std::uint16_t slot(std::uint64_t number) const {
        ENSURE(options.disks > 0);
        return static_cast<std::uint16_t>(kFirstSlot + number % options.disks);
    }

    const StageOptions options;
    core::VirtualWorld world;
    std::deque<FakeFop> fops;
    core::Random random;

private:
    // What outlives a loss of power.
    struct Remains {
        explicit Remains(std::uint64_t disk_bytes) : image(disk_bytes) {}
        devices::DiskImage image;
        store::MapImage index;
        bool formatted = false;
        bool is_away = false;
        bool is_written_off = false;
    };
    struct Locality {
        explicit Locality(StoreStage& stage, std::uint32_t number);
        std::unique_ptr<core::Reactor> reactor;
        core::Gate work;
        core::Gate names_gate;
        core::BufferPool buffers;
        io_sched::MainScheduler io;
        lrs::Scheduler requests;
        FakeVerdicts verdicts;
        KeptEvents events;
        std::unique_ptr<store::MapIndex> name_index;
        std::unique_ptr<store::NameShard> shard;
        std::unique_ptr<objects::NamePart> part;
        std::unique_ptr<objects::Names> names;
        std::unique_ptr<objects::Stores> stores;
        std::unique_ptr<objects::ReplacedObjects> replaced;
        std::unique_ptr<objects::StoreUpkeep> upkeep;
        std::unique_ptr<objects::Coalescer> coalescer;
        std::unique_ptr<RequestHandler> handler;
    };
    struct Machine {
        std::unique_ptr<devices::MemoryDisk> disk;
        std::unique_ptr<store::MapIndex> index;
        std::vector<std::unique_ptr<store::NameSink>> sinks;
        std::unique_ptr<objects::NameRouter> router;
        std::unique_ptr<store::Volume> volume;
    };

    std::uint32_t home_of(std::uint32_t disk) const {
        ENSURE(options.localities > 0);
        return disk % options.localities;
    }
    void make_localities();
    void make_machine(std::uint32_t number);
    Task<void> open(std::uint32_t number);
    Task<void> stop_locality(std::uint32_t number);
    void run_at(std::uint32_t locality, Task<void> task);
    void destroy();

    std::unique_ptr<devices::Power> power_;
    std::shared_ptr<objects::PoolQuota> quota_;
    std::vector<std::unique_ptr<Remains>> remains_;
    std::vector<store::MapImage> name_images_;
    std::vector<std::unique_ptr<Locality>> localities_;
    std::vector<std::unique_ptr<Machine>> machines_;
    std::uint64_t next_number_ = 1;
};

// Bytes that are like no others.
Bytes pattern(std::size_t size_bytes, std::uint64_t seed);
// The checksums of the runs of ranges.
std::vector<std::uint32_t> checksums_of(const std::vector<fop::Range>& ranges, const Bytes& bytes);

// Requests whose lists live as long as they do.
class WriteSpec {
public:
    WriteSpec(fop::Fid fid, std::vector<fop::Range> ranges, Bytes bytes)
        : fid_(fid),
          ranges_(std::move(ranges)),
          bytes_(std::move(bytes)),
          checksums_(checksums_of(ranges_, bytes_)) {}

    enum class Way : std::uint8_t { kInline, kMemory };
    FopSpec spec(Way way, fop::Durability durability = fop::Durability::kDurable) const;
    std::vector<std::uint32_t>& checksums() { return checksums_; }

private:
    fop::Fid fid_;
    std::vector<fop::Range> ranges_;
    Bytes bytes_;
    std::vector<std::uint32_t> checksums_;
};

class AppendSpec {
public:
    AppendSpec(fop::Fid fid, Bytes bytes)
        : fid_(fid),
          bytes_(std::move(bytes)),
          checksums_(checksums_of({{.offset = 0, .length = bytes_.size()}}, bytes_)) {}
    FopSpec spec(WriteSpec::Way way) const;

private:
    fop::Fid fid_;
    Bytes bytes_;
    std::vector<std::uint32_t> checksums_;
};

class ReadSpec {
public:
    ReadSpec(fop::Fid fid, std::vector<fop::Range> ranges)
        : fid_(fid), ranges_(std::move(ranges)) {}
    FopSpec spec(WriteSpec::Way way) const;

private:
    fop::Fid fid_;
    std::vector<fop::Range> ranges_;
};

inline std::uint16_t type_of(std::string_view name) {
    return fop::find_fop_type(name)->number;
}
inline FopSpec truncate(fop::Fid fid, std::uint64_t size_bytes) {
    return {.type = type_of("truncate"),
            .body = fop::Truncate{.fid = fid, .size_bytes = size_bytes}};
}
inline FopSpec punch(fop::Fid fid, fop::Range range) {
    return {.type = type_of("punch"), .body = fop::Punch{.fid = fid, .range = range}};
}

}  // namespace fopd::reqh::testing
