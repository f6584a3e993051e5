// Goal: simulated sockets do what the kernel's do, and what is done to their links.
// Method: `tcp` over them, in virtual time.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fabric/transport_kinds.h"

namespace fopd::fabric::testing::mem_sockets_test {

namespace {

constexpr MemRoute kThere{.from = "client", .to = "server"};
constexpr MemRoute kBack{.from = "server", .to = "client"};

Kind simulated_tcp(bool encrypts) {
    return {.name = "tcp, virtual time",
            .world = World::kVirtual,
            .listen_at = "tcp://10.0.0.1:0",
            .nobody_at = "tcp://10.0.0.1:1",
            .make = &make_simulated_tcp,
            .encrypts = encrypts};
}

class SocketStage final : public Stage {
public:
    explicit SocketStage(std::uint64_t seed = 7, bool encrypts = false)
        : Stage(simulated_tcp(encrypts), {}, {}, seed) {}

    MemNetwork& network() { return static_cast<SimulatedTcp&>(transport()).network(); }
    MemSockets& sockets() { return static_cast<SimulatedTcp&>(transport()).sockets(); }
    // Lets time pass: longer than any delay.
    void pass(Duration span = 1s) { world()->run_for(span); }
};

// Counts calls, and how many of them came in one turn of a reactor at most.
class CallsOfTurns {
public:
    explicit CallsOfTurns(Process& process) : process_(process) {}

    void note() {
        const std::uint64_t turn = process_.loop().reactor().stats().turns.get();
        if (turn != turn_) of_turn_ = 0;
        turn_ = turn;
        ++count;
        most = std::max(most, ++of_turn_);
    }

    std::size_t count = 0;
    std::size_t most = 0;

private:
    Process& process_;
    std::uint64_t turn_ = 0;
    std::size_t of_turn_ = 0;
};

}  // namespace

TEST_CASE("fabric mem sockets: a partition holds bytes back until it heals", "[fabric]") {
    SocketStage stage;
    const Pair pair = stage.connect();
    stage.network().partition(kThere);

    pair.client.send("there");
    pair.server.send("back");
    stage.pass(100s);

    REQUIRE(stage.server().messages.empty());
    REQUIRE(stage.client().messages.empty());
    stage.network().heal(kThere);
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 1; }));
    REQUIRE(stage.client().wait([&] { return stage.client().messages.size() == 1; }));
}

TEST_CASE("fabric mem sockets: a stalled way lets nothing pass until its time", "[fabric]") {
    SocketStage stage;
    const Pair pair = stage.connect();
    const Instant until = after(stage.world()->now(), 10s);
    stage.network().stall(kThere, until);

    pair.client.send("late");

    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 1; }));
    REQUIRE(stage.world()->now() >= until);
}

TEST_CASE("fabric mem sockets: a connection is made when its request and the answer can pass",
          "[fabric]") {
    SocketStage stage;
    const bool is_there = GENERATE(true, false);
    stage.network().block(is_there ? kThere : kBack);

    const End& end = stage.client().connect(stage.address());
    stage.pass();
    REQUIRE_FALSE(end.connected);
    stage.network().unblock(is_there ? kThere : kBack);

    const End& accepted = stage.server().accept(stage.server().request());
    REQUIRE(stage.client().wait([&] { return end.connected; }));
    REQUIRE(stage.server().wait([&] { return accepted.connected; }));
}

TEST_CASE("fabric mem sockets: a host may refuse connections", "[fabric]") {
    SocketStage stage;
    stage.network().refuse_connects(kThere);

    const End& end = stage.client().connect(stage.address());

    REQUIRE(stage.client().wait([&] { return end.closed.has_value(); }));
    REQUIRE(end.closed == Errc::kNotFound);
    stage.network().allow_connects(kThere);
    round_trip(stage, stage.connect());
}

TEST_CASE("fabric mem sockets: a side that is not told of a loss hears of it when it sends",
          "[fabric]") {
    SocketStage stage;
    const Pair pair = stage.connect();

    stage.network().lose_connections(kBack, LossNotice::kFrom);
    stage.pass(100s);

    REQUIRE(pair.server.closed == Errc::kClosed);
    REQUIRE_FALSE(pair.client.closed.has_value());
    pair.client.send("is anybody there");
    REQUIRE(stage.client().wait([&] { return pair.client.closed.has_value(); }));
    REQUIRE(stage.server().messages.empty());
}

