// Compares the algorithms for tape drives in virtual time: the real schedulers and the main
// scheduler, with drives that take as long as their model says. The experiments have the names of
// docs/performance.md.
//
// And in real time: planning the order of 2000 files, a request's way through grouped_read while
// 100 000 wait, and reads of a disk while 10 000 wait for cartridges.
//
// The file is long because it has a function for each experiment, and all use the same drives.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <malloc.h>

#include "bench/drives_by_time.h"
#include "bench/measure.h"
#include "bench/model_drive.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "devices/tape/drive_timing.h"
#include "io_sched/fair_share.h"
#include "io_sched/main_scheduler.h"
#include "io_sched/settings.h"

namespace fopd::io_sched {
namespace {

using bench::fail;
using bench::kClock;
using devices::DriveModel;

constexpr std::uint64_t kGB = 1'000'000'000;

const DriveModel& lto9() {
    return *devices::find_drive_model("lto9");
}

template <typename Row>
const Row* named(std::span<const Row> rows, std::string_view name) {
    const auto row = std::ranges::find(rows, name, &Row::name);
    if (row == rows.end()) fail("no such algorithm");
    return &*row;
}

TapeSettings with_reads(std::string_view algorithm, ReadOrder order = ReadOrder::kAuto) {
    TapeSettings settings;
    settings.read_algo = named(drive_algorithms(), algorithm);
    settings.write_algo = named(drive_algorithms(), "grouped_write");
    settings.grouped_read_order = order;
    return settings;
}

// A read or write of one cartridge, which knows how long it took.
struct TapeRequest final : IoRequest {
    TapeRequest() : IoRequest(&on_complete) {
        family = IoFamily::kTape;
        parts = std::span(&part, 1);
    }
    static void on_complete(IoRequest& request) {
        auto& self = static_cast<TapeRequest&>(request);
        if (!self.result) fail("a request failed: " + describe(self.result.error()));
        self.took = self.reactor->now() - self.arrived_at();
        ++*self.completed;
    }

    IoPart part;
    core::Reactor* reactor = nullptr;
    std::uint64_t* completed = nullptr;
    Duration took{0};
};

// A disk that keeps the processor busy for as long as a read of a fast one takes.
class BusyDisk final : public IoExecutor {
public:
    Task<Result<void>> execute(const IoRequest& /*request*/, const IoPart& /*part*/) override {
        const Instant until = kClock.now() + 50us;
        while (kClock.now() < until) {
        }
        return done();
    }
    Task<Result<void>> execute_joined(std::span<const IoShare> /*writes*/) override {
        co_return std::unexpected(Error{.code = Errc::kUnsupported, .context = "a disk"});
    }

private:
    static Task<Result<void>> done() { co_return Result<void>{}; }
};

// A read of a disk that is pushed again and again.
struct DiskRead final : IoRequest {
    explicit DiskRead(MediumId disk)
        : IoRequest([](IoRequest& request) { static_cast<DiskRead&>(request).is_done = true; }) {
        part = {.medium = disk, .size_bytes = 4096};
        parts = std::span(&part, 1);
    }
    IoPart part;
    bool is_done = false;
};

// Drives with cartridges in virtual time.
class Library {
public:
    Library(std::uint8_t drives, std::uint32_t cartridges, const TapeSettings& tape)
        : world_(1), reactor_(world_.make_reactor()), main_(*reactor_, {.tape = tape}) {
        for (std::uint32_t id = 0; id < cartridges; ++id) {
            main_.put_medium({.id = MediumId{id},
                              .technology = "lto9",
                              .capacity_bytes = lto9().capacity_bytes,
                              .free_bytes = lto9().capacity_bytes});
        }
        for (std::uint8_t number = 1; number <= drives; ++number) {
            auto added =
                main_.add_drive({.number = number, .technology = "lto9"},
                                std::make_unique<bench::ModelDrive>(*reactor_, lto9(), figures_));
            if (!added) fail(describe(added.error()));
            drives_.push_back(*added);
        }
    }
    ~Library() { reactor_->drop_coroutines(); }

