#include <algorithm>
#include <cstring>
#include <string>

#include "tests/hostile/stage.h"

// Goal: who does not come through the handshake costs a connection for a while, is counted, is
// logged once, and disturbs nobody. Method: a peer that is nothing but the bytes the documents
// describe, against a daemon's locality, over four kinds of transport; a client that keeps to the
// rules calls all the time.

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

// It was refused in the handshake: counted and logged once, and only the bystander has a session.
void expect_one_refusal(HostileStage& stage, RawPeer& peer) {
    REQUIRE(peer.wait_closed());
    stage.settle();
    REQUIRE(stage.count(&HostStatistics::refused) == 1);
    REQUIRE(stage.events("fabric.session_refused") == 1);
    REQUIRE(stage.count(&HostStatistics::opened) == 1);
    REQUIRE(stage.count(&HostStatistics::expired) == 0);
    REQUIRE(stage.count(&HostStatistics::lost) == 0);
}

}  // namespace

TEST_CASE("hostile greeting: a key nobody has fails with its proof", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer(HostileStage::unknown_key());

    REQUIRE_FALSE(peer.open());

    REQUIRE(peer.refusal_words() == "not authenticated");
    expect_one_refusal(stage, peer);
}

TEST_CASE("hostile greeting: a made-up proof for a key that is known fails alike", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.connected_peer();
    peer.send(peer.hello());
    std::string finish = peer.finish();
    finish.back() = static_cast<char>(finish.back() ^ 1);

    peer.send(finish);

    REQUIRE_FALSE(peer.welcomed());
    REQUIRE(peer.refusal_words() == "not authenticated");
    expect_one_refusal(stage, peer);
}

TEST_CASE("hostile greeting: without a key nobody comes in", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer(fop::Credentials{.name = "nobody"});
    REQUIRE(peer.connect());

    peer.send(peer.hello());

    REQUIRE_FALSE(peer.welcomed());
    REQUIRE(peer.refusal_words() == "a key is needed here");
    expect_one_refusal(stage, peer);
}

TEST_CASE("hostile greeting: a principal's key is none of a peer's", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer(fop::Credentials{
        .kind = fop::AuthKind::kPeer, .key = HostileStage::good_key(), .name = "node-b"});

    REQUIRE_FALSE(peer.open());

    REQUIRE(peer.refusal_words() == "not authenticated");
    expect_one_refusal(stage, peer);
}

TEST_CASE("hostile greeting: who may not speak for others does not", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer(fop::Credentials{.kind = fop::AuthKind::kPrincipal,
                                                .key = HostileStage::good_key(),
                                                .name = "x",
                                                .user = "root"});

    REQUIRE_FALSE(peer.open());

    expect_one_refusal(stage, peer);
}

TEST_CASE("hostile greeting: an old key is good until it is taken out", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& old = stage.peer(HostileStage::turned_old_key());
    RawPeer& current = stage.peer(HostileStage::turned_key());
    REQUIRE(old.open());
    REQUIRE(current.open());

    stage.reload({.with_old_key = false});

    REQUIRE(old.wait_closed());
    RawPeer& late = stage.peer(HostileStage::turned_old_key());
    REQUIRE_FALSE(late.open());
    current.send(current.requests({echo_request(1)}));
    const auto answer = current.answer(1);
    REQUIRE(answer.has_value());
    REQUIRE(answer->status == fop::Status::kDone);
    REQUIRE(stage.count(&HostStatistics::refused) == 1);
    REQUIRE(stage.events("fabric.session_ended") == 1);
}

