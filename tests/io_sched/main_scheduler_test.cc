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
#include "tests/io_sched/manual_device.h"
#include "tests/io_sched/requests.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;
using devices::kBlockBytes;
using devices::testing::Blocks;

namespace {

constexpr MediumId kA{1};
constexpr MediumId kB{2};
constexpr Error kDiskError{.code = Errc::kIo, .context = "disk"};

struct World : fopd::testing::Replay {
    explicit World(std::uint64_t seed) : Replay(seed), world(seed), reactor(world.make_reactor()) {}
    ~World() { reactor->drop_coroutines(); }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
};

// A request that counts how often it was completed.
struct CountedRequest : NumberedRequest {
    CountedRequest(IoType what, std::initializer_list<MediumId> media, std::uint64_t offset = 0,
                   Complete complete = &count)
        : NumberedRequest(complete) {
        type = what;
        for (const MediumId medium : media) add_part(medium, offset, kBlockBytes);
    }
    static void count(IoRequest& request) { ++static_cast<CountedRequest&>(request).completed; }
    bool ended_with(Errc code) const {
        return completed == 1 && !result && result.error().code == code;
    }
    bool ended_well() const { return completed == 1 && result.has_value(); }

    int completed = 0;
};

// Two devices with room for `depth` each, whose operations end when the test says so.
struct Stage : World {
    explicit Stage(std::uint32_t depth = 128, IoSchedSettings settings = {})
        : World(1), a(*reactor), b(*reactor) {
        settings.depth_max = depth;
        main.emplace(*reactor, settings);
        REQUIRE(main->add_device(kA, a).has_value());
        REQUIRE(main->add_device(kB, b).has_value());
    }
    ~Stage() { reactor->drop_coroutines(); }

    // In a turn, as all are.
    void push(IoRequest& request) { world.run(*reactor, push_in_turn(&request)); }
    Task<void> push_in_turn(IoRequest* request) {
        main->push(*request);
        co_return;
    }
    void cancel(core::CancelSource& source) { world.run(*reactor, cancel_in_turn(&source)); }
    static Task<void> cancel_in_turn(core::CancelSource* source) {
        source->cancel();
        co_return;
    }
    void settle() { world.run_for(1us); }
    // Removes a device, noting when it is gone.
    Task<void> remove(MediumId medium, std::optional<Result<void>>* ended) {
        const Result<void> result = co_await main->remove_device(medium);
        ended->emplace(result);
    }
    Task<void> stop(bool* ended) {
        co_await main->stop();
        *ended = true;
    }

    ManualDevice a;
    ManualDevice b;
    core::Gate gate;
    std::optional<MainScheduler> main;
};

}  // namespace