    TapeRequest& push(IoType type, MediumId medium, std::uint64_t offset, std::uint64_t bytes) {
        TapeRequest& request = requests_.emplace_back();
        request.type = type;
        request.part = {.medium = medium, .offset = offset, .size_bytes = bytes};
        request.reactor = reactor_.get();
        request.completed = &completed_;
        world_.run(*reactor_, push_in_turn(&request));
        return request;
    }
    void run_for(Duration span) { world_.run_for(span); }
    // Until all is done. How long that took, in seconds.
    double finish() {
        while (completed_ < requests_.size()) {
            if (!world_.step()) fail("requests wait for ever");
        }
        return in_seconds(world_.now() - Instant{});
    }
    double p95_s() {
        std::vector<double> took;
        for (const TapeRequest& each : requests_) took.push_back(in_seconds(each.took));
        std::ranges::sort(took);
        return took[took.size() * 95 / 100];
    }
    void add_disk() {
        const auto added = main_.add_device(kDisk, std::make_unique<BusyDisk>(), false);
        if (!added) fail(describe(added.error()));
    }
    // The 99th percentile of so many reads of the disk, one after the other, in real time.
    double disk_p99_us(std::size_t reads) {
        std::vector<double> took;
        for (std::size_t i = 0; i < reads; ++i) {
            DiskRead read(kDisk);
            const Instant began = kClock.now();
            world_.run(*reactor_, push_in_turn(&read));
            while (!read.is_done) {
                if (!world_.step()) fail("a read of the disk waits for ever");
            }
            took.push_back(in_seconds(kClock.now() - began) * 1e6);
        }
        std::ranges::sort(took);
        return took[took.size() * 99 / 100];
    }
    Instant now() const { return world_.now(); }
    const bench::DriveFigures& figures() const { return figures_; }
    const std::vector<IoDevice*>& drives() const { return drives_; }
    MainScheduler& main() { return main_; }

private:
    static constexpr MediumId kDisk{1'000'000};  // No cartridge has this number.

    Task<void> push_in_turn(IoRequest* request) {
        main_.push(*request);
        co_return;
    }

    core::VirtualWorld world_;
    std::unique_ptr<core::Reactor> reactor_;
    bench::DriveFigures figures_;
    std::uint64_t completed_ = 0;
    std::deque<TapeRequest> requests_;
    MainScheduler main_;
    std::vector<IoDevice*> drives_;
};

class Report {
public:
    explicit Report(bool as_json) : as_json_(as_json) {}

    void number(const std::string& name, double value) {
        if (!as_json_) std::printf("%-36s %12.3f\n", name.c_str(), value);
        add(name, std::to_string(value));
    }
    void count(const std::string& name, std::uint64_t value) {
        if (!as_json_)
            std::printf("%-36s %8llu\n", name.c_str(), static_cast<unsigned long long>(value));
        add(name, std::to_string(value));
    }
    void by_number(const std::string& name,
                   const std::vector<std::pair<std::size_t, double>>& values) {
        std::string object;
        for (const auto& [n, value] : values) {
            if (!as_json_) std::printf("%-28s %7zu %12.3f\n", name.c_str(), n, value);
            object += (object.empty() ? "" : ",") + bench::quoted(std::to_string(n)) + ":" +
                      std::to_string(value);
        }
        add(name, "{" + object + "}");
    }
    void print() const {
        if (as_json_) std::printf("{%s}\n", json_.c_str());
    }

private:
    void add(const std::string& name, const std::string& value) {
        json_ += (json_.empty() ? "" : ",") + bench::quoted(name) + ":" + value;
    }

