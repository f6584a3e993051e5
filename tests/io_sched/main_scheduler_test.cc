// Goal: every request that is pushed completes exactly once, with what really happened, whatever
// devices and waits do meanwhile.

#include "io_sched/main_scheduler.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/virtual_world.h"
#include "devices/memory_disk.h"
#include "io_sched/io_device.h"
#include "tests/catch.h"
#include "tests/devices/blocks.h"
#include "tests/io_sched/awaited_io.h"
#include "tests/io_sched/main_stage.h"

namespace main_scheduler_test {

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;
using devices::testing::Blocks;

TEST_CASE("io_sched main: a request is not completed within push", "[io_sched]") {
    MainStage stage;
    CountedRequest unknown(IoType::kRead, {MediumId{9}});
    bool within = false;
    const auto look = [](MainStage* on, CountedRequest* request, bool* seen) -> Task<void> {
        on->main->push(*request);
        *seen = request->completed > 0;
        co_return;
    };
    stage.world.run(*stage.reactor, look(&stage, &unknown, &within));
    stage.settle();

    CHECK_FALSE(within);
    CHECK(unknown.ended_with(Errc::kNotFound));
}

TEST_CASE("io_sched main: written data are read back from the simulated disk", "[io_sched]") {
    IoWorld world(3);
    devices::DiskImage image(64 * kBlockBytes);
    devices::MemoryDisk disk(*world.reactor, image, {});
    MainScheduler main(*world.reactor, {});
    REQUIRE(add_disk(main, kA, disk).has_value());
    const auto all = [](AwaitedIo* io) -> Task<bool> {
        const Blocks from(4, 0x5a);
        const Blocks into(4);
        const auto written = co_await io->write(kA, from.buffer(), 8 * kBlockBytes);
        const auto read = co_await io->read(kA, into.buffer(), 8 * kBlockBytes);
        const bool same = into.all(0x5a);
        const auto formatted = co_await io->format(kA, 8 * kBlockBytes, 4 * kBlockBytes);
        const auto beyond = co_await io->read(kA, into.buffer(), 62 * kBlockBytes);
        const bool refused = !beyond && beyond.error().code == Errc::kInvalid;
        co_await io->scheduler().stop();
        const auto late = co_await io->read(kA, into.buffer(), 0);
        const bool closed = !late && late.error().code == Errc::kClosed;
        co_return written&& read&& same&& formatted&& refused&& closed;
    };

    AwaitedIo io(*world.reactor, main);
    CHECK(world.world.run(*world.reactor, all(&io)) == true);
    CHECK(disk.counts().writes == 1);
    CHECK(disk.counts().discards == 1);
}

TEST_CASE("io_sched main: a request that is pushed in place of another can keep its age",
          "[io_sched]") {
    MainStage stage(1);
    CountedRequest running(IoType::kRead, {kA});
    stage.push(running);
    stage.settle();
    auto before = std::make_unique<CountedRequest>(IoType::kRead, std::initializer_list{kA});
    stage.push(*before);
    const IoRequest::Age age = before->age();
    stage.world.run_for(1s);
    CountedRequest younger(IoType::kRead, {kA});
    stage.push(younger);
    REQUIRE(before->waiting());
    before.reset();
    CountedRequest again(IoType::kRead, {kA});
    again.keep_age(age);
    stage.push(again);

    CHECK(again.waiting());
    CHECK(again.arrival() == age.arrival);
    CHECK(again.arrived_at() == age.arrived_at);
    CHECK(again.arrival() < younger.arrival());
    CHECK(again.arrived_at() < younger.arrived_at());
}

TEST_CASE("io_sched main: a device never has more at a time than its depth", "[io_sched]") {
    MainStage stage(4);
    std::vector<std::unique_ptr<CountedRequest>> requests;
    for (std::uint64_t i = 0; i < 20; ++i) {
        const IoType type = i % 2 == 0 ? IoType::kRead : IoType::kWrite;
        requests.push_back(
            std::make_unique<CountedRequest>(type, std::initializer_list{kA}, i * kBlockBytes));
        stage.push(*requests.back());
    }
    stage.settle();

    CHECK(stage.a.running() == 4);
    CHECK(stage.main->waiting_count(IoType::kRead) == 8);
    CHECK(stage.main->device(kA)->in_flight() == 4);
    for (int i = 0; i < 20; ++i) {
        stage.a.end_one();
        stage.settle();
        CHECK(stage.a.running() <= 4);
    }

    for (const auto& request : requests) CHECK(request->ended_well());
    for (std::uint64_t i = 0; i < 20; ++i) CHECK(stage.a.begun()[i].offset == i * kBlockBytes);
}

TEST_CASE("io_sched main: slow background work does not lower the depth for clients",
          "[io_sched]") {
    MainStage stage;
    std::vector<std::unique_ptr<CountedRequest>> requests;
    for (std::uint64_t i = 0; i < 64; ++i) {
        requests.push_back(std::make_unique<CountedRequest>(
            IoType::kRead, std::initializer_list{kA}, i * kBlockBytes));
        stage.push(*requests.back());
    }
    stage.settle();
    for (int i = 0; i < 64; ++i) {
        stage.a.end_one();
        stage.settle();
    }
    const std::uint64_t depth = stage.main->device(kA)->depth();
    REQUIRE(depth > 16);

    for (int i = 0; i < 200; ++i) {
        CountedRequest zeros(IoType::kWrite, {kA});
        zeros.priority = IoPriority::kBackground;
        stage.push(zeros);
        stage.settle();
        stage.world.run_for(100ms);
        stage.a.end_one();
        stage.settle();
        REQUIRE(zeros.ended_well());
    }

    CHECK(stage.main->device(kA)->depth() == depth);
}

namespace {

// Pushes itself again as often as it may.
struct PersistentRequest : CountedRequest {
    PersistentRequest(MainScheduler& main, MediumId medium, int times_left)
        : CountedRequest(IoType::kRead, {medium}, 0, &push_again),
          scheduler(main),
          left(times_left) {}
    static void push_again(IoRequest& request) {
        auto& self = static_cast<PersistentRequest&>(request);
        ++self.completed;
        if (--self.left > 0) self.scheduler.push(self);
    }

