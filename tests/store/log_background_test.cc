// Goal: cleaning reads where it does not disturb clients, unless clients wait for what it frees.

#include <optional>
#include <string>
#include <utility>

#include "core/wait_queue.h"
#include "tests/catch.h"
#include "tests/store/forwarding_device.h"
#include "tests/store/log_bench.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::log_bench;

namespace {

// The disk behind an I/O scheduler that gives the reads of the background no turn while it is busy.
class BusyDisk final : public fopd::store::testing::ForwardingDevice {
public:
    BusyDisk(core::Reactor& reactor, devices::Device& disk)
        : ForwardingDevice(disk), turn_(reactor) {}

    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override {
        ++asked;
        if (busy) {
            const auto turn = co_await turn_.wait(wait);
            if (!turn) co_return turn;
        }
        const auto done = co_await device().read(into, offset, wait);
        if (done) ++reads;
        co_return done;
    }
    void give_turns() {
        busy = false;
        turn_.wake_all();
    }

    bool busy = false;
    int asked = 0;
    int reads = 0;

private:
    core::WaitQueue turn_;
};

// Counts what goes to the disk directly.
class DirectReads final : public fopd::store::testing::ForwardingDevice {
public:
    using ForwardingDevice::ForwardingDevice;
    Task<Result<void>> read(core::Buffer into, std::uint64_t offset,
                            core::WaitOptions wait) override {
        ++reads;
        return device().read(into, offset, wait);
    }
    int reads = 0;
};

struct Counter final : LogVisitor {
    Task<Result<void>> entry(LogEntry /*entry*/, std::uint64_t /*block*/) override {
        ++entries;
        co_return Result<void>{};
    }
    void fault(const LogFault& /*fault*/) override { ++faults; }
    int entries = 0;
    int faults = 0;
};

class BackgroundBench : public Bench {
public:
    BackgroundBench() {
        segments.free.clear();
        format();
        plug_in();
        direct_.emplace(*disk);
        busy_.emplace(reactor(), *disk);
        log = std::make_unique<Log>(reactor(), *direct_, segments, options, &*busy_);
        REQUIRE(run(log->open(&visitor, {})).has_value());
        direct_->reads = 0;
    }
    ~BackgroundBench() { stop(); }

    // Until those that free would have to wait for cleaning. The index holds all of it.
    void fill() {
        Result<void> done{};
        while (done) done = run(commit_to_free());
        REQUIRE(done.error().code == Errc::kTimedOut);
        log->set_applied(log->durable_seq());
    }
    // Some segments, so that there is something to clean.
    void fill_some() {
        while (log->space().segments_free > 2) REQUIRE(run(commit_to_free()).has_value());
        log->set_applied(log->durable_seq());
    }
    void begin_cleaning() { reactor().spawn(gate_, clean_task()); }
    void begin_look(Counter* counter, core::CancelSource* cancel) {
        reactor().spawn(gate_, look_task(counter, cancel));
    }
    void begin_reservation() { reactor().spawn(gate_, reserve_task()); }
    BusyDisk& busy_disk() { return *busy_; }
    int direct_reads() const { return direct_->reads; }

    std::optional<Result<void>> cleaned;
    std::optional<Result<void>> reserved;
    std::optional<Result<void>> looked;

private:
    Task<Result<void>> commit_to_free() {
        const core::WaitOptions wait{.deadline = after(world.now(), 10s)};
        auto room = co_await log->reserve(kBytes, wait, Purpose::kFreeing);
        if (!room) co_return std::unexpected(room.error());
        const std::string text(kBytes, 'd');
        Commit commit;
        log->begin(commit, std::move(*room), bytes_of(text), 1, Durability::kDurable, Data::kNone);
        co_return co_await log->durable(commit);
    }
    Task<void> clean_task() { cleaned = co_await log->clean(&visitor); }
    Task<void> look_task(Counter* counter, core::CancelSource* cancel) {
        looked = co_await log->look_through(counter, {.cancel = cancel});
    }
    Task<void> reserve_task() {
        const auto room = co_await log->reserve(kBytes, {}, Purpose::kFreeing);
        reserved = room ? Result<void>{} : std::unexpected(room.error());
    }

