// Goal: every reactor keeps the contract of core/reactor.h and of what is built on it.
// Method: the same coroutines run on all kinds; what needs real descriptors or threads on the real
// ones. Nothing depends on how long anything takes: long deadlines stand for "never".

#include <cerrno>
#include <map>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "core/fd_watch.h"
#include "core/offload.h"
#include "core/remote.h"
#include "core/wait_queue.h"
#include "tests/core/reactor_kinds.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {

using Log = std::vector<std::string>;

Kind any_kind() {
    return GENERATE(from_range(kAllKinds.begin(), kAllKinds.end()));
}
Kind real_kind() {
    return GENERATE(from_range(kRealKinds.begin(), kRealKinds.end()));
}

Task<void> note(Log* log, std::string text) {
    log->push_back(std::move(text));
    co_return;
}

Task<void> close_gate(Gate* gate, Reactor* reactor) {
    co_await gate->close(*reactor);
}

Task<void> sleep_then_note(Reactor* reactor, Log* log, Instant deadline, std::string text) {
    const auto slept = co_await reactor->sleep_until(deadline);
    log->push_back(text + (slept ? "" : " cancelled"));
}

// Ends when every task of `gate` has ended.
void drain(Harness& harness, Gate& gate) {
    harness.run(close_gate(&gate, &harness.reactor()));
}

}  // namespace

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

namespace {
Task<void> yield_and_note(Reactor* reactor, Log* log, std::string text, int rounds) {
    for (int i = 0; i < rounds; ++i) {
        log->push_back(text);
        co_await reactor->yield();
    }
}
}  // namespace

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
Task<void> cancel_later(Reactor* reactor, CancelSource* source, int rounds) {
    for (int i = 0; i < rounds; ++i) co_await reactor->yield();
    source->cancel();
}
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

// -- messages --

namespace {
struct Counted final : Message {
    Counted() : Message(&on_deliver) {}
    static void on_deliver(Message& message) {
        auto& self = static_cast<Counted&>(message);
        self.log->push_back(self.value);
        if (self.then != nullptr) self.reactor->post(*std::exchange(self.then, nullptr));
    }
    std::vector<int>* log = nullptr;
    int value = 0;
    Reactor* reactor = nullptr;
    Message* then = nullptr;
};
}  // namespace

TEST_CASE("core reactor: messages come in order, and one may post another", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    std::vector<int> log;
    std::array<Counted, 5> messages;
    for (int i = 0; i < 5; ++i) {
        messages[static_cast<std::size_t>(i)].log = &log;
        messages[static_cast<std::size_t>(i)].value = i;
        messages[static_cast<std::size_t>(i)].reactor = &harness.reactor();
    }
    messages[0].then = &messages[4];
    for (std::size_t i = 0; i < 4; ++i) harness->post(messages[i]);
    Log ignored;

    harness.run(yield_and_note(&harness.reactor(), &ignored, "x", 4));

    REQUIRE(log == std::vector<int>{0, 1, 2, 3, 4});
}

namespace {
struct StopMessage final : Message {
    explicit StopMessage(Reactor& owner) : Message(&on_deliver), reactor(owner) {}
    static void on_deliver(Message& message) { static_cast<StopMessage&>(message).reactor.stop(); }
    Reactor& reactor;
};

// A reactor on a thread of its own.
class Remote {
public:
    explicit Remote(Kind kind, ReactorOptions options = {}, UringOptions uring = {})
        : reactor_(make_real_reactor(kind, options, uring)), thread_([this] { reactor_->run(); }) {}
    ~Remote() { stop(); }
    void stop() {
        if (!thread_.joinable()) return;
        StopMessage message(*reactor_);
        reactor_->post(message);
        thread_.join();
    }
    Reactor& reactor() { return *reactor_; }

private:
    std::unique_ptr<Reactor> reactor_;
    std::thread thread_;
};

Task<std::uint64_t> ping_pong(Reactor* here, Reactor* there, int rounds) {
    std::uint64_t sum = 0;
    auto job = [&sum] { return ++sum; };
    std::uint64_t last = 0;
    for (int i = 0; i < rounds; ++i) last = co_await run_on(*here, *there, job);
    co_return last;
}
}  // namespace

