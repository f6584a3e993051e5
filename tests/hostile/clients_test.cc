#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "tests/hostile/stage.h"

// Goal: who listens and names others' sessions, or uses others' ids, neither ends anything of
// theirs nor learns anything; and however much one principal or one host takes, the next one finds
// a place. Method: as in greetings_test.cc.

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

// Makes a message for another's session of it.
std::string aimed_at(const RawPeer& other, std::string message, std::uint64_t sequence) {
    const std::uint64_t session = other.session_id();
    std::memcpy(message.data() + 8, &session, sizeof session);
    std::memcpy(message.data() + 16, &sequence, sizeof sequence);
    return message;
}

std::string greeting_for(RawPeer& from, const RawPeer& other, std::string_view envelope,
                         std::uint64_t sequence) {
    return aimed_at(other, from.greeting(envelope), sequence);
}

}  // namespace

TEST_CASE("hostile client: naming another's handshake does not end it", "[hostile]") {
    // Nor may its time be over before this test is.
    HostileStage stage(any_hostile_kind(), {.handshake_timeout = 60s});
    RawPeer& thief = stage.open_peer();
    RawPeer& victim = stage.peer(HostileStage::turned_key());
    const std::string refused = {5, 1, 0};
    const std::string other_hello = stage.peer().first_envelope();
    REQUIRE(victim.connect());

    for (int i = 0; i < 20; ++i) {
        thief.send(greeting_for(thief, victim, other_hello, 0));
        thief.send(greeting_for(thief, victim, "nonsense", 0));
        thief.send(greeting_for(thief, victim, refused, 0));
        thief.send(greeting_for(thief, victim, victim.first_envelope(), 7));
    }
    stage.settle();
    victim.send(victim.hello());
    const std::string finish = victim.finish();
    std::string forged = finish.substr(fop::kPrefixBytes);
    forged.back() = static_cast<char>(forged.back() ^ 1);
    for (int i = 0; i < 20; ++i) {
        thief.send(greeting_for(thief, victim, forged, 1));
        thief.send(greeting_for(thief, victim, refused, 1));
        thief.send(greeting_for(thief, victim, "nonsense", 1));
        thief.send(greeting_for(thief, victim, victim.first_envelope(), 1));
    }
    stage.settle();
    victim.send(finish);

    REQUIRE(victim.welcomed());
    REQUIRE(stage.count(&HostStatistics::unsealed) == 160);
    REQUIRE(stage.count(&HostStatistics::refused) == 0);
}

TEST_CASE("hostile client: whether an id is known is told to nobody but its client", "[hostile]") {
    HostileStage stage(any_hostile_kind(), {.lease = 60s, .handshake_timeout = 60s});
    RawPeer& client = stage.open_peer();
    REQUIRE_FALSE(client.session().resumed);
    RawPeer& stranger = stage.peer(HostileStage::unknown_key());
    stranger.connect_hello.client_id = client.connect_hello.client_id;
    RawPeer& other = stage.peer(HostileStage::turned_key());
    other.connect_hello.client_id = client.connect_hello.client_id;

    REQUIRE(stranger.connect());
    REQUIRE(other.open());

    // The same bytes as for an id that nobody ever used, but for the session's number.
    RawPeer& fresh = stage.connected_peer();
    const auto answer_to = [](RawPeer& peer) {
        std::string answer = peer.end().answer;
        answer.replace(8, 8, 8, '\0');
        return answer;
    };
    REQUIRE(answer_to(stranger) == answer_to(fresh));
    REQUIRE_FALSE(other.session().resumed);
    REQUIRE_FALSE(client.closed());
    RawPeer& again = stage.peer();
    again.connect_hello.client_id = client.connect_hello.client_id;
    REQUIRE(again.open());
    REQUIRE(again.session().resumed);
    REQUIRE(client.wait_closed());
}

TEST_CASE("hostile client: who uses another's id does not lock it out", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& thief = stage.peer(HostileStage::turned_key());
    RawPeer& client = stage.peer();
    thief.connect_hello.client_id = client.connect_hello.client_id;
    REQUIRE(thief.open());

    REQUIRE(client.open());

    client.send(client.requests({echo_request(1)}));
    REQUIRE(client.answer(1).has_value());
    REQUIRE_FALSE(thief.closed());
}

TEST_CASE("hostile client: one principal does not have all sessions", "[hostile]") {
    // The peers say nothing once they are in: none of their leases may end before this test does.
    HostileStage stage(any_hostile_kind(),
                       {.lease = 600s, .server = {.incarnation = 42, .sessions_max = 40}});
    std::vector<RawPeer*> opened;
    std::string words;
    while (words.empty()) {
        RawPeer& peer = stage.peer(HostileStage::turned_key());
        if (peer.open()) {
            opened.push_back(&peer);
        } else {
            words = peer.refusal_words();
        }
        REQUIRE(opened.size() < 40);
    }

    REQUIRE(words == "the principal has as many sessions as its share allows");
    for (int i = 0; i < 5; ++i) stage.open_peer(HostileStage::poor_key());
    // And again when it has given one back.
    opened.back()->end().close();
    REQUIRE(stage.server_loop().wait([&] { return stage.sessions().size() == opened.size() + 5; }));
    REQUIRE(opened.size() >= 24);
}

TEST_CASE("hostile client: handshakes that do not end take no sessions, and not all places",
          "[hostile]") {
    HostileStage stage(kAllKinds[0],
                       {.handshake_timeout = 2s,
                        .server = {.incarnation = 42, .sessions_max = 10, .handshakes_max = 40}});
    std::vector<RawPeer*> half_way;
    RawPeer* refused = nullptr;
    while (refused == nullptr) {
        RawPeer& peer = stage.peer();
        (peer.connect() ? half_way.push_back(&peer) : void(refused = &peer));
        REQUIRE(half_way.size() <= 20);
    }
    REQUIRE(half_way.size() == 20);
    REQUIRE(refused->closing_words() == "too many handshakes");

    // Their places are free when their time is over a second time.
    for (RawPeer* const each : half_way) REQUIRE(each->wait_closed());
    REQUIRE_FALSE(stage.peer().connect());
    const Instant later = after(stage.clock().now(), 2s);
    REQUIRE(stage.hostile_loop().wait([&] { return stage.clock().now() >= later; }));
    stage.open_peer();
}

TEST_CASE("hostile client: a new host gets the place of another host's oldest handshake",
          "[hostile]") {
    HostileStage stage(kAllKinds[0], {.handshake_timeout = 5s,
                                      .server = {.incarnation = 42, .handshakes_max = 2}});
    Process second(stage.transport(), stage.hostile_loop(), {.host = "second"});
    Process third(stage.transport(), stage.hostile_loop(), {.host = "third"});
    const RawPeer::Options options{.credentials = credentials(HostileStage::good_key())};
    RawPeer& oldest = stage.connected_peer();
    REQUIRE_FALSE(stage.peer().connect());
    RawPeer of_second(second, stage.address(), options);
    REQUIRE(of_second.connect());

    RawPeer of_third(third, stage.address(), options);

    REQUIRE(of_third.open());
    REQUIRE(oldest.wait_closed());
    REQUIRE_FALSE(of_second.closed());
}
