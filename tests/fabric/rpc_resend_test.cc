#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>

#include "tests/fabric/rpc_calls.h"

// Goal: calls that are sent again after a loss of the connection or a restart of the server are
// answered, and what must not run twice does not. Method: a server and a client in the simulated
// world, whose network the tests cut.

namespace fopd::fabric::testing::rpc {

TEST_CASE("fabric rpc: calls under way when the connection is lost are answered after all",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    std::vector<EchoResult> results(100);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, "again", &each));
    }
    stage.world.run_for(60us);

    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(10s);

    for (const EchoResult& each : results) REQUIRE(each.text == "again");
    REQUIRE(client.reconnects() == 1);
}

namespace {

// For so long, ends each session as soon as it is open.
void end_each_session(RpcStage& stage, const Client& client, Duration span) {
    const Instant end = after(stage.world.now(), span);
    while (stage.world.now() < end) {
        if (client.open()) {
            stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                                       LossNotice::kBoth);
        }
        stage.world.run_for(1ms);
    }
}

}  // namespace

TEST_CASE("fabric rpc: a server that ends each session at once is asked ever more seldom",
          "[fabric]") {
    RpcStage stage;
    const Client& client = stage.connected();

    end_each_session(stage, client, 60s);

    // The pauses grow from 50 ms to 5 s, of which at least a half is waited.
    CHECK(client.reconnects() > 10);
    REQUIRE(client.reconnects() < 40);
}

TEST_CASE("fabric rpc: a session that was of use makes the next pause short", "[fabric]") {
    enum class Use : std::uint8_t { kNone, kAnswered, kLasted };
    for (const Use use : {Use::kNone, Use::kAnswered, Use::kLasted}) {
        CAPTURE(static_cast<int>(use));
        RpcStage stage;
        Client& client = stage.connected();
        end_each_session(stage, client, 30s);
        const auto open = stage.world.run(
            *stage.client_reactor,
            client.connected(after(stage.world.now(), 10s), Client::Tries::kUntilDeadline));
        REQUIRE(open.has_value());
        REQUIRE(open->has_value());

        EchoResult result;
        if (use == Use::kAnswered) {
            REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "useful", &result)));
            REQUIRE(result.text == "useful");
        }
        if (use == Use::kLasted) stage.world.run_for(5s);
        stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                                   LossNotice::kBoth);
        stage.world.run_for(1s);

        REQUIRE(client.open() == (use != Use::kNone));
    }
}

TEST_CASE("fabric rpc: what a client sends again is given up where it was before", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, echo(&client, "again", &result));
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 1);

    // The server does not notice.
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kFrom);
    stage.world.run_for(1s);

    REQUIRE(stage.server->foms.held.size() == 2);
    REQUIRE(stage.server->foms.held[0]->cancel_source().cancelled());
    REQUIRE_FALSE(stage.server->foms.held[1]->cancel_source().cancelled());
    stage.in_server([&stage] {
        for (IncomingFop* each : std::exchange(stage.server->foms.held, {})) {
            TestFoms::echo(*each);
        }
    });
    stage.world.run_for(1s);
    REQUIRE(result.text == "again");
}

TEST_CASE("fabric rpc: what must not run twice runs once, and its answer is given again",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "once";
    std::string into = "....";
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &result));
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 1);

    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(10s);
    const bool waited = !result.done;
    stage.reply_to_held({.words = "it ran", .body = fop::BulkEchoReply{.bytes = 4}});
    stage.world.run_for(1s);

    REQUIRE(waited);
    REQUIRE(result.done);
    REQUIRE(result.answer.has_value());
    REQUIRE(result.answer->words == "it ran");
    REQUIRE(stage.server->foms.arrived == 1);
}

