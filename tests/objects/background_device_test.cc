// Goal: bulk work that nobody waits for goes to a disk after what clients wait for, and is done in
// any case, whether the scheduler serves the disk or not.

#include "objects/background_device.h"

#include <optional>

#include "tests/objects/slow_disk.h"

namespace fopd::objects {

namespace {

struct DiskWithBackground : testing::SlowDisk {
    Task<void> write(std::uint64_t block, std::optional<Instant>* ended) {
        devices::testing::Blocks zeros(1);
        const auto done = co_await background.write(zeros.buffer(), block * kBlock);
        CHECK(done.has_value());
        *ended = reactor->now();
    }
    Task<void> discard(std::uint64_t block, std::optional<Instant>* ended) {
        const auto done = co_await background.discard(block * kBlock, kBlock);
        CHECK(done.has_value());
        *ended = reactor->now();
    }
    Task<void> read_one(std::uint64_t block, core::WaitOptions wait,
                        std::optional<Result<void>>* result) {
        devices::testing::Blocks into(1);
        *result = co_await background.read(into.buffer(), block * kBlock, wait);
    }
    Task<void> read_some(std::size_t count, std::optional<Instant>* ended) {
        // Fails if the disk is taken away.
        [[maybe_unused]] const auto done =
            co_await read(io_sched::IoPriority::kForeground, count, 0);
        *ended = reactor->now();
    }
    Task<void> remove() {
        const auto removed = co_await scheduler.remove_device(testing::kDisk);
        CHECK(removed.has_value());
    }

    BackgroundDevice background{
        {.reactor = *reactor, .device = disk, .scheduler = scheduler, .medium = testing::kDisk}};
};

}  // namespace

TEST_CASE("objects background device: zeros wait for what clients read", "[objects]") {
    DiskWithBackground stage;
    stage.serve();
    std::optional<Instant> read;
    std::optional<Instant> wrote;
    std::optional<Instant> discarded;
    stage.reactor->spawn(stage.gate, stage.read_some(4, &read));
    stage.reactor->spawn(stage.gate, stage.write(500, &wrote));
    stage.reactor->spawn(stage.gate, stage.discard(600, &discarded));
    stage.world.run_for(1s);

    REQUIRE(read.has_value());
    REQUIRE(wrote.has_value());
    REQUIRE(discarded.has_value());
    CHECK(*read < *wrote);
    CHECK(stage.disk.counts().discards == 1);
}

TEST_CASE("objects background device: its reads wait for those of clients", "[objects]") {
    DiskWithBackground stage;
    stage.serve();
    std::optional<Instant> clients;
    std::optional<Result<void>> read;
    stage.reactor->spawn(stage.gate, stage.read_some(4, &clients));
    stage.reactor->spawn(stage.gate, stage.read_one(500, {}, &read));
    stage.world.run_for(3500us);
    CHECK_FALSE(read.has_value());
    stage.world.run_for(1s);

    CHECK(clients.has_value());
    REQUIRE(read.has_value());
    CHECK(read->has_value());
}

TEST_CASE("objects background device: a read that waits for its turn can be cancelled",
          "[objects]") {
    DiskWithBackground stage;
    stage.serve();
    std::optional<Instant> clients;
    std::optional<Result<void>> read;
    core::CancelSource cancel;
    stage.reactor->spawn(stage.gate, stage.read_some(4, &clients));
    stage.reactor->spawn(stage.gate, stage.read_one(500, {.cancel = &cancel}, &read));
    stage.world.run_for(100us);
    cancel.cancel();
    stage.world.run_for(100us);

    REQUIRE(read.has_value());
    CHECK(read->error().code == Errc::kCancelled);
    CHECK_FALSE(clients.has_value());
}

TEST_CASE("objects background device: they are done while the scheduler has no such disk",
          "[objects]") {
    DiskWithBackground stage;
    std::optional<Instant> wrote;
    std::optional<Instant> discarded;
    stage.reactor->spawn(stage.gate, stage.write(500, &wrote));
    stage.reactor->spawn(stage.gate, stage.discard(600, &discarded));
    stage.world.run_for(1s);

    CHECK(wrote.has_value());
    CHECK(discarded.has_value());
}

TEST_CASE("objects background device: what waits when the disk is taken away is done",
          "[objects]") {
    DiskWithBackground stage;
    stage.serve();
    std::optional<Instant> read;
    std::optional<Instant> wrote;
    std::optional<Instant> discarded;
    stage.reactor->spawn(stage.gate, stage.read_some(4, &read));
    stage.reactor->spawn(stage.gate, stage.write(500, &wrote));
    stage.reactor->spawn(stage.gate, stage.discard(600, &discarded));
    stage.world.run_for(100us);
    REQUIRE_FALSE(wrote.has_value());
    stage.reactor->spawn(stage.gate, stage.remove());
    stage.world.run_for(1s);

    CHECK(wrote.has_value());
    CHECK(discarded.has_value());
    CHECK(stage.disk.counts().writes == 1);
    CHECK(stage.disk.counts().discards == 1);
}

}  // namespace fopd::objects