    const bool as_json_;
    std::string json_;
};

// E1: 200 files of 1 GB, interleaved over 10 cartridges, with two drives.
void mounts(Report& report) {
    const auto run = [](const TapeSettings& settings) {
        Library library(2, 10, settings);
        core::Random random(1);
        for (std::uint32_t i = 0; i < 200; ++i) {
            const std::uint64_t offset = random.below(lto9().capacity_bytes - kGB);
            library.push(IoType::kRead, MediumId{i % 10}, offset, kGB);
        }
        const double seconds = library.finish();
        return std::pair(library.figures().mounts, seconds);
    };
    const auto [fifo_mounts, fifo_s] = run(with_reads("fifo"));
    const auto [arrival_mounts, arrival_s] = run(with_reads("grouped_read", ReadOrder::kArrival));
    const auto [linear_mounts, linear_s] = run(with_reads("grouped_read", ReadOrder::kLinear));
    const auto [grouped_mounts, grouped_s] = run(with_reads("grouped_read"));
    report.count("fifo_mounts", fifo_mounts);
    report.count("grouped_mounts", grouped_mounts);
    report.number("fifo_s", fifo_s);
    report.number("grouped_s", grouped_s);
    report.number("grouped_arrival_s", arrival_s);
    report.number("grouped_linear_s", linear_s);
}

// E2: the mean time of a locate, files of 200 MB uniformly on a full cartridge.
void locates(Report& report) {
    constexpr std::uint64_t kFile = 200'000'000;
    constexpr std::array kOrders{ReadOrder::kArrival, ReadOrder::kLinear, ReadOrder::kScan,
                                 ReadOrder::kSltf, ReadOrder::kAuto};
    for (const ReadOrder order : kOrders) {
        std::vector<std::pair<std::size_t, double>> means;
        for (const std::size_t count : {4U, 16U, 32U, 128U, 512U, 2000U}) {
            core::Random random(count);
            const int sets = count < 128 ? 50 : 5;
            double sum = 0;
            for (int set = 0; set < sets; ++set) {
                std::vector<TapeStretch> files;
                for (std::size_t i = 0; i < count; ++i) {
                    const std::uint64_t byte = random.below(lto9().capacity_bytes - kFile);
                    files.push_back(
                        stretch_from(lto9(), devices::position_of_byte(lto9(), byte), kFile));
                }
                const devices::PhysicalPosition start = devices::beginning_of(lto9());
                const auto plan = plan_reads(lto9(), start, files, order);
                sum += in_seconds(locate_total(lto9(), start, files, plan));
            }
            means.emplace_back(count, sum / (static_cast<double>(count) * sets));
        }
        const std::string_view name = kReadOrderNames[static_cast<std::size_t>(order)];
        report.by_number("locate_" + std::string(name) + "_s", means);
    }
}

void planning(Report& report) {
    constexpr std::uint64_t kFile = 200'000'000;
    core::Random random(1);
    std::vector<TapeStretch> files;
    for (std::size_t i = 0; i < 2000; ++i) {
        const std::uint64_t byte = random.below(lto9().capacity_bytes - kFile);
        files.push_back(stretch_from(lto9(), devices::position_of_byte(lto9(), byte), kFile));
    }
    std::vector<double> ms;
    for (int i = 0; i < 7; ++i) {
        const Instant began = kClock.now();
        if (plan_reads(lto9(), devices::beginning_of(lto9()), files, ReadOrder::kAuto).size() !=
            files.size()) {
            fail("a file is missing");
        }
        ms.push_back(in_seconds(kClock.now() - began) * 1e3);
    }
    report.number("plan_2000_ms", bench::median(ms));
}

// E3: the rate at which files are written if each is made durable by itself, and if batches are.
void filemarks(Report& report) {
    constexpr std::uint64_t kMB = 1'000'000;
    constexpr std::uint64_t kAll = 40 * kGB;
    struct Batch {
        std::uint64_t files;
        std::uint64_t bytes;
    };
    const auto rate = [](std::uint64_t file_bytes, Batch batch) {
        devices::DriveTiming drive(lto9().technology);
        const Instant began = drive.load(Instant{}, lto9());
        Instant now = began;
        const std::uint64_t count = std::clamp<std::uint64_t>(kAll / file_bytes, 4, 2000);
        std::uint64_t files = 0;
        std::uint64_t bytes = 0;
        for (std::uint64_t i = 1; i <= count; ++i) {
            for (std::uint64_t written = 0; written < file_bytes; written += kMB) {
                now = drive.write(now, kMB);
            }
            ++files;
            bytes += file_bytes;
            if (files < batch.files && bytes < batch.bytes && i < count) continue;
            now = drive.flush(now);
            files = 0;
            bytes = 0;
        }
        return static_cast<double>(count * file_bytes) / 1e6 / in_seconds(now - began);
    };
    std::vector<std::pair<std::size_t, double>> each;
    std::vector<std::pair<std::size_t, double>> batches;
    for (const std::uint64_t megabytes : {1UL, 10UL, 100UL, 1000UL, 10'000UL}) {
        each.emplace_back(megabytes, rate(megabytes * kMB, {.files = 1, .bytes = 1}));
        batches.emplace_back(megabytes, rate(megabytes * kMB, {.files = 200, .bytes = 32 * kGB}));
    }
    report.by_number("written_each_mb_s_by_file_mb", each);
    report.by_number("written_batches_mb_s_by_file_mb", batches);
}

// E4: 40 reads an hour, of 60 cartridges, with two drives: how long to wait for more of a
// cartridge.
void mount_criteria(Report& report) {
    std::vector<std::pair<std::size_t, double>> mounts_per_hour;
    std::vector<std::pair<std::size_t, double>> p95;
    for (const int minutes : {0, 10, 30, 120}) {
        TapeSettings settings = with_reads("grouped_read");
        settings.grouped_read_mount_age = minutes * 1min;
        settings.grouped_read_max_wait = 12h;
        Library library(2, 60, settings);
        core::Random random(7);
        constexpr int kReads = 4000;
        for (int i = 0; i < kReads; ++i) {
            const auto medium = static_cast<std::uint32_t>(random.below(60));
            library.push(IoType::kRead, MediumId{medium},
                         random.below(lto9().capacity_bytes - 2 * kGB), 2 * kGB);
            library.run_for(Duration(static_cast<std::int64_t>(random.below(180'000'000'000))));
        }
        const double hours = library.finish() / 3600;
        const auto n = static_cast<std::size_t>(minutes);
        mounts_per_hour.emplace_back(n, static_cast<double>(library.figures().mounts) / hours);
        p95.emplace_back(n, library.p95_s());
    }
    report.by_number("mounts_per_hour_by_mount_age_min", mounts_per_hour);
    report.by_number("read_p95_s_by_mount_age_min", p95);
}

// How ten drives were used, while what waits shifted every half hour.
struct Shares {
    double error = 0;  // The largest difference of a type's share of drive time from the ideal.
    double moves_per_hour = 0;
    double used = 0;  // The part of all drive time.
    // By reads, by writes, and by reads ideally.
    std::array<bench::DrivesByTime, 3> by_time{};
};

// Which types have work in a phase.
using Work = std::array<bool, kIoTypeCount> (*)(int phase);

// Reads always go on; writes come and go.
std::array<bool, kIoTypeCount> reads_and_writes(int phase) {
    return {true, phase % 2 == 1, false};
}
std::array<bool, kIoTypeCount> all_types(int phase) {
    return {true, phase % 2 == 1, phase / 2 % 2 == 1};
}

// The phases have each of the weights in turn, for the same time.
Shares shifting_mix(const std::vector<DriveCounts>& weights, Work work) {
    constexpr std::uint8_t kDrives = 10;
    constexpr Duration kPhase = 30min;
    constexpr Duration kStep = 10s;
    constexpr int kPhases = 12;
    constexpr std::uint32_t kToReadFrom = 200;
    constexpr std::uint32_t kToFormat = 400;  // The first cartridge to format, and their number.
    TapeSettings settings = with_reads("grouped_read");
    settings.dispatch_algo = named(dispatch_algorithms(), "fair_share");
    settings.fair_share_weights = weights.front();
    Library library(kDrives, 2 * kToFormat, settings);
    core::Random random(3);
    Shares shares;
    std::array<double, kIoTypeCount> busy_s{};
    std::array<double, kIoTypeCount> ideal_s{};
    std::uint64_t moves = 0;
    std::uint32_t formats = 0;
    std::array<std::size_t, kDrives + 1> last{};
    const auto waits = [&](IoType type) { return library.main().waiting_count(type); };
    for (int phase = 0; phase < kPhases; ++phase) {
        settings.fair_share_weights =
            weights[static_cast<std::size_t>(phase) * weights.size() / kPhases];
        library.main().use({.tape = settings});
        const auto active = work(phase);
        for (Duration passed{0}; passed < kPhase; passed += kStep) {
            while (waits(IoType::kRead) < 400) {
                const auto medium = static_cast<std::uint32_t>(random.below(kToReadFrom));
                library.push(IoType::kRead, MediumId{medium},
                             random.below(lto9().capacity_bytes - kGB), kGB);
            }
            while (active[1] && waits(IoType::kWrite) < 40) {
                library.push(IoType::kWrite, kAnyMedium, 0, 8 * kGB);
            }
            while (active[2] && waits(IoType::kFormat) < 40) {
                library.push(IoType::kFormat, MediumId{kToFormat + formats++ % kToFormat}, 0, 0);
            }
            library.run_for(kStep);
            double sum = 0;
            std::array<double, kIoTypeCount> share{};
            for (std::size_t type = 0; type < kIoTypeCount; ++type) {
                if (waits(static_cast<IoType>(type)) == 0) continue;
                share[type] = static_cast<double>((*settings.fair_share_weights)[type]);
                sum += share[type];
            }
            const Duration at = phase * kPhase + passed;
            shares.by_time[2].add(at, kDrives * share[0] / sum, kStep);
            for (std::size_t type = 0; type < kIoTypeCount; ++type) {
                ideal_s[type] += in_seconds(kStep) * kDrives * share[type] / sum;
                for (const IoDevice* const drive : library.drives()) {
                    if (drive->running_count(static_cast<IoType>(type)) == 0) continue;
                    busy_s[type] += in_seconds(kStep);
                    if (type < 2) shares.by_time[type].add(at, 1, kStep);
                    std::size_t& before = last[drive->number()];
                    if (before != 0 && before != type + 1) ++moves;
                    before = type + 1;
                }
            }
        }
    }
    const double all = busy_s[0] + busy_s[1] + busy_s[2];
    const double ideal = ideal_s[0] + ideal_s[1] + ideal_s[2];
    for (std::size_t type = 0; type < kIoTypeCount; ++type) {
        shares.error = std::max(shares.error, std::abs(busy_s[type] / all - ideal_s[type] / ideal));
    }
    shares.moves_per_hour = static_cast<double>(moves) / (kPhases * in_seconds(kPhase) / 3600);
    shares.used = all / ideal;
    return shares;
}

// E5: drives of reads, writes and formats, with several weights.
void shares_of_drives(Report& report) {
    const Shares two = shifting_mix({{40, 40, 20}}, &reads_and_writes);
    report.number("fair_share_error_percent", 100 * two.error);
    report.number("fair_share_moves_per_hour", two.moves_per_hour);
    report.number("fair_share_drives_used_percent", 100 * two.used);
    report.by_number("read_drives_by_minute", two.by_time[0].by_minute());
    report.by_number("write_drives_by_minute", two.by_time[1].by_minute());
    report.by_number("read_drives_share_by_minute", two.by_time[2].by_minute());
    const std::vector<DriveCounts> sets{{1, 1, 1}, {4, 2, 1}, {8, 1, 1}};
    const auto add = [&](const std::string& name, const std::vector<DriveCounts>& weights) {
        const Shares each = shifting_mix(weights, &all_types);
        report.number("fair_share_error_percent_" + name, 100 * each.error);
        report.number("fair_share_moves_per_hour_" + name, each.moves_per_hour);
    };
    for (const DriveCounts& each : sets) {
        add(std::to_string(each[0]) + "_" + std::to_string(each[1]) + "_" + std::to_string(each[2]),
            {each});
    }
    add("shifting", sets);
}

// E6: one popular cartridge, and single reads of others, with one drive: the longest wait of those.
void starvation(Report& report) {
    const auto longest_s = [](Duration max_wait) {
        TapeSettings settings = with_reads("grouped_read");
        settings.grouped_read_max_wait = max_wait;
        Library library(1, 40, settings);
        core::Random random(5);
        std::vector<TapeRequest*> singles;
        for (int i = 0; i < 2000; ++i) {
            library.push(IoType::kRead, MediumId{0}, random.below(lto9().capacity_bytes - kGB),
                         kGB);
            if (i % 100 == 99) {
                const auto medium = static_cast<std::uint32_t>(1 + i / 100);
                singles.push_back(&library.push(IoType::kRead, MediumId{medium}, 0, kGB));
            }
            library.run_for(15s);
        }
        library.finish();
        double longest = 0;
        for (const TapeRequest* const each : singles) {
            longest = std::max(longest, in_seconds(each->took));
        }
        return longest;
    };
    std::vector<std::pair<std::size_t, double>> longest;
    for (const int minutes : {10, 30, 24 * 60}) {
        longest.emplace_back(static_cast<std::size_t>(minutes), longest_s(minutes * 1min));
    }
    report.by_number("single_read_longest_s_by_max_wait_min", longest);
}

// A request's way through grouped_read, while many wait for 500 cartridges with 8 drives.
void many(Report& report) {
    constexpr std::size_t kRequests = 100'000;
    constexpr std::uint32_t kCartridges = 500;
    IoMedia media;
    for (std::uint32_t id = 0; id < kCartridges; ++id) {
        media.put({.id = MediumId{id}, .technology = "lto9"});
    }
    const TapeSettings settings = with_reads("grouped_read");
    const auto scheduler = settings.read_algo->make(settings, media);
    std::deque<IoDevice> drives;
    for (std::uint8_t number = 1; number <= 8; ++number) {
        IoDevice& drive =
            drives.emplace_back(IoDevice::Drive{.number = number, .technology = "lto9"});
        media.add_drive(drive);
        scheduler->add_device(drive);
    }
    struct Plain : IoRequest {
        Plain() : IoRequest([](IoRequest&) {}) {
            type = IoType::kRead;
            family = IoFamily::kTape;
            parts = std::span(&part, 1);
        }
        IoPart part;
    };
    core::Random random(9);
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    const auto requests = std::make_unique<Plain[]>(kRequests);
    for (std::size_t i = 0; i < kRequests; ++i) {
        const auto medium = static_cast<std::uint32_t>(random.below(kCartridges));
        requests[i].part = {.medium = MediumId{medium},
                            .offset = random.below(lto9().capacity_bytes - kGB),
                            .size_bytes = kGB};
    }
    const Instant pushing = kClock.now();
    for (std::size_t i = 0; i < kRequests; ++i) {
        requests[i].stamp(i + 1, Instant{1s});
        scheduler->push_request(requests[i]);
    }
    const Instant pushed = kClock.now();
    const std::size_t bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    report.number("push_ns", in_seconds(pushed - pushing) * 1e9 / kRequests);
    report.number("request_bytes", static_cast<double>(bytes) / kRequests);

    // As drives become free one after the other, in every round one.
    for (std::size_t taken = 0; taken < kRequests; ++taken) {
        IoRequest* const next = scheduler->peek_request(Instant{2s});
        if (next == nullptr) fail("nothing is next");
        const auto pair = scheduler->get_device_medium_pair(*next, Instant{2s});
        if (!pair || !*pair) fail("there is no drive");
        scheduler->remove_request(*next);
        (*pair)->device->set_medium(next->parts[0].medium);
    }
    report.number("take_ns", in_seconds(kClock.now() - pushed) * 1e9 / kRequests);
}

// Peeks with 100 000 waiting: after each push, with every drive in use and with one that is free.
void peeks(Report& report) {
    constexpr std::size_t kRounds = 100'000;
    IoMedia media;
    for (std::uint32_t id = 0; id < 500; ++id) {
        media.put({.id = MediumId{id}, .technology = "lto9"});
    }
    TapeSettings settings = with_reads("grouped_read");
    const auto scheduler = settings.read_algo->make(settings, media);
    IoDevice drive(IoDevice::Drive{.number = 1, .technology = "lto9"});
    media.add_drive(drive);
    scheduler->add_device(drive);
    drive.set_medium(MediumId{0});
    struct Plain : IoRequest {
        Plain() : IoRequest([](IoRequest&) {}) {
            family = IoFamily::kTape;
            parts = std::span(&part, 1);
        }
        IoPart part;
    };
    core::Random random(9);
    const auto requests = std::make_unique<Plain[]>(kRounds);
    drive.begin(IoType::kRead);
    Duration peeking{0};
    for (std::size_t i = 0; i < kRounds; ++i) {
        const auto medium = static_cast<std::uint32_t>(random.below(500));
        requests[i].part = {.medium = MediumId{medium}, .size_bytes = kGB};
        requests[i].stamp(i + 1, Instant{1s});
        scheduler->push_request(requests[i]);
        const Instant began = kClock.now();
        if (scheduler->peek_request(Instant{2s}) != nullptr) fail("a drive in use is given");
        peeking += kClock.now() - began;
    }
    report.number("peek_busy_ns", in_seconds(peeking) * 1e9 / kRounds);
    drive.end(IoType::kRead);
    const Instant began = kClock.now();
    for (std::size_t i = 0; i < kRounds; ++i) {
        IoRequest* const next = scheduler->peek_request(Instant{2s});
        scheduler->requeue(*next);
    }
    report.number("peek_ns", in_seconds(kClock.now() - began) * 1e9 / kRounds);
}

// Reads of a disk in the same scheduler, alone and beside 10 000 that wait for cartridges.
void disk_beside(Report& report) {
    constexpr std::uint32_t kWaiting = 10'000;
    constexpr std::uint32_t kCartridges = 500;
    constexpr int kRounds = 11;
    constexpr std::size_t kReads = 2000;
    Library quiet(2, kCartridges, with_reads("grouped_read"));
    Library busy(2, kCartridges, with_reads("grouped_read"));
    quiet.add_disk();
    busy.add_disk();
    core::Random random(11);
    for (std::uint32_t i = 0; i < kWaiting; ++i) {
        busy.push(IoType::kRead, MediumId{i % kCartridges},
                  random.below(lto9().capacity_bytes - kGB), kGB);
    }
    std::vector<double> alone;
    std::vector<double> beside;
    for (int round = 0; round < kRounds; ++round) {
        alone.push_back(quiet.disk_p99_us(kReads));
        beside.push_back(busy.disk_p99_us(kReads));
    }
    if (busy.main().waiting_count(IoType::kRead) < kWaiting * 9 / 10) fail("too few wait");
    report.number("disk_p99_us", bench::median(alone));
    report.number("disk_p99_beside_10k_us", bench::median(beside));
}

void run(bool as_json) {
    bench::pin_to(0);
    Report report(as_json);
    mounts(report);
    locates(report);
    planning(report);
    filemarks(report);
    mount_criteria(report);
    shares_of_drives(report);
    starvation(report);
    many(report);
    peeks(report);
    disk_beside(report);
    report.print();
}

}  // namespace
}  // namespace fopd::io_sched

int main(int argument_count, char** arguments) {
    const bool as_json = argument_count == 2 && std::string_view(arguments[1]) == "--json";
    if (argument_count > 1 && !as_json) fopd::bench::fail("usage: bench_io_sched [--json]");
    fopd::io_sched::run(as_json);
    return 0;
}
