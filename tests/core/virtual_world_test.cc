// Goal: the simulated world is exact in time, the same for the same seed, and can be torn down
// wherever its coroutines are.
// Method: small crowds of reactors; the trace hash and an event log of the test's own are compared.

#include "core/virtual_world.h"

#include "core/offload.h"
#include "core/remote.h"
#include "core/wait_queue.h"
#include "tests/core/reactor_kinds.h"
#include "tests/replay.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {

// The world of a test: its failures say how to have them again.
class ReplayedWorld : fopd::testing::Replay, public VirtualWorld {
public:
    explicit ReplayedWorld(std::uint64_t seed) : Replay(seed), VirtualWorld(seed) {}
};

using Log = std::vector<std::string>;

struct Node {
    std::unique_ptr<Reactor> reactor;
    Gate gate;
    std::uint64_t beats = 0;
};

// Sleeps, asks the next node, writes a file and calls a blocking function, again and again.
Task<void> busy_node(VirtualWorld* world, Node* me, Node* next, Offload* offload, int fd, Log* log,
                     std::size_t id, CancelSource* stop) {
    for (int round = 0; round < 20; ++round) {
        const Duration span{world->random().between(1'000, 5'000'000)};
        const auto slept = co_await me->reactor->sleep_for(span, stop);
        if (!slept) co_return;
        auto job = [next] { return ++next->beats; };
        const auto beats = co_await run_on(*me->reactor, *next->reactor, job);
        std::string text = std::to_string(beats);
        const auto written = co_await me->reactor->write(File{.fd = fd}, buffer_of(text), id * 64);
        auto call = [&written] { return written.has_value(); };
        const auto called = co_await offload->run(*me->reactor, call);
        log->push_back(std::to_string(id) + ":" + std::to_string(beats) + ":" +
                       std::to_string(me->reactor->now().time_since_epoch().count()) +
                       (called ? "" : " refused"));
    }
}

struct Run {
    Log log;
    std::uint64_t hash = 0;
    bool operator==(const Run&) const = default;
};

Run run_crowd(std::uint64_t seed) {
    Run run;
    const TempFile file;
    CancelSource stop;
    ReplayedWorld world(seed);
    const auto offload = make_virtual_offload(world, {.thread_count = 2, .queue_max = 4});
    std::array<Node, 8> nodes;
    for (Node& node : nodes) node.reactor = world.make_reactor();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        Node& node = nodes[i];
        node.reactor->spawn(node.gate, busy_node(&world, &node, &nodes[(i + 1) % nodes.size()],
                                                 offload.get(), file.fd(), &run.log, i, &stop));
    }
    world.run_for(10min);
    for (Node& node : nodes) REQUIRE(node.gate.count() == 0);
    run.hash = world.trace_hash();
    return run;
}

}  // namespace

TEST_CASE("core virtual world: the same seed gives the same run", "[core]") {
    const std::uint64_t seed = GENERATE(1U, 2U, 77U);
    CAPTURE(seed);

    const Run first = run_crowd(seed);

    REQUIRE(first.log.size() == 160);
    REQUIRE(run_crowd(seed) == first);
}

TEST_CASE("core virtual world: another seed gives another interleaving", "[core]") {
    const Run one = run_crowd(1);
    const Run two = run_crowd(2);

    REQUIRE(one.hash != two.hash);
    REQUIRE(one.log != two.log);
}

namespace {
Task<void> note_start(Log* log, std::string name) {
    log->push_back(std::move(name));
    co_return;
}
}  // namespace

TEST_CASE("core virtual world: the seed alone decides which reactor goes first", "[core]") {
    std::vector<Log> orders;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        Log log;
        ReplayedWorld world(seed);
        std::array<Node, 3> nodes;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            nodes[i].reactor = world.make_reactor();
            nodes[i].reactor->spawn(nodes[i].gate, note_start(&log, std::to_string(i)));
        }
        world.run_for(0s);
        REQUIRE(log.size() == 3);
        if (std::ranges::find(orders, log) == orders.end()) orders.push_back(log);
    }

    REQUIRE(orders.size() == 6);  // Every order there is.
}

TEST_CASE("core virtual world: what a test traces is part of the hash", "[core]") {
    ReplayedWorld one(3);
    ReplayedWorld two(3);
    REQUIRE(one.trace_hash() == two.trace_hash());

    one.trace(1);
    two.trace(2);

    REQUIRE(one.trace_hash() != two.trace_hash());
}

// -- time --

namespace {
Task<void> note_times(Reactor* reactor, std::vector<Instant>* times, Duration span, int count) {
    for (int i = 0; i < count; ++i) {
        const auto slept = co_await reactor->sleep_for(span);
        ENSURE(slept.has_value());
        times->push_back(reactor->now());
    }
}
}  // namespace

