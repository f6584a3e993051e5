#pragma once

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

#include "core/cancel.h"
#include "core/gate.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "objects/name_router.h"
#include "store/map_index.h"
#include "store/names.h"
#include "store/volume.h"
#include "tests/replay.h"
#include "tests/store/simulated_machine.h"

namespace fopd::store::names_testing {

inline constexpr unsigned kDisks = 2;
inline constexpr unsigned kParts = 2;
inline constexpr unsigned kWorkers = 4;
inline constexpr std::uint32_t kPool = 7;
inline constexpr std::uint64_t kDiskBytes = 8UL << 20;

// A rule that the stage breaks, so that a test can show that the check notices.
enum class Mutation : std::uint8_t {
    kNone,
    kNotKept,     // A checkpoint does not see to it that the names are kept.
    kToldEarly,   // Names are told before the log has them durably.
    kLeftAtOnce,  // A name is given up while others claim it.
};

struct Plan {
    std::uint64_t seed = 1;
    Mutation mutation = Mutation::kNone;
    unsigned boots = 4;
    unsigned operations = 25;        // The operations of each worker in each boot.
    unsigned name_count = 6;         // Few, so that the workers want the same names.
    std::uint64_t first_cut = 0;     // The step at which the first boot loses power; 0: drawn.
    std::uint32_t cut_within = 900;  // Boots that draw their step draw one below this.
    bool orderly = false;            // The power does not fail, and nothing is lost.
    std::size_t overlay_bytes = 512UL << 10;  // The overlay of a volume.
};

using Owner = std::optional<Fid>;

// The state that outlives a crash, and what the test knows of it.
struct Remains {
    struct DiskRemains {
        devices::DiskImage image{kDiskBytes};
        MapImage index;
        bool formatted = false;
    };
    std::array<DiskRemains, kDisks> disks;
    std::array<MapImage, kParts> names;
    // With Mutation::kNotKept: the entry up to which a volume says that the names know its changes.
    std::map<devices::DiskId, std::uint64_t> said_to_know;

    // The owners that each name may be found to have: the last one known to be durable, and every
    // later one.
    std::map<std::string, std::deque<Owner>> owners;
    struct Renaming {
        Fid fid;
        std::string from;
        std::string to;
    };
    std::map<std::uint64_t, Renaming> renamings;  // The renamings that have begun and not ended.
    std::uint64_t next_renaming = 0;
    std::uint64_t next_fid = 1;
    testing::Findings findings;
    bool first_was_cut = false;  // The power failed in the first boot.

    // Figures, so that a test can see that it tested something.
    std::uint64_t recoveries = 0;
    std::uint64_t created = 0;
    std::uint64_t refused = 0;
    std::uint64_t renamed = 0;
    std::uint64_t removed = 0;
    std::uint64_t swept = 0;
    std::uint64_t found_after_crash = 0;
};

enum class Existing : std::uint8_t { kReplaced, kRefused };

// One life of a node with a few disks.
class Node {
public:
    Node(core::VirtualWorld& world, Remains& remains, const Plan& plan, core::Random random);
    ~Node();

    // `cut_at` is the step at which the power fails; 0: never.
    void run(std::uint64_t cut_at);
    bool was_cut() const { return !machine_.power().on(); }

    // -- for tests of single things --

    // Opens these disks, without those that are missing, and begins to sweep.
    Task<void> start(std::vector<unsigned> disks);
    Task<void> stop();
    template <typename T>
    T finish(Task<T> task) {
        auto result = world_.run(machine_.reactor(), std::move(task));
        ENSURE(result.has_value());
        return std::move(*result);
    }
    void finish(Task<void> task) { ENSURE(world_.run(machine_.reactor(), std::move(task))); }

    core::Reactor& reactor() { return machine_.reactor(); }
    NameShard& part_of(std::string_view name);
    Volume& volume(unsigned disk) { return *disks_[disk].volume; }

    // The object made, or none when there was one and it stays.
    Task<Result<std::optional<Fid>>> create(std::string name, Existing existing, unsigned disk);
    Task<Result<void>> remove(std::string name, Duration patience);
    Task<Result<void>> rename(std::string from, std::string to);
    // Waits until all replaced objects are removed.
    Task<void> settle();
    // All claims: those that the parts know, and those that the objects of the volumes make.
    Task<std::vector<NameClaim>> known_claims();
    Task<std::vector<NameClaim>> made_claims();

private:
    class MutatedSink;
    struct DiskParts {
        std::unique_ptr<devices::Device> device;
        std::unique_ptr<MapIndex> index;
        std::unique_ptr<Volume> volume;
        bool open = false;
    };

    Task<void> live();
    Task<void> work();
    Task<Result<void>> touch(std::string name);
    Task<Result<void>> put(Fid fid, const Object* object);
    Task<Result<void>> take_away(Fid fid);
    Task<Result<void>> commit(Fid fid, Change* change, std::uint32_t bytes);
    Task<Result<void>> commit(Fid fid, Change* change, Reservation reservation,
                              Durability durability);
    Task<void> sweep();
    Task<Result<void>> sweep_all();
    Task<Result<void>> sweep_one(NameClaim claim);
    Task<void> compare();
    Result<ReservedName> as_reserved(Result<ReservedName> hold, const std::string& name);
    void acknowledge(const std::string& name, Owner owner);
    void violate(std::string what) { remains_.findings.add(std::move(what)); }
    Volume& volume_of(Fid fid) { return *disks_[fid.slot()].volume; }
    bool serving();

    core::VirtualWorld& world_;
    Remains& remains_;
    const Plan& plan_;
    core::Random random_;
    testing::SimulatedMachine machine_;
    core::NullEventSink events_;
    std::array<std::unique_ptr<MapIndex>, kParts> name_indexes_;
    std::array<std::unique_ptr<NameShard>, kParts> parts_;
    std::unique_ptr<objects::NameRouter> router_;
    std::unique_ptr<NameSink> sink_;
    std::array<DiskParts, kDisks> disks_;
    core::CancelSource stop_;
    core::Gate sweepers_;
};

// A whole plan; what was violated, or nothing.
std::string carry_out(const Plan& plan, Remains& remains);

}  // namespace fopd::store::names_testing