TEST_CASE("core reactor: no wake-up is lost in many round trips between threads", "[core]") {
    const Kind here_kind = real_kind();
    const Kind there_kind = real_kind();
    const Duration spin = GENERATE(Duration(0us), Duration(20us));
    CAPTURE(here_kind, there_kind, spin.count());
    const auto here = make_real_reactor(here_kind, {.spin = spin});
    Remote there(there_kind, {.spin = spin});

    const auto last = here->run_until_done(ping_pong(here.get(), &there.reactor(), 25'000));

    REQUIRE(last == 25'000);
    there.stop();
}

namespace {
struct Numbered final : Message {
    Numbered() : Message(&on_deliver) {}
    static void on_deliver(Message& message) {
        auto& self = static_cast<Numbered&>(message);
        auto& seen = (*self.seen)[self.sender];
        ENSURE(seen == self.number);
        ++seen;
        if (--*self.left == 0) self.reactor->stop();
    }
    std::array<int, 4>* seen = nullptr;
    int* left = nullptr;
    Reactor* reactor = nullptr;
    std::size_t sender = 0;
    int number = 0;
};
}  // namespace

TEST_CASE("core reactor: four senders, one receiver: all arrive, in each sender's order",
          "[core]") {
    constexpr int kEach = 50'000;
    const Kind kind = real_kind();
    CAPTURE(kind);
    const auto reactor = make_real_reactor(kind);
    std::array<int, 4> seen{};
    int left = 4 * kEach;
    std::array<std::vector<Numbered>, 4> messages;
    for (std::size_t sender = 0; sender < 4; ++sender) {
        messages[sender] = std::vector<Numbered>(kEach);
        for (int i = 0; i < kEach; ++i) {
            Numbered& message = messages[sender][static_cast<std::size_t>(i)];
            message.seen = &seen;
            message.left = &left;
            message.reactor = reactor.get();
            message.sender = sender;
            message.number = i;
        }
    }

    std::vector<std::thread> senders;
    for (auto& mine : messages) {
        senders.emplace_back([&mine, &reactor] {
            for (Numbered& message : mine) reactor->post(message);
        });
    }
    reactor->run();
    for (std::thread& sender : senders) sender.join();

    REQUIRE(left == 0);
    REQUIRE(seen == std::array<int, 4>{kEach, kEach, kEach, kEach});
}

namespace {
Task<int> remote_results(Reactor* here, Reactor* there) {
    int calls = 0;
    auto nothing = [&calls] { ++calls; };
    co_await run_on(*here, *there, nothing);
    auto movable = [&calls] { return std::make_unique<int>(++calls); };
    const std::unique_ptr<int> owned = co_await run_on(*here, *there, movable);
    auto fallible = [&calls]() -> Result<int> { return ++calls; };
    const Result<int> result = co_await run_on(*here, *there, fallible);
    co_return *owned * 100 + *result * 10 + calls;
}
}  // namespace

TEST_CASE("core run_on: void, move-only and Result come back", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);

    REQUIRE(harness.run(remote_results(&harness.reactor(), &harness.reactor())) == 233);
}

TEST_CASE("core run_on: between threads", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    const auto here = make_real_reactor(kind);
    Remote there(kind);

    REQUIRE(here->run_until_done(remote_results(here.get(), &there.reactor())) == 233);
    there.stop();
}

// -- I/O --

namespace {
Task<void> write_and_read_back(Reactor* reactor, int fd) {
    const auto nothing = co_await reactor->nop();
    ENSURE(nothing.has_value() && *nothing == 0);
    const auto file = reactor->attach(fd);
    ENSURE(file.has_value());
    std::string text = "0123456789";
    const auto written = co_await reactor->write(*file, buffer_of(text), 5);
    ENSURE(written.has_value() && *written == 10);
    const auto data_synced = co_await reactor->sync_data(*file);
    ENSURE(data_synced.has_value() && *data_synced == 0);
    const auto synced = co_await reactor->sync(*file);
    ENSURE(synced.has_value() && *synced == 0);

    std::string back(64, '?');
    const auto read = co_await reactor->read(*file, buffer_of(back), 5);
    ENSURE(read.has_value() && *read == 10);  // A short read at the end is a length.
    ENSURE(back.substr(0, 11) == "0123456789?");
    const auto beyond = co_await reactor->read(*file, buffer_of(back), 4096);
    ENSURE(beyond.has_value() && *beyond == 0);
    reactor->detach(*file);
}
}  // namespace

TEST_CASE("core reactor: a file on disk or in memory is written, synced and read back", "[core]") {
    const Kind kind = any_kind();
    const bool in_memory = GENERATE(false, true);
    CAPTURE(kind, in_memory);
    Harness harness(kind);
    const TempFile temp_file;
    const MemoryFile memory_file;

    harness.run(
        write_and_read_back(&harness.reactor(), in_memory ? memory_file.fd() : temp_file.fd()));

    REQUIRE(harness->stats().io_submitted.get() == harness->stats().io_completed.get());
}

namespace {
Task<void> note_when_done(Reactor* reactor, File file, std::string* order, char name) {
    std::string into(8, '?');
    const auto read = co_await reactor->read(file, buffer_of(into), 0);
    ENSURE(read.has_value());
    order->push_back(name);
}
Task<void> read_beside(Reactor* reactor, int fd, std::string* order) {
    const auto file = reactor->attach(fd);
    ENSURE(file.has_value());
    Gate gate;
    reactor->spawn(gate, note_when_done(reactor, *file, order, 'a'));
    reactor->spawn(gate, note_when_done(reactor, *file, order, 'b'));
    order->push_back('1');
    co_await reactor->yield();
    order->push_back('2');
    co_await gate.close(*reactor);
    reactor->detach(*file);
}
}  // namespace

TEST_CASE("core reactor: reads of memory are over in a later turn, in order", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    Harness harness(kind);
    const MemoryFile file;
    std::string order;

    harness.run(read_beside(&harness.reactor(), file.fd(), &order));

    REQUIRE(order == "12ab");
}

namespace {
Task<Result<std::uint32_t>> read_once(Reactor* reactor, File file, WaitOptions wait) {
    std::string into(16, '?');
    co_return co_await reactor->read(file, buffer_of(into), 0, wait);
}
Task<Result<std::uint32_t>> poll_once(Reactor* reactor, int fd, std::uint32_t events,
                                      WaitOptions wait) {
    co_return co_await reactor->poll(fd, events, wait);
}
}  // namespace

TEST_CASE("core reactor: a bad descriptor is an error with its errno", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);

    const auto read = harness.run(read_once(&harness.reactor(), File{.fd = -1}, {}));

    REQUIRE(!read.has_value());
    REQUIRE(read.error().code == Errc::kInvalid);
    REQUIRE(read.error().os_errno == EBADF);
}

TEST_CASE("core reactor: polling a bad descriptor is an error", "[core]") {
    const Kind kind = real_kind();
    const int fd = GENERATE(-1, 987'654);
    CAPTURE(kind, fd);
    Harness harness(kind);
    const WaitOptions wait{.deadline = after(harness->now(), 60s)};

    const auto polled = harness.run(poll_once(&harness.reactor(), fd, POLLIN, wait));

    REQUIRE(!polled.has_value());
    REQUIRE(polled.error().os_errno == EBADF);
}

TEST_CASE("core reactor: the simulated world has nothing to poll", "[core]") {
    Harness harness(Kind::kVirtual);
    const TempFile file;

    const auto polled = harness.run(poll_once(&harness.reactor(), file.fd(), POLLIN, {}));

    REQUIRE(!polled.has_value());
    REQUIRE(polled.error().code == Errc::kUnsupported);
}

namespace {
Task<void> write_slots(Reactor* reactor, std::vector<File>* files) {
    for (std::size_t i = 0; i < files->size(); ++i) {
        std::string text = "file " + std::to_string(i);
        const auto written = co_await reactor->write((*files)[i], buffer_of(text), 0);
        ENSURE(written.has_value() && *written == text.size());
    }
    for (std::size_t i = 0; i < files->size(); ++i) {
        const std::string want = "file " + std::to_string(i);
        std::string back(want.size(), '?');
        const auto read = co_await reactor->read((*files)[i], buffer_of(back), 0);
        ENSURE(read.has_value() && *read == want.size());
        ENSURE(back == want);
    }
}
}  // namespace

TEST_CASE("core reactor: more files than slots, and slots used again", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind, {.file_slots = 3});
    std::vector<std::unique_ptr<TempFile>> temporary;
    for (int i = 0; i < 5; ++i) temporary.push_back(std::make_unique<TempFile>());

    for (int round = 0; round < 3; ++round) {
        std::vector<File> files;
        for (const auto& each : temporary) {
            const auto attached = harness->attach(each->fd());
            REQUIRE(attached.has_value());
            files.push_back(*attached);
        }
        harness.run(write_slots(&harness.reactor(), &files));
        for (const File& file : files) harness->detach(file);
        std::ranges::reverse(temporary);
    }
}

namespace {
Task<void> through_region(Reactor* reactor, int fd, Buffer region) {
    const Buffer first{.data = region.data, .size_bytes = 4096, .region = region.region};
    const Buffer second{.data = region.data + 8192, .size_bytes = 4096, .region = region.region};
    for (std::size_t i = 0; i < 4096; ++i) first.data[i] = static_cast<std::byte>(i % 251);
    const auto written = co_await reactor->write(File{.fd = fd}, first, 0);
    ENSURE(written.has_value() && *written == 4096);
    const auto read = co_await reactor->read(File{.fd = fd}, second, 0);
    ENSURE(read.has_value() && *read == 4096);
    ENSURE(std::ranges::equal(first.span(), second.span()));
}
}  // namespace

TEST_CASE("core reactor: memory of a registered region is written and read", "[core]") {
    const Kind kind = GENERATE(Kind::kUring, Kind::kVirtual);
    CAPTURE(kind);
    Harness harness(kind, {.region_slots = 1});
    const TempFile file;
    std::vector<std::byte> memory(64UL * 1024);
    for (int round = 0; round < 3; ++round) {
        const auto region = harness->attach_region(memory);
        REQUIRE(region.has_value());
        REQUIRE(region->region >= 0);
        harness.run(through_region(&harness.reactor(), file.fd(), *region));
        harness->detach_region(*region);
    }
}

TEST_CASE("core reactor: regions beyond the table are refused, files of poll have none", "[core]") {
    std::vector<std::byte> memory(4096);
    Harness uring(Kind::kUring, {.region_slots = 1});
    const auto first = uring->attach_region(memory);
    REQUIRE(first.has_value());
    REQUIRE(uring->attach_region(memory).error().code == Errc::kNoSpace);
    uring->detach_region(*first);

    Harness poll(Kind::kPoll);
    REQUIRE(poll->attach_region(memory).error().code == Errc::kUnsupported);
}

namespace {
enum class Ending { kDeadline, kPastDeadline, kCancel, kCancelledBefore };
}

TEST_CASE("core reactor: I/O that never completes ends by deadline or cancel", "[core]") {
    const Kind kind = real_kind();
    // poll(2) reads files only, and blocks in them.
    const bool read = kind == Kind::kPoll ? false : GENERATE(true, false);
    const auto ending = GENERATE(Ending::kDeadline, Ending::kPastDeadline, Ending::kCancel,
                                 Ending::kCancelledBefore);
    CAPTURE(kind, read, static_cast<int>(ending));
    Harness harness(kind);
    const Pipe pipe;
    Gate gate;
    CancelSource source;
    WaitOptions wait{.cancel = &source};
    if (ending == Ending::kDeadline) wait.deadline = after(harness->now(), 1ms);
    if (ending == Ending::kPastDeadline) wait.deadline = Instant{};
    if (ending == Ending::kCancel) {
        harness->spawn(gate, cancel_later(&harness.reactor(), &source, 3));
    }
    if (ending == Ending::kCancelledBefore) source.cancel();

    Reactor* const reactor = &harness.reactor();
    const auto ended = harness.run(read ? read_once(reactor, File{.fd = pipe.read_end()}, wait)
                                        : poll_once(reactor, pipe.read_end(), POLLIN, wait));

    REQUIRE(!ended.has_value());
    const bool by_time = ending == Ending::kDeadline || ending == Ending::kPastDeadline;
    REQUIRE(ended.error().code == (by_time ? Errc::kTimedOut : Errc::kCancelled));
    REQUIRE(harness->stats().io_submitted.get() == harness->stats().io_completed.get());
    drain(harness, gate);
}

namespace {
// Returns with what the kernel put into the buffer although the wait was cancelled; the buffer
// lives in this frame, so that a kernel that wrote later would write into freed memory.
Task<Result<std::uint32_t>> cancel_at_once(Reactor* reactor, int fd, CancelSource* source) {
    std::string into(4096, '?');
    const WaitOptions wait{.cancel = source};
    const auto read = co_await reactor->read(File{.fd = fd}, buffer_of(into), 0, wait);
    if (read) ENSURE(into.substr(0, *read) == std::string(*read, 'x'));
    co_return read;
}
Task<void> write_then_cancel(Reactor* reactor, const Pipe* pipe, CancelSource* source, int rounds) {
    for (int i = 0; i < rounds; ++i) co_await reactor->yield();
    pipe->write("xxxx");
    source->cancel();
}
}  // namespace

TEST_CASE("core reactor: a cancel that races the completion gives one of the two", "[core]") {
    for (int rounds = 0; rounds < 200; ++rounds) {
        Harness harness(Kind::kUring);
        const Pipe pipe;
        Gate gate;
        CancelSource source;
        harness->spawn(gate, write_then_cancel(&harness.reactor(), &pipe, &source, 1 + rounds % 4));

        const auto read = harness.run(cancel_at_once(&harness.reactor(), pipe.read_end(), &source));

        REQUIRE((read ? *read == 4 : read.error().code == Errc::kCancelled));
        drain(harness, gate);
    }
}

namespace {
struct TwoFds {
    int poll_this;
    int write_that;
};
TwoFds make_pair_of(const std::string& what) {
    int ends[2] = {-1, -1};
    if (what == "pipe") {
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    } else if (what == "socket") {
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    } else {
        ends[0] = ::eventfd(0, EFD_CLOEXEC);
        ends[1] = ::dup(ends[0]);
    }
    return {.poll_this = ends[0], .write_that = ends[1]};
}
Task<void> write_later(Reactor* reactor, int fd) {
    co_await reactor->yield();
    co_await reactor->yield();
    const std::uint64_t one = 1;
    ENSURE(::write(fd, &one, sizeof one) == sizeof one);
}
}  // namespace

TEST_CASE("core reactor: poll sees present and later events", "[core]") {
    const Kind kind = real_kind();
    const std::string what = GENERATE("pipe", "socket", "eventfd");
    const bool before = GENERATE(true, false);
    CAPTURE(kind, what, before);
    Harness harness(kind);
    const TwoFds fds = make_pair_of(what);
    Gate gate;
    if (before) {
        const std::uint64_t one = 1;
        REQUIRE(::write(fds.write_that, &one, sizeof one) == sizeof one);
    } else {
        harness->spawn(gate, write_later(&harness.reactor(), fds.write_that));
    }

    const auto polled = harness.run(poll_once(&harness.reactor(), fds.poll_this, POLLIN, {}));

    REQUIRE(polled.has_value());
    REQUIRE((*polled & POLLIN) != 0);
    drain(harness, gate);
    ::close(fds.poll_this);
    ::close(fds.write_that);
}

namespace {
Task<void> read_number(Reactor* reactor, int fd, std::uint32_t index, int* right) {
    std::uint32_t number = 0;
    const auto bytes = std::as_writable_bytes(std::span(&number, 1));
    const auto read = co_await reactor->read(File{.fd = fd}, buffer_of(bytes),
                                             std::uint64_t{index} * sizeof number);
    if (read && *read == sizeof number && number == index) ++*right;
}
Task<void> do_nop(Reactor* reactor, int* right) {
    const auto done = co_await reactor->nop();
    if (done) ++*right;
}
}  // namespace

TEST_CASE("core reactor: far more operations at once than the ring has entries", "[core]") {
    constexpr std::uint32_t kCount = 2500;
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind, {.submission_entries = 8});
    const TempFile file;
    std::vector<std::uint32_t> numbers(kCount);
    for (std::uint32_t i = 0; i < kCount; ++i) numbers[i] = i;
    const auto size = static_cast<ssize_t>(kCount * sizeof numbers[0]);
    REQUIRE(::pwrite(file.fd(), numbers.data(), static_cast<std::size_t>(size), 0) == size);
    Gate gate;
    int right = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) {
        harness->spawn(gate, read_number(&harness.reactor(), file.fd(), i, &right));
        harness->spawn(gate, do_nop(&harness.reactor(), &right));
    }

    drain(harness, gate);

    REQUIRE(right == 2 * kCount);
}

