// Goal: links between members do not stand still when the network works again, whatever the
// network's own timers are, nor when the key of the peers is changed. Method: the links of one node
// in the simulated world, and another node that does not answer, that nobody can connect to, or
// that knows other keys.

#include "eh/peers/links.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/fabric/rpc_stage.h"

namespace links_test {

using namespace fopd;
using namespace fopd::eh::peers;
using namespace fopd::fabric::testing;

namespace {

const Peer kPeer{.name = "b", .address = "mem://server:1"};

using Keys = std::vector<fop::Key>;

fabric::Admission admission_of(Keys keys) {
    auto ring = fop::KeyRing::make({.principals = {}, .peer_keys = std::move(keys)});
    REQUIRE(ring.has_value());
    return {.keys = std::make_shared<const fop::KeyRing>(*std::move(ring))};
}

class LinkStage {
public:
    struct PeerKeys {
        Keys server{key_of(3)};
        Keys links{key_of(3)};
    };
    LinkStage() : LinkStage(PeerKeys{}) {}
    explicit LinkStage(const PeerKeys& keys)
        : transport({.seed = 7, .delay = fabric::kSimulatedDelay}),
          server_reactor_(world.make_reactor()),
          links_reactor_(world.make_reactor()) {
        server =
            std::make_unique<ServerSide>(transport, *server_reactor_, admission_of(keys.server),
                                         server_host_options(), 1, "mem://server:1");
        // Nothing is answered.
        server->foms.hold = true;
        LinkOptions options{
            .host = client_host_options(), .name = "a", .address = "mem://client:1"};
        options.keys = keys.links;
        options.message_life = 200ms;
        options.answer_max = 400ms;
        options.back_off_max = 10s;
        links = std::make_unique<Links>(*links_reactor_, events, entropy_, std::move(options));
        REQUIRE(links->open(transport).has_value());
    }
    ~LinkStage() {
        CHECK(world.run(*links_reactor_, links->close()));
        answer();
        CHECK(world.run(*server_reactor_, server->stop()));
    }

    // Sends a message now and then.
    void send_for(Duration span) {
        const Instant end = after(world.now(), span);
        while (world.now() < end) {
            send();
            world.run_for(100ms);
        }
    }
    void send() { send_to(&kPeer); }
    void send_to(const Peer* to) {
        CHECK(world.run(*links_reactor_, send_one(links.get(), to, {.body = Beat{}})));
    }
    void ask() { say(Join{}); }
    void say(Body body) {
        CHECK(world.run(*links_reactor_, send_one(links.get(), &kPeer, {.body = std::move(body)})));
    }
    // What has arrived and was not answered.
    std::vector<Body> unanswered() const {
        std::vector<Body> bodies;
        for (const fabric::IncomingFop* const each : server->foms.held) {
            const auto& body = std::get<fop::EpochMessage>(each->request().body);
            const std::span<const std::uint8_t>& bytes = body.message;
            auto message = decode(std::as_bytes(bytes));
            REQUIRE(message.has_value());
            bodies.push_back(std::move(message->body));
        }
        return bodies;
    }
    // What has arrived is answered.
    void answer() { reply({.body = fop::EpochMessageReply{}}); }
    void refuse(fop::Status status, std::string_view words) {
        reply({.status = status, .words = words});
    }
    // Until the last message has come, or its answer.
    void wait() { world.run_for(100ms); }
    // The server reloads the keys of the peers.
    void reload(Keys keys) {
        CHECK(world.run(*server_reactor_, admit(&server->server, admission_of(std::move(keys)))));
    }
    void hear() { CHECK(world.run(*links_reactor_, hear_one(links.get()))); }
    std::size_t arrived() const { return server->foms.arrived; }
    // Sessions so far.
    std::uint64_t opened() const { return server->host.statistics().opened.get(); }
    std::uint64_t refused() const { return server->host.statistics().refused.get(); }

