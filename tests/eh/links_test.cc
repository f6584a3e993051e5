// Goal: links between members do not stand still when the network works again, whatever the
// network's own timers are. Method: the links of one node in the simulated world, and another node
// that does not answer, or that nobody can connect to.

#include "eh/peers/links.h"

#include <memory>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/fabric/rpc_stage.h"

using namespace fopd;
using namespace fopd::eh::peers;
using namespace fopd::fabric::testing;

namespace {

const Peer kPeer{.name = "b", .address = "mem://server:1"};

class LinkStage {
public:
    LinkStage()
        : transport({.seed = 7, .delay = fabric::kSimulatedDelay}),
          server_reactor_(world.make_reactor()),
          links_reactor_(world.make_reactor()) {
        auto ring = fop::KeyRing::make({.principals = {}, .peer_keys = {key_of(3)}});
        REQUIRE(ring.has_value());
        server = std::make_unique<ServerSide>(
            transport, *server_reactor_,
            fabric::Admission{.keys = std::make_shared<const fop::KeyRing>(*std::move(ring))},
            server_host_options(), 1, "mem://server:1");
        // Nothing is answered.
        server->foms.hold = true;
        LinkOptions options{
            .host = client_host_options(), .name = "a", .address = "mem://client:1"};
        options.keys = {key_of(3)};
        options.message_life = 200ms;
        options.answer_max = 400ms;
        options.back_off_max = 10s;
        links = std::make_unique<Links>(*links_reactor_, events, entropy_, std::move(options));
        REQUIRE(links->open(transport).has_value());
    }
    ~LinkStage() {
        CHECK(world.run(*links_reactor_, links->close()));
        for (fabric::IncomingFop* each : std::exchange(server->foms.held, {}))
            each->reply({.body = fop::EpochMessageReply{}});
        CHECK(world.run(*server_reactor_, server->stop()));
    }

    // Sends a message now and then.
    void send_for(Duration span) {
        const Instant end = after(world.now(), span);
        while (world.now() < end) {
            CHECK(world.run(*links_reactor_, send_one(links.get())));
            world.run_for(100ms);
        }
    }
    void hear() { CHECK(world.run(*links_reactor_, hear_one(links.get()))); }
    std::size_t arrived() const { return server->foms.arrived; }
    // Sessions so far.
    std::uint64_t opened() const { return server->host.statistics().opened.get(); }

    core::VirtualWorld world{1};
    fabric::MemTransport transport;

private:
    static Task<void> send_one(Links* links) {
        links->send(kPeer, {.body = Beat{}});
        co_return;
    }
    static Task<void> hear_one(Links* links) {
        links->heard(kPeer.name);
        co_return;
    }

    std::unique_ptr<core::Reactor> server_reactor_;
    std::unique_ptr<core::Reactor> links_reactor_;
    core::SeededEntropy entropy_{5};

public:
    NotedEvents events;
    std::unique_ptr<ServerSide> server;
    std::unique_ptr<Links> links;
};

}  // namespace

TEST_CASE("eh links: a connection on which nothing is answered is made anew", "[eh]") {
    LinkStage stage;
    stage.send_for(300ms);
    CHECK(stage.opened() == 1);
    stage.send_for(3s);
    CHECK(stage.opened() >= 3);
    // Not more often than its limit allows.
    CHECK(stage.opened() <= 1 + 3300 / 400);
}

TEST_CASE("eh links: a message of the peer ends the back-off of the links to it", "[eh]") {
    const bool is_heard = GENERATE(true, false);
    LinkStage stage;
    stage.transport.network().refuse_connects({.from = "client", .to = "server"});
    stage.send_for(60s);
    REQUIRE(stage.arrived() == 0);
    stage.transport.network().allow_connects({.from = "client", .to = "server"});
    if (is_heard) stage.hear();
    stage.send_for(300ms);
    CHECK((stage.arrived() > 0) == is_heard);
}

TEST_CASE("eh links: their times follow those of members", "[eh]") {
    LinkOptions options;
    MemberOptions member;
    options.follow(member);
    CHECK(options.message_life == 1s);
    CHECK(options.back_off_max == 2s);
    member.rules.timeout = 500ms;
    member.grace = 50ms;
    options.follow(member);
    CHECK(options.message_life == 100ms);
    CHECK(options.back_off_max == 200ms);
    CHECK(options.answer_max == 200ms);
    member.rules.timeout = 20ms;
    member.grace = 5ms;
    options.follow(member);
    CHECK(options.message_life == 50ms);
}
