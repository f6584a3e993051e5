// Goal: the network within a process does to connections what was asked for, at the time it was
// asked for, and the same for the same seed; and whoever lives on sees the end of who does not.
// Method: processes on hosts of a simulated world. Times are exact there: "not yet" is looked at
// just before the instant at which something is due.

#include <set>

#include "tests/fabric/mem_town.h"

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

// -- time on the way --

TEST_CASE("fabric mem network: a message is on its way as long as the link says", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    town.network().set_delay(kThere, {.min = 3ms, .max = 5ms});
    std::set<Duration> seen;

    for (std::size_t i = 1; i <= 100; ++i) {
        const Instant sent = town.world().now();
        pair.client.send("x");
        REQUIRE(b.wait([&] { return b.messages.size() == i; }));
        seen.insert(town.world().now() - sent);
    }

    REQUIRE(*seen.begin() >= 3ms);
    REQUIRE(*seen.rbegin() <= 5ms);
    REQUIRE(seen.size() > 50);
}

TEST_CASE("fabric mem network: a machine gets what the bandwidth lets through", "[fabric]") {
    Town town(11, {});
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    Memory& ours = a.memory(std::string(1'000'000, 'x'));
    Memory& theirs = b.memory(std::string(1'000'000, '-'));
    const RemoteMemory opened = b.open(theirs, Access::kWrite);
    town.network().set_bandwidth(kThere, 1'000'000);
    const Instant begin = town.world().now();

    Op& op = pair.client.write(ours, opened);

    REQUIRE(a.wait([&] { return op.done(); }));
    const Duration took = town.world().now() - begin;
    REQUIRE(took >= 1s);
    REQUIRE(took < 1001ms);
    b.close(opened);
}

TEST_CASE("fabric mem network: a stalled link passes nothing until then", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    const Instant end = after(town.world().now(), 3s);

    // Also what is on its way already.
    pair.client.send("0");
    town.network().stall(kThere, end);
    town.world().run_for(1s);
    pair.client.send("1");
    town.world().run_until(end - 1ns);
    REQUIRE(b.messages.empty());
    town.world().run_until(end + 1ms);

    REQUIRE(b.messages == numbers(2));
    REQUIRE_FALSE(pair.client.closed.has_value());
}

// -- what does not pass --

TEST_CASE("fabric mem network: a partition is silent, and heals without loss", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    send_all(pair.client, {"0", "1", "2"});
    town.network().partition(kThere);
    send_all(pair.client, {"3", "4"});
    send_all(pair.server, numbers(5));

    town.world().run_for(24h);
    REQUIRE(a.messages.empty());
    REQUIRE(b.messages.empty());
    REQUIRE_FALSE(pair.client.closed.has_value());
    REQUIRE_FALSE(pair.server.closed.has_value());
    town.network().heal(kThere);
    send_all(pair.client, {"5", "6"});
    town.world().run_for(1ms);

    REQUIRE(a.messages == numbers(5));
    REQUIRE(b.messages == numbers(7));
}