    core::VirtualWorld world{1};
    fabric::MemTransport transport;

private:
    // In a turn of the server, as its own code would.
    void reply(fop::Reply reply) {
        CHECK(world.run(*server_reactor_,
                        reply_to(std::exchange(server->foms.held, {}), std::move(reply))));
    }
    static Task<void> reply_to(std::vector<fabric::IncomingFop*> held, fop::Reply reply) {
        for (fabric::IncomingFop* each : held) each->reply(reply);
        co_return;
    }
    static Task<void> send_one(Links* links, const Peer* to, Message message) {
        links->send(*to, message);
        co_return;
    }
    static Task<void> hear_one(Links* links) {
        links->heard(kPeer.name);
        co_return;
    }

    static Task<void> admit(fabric::Server* server, fabric::Admission admission) {
        server->admit(std::move(admission));
        server->end_outdated();
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

TEST_CASE("eh links: while a member cannot be reached, the newest message of each kind waits",
          "[eh]") {
    LinkStage stage;
    stage.transport.network().refuse_connects({.from = "client", .to = "server"});
    stage.say(Beat{.age_us = 1});
    stage.world.run_for(20ms);
    stage.say(Ask{});
    stage.say(Beat{.age_us = 2});
    stage.say(Beat{.age_us = 3});
    // The first back-off is 50 ms at most.
    stage.transport.network().allow_connects({.from = "client", .to = "server"});
    stage.wait();
    REQUIRE((stage.unanswered() == std::vector<Body>{Beat{.age_us = 3}, Ask{}}));
    stage.answer();
    stage.wait();
    CHECK(stage.arrived() == 2);
}

TEST_CASE("eh links: a member that has another address now has the problem of that one", "[eh]") {
    // Nobody listens there. By its name this link comes before the other one, or behind it.
    const Peer away{.name = kPeer.name, .address = GENERATE("mem://nowhere:1", "mem://without:1")};
    const std::string cannot_be_reached = "cannot be reached at " + away.address + ": ";
    LinkStage stage;
    stage.send_to(&away);
    stage.world.run_for(500ms);
    CHECK(stage.links->problem_with(kPeer.name).starts_with(cannot_be_reached));

    stage.send();
    stage.wait();
    stage.answer();
    stage.wait();
    CHECK(stage.links->count() == 2);
    CHECK(stage.links->problem_with(kPeer.name) == "");

    stage.send_to(&away);
    CHECK(stage.links->problem_with(kPeer.name).starts_with(cannot_be_reached));
    CHECK(stage.links->problem_with("c") == "");
}

TEST_CASE("eh links: a name with many addresses has few links, and keeps the one in use", "[eh]") {
    LinkStage stage;
    stage.send();
    stage.wait();
    stage.answer();
    stage.wait();
    REQUIRE(stage.arrived() == 1);
    for (int port = 1; port <= 50; ++port) {
        const Peer elsewhere{.name = kPeer.name,
                             .address = "mem://nowhere:" + std::to_string(port)};
        stage.send_to(&elsewhere);
        stage.send();
        CHECK(stage.links->count() <= 4);
    }
    CHECK(stage.links->count() == 4);
    stage.wait();
    CHECK(stage.arrived() > 1);
    CHECK(stage.opened() == 1);
    // Other names have links of their own.
    const Peer other{.name = "c", .address = "mem://nowhere:1"};
    stage.send_to(&other);
    CHECK(stage.links->count() == 5);
}

TEST_CASE("eh links: a member that takes no messages now has that problem, and is no warning",
          "[eh]") {
    LinkStage stage;
    stage.send();
    stage.wait();
    stage.refuse(fop::Status::kBusy, "it is starting");
    stage.wait();
    CHECK(stage.links->problem_with(kPeer.name) ==
          "takes no messages at " + kPeer.address + ": it is starting");
    CHECK(stage.events.count("eh.peer_unreachable") == 0);

    stage.send();
    stage.wait();
    stage.refuse(fop::Status::kDenied, "it is a stranger");
    stage.wait();
    CHECK(stage.events.count("eh.peer_unreachable") == 1);
    CHECK(stage.links->problem_with(kPeer.name) ==
          "takes no messages at " + kPeer.address + ": it is a stranger");
    stage.send();
    stage.wait();
    stage.answer();
    stage.wait();
    CHECK(stage.links->problem_with(kPeer.name) == "");
}

TEST_CASE("eh links: requests to join that were taken are counted, other messages are not",
          "[eh]") {
    LinkStage stage;
    stage.send();
    stage.wait();
    stage.answer();
    stage.wait();
    CHECK(stage.links->requests_taken() == 0);
    stage.ask();
    stage.wait();
    stage.refuse(fop::Status::kBusy, "it is starting");
    stage.wait();
    CHECK(stage.links->requests_taken() == 0);
    stage.ask();
    stage.wait();
    stage.answer();
    stage.wait();
    CHECK(stage.links->requests_taken() == 1);
}

TEST_CASE("eh links: a key that is refused is followed by the next one", "[eh]") {
    LinkStage stage({.server = {key_of(3)}, .links = {key_of(4), key_of(3)}});
    stage.send();
    // The first back-off is 50 ms.
    stage.world.run_for(70ms);
    CHECK(stage.arrived() == 1);
    CHECK(stage.refused() == 1);
    stage.answer();
    stage.send_for(300ms);
    CHECK(stage.arrived() == 4);
    CHECK(stage.opened() == 1);
}

TEST_CASE("eh links: keys are tried in their order, the newest first", "[eh]") {
    // The peer knows the second and the third one, or the third one only.
    const bool knows_second = GENERATE(true, false);
    const Keys of_peer = knows_second ? Keys{key_of(5), key_of(6)} : Keys{key_of(6)};
    LinkStage stage({.server = of_peer, .links = {key_of(4), key_of(5), key_of(6)}});
    stage.send();
    // The first two back-offs are 50 and 100 ms.
    stage.world.run_for(knows_second ? 70ms : 180ms);
    CHECK(stage.arrived() == 1);
    CHECK(stage.refused() == (knows_second ? 1 : 2));
}

TEST_CASE("eh links: after a reload the newest key comes first", "[eh]") {
    LinkStage stage;
    stage.send();
    stage.world.run_for(100ms);
    stage.answer();
    REQUIRE(stage.arrived() == 1);
    stage.links->use_keys({key_of(4), key_of(3)});
    // The key of the session is not accepted any more. It is refused once, and not tried again.
    stage.reload({key_of(4)});
    stage.world.run_for(100ms);
    stage.send_for(300ms);
    CHECK(stage.arrived() > 1);
    CHECK(stage.refused() == 1);
}

TEST_CASE("eh links: after the last key of the ring comes the first one", "[eh]") {
    LinkStage stage({.server = {key_of(5)}, .links = {key_of(4), key_of(3)}});
    stage.send_for(400ms);
    REQUIRE(stage.arrived() == 0);
    REQUIRE(stage.refused() == 4);
    // The fifth attempt is with the first key, 750 ms after the first attempt.
    stage.reload({key_of(4)});
    stage.send_for(500ms);
    CHECK(stage.arrived() > 0);
    CHECK(stage.refused() == 4);
}

TEST_CASE("eh links: when the peer's key is changed they connect with the new one", "[eh]") {
    const bool keeps_old = GENERATE(true, false);
    const bool is_told = GENERATE(true, false);
    CAPTURE(keeps_old, is_told);
    LinkStage stage;
    stage.send();
    stage.world.run_for(100ms);
    stage.answer();
    REQUIRE(stage.arrived() == 1);

    // The session goes on for as long as the server accepts its key.
    stage.reload({key_of(4), key_of(3)});
    if (is_told) stage.links->use_keys(keeps_old ? Keys{key_of(4), key_of(3)} : Keys{key_of(4)});
    stage.send();
    stage.world.run_for(100ms);
    stage.answer();
    REQUIRE(stage.arrived() == 2);
    REQUIRE(stage.opened() == 1);

    stage.reload({key_of(4)});
    stage.world.run_for(100ms);
    stage.send_for(300ms);
    CHECK((stage.arrived() > 2) == is_told);
    CHECK(stage.opened() == (is_told ? 2 : 1));
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

}  // namespace links_test