TEST_CASE("hostile greeting: one that stops half way ends with its time", "[hostile]") {
    const int steps = GENERATE(0, 1, 2);
    CAPTURE(steps);
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.connected_peer();
    if (steps > 0) peer.send(peer.hello());
    if (steps > 1) {
        // A proof that does not get there.
        [[maybe_unused]] const std::string unsent = peer.finish();
    }

    REQUIRE(peer.wait_closed());

    REQUIRE(stage.wait_count(&HostStatistics::expired, 1));
    stage.settle();
    REQUIRE(stage.count(&HostStatistics::expired) == 1);
    REQUIRE(stage.count(&HostStatistics::refused) == 0);
    REQUIRE(stage.count(&HostStatistics::opened) == 1);
    REQUIRE(stage.events("fabric.handshake_ended") == 1);
}

TEST_CASE("hostile greeting: who hangs up half way is counted as lost", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.connected_peer();
    peer.send(peer.hello());
    [[maybe_unused]] const std::string unsent = peer.finish();

    peer.end().close();

    REQUIRE(stage.wait_count(&HostStatistics::lost, 1));
    stage.settle();
    REQUIRE(stage.count(&HostStatistics::lost) == 1);
    REQUIRE(stage.events("fabric.handshake_ended") == 1);
}

TEST_CASE("hostile greeting: a recorded handshake proves nothing in another", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& honest = stage.open_peer();
    RawPeer& thief = stage.peer(HostileStage::unknown_key());
    thief.connect_hello.client_id = honest.connect_hello.client_id;
    thief.connect_hello.promise = honest.connect_hello.promise;
    REQUIRE(thief.connect());
    const auto for_thief = [&thief](std::string message) {
        const std::uint64_t session = thief.session_id();
        std::memcpy(message.data() + 8, &session, sizeof session);
        return message;
    };

    thief.send(for_thief(honest.said()[0]));
    [[maybe_unused]] const std::string own = thief.finish();
    thief.send(for_thief(honest.said()[1]));

    REQUIRE_FALSE(thief.welcomed());
    REQUIRE(thief.refusal_words() == "not authenticated");
    REQUIRE(thief.wait_closed());
    REQUIRE_FALSE(honest.closed());
    REQUIRE(stage.count(&HostStatistics::refused) == 1);
}

TEST_CASE("hostile greeting: a copy of the proof over another connection proves nothing",
          "[hostile]") {
    HostileStage stage(any_hostile_kind_that_tells());
    RawPeer& peer = stage.connected_peer();
    peer.send(peer.hello());
    const std::string finish = peer.finish();
    RawPeer& listener = stage.connected_peer(HostileStage::unknown_key());

    listener.send(finish);

    REQUIRE(stage.wait_count(&HostStatistics::unsealed, 1));
    REQUIRE(stage.count(&HostStatistics::opened) == 1);
    peer.send(finish);
    REQUIRE(peer.welcomed());
    REQUIRE(stage.wait_count(&HostStatistics::opened, 2));
}

TEST_CASE("hostile greeting: a step over another connection does not have a handshake refused",
          "[hostile]") {
    HostileStage stage(any_hostile_kind_that_tells());
    RawPeer& peer = stage.connected_peer();
    peer.send(peer.hello());
    [[maybe_unused]] const std::string unsent = peer.finish();
    --peer.next_sequence;
    const std::string forged = peer.greeting("no proof");
    RawPeer& listener = stage.connected_peer(HostileStage::unknown_key());

    listener.send(forged);
    REQUIRE(stage.wait_count(&HostStatistics::unsealed, 1));

    REQUIRE(peer.wait_closed());
    REQUIRE(stage.wait_count(&HostStatistics::expired, 1));
    REQUIRE(stage.count(&HostStatistics::refused) == 0);
    REQUIRE(stage.events("fabric.session_refused") == 0);
}

