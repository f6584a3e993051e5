#include <algorithm>
#include <cstring>
#include <string>

#include "core/random.h"
#include "tests/hostile/stage.h"

// Goal: in a session, whoever breaks the protocol loses that session, once, and whoever sends what
// is not sealed for it achieves nothing at all. Method: as for the handshake.

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

void expect_broken(HostileStage& stage, RawPeer& peer) {
    REQUIRE(peer.wait_closed());
    stage.settle();
    REQUIRE(stage.count(&HostStatistics::broken) == 1);
    REQUIRE(stage.events("fabric.session_ended") == 1);
    REQUIRE(stage.count(&HostStatistics::sessions) == 1);
    REQUIRE(stage.fops_held() <= 1);
}

void expect_alive(RawPeer& peer, std::uint64_t id = 999) {
    peer.send(peer.requests({ping_request(id)}));
    const auto answer = peer.answer(id);
    REQUIRE(answer.has_value());
    REQUIRE(answer->status == fop::Status::kDone);
}

std::string flipped(std::string message, std::size_t at) {
    message[at] = static_cast<char>(message[at] ^ 1);
    return message;
}

}  // namespace

TEST_CASE("hostile message: what is no message is counted and dropped", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    core::Random random(3);
    std::vector<std::string> garbage;
    for (std::size_t i = 0; i < 100; ++i) {
        std::string bytes(1 + random.below(9000), '\0');
        for (char& each : bytes) each = static_cast<char>(random.next());
        garbage.push_back(std::move(bytes));
    }
    peer.send_all(garbage);

    REQUIRE(stage.wait_count(&HostStatistics::garbage, 100));

    expect_alive(peer);
    REQUIRE(stage.count(&HostStatistics::broken) == 0);
}

TEST_CASE("hostile message: one for a session there is none of is dropped", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    std::string message = peer.requests({echo_request(1)});
    --peer.next_sequence;

    peer.send(flipped(message, 15));

    REQUIRE(stage.wait_count(&HostStatistics::garbage, 1));
    expect_alive(peer);
}

TEST_CASE("hostile message: any bit that is changed is noticed", "[hostile]") {
    HostileStage stage(kAllKinds[0]);
    RawPeer& peer = stage.open_peer();
    const std::string message = peer.requests({echo_request(1)});
    --peer.next_sequence;
    std::uint64_t sent = 0;
    for (std::size_t at = 0; at < message.size(); ++at) {
        const bool is_payload = at >= fop::kPrefixBytes && at < fop::kPrefixBytes + 8;
        if (is_payload) continue;
        peer.send(flipped(message, at));
        ++sent;
    }

    REQUIRE(stage.server_loop().wait([&] {
        return stage.count(&HostStatistics::garbage) + stage.count(&HostStatistics::unsealed) ==
               sent;
    }));

    REQUIRE(stage.count(&HostStatistics::broken) == 0);
    expect_alive(peer);
}

TEST_CASE("hostile message: naming another's session does not touch it", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    const std::uint64_t victim = stage.bystander().session_id();
    std::vector<std::string> messages;
    for (std::uint64_t sequence = 0; sequence < 200; ++sequence) {
        peer.next_sequence = sequence;
        std::string message = peer.control({.bye = fop::Bye::kDraining});
        std::memcpy(message.data() + 8, &victim, sizeof victim);
        peer.reseal(message);
        messages.push_back(message);
    }

    peer.send_all(messages);

    REQUIRE(stage.wait_count(&HostStatistics::unsealed, 200));
}

TEST_CASE("hostile message: a copy that overtakes the message over another connection is dropped",
          "[hostile]") {
    HostileStage stage(any_hostile_kind_that_tells());
    RawPeer& peer = stage.open_peer();
    const std::string first = peer.requests({ping_request(1)});
    const std::string second = peer.requests({ping_request(2)});
    RawPeer& listener = stage.connected_peer(HostileStage::unknown_key());

    listener.send(second);
    REQUIRE(stage.wait_count(&HostStatistics::unsealed, 1));
    listener.send(first);
    REQUIRE(stage.wait_count(&HostStatistics::unsealed, 2));
    peer.send_all({first, second});

    REQUIRE(peer.answer(1).has_value());
    REQUIRE(peer.answer(2).has_value());
    expect_alive(peer);
    REQUIRE(stage.count(&HostStatistics::broken) == 0);
    REQUIRE(stage.events("fabric.unsealed_message") > 0);
}