TEST_CASE("core virtual world: time jumps to the next deadline, exactly", "[core]") {
    ReplayedWorld world(1);
    const auto reactor = world.make_reactor();
    std::vector<Instant> times;
    Gate gate;
    reactor->spawn(gate, note_times(reactor.get(), &times, 1h, 1000));

    world.run_until(Instant{2h + 1ns});
    REQUIRE(times == std::vector{Instant{1h}, Instant{2h}});
    REQUIRE(world.now() == Instant{2h + 1ns});

    world.run_until(Instant{3h - 1ns});
    REQUIRE(times.size() == 2);
    REQUIRE(world.now() == Instant{3h - 1ns});

    world.run_until(Instant{3h});  // What is due at the end still happens.
    REQUIRE(times.size() == 3);
    REQUIRE(world.now() == Instant{3h});

    world.run_until(Instant{1h});  // Time does not go back.
    REQUIRE(world.now() == Instant{3h});

    while (world.step()) {
    }
    REQUIRE(times.size() == 1000);
    REQUIRE(world.now() == Instant{1000h});  // At rest, the time stands where it was.
}

TEST_CASE("core virtual world: its clock and its reactors agree", "[core]") {
    ReplayedWorld world(1);
    const auto reactor = world.make_reactor();
    const std::int64_t wall = world.clock().wall().unix_ns;

    world.run_for(5s);

    REQUIRE(world.clock().now() == Instant{5s});
    REQUIRE(world.clock().wall().unix_ns - wall == Duration(5s).count());
    const auto later = world.make_reactor();
    REQUIRE(later->now() == Instant{5s});
}

TEST_CASE("core virtual world: a stalled reactor has no turn until its time", "[core]") {
    ReplayedWorld world(1);
    const auto stalled = world.make_reactor();
    const auto other = world.make_reactor();
    std::vector<Instant> stalled_times;
    std::vector<Instant> other_times;
    Gate gate;
    Gate other_gate;
    stalled->spawn(gate, note_times(stalled.get(), &stalled_times, 1s, 5));
    other->spawn(other_gate, note_times(other.get(), &other_times, 1s, 5));
    world.run_until(Instant{1500ms});

    world.stall(*stalled, Instant{10s});
    world.run_until(Instant{9s});
    REQUIRE(stalled_times.size() == 1);
    REQUIRE(other_times.size() == 5);

    world.run_until(Instant{20s});
    const std::vector<Instant> want{Instant{1s}, Instant{10s}, Instant{11s}, Instant{12s},
                                    Instant{13s}};
    REQUIRE(stalled_times == want);
}

namespace {
Task<std::uint64_t> ask(Reactor* here, Reactor* there) {
    auto job = [there] { return there->now().time_since_epoch().count(); };
    const auto answer = co_await run_on(*here, *there, job);
    co_return static_cast<std::uint64_t>(answer);
}
}  // namespace

