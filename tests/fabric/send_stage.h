#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/virtual_world.h"
#include "fabric/mem/mem_network.h"
#include "tests/fabric/rpc_stage.h"

namespace fopd::fabric::testing {

inline constexpr std::uint32_t kSendBuffers = 32;

struct Echoed {
    std::string back = std::string(9000, '?');
    bool done = false;
};

inline Task<void> echo_bytes(Client* client, const std::string* text, Echoed* result) {
    const CallRequest request{.type = fop::find_fop_type("echo"),
                              .body = fop::Echo{},
                              .payload = std::as_bytes(std::span(*text)),
                              .reply_into = std::as_writable_bytes(std::span(result->back))};
    const auto answer = co_await client->call(request);
    result->done = answer.has_value() && answer->status == fop::Status::kDone;
}

inline Task<void> ping_server(Client* client, bool* is_done) {
    const CallRequest request{.type = fop::find_fop_type("ping"), .body = fop::Ping{}};
    const auto answer = co_await client->call(request);
    *is_done = answer.has_value() && answer->status == fop::Status::kDone;
}

struct BulkEchoed {
    std::string from = "data";
    std::string back = "....";
    bool done = false;
};

inline Task<void> echo_memory(Client* client, BulkEchoed* result) {
    const CallRequest request{.type = fop::find_fop_type("bulk_echo"),
                              .body = fop::BulkEcho{.bytes = result->from.size()},
                              .source = std::as_writable_bytes(std::span(result->from)),
                              .target = std::as_writable_bytes(std::span(result->back))};
    const auto answer = co_await client->call(request);
    result->done = answer.has_value() && answer->status == fop::Status::kDone;
}

// A server with few buffers, and clients each on a host of its own.
class SendStage {
public:
    explicit SendStage(HostOptions options = server_host_options(),
                       const ServerOptions& server_options = {})
        : world_(3), server_reactor_(world_.make_reactor()), reactor_(world_.make_reactor()) {
        options.send_buffer_count = kSendBuffers;
        server_.emplace(transport_, *server_reactor_,
                        Admission{.keys = ring_of({principal("tester", {key_of(1)}),
                                                   principal("greedy", {key_of(2)}),
                                                   principal("greedier", {key_of(3)}),
                                                   principal("greediest", {key_of(4)})})},
                        options, 1, "mem://server:1", server_options);
    }
    ~SendStage() {
        for (ClientSide& each : clients_) CHECK(world_.run(*reactor_, each.stop()));
        CHECK(world_.run(*server_reactor_, server_->stop()));
    }

    Client& add(const std::string& host, const fop::Key& key = key_of(1)) {
        return add(key, client_host_options(host));
    }
    Client& add(const fop::Key& key, const HostOptions& host_options) {
        ClientOptions options;
        options.server = *parse_address("mem://server:1");
        options.credentials = credentials(key);
        ClientSide& side = clients_.emplace_back(transport_, *reactor_, options, host_options,
                                                 100 + clients_.size());
        side.client.start();
        return side.client;
    }
    void ask(Client& client, Echoed& result) {
        reactor_->spawn(gate_, echo_bytes(&client, &text_, &result));
    }
    void ping(Client& client, bool& is_done) {
        reactor_->spawn(gate_, ping_server(&client, &is_done));
    }
    void move(Client& client, BulkEchoed& result) {
        reactor_->spawn(gate_, echo_memory(&client, &result));
    }
    // From now on little is asked and much is answered: what a host that takes nothing asks still
    // finds its way.
    void ask_little() {
        server_->foms.answer = std::as_bytes(std::span(answer_));
        text_.clear();
    }
    void run_for(Duration time) { world_.run_for(time); }
    MemNetwork& network() { return transport_.network(); }
    // From now on requests are in memory until answer_held().
    void hold() { server_->foms.hold = true; }
    // Likewise, and they wait for their turn.
    void queue() { server_->foms.hold = server_->foms.queue = true; }
    void answer_held() {
        server_->foms.hold = server_->foms.queue = false;
        auto answer = [](TestFoms* foms) -> Task<void> {
            for (IncomingFop* each : std::exchange(foms->held, {})) TestFoms::echo(*each);
            co_return;
        };
        CHECK(world_.run(*server_reactor_, answer(&server_->foms)));
    }
    // Likewise, but what is answered is what ask_little() says.
    void answer_held_with_much() {
        server_->foms.hold = false;
        auto answer = [](TestFoms* foms) -> Task<void> {
            for (IncomingFop* each : std::exchange(foms->held, {})) {
                TestFoms::echo(*each, foms->answer);
            }
            co_return;
        };
        CHECK(world_.run(*server_reactor_, answer(&server_->foms)));
    }
    std::size_t held() const { return server_->foms.held.size(); }
    std::uint64_t unsent_bytes() const { return server_->server.unsent_bytes(); }
    std::uint64_t request_bytes() const { return server_->server.request_bytes(); }
    const ServerStatistics& counts() const { return server_->server.statistics(); }
    std::size_t echoed() const { return server_->foms.arrived; }
    std::vector<SessionInfo> sessions() { return server_->server.sessions(); }
    std::size_t ended() const { return server_->events.count("fabric.session_ended"); }
    // That the client with this number, counted as they were added, has received.
    std::uint64_t messages_to(std::size_t client) const {
        return clients_[client].host.statistics().messages_in.get();
    }

private:
    std::string text_ = std::string(8000, 'x');
    const std::string answer_ = text_;
    core::VirtualWorld world_;
    MemTransport transport_{{.seed = 3, .delay = kSimulatedDelay}};
    std::unique_ptr<core::Reactor> server_reactor_;
    std::unique_ptr<core::Reactor> reactor_;
    std::optional<ServerSide> server_;
    std::deque<ClientSide> clients_;
    core::Gate gate_;
};

}  // namespace fopd::fabric::testing