TEST_CASE("hostile message: a repeated one is dropped", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    const std::string once = peer.requests({echo_request(1)});

    peer.send_all({once, once, once});

    REQUIRE(stage.wait_count(&HostStatistics::unsealed, 2));
    REQUIRE(peer.answer(1).has_value());
    expect_alive(peer);
}

TEST_CASE("hostile message: a gap in the sequence ends the session", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    ++peer.next_sequence;

    peer.send(peer.requests({echo_request(1)}));

    expect_broken(stage, peer);
}

TEST_CASE("hostile message: one without a credit ends the session", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    std::vector<std::string> messages;
    for (std::uint64_t id = 1; id <= 200; ++id) messages.push_back(peer.control({.pong = id}));

    peer.send_all(messages);

    expect_broken(stage, peer);
}

TEST_CASE("hostile message: more fops than there are credits for end the session", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    std::vector<fop::Request> requests;
    for (std::uint64_t id = 1; id <= 30; ++id) {
        requests.push_back(
            {.id = id, .type = 3, .body = fop::BulkEcho{.bytes = fop::kBulkEchoBytesMax}});
    }

    peer.send(peer.requests(requests));

    expect_broken(stage, peer);
}

TEST_CASE("hostile message: what only a server says ends the session", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    const std::string what = GENERATE("replies", "fop credits");
    CAPTURE(what);
    RawPeer& peer = stage.open_peer();

    if (what == "replies") {
        peer.send(peer.replies({{.id = 1, .body = fop::EchoReply{}}}));
    } else {
        peer.send(peer.control({.pong = 1}, {.fop_credits = 10}));
    }

    expect_broken(stage, peer);
}

TEST_CASE("hostile message: credits that it does not have cannot be given up", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    const std::uint16_t count = GENERATE(std::uint16_t{3}, std::uint16_t{0xffff});
    const bool of_fops = GENERATE(false, true);
    CAPTURE(count, of_fops);
    RawPeer& peer = stage.open_peer();

    const std::uint16_t claimed = of_fops ? std::max<std::uint16_t>(count, 9) : count;
    peer.send(peer.control(of_fops ? fop::Control{.surrendered_fops = claimed}
                                   : fop::Control{.surrendered_messages = claimed}));

    expect_broken(stage, peer);
}

TEST_CASE("hostile message: endless credits end the session", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();

    for (std::uint64_t id = 1; id <= 40 && !peer.closed(); ++id) {
        peer.send(peer.requests({ping_request(id)}, {.message_credits = 0xffff}));
        if (!peer.answer(id)) break;
    }

    expect_broken(stage, peer);
}

TEST_CASE("hostile message: an envelope of lies ends the session", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    const std::size_t at = GENERATE(0U, 4U, 8U, 12U, 16U, 20U, 24U);
    CAPTURE(at);
    RawPeer& peer = stage.open_peer();
    std::string message = peer.control({.ping = 7, .words = "a few words"});
    for (std::size_t i = 0; i < 4; ++i) message[fop::kPrefixBytes + at + i] = '\x7f';
    peer.reseal(message);

    peer.send(message);

    stage.settle();
    // What the verifier lets through means something else now, and is no harm.
    if (peer.closed()) {
        REQUIRE(stage.count(&HostStatistics::broken) == 1);
    } else {
        expect_alive(peer);
    }
}

TEST_CASE("hostile message: a client may cancel what there is not", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    std::vector<std::uint64_t> ids(128);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i * 0x0123456789abcdefULL;

    peer.send(
        peer.control({.surrender_messages = 0xffff, .surrender_fops = 0xffff, .cancel = ids}));

    stage.settle();
    expect_alive(peer);
}

TEST_CASE("hostile message: who never reads ends with the lease", "[hostile]") {
    HostileStage stage(any_hostile_kind());
    RawPeer& peer = stage.open_peer();
    peer.send(peer.requests({echo_request(1, std::string(8000, 'x'))}));

    stage.hostile_loop().pause();
    const bool expired = stage.wait_count(&HostStatistics::expired, 1);
    stage.hostile_loop().resume();

    REQUIRE(expired);
    REQUIRE(peer.wait_closed());
    REQUIRE(stage.events("fabric.session_ended") == 1);
    REQUIRE(stage.count(&HostStatistics::sessions) == 1);
}