    MainScheduler& scheduler;
    int left;
};

}  // namespace

TEST_CASE("io_sched main: one that is pushed again within its completion has its turn later",
          "[io_sched]") {
    MainStage stage;
    PersistentRequest refused(*stage.main, MediumId{9}, 100'000);
    const std::uint64_t turns = stage.reactor->stats().turns.get();
    stage.push(refused);
    stage.settle();

    CHECK(refused.completed == 100'000);
    CHECK(stage.reactor->stats().turns.get() - turns >= 100'000);
}

TEST_CASE("io_sched main: reads of one turn go in the elevator's order", "[io_sched]") {
    IoSchedSettings settings;
    for (const Algorithm& row : algorithms()) {
        if (row.name == "elevator") settings.read_algo = &row;
    }
    MainStage stage(128, settings);
    std::vector<std::unique_ptr<CountedRequest>> requests;
    for (const std::uint64_t block : {7U, 3U, 9U, 1U}) {
        requests.push_back(std::make_unique<CountedRequest>(
            IoType::kRead, std::initializer_list{kA}, block * kBlockBytes));
    }
    const auto push_all = [](MainScheduler* io, decltype(requests)* all) -> Task<void> {
        for (const auto& request : *all) io->push(*request);
        co_return;
    };
    stage.world.run(*stage.reactor, push_all(&*stage.main, &requests));
    stage.settle();

    std::vector<std::uint64_t> blocks;
    for (const auto& operation : stage.a.begun()) blocks.push_back(operation.offset / kBlockBytes);
    CHECK(blocks == std::vector<std::uint64_t>{1, 3, 7, 9});
    stage.a.end_all();
    stage.settle();
}

namespace {

// Pushes all of them in one turn.
Task<void> push_all(MainScheduler* main, std::vector<std::unique_ptr<CountedRequest>>* requests) {
    for (const auto& request : *requests) main->push(*request);
    co_return;
}

std::vector<std::unique_ptr<CountedRequest>> writes_at(
    std::initializer_list<std::uint64_t> blocks) {
    std::vector<std::unique_ptr<CountedRequest>> writes;
    for (const std::uint64_t block : blocks) {
        writes.push_back(std::make_unique<CountedRequest>(
            IoType::kWrite, std::initializer_list<MediumId>{kA}, block * kBlockBytes));
    }
    return writes;
}

}  // namespace

TEST_CASE("io_sched main: writes of one turn that lie side by side are one operation",
          "[io_sched]") {
    MainStage stage;
    auto writes = writes_at({4, 5, 6, 8, 9, 3});
    stage.world.run(*stage.reactor, push_all(&*stage.main, &writes));
    stage.settle();

    using Operation = ManualDevice::Operation;
    CHECK(stage.a.begun() ==
          std::vector{Operation{.type = IoType::kWrite, .offset = 4 * kBlockBytes, .parts = 3},
                      Operation{.type = IoType::kWrite, .offset = 8 * kBlockBytes, .parts = 2},
                      Operation{.type = IoType::kWrite, .offset = 3 * kBlockBytes, .parts = 1}});
    CHECK(stage.main->device(kA)->in_flight() == 3);
    stage.a.end_one();
    stage.a.end_one(std::unexpected(kDiskError));
    stage.settle();
    CHECK(stage.main->device(kA)->in_flight() == 1);
    stage.a.end_one();
    stage.settle();
    for (const std::size_t number : {0U, 1U, 2U, 5U}) CHECK(writes[number]->ended_well());
    for (const std::size_t number : {3U, 4U}) CHECK(writes[number]->ended_with(Errc::kIo));
}

TEST_CASE("io_sched main: only writes are joined, up to a limit", "[io_sched]") {
    MainStage stage;
    std::vector<std::unique_ptr<CountedRequest>> requests;
    const auto write = [&](std::uint64_t block, std::size_t blocks) {
        requests.push_back(
            std::make_unique<CountedRequest>(IoType::kWrite, std::initializer_list<MediumId>{}));
        requests.back()->add_part(kA, block * kBlockBytes, blocks * kBlockBytes);
    };
    for (std::uint64_t block = 0; block < 40; ++block) write(block, 1);
    // A quarter of a megabyte, and a block.
    write(1'000, 63);
    write(1'063, 1);
    write(1'064, 1);
    for (const std::uint64_t block : {50U, 51U}) {
        requests.push_back(std::make_unique<CountedRequest>(
            IoType::kRead, std::initializer_list<MediumId>{kA}, block * kBlockBytes));
    }
    stage.world.run(*stage.reactor, push_all(&*stage.main, &requests));
    stage.settle();

    std::vector<std::size_t> parts;
    for (const auto& operation : stage.a.begun()) parts.push_back(operation.parts);
    std::ranges::sort(parts);
    CHECK(parts == std::vector<std::size_t>{1, 1, 1, 2, 8, 32});
    stage.a.end_all();
    stage.settle();
    for (const auto& request : requests) CHECK(request->ended_well());
}

namespace {

// Many coroutines read, write and give space up, on disks that fail now and then; each knows what
// its own blocks hold.
class Load {
public:
    Load(std::uint64_t seed, const IoSchedSettings& settings)
        : world_(seed), image_a_(kBytes), image_b_(kBytes) {
        devices::DiskFaults faults{.read_error_ppm = 20'000, .slow_ppm = 1'000};
        disk_a_.emplace(*world_.reactor, image_a_,
                        devices::MemoryDiskOptions{.seed = seed, .faults = faults});
        disk_b_.emplace(*world_.reactor, image_b_,
                        devices::MemoryDiskOptions{.seed = seed + 1, .faults = faults});
        main_.emplace(*world_.reactor, settings);
        io_.emplace(*world_.reactor, *main_);
        REQUIRE(add_disk(*main_, kA, *disk_a_).has_value());
        REQUIRE(add_disk(*main_, kB, *disk_b_).has_value());
    }

    std::uint64_t run() {
        for (std::uint64_t i = 0; i < kWorkers; ++i) {
            world_.reactor->spawn(gate_, work(i, core::Random(world_.world.random().next())));
        }
        REQUIRE(world_.world.run(*world_.reactor, end()));
        CHECK(wrong_ == 0);
        CHECK(operations_ == kWorkers * kRounds);
        CHECK(failed_ < operations_ / 10);
        world_.world.trace(failed_);
        world_.world.trace(timed_out_);
        return world_.world.trace_hash();
    }

private:
    static constexpr std::uint64_t kWorkers = 40;
    static constexpr std::uint64_t kRounds = 30;
    static constexpr std::uint64_t kBytes = 2 * kWorkers * kBlockBytes;

    Task<void> work(std::uint64_t number, core::Random random) {
        const MediumId medium = number % 2 == 0 ? kA : kB;
        // Side by side, so that their writes go as one now and then.
        const std::uint64_t offset = number / 2 * kBlockBytes;
        std::optional<std::uint8_t> holds = 0;
        for (std::uint64_t round = 0; round < kRounds; ++round) {
            ++operations_;
            AwaitedIo::Options options;
            if (random.below(4) == 0) options.priority = IoPriority::kBackground;
            if (random.below(8) == 0) {
                const Duration patience(static_cast<std::int64_t>(random.below(400'000)));
                options.wait.deadline = after(world_.reactor->now(), patience);
            }
            const std::uint64_t what = random.below(10);
            if (what < 5) {
                const Blocks into(1);
                const auto read = co_await io_->read(medium, into.buffer(), offset, options);
                note(read);
                if (read && holds && !into.all(*holds)) ++wrong_;
            } else if (what < 9) {
                const auto fill = static_cast<std::uint8_t>(1 + random.below(255));
                const Blocks from(1, fill);
                const auto written = co_await io_->write(medium, from.buffer(), offset, options);
                note(written);
                if (written) holds = fill;
            } else {
                const auto formatted = co_await io_->format(medium, offset, kBlockBytes, options);
                note(formatted);
                if (formatted) holds.reset();
            }
        }
    }
    void note(const Result<void>& result) {
        if (result) return;
        const bool timed_out = result.error().code == Errc::kTimedOut;
        if (!timed_out && result.error().code != Errc::kIo) ++wrong_;
        ++(timed_out ? timed_out_ : failed_);
    }
    Task<void> end() {
        co_await gate_.close(*world_.reactor);
        co_await main_->stop();
    }

    IoWorld world_;
    devices::DiskImage image_a_;
    devices::DiskImage image_b_;
    std::optional<devices::MemoryDisk> disk_a_;
    std::optional<devices::MemoryDisk> disk_b_;
    core::Gate gate_;
    std::optional<MainScheduler> main_;
    std::optional<AwaitedIo> io_;
    std::uint64_t operations_ = 0;
    std::uint64_t failed_ = 0;
    std::uint64_t timed_out_ = 0;
    std::uint64_t wrong_ = 0;
};

}  // namespace

TEST_CASE("io_sched main: operations under load are correct and repeatable", "[io_sched]") {
    for (const Algorithm& row : algorithms()) {
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            CAPTURE(row.name, seed);
            const IoSchedSettings settings{.read_algo = &row, .write_algo = &row, .depth_max = 4};
            const std::uint64_t first = Load(seed, settings).run();
            CHECK(Load(seed, settings).run() == first);
        }
    }
}

}  // namespace main_scheduler_test