TEST_CASE("fabric rpc: what is sent again while memory is short keeps its session and is answered",
          "[fabric]") {
    const bool is_recorded = GENERATE(false, true);
    CAPTURE(is_recorded);
    RpcStage stage;
    stage.stop_server();
    // One request at a time.
    stage.rpc_options.request_bytes_max = 1;
    stage.start_server(2);
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "once";
    std::string into = "....";
    EchoResult result;
    if (is_recorded) {
        stage.client_reactor->spawn(stage.gate, create(&client, "new", &result));
    } else {
        stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &result));
    }
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 1);
    EchoResult other;
    stage.client_reactor->spawn(stage.gate, echo(&client, "other", &other));
    stage.world.run_for(10ms);
    REQUIRE(other.answer.has_value());
    REQUIRE(other.answer->status == fop::Status::kTryAgain);
    CHECK(stage.server->server.statistics().lacked_requests.get() == 1);

    // What was begun goes on, and takes its memory.
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(10s);
    CHECK_FALSE(result.done);
    CHECK(stage.server->foms.arrived == 1);
    // It is either one that waits for its reply, or put off with growing pauses. Neither ends the
    // session.
    CHECK(client.reconnects() == 1);
    CHECK(stage.server->server.statistics().ended.get() == 0);
    const std::uint64_t put_off = stage.server->server.statistics().lacked_requests.get() - 1;
    CHECK((put_off > 0) == is_recorded);
    CHECK(put_off < 20);
    const fop::ReplyBody body =
        is_recorded ? fop::ReplyBody(fop::CreateReply{}) : fop::BulkEchoReply{.bytes = 4};
    stage.reply_to_held({.words = "it ran", .body = body});
    stage.world.run_for(60s);
    // The store of a server that records replies answers with the first one; here it arrives.
    if (is_recorded) stage.reply_to_held({.words = "it ran", .body = body});
    stage.world.run_for(1s);
    REQUIRE(result.done);
    REQUIRE(result.answer.has_value());
    CHECK(result.answer->words == "it ran");
    CHECK(stage.server->foms.arrived == (is_recorded ? 2 : 1));
}

TEST_CASE("fabric rpc: what must not run twice is given up when its client cannot come back",
          "[fabric]") {
    const bool is_revoked = GENERATE(false, true);
    CAPTURE(is_revoked);
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "once";
    std::string into = "....";
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &result));
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 1);
    core::CancelSource& cancel = stage.server->foms.held[0]->cancel_source();

    // The client is killed.
    stage.transport.network().block({.from = "client", .to = "server"});
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    REQUIRE(stage.world.run(*stage.client_reactor, stage.client->stop()));
    stage.client.reset();
    stage.world.run_for(1min);
    CHECK_FALSE(cancel.cancelled());

    if (is_revoked) {
        // With other rights the client could still come back.
        stage.in_server([&stage] {
            Server& server = stage.server->server;
            server.admit({.keys = ring_of({principal("tester", {kKey}, fop::Rights{})})});
            server.end_outdated();
        });
        CHECK_FALSE(cancel.cancelled());
        stage.in_server([&stage] {
            Server& server = stage.server->server;
            server.admit({.keys = ring_of({principal("tester", {key_of(2)})})});
            server.end_outdated();
        });
    } else {
        stage.world.run_for(ServerOptions{}.client_kept);
    }

    CHECK(cancel.cancelled());
    stage.reply_to_held({.status = fop::Status::kCancelled});
    CHECK(stage.server->server.held() == 0);
}

TEST_CASE("fabric rpc: what has not started when its session ends is given up, and may come again",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    stage.server->foms.queue = true;
    std::string from = "once";
    std::string into = "....";
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &result));
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 1);

    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(1us);
    REQUIRE(stage.server->foms.held[0]->cancel_source().cancelled());
    REQUIRE(stage.server->server.unheard(1h).empty());
    stage.world.run_for(10s);
    REQUIRE(stage.server->foms.held.size() == 2);
    stage.in_server([&stage] { stage.server->foms.held[1]->started(); });
    stage.reply_to_held({.words = "it ran", .body = fop::BulkEchoReply{.bytes = 4}});
    stage.world.run_for(1s);

    REQUIRE(result.done);
    REQUIRE(result.answer.has_value());
    REQUIRE(result.answer->words == "it ran");
}

TEST_CASE("fabric rpc: nothing is remembered of what was answered without having started",
          "[fabric]") {
    for (const bool starts : {true, false}) {
        RpcStage stage;
        Client& client = stage.connected();
        stage.server->foms.hold = true;
        stage.server->foms.queue = !starts;
        EchoResult result;
        stage.client_reactor->spawn(stage.gate, create(&client, "once", &result));
        stage.world.run_for(10ms);
        const std::size_t before = stage.server->server.unheard(1h).size();
        stage.transport.network().block({.from = "server", .to = "client"});

        stage.reply_to_held({.status = fop::Status::kNotFound});

        REQUIRE(before == (starts ? 1U : 0U));
        REQUIRE(stage.server->server.unheard(1h).size() == (starts ? 1U : 0U));
        stage.transport.network().unblock({.from = "server", .to = "client"});
    }
}

