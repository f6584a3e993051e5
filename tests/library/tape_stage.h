#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer_pool.h"
#include "core/events.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "devices/tape/memory_library.h"
#include "devices/tape/tape_library_image.h"
#include "io_sched/main_scheduler.h"
#include "library/library_bay.h"
#include "library/staging_disks.h"
#include "library/tape_library.h"
#include "objects/name_part.h"
#include "objects/names.h"
#include "objects/stores.h"
#include "store/map_index.h"
#include "store/names.h"
#include "store/volume.h"
#include "tests/replay.h"

namespace fopd::library::testing {

using Bytes = std::vector<std::byte>;

// Keeps the names of events, and their fields that are text, as in "library.mounted drive=vtl0 …".
class NamedEvents final : public core::EventSink {
public:
    void emit(core::Level /*level*/, std::string_view name,
              std::span<const core::Field> fields) override {
        names.emplace_back(name);
        std::string text(name);
        for (const core::Field& each : fields) {
            const auto* const value = std::get_if<std::string_view>(&each.value);
            if (value != nullptr) text += " " + std::string(each.key) + "=" + std::string(*value);
        }
        texts.push_back(std::move(text));
    }
    bool wants(core::Level /*level*/) const override { return true; }
    std::size_t count(std::string_view name) const {
        std::size_t count = 0;
        for (const std::string& each : names) count += each == name ? 1 : 0;
        return count;
    }

    // How many begin with these words.
    std::size_t begin_with(std::string_view words) const {
        std::size_t count = 0;
        for (const std::string& each : texts) count += each.starts_with(words) ? 1 : 0;
        return count;
    }

    std::vector<std::string> names;
    std::vector<std::string> texts;
};

// The simulated library of a test, and the table of media: they outlive the machine.
class StageBay final : public LibraryBay {
public:
    explicit StageBay(devices::TapeLibraryImage& image) : image_(image) {}

    // For the next life. The power outlives it.
    void begin_life(devices::Power& power, std::uint64_t seed) {
        power_ = &power;
        seed_ = seed;
        library_ = nullptr;
    }
    // Of the present life; null: it is not open.
    devices::MemoryLibrary* library() { return library_; }
    std::string& media() { return media_; }
    bool refuses_to_write = false;
    std::vector<std::string> technologies;  // Of the drives in turn.

    Task<Result<std::unique_ptr<BayLibrary>>> open_library(core::Reactor* reactor,
                                                           LibraryOptions options) override;
    Task<Result<std::string>> read_media(core::Reactor* reactor) override;
    Task<Result<void>> write_media(core::Reactor* reactor, std::string text) override;

private:
    class Open;

    devices::TapeLibraryImage& image_;
    devices::Power* power_ = nullptr;
    std::uint64_t seed_ = 0;
    devices::MemoryLibrary* library_ = nullptr;
    std::string media_;
};

struct TapeStageOptions {
    std::uint64_t seed = 1;
    std::uint32_t localities = 2;
    std::uint32_t disks = 2;
    std::uint64_t disk_bytes = 32UL << 20;
    bool names = false;  // Objects may have names; each locality knows those of its own.
    std::uint32_t drives = 2;
    std::vector<std::string> technologies = {"lto9"};  // Of the drives in turn.
    std::uint32_t exchange = 2;  // Elements through which people bring and take cartridges.
    std::uint32_t cartridges = 4;
    std::uint64_t cartridge_bytes = 64UL << 20;
    LibraryTiming timing = LibraryTiming::kNone;
    bool labels_blank = true;
    TapePoolOptions pool{.name = "cold", .staging = "fast", .migrate_age = 1h};
    io_sched::IoSchedSettings io{};
};

// Disks, their localities and a tape library in the simulated world, without fops.
class TapeStage : fopd::testing::Replay {
public:
    explicit TapeStage(const TapeStageOptions& options = {});
    ~TapeStage();
    TapeStage(const TapeStage&) = delete;
    TapeStage& operator=(const TapeStage&) = delete;

    void start();
    void stop();
    // The library gives up waiting for drives after so long, and the process ends as it is, with
    // its disks closed. Returns how many drives it has left.
    std::uint64_t stop_within(Duration patience);
    void lose_power();
    void restart() {
        stop();
        start();
    }
    // Another node, with so many new disks and without a table of media, gets the library. The old
    // one stopped, and so ended its sessions, or lost its power.
    enum class End : std::uint8_t { kStopped, kKilled };
    void lose_node(End end, std::uint32_t disks);
    void lose_node() { lose_node(End::kStopped, options.disks); }
    // The object that has a name on a locality. Nothing: none.
    std::optional<store::Fid> find_name(std::string_view name, std::uint32_t locality = 0);
    // REQUIRES: it is there.
    store::Object attributes(store::Fid fid);
    bool exists(store::Fid fid);
    // A part of stop(), which may follow.
    Task<Result<void>> stop_stores(std::uint32_t locality);
    // The power goes at one of the next steps of disks or drives, or after so long a time.
    void lose_power_within(std::uint64_t steps, Duration span);
    void run_for(Duration span) { world.run_for(span); }
    // Before start(): the disk is not there.
    void take_away(std::uint32_t disk) { away_.insert(disk); }
    // The disk is there again, and is opened.
    void bring_back(std::uint32_t disk);

    // -- objects of the pool --

    store::Fid put(const Bytes& bytes, std::uint32_t disk = 0);
    void overwrite(store::Fid fid, const Bytes& bytes);
    void remove(store::Fid fid);
    // Nothing: its bytes are not on the disk. REQUIRES: it is there.
    std::optional<Bytes> read(store::Fid fid);
    // Brings it back first if needed.
    Bytes recalled(store::Fid fid);
    bool is_released(store::Fid fid);
    // By all objects, on all disks.
    std::uint64_t owned_blocks();
    std::vector<store::Copy> copies_of(store::Fid fid);