TEST_CASE("hostile message: replies nobody takes are bounded by the credits for fops",
          "[hostile]") {
    HostileStage stage(any_hostile_kind());
    // One credit is for control: with it the server gives back credits, and can never reply.
    RawPeer& peer = stage.peer(
        RawPeer::Options{.credentials = credentials(HostileStage::good_key()),
                         .offer = {.message_bytes_max = 36U << 10, .message_credits = 1}});
    REQUIRE(peer.open());
    const std::string text(8000, 'x');
    std::uint32_t spent = 0;
    std::uint32_t given = 1;
    std::uint64_t id = 0;
    while (id < 400 && !peer.closed()) {
        REQUIRE(peer.process().wait([&] { return peer.end().closed || peer.credits() > spent; }));
        if (peer.closed()) break;
        ++spent;
        const std::uint16_t credit = peer.messages_taken() == given ? 1 : 0;
        given += credit;
        peer.send(peer.requests({echo_request(++id, text)}, {.message_credits = credit}));
        stage.settle();
    }

    // No more than the fop credits a client can ever have.
    REQUIRE(id <= 64 + 8);
    expect_broken(stage, peer);
}

TEST_CASE("hostile message: replies nobody takes are bounded for their principal, too",
          "[hostile]") {
    // No lease ends before this test does.
    HostileStage stage(
        any_hostile_kind(),
        {.lease = 3000s, .server = {.incarnation = 42, .unsent_bytes_max = 256U << 10}});
    const std::string text(6000, 'x');
    constexpr std::size_t kPeers = 10;
    for (std::size_t i = 0; i < kPeers; ++i) {
        // With its only credit the server gives back credits, and can never reply.
        RawPeer& peer = stage.peer(
            RawPeer::Options{.credentials = credentials(HostileStage::turned_key()),
                             .offer = {.message_bytes_max = 36U << 10, .message_credits = 1}});
        REQUIRE(peer.open());
        for (std::uint64_t id = 1; id <= 6; id += 2) {
            peer.send(peer.requests({echo_request(id, text), echo_request(id + 1, text)}));
        }
        stage.settle();
    }

    // Four fifths of the memory is room for the replies to five peers. The bystander is one more
    // session.
    REQUIRE(stage.server_loop().wait([&] { return stage.sessions().size() <= 7; }));
    stage.settle();
    CHECK(stage.sessions().size() >= 5);
    CHECK(stage.events("fabric.session_ended") == kPeers + 1 - stage.sessions().size());
    CHECK(stage.count(&HostStatistics::broken) == 0);
    stage.open_peer(HostileStage::poor_key());
}

TEST_CASE("hostile message: a flood ends with its session", "[hostile]") {
    // What is not sealed does not extend a lease, which may not end before the flood does.
    HostileStage stage(any_hostile_kind(), {.lease = 600s});
    const bool sealed = GENERATE(true, false);
    CAPTURE(sealed);
    RawPeer& peer = stage.open_peer();
    std::string message = peer.requests({echo_request(1)});
    peer.send(message);
    constexpr std::size_t kMessages = 50'000;
    constexpr std::size_t kAtOnce = 500;
    for (std::size_t sent = 0; sent < kMessages; sent += kAtOnce) {
        std::vector<std::string> burst;
        for (std::size_t i = 0; i < kAtOnce; ++i) {
            if (sealed) {
                message = peer.requests({echo_request(sent + i + 2)});
            } else {
                message[60] = static_cast<char>(message[60] + 1);
            }
            burst.push_back(message);
        }
        peer.forget_said();
        peer.send_all(burst);
        REQUIRE(peer.process().wait([&] { return peer.end().idle(); }));
        if (peer.closed()) break;
    }

    if (sealed) {
        expect_broken(stage, peer);
    } else {
        // Nobody knows whose connection it was; the session it names goes on.
        REQUIRE(stage.wait_count(&HostStatistics::unsealed, kMessages));
    }
}
