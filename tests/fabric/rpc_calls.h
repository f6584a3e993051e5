#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tests/catch.h"
#include "tests/fabric/rpc_stage.h"

// A server of one locality and a client over the transport within the process, whose network the
// tests cut, and calls whose results are noted.
namespace fopd::fabric::testing::rpc {

inline const fop::Key kKey = key_of(1);

// What ends when a call is given up whose memory a transfer may be using: it alone; or, on
// transports that cannot give up a transfer, the session, if the transfer does not end.
enum class GivenUp : std::uint8_t { kEndsAlone, kEndsSession };

class RpcStage {
public:
    explicit RpcStage(std::uint64_t seed = 7, GivenUp given_up = GivenUp::kEndsAlone)
        : world(seed),
          transport({.seed = 7,
                     .delay = kSimulatedDelay,
                     .can_give_up = given_up == GivenUp::kEndsAlone}),
          server_reactor(world.make_reactor()),
          client_reactor(world.make_reactor()) {
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
                       incarnation, "mem://server:1", rpc_options);
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
    // Echoes each fop that is held.
    void answer_held() {
        in_server([this] {
            for (IncomingFop* each : std::exchange(server->foms.held, {})) TestFoms::echo(*each);
        });
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
    MemTransport transport;
    HostOptions server_options = server_host_options();
    ServerOptions rpc_options;  // From the next start of the server on.
    HostOptions client_options = client_host_options();
    std::unique_ptr<core::Reactor> server_reactor;
    std::unique_ptr<core::Reactor> client_reactor;
    std::optional<ServerSide> server;
    std::optional<ClientSide> client;
    core::Gate gate;
};

inline const fop::FopType& type(std::string_view name) {
    return *fop::find_fop_type(name);
}

struct EchoResult {
    Result<Answer> answer = std::unexpected(Error{.code = Errc::kIo});
    std::string text;
    bool done = false;
};

inline Task<void> echo(Client* client, std::string text, EchoResult* result,
                       Instant deadline = kNever, core::CancelSource* cancel = nullptr) {
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

inline Task<void> bulk_echo(Client* client, std::string* from, std::string* into,
                            EchoResult* result, Instant deadline = kNever) {
    const CallRequest request{.type = &type("bulk_echo"),
                              .body = fop::BulkEcho{.bytes = from->size()},
                              .source = std::as_writable_bytes(std::span(*from)),
                              .target = std::as_writable_bytes(std::span(*into)),
                              .deadline = deadline};
    result->answer = co_await client->call(request);
    result->done = true;
}

inline Task<void> create(Client* client, std::string name, EchoResult* result,
                         core::CancelSource* cancel = nullptr) {
    const CallRequest request{.type = &type("create"),
                              .body = fop::Create{.name = name, .group = "staff", .slot = 1},
                              .cancel = cancel};
    result->answer = co_await client->call(request);
    result->done = true;
}

inline Task<void> ping(Client* client, EchoResult* result) {
    const CallRequest request{.type = &type("ping"), .body = fop::Ping{}};
    result->answer = co_await client->call(request);
    result->done = true;
}

}  // namespace fopd::fabric::testing::rpc