TEST_CASE("fabric rpc: a reply that was lost on its way is given again", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "once";
    std::string into = "....";
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &result));
    stage.world.run_for(10ms);

    stage.transport.network().block({.from = "server", .to = "client"});
    stage.reply_to_held({.words = "it ran", .body = fop::BulkEchoReply{.bytes = 4}});
    stage.world.run_for(1s);
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.transport.network().unblock({.from = "server", .to = "client"});
    stage.world.run_for(10s);

    REQUIRE(result.done);
    REQUIRE(result.answer.has_value());
    REQUIRE(result.answer->words == "it ran");
    REQUIRE(stage.server->foms.arrived == 1);
}

TEST_CASE("fabric rpc: what the store remembers is given up with its session, and asked again",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, create(&client, "once", &result));
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 1);

    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(1s);

    // What it has begun it ends; who asks again is told what became of it.
    REQUIRE(stage.server->foms.held.size() == 2);
    CHECK(stage.server->foms.held[0]->cancel_source().cancelled());
    CHECK_FALSE(stage.server->foms.held[1]->cancel_source().cancelled());
    CHECK(stage.server->foms.held[0]->request().id == stage.server->foms.held[1]->request().id);
    REQUIRE(stage.server->server.unheard(1h).size() == 1);
    CHECK(stage.server->server.unheard(1h)[0].request == stage.server->foms.held[0]->request().id);
    stage.reply_to_held({.body = fop::CreateReply{.version = 1}});
    stage.world.run_for(1s);
    REQUIRE(result.done);
    CHECK(result.answer->sent_before);
    EchoResult next;
    stage.server->foms.hold = false;
    stage.client_reactor->spawn(stage.gate, echo(&client, "next", &next));
    stage.world.run_for(1s);
    REQUIRE(next.text == "next");
    CHECK(stage.server->server.unheard(1h).empty());
}

TEST_CASE("fabric rpc: after a restart what the store remembers is asked again, for a while",
          "[fabric]") {
    for (const bool in_time : {true, false}) {
        CAPTURE(in_time);
        RpcStage stage;
        Client& client = stage.connected();
        stage.server->foms.hold = true;
        EchoResult result;
        stage.client_reactor->spawn(stage.gate, create(&client, "once", &result));
        stage.world.run_for(10ms);
        REQUIRE(stage.server->foms.held.size() == 1);
        const std::uint64_t first = stage.server->foms.held[0]->request().id;

        stage.transport.network().block({.from = "server", .to = "client"});
        stage.stop_server();
        stage.transport.network().unblock({.from = "server", .to = "client"});
        stage.world.run_for(in_time ? Duration(1min) : Duration(31min));
        stage.start_server(2);
        stage.server->foms.hold = true;
        stage.world.run_for(10s);

        REQUIRE(result.done != in_time);
        if (!in_time) {
            REQUIRE(result.answer->status == fop::Status::kOutcomeUnknown);
            continue;
        }
        REQUIRE(stage.server->foms.held.size() == 1);
        REQUIRE(stage.server->foms.held[0]->request().id == first);
        stage.reply_to_held({.body = fop::CreateReply{.version = 1}});
        stage.world.run_for(10ms);
        REQUIRE(result.done);
        REQUIRE(std::get<fop::CreateReply>(result.answer->body).version == 1);
    }
}

// A server in a new life that puts a change off has not looked whether its earlier life has made
// it.
TEST_CASE("fabric rpc: a change sent again and put off keeps its number", "[fabric]") {
    for (const bool loses_session : {false, true}) {
        CAPTURE(loses_session);
        RpcStage stage;
        Client& client = stage.connected();
        stage.server->foms.hold = true;
        EchoResult result;
        stage.client_reactor->spawn(stage.gate, create(&client, "once", &result));
        stage.world.run_for(10ms);
        REQUIRE(stage.server->foms.held.size() == 1);
        const std::uint64_t first = stage.server->foms.held[0]->request().id;
        stage.transport.network().block({.from = "server", .to = "client"});
        stage.stop_server();
        stage.transport.network().unblock({.from = "server", .to = "client"});
        stage.start_server(2);
        stage.server->foms.hold = true;
        stage.world.run_for(10s);

        for (int round = 0; round < 3; ++round) {
            REQUIRE(stage.server->foms.held.size() == 1);
            REQUIRE(stage.server->foms.held[0]->request().id == first);
            stage.reply_to_held({.status = fop::Status::kTryAgain, .words = "not now"});
            stage.server->foms.hold = false;
            EchoResult other;
            stage.client_reactor->spawn(stage.gate, echo(&client, "other", &other));
            stage.world.run_for(5ms);
            REQUIRE(other.text == "other");
            REQUIRE_FALSE(result.done);
            // It is not acknowledged by what was answered meanwhile.
            CHECK(stage.server->server.unheard(1h).size() == 1);
            if (loses_session) {
                stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                                           LossNotice::kBoth);
            }
            stage.server->foms.hold = true;
            stage.world.run_for(10s);
        }
        REQUIRE(stage.server->foms.held.size() == 1);
        REQUIRE(stage.server->foms.held[0]->request().id == first);
        stage.reply_to_held({.body = fop::CreateReply{.version = 1}});
        stage.world.run_for(10ms);
        REQUIRE(result.done);
        CHECK(std::get<fop::CreateReply>(result.answer->body).version == 1);
        EchoResult last;
        stage.server->foms.hold = false;
        stage.client_reactor->spawn(stage.gate, echo(&client, "last", &last));
        stage.world.run_for(1s);
        CHECK(last.text == "last");
        CHECK(stage.server->server.unheard(1h).empty());
    }
}

