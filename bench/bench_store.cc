// Measures a volume on a disk: durable overwrites of 4 KiB and random reads, beside the same with
// bare io_uring on a file of the same kind, and the time of a start.
//
//     bench_store [directory] [objects]
//     bench_store [directory] new
//     bench_store [directory] truncate [extents]
//
// prints a line for each figure; the second, the cost of writes to a part of a file that was never
// written; the third, how long others wait while an object of so many extents is truncated. Files
// of some GiB are made in the directory, or in /var/tmp, and removed.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <liburing.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/measure.h"
#include "core/crc32c.h"
#include "core/offload.h"
#include "core/random.h"
#include "core/reactor.h"
#include "core/uring_backend.h"
#include "devices/disk.h"
#include "store/aligned_memory.h"
#include "store/lmdb_index.h"
#include "store/volume.h"

namespace fopd::store {
namespace {

using bench::fail;
using bench::kClock;

constexpr std::size_t kBlock = devices::kBlockBytes;
constexpr std::uint64_t kDiskBytes = 6UL << 30;
constexpr std::uint64_t kBlocks = (1UL << 30) / kBlock;  // Those that are overwritten and read.
constexpr unsigned kDepth = 32;
constexpr Duration kSpan = 4s;
constexpr unsigned kRounds = 3;
constexpr std::uint64_t kNewDiskBytes = 3UL << 30;
constexpr Duration kNewSpan = 1500ms;

core::NullEventSink events;

template <typename T>
T must(Result<T> result) {
    if (!result) fail(describe(result.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Rate {
    double per_second = 0;
    double cpu_us = 0;
};

Rate measured(const std::function<std::uint64_t()>& run) {
    const Instant start = kClock.now();
    const double cpu = cpu_seconds();
    const std::uint64_t count = run();
    const double seconds = in_seconds(kClock.now() - start);
    return {.per_second = static_cast<double>(count) / seconds,
            .cpu_us = (cpu_seconds() - cpu) * 1e6 / static_cast<double>(count)};
}

void print(const char* what, const std::vector<Rate>& rates) {
    std::vector<double> rate;
    std::vector<double> cpu;
    for (const Rate& each : rates) {
        rate.push_back(each.per_second);
        cpu.push_back(each.cpu_us);
    }
    std::printf("%-46s %10.0f /s %8.2f us of CPU each\n", what, bench::median(rate),
                bench::median(cpu));
    std::fflush(stdout);
}

// -- bare --

class BareFile {
public:
    explicit BareFile(const std::string& path, int flags)
        : fd_(::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC | flags)),
          memory_(must(AlignedMemory::allocate(kDepth * kBlock))) {
        if (fd_ < 0) fail("cannot open " + path);
        if (io_uring_queue_init(2 * kDepth, &ring_, IORING_SETUP_SINGLE_ISSUER) != 0)
            fail("no io_uring");
    }
    ~BareFile() {
        io_uring_queue_exit(&ring_);
        ::close(fd_);
    }
    BareFile(const BareFile&) = delete;
    BareFile& operator=(const BareFile&) = delete;

    // Random blocks, kDepth at a time, for as long as a round takes.
    std::uint64_t run(bool write) {
        core::Random random(5);
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < kDepth; ++i) submit(i, write, random);
        const Instant end = after(kClock.now(), kSpan);
        unsigned running = kDepth;
        while (running > 0) {
            io_uring_submit_and_wait(&ring_, 1);
            io_uring_cqe* cqe = nullptr;
            unsigned head = 0;
            unsigned seen = 0;
            const bool over = kClock.now() > end;
            std::array<std::uint64_t, 2UL * kDepth> done{};
            io_uring_for_each_cqe(&ring_, head, cqe) {
                if (cqe->res != static_cast<int>(kBlock)) fail("bare I/O");
                done[seen++] = cqe->user_data;
            }
            io_uring_cq_advance(&ring_, seen);
            count += seen;
            for (unsigned i = 0; i < seen; ++i) {
                if (over) {
                    --running;
                } else {
                    submit(done[i], write, random);
                }
            }
        }
        return count;
    }

private:
    void submit(std::uint64_t slot, bool write, core::Random& random) {
        io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
        std::byte* const memory = memory_.span().data() + slot * kBlock;
        const std::uint64_t offset = random.below(kBlocks) * kBlock;
        if (write) {
            io_uring_prep_write(sqe, fd_, memory, kBlock, offset);
        } else {
            io_uring_prep_read(sqe, fd_, memory, kBlock, offset);
        }
        sqe->user_data = slot;
    }

    int fd_;
    AlignedMemory memory_;
    io_uring ring_{};
};

// -- a volume --

// A disk, its index and its volume, as a daemon has them.
class Stage {
public:
    struct Options {
        std::uint64_t disk_bytes = kDiskBytes;
        std::uint64_t zeros_ahead_bytes = VolumeOptions{}.zeros_ahead_bytes;
    };
    explicit Stage(std::string directory) : Stage(std::move(directory), Options{}) {}
    Stage(std::string directory, const Options& options)
        : directory_(std::move(directory)), options_(options) {
        reactor_ = std::make_unique<core::Reactor>(must(core::make_uring_backend(kClock, events)));
        offload_ = must(core::make_thread_offload({.name = "bench"}));
    }
    ~Stage() { close(); }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;

    template <typename T>
    T run(Task<Result<T>> task) {
        return must(reactor_->run_until_done(std::move(task)));
    }

    void open(bool fresh) {
        disk_ = std::make_unique<devices::Disk>(
            *reactor_, *offload_, events,
            devices::DiskOptions{.name = "bench",
                                 .path = directory_ + "/volume",
                                 .create_bytes = options_.disk_bytes});
        run(disk_->open());
        const LmdbIndex::World world{.reactor = *reactor_, .offload = *offload_};
        const LmdbIndex::Options options{.path = directory_ + "/index"};
        index_ =
            fresh ? run(LmdbIndex::create(world, options)) : run(LmdbIndex::open(world, options));
        volume_ = std::make_unique<Volume>(
            VolumeParts{.reactor = *reactor_, .device = *disk_, .index = *index_, .events = events},
            VolumeOptions{.zeros_ahead_bytes = options_.zeros_ahead_bytes});
        if (fresh) run(volume_->format());
        run(volume_->open(Volume::Mode::kServe));
    }
    void close() {
        if (volume_ == nullptr) return;
        run(volume_->close());
        volume_.reset();
        index_.reset();
        reactor_->run_until_done(disk_->close());
        disk_.reset();
    }

    core::Reactor& reactor() { return *reactor_; }
    Volume& volume() { return *volume_; }
    devices::Device& disk() { return *disk_; }

private:
    const std::string directory_;
    const Options options_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<core::Offload> offload_;
    std::unique_ptr<devices::Disk> disk_;
    std::unique_ptr<LmdbIndex> index_;
    std::unique_ptr<Volume> volume_;
};

constexpr Fid kFid{.high = 0, .low = 1};

// Overwrites blocks until the time is over, or `left` of them in a row from 0 on.
struct Work {
    core::Random random{3};
    Instant end = kNever;
    std::uint64_t count = 0;
    std::uint64_t next = 0;
    std::uint32_t blocks = 1;  // Of a write.
};

Task<Result<void>> write_block(Stage* stage, Change* change, core::Buffer from,
                               std::uint64_t block) {
    Volume& volume = stage->volume();
    const core::WaitOptions wait{};
    auto reserved = co_await volume.reserve(extent_record_bytes(256), wait);
    if (!reserved) co_return std::unexpected(reserved.error());
    const auto count = static_cast<std::uint32_t>(from.size_bytes / kBlock);
    const auto place = volume.allocate(count);
    if (!place) co_return std::unexpected(place.error());
    if (place->count < count) {
        from.size_bytes = place->count * kBlock;
    }
    std::array<std::uint32_t, kExtentBlocksMax> sums;
    for (std::uint32_t i = 0; i < place->count; ++i) {
        sums[i] = core::crc32c(from.span().subspan(i * kBlock, kBlock));
    }
    change->records.clear();
    change->records.extent(
        kFid,
        {.first = block, .block = place->block, .checksums = std::span(sums).first(place->count)});
    const auto begun =
        volume.begin(*change, std::move(*reserved), Durability::kDurable, Data::kPending);
    if (!begun) co_return begun;
    const auto written = co_await stage->disk().write(from, place->block * kBlock);
    volume.data_done(*change, written);
    const auto finished = co_await volume.finish(change);
    if (!finished) co_return std::unexpected(finished.error());
    co_return Result<void>{};
}

Task<void> overwrite(Stage* stage, Work* work) {
    auto memory = must(AlignedMemory::allocate(work->blocks * kBlock));
    std::ranges::fill(memory.span(), std::byte{0x5a});
    Change change;
    while (kClock.now() < work->end) {
        const std::uint64_t block = work->random.below(kBlocks / work->blocks) * work->blocks;
        const auto written = co_await write_block(stage, &change, memory.buffer(), block);
        must(written);
        ++work->count;
    }
}

Task<void> fill(Stage* stage, Work* work) {
    auto memory = must(AlignedMemory::allocate(256 * kBlock));
    Change change;
    while (work->next < kBlocks) {
        const std::uint64_t block = work->next;
        work->next += 256;
        const auto written = co_await write_block(stage, &change, memory.buffer(), block);
        must(written);
    }
}

Task<void> read(Stage* stage, Work* work) {
    auto memory = must(AlignedMemory::allocate(kBlock));
    while (kClock.now() < work->end) {
        const std::uint64_t block = work->random.below(kBlocks);
        Reading reading;
        stage->volume().begin_read(reading);
        auto extents = stage->volume().map().extents(kFid, {.first = block, .count = 1});
        const auto extent = must(extents.next());
        if (!extent) fail("a hole");
        const std::uint32_t sum = extent->checksums[0];
        const std::uint64_t place = extent->block;
        const core::WaitOptions wait{};
        const auto done = co_await stage->disk().read(memory.buffer(), place * kBlock, wait);
        must(done);
        if (core::crc32c(memory.span()) != sum) fail("wrong bytes");
        ++work->count;
    }
}

Task<void> each(Stage* stage, Task<void> (*what)(Stage*, Work*), Work* work) {
    core::Gate gate;
    for (unsigned i = 0; i < kDepth; ++i) stage->reactor().spawn(gate, what(stage, work));
    co_await gate.close(stage->reactor());
}

Rate round(Stage& stage, Task<void> (*what)(Stage*, Work*), unsigned seed) {
    return measured([&] {
        Work work{.random = core::Random(seed), .end = after(kClock.now(), kSpan)};
        stage.reactor().run_until_done(each(&stage, what, &work));
        return work.count;
    });
}

// A change without data, until it is durable.
Task<Result<void>> commit(Volume* volume, Change* change, Reservation reserved) {
    const auto begun =
        volume->begin(*change, std::move(reserved), Durability::kDurable, Data::kNone);
    if (!begun) co_return begun;
    const auto finished = co_await volume->finish(change);
    if (!finished) co_return std::unexpected(finished.error());
    co_return Result<void>{};
}

Task<Result<void>> make_objects(Stage* stage, std::uint64_t count) {
    Volume& volume = stage->volume();
    Change change;
    const core::WaitOptions wait{};
    for (std::uint64_t done = 0; done < count;) {
        change.records.clear();
        for (unsigned i = 0; i < 200 && done < count; ++i, ++done) {
            const Fid fid{.high = 0, .low = 1000 + done};
            const std::string name = "directory/of/objects/number-" + std::to_string(done);
            ValueBuffer value;
            change.records.put(
                Key::object(fid),
                write_object(value, {.owner = "alice", .group = "users", .name = name}));
        }
        auto reserved = co_await volume.reserve(
            static_cast<std::uint32_t>(change.records.bytes().size()), wait);
        if (!reserved) co_return std::unexpected(reserved.error());
        const auto committed = co_await commit(&volume, &change, std::move(*reserved));
        if (!committed) co_return committed;
    }
    co_return Result<void>{};
}

void zero(const std::string& path, std::uint64_t bytes) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    auto memory = must(AlignedMemory::allocate(1UL << 20));
    std::ranges::fill(memory.span(), std::byte{0});
    for (std::uint64_t at = 0; at < bytes; at += memory.span().size()) {
        if (::pwrite(fd, memory.span().data(), memory.span().size(), static_cast<off_t>(at)) < 0)
            fail("cannot write " + path);
    }
    if (::fsync(fd) != 0) fail("fsync");
    ::close(fd);
}

void run(const std::string& directory, std::uint64_t objects) {
    std::printf("%s, Linux %s\n\n", bench::cpu_model().c_str(), bench::kernel_release().c_str());
    zero(directory + "/bare", kBlocks * kBlock);
    zero(directory + "/volume", kDiskBytes);
    Stage stage(directory);
    stage.open(true);
    Work filling;
    stage.reactor().run_until_done(each(&stage, fill, &filling));

    std::vector<Rate> bare_writes;
    std::vector<Rate> bare_reads;
    std::vector<Rate> writes;
    std::vector<Rate> reads;
    std::uint64_t entries = stage.volume().newest().seq;
    for (unsigned i = 0; i < kRounds; ++i) {
        bare_writes.push_back(
            measured([&] { return BareFile(directory + "/bare", O_DSYNC).run(true); }));
        writes.push_back(round(stage, overwrite, 10 + i));
        bare_reads.push_back(measured([&] { return BareFile(directory + "/bare", 0).run(false); }));
        reads.push_back(round(stage, read, 20 + i));
    }
    print("4 KiB written with O_DSYNC, bare", bare_writes);
    print("4 KiB overwritten durably, volume", writes);
    entries = stage.volume().newest().seq - entries;
    std::printf("%46s %10.0f entries of the log /s\n", "",
                static_cast<double>(entries) / in_seconds(kSpan) / kRounds);
    print("4 KiB read, bare", bare_reads);
    print("4 KiB read, volume", reads);

    stage.run(make_objects(&stage, objects));
    stage.close();
    const Instant start = kClock.now();
    stage.open(false);
    std::printf("start with %lu objects: %.2f s\n", objects, in_seconds(kClock.now() - start));
}

// -- where nothing was written --

enum class File : std::uint8_t { kZeroed, kSparse, kSparseNoZeros };

Rate write_new(const std::string& directory, File file, std::uint32_t blocks) {
    const std::string path = directory + "/volume";
    if (file == File::kZeroed) zero(path, kNewDiskBytes);
    Rate rate;
    {
        Stage stage(directory, {.disk_bytes = kNewDiskBytes,
                                .zeros_ahead_bytes =
                                    file == File::kSparse ? VolumeOptions{}.zeros_ahead_bytes : 0});
        stage.open(true);
        rate = measured([&] {
            Work work{.end = after(kClock.now(), kNewSpan), .blocks = blocks};
            stage.reactor().run_until_done(each(&stage, overwrite, &work));
            return work.count;
        });
    }
    std::filesystem::remove(path);
    std::filesystem::remove_all(directory + "/index");
    return rate;
}

void run_new(const std::string& directory) {
    struct Row {
        const char* what;
        File file;
    };
    constexpr std::array kRows{Row{"to a file that was zeroed", File::kZeroed},
                               Row{"to a new file, zeros ahead", File::kSparse},
                               Row{"to a new file", File::kSparseNoZeros}};
    for (const std::uint32_t blocks : {1U, 4U, 16U, 256U}) {
        std::array<std::vector<Rate>, kRows.size()> rates;
        for (unsigned i = 0; i < kRounds; ++i) {
            for (std::size_t row = 0; row < kRows.size(); ++row) {
                rates[row].push_back(write_new(directory, kRows[row].file, blocks));
            }
        }
        for (std::size_t row = 0; row < kRows.size(); ++row) {
            const std::string what = std::to_string(4 * blocks) + " KiB " + kRows[row].what;
            print(what.c_str(), rates[row]);
        }
    }
}

// -- an object of many extents is truncated --

// Blocks of an object that lie together neither in it nor on the disk.
Task<Result<void>> scatter(Stage* stage, Fid fid, std::uint64_t count) {
    constexpr std::uint64_t kAtOnce = 4096;
    Volume& volume = stage->volume();
    const core::WaitOptions wait{};
    const std::uint32_t checksum = 0;
    Change change;
    for (std::uint64_t done = 0; done < count;) {
        auto reserved = co_await volume.reserve(extent_record_bytes(1) * kAtOnce, wait);
        if (!reserved) co_return std::unexpected(reserved.error());
        change.records.clear();
        const std::uint64_t end = std::min(count, done + kAtOnce);
        while (done < end) {
            const auto place = volume.allocate(
                static_cast<std::uint32_t>(std::min<std::uint64_t>(end - done, kExtentBlocksMax)));
            if (!place) co_return std::unexpected(place.error());
            for (std::uint32_t i = 0; i < place->count; ++i, ++done) {
                change.records.extent(fid, {.first = 2 * done,
                                            .block = place->block + i,
                                            .checksums = std::span(&checksum, 1)});
            }
        }
        const auto committed = co_await commit(&volume, &change, std::move(*reserved));
        if (!committed) co_return committed;
    }
    co_return Result<void>{};
}

Task<Result<void>> truncate(Stage* stage, Fid fid) {
    Volume& volume = stage->volume();
    const core::WaitOptions wait{};
    Change change;
    const BlockRange all{.first = 0, .count = kObjectBlocksMax};
    const auto punched = co_await volume.punch(&change, fid, all, wait);
    if (!punched) co_return std::unexpected(punched.error());
    auto reserved = co_await volume.reserve(kPunchRecordBytes, wait);
    if (!reserved) co_return std::unexpected(reserved.error());
    co_return co_await commit(&volume, &change, std::move(*reserved));
}

// The longest waits meanwhile: of a task for its turn of the reactor, and of a write.
struct Bystanders {
    bool to_end = false;
    Duration turn{0};
    Duration write{0};
    std::uint64_t changed_bytes = 0;
};

Task<void> want_turns(Stage* stage, Bystanders* seen) {
    while (!seen->to_end) {
        const Instant start = kClock.now();
        co_await stage->reactor().yield();
        seen->turn = std::max(seen->turn, kClock.now() - start);
        seen->changed_bytes = std::max(seen->changed_bytes, stage->volume().changed_bytes());
    }
}

Task<void> write_now_and_then(Stage* stage, Bystanders* seen) {
    auto memory = must(AlignedMemory::allocate(kBlock));
    Change change;
    while (!seen->to_end) {
        const Instant start = kClock.now();
        const auto written = co_await write_block(stage, &change, memory.buffer(), 0);
        must(written);
        seen->write = std::max(seen->write, kClock.now() - start);
        const auto slept = co_await stage->reactor().sleep_for(1ms, nullptr);
        must(slept);
    }
}

struct Truncation {
    Duration answered{0};
    Duration freed{0};
};

Task<void> truncate_beside(Stage* stage, Fid fid, std::uint64_t used_before, Truncation* took,
                           Bystanders* seen) {
    core::Gate gate;
    stage->reactor().spawn(gate, want_turns(stage, seen));
    stage->reactor().spawn(gate, write_now_and_then(stage, seen));
    const Instant start = kClock.now();
    const auto truncated = co_await truncate(stage, fid);
    must(truncated);
    took->answered = kClock.now() - start;
    while (stage->volume().space_use().used_blocks > used_before + 64) {
        co_await stage->reactor().yield();
    }
    took->freed = kClock.now() - start;
    seen->to_end = true;
    co_await gate.close(stage->reactor());
}

void run_truncate(const std::string& directory, std::uint64_t extents) {
    Stage stage(directory, {.disk_bytes = 16UL << 30, .zeros_ahead_bytes = 0});
    stage.open(true);
    const Fid fid{.high = 0, .low = 2};
    const std::uint64_t used_before = stage.volume().space_use().used_blocks;
    stage.run(scatter(&stage, fid, extents));
    stage.close();
    stage.open(false);
    Truncation took;
    Bystanders seen;
    stage.reactor().run_until_done(truncate_beside(&stage, fid, used_before, &took, &seen));
    const auto ms = [](Duration time) { return in_seconds(time) * 1e3; };
    std::printf("%8lu extents: truncated in %.1f ms, freed in %.1f ms\n", extents,
                ms(took.answered), ms(took.freed));
    std::printf(
        "%18s longest wait for a turn %.2f ms, for a durable write %.1f ms; %.1f MiB of changes\n",
        "", ms(seen.turn), ms(seen.write),
        static_cast<double>(seen.changed_bytes) / static_cast<double>(1UL << 20));
    std::fflush(stdout);
}

}  // namespace
}  // namespace fopd::store

int main(int argc, char* argv[]) {
    std::string directory = argc > 1 ? argv[1] : "/var/tmp";
    const bool only_new = argc > 2 && std::string_view(argv[2]) == "new";
    const bool only_truncate = argc > 2 && std::string_view(argv[2]) == "truncate";
    const std::uint64_t objects = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000;
    directory += "/bench_store." + std::to_string(getpid());
    std::filesystem::create_directories(directory);
    if (only_truncate) {
        fopd::store::run_truncate(directory,
                                  argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1'000'000);
    } else if (only_new) {
        fopd::store::run_new(directory);
    } else {
        fopd::store::run(directory, objects);
    }
    std::filesystem::remove_all(directory);
}
