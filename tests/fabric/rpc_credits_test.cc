#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>

#include "fop/message.h"
#include "tests/fabric/rpc_calls.h"

// Goal: credits and loans let every client go on, and those that one does not need reach others.
// Method: a server and clients in the simulated world.

namespace fopd::fabric::testing::rpc {

namespace {

// As many as a message takes, which the server knows nothing of.
Task<void> cancel_unknown(SessionHost* host) {
    constexpr std::uint64_t kUnknown = 1ULL << 40;
    host->for_each([](Session& session) {
        for (std::uint64_t i = 0; i < fop::kCancelsMax; ++i) session.cancel_request(kUnknown + i);
    });
    co_return;
}

}  // namespace

TEST_CASE("fabric rpc: a control call does not wait behind data calls that have no credit",
          "[fabric]") {
    std::vector<EchoResult> data(200);
    EchoResult control;
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    for (EchoResult& each : data) {
        stage.client_reactor->spawn(stage.gate, echo(&client, "data", &each));
    }
    stage.world.run_for(10ms);

    stage.client_reactor->spawn(stage.gate, ping(&client, &control));
    stage.world.run_for(10ms);
    const auto& held = stage.server->foms.held;
    REQUIRE(held.size() < data.size());
    REQUIRE(std::ranges::any_of(held, [](const IncomingFop* each) {
        return std::holds_alternative<fop::Ping>(each->request().body);
    }));
    // After a loss, too, where the data calls have the smaller numbers.
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.server->foms.hold = false;
    stage.answer_held();
    stage.world.run_for(10s);

    REQUIRE(control.done);
    REQUIRE(control.answer.has_value());
    for (const EchoResult& each : data) REQUIRE(each.text == "data");
}

TEST_CASE("fabric rpc: a client that cancels does not wait for credits afterwards", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult given_up;
    EchoResult next;
    stage.client_reactor->spawn(stage.gate,
                                echo(&client, "late", &given_up, after(stage.world.now(), 10ms)));
    stage.world.run_for(20ms);

    stage.client_reactor->spawn(stage.gate, echo(&client, "next", &next));
    stage.world.run_for(20ms);

    REQUIRE(given_up.done);
    REQUIRE(stage.server->foms.arrived == 2);
}

TEST_CASE("fabric rpc: a message that cancels many looks once at each fop that waits", "[fabric]") {
    constexpr std::size_t kWaiting = 1000;
    static constexpr std::uint64_t kMessages = 20;
    std::deque<EchoResult> results(kWaiting);
    RpcStage stage;
    stage.stop_server();
    stage.server_options.fop_loans_max = kWaiting;
    stage.start_server(2);
    Client& client = stage.connected();
    TestFoms& foms = stage.server->foms;
    foms.hold = foms.queue = true;
    // How many fops the server looks at for the messages.
    const auto visits_to_cancel = [&stage] {
        const std::uint64_t before = stage.server->server.visited();
        const core::Counter& messages = stage.server->host.statistics().messages_in;
        const std::uint64_t messages_before = messages.get();
        for (std::uint64_t i = 0; i < kMessages; ++i) {
            REQUIRE(stage.world.run(*stage.client_reactor, cancel_unknown(&stage.client->host)));
            stage.world.run_for(1ms);
        }
        REQUIRE(messages.get() - messages_before >= kMessages);
        return stage.server->server.visited() - before;
    };

    CHECK(visits_to_cancel() == 0);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, "waits", &each));
    }
    stage.world.run_for(1s);
    REQUIRE(foms.held.size() == kWaiting);
    const std::uint64_t beside_waiting = visits_to_cancel();

    CHECK(beside_waiting >= kWaiting);
    CHECK(beside_waiting <= kMessages * kWaiting);
    REQUIRE(stage.server->host.statistics().broken.get() == 0);
    foms.hold = foms.queue = false;
    stage.answer_held();
    stage.world.run_for(1s);
    for (const EchoResult& each : results) REQUIRE(each.text == "waits");
}

