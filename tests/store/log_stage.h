#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/gate.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "core/wait_queue.h"
#include "devices/disk_image.h"
#include "devices/memory_disk.h"
#include "store/aligned_memory.h"
#include "store/log.h"
#include "tests/replay.h"
#include "tests/store/simulated_machine.h"

namespace fopd::store::testing {

// A store in small over a log: objects of one block, written anew in new space each time. It keeps
// every rule a volume has to keep, and knows what may be found after a crash.
//
// The disk: a log of short segments, then the blocks of data.
inline constexpr std::uint32_t kSegmentBlocks = 16;
inline constexpr std::uint32_t kEntryBlocksMax = 4;
inline constexpr std::uint32_t kLogSegments = 16;
inline constexpr std::uint64_t kDataBlock =
    Log::kSegmentsBlock + std::uint64_t{kLogSegments} * kSegmentBlocks;
inline constexpr std::uint64_t kDataBlocks = 48;
inline constexpr std::uint64_t kDiskBytes = (kDataBlock + kDataBlocks) * devices::kBlockBytes;
inline constexpr unsigned kWorkers = 6;
inline const std::string kNothing;  // run() returns it if nothing was violated.
inline constexpr unsigned kObjectsOfWorker = 3;

struct Put {
    std::uint32_t object = 0;
    std::uint64_t version = 0;
    std::uint64_t block = 0;
    std::uint32_t checksum = 0;
};

// A rule that the stage breaks, so that a test can show that the check notices.
enum class Mutation : std::uint8_t {
    kNone,
    kNoFlush,           // The device says that it flushed.
    kMarksUnread,       // Replay sees no marks.
    kEpochsUnread,      // Replay sees the right epoch everywhere.
    kDataUnchecked,     // The visitor takes the data for whole.
    kReuseWhenDurable,  // Freed blocks are used again once the record is durable.
    kCleanForgets,      // Cleaning drops what is alive.
    kCleanLate,         // Cleaning goes by what is durable, not by what was begun.
};

struct Plan {
    std::uint64_t seed = 1;
    Mutation mutation = Mutation::kNone;
    unsigned boots = 3;
    unsigned operations = 40;        // The operations of each worker in each boot.
    std::uint64_t first_cut = 0;     // The step at which the first boot loses power; 0: drawn.
    bool orderly = false;            // The power does not fail.
    std::uint32_t cut_within = 500;  // Boots that draw their step draw one below this.
    devices::DiskFaults faults{};
    std::uint32_t segments_at_first = 4;
    std::uint32_t segments_max = 8;
};

// The state that outlives a crash, and what the test knows of it.
struct Remains {
    explicit Remains(std::uint64_t disk_bytes) : image(disk_bytes) {}

    devices::DiskImage image;
    std::map<std::uint32_t, Put> index;  // Each change is made as a whole or not at all.
    std::uint64_t applied_seq = 0;

    struct Begun {
        std::uint64_t seq = 0;
        std::uint32_t object = 0;
        std::uint64_t version = 0;
    };
    std::vector<Begun> begun;                          // The changes begun since the last recovery.
    std::map<std::uint32_t, std::uint64_t> recovered;  // The versions that the last recovery found.
    // The newest acknowledged version of each object.
    std::map<std::uint32_t, std::uint64_t> acknowledged;
    std::map<std::uint32_t, std::uint64_t> next_version;
    std::uint64_t acknowledged_seq = 0;
    std::string violation;

    // Figures, so that a test can see that it tested something.
    std::uint64_t cleaned = 0;
    std::uint64_t grown = 0;
    std::uint64_t dropped = 0;  // Entries whose data were not whole.
    std::uint64_t recoveries = 0;
};

// One life of the machine: opens the log, compares, works, until the power goes or all is done.
class Machine final : SegmentSource, ReplayVisitor, CleanVisitor {
public:
    Machine(core::VirtualWorld& world, Remains& remains, const Plan& plan, core::Random random);
    ~Machine() override;

    // `cut_at` is the step at which the power fails; 0: never.
    void run(std::uint64_t cut_at, bool rescue);
    std::uint64_t steps() const { return machine_.power().steps(); }
    const std::optional<Error>& open_error() const { return open_error_; }

private:
    class MutatedDisk;
    struct Operation;
    struct Freed {
        std::uint64_t seq;
        std::uint64_t block;
    };

    Result<std::uint32_t> take_segment(SegmentNeed need) override;
    void give_back_segment(std::uint32_t segment) override;
    Task<Result<bool>> data_ok(LogEntry entry) override;
    Task<Result<void>> replay(LogEntry entry) override;
    Task<Result<void>> keep(LogEntry entry) override;

    Task<void> live(bool rescue);
    Task<Result<Replayed>> open(bool rescue);
    Task<void> compare(Replayed replayed);
    Task<void> work(unsigned worker);
    Task<Result<void>> put(unsigned worker);
    Task<Result<std::uint64_t>> allocate();
    void take_freed();
    Task<void> write_data(Operation* operation, std::size_t which);
    Task<void> clean_when_wanted();
    Task<Result<bool>> block_holds(Put put);
    void checkpoint();
    void note_begun(std::uint64_t seq, const std::vector<Put>& puts);
    void violated(std::string what);

    Remains& remains_;
    const Plan plan_;
    core::Random random_;
    SimulatedMachine machine_;
    std::unique_ptr<devices::MemoryDisk> disk_;
    std::unique_ptr<MutatedDisk> mutated_;
    std::unique_ptr<Log> log_;
    core::WaitQueue ended_;
    AlignedMemory scratch_;
    std::optional<Error> open_error_;

    std::map<std::uint32_t, Put> state_;  // All that was begun.
    std::deque<std::pair<std::uint64_t, Put>> unapplied_;
    std::vector<std::uint64_t> free_blocks_;  // The last freed is the first to be used again.
    std::deque<Freed> freed_;
    std::set<std::uint32_t> free_segments_;
    unsigned workers_left_ = 0;
    unsigned writes_left_ = 0;
    core::Gate gate_;
};

// Boots, crashes and compares as planned; empty when every promise was kept.
class Stage : fopd::testing::Replay {
public:
    explicit Stage(const Plan& plan);
    std::string run();
    Remains& remains() { return remains_; }
    std::uint64_t first_steps() const { return first_steps_; }
    // Makes the empty log.
    void format();

    core::VirtualWorld world;

private:
    const Plan plan_;
    Remains remains_;
    std::uint64_t first_steps_ = 0;
};

LogOptions small_log();

}  // namespace fopd::store::testing
