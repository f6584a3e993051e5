#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "core/virtual_world.h"
#include "tests/catch.h"
#include "tests/fabric/rpc_stage.h"

// Goal: what calls are promised, in the simulated world: answered once, sent again after a loss,
// never run twice, given up in time. Method: one locality and clients over the transport within
// the process, whose network the tests cut.

namespace fopd::fabric::testing {

namespace {

const fop::Key kKey = key_of(1);

class RpcStage {
public:
    explicit RpcStage(std::uint64_t seed = 7)
        : world(seed), server_reactor(world.make_reactor()), client_reactor(world.make_reactor()) {
        start_server(1);
    }
    ~RpcStage() {
        if (client) {
            CHECK(world.run(*client_reactor, client->stop()));
        }
        if (server) stop_server();
    }

    void start_server(std::uint64_t incarnation) {
        server.emplace(transport, *server_reactor,
                       Admission{.keys = ring_of({principal("tester", {kKey})})}, server_options,
                       incarnation, "mem://server:1");
    }
    void stop_server() {
        for (IncomingFop* each : std::exchange(server->foms.held, {})) TestFoms::echo(*each);
        CHECK(world.run(*server_reactor, server->stop()));
        server.reset();
    }
    Client& connect(fop::Credentials who = credentials(kKey)) {
        ClientOptions options;
        options.server = *parse_address("mem://server:1");
        options.credentials = std::move(who);
        client.emplace(transport, *client_reactor, options, client_options, 99);
        client->client.start();
        return client->client;
    }
    // As the server's own code would, in a turn of its reactor.
    void in_server(std::function<void()> job) {
        auto task = [](std::function<void()> call) -> Task<void> {
            call();
            co_return;
        };
        REQUIRE(world.run(*server_reactor, task(std::move(job))));
    }
    void reply_to_held(const fop::Reply& reply) {
        in_server([this, &reply] {
            for (IncomingFop* each : std::exchange(server->foms.held, {})) each->reply(reply);
        });
    }
    Client& connected() {
        Client& made = connect();
        const auto open = world.run(*client_reactor,
                                    made.connected(after(world.now(), 10s), Client::Tries::kFirst));
        REQUIRE(open.has_value());
        REQUIRE(open->has_value());
        return made;
    }

    ReplayedWorld world;
    MemTransport transport{{.seed = 7, .delay = kSimulatedDelay}};
    HostOptions server_options = server_host_options();
    HostOptions client_options = client_host_options();
    std::unique_ptr<core::Reactor> server_reactor;
    std::unique_ptr<core::Reactor> client_reactor;
    std::optional<ServerSide> server;
    std::optional<ClientSide> client;
    core::Gate gate;
};

const fop::FopType& type(std::string_view name) {
    return *fop::find_fop_type(name);
}

struct EchoResult {
    Result<Answer> answer = std::unexpected(Error{.code = Errc::kIo});
    std::string text;
    bool done = false;
};

Task<void> echo(Client* client, std::string text, EchoResult* result, Instant deadline = kNever,
                core::CancelSource* cancel = nullptr) {
    std::string back(text.size() + 100, '?');
    const CallRequest request{.type = &type("echo"),
                              .body = fop::Echo{},
                              .payload = std::as_bytes(std::span(text)),
                              .reply_into = std::as_writable_bytes(std::span(back)),
                              .deadline = deadline,
                              .cancel = cancel};
    result->answer = co_await client->call(request);
    if (result->answer) result->text = back.substr(0, result->answer->payload_bytes);
    result->done = true;
}

Task<void> bulk_echo(Client* client, std::string* from, std::string* into, EchoResult* result,
                     Instant deadline = kNever) {
    const CallRequest request{.type = &type("bulk_echo"),
                              .body = fop::BulkEcho{.bytes = from->size()},
                              .source = std::as_writable_bytes(std::span(*from)),
                              .target = std::as_writable_bytes(std::span(*into)),
                              .deadline = deadline};
    result->answer = co_await client->call(request);
    result->done = true;
}

}  // namespace

TEST_CASE("fabric rpc: an echo returns its payload", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    EchoResult result;

    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "hello", &result)));

    REQUIRE(result.answer.has_value());
    REQUIRE(result.answer->status == fop::Status::kDone);
    REQUIRE(result.text == "hello");
}

TEST_CASE("fabric rpc: a client that closes its session is not counted as lost", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    const HostStatistics& figures = stage.server->host.statistics();
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(10s);
    REQUIRE(figures.lost.get() == 1);
    REQUIRE(client.open());

    REQUIRE(stage.world.run(*stage.client_reactor, client.close()));
    stage.world.run_for(1s);
    CHECK(figures.sessions.get() == 0);
    CHECK(figures.lost.get() == 1);
}