TEST_CASE("fabric rpc: what waits for its turn leaves room for what does not, up to a limit",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    TestFoms& foms = stage.server->foms;
    foms.hold = foms.queue = true;
    std::vector<EchoResult> results(600);
    const auto send = [&stage, &client, &results](std::size_t first, std::size_t count) {
        for (std::size_t i = first; i < first + count; ++i) {
            stage.client_reactor->spawn(stage.gate, echo(&client, "waits", &results[i]));
        }
        stage.world.run_for(10ms);
    };
    send(0, 100);
    REQUIRE(foms.held.size() == 100);
    const auto waiting = stage.server->server.sessions();
    REQUIRE(waiting.at(0).fops_waiting == 100);
    REQUIRE(waiting.at(0).fop_loans == 100);

    foms.hold = foms.queue = false;
    EchoResult fast;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "fast", &fast)));
    REQUIRE(fast.text == "fast");

    foms.hold = foms.queue = true;
    send(100, 500);
    const auto full = stage.server->server.sessions();
    REQUIRE(foms.held.size() == stage.server_options.fop_loans_max + full.at(0).fop_credits);
    REQUIRE(full.at(0).fop_loans == stage.server_options.fop_loans_max);

    // All are answered, and what was lent comes back.
    foms.hold = foms.queue = false;
    stage.in_server([&foms] {
        for (IncomingFop* each : std::exchange(foms.held, {})) {
            each->started();
            TestFoms::echo(*each);
        }
    });
    stage.world.run_for(1s);
    for (const EchoResult& each : results) REQUIRE(each.text == "waits");
    stage.world.run_for(60s);
    const auto idle = stage.server->server.sessions();
    REQUIRE(idle.at(0).fop_loans == 0);
    REQUIRE(idle.at(0).fop_credits == 8);
    REQUIRE(stage.server->host.statistics().broken.get() == 0);
}

TEST_CASE("fabric rpc: what waits for its turn on loans has brought bounded bytes", "[fabric]") {
    constexpr std::size_t kLarge = 8000;
    constexpr std::size_t kBytesMax = 256U << 10;
    RpcStage stage;
    stage.stop_server();
    stage.server_options.fop_loan_bytes_total = kBytesMax;
    stage.start_server(2);
    Client& client = stage.connected();
    TestFoms& foms = stage.server->foms;
    std::deque<EchoResult> results;
    const auto hold = [&](bool holds) { foms.hold = foms.queue = holds; };
    const auto send = [&](std::size_t count, std::size_t bytes) {
        for (std::size_t i = 0; i < count; ++i) {
            stage.client_reactor->spawn(
                stage.gate, echo(&client, std::string(bytes, 'w'), &results.emplace_back()));
        }
        stage.world.run_for(100ms);
    };
    const auto let_run = [&] {
        stage.in_server([&foms] {
            for (IncomingFop* each : std::exchange(foms.held, {})) {
                each->started();
                TestFoms::echo(*each);
            }
        });
    };
    const auto count_told = [&](fop::Status status) {
        return std::ranges::count_if(results, [status](const EchoResult& each) {
            return each.done && each.answer && each.answer->status == status;
        });
    };
    // What those on its own credits may bring, and half of what there is, for one principal.
    const auto bytes_max = [&] {
        const std::size_t credits = stage.server->server.sessions().at(0).fop_credits;
        return credits * stage.server_options.inline_max + kBytesMax / 2;
    };

    hold(true);
    send(300, kLarge);
    // What does not fit waits at the client, as without loans.
    const auto waiting = stage.server->server.sessions().at(0);
    CHECK(waiting.fop_loans > 10);
    CHECK(waiting.fop_loans * (kLarge - 512) <= kBytesMax / 2 + kLarge);
    CHECK(foms.held.size() == waiting.fop_credits + waiting.fop_loans);
    CHECK(count_told(fop::Status::kTryAgain) == 0);
    hold(false);
    let_run();
    stage.world.run_for(1s);
    REQUIRE(count_told(fop::Status::kDone) == 300);

    // Small ones have as many loans as there are, and large ones come on these.
    results.clear();
    hold(true);
    send(300, 10);
    REQUIRE(foms.held.size() == 300);
    let_run();
    send(300, kLarge);
    CHECK(foms.held.size() * (kLarge - 512) <= bytes_max() + kLarge);
    CHECK(count_told(fop::Status::kTryAgain) > 100);
    CHECK(foms.held.size() + static_cast<std::size_t>(count_told(fop::Status::kTryAgain)) == 300);
    hold(false);
    let_run();
    EchoResult last;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, std::string(kLarge, 'l'), &last)));
    CHECK(last.answer->status == fop::Status::kDone);
}