TEST_CASE("io_sched main: a request is not completed within push", "[io_sched]") {
    Stage stage;
    CountedRequest unknown(IoType::kRead, {MediumId{9}});
    bool within = false;
    const auto look = [](Stage* on, CountedRequest* request, bool* seen) -> Task<void> {
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
    World world(3);
    devices::DiskImage image(64 * kBlockBytes);
    devices::MemoryDisk disk(*world.reactor, image, {});
    MainScheduler main(*world.reactor, {});
    REQUIRE(main.add_device(kA, disk).has_value());
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

TEST_CASE("io_sched main: a device never has more at a time than its depth", "[io_sched]") {
    Stage stage(4);
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
    Stage stage;
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
// Cancels at the end of a turn, after the pass.
struct LateCanceller final : core::Poller {
    bool poll() override { return false; }
    void end_of_turn() override {
        if (source != nullptr) std::exchange(source, nullptr)->cancel();
    }
    Duration sleep_max() override { return Duration::max(); }
    Look look() const override { return Look::kNot; }

    core::CancelSource* source = nullptr;
};
}  // namespace

TEST_CASE("io_sched main: a request cancelled after the pass of a turn ends", "[io_sched]") {
    Stage stage(1);
    LateCanceller canceller;
    stage.reactor->add_poller(canceller);
    core::CancelSource source;
    CountedRequest first(IoType::kWrite, {kA});
    CountedRequest second(IoType::kWrite, {kA});
    second.wait.cancel = &source;
    stage.push(first);
    stage.push(second);
    stage.settle();
    canceller.source = &source;
    core::Timer turn([](core::Timer&) {});
    stage.reactor->arm(turn, stage.world.now() + 1ms);
    stage.world.run_for(2ms);
    REQUIRE(canceller.source == nullptr);
    CHECK(second.ended_with(Errc::kCancelled));
    stage.a.end_one();
    stage.settle();
    CHECK(first.ended_well());
}

TEST_CASE("io_sched main: a request that fails to start is completed once, by a spare if any",
          "[io_sched]") {
    Stage stage;
    stage.a.fail_at_once(kDiskError);
    CountedRequest spared(IoType::kRead, {kA, kB});
    spared.required_count = 1;
    CountedRequest alone(IoType::kRead, {kA});
    // In more operations than one, and the last of them on a disk that works.
    CountedRequest apart(IoType::kWrite, {kA});
    apart.add_part(kA, 7 * kBlockBytes, kBlockBytes);
    apart.add_part(kB, 0, kBlockBytes);
    CountedRequest all_failed(IoType::kWrite, {kA});
    all_failed.add_part(kA, 9 * kBlockBytes, kBlockBytes);
    for (CountedRequest* const request : {&spared, &alone, &apart, &all_failed}) {
        stage.push(*request);
    }
    stage.settle();

    CHECK(alone.ended_with(Errc::kIo));
    CHECK(all_failed.ended_with(Errc::kIo));
    CHECK(spared.completed == 0);
    CHECK(apart.completed == 0);
    CHECK(stage.main->device(kA)->in_flight() == 0);
    CHECK(stage.b.running() == 2);
    stage.b.end_all();
    stage.settle();
    CHECK(spared.ended_well());
    CHECK(apart.ended_with(Errc::kIo));
}

TEST_CASE("io_sched main: a deadline ends the wait for a device, and nothing is begun",
          "[io_sched]") {
    Stage stage(1);
    CountedRequest first(IoType::kWrite, {kA});
    CountedRequest second(IoType::kWrite, {kA});
    second.wait.deadline = stage.world.now() + 5ms;
    stage.push(first);
    stage.push(second);

    stage.world.run_for(4ms);
    CHECK(second.completed == 0);
    stage.world.run_for(2ms);
    CHECK(second.ended_with(Errc::kTimedOut));
    stage.a.end_one();
    stage.settle();
    CHECK(first.ended_well());
    CHECK(stage.a.begun().size() == 1);
}

TEST_CASE("io_sched main: a queued request can be cancelled, a running one cannot", "[io_sched]") {
    Stage stage(1);
    core::CancelSource source;
    CountedRequest first(IoType::kWrite, {kA});
    CountedRequest second(IoType::kWrite, {kA});
    CountedRequest third(IoType::kRead, {kA});
    first.wait.cancel = &source;
    second.wait.cancel = &source;
    third.wait.cancel = &source;
    stage.push(first);
    stage.push(second);
    stage.push(third);
    stage.settle();

    stage.cancel(source);
    stage.settle();

    CHECK(second.ended_with(Errc::kCancelled));
    CHECK(third.ended_with(Errc::kCancelled));
    CHECK(first.completed == 0);
    stage.a.end_one();
    stage.settle();
    CHECK(first.ended_well());
}

TEST_CASE("io_sched main: a request whose wait is over before it begins is never begun",
          "[io_sched]") {
    Stage stage;
    core::CancelSource source;
    source.cancel();
    CountedRequest cancelled(IoType::kWrite, {kA});
    cancelled.wait.cancel = &source;
    CountedRequest late(IoType::kWrite, {kA});
    late.wait.deadline = stage.world.now();
    stage.push(cancelled);
    stage.push(late);
    stage.settle();

    CHECK(cancelled.ended_with(Errc::kCancelled));
    CHECK(late.ended_with(Errc::kTimedOut));
    CHECK(stage.a.begun().empty());
}

TEST_CASE("io_sched main: a read that runs ends at its deadline", "[io_sched]") {
    Stage stage;
    CountedRequest request(IoType::kRead, {kA, kB});
    request.wait.deadline = stage.world.now() + 5ms;
    stage.push(request);

    stage.world.run_for(6ms);

    CHECK(request.ended_with(Errc::kTimedOut));
    CHECK(stage.b.begun().empty());
}

TEST_CASE("io_sched main: a read that fails is tried on the other copies", "[io_sched]") {
    Stage stage;
    CountedRequest request(IoType::kRead, {kA, kB});
    stage.push(request);
    stage.settle();
    CHECK(stage.b.begun().empty());

    stage.a.end_one(std::unexpected(kDiskError));
    stage.settle();
    CHECK(request.completed == 0);
    REQUIRE(stage.b.running() == 1);
    stage.b.end_one();
    stage.settle();

    CHECK(request.ended_well());
    CHECK(request.parts[0].state == IoPart::State::kFailed);
    CHECK(request.parts[1].state == IoPart::State::kDone);
}

TEST_CASE("io_sched main: a read that fails on every copy has the first error", "[io_sched]") {
    Stage stage;
    CountedRequest request(IoType::kRead, {kA, MediumId{9}, kB});
    stage.push(request);
    stage.settle();

    stage.a.end_one(std::unexpected(kDiskError));
    stage.settle();
    stage.b.end_one(std::unexpected(Error{.code = Errc::kCorrupt}));
    stage.settle();

    CHECK(request.ended_with(Errc::kIo));
}

TEST_CASE("io_sched main: a read that was given up is not tried again", "[io_sched]") {
    Stage stage(1);
    CountedRequest busy(IoType::kRead, {kB});
    CountedRequest request(IoType::kRead, {kA, kB, MediumId{9}});
    core::CancelSource source;
    request.required_count = 2;
    request.wait.cancel = &source;
    stage.push(busy);
    stage.push(request);
    stage.settle();
    REQUIRE(stage.a.running() == 1);

    stage.cancel(source);
    stage.settle();

    CHECK(request.ended_with(Errc::kCancelled));
    CHECK(stage.a.running() == 0);
    stage.b.end_one();
    stage.settle();
    CHECK(stage.b.begun().size() == 1);
}

TEST_CASE("io_sched main: a write is complete when all its media are, and failed if one is",
          "[io_sched]") {
    Stage stage;
    CountedRequest good(IoType::kWrite, {kA, kB});
    stage.push(good);
    stage.settle();
    stage.a.end_one();
    stage.settle();
    CHECK(good.completed == 0);
    stage.b.end_one();
    stage.settle();
    CHECK(good.ended_well());

    CountedRequest bad(IoType::kWrite, {kA, kB});
    stage.push(bad);
    stage.settle();
    stage.b.end_one(std::unexpected(kDiskError));
    stage.settle();
    CHECK(bad.completed == 0);
    stage.a.end_one();
    stage.settle();
    CHECK(bad.ended_with(Errc::kIo));
}

TEST_CASE("io_sched main: removing a device ends running and refuses queued requests",
          "[io_sched]") {
    Stage stage(1);
    CountedRequest runs(IoType::kWrite, {kA});
    CountedRequest waits(IoType::kWrite, {kA});
    CountedRequest has_other(IoType::kRead, {kA, kB});
    CountedRequest on_b(IoType::kWrite, {kB});
    CountedRequest late(IoType::kRead, {kA});
    stage.push(runs);
    stage.push(on_b);
    stage.push(waits);
    stage.push(has_other);
    stage.settle();

    std::optional<Result<void>> removed;
    std::optional<Result<void>> again;
    stage.reactor->spawn(stage.gate, stage.remove(kA, &removed));
    stage.reactor->spawn(stage.gate, stage.remove(kA, &again));
    stage.push(late);
    stage.settle();

    CHECK(waits.ended_with(Errc::kNotFound));
    CHECK(late.ended_with(Errc::kNotFound));
    CHECK_FALSE(removed.has_value());
    REQUIRE(again.has_value());
    CHECK_FALSE(again->has_value());
    CHECK_FALSE(stage.main->add_device(kA, stage.a).has_value());
    stage.a.end_one();
    stage.b.end_one();
    stage.settle();
    CHECK(runs.ended_well());
    REQUIRE(removed.has_value());
    CHECK(removed->has_value());
    stage.b.end_one();
    stage.settle();
    CHECK(has_other.ended_well());

    REQUIRE(stage.main->add_device(kA, stage.a).has_value());
    CountedRequest back(IoType::kRead, {kA});
    stage.push(back);
    stage.settle();
    stage.a.end_one();
    stage.settle();
    CHECK(back.ended_well());
}

TEST_CASE("io_sched main: stop refuses queued requests and waits for running ones", "[io_sched]") {
    Stage stage(1);
    CountedRequest runs(IoType::kWrite, {kA});
    CountedRequest waits(IoType::kWrite, {kA});
    CountedRequest half(IoType::kWrite, {kA, kB});
    stage.push(runs);
    stage.push(waits);
    stage.push(half);
    stage.settle();
    REQUIRE(stage.b.running() == 1);

    bool stopped = false;
    stage.reactor->spawn(stage.gate, stage.stop(&stopped));
    stage.settle();
    CHECK(waits.ended_with(Errc::kClosed));
    CHECK(half.completed == 0);
    CHECK_FALSE(stopped);
    stage.a.end_one();
    stage.b.end_one();
    stage.settle();

    CHECK(runs.ended_well());
    CHECK(half.ended_with(Errc::kClosed));
    CHECK(stopped);
}

TEST_CASE("io_sched main: a request that is destroyed while it waits is forgotten", "[io_sched]") {
    Stage stage(1);
    CountedRequest first(IoType::kRead, {kA});
    CountedRequest third(IoType::kRead, {kA}, 2 * kBlockBytes);
    {
        CountedRequest second(IoType::kRead, {kA}, kBlockBytes);
        stage.push(first);
        stage.push(second);
        stage.push(third);
        stage.settle();
    }
    stage.a.end_one();
    stage.settle();
    stage.a.end_one();
    stage.settle();

    CHECK(first.ended_well());
    CHECK(third.ended_well());
    CHECK(stage.a.begun().size() == 2);
}

TEST_CASE("io_sched main: its world may end at any time", "[io_sched]") {
    Stage stage(1);
    CountedRequest runs(IoType::kRead, {kA});
    CountedRequest waits(IoType::kRead, {kA});
    CountedRequest over(IoType::kRead, {kA});
    core::CancelSource source;
    over.wait.cancel = &source;
    const auto wait_for_it = [](AwaitedIo* io) -> Task<void> {
        const Blocks into(1);
        const auto result = co_await io->read(kA, into.buffer(), 0);
        CHECK_FALSE(result.has_value());  // Never reached.
    };
    AwaitedIo io(*stage.reactor, *stage.main);
    stage.push(runs);
    stage.push(waits);
    stage.reactor->spawn(stage.gate, wait_for_it(&io));
    stage.settle();
    stage.main->push(over);
    source.cancel();

    stage.reactor->drop_coroutines();
    stage.main.reset();

    CHECK_FALSE(waits.waiting());
    CHECK(runs.completed + waits.completed + over.completed == 0);
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
    Stage stage;
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
    Stage stage(128, settings);
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
    Stage stage;
    auto writes = writes_at({4, 5, 6, 8, 9, 3});
    stage.world.run(*stage.reactor, push_all(&*stage.main, &writes));
    stage.settle();

    using Operation = ManualDevice::Operation;
    CHECK(stage.a.begun() ==
          std::vector{Operation{.type = IoType::kWrite, .offset = 4 * kBlockBytes, .pieces = 3},
                      Operation{.type = IoType::kWrite, .offset = 8 * kBlockBytes, .pieces = 2},
                      Operation{.type = IoType::kWrite, .offset = 3 * kBlockBytes, .pieces = 1}});
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
    Stage stage;
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

    std::vector<std::size_t> pieces;
    for (const auto& operation : stage.a.begun()) pieces.push_back(operation.pieces);
    std::ranges::sort(pieces);
    CHECK(pieces == std::vector<std::size_t>{1, 1, 1, 2, 8, 32});
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
        REQUIRE(main_->add_device(kA, *disk_a_).has_value());
        REQUIRE(main_->add_device(kB, *disk_b_).has_value());
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

    World world_;
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
