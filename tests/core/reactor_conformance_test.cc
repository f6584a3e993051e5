// Goal: every reactor keeps the contract of core/reactor.h about coroutines and time.
// Method: the same coroutines run on all kinds; what needs real descriptors or threads on the real
// ones. Nothing depends on how long anything takes: long deadlines stand for "never".

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "core/remote.h"
#include "tests/core/reactor_log.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

// -- coroutines --

TEST_CASE("core reactor: coroutines start in the order they were spawned", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    Log log;
    for (int i = 0; i < 600; ++i) harness->spawn(gate, note(&log, std::to_string(i)));
    REQUIRE(log.empty());

    drain(harness, gate);

    REQUIRE(log.size() == 600);
    for (int i = 0; i < 600; ++i) REQUIRE(log[static_cast<std::size_t>(i)] == std::to_string(i));
}

TEST_CASE("core reactor: a run that follows another one gets its turn", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Log log;

    harness.run(note(&log, "one"));
    harness.run(note(&log, "two"));
    harness.run(sleep_then_note(&harness.reactor(), &log, after(harness->now(), 1ms), "three"));
    harness.run(note(&log, "four"));

    REQUIRE(log == Log{"one", "two", "three", "four"});
}

TEST_CASE("core reactor: yield goes behind all ready coroutines", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    Log log;
    harness->spawn(gate, yield_and_note(&harness.reactor(), &log, "a", 3));
    harness->spawn(gate, yield_and_note(&harness.reactor(), &log, "b", 3));
    harness->spawn(gate, yield_and_note(&harness.reactor(), &log, "c", 3));

    drain(harness, gate);

    REQUIRE(log == Log{"a", "b", "c", "a", "b", "c", "a", "b", "c"});
}

TEST_CASE("core reactor: a started task runs at once, until it suspends", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    Log log;
    harness->spawn(gate, note(&log, "spawned"));
    harness->start(gate, yield_and_note(&harness.reactor(), &log, "started", 2));
    REQUIRE(log == Log{"started"});

    drain(harness, gate);

    REQUIRE(log == Log{"started", "spawned", "started"});
}

namespace {
Task<void> fail_inside(Reactor* reactor, bool suspend_first) {
    if (suspend_first) co_await reactor->yield();
    throw std::runtime_error("from inside");
}
Task<void> call_failing(Reactor* reactor, bool suspend_first) {
    co_await fail_inside(reactor, suspend_first);
}
}  // namespace

TEST_CASE("core reactor: an exception leaves through the loop and nothing leaks", "[core]") {
    const Kind kind = any_kind();
    const bool suspend_first = GENERATE(false, true);
    CAPTURE(kind, suspend_first);
    Harness harness(kind);
    Reactor* const reactor = &harness.reactor();

    REQUIRE_THROWS_WITH(harness.run(call_failing(reactor, suspend_first)), "from inside");

    Log log;
    harness.run(note(&log, "still turning"));
    REQUIRE(log.size() == 1);
}

// -- time --

TEST_CASE("core reactor: equal deadlines fire in arming order, others by time", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    Log log;
    const Instant start = harness->now();
    const std::array<Duration, 6> spans{3ms, 1ms, 2ms, 1ms, 3ms, 1ms};
    for (std::size_t i = 0; i < spans.size(); ++i) {
        harness->spawn(
            gate, sleep_then_note(&harness.reactor(), &log, start + spans[i], std::to_string(i)));
    }

    drain(harness, gate);

    REQUIRE(log == Log{"1", "3", "5", "2", "0", "4"});
}

TEST_CASE("core reactor: a deadline that has passed is over in the next turn", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    Log log;
    harness->spawn(gate, sleep_then_note(&harness.reactor(), &log, Instant::min(), "min"));
    harness->spawn(gate, sleep_then_note(&harness.reactor(), &log, harness->now(), "now"));
    harness->spawn(gate, yield_and_note(&harness.reactor(), &log, "other", 1));

    drain(harness, gate);

    REQUIRE(log == Log{"other", "min", "now"});
}

namespace {
// Looks at the clock again and again without waiting; wakes up by I/O and by timers between.
Task<bool> time_stands_still(Reactor* reactor, const Clock* clock, int fd) {
    bool stood_still = true;
    for (int round = 0; round < 20; ++round) {
        const Instant seen = reactor->now();
        if (clock != nullptr) {
            // Until the world outside has moved on.
            const Instant outside = clock->now();
            while (clock->now() <= outside) {
            }
        }
        stood_still = stood_still && reactor->now() == seen;
        if (round % 2 == 0) {
            std::string text = "x";
            const auto written = co_await reactor->write(File{.fd = fd}, buffer_of(text), 0);
            stood_still = stood_still && written.has_value();
        } else {
            const auto slept = co_await reactor->sleep_for(10us);
            stood_still = stood_still && slept.has_value() && reactor->now() >= seen + 10us;
        }
    }
    co_return stood_still;
}
}  // namespace

TEST_CASE("core reactor: now() stands still between two waits", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const TempFile file;
    const PosixClock clock;
    const Clock* const outside = kind == Kind::kVirtual ? nullptr : &clock;

    REQUIRE(harness.run(time_stands_still(&harness.reactor(), outside, file.fd())));
}