namespace {
Task<void> poll_until_cancel(Reactor* reactor, int fd, CancelSource* source, int* cancelled) {
    const WaitOptions wait{.cancel = source};
    const auto polled = co_await reactor->poll(fd, POLLIN, wait);
    if (!polled && polled.error().code == Errc::kCancelled) ++*cancelled;
}
}  // namespace

TEST_CASE("core reactor: a great many waits are cancelled at once", "[core]") {
    constexpr int kCount = 500;
    const Kind kind = real_kind();
    const int rounds = GENERATE(1, 4);
    CAPTURE(kind, rounds);
    Harness harness(kind, {.submission_entries = 8});
    const Pipe pipe;
    Gate gate;
    CancelSource source;
    int cancelled = 0;
    for (int i = 0; i < kCount; ++i) {
        harness->spawn(gate,
                       poll_until_cancel(&harness.reactor(), pipe.read_end(), &source, &cancelled));
    }
    harness->spawn(gate, cancel_later(&harness.reactor(), &source, rounds));

    drain(harness, gate);

    REQUIRE(cancelled == kCount);
}

namespace {
Task<Result<std::uint32_t>> read_huge(Reactor* reactor, int fd, std::span<std::byte> memory) {
    // The address space is mapped without pages: only what the file holds is ever touched.
    co_return co_await reactor->read(File{.fd = fd}, buffer_of(memory), 0);
}
}  // namespace

