// Goal: a request completes exactly once, with the right result, when it is cancelled, is late,
// fails on a device, or when its device, the scheduler or its owner ends first.

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "io_sched/main_scheduler.h"
#include "tests/devices/blocks.h"
#include "tests/io_sched/awaited_io.h"
#include "tests/io_sched/main_stage.h"

namespace ended_requests_test {

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;
using devices::testing::Blocks;

namespace {
// Cancels at the end of a turn, after the pass.
struct LateCanceller final : core::Poller {
    bool poll() override { return false; }
    void end_of_turn() override {
        if (source != nullptr) std::exchange(source, nullptr)->cancel();
    }
    Duration sleep_max() override { return Duration::max(); }

    core::CancelSource* source = nullptr;
};
}  // namespace

TEST_CASE("io_sched main: a request cancelled after the pass of a turn ends", "[io_sched]") {
    MainStage stage(1);
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
    MainStage stage;
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
    MainStage stage(1);
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
    MainStage stage(1);
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
    MainStage stage;
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
    MainStage stage;
    CountedRequest request(IoType::kRead, {kA, kB});
    request.wait.deadline = stage.world.now() + 5ms;
    stage.push(request);

    stage.world.run_for(6ms);

    CHECK(request.ended_with(Errc::kTimedOut));
    CHECK(stage.b.begun().empty());
}

TEST_CASE("io_sched main: a read that fails is tried on the other copies", "[io_sched]") {
    MainStage stage;
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
    MainStage stage;
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
    MainStage stage(1);
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
    MainStage stage;
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
    MainStage stage(1);
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
    CHECK_FALSE(add_disk(*stage.main, kA, stage.a).has_value());
    stage.a.end_one();
    stage.b.end_one();
    stage.settle();
    CHECK(runs.ended_well());
    REQUIRE(removed.has_value());
    CHECK(removed->has_value());
    stage.b.end_one();
    stage.settle();
    CHECK(has_other.ended_well());

    REQUIRE(add_disk(*stage.main, kA, stage.a).has_value());
    CountedRequest back(IoType::kRead, {kA});
    stage.push(back);
    stage.settle();
    stage.a.end_one();
    stage.settle();
    CHECK(back.ended_well());
}

TEST_CASE("io_sched main: stop refuses queued requests and waits for running ones", "[io_sched]") {
    MainStage stage(1);
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
    MainStage stage(1);
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
    MainStage stage(1);
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

}  // namespace ended_requests_test
