#include <string>

#include "tests/hostile/stage.h"

// Goal: from the reload on that takes a key away, or what went with it, nobody is in with it, and
// all others stay. Method: as in greetings_test.cc.

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

fop::Credentials node_b(const fop::Key& key = HostileStage::peers_key()) {
    return {.kind = fop::AuthKind::kPeer, .key = key, .name = "node-b"};
}

fop::Credentials proxy_for(std::string user) {
    auto who = credentials(HostileStage::proxy_key());
    who.user = std::move(user);
    return who;
}

bool is_served(RawPeer& peer, std::uint64_t id) {
    peer.send(peer.requests({ping_request(id)}));
    const auto answer = peer.answer(id);
    return answer && answer->status == fop::Status::kDone;
}

}  // namespace

TEST_CASE("hostile key: one that is gone when the client proves itself opens nothing",
          "[hostile]") {
    HostileStage stage(any_hostile_kind());
    const std::string what = GENERATE("key", "peer's key", "delegation", "no key");
    CAPTURE(what);
    RawPeer& peer = what == "key"          ? stage.peer(HostileStage::turned_old_key())
                    : what == "peer's key" ? stage.peer(node_b())
                    : what == "delegation" ? stage.peer(proxy_for("bob"))
                                           : stage.peer(fop::Credentials{.name = "anybody"});
    if (what == "no key") stage.reload({.open_to_all = true});
    REQUIRE(peer.connect());
    peer.send(peer.hello());
    const std::string finish = peer.finish();

    stage.reload({.with_old_key = false, .with_delegation = false, .peers = {}});
    peer.send(finish);

    REQUIRE_FALSE(peer.welcomed());
    REQUIRE(peer.wait_closed());
    REQUIRE(stage.count(&HostStatistics::opened) == 1);
    REQUIRE(stage.count(&HostStatistics::refused) == 1);
}

TEST_CASE("hostile key: what goes with it when the client proves itself is what it has",
          "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer(proxy_for("proxy"));
    REQUIRE(peer.connect());
    peer.send(peer.hello());
    const std::string finish = peer.finish();

    stage.reload({.with_delegation = false});
    peer.send(finish);

    REQUIRE(peer.welcomed());
    REQUIRE(is_served(peer, 1));
}

TEST_CASE("hostile key: a reload ends those that lost something by it, and nobody else",
          "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& of_old_key = stage.open_peer(HostileStage::turned_old_key());
    RawPeer& of_new_key = stage.open_peer(HostileStage::turned_key());
    RawPeer& for_bob = stage.peer(proxy_for("bob"));
    RawPeer& for_itself = stage.peer(proxy_for(""));
    RawPeer& node = stage.peer(node_b());
    for (RawPeer* const each : {&for_bob, &for_itself, &node}) REQUIRE(each->open());

    stage.reload({});
    for (RawPeer* const each : {&of_old_key, &of_new_key, &for_bob, &for_itself, &node}) {
        REQUIRE(is_served(*each, 1));
    }

    stage.reload({.with_old_key = false, .with_delegation = false});
    REQUIRE(of_old_key.wait_closed());
    REQUIRE(for_bob.wait_closed());
    for (RawPeer* const each : {&of_new_key, &for_itself, &node}) REQUIRE(is_served(*each, 2));
    REQUIRE(stage.events("fabric.session_ended") == 2);
}

TEST_CASE("hostile key: the key of the peers is changed without a moment in which it fails",
          "[hostile]") {
    HostileStage stage(any_hostile_kind());
    const fop::Key next = key_of(60);
    RawPeer& early = stage.peer(node_b());
    REQUIRE(early.open());

    stage.reload({.peers = {next, HostileStage::peers_key()}});
    REQUIRE(is_served(early, 1));
    RawPeer& of_previous = stage.peer(node_b());
    RawPeer& of_current = stage.peer(node_b(next));
    REQUIRE(of_previous.open());
    REQUIRE(of_current.open());

    stage.reload({.peers = {next}});
    REQUIRE(early.wait_closed());
    REQUIRE(of_previous.wait_closed());
    REQUIRE(is_served(of_current, 1));
    REQUIRE_FALSE(stage.peer(node_b()).open());
}

TEST_CASE("hostile key: where a key is needed from now on, nobody stays without one", "[hostile]") {
    HostileStage stage(any_hostile_kind(), {.open_to_all = true});
    RawPeer& nobody = stage.peer(fop::Credentials{.name = "anybody"});
    RawPeer& somebody = stage.open_peer();
    REQUIRE(nobody.open());

    stage.reload({});

    REQUIRE(nobody.wait_closed());
    REQUIRE(is_served(somebody, 1));
}