TEST_CASE("fabric rpc: what a burst of fops takes is given back within a minute", "[fabric]") {
    constexpr std::size_t kClients = 3;
    constexpr std::size_t kWaiting = kClients * 1000;
    constexpr std::size_t kKept = 1024;
    std::deque<EchoResult> results(kWaiting);
    RpcStage stage;
    stage.stop_server();
    stage.server_options.fop_loans_max = kWaiting;
    stage.server_options.fop_loans_total = 8 * kWaiting;
    stage.start_server(2);
    Client& client = stage.connected();
    // A client has at most fop::kRequestPlaces calls in flight.
    std::deque<ClientSide> others;
    for (std::uint64_t i = 1; i < kClients; ++i) {
        ClientOptions options{.server = *parse_address("mem://server:1"),
                              .credentials = credentials(kKey)};
        others.emplace_back(stage.transport, *stage.client_reactor, std::move(options),
                            client_host_options("client" + std::to_string(i)), 99 + i);
        others.back().client.start();
    }
    TestFoms& foms = stage.server->foms;
    const Server& server = stage.server->server;
    foms.hold = foms.queue = true;
    for (std::size_t i = 0; i < kWaiting; ++i) {
        const std::size_t turn = i % kClients;
        Client& caller = turn == 0 ? client : others[turn - 1].client;
        stage.client_reactor->spawn(stage.gate, echo(&caller, "burst", &results[i]));
    }
    stage.world.run_for(1s);
    REQUIRE(foms.held.size() == kWaiting);
    REQUIRE(server.fops_made() == kWaiting);
    foms.hold = foms.queue = false;
    stage.answer_held();

    stage.world.run_for(60s);

    for (const EchoResult& each : results) REQUIRE(each.text == "burst");
    CHECK(server.fops_made() == kKept);
    EchoResult later;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "later", &later)));
    CHECK(later.text == "later");
    for (ClientSide& each : others) CHECK(stage.world.run(*stage.client_reactor, each.stop()));
}

TEST_CASE("fabric rpc: unused loans of one session are available to another", "[fabric]") {
    RpcStage stage;
    stage.stop_server();
    stage.server_options.fop_loans_total = 16;
    stage.start_server(2);
    Client& client = stage.connected();
    TestFoms& foms = stage.server->foms;
    const auto count = [&stage] { return stage.server->server.sessions().at(0).fop_loans; };
    foms.hold = foms.queue = true;
    std::vector<EchoResult> results(100);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, "waits", &each));
    }
    stage.world.run_for(10ms);
    const std::uint32_t most = count();
    REQUIRE(most > 0);
    REQUIRE(most < 16 / 2);
    // They have all it has, so it asks again and again; then they are spare.
    stage.world.run_for(1s);
    REQUIRE(count() == most);
    foms.hold = foms.queue = false;
    stage.in_server([&foms] {
        for (IncomingFop* each : std::exchange(foms.held, {})) {
            each->started();
            TestFoms::echo(*each);
        }
    });
    stage.world.run_for(1s);
    for (const EchoResult& each : results) REQUIRE(each.text == "waits");
    REQUIRE(count() == 0);
}

TEST_CASE("fabric rpc: idle clients give their credits back", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    std::vector<EchoResult> results(500);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, std::string(4000, 'c'), &each));
    }
    stage.world.run_for(1s);
    const auto busy = stage.server->server.sessions();

    stage.world.run_for(60s);
    const auto idle = stage.server->server.sessions();

    REQUIRE(busy.at(0).fop_credits == 64);
    REQUIRE(idle.at(0).fop_credits == 8);
    EchoResult result;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "still", &result)));
    REQUIRE(result.text == "still");
}

TEST_CASE("fabric rpc: an idle session costs a ping and its answer", "[fabric]") {
    RpcStage stage;
    // Few enough that each message counts.
    stage.client_options.message_credits_floor = stage.server_options.message_credits_floor;
    stage.connected();
    stage.world.run_for(1s);
    const std::uint64_t before = stage.server->host.statistics().messages_in.get();
    const std::uint64_t before_out = stage.server->host.statistics().messages_out.get();

    stage.world.run_for(150s);

    // One every half of the lease.
    const std::uint64_t pings = stage.server->host.statistics().messages_in.get() - before;
    REQUIRE(pings == 10);
    REQUIRE(stage.server->host.statistics().messages_out.get() - before_out == pings);
}

TEST_CASE("fabric rpc: idle clients give their credits back over a slow network, too", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    std::vector<EchoResult> results(500);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, std::string(4000, 'c'), &each));
    }
    stage.world.run_for(1s);
    // A ping is answered just before the next one.
    const DelayRange slow{.min = 7s, .max = 7s};
    stage.transport.network().set_delay({.from = "client", .to = "server"}, slow);
    stage.transport.network().set_delay({.from = "server", .to = "client"}, slow);

    stage.world.run_for(120s);

    REQUIRE(client.reconnects() == 0);
    REQUIRE(stage.server->host.statistics().broken.get() == 0);
    REQUIRE(stage.server->server.sessions().at(0).fop_credits == 8);
    EchoResult result;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "still", &result)));
    REQUIRE(result.text == "still");
}

}  // namespace fopd::fabric::testing::rpc
