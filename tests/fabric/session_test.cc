#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/virtual_world.h"
#include "tests/catch.h"
#include "tests/fabric/rpc_stage.h"

// Goal: what a session's user does in its callbacks harms neither session nor host.

namespace fopd::fabric::testing {

namespace {

// Connects, and ends the next one when it is gone itself.
class Chained final : public SessionUser {
public:
    Verdict on_proved(Session&) override { return {}; }
    void on_open(Session&) override {}
    bool on_requests(Session&, const fop::RequestsView&) override { return false; }
    bool on_replies(Session&, const fop::RepliesView&) override { return false; }
    void on_cancelled(Session&, std::span<const std::uint64_t>) override {}
    void on_let_go(Session&, std::uint64_t) override {}
    void on_acknowledged(Session&, std::uint64_t) override {}
    void on_bye(Session&, std::string_view) override {}
    void on_turn_end(Session&) override {}
    void on_end(Session&, const Error&, std::string_view) override { ++ends; }
    void on_gone(Session&) override {
        ++gone;
        if (next != nullptr) next->end(Errc::kCancelled, "its turn");
        if (when_gone) when_gone();
    }

    Session* next = nullptr;
    std::function<void()> when_gone;
    int ends = 0;
    int gone = 0;
};

Task<void> end_all(SessionHost* host) {
    host->for_each([](Session& session) { session.end(Errc::kClosed, "all of them"); });
    co_return;
}

Task<void> end(Session* session) {
    session->end(Errc::kClosed, "for now");
    co_return;
}

}  // namespace

TEST_CASE("fabric session: one that is gone may end others", "[fabric]") {
    ReplayedWorld world(5);
    MemTransport transport{{.seed = 5, .delay = kSimulatedDelay}};
    const auto reactor = world.make_reactor();
    NotedEvents events;
    core::SeededEntropy entropy(5);
    SessionHost host(*reactor, events, entropy, client_host_options());
    REQUIRE(host.open(transport).has_value());
    // A host that does not answer.
    transport.network().block({.from = "client", .to = "server"});
    std::vector<std::unique_ptr<Chained>> users;
    std::vector<Session*> sessions;
    for (int i = 0; i < 20; ++i) {
        users.push_back(std::make_unique<Chained>());
        sessions.push_back(&host.connect(
            {.server = *parse_address("mem://server:1"), .client = {}, .credentials = {}},
            *users.back()));
    }
    for (std::size_t i = 0; i + 1 < users.size(); ++i) users[i]->next = sessions[i + 1];

    sessions.front()->end(Errc::kCancelled, "the first");
    world.run_for(1s);

    for (const auto& user : users) {
        REQUIRE(user->ends == 1);
        REQUIRE(user->gone == 1);
    }
    REQUIRE(host.session_count() == 0);
    REQUIRE(world.run(*reactor, host.close()));
}

TEST_CASE("fabric session: when many end at once, each turn has a bounded part of it", "[fabric]") {
    ReplayedWorld world(8);
    MemTransport transport{{.seed = 8, .delay = kSimulatedDelay}};
    const auto reactor = world.make_reactor();
    NotedEvents events;
    core::SeededEntropy entropy(8);
    SessionHost host(*reactor, events, entropy, client_host_options());
    REQUIRE(host.open(transport).has_value());
    transport.network().block({.from = "client", .to = "server"});
    std::map<std::uint64_t, int> gone_in_turn;
    std::vector<std::unique_ptr<Chained>> users;
    for (int i = 0; i < 1000; ++i) {
        users.push_back(std::make_unique<Chained>());
        users.back()->when_gone = [&] { ++gone_in_turn[reactor->stats().turns.get()]; };
        host.connect({.server = *parse_address("mem://server:1"), .client = {}, .credentials = {}},
                     *users.back());
    }

    REQUIRE(world.run(*reactor, end_all(&host)));
    const Instant begin = world.now();
    world.run_for(1s);

    REQUIRE(host.session_count() == 0);
    for (const auto& [turn, count] : gone_in_turn) REQUIRE(count <= 32);
    REQUIRE(gone_in_turn.size() < 100);
    REQUIRE(world.now() - begin <= 1s);
    for (const auto& user : users) REQUIRE(user->gone == 1);
    REQUIRE(world.run(*reactor, host.close()));
}

TEST_CASE("fabric session: clients that come and go are forgotten, the oldest first", "[fabric]") {
    ReplayedWorld world(6);
    MemTransport transport{{.seed = 6, .delay = kSimulatedDelay}};
    const auto server_reactor = world.make_reactor();
    const auto reactor = world.make_reactor();
    const fop::Key key = key_of(1);
    ServerSide server(transport, *server_reactor,
                      Admission{.keys = ring_of({principal("tester", {key})})},
                      server_host_options(), 1, "mem://server:1", {.clients_kept_max = 10});
    NotedEvents events;
    core::SeededEntropy entropy(6);
    SessionHost host(*reactor, events, entropy, client_host_options());
    REQUIRE(host.open(transport).has_value());
    std::size_t most = 0;
    for (int i = 0; i < 200; ++i) {
        fop::ClientId client;
        entropy.fill(client);
        Chained user;
        Session& session = host.connect({.server = *parse_address("mem://server:1"),
                                         .client = client,
                                         .credentials = credentials(key)},
                                        user);
        world.run_for(10ms);
        REQUIRE(session.state() == Session::State::kOpen);
        most = std::max(most, server.server.clients());
        REQUIRE(world.run(*reactor, end(&session)));
        world.run_for(10ms);
        REQUIRE(user.gone == 1);
    }

    REQUIRE(most <= 25);
    world.run_for(20s);
    REQUIRE(server.server.clients() == 10);
    REQUIRE(world.run(*reactor, host.close()));
    REQUIRE(world.run(*server_reactor, server.stop()));
}

}  // namespace fopd::fabric::testing
