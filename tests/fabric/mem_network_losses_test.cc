// Goal: what a lost link, or the end of a process, does to connections over the simulated network.
// Method: virtual time.
#include "tests/fabric/mem_town.h"

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

// -- lost connections --

TEST_CASE("fabric mem network: a lost link ends its connections at both sides", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    Process& c = town.add("c");
    const Pair first = town.connect(a, b);
    const Pair second = town.connect(a, b);
    const Pair other = town.connect(c, b);

    town.network().lose_connections(kThere, LossNotice::kBoth);
    town.world().run_for(1ms);

    for (const Pair& lost : {first, second}) {
        REQUIRE(lost.client.closed == Errc::kClosed);
        REQUIRE(lost.server.closed == Errc::kClosed);
    }
    REQUIRE_FALSE(other.client.closed.has_value());
    REQUIRE_FALSE(other.server.closed.has_value());
}

TEST_CASE("fabric mem network: a side that was not told of a loss notices it by sending",
          "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);

    town.network().lose_connections(kBack, LossNotice::kFrom);
    town.world().run_for(24h);
    REQUIRE(pair.server.closed == Errc::kClosed);
    REQUIRE_FALSE(pair.client.closed.has_value());
    pair.client.send("anybody there?");
    town.world().run_for(1ms);

    REQUIRE(pair.client.closed == Errc::kClosed);
    REQUIRE(b.messages.empty());
}

// -- processes that end --

TEST_CASE("fabric mem network: peers see a crash after the network's delay", "[fabric]") {
    const auto order = GENERATE(Process::Crash::kMachineFirst, Process::Crash::kConnectionsFirst);
    CAPTURE(static_cast<int>(order));
    Town town(11, kTenMs);
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair idle = town.connect(a, b);
    const Pair busy = town.connect(a, b);
    Memory& ours = a.memory(std::string(1000, '-'));
    Memory& theirs = b.memory(std::string(1000, 'x'));
    const RemoteMemory opened = b.open(theirs, Access::kRead);
    for (int i = 0; i < 100; ++i) busy.client.read(ours, opened);
    for (int i = 0; i < 100; ++i) busy.server.send("on its way");
    const Instant crashed = town.world().now();

    town.crash(b, order);
    town.world().run_until(crashed + 10ms - 1ns);
    REQUIRE_FALSE(idle.client.closed.has_value());
    town.world().run_until(crashed + 10ms);
    town.world().run_for(1us);

    REQUIRE(idle.client.closed == Errc::kClosed);
    REQUIRE(busy.client.closed == Errc::kClosed);
    REQUIRE(busy.client.idle());
    REQUIRE(std::ranges::all_of(busy.client.ops,
                                [](const Op& op) { return op.failed_with(Errc::kClosed); }));
}

TEST_CASE("fabric mem network: a new process takes the address of a crashed one", "[fabric]") {
    Town town;
    Process& a = town.add("a");
    for (int life = 0; life < 10; ++life) {
        Process& b = town.add_server("b");
        const Pair pair = town.connect(a, b);
        pair.client.send("hello");
        REQUIRE(b.wait([&] { return b.messages.size() == 1; }));
        town.crash(b);
        REQUIRE(a.wait([&] { return pair.client.closed.has_value(); }));
    }
}

TEST_CASE("fabric mem network: a client that crashed while connecting is missed", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    a.connect(kAtB);
    auto request = b.request();

    town.crash(a);
    End& server = b.accept(std::move(request));

    REQUIRE(b.wait([&] { return server.closed.has_value(); }));
    REQUIRE(server.closed == Errc::kClosed);
}

TEST_CASE("fabric mem network: a crash just after accepting is noticed", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    End& client = a.connect(kAtB);
    b.accept(b.request());

    town.crash(b);

    REQUIRE(a.wait([&] { return client.closed.has_value(); }));
    REQUIRE(client.closed == Errc::kClosed);
}

TEST_CASE("fabric mem network: a crash refuses the requests it leaves", "[fabric]") {
    const bool handed_out = GENERATE(true, false);
    CAPTURE(handed_out);
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    End& client = a.connect(kAtB);
    if (handed_out) REQUIRE(b.wait([&] { return !b.requests.empty(); }));

    town.crash(b);

    REQUIRE(a.wait([&] { return client.closed.has_value(); }));
    REQUIRE(client.closed == (handed_out ? Errc::kDenied : Errc::kNotFound));
}

TEST_CASE("fabric mem network: the end of both sides at once is the end", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    send_all(pair.client, numbers(200));
    send_all(pair.server, numbers(200));

    town.crash(a, Process::Crash::kConnectionsFirst);
    town.crash(b, Process::Crash::kMachineFirst);

    REQUIRE_FALSE(town.world().step());
}

TEST_CASE("fabric mem network: a half-open connection ends with a crash, too", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    town.network().lose_connections(kBack, LossNotice::kFrom);
    town.world().run_for(1ms);

    town.crash(b);
    town.world().run_for(1s);
    REQUIRE_FALSE(pair.client.closed.has_value());
    pair.client.send("anybody there?");

    REQUIRE(a.wait([&] { return pair.client.closed.has_value(); }));
    REQUIRE(pair.client.closed == Errc::kClosed);
}
