#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/gate.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "store/aligned_memory.h"
#include "store/map_index.h"
#include "store/volume.h"
#include "tests/replay.h"
#include "tests/store/mutant_disk.h"
#include "tests/store/simulated_machine.h"

namespace fopd::store::testing {

inline constexpr std::uint32_t kSegmentBlocks = 64;
inline constexpr std::uint64_t kDiskBytes = 8UL << 20;
inline constexpr std::size_t kBlock = devices::kBlockBytes;
inline constexpr unsigned kWorkers = 4;
inline const std::string kNothing;  // carry_out() returns it if nothing was violated.
inline constexpr unsigned kObjectsOfWorker = 2;
inline constexpr std::uint64_t kBlocksOfObject = 40;
inline constexpr std::uint32_t kBlocksOfWrite = 12;

// A rule that the stage breaks, so that a test can show that the check notices.
enum class Mutation : std::uint8_t {
    kNone,
    kNoFlush,         // The device says that it flushed.
    kIndexForgets,    // The index says that it has what it was told, and has half of it.
    kIndexRunsAhead,  // The index says that it has more than it was told.
    kDiscardsLate,    // Space is given back later than the caller is told.
    kOldIndex,        // A program of a newer version takes the index as it is.
    kZerosLate,       // Zeros are written later than the caller is told.
};

struct Plan {
    std::uint64_t seed = 1;
    Mutation mutation = Mutation::kNone;
    unsigned boots = 3;
    unsigned operations = 25;        // The operations of each worker in each boot.
    std::uint64_t first_cut = 0;     // The step at which the first boot loses power; 0: drawn.
    std::uint32_t cut_within = 900;  // Boots that draw their step draw one below this.
    bool orderly = false;            // The power does not fail.
    bool rescue = false;             // Every start but the first is without an index.
    bool sparse = false;             // The disk gains by zeros.
    bool discard = false;
    bool in_steps = false;  // Two extents are freed at a time, and holes are made anywhere.
    bool upgrade = false;   // Each boot is that of a newer program, when the luck has it.
    bool tape = false;      // Objects are copied to cartridges, released, and brought back.
    devices::DiskFaults faults{};
};

// An object as its owner knows it: each written block has the number of the write that wrote it.
struct ObjectState {
    bool exists = false;
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;  // The version of the content.
    std::uint32_t attribute_changes = 0;
    std::map<std::uint64_t, std::uint64_t> stamps{};

    friend bool operator==(const ObjectState&, const ObjectState&) = default;
};

// A tape file, with blocks of an object.
struct TapeFile {
    Fid fid{};
    BlockRange blocks{};
    std::uint32_t checksum = 0;
    std::map<std::uint64_t, std::uint64_t> stamps{};
};

// A number that is known as far as its last change was acknowledged.
struct MaybeTicket {
    std::optional<std::uint64_t> before{};
    std::optional<std::uint64_t> after{};
};

// The cartridges, copies and recalls that the test knows.
struct TapeBook {
    // By VSN and tape file. Everything written is on the tape, whatever the power does.
    std::map<std::pair<VsnText, std::uint32_t>, TapeFile> files;
    std::uint32_t next_file = 1;
    std::map<CopyKey, Copy> acknowledged;
    // The bytes recorded on all cartridges together, at least and at most.
    std::uint64_t bytes_min = 0;
    std::uint64_t bytes_max = 0;
    std::map<Fid, MaybeTicket> recalls;
    std::uint64_t next_ticket = 1;

    // Figures, so that a test can see that it tested something.
    std::uint64_t releases = 0;
    std::uint64_t returns = 0;
    std::uint64_t abandoned = 0;
    std::uint64_t stale = 0;    // Copies of a content that had changed.
    std::uint64_t refused = 0;  // Changes of released objects, and releases.
    std::uint64_t reads = 0;    // Of released objects, by their copies.
};

// The state that outlives a crash, and what the test knows of it.
struct Remains {
    explicit Remains(std::uint64_t disk_bytes) : image(disk_bytes) {}

    devices::DiskImage image;
    MapImage index;
    bool formatted = false;
    std::uint32_t version = 1;  // The version of the records.
    // The states in which each object may be found: the last state known to be durable, and every
    // later one.
    std::map<Fid, std::deque<ObjectState>> objects;
    std::uint64_t next_fid = 1;
    std::uint64_t next_stamp = 1;
    Findings findings;
    TapeBook tape;