TEST_CASE("fabric rpc: hundreds of calls at once are packed, and each gets its own answer",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    std::vector<EchoResult> results(500);
    for (std::size_t i = 0; i < results.size(); ++i) {
        stage.client_reactor->spawn(
            stage.gate,
            echo(&client, std::string(i * 17 % 4096, 'a') + std::to_string(i), &results[i]));
    }

    stage.world.run_for(5s);

    for (std::size_t i = 0; i < results.size(); ++i) {
        CAPTURE(i);
        REQUIRE(results[i].done);
        REQUIRE(results[i].answer.has_value());
        REQUIRE(results[i].text == std::string(i * 17 % 4096, 'a') + std::to_string(i));
    }
    const auto& statistics = client.session().statistics();
    REQUIRE(statistics.fops == 500);
    REQUIRE(statistics.messages_out < 250);
}

TEST_CASE("fabric rpc: bulk data is pulled and pushed", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    std::string from(1'000'000, 'x');
    from[999'999] = 'y';
    std::string into(1'000'000, '.');
    EchoResult result;

    REQUIRE(stage.world.run(*stage.client_reactor, bulk_echo(&client, &from, &into, &result)));

    REQUIRE(result.answer.has_value());
    REQUIRE(result.answer->status == fop::Status::kDone);
    REQUIRE(into == from);
}

TEST_CASE("fabric rpc: a wrong key and an unknown one are refused alike", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connect(credentials(key_of(2)));

    const auto open = stage.world.run(
        *stage.client_reactor,
        client.connected(after(stage.world.now(), 10s), Client::Tries::kUntilDeadline));

    REQUIRE(open.has_value());
    REQUIRE_FALSE(open->has_value());
    REQUIRE(open->error().code == Errc::kDenied);
    stage.world.run_for(1ms);
    REQUIRE(stage.server->events.count("fabric.session_refused") == 1);
    EchoResult result;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "hello", &result)));
    REQUIRE(result.answer.error().code == Errc::kDenied);
}

TEST_CASE("fabric rpc: a server that is not there is found when it comes", "[fabric]") {
    RpcStage stage;
    stage.stop_server();
    Client& client = stage.connect();
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, echo(&client, "hello", &result));
    stage.world.run_for(20s);
    REQUIRE_FALSE(result.done);

    stage.start_server(2);
    stage.world.run_for(20s);

    REQUIRE(result.done);
    REQUIRE(result.text == "hello");
}

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

Task<void> create(Client* client, std::string name, EchoResult* result) {
    const CallRequest request{.type = &type("create"),
                              .body = fop::Create{.name = name, .group = "staff", .slot = 1}};
    result->answer = co_await client->call(request);
    result->done = true;
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

TEST_CASE("fabric rpc: what bodies refer to is kept on both sides", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::vector<EchoResult> results(20);
    for (std::size_t i = 0; i < results.size(); ++i) {
        stage.client_reactor->spawn(stage.gate,
                                    create(&client, "name " + std::to_string(i), &results[i]));
    }
    stage.world.run_for(10ms);

    const auto held = stage.server->foms.held;
    REQUIRE_FALSE(held.empty());
    for (std::size_t i = 0; i < held.size(); ++i) {
        REQUIRE(std::get<fop::Create>(held[i]->request().body).name == "name " + std::to_string(i));
        REQUIRE(std::get<fop::Create>(held[i]->request().body).group == "staff");
    }
    stage.server->foms.hold = false;
    {
        std::array<std::uint32_t, 3> checksums{1, 2, 3};
        stage.reply_to_held({.body = fop::ReadReply{.bytes = 5, .checksums = checksums}});
        checksums.fill(0);
    }
    stage.world.run_for(10ms);

    REQUIRE(results[0].answer.has_value());
    const auto& read = std::get<fop::ReadReply>(results[0].answer->body);
    REQUIRE(std::ranges::equal(read.checksums, std::array<std::uint32_t, 3>{1, 2, 3}));
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

TEST_CASE("fabric rpc: a deadline ends a call in time, and the server hears of it", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult result;
    stage.client_reactor->spawn(stage.gate,
                                echo(&client, "late", &result, after(stage.world.now(), 100ms)));

    stage.world.run_for(101ms);

    REQUIRE(result.done);
    REQUIRE(result.answer.error().code == Errc::kTimedOut);
    stage.world.run_for(1ms);
    REQUIRE(stage.server->foms.held.front()->cancel_source().cancelled());
}

TEST_CASE(
    "fabric rpc: memory of a call that is given up comes back before the reply, and no "
    "other call notices",
    "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult late;
    EchoResult other;
    stage.client_reactor->spawn(stage.gate, echo(&client, "other", &other));
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &late, after(stage.world.now(), 100ms)));

    stage.world.run_for(110ms);

    REQUIRE(late.done);
    REQUIRE(late.answer.error().code == Errc::kTimedOut);
    REQUIRE(stage.server->foms.held.size() == 2);
    REQUIRE_FALSE(other.done);
    stage.in_server([&stage] {
        for (IncomingFop* each : std::exchange(stage.server->foms.held, {})) TestFoms::echo(*each);
    });
    stage.world.run_for(1ms);
    REQUIRE(other.text == "other");
    REQUIRE(client.reconnects() == 0);
    REQUIRE(client.calls_under_way() == 0);
}