    static constexpr std::uint32_t kBytes = 4000;

    std::optional<DirectReads> direct_;
    std::optional<BusyDisk> busy_;
    core::Gate gate_;
};

}  // namespace

TEST_CASE("store log: cleaning reads in the background while nobody waits for space", "[store]") {
    BackgroundBench bench;
    bench.fill_some();

    REQUIRE(bench.run(bench.log->clean(&bench.visitor)).has_value());
    REQUIRE(bench.busy_disk().reads > 0);
    REQUIRE(bench.direct_reads() == 0);
}

TEST_CASE("store log: cleaning does not wait for a turn when a reservation waits for space",
          "[store]") {
    BackgroundBench bench;
    bench.fill_some();
    bench.busy_disk().busy = true;
    bench.begin_cleaning();
    bench.world.run_for(1s);
    REQUIRE(bench.busy_disk().asked == 1);
    REQUIRE_FALSE(bench.cleaned.has_value());

    bench.fill();
    REQUIRE(bench.cleaned.has_value());
    REQUIRE(bench.cleaned->has_value());
    REQUIRE(bench.busy_disk().reads == 0);
}

TEST_CASE("store log: cleaning asks for no turn when the log is nearly full", "[store]") {
    BackgroundBench bench;
    bench.fill();
    bench.busy_disk().busy = true;
    bench.begin_cleaning();
    bench.world.run_for(1s);
    REQUIRE(bench.cleaned.has_value());
    REQUIRE(bench.cleaned->has_value());
    REQUIRE(bench.busy_disk().asked == 0);
}

TEST_CASE("store log: cleaning asks for no turn while a reservation waits for space", "[store]") {
    BackgroundBench bench;
    bench.fill();
    bench.busy_disk().busy = true;
    bench.begin_reservation();
    bench.world.run_for(1s);
    REQUIRE_FALSE(bench.reserved.has_value());

    bench.begin_cleaning();
    bench.world.run_for(1s);
    REQUIRE(bench.cleaned.has_value());
    REQUIRE(bench.reserved.has_value());
    REQUIRE(bench.busy_disk().asked == 0);
}

TEST_CASE("store log: cleaning that waits for its turn goes on when it comes", "[store]") {
    BackgroundBench bench;
    bench.fill_some();
    bench.busy_disk().busy = true;
    bench.begin_cleaning();
    bench.world.run_for(1s);
    REQUIRE_FALSE(bench.cleaned.has_value());

    bench.busy_disk().give_turns();
    bench.world.run_for(1s);
    REQUIRE(bench.cleaned.has_value());
    REQUIRE(bench.cleaned->has_value());
    REQUIRE(bench.direct_reads() == 0);
}

TEST_CASE("store log: a look through it reads entries in the background", "[store]") {
    BackgroundBench bench;
    bench.fill_some();
    Counter counter;

    REQUIRE(bench.run(bench.log->look_through(&counter, {})).has_value());
    REQUIRE(counter.entries > 0);
    REQUIRE(counter.faults == 0);
    REQUIRE(bench.busy_disk().reads > 0);
    REQUIRE(bench.direct_reads() == SuperblockCopies::kCount);
}

TEST_CASE("store log: a look through it that waits for its turn can be cancelled", "[store]") {
    BackgroundBench bench;
    bench.fill_some();
    bench.busy_disk().busy = true;
    Counter counter;
    core::CancelSource cancel;
    bench.begin_look(&counter, &cancel);
    bench.world.run_for(1s);
    REQUIRE_FALSE(bench.looked.has_value());

    cancel.cancel();
    bench.world.run_for(1ms);
    REQUIRE(bench.looked.has_value());
    REQUIRE(bench.looked->error().code == Errc::kCancelled);
    REQUIRE(counter.faults == 0);
}
