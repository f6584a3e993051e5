#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/crc32c.h"
#include "core/entropy.h"
#include "core/events.h"
#include "core/gate.h"
#include "fabric/mem/mem_transport.h"
#include "fabric/rpc/client.h"
#include "fabric/rpc/server.h"
#include "fop/principal.h"
#include "tests/catch.h"
#include "tests/fabric/transport_kinds.h"

namespace fopd::fabric::testing {

inline fop::Key key_of(std::uint8_t seed) {
    fop::Key key;
    for (std::byte& each : key.writable()) each = static_cast<std::byte>(seed);
    return key;
}

inline std::shared_ptr<const fop::KeyRing> ring_of(std::vector<fop::Principal> principals) {
    auto ring = fop::KeyRing::make({.principals = std::move(principals), .peer_keys = {}});
    REQUIRE(ring.has_value());
    return std::make_shared<const fop::KeyRing>(*std::move(ring));
}

inline fop::Principal principal(std::string name, std::vector<fop::Key> keys,
                                fop::Rights rights = fop::kAllRights) {
    return {.name = std::move(name),
            .keys = std::move(keys),
            .rights = rights,
            .groups = {},
            .delegation = fop::Delegation::kNone};
}

inline fop::Credentials credentials(const fop::Key& key, std::string name = "tester") {
    return {.kind = fop::AuthKind::kPrincipal, .key = key, .name = std::move(name), .user = ""};
}

// Counts events by name.
class NotedEvents final : public core::EventSink {
public:
    void emit(core::Level, std::string_view name, std::span<const core::Field>) override {
        names.emplace_back(name);
    }
    bool wants(core::Level) const override { return true; }
    std::size_t count(std::string_view name) const {
        return static_cast<std::size_t>(std::ranges::count(names, name));
    }
    std::vector<std::string> names;
};

// Does with fops what a test tells it to: echoes them at once, or holds them.
class TestFoms final : public IncomingUser {
public:
    explicit TestFoms(core::Reactor& reactor) : reactor_(reactor) {}

    void on_incoming(IncomingFop& fop) override {
        ++arrived;
        if (fop.request().fault != fop::Status::kDone) {
            return fop.reply({.status = fop.request().fault, .words = "fault"});
        }
        if (!queue) fop.started();
        if (hold) {
            held.push_back(&fop);
            return;
        }
        if (std::holds_alternative<fop::BulkEcho>(fop.request().body)) {
            reactor_.spawn(gate, bulk(&fop));
            return;
        }
        echo(fop, answer.empty() ? fop.request().payload : answer);
    }
    static void echo(IncomingFop& fop) { echo(fop, fop.request().payload); }
    static void echo(IncomingFop& fop, std::span<const std::byte> payload) {
        const bool ping = std::holds_alternative<fop::Ping>(fop.request().body);
        fop.reply({.payload = payload,
                   .body = ping ? fop::ReplyBody(fop::PingReply{}) : fop::EchoReply{}});
    }

    core::Gate gate;
    bool hold = false;
    bool queue = false;                 // What is held has not started.
    std::span<const std::byte> answer;  // What an echo brings back instead of its own bytes.
    std::vector<IncomingFop*> held;
    std::size_t arrived = 0;
    std::size_t bulk_runs = 0;
    std::vector<std::byte> memory = std::vector<std::byte>(1U << 20);

private:
    Task<void> bulk(IncomingFop* fop) {
        ++bulk_runs;
        const auto body = std::get<fop::BulkEcho>(fop->request().body);
        const core::Buffer buffer{.data = memory.data(), .size_bytes = body.bytes};
        auto moved = co_await fop->pull(&body.source, 0, buffer);
        if (moved) moved = co_await fop->push(&body.target, 0, buffer);
        fop->reply(
            {.status = moved ? fop::Status::kDone : fop::status_of(moved.error().code),
             .body = fop::BulkEchoReply{.bytes = body.bytes, .crc = core::crc32c(buffer.span())}});
    }

    core::Reactor& reactor_;
};

// A node's share of the fabric: one locality that listens.
class ServerSide final : RequestUser {
public:
    ServerSide(Transport& transport, core::Reactor& reactor, Admission admission,
               const HostOptions& options, std::uint64_t incarnation, std::string_view listen_at,
               ServerOptions server_options = {})
        : entropy(incarnation * 31 + 1),
          foms(reactor),
          host(reactor, events, entropy, options),
          server(host, foms, with_incarnation(server_options, incarnation)) {
        REQUIRE(host.open(transport).has_value());
        REQUIRE(server.use_memory(foms.memory).has_value());
        server.admit(std::move(admission));
        const auto address = parse_address(listen_at);
        auto made = transport.listen(reactor, *address, *this, {});
        REQUIRE(made.has_value());
        acceptor = std::move(*made);
    }

    void on_request(std::unique_ptr<ConnectionRequest> request) override {
        server.accept(std::move(request));
    }
    void on_silent(std::uint32_t) override {}

    Task<void> stop() {
        co_await acceptor->stop();
        co_await host.close();
    }

    static ServerOptions with_incarnation(ServerOptions options, std::uint64_t incarnation) {
        options.incarnation = incarnation;
        return options;
    }

    NotedEvents events;
    core::SeededEntropy entropy;
    TestFoms foms;
    SessionHost host;
    Server server;
    std::unique_ptr<Acceptor> acceptor;
};

class ClientSide {
public:
    ClientSide(Transport& transport, core::Reactor& reactor, ClientOptions options,
               const HostOptions& host_options, std::uint64_t seed)
        : entropy(seed), host(reactor, events, entropy, host_options), client(host, options) {
        REQUIRE(host.open(transport).has_value());
    }

    Task<void> stop() {
        co_await client.close();
        co_await host.close();
    }

    NotedEvents events;
    core::SeededEntropy entropy;
    SessionHost host;
    Client client;
};

inline HostOptions server_host_options(std::string host = "server") {
    HostOptions options;
    options.machine.host = std::move(host);
    return options;
}

// A client gives away a fixed number of buffers, one for each reply there may be.
inline HostOptions client_host_options(std::string host = "client") {
    HostOptions options;
    options.machine = {
        .receive_buffer_count = 72, .receive_buffer_bytes = 36U << 10, .host = std::move(host)};
    options.send_buffer_count = 64;
    options.send_buffer_bytes = 16U << 10;
    options.message_credits_floor = options.message_credits_max = 70;
    return options;
}

}  // namespace fopd::fabric::testing
