#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "store/log.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/store/simulated_machine.h"
#include "tests/store/text_bytes.h"

// A log on a simulated disk, for tests of one promise of it each.
namespace fopd::store::log_bench {

inline constexpr std::uint32_t kBenchSegmentBlocks = 16;
inline constexpr std::uint32_t kBenchSegments = 12;
inline constexpr std::uint64_t kBenchDiskBytes =
    (Log::kSegmentsBlock + std::uint64_t{kBenchSegments} * kBenchSegmentBlocks) *
    devices::kBlockBytes;

inline LogOptions bench_log() {
    LogOptions options{.segment_blocks = kBenchSegmentBlocks, .entry_blocks_max = 4};
    options.disk_id.fill(std::byte{0x77});
    return options;
}

using testing::bytes_of;

class Segments final : public SegmentSource {
public:
    Result<std::uint32_t> take_segment(SegmentNeed need) override {
        needs.push_back(need);
        if (free.empty()) return std::unexpected(Error{.code = Errc::kNoSpace});
        const std::uint32_t segment = *free.begin();
        free.erase(segment);
        return segment;
    }
    void give_back_segment(std::uint32_t segment) override { free.insert(segment); }

    std::set<std::uint32_t> free{4, 5, 6, 7, 8, 9, 10, 11};
    std::vector<SegmentNeed> needs;  // For each time that the log asked.
};

class Collector final : public ReplayVisitor, public CleanVisitor {
public:
    Task<Result<bool>> data_ok(LogEntry entry) override {
        asked.push_back(entry.seq);
        co_return entry.seq != bad_seq;
    }
    Task<Result<void>> replay(LogEntry entry) override {
        texts.emplace_back(reinterpret_cast<const char*>(entry.payload.data()),
                           entry.payload.size());
        co_return Result<void>{};
    }
    Task<Result<void>> keep(LogEntry entry) override {
        cleaned.push_back(entry.seq);
        co_return Result<void>{};
    }

    std::vector<std::string> texts;
    std::vector<std::uint64_t> asked;
    std::vector<std::uint64_t> cleaned;
    std::uint64_t bad_seq = 0;
};

// A machine with a disk and its log, started as often as a test likes.
class Bench : fopd::testing::Replay {
public:
    explicit Bench(std::uint64_t seed = 1, std::uint64_t disk_bytes = kBenchDiskBytes)
        : Replay(seed), world(seed), image(disk_bytes), options(bench_log()) {
        options.segments_max = 4;
    }
    ~Bench() { stop(); }

    void plug_in() {
        stop();
        machine = std::make_unique<testing::SimulatedMachine>(world);
        disk = machine->plug_in(image, {.slow_holes = true, .faults = faults});
        log = std::make_unique<Log>(reactor(), *disk, segments, options);
        visitor = {};
    }
    // For each operation.
    void disk_takes(Duration delay) {
        disk->faults().delay_min = delay;
        disk->faults().delay_max = delay;
    }
    // The process is gone, with all it had in memory.
    void stop() {
        if (!machine) return;
        machine->drop_coroutines();
        log.reset();
        disk.reset();
        machine.reset();
    }
    core::Reactor& reactor() { return machine->reactor(); }
    devices::Power& power() { return machine->power(); }
    template <typename T>
    T run(Task<T> task) {
        auto result = world.run(reactor(), std::move(task));
        REQUIRE(result.has_value());
        return std::move(*result);
    }
    void format() {
        plug_in();
        REQUIRE(run(log->format({0, 1, 2, 3})).has_value());
        REQUIRE(run(log->close()).has_value());
    }
    Result<Replayed> try_open(ReplayOptions replay = {}) {
        plug_in();
        return run(log->open(&visitor, replay));
    }
    Replayed open(ReplayOptions replay = {}) {
        const auto opened = try_open(replay);
        if (!opened) FAIL(describe(opened.error()));
        return *opened;
    }
    Errc refusal(ReplayOptions replay = {}) {
        const auto opened = try_open(replay);
        REQUIRE(!opened.has_value());
        return opened.error().code;
    }
    void close() { REQUIRE(run(log->close()).has_value()); }

    static Task<Result<void>> commit_task(Log* log, std::string text) {
        auto room = co_await log->reserve(static_cast<std::uint32_t>(text.size()), {});
        if (!room) co_return std::unexpected(room.error());
        Commit commit;
        log->begin(commit, std::move(*room), bytes_of(text), 1, Durability::kDurable, Data::kNone);
        co_return co_await log->durable(commit);
    }
    Result<void> commit(const std::string& text) { return run(commit_task(log.get(), text)); }
    Reservation reserve(std::uint32_t bytes) {
        auto room = run(log->reserve(bytes, {}));
        REQUIRE(room.has_value());
        return std::move(*room);
    }
    std::uint64_t byte_of(std::uint32_t segment, std::uint32_t block) const {
        return (Log::kSegmentsBlock + std::uint64_t{segment} * kBenchSegmentBlocks + block) *
               devices::kBlockBytes;
    }

    core::VirtualWorld world;
    devices::DiskImage image;
    LogOptions options;
    devices::DiskFaults faults;
    Segments segments;
    Collector visitor;
    std::unique_ptr<testing::SimulatedMachine> machine;
    std::unique_ptr<devices::MemoryDisk> disk;
    std::unique_ptr<Log> log;
};

}  // namespace fopd::store::log_bench