TEST_CASE("core reactor: a buffer of 4 GiB is not mistaken for an empty one", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    constexpr std::size_t kSize = 4ULL << 30;
    Harness harness(kind);
    const TempFile file;
    REQUIRE(::pwrite(file.fd(), "hello", 5, 0) == 5);
    void* const memory = ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory != MAP_FAILED);

    const auto read = harness.run(read_huge(&harness.reactor(), file.fd(),
                                            std::span(static_cast<std::byte*>(memory), kSize)));

    REQUIRE(read.has_value());
    REQUIRE(*read == 5);
    ::munmap(memory, kSize);
}

TEST_CASE("core reactor: a ring that goes away on another thread leaves this one's alone",
          "[core]") {
    // The kernel itself protects the default kind of ring; others it does not.
    const auto mine = make_real_reactor(Kind::kUring, {}, {.sqpoll = true});
    const TempFile file;
    mine->run_until_done(write_and_read_back(mine.get(), file.fd()));
    {
        Remote other(Kind::kUring, {}, {.sqpoll = true});
        REQUIRE(mine->run_until_done(remote_results(mine.get(), &other.reactor())) == 233);
        other.stop();
    }  // Destroyed here, though another thread used it.

    const WaitOptions wait{.deadline = after(mine->now(), 20ms)};
    const Pipe pipe;
    const auto turns = mine->stats().turns.get();
    const auto polled = mine->run_until_done(poll_once(mine.get(), pipe.read_end(), POLLIN, wait));
    REQUIRE(polled.error().code == Errc::kTimedOut);
    REQUIRE(mine->stats().turns.get() - turns < 100);  // It slept.
    mine->run_until_done(write_and_read_back(mine.get(), file.fd()));
}

