// Goal: what is built on a reactor keeps its contract on every kind: pollers, watches of
// descriptors, gates, wait queues, offloads. Method: the same coroutines run on all kinds; what
// needs real descriptors or threads on the real ones. Nothing depends on how long anything takes:
// long deadlines stand for "never".

#include <cerrno>
#include <deque>
#include <map>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "core/fd_watch.h"
#include "core/offload.h"
#include "core/wait_queue.h"
#include "tests/core/reactor_log.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {
struct Seen {
    std::vector<FdWatch::Wake> wakes;
};
Task<void> watch_times(FdWatch* watch, Seen* seen, int times, Duration cap, CancelSource* cancel) {
    for (int i = 0; i < times; ++i) {
        const auto wake = co_await watch->wait(cap, cancel);
        seen->wakes.push_back(wake);
    }
}
Task<void> stop_watch(FdWatch* watch) {
    co_await watch->stop();
}
Task<void> pause(Reactor* reactor, Duration span) {
    const auto slept = co_await reactor->sleep_for(span);
    ENSURE(slept.has_value());
}
using Wake = FdWatch::Wake;
}  // namespace

namespace {

// Writes down when it is asked for what.
class NotingPoller final : public Poller {
public:
    explicit NotingPoller(std::string& notes) : notes_(notes) {}

    bool poll() override {
        notes_ += 'p';
        return false;
    }
    void end_of_turn() override { notes_ += 'f'; }
    Duration sleep_max() override {
        ++sleeps_asked;
        return 2ms;
    }

    int sleeps_asked = 0;

private:
    std::string& notes_;
};

Task<void> note_turns(Reactor* reactor, std::string* notes) {
    *notes += 'c';
    co_await reactor->yield();
    *notes += 'd';
}

Task<void> note_and_sleep(Reactor* reactor, std::string* notes) {
    co_await note_turns(reactor, notes);
    // Long beside what a busy machine adds to a sleep.
    const auto slept = co_await reactor->sleep_for(500ms);
    ENSURE(slept.has_value());
}

}  // namespace

TEST_CASE("core reactor: a poller is asked before the coroutines and sends after them", "[core]") {
    const Kind kind = GENERATE(from_range(kAllKinds));
    CAPTURE(kind);
    Harness harness(kind);
    std::string notes;
    NotingPoller poller(notes);
    harness->add_poller(poller);

    harness.run(note_turns(&harness.reactor(), &notes));
    harness->remove_poller(poller);
    const std::string seen = notes;
    harness.run(note_turns(&harness.reactor(), &notes));

    REQUIRE(seen.substr(0, 6) == "pcfpdf");
    REQUIRE(notes.substr(seen.size()) == "cd");
}

TEST_CASE("core reactor: a poller limits how long its reactor sleeps", "[core]") {
    const Kind kind = GENERATE(from_range(kRealKinds));
    CAPTURE(kind);
    Harness harness(kind);
    std::string notes;
    NotingPoller poller(notes);
    harness->add_poller(poller);

    harness.run(note_and_sleep(&harness.reactor(), &notes));
    harness->remove_poller(poller);

    // Sleeps of at most 2 ms, give or take what a busy machine adds to each.
    REQUIRE(poller.sleeps_asked >= 3);
}

TEST_CASE("core fd watch: is ready as long as there is something to read", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const Pipe pipe;
    FdWatch watch(harness.reactor(), pipe.read_end(), POLLIN);
    Seen seen;
    pipe.write("x");

    harness.run(watch_times(&watch, &seen, 3, 60s, nullptr));
    REQUIRE(seen.wakes == std::vector{Wake::kReady, Wake::kReady, Wake::kReady});

    std::array<char, 8> bytes;
    REQUIRE(::read(pipe.read_end(), bytes.data(), bytes.size()) == 1);
    harness.run(watch_times(&watch, &seen, 1, 2ms, nullptr));
    REQUIRE(seen.wakes.back() == Wake::kCap);

    pipe.write("y");  // Between two waits, into the poll that is still in the kernel.
    harness.run(pause(&harness.reactor(), 1ms));
    harness.run(watch_times(&watch, &seen, 1, 60s, nullptr));
    REQUIRE(seen.wakes.back() == Wake::kReady);
    harness.run(stop_watch(&watch));
}