namespace {
class ManualClock final : public Clock {
public:
    Instant now() const override { return now_; }
    WallTime wall() const override { return {}; }
    void move(Duration span) { now_ += span; }

private:
    Instant now_{1000s};
};
Task<Instant> what_time(Reactor* reactor) {
    co_return reactor->now();
}
}  // namespace

TEST_CASE("core reactor: the first turn of a run sees the time of that run", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    ManualClock clock;
    NullEventSink events;
    auto backend =
        kind == Kind::kUring ? make_uring_backend(clock, events) : make_poll_backend(clock);
    REQUIRE(backend.has_value());
    Reactor reactor(std::move(*backend));
    clock.move(10s);

    REQUIRE(reactor.run_until_done(what_time(&reactor)) == clock.now());
    clock.move(10s);
    REQUIRE(reactor.run_until_done(what_time(&reactor)) == clock.now());
}

namespace {
Task<Result<void>> sleep_long(Reactor* reactor, CancelSource* source) {
    co_return co_await reactor->sleep_for(24h, source);
}
}  // namespace

TEST_CASE("core reactor: a sleep is cancelled before it begins or in its course", "[core]") {
    const Kind kind = any_kind();
    const int rounds = GENERATE(0, 1, 5);
    CAPTURE(kind, rounds);
    Harness harness(kind);
    Gate gate;
    CancelSource source;
    if (rounds == 0) source.cancel();
    harness->spawn(gate, cancel_later(&harness.reactor(), &source, rounds));

    const auto slept = harness.run(sleep_long(&harness.reactor(), &source));

    REQUIRE(!slept.has_value());
    REQUIRE(slept.error().code == Errc::kCancelled);
    drain(harness, gate);
}

namespace {
Task<void> spin_until(Reactor* reactor, const bool* done) {
    while (!*done) co_await reactor->maybe_yield();
}
Task<void> everybody_else(Reactor* reactor, int fd, bool* done) {
    const auto slept = co_await reactor->sleep_for(1us);
    ENSURE(slept.has_value());
    std::string text = "abc";
    const auto written = co_await reactor->write(File{.fd = fd}, buffer_of(text), 0);
    ENSURE(written.has_value() && *written == 3);
    auto job = [] { return 1; };
    const auto one = co_await run_on(*reactor, *reactor, job);
    ENSURE(one == 1);
    *done = true;
}
}  // namespace

TEST_CASE("core reactor: a loop with maybe_yield lets other coroutines run", "[core]") {
    const Kind kind = real_kind();  // In the virtual world time stands still while anybody runs.
    CAPTURE(kind);
    Harness harness(kind);
    const TempFile file;
    Gate gate;
    bool done = false;
    harness->spawn(gate, spin_until(&harness.reactor(), &done));
    harness->spawn(gate, everybody_else(&harness.reactor(), file.fd(), &done));

    drain(harness, gate);

    REQUIRE(done);
}

namespace {
Task<void> count_maybe(Reactor* reactor, int* count, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        co_await reactor->maybe_yield();
        ++*count;
    }
}
Task<bool> neighbour_sees_progress(Reactor* reactor, const int* count) {
    co_await reactor->yield();
    const int first = *count;
    co_await reactor->yield();
    co_return first > 0 && *count > first && *count < 10'000;
}
}  // namespace

TEST_CASE("core reactor: maybe_yield lets a neighbour in every now and then", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    int count = 0;
    harness->spawn(gate, count_maybe(&harness.reactor(), &count, 10'000));

    REQUIRE(harness.run(neighbour_sees_progress(&harness.reactor(), &count)));
    drain(harness, gate);
    REQUIRE(count == 10'000);
}

namespace {
Task<void> stop_after(Reactor* reactor, int rounds) {
    for (int i = 0; i < rounds; ++i) co_await reactor->yield();
    reactor->stop();
}
}  // namespace

namespace {
Task<void> take_long_steps(Reactor* reactor, Log* log, std::string text) {
    for (int i = 0; i < 2; ++i) {
        co_await reactor->long_step();
        log->push_back(text);
    }
}
Task<void> note_turns(Reactor* reactor, Log* log, const Log* until) {
    while (until->size() < 6) {
        log->push_back(std::to_string(until->size()));
        co_await reactor->yield();
    }
}
}  // namespace

TEST_CASE("core reactor: of those with long steps to take one goes on in a turn", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    Log steps;
    Log turns;
    for (const char* const each : {"a", "b", "c"}) {
        harness->spawn(gate, take_long_steps(&harness.reactor(), &steps, each));
    }
    harness->spawn(gate, note_turns(&harness.reactor(), &turns, &steps));

    drain(harness, gate);

    // The second that the first one asks for was asked for before the others' first ones.
    REQUIRE(steps == Log{"a", "a", "b", "c", "b", "c"});
    REQUIRE(turns == Log{"1", "1", "2", "3", "4", "5"});
}

TEST_CASE("core reactor: run ends after stop, and what runs later still ends", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const TempFile file;
    Gate gate;
    harness->spawn(gate, stop_after(&harness.reactor(), 3));

    harness->run();

    REQUIRE(gate.count() == 0);
    bool done = false;
    harness->spawn(gate, everybody_else(&harness.reactor(), file.fd(), &done));
    drain(harness, gate);
    REQUIRE(done);
}