TEST_CASE("hostile greeting: steps that are none are refused", "[hostile]") {
    const std::string what = GENERATE(
        "no bytes of sense", "a hello cut short", "the last step first", "a hello too long",
        "a version of the future", "zeros for a key", "no credits", "no room for an answer");
    CAPTURE(what);
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer();
    std::string envelope = peer.first_envelope();
    if (what == "no bytes of sense") {
        envelope = std::string(100, '\xee');
    } else if (what == "a hello cut short") {
        envelope.resize(40);
    } else if (what == "the last step first") {
        envelope = std::string(33, 'x');
        envelope[0] = 3;
    } else if (what == "a hello too long") {
        envelope += std::string(600, 'x');
    } else if (what == "a version of the future") {
        envelope[2] = 9;
    } else if (what == "zeros for a key") {
        std::fill_n(envelope.begin() + 12, 32, '\0');
    } else if (what == "no credits") {
        std::fill_n(envelope.begin() + 80, 2, '\0');
    } else {
        constexpr std::uint32_t kTooLittle = fop::kRequestOverheadMax - 1;
        std::memcpy(envelope.data() + 76, &kTooLittle, sizeof kTooLittle);
    }

    peer.promise(envelope);
    REQUIRE(peer.connect());
    peer.send(peer.greeting(envelope));

    REQUIRE_FALSE(peer.welcomed());
    REQUIRE_FALSE(peer.refusal_words().empty());
    expect_one_refusal(stage, peer);
}

TEST_CASE("hostile greeting: a step out of its place is counted and logged as well", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.connected_peer();
    peer.next_sequence = 5;

    peer.send(peer.hello());

    expect_one_refusal(stage, peer);
}

TEST_CASE("hostile greeting: messages before the proof go nowhere", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.connected_peer();
    const std::string hello = peer.hello();
    std::string early = hello;
    early[6] = 2;  // Requests.
    peer.send(early);
    early[6] = 4;  // Control.
    peer.send(early);
    peer.send(hello);
    peer.send(peer.finish());

    REQUIRE(peer.welcomed());

    REQUIRE(stage.count(&HostStatistics::unsealed) == 2);
    REQUIRE(stage.events("fabric.unsealed_message") == 2);
}

TEST_CASE("hostile greeting: another handshake in an open session goes nowhere", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();

    peer.send_all({peer.said()[0], peer.said()[1]});

    REQUIRE(stage.wait_count(&HostStatistics::unsealed, 2));
    peer.send(peer.requests({echo_request(1)}));
    REQUIRE(peer.answer(1).has_value());
}

TEST_CASE("hostile greeting: who connects without saying who it is is refused", "[hostile]") {
    const std::string what = GENERATE("nothing", "no magic", "another version", "too short");
    CAPTURE(what);
    HostileStage stage(any_hostile_kind());
    std::string hello = text_of(fop::encode(fop::ConnectHello{}));
    if (what == "nothing") hello.clear();
    if (what == "no magic") hello[0] = 'x';
    if (what == "another version") hello[4] = 9;
    if (what == "too short") hello.resize(20);

    End& end = stage.hostile().connect(stage.address(), hello);

    REQUIRE(stage.hostile().wait([&] { return end.closed.has_value(); }));
    REQUIRE(end.closed == Errc::kDenied);
    REQUIRE(stage.count(&HostStatistics::refused) == 1);
    REQUIRE(stage.events("fabric.session_refused") == 1);
}

TEST_CASE("hostile greeting: who asks for a locality there is none of is refused", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.peer();
    peer.connect_hello.locality = 7;

    REQUIRE_FALSE(peer.connect());

    REQUIRE(stage.count(&HostStatistics::refused) == 1);
    REQUIRE(stage.events("fabric.session_refused") == 1);
}

TEST_CASE("hostile greeting: a thousand connects leave nothing behind", "[hostile]") {
    HostileStage stage(kAllKinds[0]);
    for (int i = 0; i < 1000; ++i) {
        RawPeer& peer =
            stage.peer(i % 2 == 0 ? HostileStage::good_key() : HostileStage::unknown_key());
        REQUIRE(peer.open() == (i % 2 == 0));
        peer.end().close();
    }

    REQUIRE(stage.server_loop().wait([&] { return stage.sessions().size() == 1; }));
    REQUIRE(stage.count(&HostStatistics::sessions) == 1);
    REQUIRE(stage.count(&HostStatistics::refused) == 500);
}
