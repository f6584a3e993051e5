// Goal: sessions that take nothing of what was sent to them leave buffers to send from to the
// others.
#include <deque>
#include <string>

#include "core/virtual_world.h"
#include "fabric/mem_network.h"
#include "tests/catch.h"
#include "tests/fabric/rpc_stage.h"

namespace fopd::fabric::testing {

namespace {

constexpr std::size_t kStuck = 8;
constexpr std::uint32_t kBuffers = 32;

struct Echoed {
    std::string back = std::string(9000, '?');
    bool done = false;
};

Task<void> echo_bytes(Client* client, const std::string* text, Echoed* result) {
    const CallRequest request{.type = fop::find_fop_type("echo"),
                              .body = fop::Echo{},
                              .payload = std::as_bytes(std::span(*text)),
                              .reply_into = std::as_writable_bytes(std::span(result->back))};
    const auto answer = co_await client->call(request);
    result->done = answer.has_value() && answer->status == fop::Status::kDone;
}

// A server with few buffers, and clients each on a host of its own.
class SendStage {
public:
    SendStage()
        : world_(3), server_reactor_(world_.make_reactor()), reactor_(world_.make_reactor()) {
        HostOptions options = server_host_options();
        options.send_buffer_count = kBuffers;
        server_.emplace(transport_, *server_reactor_,
                        Admission{.keys = ring_of({principal("tester", {key_of(1)})})}, options, 1,
                        "mem://server:1");
    }
    ~SendStage() {
        for (ClientSide& each : clients_) CHECK(world_.run(*reactor_, each.stop()));
        CHECK(world_.run(*server_reactor_, server_->stop()));
    }

    Client& add(const std::string& host) {
        ClientOptions options;
        options.server = *parse_address("mem://server:1");
        options.credentials = credentials(key_of(1));
        ClientSide& side = clients_.emplace_back(transport_, *reactor_, options,
                                                 client_host_options(host), 100 + clients_.size());
        side.client.start();
        return side.client;
    }
    void ask(Client& client, Echoed& result) {
        reactor_->spawn(gate_, echo_bytes(&client, &text_, &result));
    }
    void run_for(Duration time) { world_.run_for(time); }
    MemNetwork& network() { return transport_.network(); }
    std::size_t echoed() const { return server_->foms.arrived; }

private:
    const std::string text_ = std::string(8000, 'x');
    core::VirtualWorld world_;
    MemTransport transport_{{.seed = 3, .delay = kSimulatedDelay}};
    std::unique_ptr<core::Reactor> server_reactor_;
    std::unique_ptr<core::Reactor> reactor_;
    std::optional<ServerSide> server_;
    std::deque<ClientSide> clients_;
    core::Gate gate_;
};

}  // namespace

TEST_CASE("fabric send buffers: sessions that take nothing leave some to the others", "[fabric]") {
    std::deque<Echoed> unanswered(kStuck * 64);
    std::deque<Echoed> answered(20);
    std::deque<Echoed> early_answers(kStuck * 400);
    SendStage stage;
    std::vector<std::string> hosts;
    std::vector<Client*> stuck;
    for (std::size_t i = 0; i < kStuck; ++i) {
        hosts.push_back("stuck" + std::to_string(i));
        stuck.push_back(&stage.add(hosts.back()));
    }
    Client& early = stage.add("early");
    stage.run_for(50ms);
    // They are given more credits the more they do.
    for (std::size_t i = 0; i < early_answers.size(); ++i) {
        stage.ask(*stuck[i % kStuck], early_answers[i]);
    }
    stage.run_for(1s);
    const std::size_t before = stage.echoed();
    REQUIRE(before == early_answers.size());
    for (const std::string& host : hosts) stage.network().block({.from = "server", .to = host});
    for (std::size_t i = 0; i < unanswered.size(); ++i)
        stage.ask(*stuck[i % kStuck], unanswered[i]);
    stage.run_for(200ms);
    REQUIRE(stage.echoed() > before + 2 * kBuffers);
    for (const Echoed& each : unanswered) REQUIRE_FALSE(each.done);

    // A session that was there, and one that comes now.
    Client& late = stage.add("late");
    stage.run_for(50ms);
    CHECK(early.open());
    CHECK(late.open());
    for (std::size_t i = 0; i < answered.size(); ++i) {
        stage.ask(i % 2 == 0 ? early : late, answered[i]);
        stage.run_for(5ms);
        CHECK(answered[i].done);
    }

    for (const std::string& host : hosts) stage.network().unblock({.from = "server", .to = host});
    stage.run_for(2s);
    for (const Echoed& each : unanswered) CHECK(each.done);
}

}  // namespace fopd::fabric::testing
