// Goal: the handshake admits whom the table of principals says, with their rights, and tells others
// nothing.
#include <algorithm>
#include <set>
#include <string>

#include "core/random.h"
#include "fop/handshake.h"
#include "fop/hex.h"
#include "tests/catch.h"
#include "tests/fop/handshake_pair.h"

namespace fopd::fop {

TEST_CASE("fop handshake: a client without a key is admitted only if that is allowed", "[fop]") {
    auto nobody = example_client();
    nobody.credentials = {.kind = AuthKind::kNone, .name = "laptop", .user = "bob"};

    HandshakePair refused(nobody);
    refused.run();
    REQUIRE(refused.server.refusal().reason == RefusalReason::kAuthenticationNeeded);
    REQUIRE(refused.client.refusal().reason == RefusalReason::kAuthenticationNeeded);
    REQUIRE(refused.client.refusal().by == RefusedBy::kPeer);

    HandshakePair accepted(nobody);
    accepted.admission.unauthenticated = kRead;
    accepted.run();
    REQUIRE(accepted.both_done());
    REQUIRE(accepted.server.session().identity == Identity{.kind = AuthKind::kNone,
                                                           .name = "laptop",
                                                           .user = "bob",
                                                           .groups = {},
                                                           .rights = kRead});
}

TEST_CASE("fop handshake: an open door makes no wrong key right", "[fop]") {
    HandshakePair pair(client_with(Key(counting_bytes<32>(0x77))));
    pair.admission.unauthenticated = kAllRights;
    pair.run();

    REQUIRE(pair.client_state == HandshakeState::kRefused);
    REQUIRE(pair.server_state == HandshakeState::kRefused);
}

TEST_CASE("fop handshake: a peer has its node's name and no rights of a principal", "[fop]") {
    auto peer = example_client();
    peer.credentials = {.kind = AuthKind::kPeer, .key = kPeerKey, .name = "node-b"};
    HandshakePair pair(peer);
    pair.run();

    REQUIRE(pair.both_done());
    REQUIRE(pair.server.session().identity == Identity{.kind = AuthKind::kPeer,
                                                       .name = "node-b",
                                                       .user = "node-b",
                                                       .groups = {},
                                                       .rights = kNoRights,
                                                       .key_id = key_id(kPeerKey)});
}

TEST_CASE("fop handshake: a peer without a name is refused", "[fop]") {
    auto peer = example_client();
    peer.credentials = {.kind = AuthKind::kPeer, .key = kPeerKey};
    HandshakePair pair(peer);
    pair.run();

    REQUIRE(pair.server.refusal().reason == RefusalReason::kMalformed);
}

TEST_CASE("fop handshake: only a delegate acts for another user", "[fop]") {
    const auto run_for = [](const std::string& user, Delegation delegation) {
        auto client = example_client();
        client.credentials.user = user;
        HandshakePair pair(
            client, example_server(),
            KeyRing::make(
                {.principals = {{.name = "ann", .keys = {kAnnKey}, .delegation = delegation}}})
                .value());
        pair.run();
        return pair.both_done() ? pair.server.session().identity.user : pair.client.refusal().words;
    };

    REQUIRE(run_for("", Delegation::kNone) == "ann");
    REQUIRE(run_for("ann", Delegation::kNone) == "ann");
    REQUIRE(run_for("bob", Delegation::kAllowed) == "bob");
    REQUIRE_THAT(run_for("bob", Delegation::kNone), ContainsSubstring("may not act"));
}

TEST_CASE("fop handshake: unusable limits and broken names are refused", "[fop]") {
    const auto refusal_of = [](auto change) {
        ClientHello hello{.auth = AuthKind::kPrincipal,
                          .major = kMajorVersion,
                          .minor = kMinorVersion,
                          .key_id = key_id(kAnnKey),
                          .ephemeral = public_key(Key(counting_bytes<32>(3))),
                          .offer = {.message_bytes_max = 4096, .message_credits = 1},
                          .name = "abcd"};
        std::array<std::byte, kHandshakeBytesMax> memory;
        auto bytes = copy_of(encode(hello, memory));
        change(bytes);
        HandshakePair pair;
        const auto step = pair.server.consume(bytes, pair.admission);
        return step.state == HandshakeState::kRefused ? std::optional(pair.server.refusal().reason)
                                                      : std::nullopt;
    };

    REQUIRE(refusal_of([](Bytes&) {}) == std::nullopt);
    REQUIRE(refusal_of([](Bytes& b) { b[1] = std::byte{3}; }) == RefusalReason::kMalformed);
    REQUIRE(refusal_of([](Bytes& b) { b[1] = std::byte{0}; }) == RefusalReason::kMalformed);
    REQUIRE(refusal_of([](Bytes& b) { b[2] = std::byte{1}; }) == RefusalReason::kVersion);
    REQUIRE(refusal_of([](Bytes& b) { b[3] = std::byte{9}; }) == std::nullopt);
    REQUIRE(refusal_of([](Bytes& b) { b[77] = std::byte{0}; }) == RefusalReason::kMalformed);
    REQUIRE(refusal_of([](Bytes& b) { b[80] = std::byte{0}; }) == RefusalReason::kMalformed);
    REQUIRE(refusal_of([](Bytes& b) { b[83] = std::byte{0x1b}; }) == RefusalReason::kMalformed);
    REQUIRE(refusal_of([](Bytes& b) { b[83] = std::byte{0xff}; }) == RefusalReason::kMalformed);
}

TEST_CASE("fop handshake: the key ring at the time of the client's proof counts", "[fop]") {
    const auto outcome = [](const ClientHandshake::Options& client, auto change) {
        HandshakePair pair(client, example_server(),
                           KeyRing::make({.principals = {{.name = "ann",
                                                          .keys = {kAnnKey, kAnnOldKey},
                                                          .rights = kRead | kWrite,
                                                          .delegation = Delegation::kAllowed}},
                                          .peer_keys = {kPeerKey}})
                               .value());
        pair.admission.unauthenticated = kRead;
        pair.run([&](std::size_t number, Bytes&) {
            if (number == 2) change(pair.admission);
        });
        return pair.server_state == HandshakeState::kDone
                   ? std::to_string(pair.server.session().identity.rights.bits())
                   : pair.server.refusal().words;
    };
    const auto use = [](KeyRing::Contents contents) {
        return [contents](Admission& admission) {
            admission = {.keys = std::make_shared<const KeyRing>(KeyRing::make(contents).value())};
        };
    };
    auto peer = example_client();
    peer.credentials = {.kind = AuthKind::kPeer, .key = kPeerKey, .name = "node-b"};
    auto nobody = example_client();
    nobody.credentials = {.kind = AuthKind::kNone, .name = "laptop"};
    auto for_bob = example_client();
    for_bob.credentials.user = "bob";
    const Principal ann{.name = "ann", .keys = {kAnnKey}, .rights = kRead};

    REQUIRE(outcome(example_client(), use({})) == "not authenticated");
    REQUIRE(outcome(client_with(kAnnOldKey), use({.principals = {ann}})) == "not authenticated");
    REQUIRE(outcome(example_client(), use({.principals = {ann}})) == "1");
    REQUIRE_THAT(outcome(for_bob, use({.principals = {ann}})), ContainsSubstring("may not act"));
    REQUIRE(outcome(peer, use({.principals = {ann}})) == "not authenticated");
    REQUIRE(outcome(nobody, use({})) == "a key is needed here");
    REQUIRE(outcome(nobody, [](Admission&) {}) == "1");
}

TEST_CASE("fop handshake: only an authenticated client learns whether it is known", "[fop]") {
    for (const bool resumed : {false, true}) {
        HandshakePair pair;
        pair.resumed = resumed;
        pair.run();

        REQUIRE(pair.both_done());
        REQUIRE(pair.client.session().resumed == resumed);
    }
}

TEST_CASE("fop handshake: a message that is not the client's is known before it is taken",
          "[fop]") {
    HandshakePair recorded;
    recorded.run();
    HandshakePair pair;
    pair.client.start(example_connect_data());

    Bytes other = recorded.said[0];
    other[20] ^= std::byte{1};
    REQUIRE_FALSE(pair.server.is_promised(other));
    REQUIRE(pair.server.is_promised(recorded.said[0]));
    REQUIRE_FALSE(pair.server.proves(recorded.said[2]));
    pair.server.consume(recorded.said[0], pair.admission);
    Bytes forged = recorded.said[2];
    forged[20] ^= std::byte{1};
    REQUIRE_FALSE(pair.server.proves(forged));
    REQUIRE_FALSE(pair.server.proves(recorded.said[0]));
    REQUIRE(pair.server.proves(recorded.said[2]));
    REQUIRE(pair.server.consume(recorded.said[2], pair.admission).state == HandshakeState::kProved);
}

TEST_CASE("fop admission: who was let in is let in again as long as nothing of it changed",
          "[fop]") {
    const auto ring = [](Principal ann) {
        return Admission{
            .keys = std::make_shared<const KeyRing>(
                KeyRing::make({.principals = {std::move(ann)}, .peer_keys = {kPeerKey}}).value())};
    };
    const Principal ann{.name = "ann",
                        .keys = {kAnnKey},
                        .rights = kRead,
                        .groups = {"staff"},
                        .delegation = Delegation::kAllowed};
    Admission open = ring(ann);
    open.unauthenticated = kRead;
    const auto become = [&open](Identity claimed) { return open.find(claimed)->identity; };
    const Identity principal = become({.kind = AuthKind::kPrincipal, .key_id = key_id(kAnnKey)});
    const Identity for_bob =
        become({.kind = AuthKind::kPrincipal, .user = "bob", .key_id = key_id(kAnnKey)});
    const Identity peer =
        become({.kind = AuthKind::kPeer, .name = "node-b", .key_id = key_id(kPeerKey)});
    const Identity nobody = become({.name = "laptop"});
    for (const Identity& each : {principal, for_bob, peer, nobody}) REQUIRE(open.still_holds(each));

    Principal fewer = ann;
    fewer.rights = kNoRights;
    REQUIRE_FALSE(ring(fewer).still_holds(principal));
    Principal moved = ann;
    moved.groups = {};
    REQUIRE_FALSE(ring(moved).still_holds(principal));
    Principal renamed = ann;
    renamed.name = "anna";
    REQUIRE_FALSE(ring(renamed).still_holds(principal));
    Principal alone = ann;
    alone.delegation = Delegation::kNone;
    REQUIRE(ring(alone).still_holds(principal));
    REQUIRE_FALSE(ring(alone).still_holds(for_bob));
    REQUIRE(ring(ann).still_holds(peer));
    REQUIRE_FALSE(Admission{}.still_holds(peer));
    REQUIRE_FALSE(ring(ann).still_holds(nobody));
}

}  // namespace fopd::fop