TEST_CASE("fabric rpc: a change that is put off again and again is given up at its deadline",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult result;
    core::CancelSource cancel;
    stage.client_reactor->spawn(stage.gate, create(&client, "once", &result, &cancel));
    stage.world.run_for(10ms);
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(1s);
    stage.reply_to_held({.status = fop::Status::kTryAgain, .words = "not now"});
    stage.world.run_for(5ms);
    REQUIRE_FALSE(result.done);

    cancel.cancel();
    stage.world.run_for(1ms);

    REQUIRE(result.done);
    REQUIRE(result.answer.error().code == Errc::kCancelled);
    CHECK(client.calls_in_flight() == 0);
}

TEST_CASE("fabric rpc: after a restart the outcome of what must not run twice is unknown",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "once";
    std::string into = "....";
    EchoResult once;
    EchoResult again;
    stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &once));
    stage.client_reactor->spawn(stage.gate, echo(&client, "again", &again));
    stage.world.run_for(10ms);

    stage.transport.network().block({.from = "server", .to = "client"});
    stage.stop_server();
    stage.transport.network().unblock({.from = "server", .to = "client"});
    stage.start_server(2);
    stage.world.run_for(20s);

    REQUIRE(once.done);
    REQUIRE(once.answer.has_value());
    REQUIRE(once.answer->status == fop::Status::kOutcomeUnknown);
    REQUIRE(again.text == "again");
}

TEST_CASE("fabric rpc: a killed client leaves its record and its begun requests, for minutes",
          "[fabric]") {
    constexpr std::uint64_t kClients = 200;
    constexpr std::uint64_t kDepth = 8;
    // A reply without a payload has words at most.
    constexpr std::uint64_t kRequestBytesMax = 512 + fop::kWordsBytesMax;
    RpcStage stage;
    Server& server = stage.server->server;
    auto& network = stage.transport.network();
    std::uint64_t cut_off = 0;
    for (std::uint64_t number = 0; number < kClients; ++number) {
        ClientSide killed(
            stage.transport, *stage.client_reactor,
            {.server = *parse_address("mem://server:1"), .credentials = credentials(kKey)},
            stage.client_options, 1000 + number);
        killed.client.start();
        const auto open = stage.world.run(
            *stage.client_reactor,
            killed.client.connected(after(stage.world.now(), 10s), Client::Tries::kFirst));
        REQUIRE(open.has_value());
        REQUIRE(open->has_value());
        std::vector<std::string> memory(2 * kDepth, std::string(100'000, 'x'));
        std::vector<EchoResult> results(kDepth);
        for (std::size_t i = 0; i < kDepth; ++i) {
            stage.client_reactor->spawn(stage.gate, bulk_echo(&killed.client, &memory[2 * i],
                                                              &memory[2 * i + 1], &results[i]));
        }
        // The first die before their requests arrive, others in the transfers or after them.
        stage.world.run_for(number * 2us);
        cut_off += server.held();
        network.block({.from = "client", .to = "server"});
        network.lose_connections({.from = "client", .to = "server"}, LossNotice::kBoth);
        REQUIRE(stage.world.run(*stage.client_reactor, killed.stop()));
        network.unblock({.from = "client", .to = "server"});
        stage.world.run_for(10ms);

        REQUIRE(server.held() == 0);
        REQUIRE(stage.server->host.at_rest());
        REQUIRE(server.clients() <= number + 1);
        REQUIRE(server.reply_bytes() <= (number + 1) * kDepth * kRequestBytesMax);
    }
    CHECK(cut_off > kClients);
    CHECK(server.clients() == kClients);
    CHECK(server.reply_bytes() > 0);

    stage.world.run_for(ServerOptions{}.client_kept + 20s);
    CHECK(server.clients() == 0);
    CHECK(server.reply_bytes() == 0);
}

}  // namespace fopd::fabric::testing::rpc