// Begins a transfer of a fop that is held, and notes how it ended.
Task<void> pull_into(IncomingFop* fop, core::Buffer into, Result<void>* moved) {
    const auto source = std::get<fop::BulkEcho>(fop->request().body).source;
    *moved = co_await fop->pull(&source, 0, into);
}

TEST_CASE("fabric rpc: memory of a call that is given up stays lent while a transfer is under way",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult result;
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &result, after(stage.world.now(), 100ms)));
    stage.world.run_for(99ms);
    // The transfer takes longer than the deadline and the message that cancels.
    stage.transport.network().set_delay({.from = "server", .to = "client"},
                                        {.min = 20ms, .max = 20ms});
    Result<void> moved;
    stage.in_server([&stage, &moved] {
        stage.server_reactor->spawn(
            stage.gate,
            pull_into(stage.server->foms.held.front(),
                      {.data = stage.server->foms.memory.data(), .size_bytes = 4}, &moved));
    });

    stage.world.run_for(10ms);
    const bool was_cancelled = stage.server->foms.held.front()->cancel_source().cancelled();
    // A message that had left before the transfer ended would be there by now.
    stage.world.run_for(25ms);
    const bool was_early = result.done;
    stage.world.run_for(12ms);

    REQUIRE(was_cancelled);
    REQUIRE_FALSE(was_early);
    REQUIRE(result.done);
    REQUIRE_FALSE(moved.has_value());
    REQUIRE(client.reconnects() == 0);
    stage.in_server([&stage] {
        for (IncomingFop* each : std::exchange(stage.server->foms.held, {})) TestFoms::echo(*each);
    });
}

TEST_CASE(
    "fabric rpc: a server that does not answer loses the session within 100 ms, and other "
    "calls go on over the next one",
    "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult late;
    EchoResult other;
    stage.client_reactor->spawn(stage.gate, echo(&client, "other", &other));
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &late, after(stage.world.now(), 100ms)));
    stage.world.run_for(10ms);
    stage.transport.network().block({.from = "client", .to = "server"});

    stage.world.run_for(190ms);

    REQUIRE(late.done);
    REQUIRE(late.answer.error().code == Errc::kTimedOut);
    REQUIRE_FALSE(other.done);
    stage.transport.network().unblock({.from = "client", .to = "server"});
    stage.server->foms.hold = false;
    stage.in_server([&stage] {
        for (IncomingFop* each : std::exchange(stage.server->foms.held, {})) TestFoms::echo(*each);
    });
    stage.world.run_for(10s);
    REQUIRE(other.text == "other");
}

Task<void> ping(Client* client, EchoResult* result) {
    const CallRequest request{.type = &type("ping"), .body = fop::Ping{}};
    result->answer = co_await client->call(request);
    result->done = true;
}

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
    stage.in_server([&stage] {
        for (IncomingFop* each : std::exchange(stage.server->foms.held, {})) TestFoms::echo(*each);
    });
    stage.world.run_for(10s);

    REQUIRE(control.done);
    REQUIRE(control.answer.has_value());
    for (const EchoResult& each : data) REQUIRE(each.text == "data");
}

TEST_CASE("fabric rpc: a silent server is given up after the lease, an idle one is not",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.world.run_for(300s);
    REQUIRE(client.open());
    REQUIRE(client.reconnects() == 0);

    stage.transport.network().partition({.from = "client", .to = "server"});
    stage.world.run_for(31s);
    const bool lost = !client.open();
    stage.transport.network().heal({.from = "client", .to = "server"});
    stage.world.run_for(10s);

    REQUIRE(lost);
    REQUIRE(client.open());
    REQUIRE(stage.server->host.session_count() == 1);
}