TEST_CASE("core fd watch: cancel and stop end a wait", "[core]") {
    const Kind kind = real_kind();
    const bool stop = GENERATE(false, true);
    CAPTURE(kind, stop);
    Harness harness(kind);
    const Pipe pipe;
    FdWatch watch(harness.reactor(), pipe.read_end(), POLLIN);
    Seen seen;
    CancelSource source;
    Gate gate;
    harness->spawn(gate, watch_times(&watch, &seen, 2, 24h, &source));
    if (!stop) harness->spawn(gate, cancel_later(&harness.reactor(), &source, 3));
    if (stop) harness->spawn(gate, stop_watch(&watch));

    drain(harness, gate);

    REQUIRE(seen.wakes == std::vector{Wake::kCancelled, Wake::kCancelled});
    harness.run(stop_watch(&watch));
    harness.run(stop_watch(&watch));
}

TEST_CASE("core fd watch: a descriptor that cannot be polled waits for the cap", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    FdWatch watch(harness.reactor(), 987'654, POLLIN);
    Seen seen;
    const auto turns = harness->stats().turns.get();

    harness.run(watch_times(&watch, &seen, 3, 2ms, nullptr));

    REQUIRE(seen.wakes == std::vector{Wake::kCap, Wake::kCap, Wake::kCap});
    REQUIRE(harness->stats().turns.get() - turns < 60);
    harness.run(stop_watch(&watch));
}

TEST_CASE("core fd watch: a peer that hung up is something to look at", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Pipe pipe;
    FdWatch watch(harness.reactor(), pipe.read_end(), POLLIN);
    Seen seen;
    pipe.close_write_end();

    harness.run(watch_times(&watch, &seen, 1, 60s, nullptr));

    REQUIRE(seen.wakes.back() == Wake::kReady);
    watch.missed_wake();
    REQUIRE(harness->stats().missed_wakes.get() == 1);
}

namespace {
Task<void> yield_times(Reactor* reactor, int times, int* ended) {
    for (int i = 0; i < times; ++i) co_await reactor->yield();
    ++*ended;
}
Task<int> close_and_count(Gate* gate, Reactor* reactor, const int* ended) {
    co_await gate->close(*reactor);
    co_return *ended;
}
}  // namespace

TEST_CASE("core gate: close waits for the last one inside", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Gate gate;
    int ended = 0;
    for (int i = 0; i < 20; ++i) {
        harness->spawn(gate, yield_times(&harness.reactor(), i, &ended));
    }

    REQUIRE(harness.run(close_and_count(&gate, &harness.reactor(), &ended)) == 20);

    REQUIRE(gate.closed());
    REQUIRE(harness.run(close_and_count(&gate, &harness.reactor(), &ended)) == 20);
}

namespace {
Task<void> wait_and_note(WaitQueue* queue, WaitOptions wait, Log* log, std::string text) {
    const auto woken = co_await queue->wait(wait);
    log->push_back(text + " " + (woken ? "woken" : to_string(woken.error().code)));
}
Task<void> wake_two(Reactor* reactor, WaitQueue* queue, CancelSource* source) {
    co_await reactor->yield();
    ENSURE(queue->wake_one());
    source->cancel();
    ENSURE(queue->wake_one());
}
}  // namespace

TEST_CASE("core wait queue: the oldest is woken first, others time out or are cancelled",
          "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    WaitQueue queue(harness.reactor());
    REQUIRE(!queue.wake_one());
    Gate gate;
    Log log;
    CancelSource source;
    CancelSource cancelled;
    cancelled.cancel();
    Reactor* const reactor = &harness.reactor();
    const Instant later = after(reactor->now(), 60s);
    harness->spawn(gate, wait_and_note(&queue, {.deadline = later}, &log, "a"));
    harness->spawn(gate, wait_and_note(&queue, {.cancel = &source}, &log, "b"));
    harness->spawn(gate, wait_and_note(&queue, {.deadline = later, .cancel = &source}, &log, "c"));
    harness->spawn(gate, wait_and_note(&queue, {}, &log, "d"));
    // Not before the two turns in which the others end.
    const Instant soon = after(reactor->now(), 300ms);
    harness->spawn(gate, wait_and_note(&queue, {.deadline = soon}, &log, "e"));
    harness->spawn(gate, wait_and_note(&queue, {.deadline = Instant{}}, &log, "past"));
    harness->spawn(gate, wait_and_note(&queue, {.cancel = &cancelled}, &log, "before"));
    harness->spawn(gate, wake_two(reactor, &queue, &source));

    drain(harness, gate);

    REQUIRE(log == Log{"past timed out", "before cancelled", "a woken", "b cancelled",
                       "c cancelled", "d woken", "e timed out"});
    REQUIRE(queue.empty());
}

namespace {
std::unique_ptr<Offload> make_offload(Harness& harness, OffloadOptions options) {
    if (harness.world() == nullptr) {
        auto made = make_thread_offload(std::move(options));
        REQUIRE(made.has_value());
        return std::move(*made);
    }
    return make_virtual_offload(*harness.world(), std::move(options));
}
Task<int> offload_values(Reactor* reactor, Offload* offload) {
    int calls = 0;
    auto nothing = [&calls] { ++calls; };
    const auto none = co_await offload->run(*reactor, nothing);
    ENSURE(none.has_value());
    auto movable = [&calls] { return std::make_unique<int>(++calls); };
    const auto owned = co_await offload->run(*reactor, movable);
    ENSURE(owned.has_value());
    co_return **owned * 10 + calls;
}
Task<void> offload_one(Reactor* reactor, Offload* offload, std::atomic<int>* calls, int* done,
                       int* refused) {
    auto call = [calls] { return calls->fetch_add(1); };
    const auto result = co_await offload->run(*reactor, call);
    if (!result) ENSURE(result.error().code == Errc::kNoSpace);
    ++*(result ? done : refused);
}
}  // namespace

TEST_CASE("core offload: void and move-only results come back", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const auto offload = make_offload(harness, {});

    REQUIRE(harness.run(offload_values(&harness.reactor(), offload.get())) == 22);
}

TEST_CASE("core offload: many calls at once, each carried out once", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const auto offload = make_offload(harness, {.thread_count = 4, .queue_max = 5000});
    std::atomic<int> calls = 0;
    int done = 0;
    int refused = 0;
    Gate gate;
    for (int i = 0; i < 4000; ++i) {
        harness->spawn(gate,
                       offload_one(&harness.reactor(), offload.get(), &calls, &done, &refused));
    }

    drain(harness, gate);

    REQUIRE(calls == 4000);
    REQUIRE(done == 4000);
    REQUIRE(refused == 0);
}

namespace {
// A call that lasts until the test says so.
class Blocker {
public:
    void block() {
        entered_.store(true);
        entered_.notify_all();
        released_.wait(false);
    }
    void wait_until_entered() const { entered_.wait(false); }
    void release() {
        released_.store(true);
        released_.notify_all();
    }

private:
    std::atomic<bool> entered_ = false;
    std::atomic<bool> released_ = false;
};
Task<void> offload_blocker(Reactor* reactor, Offload* offload, Blocker* blocker) {
    auto call = [blocker] { blocker->block(); };
    const auto result = co_await offload->run(*reactor, call);
    ENSURE(result.has_value());
}
Task<void> release_blocker(Blocker* blocker) {
    blocker->release();
    co_return;
}
Task<void> wait_until_blocked(Blocker* blocker) {
    blocker->wait_until_entered();
    co_return;
}
}  // namespace

TEST_CASE("core offload: a full queue refuses", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const auto offload = make_offload(harness, {.thread_count = 1, .queue_max = 2});
    Reactor* const reactor = &harness.reactor();
    std::atomic<int> calls = 0;
    int done = 0;
    int refused = 0;
    Blocker blocker;
    Gate gate;
    harness->spawn(gate, offload_blocker(reactor, offload.get(), &blocker));
    harness->spawn(gate, wait_until_blocked(&blocker));
    for (int i = 0; i < 5; ++i) {
        harness->spawn(gate, offload_one(reactor, offload.get(), &calls, &done, &refused));
    }
    harness->spawn(gate, release_blocker(&blocker));

    drain(harness, gate);

    REQUIRE(done == 2);
    REQUIRE(refused == 3);
}

TEST_CASE("core offload: the simulated queue refuses too", "[core]") {
    Harness harness(Kind::kVirtual);
    const auto offload = make_offload(harness, {.thread_count = 1, .queue_max = 2});
    std::atomic<int> calls = 0;
    int done = 0;
    int refused = 0;
    Gate gate;
    for (int i = 0; i < 5; ++i) {
        harness->spawn(gate,
                       offload_one(&harness.reactor(), offload.get(), &calls, &done, &refused));
    }

    drain(harness, gate);

    REQUIRE(done == 3);
    REQUIRE(refused == 2);
}

namespace {

// Has one operation, which completes in the moment at which a spin of this length ends.
class LateBackend final : public Backend {
public:
    static constexpr Duration kSpin = 50us;

    bool has_slept = false;
    int waits = 0;

    const char* name() const override { return "late"; }
    Instant now() override { return now_ += 20us; }
    void submit(IoOp& op) override { op_ = &op; }
    void cancel(IoOp&) override {}
    void abandon(IoOp&) override {}
    void wait(Instant until) override {
        ++waits;
        const bool blocks = until > now_ && !has_completions();
        has_slept = has_slept || blocks;
        if (op_ != nullptr && (blocks || has_completions())) {
            IoOp& op = *std::exchange(op_, nullptr);
            op.in_flight = false;
            op.complete(op);
        }
        spins_since_ = now_;
    }
    bool has_completions() override {
        return op_ != nullptr && now_ >= spins_since_ + kSpin + 20us;
    }
    void wake() override {}

private:
    Instant now_{1s};
    Instant spins_since_{1s};
    IoOp* op_ = nullptr;
};

Task<void> do_nothing(Reactor* reactor, bool* done) {
    [[maybe_unused]] const auto result = co_await reactor->nop();
    *done = true;
}

}  // namespace

TEST_CASE("core reactor: a completion in the moment at which a spin ends is not slept over",
          "[core]") {
    auto owned = std::make_unique<LateBackend>();
    LateBackend& backend = *owned;
    Reactor reactor(std::move(owned), {.spin = LateBackend::kSpin});
    bool done = false;

    reactor.run_until_done(do_nothing(&reactor, &done));

    CHECK(done);
    CHECK(!backend.has_slept);
    CHECK(reactor.stats().sleeps.get() == 0);
    CHECK(reactor.stats().spins_won.get() == 1);
}

namespace {

// Finds work when it is asked for the third time, in a spin; the turn that follows ends the run.
struct FindingPoller final : Poller {
    explicit FindingPoller(Reactor& owner) : reactor(owner) {}
    bool poll() override { return ++asked == 3; }
    void end_of_turn() override {
        if (asked == 3) reactor.stop();
    }
    Duration sleep_max() override { return Duration::max(); }

    Reactor& reactor;
    int asked = 0;
};

}  // namespace

TEST_CASE("core reactor: work that a poller finds in a spin is done before the kernel is entered",
          "[core]") {
    auto owned = std::make_unique<LateBackend>();
    const LateBackend& backend = *owned;
    Reactor reactor(std::move(owned), {.spin = LateBackend::kSpin});
    FindingPoller poller(reactor);
    reactor.add_poller(poller);

    reactor.run();

    reactor.remove_poller(poller);
    CHECK(reactor.stats().turns.get() == 2);
    CHECK(backend.waits == 1);  // At the beginning of the spin.
}

namespace {

struct WishingPoller final : Poller {
    explicit WishingPoller(Look look) : wish(look) {}
    bool poll() override { return false; }
    void end_of_turn() override {}
    Duration sleep_max() override { return Duration::max(); }
    Look look() const override { return wish; }

    const Look wish;
};

}  // namespace

TEST_CASE("core reactor: it spins if a poller wants it, and none forbids it", "[core]") {
    using enum Poller::Look;
    struct Row {
        std::vector<Poller::Look> wishes;
        bool spins;
    };
    const Row row = GENERATE(
        Row{{}, true}, Row{{kNoNeed}, false}, Row{{kIfItPays}, true}, Row{{kAlways}, true},
        Row{{kNever}, false}, Row{{kIfItPays, kNoNeed}, true}, Row{{kNoNeed, kAlways}, true},
        Row{{kNever, kIfItPays}, false}, Row{{kAlways, kNever, kNoNeed}, false});
    Reactor reactor(std::make_unique<LateBackend>(), {.spin = LateBackend::kSpin});
    std::deque<WishingPoller> pollers;
    for (const Poller::Look wish : row.wishes) reactor.add_poller(pollers.emplace_back(wish));
    bool done = false;

    reactor.run_until_done(do_nothing(&reactor, &done));

    for (WishingPoller& poller : pollers) reactor.remove_poller(poller);
    CHECK(done);
    CHECK((reactor.stats().spins_won.get() + reactor.stats().spins_lost.get() > 0) == row.spins);
}