TEST_CASE("fabric mem sockets: what was lost before it was noticed is noticed after a partition",
          "[fabric]") {
    SocketStage stage;
    const Pair pair = stage.connect();
    stage.network().lose_connections(kBack, LossNotice::kFrom);
    stage.network().partition(kThere);

    pair.client.send("is anybody there");
    stage.pass(100s);
    REQUIRE_FALSE(pair.client.closed.has_value());
    stage.network().heal(kThere);

    REQUIRE(stage.client().wait([&] { return pair.client.closed.has_value(); }));
}

TEST_CASE("fabric mem sockets: the end of a process ends its connections", "[fabric]") {
    SocketStage stage;
    const Pair pair = stage.connect();
    const Pair other = stage.connect();
    pair.client.send(std::string(10'000, 'x'));

    stage.client().crash(Process::Crash::kConnectionsFirst);

    REQUIRE(stage.server().wait([&] { return pair.server.closed && other.server.closed; }));
}

TEST_CASE("fabric mem sockets: a peer that has no turns takes a bounded part", "[fabric]") {
    SocketStage stage;
    const Pair pair = stage.connect();
    const std::size_t size = stage.sockets().room_bytes() + (64U << 10);
    Memory& large = stage.client().memory(std::string(size, 'x'));
    Memory& target = stage.server().memory(std::string(size, '-'));
    const RemoteMemory opened = stage.server().open(target, Access::kWrite);
    stage.server().loop().pause();

    const Op& op = pair.client.write(large, opened);
    stage.pass(100s);

    REQUIRE_FALSE(op.done());
    stage.server().loop().resume();
    REQUIRE(stage.client().wait([&] { return op.done(); }));
    round_trip(stage, pair);
    REQUIRE(target.bytes == large.bytes);
}

namespace {

// Writes from the server that are larger than the peer's socket takes, and are given up after they
// have begun. The client takes nothing meanwhile.
class WritesGivenUp {
public:
    explicit WritesGivenUp(SocketStage& stage) : stage_(stage) {
        const std::size_t size = stage.sockets().room_bytes() + (64U << 10);
        source_ = &stage.server().memory(std::string(size, 'x'));
        opened_ =
            stage.client().open(stage.client().memory(std::string(size, '-')), Access::kWrite);
        stage.client().loop().pause();
    }
    Op& start(const Pair& pair) { return pair.server.write(*source_, opened_); }
    Op& begin(const Pair& pair) {
        Op& write = start(pair);
        stage_.pass();
        REQUIRE_FALSE(write.done());
        return write;
    }
    bool give_up(const Pair& pair, Op& write) {
        bool is_given_up = false;
        stage_.server().run([&] { is_given_up = pair.server.connection->give_up(write); });
        return is_given_up;
    }
    bool begin_and_give_up(const Pair& pair) { return give_up(pair, begin(pair)); }

private:
    SocketStage& stage_;
    Memory* source_ = nullptr;
    RemoteMemory opened_;
};

}  // namespace

// The records of such a write occupy memory that no transfer accounts for.
TEST_CASE("fabric tcp: records of writes that were given up are kept for few connections",
          "[fabric]") {
    constexpr std::size_t kKeptMax = 256;
    SocketStage stage(7, true);
    std::vector<Pair> pairs;
    // A principal has half of what is left, so the ninth has the last place.
    for (std::size_t places_left = kKeptMax; places_left > 0;) {
        const std::size_t of_this = (places_left + 1) / 2;
        stage.server().run(
            [&] { stage.server().principal_of_next = "principal " + std::to_string(places_left); });
        for (std::size_t i = 0; i < of_this; ++i) pairs.push_back(stage.connect());
        places_left -= of_this;
    }
    REQUIRE(pairs.size() == kKeptMax);
    pairs.push_back(stage.connect());
    WritesGivenUp writes(stage);

    for (std::size_t i = 0; i < kKeptMax; ++i) REQUIRE(writes.begin_and_give_up(pairs[i]));
    const Pair& last = pairs.back();
    Op& kept = writes.begin(last);
    REQUIRE_FALSE(writes.give_up(last, kept));

    // A connection that has such records already may have more of them, and one whose write has
    // not begun needs none.
    REQUIRE(writes.begin_and_give_up(pairs.front()));
    stage.server().run([&] {
        Op& not_begun = writes.start(last);
        REQUIRE(last.server.connection->give_up(not_begun));
    });
    // When the peers have taken them, others may have some.
    stage.client().loop().resume();
    REQUIRE(stage.server().wait([&] { return kept.done(); }));
    REQUIRE(kept.fine());
    stage.pass(100s);
    stage.client().loop().pause();
    REQUIRE(writes.begin_and_give_up(last));
    stage.client().loop().resume();
    for (const Pair& pair : {pairs.front(), last}) round_trip(stage, pair);
}

TEST_CASE(
    "fabric tcp: one principal has half of the places for records of writes that were given up",
    "[fabric]") {
    constexpr std::size_t kOfOne = 128;
    SocketStage stage(7, true);
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < kOfOne + 1; ++i) pairs.push_back(stage.connect());
    stage.server().run([&] { stage.server().principal_of_next = "other"; });
    const Pair other = stage.connect();
    WritesGivenUp writes(stage);
    for (std::size_t i = 0; i < kOfOne; ++i) REQUIRE(writes.begin_and_give_up(pairs[i]));

    REQUIRE_FALSE(writes.begin_and_give_up(pairs.back()));
    REQUIRE(writes.begin_and_give_up(other));
    // A connection that ends gives its place back.
    pairs.front().server.close();
    stage.pass();
    REQUIRE(writes.begin_and_give_up(pairs.back()));
    stage.client().loop().resume();
}

TEST_CASE("fabric tcp: small messages in large records are delivered in several turns",
          "[fabric]") {
    constexpr std::size_t kReceivedAtOnce = 64U << 10;
    constexpr std::uint64_t kSeedOfLargeSockets = 4;
    SocketStage stage(kSeedOfLargeSockets, true);
    const std::size_t room = stage.sockets().room_bytes();
    REQUIRE(room >= 4 * kReceivedAtOnce);
    const Pair pair = stage.connect();
    const std::size_t count = room / kFrameHeaderBytes;
    CallsOfTurns calls(stage.server());
    stage.server().when_message = [&calls] { calls.note(); };
    Memory& memory = stage.client().memory("");
    stage.server().loop().pause();
    for (std::size_t i = 0; i < count; ++i) pair.client.send(memory);
    stage.pass();

    stage.server().loop().resume();

    REQUIRE(stage.server().wait([&] { return calls.count == count; }));
    REQUIRE(calls.most <= 2 * kReceivedAtOnce / kFrameHeaderBytes);
}

TEST_CASE("fabric tcp: many operations that end at once complete in several turns", "[fabric]") {
    constexpr std::size_t kOps = 6000;
    SocketStage stage;
    const Pair pair = stage.connect();
    Memory& memory = stage.server().memory("x");
    CallsOfTurns calls(stage.server());
    for (std::size_t i = 0; i < kOps; ++i) {
        pair.server.send(memory).then = [&calls] { calls.note(); };
    }

    pair.server.close();

    REQUIRE(stage.server().wait([&] { return pair.server.idle(); }));
    REQUIRE(calls.count == kOps);
    REQUIRE(calls.most <= kOps / 2);
    REQUIRE(std::ranges::all_of(pair.server.ops, &Op::failed));
}

TEST_CASE("fabric tcp: the ends of many connections are told in several turns", "[fabric]") {
    constexpr std::size_t kConnections = 300;
    SocketStage stage;
    CallsOfTurns calls(stage.server());
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < kConnections; ++i) {
        pairs.push_back(stage.connect());
        pairs.back().server.when_closed = [&calls] { calls.note(); };
    }
    stage.server().loop().pause();

    for (const Pair& each : pairs) each.client.close();
    stage.pass();
    stage.server().loop().resume();

    REQUIRE(stage.server().wait([&] { return calls.count == kConnections; }));
    REQUIRE(calls.most <= 80);
}

TEST_CASE("fabric mem sockets: the seed cuts the streams into parts", "[fabric]") {
    const auto receives_of = [](std::uint64_t seed) {
        SocketStage stage(seed);
        for (int i = 0; i < 20; ++i) round_trip(stage, stage.connect());
        return stage.sockets().received().receives;
    };

    const std::uint64_t receives = receives_of(1);

    REQUIRE(receives_of(1) == receives);
    REQUIRE(receives_of(2) != receives);
    // The header and the body of each first frame, its answer, and two messages.
    REQUIRE(receives > 20 * 5);
}

}  // namespace fopd::fabric::testing::mem_sockets_test