TEST_CASE("fabric mem network: order survives links that come and go", "[fabric]") {
    const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U);
    CAPTURE(seed);
    Town town(seed);
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    const std::vector<std::string> all = numbers(2000);

    for (const std::string& each : all) {
        pair.client.send(each);
        if (town.world().random().below(4) == 0) town.network().block(kThere);
        if (town.world().random().below(4) == 0) town.network().unblock(kThere);
        town.world().run_for(Duration{town.world().random().between(0, 30'000)});
    }
    town.network().unblock(kThere);

    REQUIRE(b.wait([&] { return b.messages.size() == all.size(); }));
    REQUIRE(b.messages == all);
}

TEST_CASE("fabric mem network: a link may pass one way only", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    town.network().block(kBack);

    send_all(pair.client, numbers(3));
    send_all(pair.server, numbers(3));
    town.world().run_for(1min);
    REQUIRE(b.messages == numbers(3));
    REQUIRE(a.messages.empty());

    town.network().unblock(kBack);
    town.world().run_for(1ms);
    REQUIRE(a.messages == numbers(3));
}

TEST_CASE("fabric mem network: other hosts are not concerned", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    Process& c = town.add("c");
    const Pair cut_off = town.connect(a, b);
    const Pair other = town.connect(c, b);

    town.network().partition(kThere);
    cut_off.client.send("from a");
    other.client.send("from c");
    town.world().run_for(1s);

    REQUIRE(b.messages == std::vector<std::string>{"from c"});
}

TEST_CASE("fabric mem network: a receiver that does not turn pushes back", "[fabric]") {
    const std::size_t size = GENERATE(1U, 16U << 10);
    CAPTURE(size);
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);
    std::vector<std::string> messages;
    for (const std::string& each : numbers(500)) messages.push_back(each + std::string(size, '.'));
    for (std::string& each : messages) each.resize(std::max<std::size_t>(size, 8));

    b.loop().pause();
    send_all(pair.client, messages);
    town.world().run_for(1min);
    REQUIRE(done_count(pair.client) > 0);
    REQUIRE(done_count(pair.client) < 100);
    REQUIRE(pair.client.connection->in_flight() == 500 - done_count(pair.client));
    b.loop().resume();

    REQUIRE(a.wait([&] { return pair.client.idle(); }));
    REQUIRE(std::ranges::all_of(pair.client.ops, &Op::fine));
    REQUIRE(b.wait([&] { return b.messages.size() == 500; }));
    REQUIRE(b.messages == messages);
}

TEST_CASE("fabric mem network: a message longer than a buffer ends its connection", "[fabric]") {
    Town town;
    Process& b = town.add_server("b", {.receive_buffer_count = 8, .receive_buffer_bytes = 1000});
    Process& a = town.add("a");
    const Pair innocent = town.connect(a, b);
    const Pair guilty = town.connect(a, b);

    send_all(guilty.client, {std::string(1000, 'x'), std::string(1001, 'y'), "z"});
    innocent.client.send("fine");
    REQUIRE(a.wait([&] { return guilty.client.closed.has_value(); }));
    town.world().run_for(1ms);

    REQUIRE(guilty.server.closed == Errc::kInvalid);
    REQUIRE(guilty.client.closed == Errc::kClosed);
    REQUIRE(std::ranges::count(b.messages, std::string(1000, 'x')) == 1);
    REQUIRE(std::ranges::count(b.messages, "fine") == 1);
    REQUIRE(b.messages.size() == 2);
    REQUIRE_FALSE(innocent.client.closed.has_value());
}

TEST_CASE("fabric mem network: what close() finds done is in flight, too", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    const Pair pair = town.connect(a, b);

    Op& first = pair.client.send("one");
    Op& second = pair.client.send("two");
    first.then = [&] { pair.client.connection->close(); };

    REQUIRE(a.wait([&] { return pair.client.idle(); }));
    REQUIRE(first.fine());
    REQUIRE(second.failed_with(Errc::kClosed));
}

// -- connecting --

TEST_CASE("fabric mem network: a host may refuse another's connects", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    Process& c = town.add("c");
    town.network().refuse_connects(kThere);

    End& refused = a.connect(kAtB);
    REQUIRE(a.wait([&] { return refused.closed.has_value(); }));
    REQUIRE(refused.closed == Errc::kNotFound);
    town.connect(c, b);

    town.network().allow_connects(kThere);
    town.connect(a, b);
}

TEST_CASE("fabric mem network: a connect waits for its link", "[fabric]") {
    Town town;
    Process& b = town.add_server("b");
    Process& a = town.add("a");
    town.network().partition(kThere);
    End& client = a.connect(kAtB);

    town.world().run_for(1h);
    REQUIRE(client.calls == 0);
    REQUIRE(b.requests.empty());
    town.network().heal(kThere);
    End& server = b.accept(b.request());

    REQUIRE(a.wait([&] { return client.connected; }));
    REQUIRE(server.connected);
}

TEST_CASE("fabric mem network: a missing listener is reported over the network", "[fabric]") {
    Town town(11, kTenMs);
    Process& a = town.add("a");
    const Instant begin = town.world().now();

    End& client = a.connect(kAtB);
    REQUIRE(a.wait([&] { return client.closed.has_value(); }));

    REQUIRE(client.closed == Errc::kNotFound);
    REQUIRE(town.world().now() - begin == 20ms);
}

TEST_CASE("fabric mem network: a missing listener is not reported while the link is blocked",
          "[fabric]") {
    const MemRoute blocked = GENERATE(kThere, kBack);
    CAPTURE(blocked.from);
    Town town;
    Process& a = town.add("a");
    town.network().block(blocked);
    End& client = a.connect(kAtB);

    town.world().run_for(1h);
    REQUIRE(client.calls == 0);
    town.network().unblock(blocked);
    town.world().run_for(1ms);

    REQUIRE(client.closed == Errc::kNotFound);
}

TEST_CASE("fabric mem network: a request reaches an acceptor that listens when the link heals",
          "[fabric]") {
    Town town;
    Process& first = town.add_server("b");
    Process& a = town.add("a");
    town.network().partition(kThere);
    End& client = a.connect(kAtB);
    town.world().run_for(1s);

    town.crash(first);
    Process& second = town.add_server("b");
    town.network().heal(kThere);
    second.accept(second.request(), "second");

    REQUIRE(a.wait([&] { return client.connected; }));
    REQUIRE(client.answer == "second");
}

// -- seeds --

namespace {

// Clients that keep sending numbers to servers over a network where everything happens.
class Turmoil {
public:
    explicit Turmoil(std::uint64_t seed) : town_(seed) {
        for (const char* host : kServers) servers_.push_back(&town_.add_server(host));
        for (const char* host : kClients) clients_.push_back(&town_.add(host));
    }

    // What happened, for comparison; broken promises fail the test.
    std::uint64_t run() {
        for (int round = 0; round < 400; ++round) {
            do_something();
            town_.world().run_for(Duration{draw(200'000)});
            accept_all();
        }
        for (const char* server : kServers) {
            for (const char* client : kClients)
                town_.network().heal({.from = client, .to = server});
        }
        accept_all();
        for (Process* each : clients_) check_ends(*each);
        for (Process* each : servers_) check_messages(*each);
        return town_.world().trace_hash();
    }

private:
    static constexpr std::array kServers{"s0", "s1", "s2"};
    static constexpr std::array kClients{"c0", "c1", "c2", "c3"};

    std::int64_t draw(std::int64_t bound) { return town_.world().random().between(0, bound - 1); }
    template <typename List>
    auto& any_of(List& list) {
        return list[static_cast<std::size_t>(draw(static_cast<std::int64_t>(list.size())))];
    }

    void do_something() {
        const MemRoute there{.from = any_of(kClients), .to = any_of(kServers)};
        const MemRoute back{.from = there.to, .to = there.from};
        const MemRoute& way = draw(2) == 0 ? there : back;
        MemNetwork& network = town_.network();
        switch (draw(14)) {
            case 0: network.partition(way); return;
            case 1: network.block(way); return;
            case 2:
            case 3:
            case 4: network.heal(way); return;
            case 5:
                network.stall(way, after(town_.world().now(), Duration{draw(1'000'000)}));
                return;
            case 6:
                network.lose_connections(way, draw(2) == 0 ? LossNotice::kBoth : LossNotice::kFrom);
                return;
            case 7: crash_server(); return;
            case 8:
                network.set_delay(way, {.min = 1us, .max = Duration{1'000 + draw(500'000)}});
                return;
            case 9:
            case 10: connect(any_of(clients_)); return;
            default:
                for (int i = 0; i < 20; ++i) send(any_of(clients_));
        }
    }

    void connect(Process* client) {
        const Address address{.scheme = "mem", .host = any_of(kServers), .port = 1, .locality = {}};
        client->connect(address);
    }

    // "17:4" is the fifth message of connection 17.
    void send(Process* client) {
        if (client->ends.empty()) return;
        End& end = any_of(client->ends);
        if (!end.connected) return;
        auto& [number, sent] = sent_[&end];
        if (sent == 0) number = static_cast<int>(sent_.size());
        end.send(std::to_string(number) + ':' + std::to_string(sent++));
    }

    void crash_server() {
        Process*& server = any_of(servers_);
        check_messages(*server);
        const std::string host = server->acceptor->address().host;
        const bool machine_first = draw(2) == 0;
        town_.crash(*server, machine_first ? Process::Crash::kMachineFirst
                                           : Process::Crash::kConnectionsFirst);
        server = &town_.add_server(host);
    }

    void accept_all() {
        for (Process* server : servers_) {
            while (!server->requests.empty()) {
                auto request = std::move(server->requests.front());
                server->requests.pop_front();
                if (draw(8) != 0) server->accept(std::move(request));
            }
        }
    }

    // Each connection's messages come in order and without a gap.
    static void check_messages(const Process& server) {
        std::map<std::string, int> next;
        for (const std::string& message : server.messages) {
            const std::size_t colon = message.find(':');
            REQUIRE(message.substr(colon + 1) == std::to_string(next[message.substr(0, colon)]++));
        }
    }

    static void check_ends(Process& client) {
        for (End& end : client.ends) end.close();
        REQUIRE(client.wait([&] { return std::ranges::all_of(client.ends, &End::idle); }));
        for (const End& end : client.ends) {
            REQUIRE(end.calls <= 2);
            REQUIRE(std::ranges::all_of(end.ops, [](const Op& op) { return op.completions == 1; }));
        }
    }

    Town town_;
    std::vector<Process*> servers_;
    std::vector<Process*> clients_;
    std::map<const End*, std::pair<int, int>> sent_;  // Looked up only.
};

}  // namespace

TEST_CASE("fabric mem network: the same seed gives the same run", "[fabric]") {
    std::set<std::uint64_t> hashes;

    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        const std::uint64_t hash = Turmoil(seed).run();
        REQUIRE(Turmoil(seed).run() == hash);
        hashes.insert(hash);
    }

    REQUIRE(hashes.size() == 20);
}

// -- real time --

TEST_CASE("fabric mem network: threads come and go while others live on", "[fabric]") {
    MemTransport transport;
    RealLoop server_loop;
    Process server(transport, server_loop, {});
    REQUIRE(server.listen("mem://server:1").has_value());
    const Address address = server.acceptor->address();
    RealLoop first_loop;
    RealLoop second_loop;
    const auto live = [&](Loop& loop) {
        Process client(transport, loop, {});
        std::vector<End*> ends;
        for (int i = 0; i < 4; ++i) ends.push_back(&client.connect(address));
        client.crash(Process::Crash::kConnectionsFirst);
    };

    for (int round = 0; round < 100; ++round) {
        live(first_loop);
        live(second_loop);
        while (true) {
            std::unique_ptr<ConnectionRequest> request;
            server.run([&] {
                if (server.requests.empty()) return;
                request = std::move(server.requests.front());
                server.requests.pop_front();
            });
            if (request == nullptr) break;
            server.accept(std::move(request));
        }
    }

    REQUIRE(server.wait([&] {
        return std::ranges::all_of(server.ends,
                                   [](const End& end) { return end.closed.has_value(); });
    }));
}

TEST_CASE("fabric mem network: in real time delays are timers", "[fabric]") {
    MemTransport transport({.seed = 1, .delay = kTenMs});
    RealLoop server_loop;
    RealLoop client_loop;
    Process server(transport, server_loop, {});
    Process client(transport, client_loop, {});
    const auto address = server.listen("mem://server:1");
    REQUIRE(address.has_value());
    Instant begin;
    Instant end;
    client.run([&] { begin = client_loop.reactor().now(); });

    End& there = client.connect(*address);
    server.accept(server.request());
    REQUIRE(client.wait([&] { return there.connected; }));
    client.run([&] { end = client_loop.reactor().now(); });

    REQUIRE(end - begin >= 20ms);
}