TEST_CASE("core virtual world: a message to a stalled reactor waits with it", "[core]") {
    ReplayedWorld world(5);
    const auto here = world.make_reactor();
    const auto there = world.make_reactor();
    world.run_for(1s);
    world.stall(*there, Instant{7s});

    const auto answer = world.run(*here, ask(here.get(), there.get()));

    REQUIRE(answer == std::uint64_t{7'000'000'000});
    REQUIRE(world.now() == Instant{7s});
}

namespace {
Task<int> wait_for_ever(WaitQueue* queue) {
    const auto woken = co_await queue->wait({});
    co_return woken ? 1 : 0;
}
Task<void> wait_for_ever_void(WaitQueue* queue) {
    const auto woken = co_await queue->wait({});
    ENSURE(!woken);
}
}  // namespace

TEST_CASE("core virtual world: a deadlock is reported, not waited for", "[core]") {
    ReplayedWorld world(1);
    auto reactor = world.make_reactor();
    WaitQueue queue(*reactor);

    REQUIRE(!world.run(*reactor, wait_for_ever(&queue)).has_value());
    REQUIRE(!world.run(*reactor, wait_for_ever_void(&queue)));

    reactor->drop_coroutines();
    REQUIRE(queue.empty());
}

// -- the end of a process --

namespace {
struct Alive {
    explicit Alive(int* owner) : count(owner) { ++*count; }
    ~Alive() { --*count; }
    Alive(const Alive&) = delete;
    Alive& operator=(const Alive&) = delete;
    int* count;
};

Task<void> in_sleep(Reactor* reactor, CancelSource* source, int* alive) {
    const Alive here(alive);
    const auto slept = co_await reactor->sleep_for(1h, source);
    ENSURE(slept.has_value());
}
Task<void> in_wait_queue(WaitQueue* queue, CancelSource* source, int* alive, Instant deadline) {
    const Alive here(alive);
    const WaitOptions wait{.deadline = deadline, .cancel = source};
    const auto woken = co_await queue->wait(wait);
    ENSURE(woken.has_value());
}
Task<void> in_gate_close(Reactor* reactor, Gate* gate, int* alive) {
    const Alive here(alive);
    co_await gate->close(*reactor);
}
Task<void> in_io(Reactor* reactor, int fd, CancelSource* source, int* alive) {
    const Alive here(alive);
    std::string into(64, '?');
    const WaitOptions wait{.deadline = after(reactor->now(), 1h), .cancel = source};
    const auto read = co_await reactor->read(File{.fd = fd}, buffer_of(into), 0, wait);
    ENSURE(read.has_value());
}
Task<void> in_remote_call(Reactor* reactor, Reactor* there, int* alive) {
    const Alive here(alive);
    std::string local = "something the job touches, long enough to be allocated";
    auto job = [&local] { return local.size(); };
    const auto size = co_await run_on(*reactor, *there, job);
    ENSURE(size > 0);
}
Task<void> in_offload(Reactor* reactor, Offload* offload, int* alive) {
    const Alive here(alive);
    auto call = [] { return 1; };
    const auto one = co_await offload->run(*reactor, call);
    ENSURE(one.has_value());
}
Task<void> in_yield(Reactor* reactor, int* alive) {
    const Alive here(alive);
    for (;;) co_await reactor->yield();
}
// Owns what those it spawns wait in.
Task<void> in_own_children(Reactor* reactor, int* alive) {
    const Alive here(alive);
    WaitQueue queue(*reactor);
    CancelSource source;
    Gate gate;
    reactor->spawn(gate, in_wait_queue(&queue, &source, alive, kNever));
    reactor->spawn(gate, in_sleep(reactor, &source, alive));
    co_await gate.close(*reactor);
}
}  // namespace

TEST_CASE("core virtual world: a reactor goes away wherever its coroutines are", "[core]") {
    const bool drop_first = GENERATE(true, false);
    const bool turn_first = GENERATE(true, false);
    CAPTURE(drop_first, turn_first);
    int alive = 0;
    const TempFile file;
    ReplayedWorld world(11);
    const auto there = world.make_reactor();
    const auto offload = make_virtual_offload(world, {.thread_count = 1});
    CancelSource source;
    Gate gate;
    Gate closed;
    auto reactor = world.make_reactor();
    Reactor* const here = reactor.get();
    WaitQueue queue(*here);
    world.stall(*there, Instant{1h});
    here->spawn(gate, in_sleep(here, &source, &alive));
    here->spawn(gate, in_wait_queue(&queue, &source, &alive, Instant{1h}));
    here->spawn(gate, in_io(here, file.fd(), &source, &alive));
    here->spawn(gate, in_remote_call(here, there.get(), &alive));
    here->spawn(gate, in_remote_call(here, there.get(), &alive));
    here->spawn(gate, in_remote_call(here, here, &alive));
    here->spawn(gate, in_offload(here, offload.get(), &alive));
    here->spawn(gate, in_yield(here, &alive));
    here->spawn(gate, in_own_children(here, &alive));
    here->spawn(closed, in_gate_close(here, &gate, &alive));
    const std::uint64_t spawned = gate.count() + closed.count();
    if (turn_first) {
        for (int i = 0; i < 4; ++i) REQUIRE(world.step());
        REQUIRE(alive >= static_cast<int>(spawned));
    }

    if (drop_first) here->drop_coroutines();
    reactor.reset();

    REQUIRE(alive == 0);
    REQUIRE(gate.count() == 0);
    REQUIRE(closed.count() == 0);
    REQUIRE(queue.empty());
    source.cancel();    // Nobody is under it any more,
    world.run_for(2h);  // and nothing comes back for the dead.
}

TEST_CASE("core virtual world: a caller outlives the reactor it asked", "[core]") {
    int alive = 0;
    ReplayedWorld world(12);
    auto there = world.make_reactor();
    auto here = world.make_reactor();
    Gate gate;
    world.stall(*there, Instant{1h});
    here->spawn(gate, in_remote_call(here.get(), there.get(), &alive));
    world.run_for(1s);
    REQUIRE(alive == 1);

    there.reset();
    world.run_for(2h);

    REQUIRE(alive == 1);  // It waits for an answer that will never come.
    here.reset();
    REQUIRE(alive == 0);
}

// -- size --

namespace {
Task<void> heartbeats(Node* me, Node* next, Instant end) {
    while (me->reactor->now() < end) {
        const auto slept = co_await me->reactor->sleep_for(1s);
        ENSURE(slept.has_value());
        auto job = [next] { return ++next->beats; };
        const auto beats = co_await run_on(*me->reactor, *next->reactor, job);
        ENSURE(beats > 0);
    }
}
}  // namespace

TEST_CASE("core virtual world: 32 nodes live through 10 000 seconds of heartbeats", "[core]") {
    ReplayedWorld world(1);
    std::vector<Node> nodes(32);
    for (Node& node : nodes) node.reactor = world.make_reactor();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        nodes[i].reactor->spawn(
            nodes[i].gate, heartbeats(&nodes[i], &nodes[(i + 1) % nodes.size()], Instant{10'000s}));
    }

    world.run_until(Instant{10'000s});

    for (const Node& node : nodes) REQUIRE(node.beats == 10'000);
}