    // Figures, so that a test can see that it tested something.
    std::uint64_t reads = 0;
    std::uint64_t sweeps = 0;            // Sweeps that a power cut has ended.
    std::uint64_t writes_meanwhile = 0;  // Writes during a sweep.
    std::uint64_t checkpoints = 0;
    std::uint64_t recoveries = 0;
    std::uint64_t full = 0;
    std::uint64_t entries = 0;      // Entries that were ever written to the log.
    std::uint64_t log_entries = 0;  // Entries of one block for which the log has room.
    std::uint64_t changed_bytes_max = 0;
    std::uint64_t zeros = 0;     // Blocks.
    std::uint64_t discards = 0;  // Segments.
};

// One life of a machine with a volume.
class Machine {
public:
    Machine(core::VirtualWorld& world, Remains& remains, const Plan& plan, core::Random random);
    ~Machine();

    // `cut_at` is the step at which the power fails; 0: never. `rescue`: starts without an index.
    void run(std::uint64_t cut_at, bool rescue);
    std::uint64_t steps() const { return machine_.power().steps(); }
    const std::optional<Error>& open_error() const { return open_error_; }
    Volume& volume() { return *volume_; }

private:
    class MutatedIndex;

    Task<void> live();
    Task<void> work(unsigned worker);
    Task<Result<void>> write(Fid fid, core::Random* random, AlignedMemory* memory);
    Task<Result<void>> truncate(Fid fid, core::Random* random);
    BlockRange choose_hole(core::Random& random) const;
    void check_net(Fid fid, const Change& change);
    void check_owners();
    Task<Result<void>> replace(Fid* fid);
    Task<Result<void>> commit(Fid fid, Change* change, std::uint32_t bytes, ObjectState state,
                              bool durable);
    void look_at_memory();
    void violate(std::string what) { remains_.findings.add(std::move(what)); }
    void acknowledge(Fid fid, const ObjectState& state);

    // -- comparing; see volume_stage_look.cc --
    Task<void> compare(Fid fid, bool after_recovery);
    Task<std::optional<ObjectState>> look(Fid fid, AlignedMemory* memory);
    AlignedMemory take_memory();

    // -- tapes; see volume_stage_tape.cc --
    bool is_released(Fid fid);
    Task<Result<void>> use_tape(Fid fid, core::Random* random, AlignedMemory* memory);
    Task<Result<void>> change_released(Fid fid, core::Random* random, AlignedMemory* memory);
    Task<Result<void>> migrate(Fid fid, core::Random* random, AlignedMemory* memory);
    Task<Result<void>> release(Fid fid);
    Task<Result<void>> bring_back(Fid fid, core::Random* random, AlignedMemory* memory);
    Task<Result<void>> bring_part(BringingBack* attempt, BlockRange range, AlignedMemory* memory);
    Task<Result<void>> recall(Fid fid, core::Random* random);
    Task<Result<void>> touch(Fid fid);
    Task<Result<void>> drop(Fid fid, core::Random* random);
    Task<Result<void>> empty(Fid fid);
    bool read_copies(Fid fid, ObjectState& found, bool is_released);
    void compare_recall(Fid fid, bool after_recovery);
    void check_cartridges();

    Remains& remains_;
    const Plan& plan_;
    core::Random random_;
    SimulatedMachine machine_;
    std::unique_ptr<devices::Device> whole_disk_;
    std::unique_ptr<MutantDisk> disk_;
    std::unique_ptr<Index> index_;
    std::unique_ptr<Volume> volume_;
    core::NullEventSink events_;
    std::optional<Error> open_error_;
    // Memory of an extent's size for compare(), which is kept because sanitizers make new memory
    // slow.
    std::vector<AlignedMemory> spare_memory_;
};

void put_object(RecordWriter& records, Fid fid, const ObjectState& state, std::uint32_t version,
                bool is_released = false);
// Fills a block of a write, which is like no other.
void fill(std::span<std::byte> block, Fid fid, std::uint64_t number, std::uint64_t stamp);

// A whole plan; what was violated, or nothing.
std::string carry_out(const Plan& plan, Remains& remains);

}  // namespace fopd::store::testing