    Result<void> sync(Duration patience = 10min);
    Result<void> release(store::Fid fid);
    Result<RecallAsked> recall(store::Fid fid, Duration pin = Duration{0});
    RecallEnd wait_for(store::Fid fid, Duration patience = 1h);

    StagingDisks& staging(std::uint32_t locality) { return *localities_[locality]->staging; }
    StagingDisks& staging_of(store::Fid fid);
    objects::HomeVolume& home_volume_of(store::Fid fid);
    store::Volume& volume(std::uint32_t disk) { return *machines_[disk]->volume; }
    devices::MemoryDisk& disk(std::uint32_t number) { return *machines_[number]->disk; }
    TapeLibrary& library() { return *library_; }
    devices::MemoryTape& drive(std::uint32_t index) { return bay.library()->drive(index); }
    core::Reactor& reactor(std::uint32_t locality) { return *localities_[locality]->reactor; }
    // As a reload of the configuration does on the library's locality.
    void use_io(const io_sched::IoSchedSettings& settings);
    // Of the library's locality.
    const io_sched::MainScheduler& io() { return localities_.front()->io; }
    devices::Power& power() { return *power_; }
    // All of `task`, which runs at the object's home.
    template <typename T>
    T at_home(store::Fid fid, Task<T> task);
    template <typename T>
    T at(std::uint32_t locality, Task<T> task);

    TapeStageOptions options;  // lose_node() changes those of disks.
    // In pieces of so many bytes objects go to tape, from the next start on.
    std::uint64_t piece_bytes = options.pool.piece_bytes;
    core::VirtualWorld world;
    core::Random random;
    NamedEvents events;
    // Of the objects that are put next, and their group.
    std::string collection;
    std::string group;
    // Likewise, and the version of the name.
    std::string name;
    std::uint64_t name_version = 0;
    devices::TapeLibraryImage tapes;
    StageBay bay;

private:
    struct Remains {
        explicit Remains(std::uint64_t bytes) : image(bytes) {}
        devices::DiskImage image;
        store::MapImage index;
        bool formatted = false;
    };
    struct Locality {
        Locality(TapeStage& stage, std::uint32_t number);
        std::unique_ptr<core::Reactor> reactor;
        core::BufferPool buffers;
        io_sched::MainScheduler io;
        // A locality knows the names of its own objects only.
        store::MapImage name_image;
        store::MapIndex name_index;
        store::NameShard shard;
        core::Gate names_gate;
        objects::NamePart part;
        objects::Names names;
        std::unique_ptr<objects::Stores> stores;
        std::unique_ptr<StagingDisks> staging;
    };
    struct Machine {
        std::unique_ptr<devices::MemoryDisk> disk;
        std::unique_ptr<store::MapIndex> index;
        std::unique_ptr<store::Volume> volume;
        std::array<std::byte, 16> disk_id{};
    };

    std::uint32_t home_of(std::uint32_t disk) const { return disk % options.localities; }
    std::uint32_t disk_of(store::Fid fid) const { return fid.slot() - 1U; }
    void make_machine(std::uint32_t number);
    std::shared_ptr<objects::StoreLayout> layout() const;
    Task<Result<void>> open(std::uint32_t number);
    Task<Result<void>> change(store::Fid fid, const Bytes* bytes);
    Task<Result<std::optional<Bytes>>> read_all(store::Fid fid);
    Task<std::uint64_t> stop_library(Instant deadline);
    void stop_disks();
    void destroy();

    std::set<std::uint32_t> away_;
    devices::NodeId node_{};
    std::uint8_t disks_made_ = 0x40;
    std::unique_ptr<devices::Power> power_;
    std::vector<std::unique_ptr<Remains>> remains_;
    std::vector<std::unique_ptr<Locality>> localities_;
    std::vector<std::unique_ptr<Machine>> machines_;
    std::unique_ptr<TapeLibrary> library_;
};

// Objects and what they must have.
using Book = std::map<store::Fid, Bytes>;

// Objects of random sizes, on all disks in turn.
Book put_some(TapeStage& stage, std::size_t count, std::size_t size_max = 300'000);
void release_all(TapeStage& stage, const Book& book);
// An object that is on tape only, and a cartridge that has it.
struct OnTape {
    store::Fid fid{};
    Bytes bytes{};
    std::string barcode{};
};
// The bytes depend on the seed.
OnTape put_on_tape(TapeStage& stage, std::uint64_t seed = 1);
// Brings back those that are on tape only.
void check_all(TapeStage& stage, const Book& book);
// The first cartridge in the table that has tape files. REQUIRES: there is one.
std::string written_cartridge(TapeStage& stage);
// REQUIRES: the library knows it.
Cartridge cartridge(TapeStage& stage, std::string_view barcode);
// Starts the node again, with a table of media that says so.
void restart_with_state(TapeStage& stage, std::string_view barcode, CartridgeState state,
                        std::string_view reason);
// REQUIRES: no drive is in use.
void unload_all(TapeStage& stage);
// The address of the storage element that has a cartridge. REQUIRES: one has it.
std::uint32_t address_of(TapeStage& stage, std::string_view barcode);

// Bytes that are like no others.
Bytes pattern(std::size_t size_bytes, std::uint64_t seed);

template <typename T>
T TapeStage::at(std::uint32_t locality, Task<T> task) {
    auto done = world.run(*localities_[locality]->reactor, std::move(task));
    ENSURE(done.has_value());
    return *std::move(done);
}
template <typename T>
T TapeStage::at_home(store::Fid fid, Task<T> task) {
    return at(home_of(disk_of(fid)), std::move(task));
}

}  // namespace fopd::library::testing