TEST_CASE("fabric rpc: a client that accepts only small messages is told so, and affects no other",
          "[fabric]") {
    RpcStage stage;
    stage.client_options.machine.receive_buffer_bytes = 2048;
    Client& client = stage.connected();
    EchoResult large;
    EchoResult small;

    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, std::string(8000, 'x'), &large)));
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "small", &small)));

    REQUIRE(large.answer.has_value());
    REQUIRE(large.answer->status == fop::Status::kTooLarge);
    REQUIRE(small.text == "small");
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

TEST_CASE("fabric rpc: a server that drains is left, and what it has is answered", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult held;
    EchoResult later;
    EchoResult last;
    stage.client_reactor->spawn(stage.gate, echo(&client, "held", &held));
    stage.world.run_for(1ms);

    stage.in_server([&stage] { stage.server->server.drain(); });
    stage.world.run_for(1ms);
    stage.client_reactor->spawn(stage.gate, echo(&client, "later", &later));
    stage.world.run_for(1ms);
    REQUIRE(stage.server->foms.arrived == 1);
    REQUIRE(later.done);
    REQUIRE(later.answer->status == fop::Status::kTryAgain);
    REQUIRE(later.answer->words == "the node drains");
    stage.in_server([&stage] {
        for (IncomingFop* each : std::exchange(stage.server->foms.held, {})) TestFoms::echo(*each);
    });
    stage.world.run_for(10ms);
    REQUIRE(held.text == "held");
    REQUIRE_FALSE(client.open());
    // Long after the session, and while it tries to have another one.
    stage.world.run_for(20s);
    stage.client_reactor->spawn(stage.gate, echo(&client, "last", &last));
    stage.world.run_for(1ms);

    REQUIRE(last.done);
    REQUIRE(last.answer->status == fop::Status::kTryAgain);
}

TEST_CASE("fabric rpc: what waits to be sent when the server drains is answered", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::vector<EchoResult> results(500);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, "one of many", &each));
    }
    stage.world.run_for(1ms);
    const auto sent = static_cast<std::ptrdiff_t>(stage.server->foms.arrived);
    REQUIRE(sent < 500);

    stage.in_server([&stage] { stage.server->server.drain(); });
    stage.world.run_for(1ms);

    REQUIRE(std::ranges::count_if(results, &EchoResult::done) == 500 - sent);
    for (const EchoResult& each : results) {
        if (each.done) REQUIRE(each.answer->status == fop::Status::kTryAgain);
    }
    stage.in_server([&stage] {
        for (IncomingFop* each : std::exchange(stage.server->foms.held, {})) TestFoms::echo(*each);
    });
    stage.world.run_for(10ms);
    REQUIRE(std::ranges::count(results, "one of many", &EchoResult::text) == sent);
}

TEST_CASE("fabric rpc: a call that waits for a server is served by its next life", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    EchoResult waiting;
    stage.in_server([&stage] { stage.server->server.drain(); });
    stage.world.run_for(1ms);

    stage.stop_server();
    stage.world.run_for(10s);
    stage.client_reactor->spawn(stage.gate, echo(&client, "waiting", &waiting));
    stage.world.run_for(10s);
    REQUIRE_FALSE(waiting.done);
    stage.start_server(2);
    stage.world.run_for(10s);

    REQUIRE(waiting.text == "waiting");
}

TEST_CASE("fabric rpc: what has not left is given up at once, with memory lent or not",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    // Two fill each of the messages there are credits for; the last has come as far as lending.
    stage.transport.network().block({.from = "client", .to = "server"});
    std::array<EchoResult, 4> filling;
    EchoResult last;
    std::string from(1000, 'f');
    std::string into(1000, 'i');
    const Instant deadline = after(stage.world.now(), 100ms);
    for (std::size_t i = 0; i < filling.size(); ++i) {
        stage.client_reactor->spawn(
            stage.gate, echo(&client, std::string(i % 2 == 0 ? 12'000 : 3'760, 'x'), &filling[i]));
    }
    stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &last, deadline));

    stage.world.run_for(101ms);

    REQUIRE(last.done);
    REQUIRE(last.answer.error().code == Errc::kTimedOut);
    stage.transport.network().unblock({.from = "client", .to = "server"});
    stage.world.run_for(1s);
    for (const EchoResult& each : filling) REQUIRE(each.answer.has_value());
    REQUIRE(stage.server->foms.bulk_runs == 0);
}

}  // namespace fopd::fabric::testing