namespace {
struct Chain final : IoOp {
    explicit Chain(Reactor& owner) : IoOp(&on_done), reactor(owner) {}
    static void on_done(IoOp& op) {
        auto& self = static_cast<Chain&>(op);
        self.results.push_back(self.result);
        self.reactor.post(self.message);
        if (self.results.size() < 5) self.reactor.submit(self);
    }
    Reactor& reactor;
    std::vector<int> results;
    std::vector<int> delivered;
    struct Note final : Message {
        explicit Note(Chain& owner) : Message(&on_deliver), chain(owner) {}
        static void on_deliver(Message& message) {
            Chain& chain = static_cast<Note&>(message).chain;
            chain.delivered.push_back(1);
        }
        Chain& chain;
    } message{*this};
};
Task<void> until_delivered(Reactor* reactor, const Chain* chain) {
    while (chain->delivered.size() < 5) {
        const auto slept = co_await reactor->sleep_for(100us);
        ENSURE(slept.has_value());
    }
}
}  // namespace

TEST_CASE("core reactor: a completion may post and submit again", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    Chain chain(harness.reactor());
    harness->submit(chain);

    harness.run(until_delivered(&harness.reactor(), &chain));

    REQUIRE(chain.results == std::vector<int>{0, 0, 0, 0, 0});
}

// -- what is built on the reactor --

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
    Look look() const override { return Look::kNot; }

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

    // Pieces of at most 2 ms, give or take what a busy machine adds to each.
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
