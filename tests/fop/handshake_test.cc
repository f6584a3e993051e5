// Goal: only who holds the key gets a session, both sides then know the same, and nothing a hostile
// peer or somebody in between says does more than end the handshake.
#include "fop/handshake.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/random.h"
#include "fop/hex.h"
#include "tests/catch.h"
#include "tests/fop/handshake_pair.h"

namespace fopd::fop {
namespace {

bool same_keys(const SessionKeys& one, const SessionKeys& other) {
    return one.client == other.client && one.server == other.server &&
           one.descriptor == other.descriptor;
}

// The server's answer to a client that knows nothing of the key and says any proof.
Bytes answer_to_false_finish(const KeyId& id) {
    HandshakePair pair;
    ClientHello hello{.auth = AuthKind::kPrincipal,
                      .major = kMajorVersion,
                      .minor = kMinorVersion,
                      .key_id = id,
                      .ephemeral = public_key(Key(counting_bytes<32>(3))),
                      .offer = {.message_bytes_max = 4096, .message_credits = 1},
                      .name = "x"};
    std::array<std::byte, kHandshakeBytesMax> memory;
    REQUIRE(pair.server.consume(encode(hello, memory), pair.admission).state ==
            HandshakeState::kRunning);
    const auto step = pair.server.consume(encode(ClientFinish{}, memory), pair.admission);
    REQUIRE(step.state == HandshakeState::kRefused);
    return copy_of(step.send);
}

}  // namespace

TEST_CASE("fop handshake: both sides end with the same keys and know each other", "[fop]") {
    HandshakePair pair;
    pair.run();

    REQUIRE(pair.both_done());
    const ClientSession& client = pair.client.session();
    const ServerSession& server = pair.server.session();
    REQUIRE(same_keys(client.keys, server.keys));
    REQUIRE(server.identity == Identity{.kind = AuthKind::kPrincipal,
                                        .name = "ann",
                                        .user = "ann",
                                        .groups = {"staff"},
                                        .rights = kRead | kWrite,
                                        .key_id = key_id(kAnnKey)});
    REQUIRE(server.client == example_client().offer);
    REQUIRE(server.minor_version == kMinorVersion);
    REQUIRE(client.name == "ann");
    REQUIRE(client.rights == (kRead | kWrite));
    REQUIRE(client.server == example_server().offer);
    REQUIRE(client.grant == example_server().grant);
    REQUIRE(pair.said.size() == 4);
}

TEST_CASE("fop handshake: the keys of a session are different ones", "[fop]") {
    HandshakePair pair;
    pair.run();
    const SessionKeys& keys = pair.client.session().keys;

    REQUIRE_FALSE(keys.client == keys.server);
    REQUIRE_FALSE(keys.client == keys.descriptor);
    REQUIRE_FALSE(keys.server == keys.descriptor);
}

TEST_CASE("fop handshake: a previous key is accepted as long as it is in the ring", "[fop]") {
    HandshakePair rotated(client_with(kAnnOldKey));
    rotated.run();
    REQUIRE(rotated.both_done());
    REQUIRE(rotated.server.session().identity.key_id == key_id(kAnnOldKey));

    HandshakePair removed(
        client_with(kAnnOldKey), example_server(),
        KeyRing::make({.principals = {{.name = "ann", .keys = {kAnnKey}}}}).value());
    removed.run();
    REQUIRE(removed.server_state == HandshakeState::kRefused);
    REQUIRE(removed.client.refusal().reason == RefusalReason::kDenied);
}

TEST_CASE("fop handshake: a wrong key and an unknown one cannot be told apart", "[fop]") {
    // The ring holds another key under the id the client names: the client's is wrong.
    struct WrongKeys final : KeyFinder {
        std::optional<KnownKey> find(AuthKind kind, const KeyId& id) const override {
            return KnownKey{.key = kAnnOldKey,
                            .identity = {.kind = kind, .name = "ann", .key_id = id}};
        }
    };
    const Admission wrong{.keys = std::make_shared<const WrongKeys>()};
    const Key stranger(counting_bytes<32>(0x77));
    HandshakePair unknown(client_with(stranger));
    unknown.run();

    ClientHandshake client(client_with(stranger), kExampleClientRandom);
    ServerHandshake server(example_server(), kExampleServerRandom);
    const auto hello = copy_of(client.start(example_connect_data()));
    const auto answer = copy_of(server.consume(hello, wrong).send);
    const auto refused = client.consume(answer);
    const auto last = server.consume(refused.send, wrong);

    REQUIRE(unknown.client_state == HandshakeState::kRefused);
    REQUIRE(refused.state == HandshakeState::kRefused);
    REQUIRE(last.state == HandshakeState::kRefused);
    REQUIRE(answer.size() == unknown.said[1].size());
    REQUIRE(copy_of(refused.send) == unknown.said[2]);
    REQUIRE(client.refusal().reason == unknown.client.refusal().reason);
    REQUIRE(client.refusal().words == unknown.client.refusal().words);
    REQUIRE(server.refusal().words == unknown.server.refusal().words);
    REQUIRE(server.refusal().by == RefusedBy::kPeer);
}

TEST_CASE("fop handshake: a false proof is answered alike for a known and an unknown key",
          "[fop]") {
    const Bytes known = answer_to_false_finish(key_id(kAnnKey));
    const Bytes unknown = answer_to_false_finish(key_id(Key(counting_bytes<32>(0x77))));
    const Bytes of_the_peers = answer_to_false_finish(key_id(kPeerKey));

    REQUIRE(known == unknown);
    REQUIRE(known == of_the_peers);
    REQUIRE(decode_refused(known)->reason == RefusalReason::kDenied);
    REQUIRE(decode_refused(known)->words == "not authenticated");
}

TEST_CASE("fop handshake: any bit changed on the way ends it", "[fop]") {
    HandshakePair intact;
    intact.run();
    for (std::size_t message = 0; message < intact.said.size(); ++message) {
        for (std::size_t bit = 0; bit < intact.said[message].size() * 8; ++bit) {
            CAPTURE(message, bit);
            HandshakePair pair;
            pair.run([&](std::size_t number, Bytes& bytes) {
                if (number == message) bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
            });
            // X25519 does not look at the highest bit of a public key; the transcript does, one
            // message later.
            REQUIRE_FALSE(pair.both_done());
            const bool to_server = message % 2 == 0;
            REQUIRE((to_server ? pair.server_state : pair.client_state) != HandshakeState::kDone);
            REQUIRE((pair.server_state == HandshakeState::kRefused ||
                     pair.client_state == HandshakeState::kRefused));
        }
    }
}

TEST_CASE("fop handshake: any bit of the connect data changed on the way ends it", "[fop]") {
    for (std::size_t bit = 0; bit < (ConnectHello::kSizeBytes + AcceptHello::kSizeBytes) * 8;
         ++bit) {
        CAPTURE(bit);
        auto server = example_server();
        auto& data = server.connect_data;
        const auto flip = static_cast<std::byte>(1 << (bit % 8));
        const std::size_t at = bit / 8;
        (at < data.connect.size() ? data.connect[at] : data.accept[at - data.connect.size()]) ^=
            flip;
        HandshakePair pair(example_client(), server);
        pair.run();
        REQUIRE(pair.client_state == HandshakeState::kRefused);
        REQUIRE(pair.server_state == HandshakeState::kRefused);
    }
}

TEST_CASE("fop handshake: a message cut short or made longer is refused", "[fop]") {
    HandshakePair intact;
    intact.run();
    for (std::size_t message = 0; message < intact.said.size(); ++message) {
        for (std::size_t size = 0; size <= intact.said[message].size() + 3; ++size) {
            if (size == intact.said[message].size()) continue;
            CAPTURE(message, size);
            HandshakePair pair;
            pair.run([&](std::size_t number, Bytes& bytes) {
                if (number == message) bytes.resize(size);
            });
            const Refusal& first = message % 2 == 0 ? pair.server.refusal() : pair.client.refusal();
            REQUIRE(first.by == RefusedBy::kUs);
            REQUIRE(first.reason == RefusalReason::kMalformed);
        }
    }
}

TEST_CASE("fop handshake: a message out of its place is refused", "[fop]") {
    HandshakePair intact;
    intact.run();
    for (std::size_t index = 0; index < intact.said.size(); ++index) {
        for (std::size_t other = 0; other < intact.said.size(); ++other) {
            if (other == index) continue;
            CAPTURE(index, other);
            HandshakePair pair;
            pair.run([&](std::size_t number, Bytes& bytes) {
                if (number == index) bytes = intact.said[other];
            });
            const Refusal& first = index % 2 == 0 ? pair.server.refusal() : pair.client.refusal();
            REQUIRE(first.by == RefusedBy::kUs);
            REQUIRE(first.reason == RefusalReason::kMalformed);
        }
    }
}

TEST_CASE("fop handshake: a proof of another handshake is refused", "[fop]") {
    HandshakePair recorded;
    recorded.run();
    const ServerRandom fresh(counting_bytes<96>(0x11));
    ServerHandshake server(example_server(), fresh);
    REQUIRE(server.consume(recorded.said[0], recorded.admission).state == HandshakeState::kRunning);
    const auto step = server.consume(recorded.said[2], recorded.admission);

    REQUIRE(step.state == HandshakeState::kRefused);
    REQUIRE(server.refusal().reason == RefusalReason::kDenied);

    const ClientRandom fresh_client(counting_bytes<64>(0x22));
    ClientHandshake client(example_client(), fresh_client);
    client.start(example_connect_data());
    REQUIRE(client.consume(recorded.said[1]).state == HandshakeState::kRefused);
}

TEST_CASE("fop handshake: both sides want the same protection, or there is no session", "[fop]") {
    const Protection of_client = GENERATE(Protection::kSeal, Protection::kEncrypt);
    const Protection of_server = GENERATE(Protection::kSeal, Protection::kEncrypt);
    auto client = example_client();
    client.protection = of_client;
    auto server = example_server();
    server.protection = of_server;
    const ClientHandshake sender(client, kExampleClientRandom);
    server.connect_data.connect =
        encode(ConnectHello{.client_id = counting_bytes<16>(0xc0), .promise = sender.promise()});
    const auto run = [&](auto change) {
        auto pair = std::make_unique<HandshakePair>(client, server);
        pair->connect_data = server.connect_data;
        pair->run(change);
        return pair;
    };
    const auto pair = run([](std::size_t, Bytes&) {});
    if (of_client == of_server) {
        REQUIRE(pair->both_done());
        const RecordKeys& keys = pair->client.session().records;
        REQUIRE(keys.client == pair->server.session().records.client);
        REQUIRE(keys.server == pair->server.session().records.server);
        REQUIRE_FALSE(keys.client == keys.server);
    } else {
        REQUIRE(pair->server.refusal().reason == RefusalReason::kDenied);
        REQUIRE(pair->client_state == HandshakeState::kRefused);
        REQUIRE_THAT(pair->client.refusal().words, ContainsSubstring("encrypt"));
    }
    // Somebody on the way changes what the client says it wants.
    const auto changed = run([](std::size_t number, Bytes& bytes) {
        if (number == 0) bytes[1] ^= std::byte{0x80};
    });
    REQUIRE(changed->client_state == HandshakeState::kRefused);
    REQUIRE(changed->server_state != HandshakeState::kDone);
}

TEST_CASE("fop handshake: session keys differ each time", "[fop]") {
    std::set<std::string> seen;
    for (std::uint8_t i = 0; i < 16; ++i) {
        const ClientRandom client_random(counting_bytes<64>(i));
        const ServerRandom server_random(counting_bytes<96>(static_cast<std::uint8_t>(200 - i)));
        HandshakePair ours(example_client(), example_server(), example_keys(), client_random);
        HandshakePair theirs(example_client(), example_server(), example_keys(),
                             kExampleClientRandom, server_random);
        for (HandshakePair* const pair : {&ours, &theirs}) {
            pair->run();
            REQUIRE(pair->both_done());
            const SessionKeys& keys = pair->client.session().keys;
            for (const MacKey* const key : {&keys.client, &keys.server, &keys.descriptor}) {
                REQUIRE(seen.insert(to_hex(key->bytes())).second);
            }
            const RecordKeys& records = pair->client.session().records;
            REQUIRE(seen.insert(to_hex(records.client.bytes())).second);
            REQUIRE(seen.insert(to_hex(records.server.bytes())).second);
        }
    }
}

TEST_CASE("fop handshake: the key alone does not lead to the keys of an old session", "[fop]") {
    // All that was on the wire and the principal's key, but not what both drew.
    HandshakePair pair;
    pair.run();
    const auto server_hello = decode_server_hello(pair.said[1]).value();
    Transcript transcript(example_connect_data().connect, example_connect_data().accept);
    transcript.add(pair.said[0]);
    transcript.add(without_mac(pair.said[1]));
    const auto with_secret =
        KeySchedule::make({.shared_before = kAnnKey,
                           .own_secret = Key(kExampleClientRandom.bytes().first<32>()),
                           .peer_public = server_hello.ephemeral,
                           .transcript = transcript});
    const auto without_secret = KeySchedule::make({.shared_before = kAnnKey,
                                                   .own_secret = Key(counting_bytes<32>(1)),
                                                   .peer_public = server_hello.ephemeral,
                                                   .transcript = transcript});

    REQUIRE(same_keys(with_secret->session, pair.client.session().keys));
    REQUIRE_FALSE(same_keys(without_secret->session, pair.client.session().keys));
}

// The points of small order, and those that reduce to them: RFC 7748 asks for this check.
TEST_CASE("fop handshake: a half of the secret that hides nothing is refused", "[fop]") {
    const std::string small[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    };
    for (const std::string& text : small) {
        CAPTURE(text);
        PublicKey point;
        REQUIRE(parse_hex(text, point).has_value());
        HandshakePair to_server;
        to_server.run([&](std::size_t number, Bytes& bytes) {
            if (number == 0) std::ranges::copy(point, bytes.begin() + 12);
        });
        REQUIRE(to_server.server.refusal().reason == RefusalReason::kMalformed);
        HandshakePair to_client;
        to_client.run([&](std::size_t number, Bytes& bytes) {
            if (number == 1) std::ranges::copy(point, bytes.begin() + 1);
        });
        REQUIRE(to_client.client.refusal().reason == RefusalReason::kMalformed);
    }
}

TEST_CASE("fop handshake: a client of a newer minor version is met at ours", "[fop]") {
    HandshakePair pair;
    Bytes hello = copy_of(pair.client.start(example_connect_data()));
    hello[3] = std::byte{200};
    REQUIRE(decode_client_hello(hello)->minor == 200);
    REQUIRE(pair.server.consume(hello, pair.admission).state == HandshakeState::kRunning);
}

TEST_CASE("fop handshake: a daemon may refuse for reasons of its own, at any point", "[fop]") {
    HandshakePair pair;
    pair.client.start(example_connect_data());
    const auto step = pair.server.refuse(RefusalReason::kDraining, "this node is going down");
    REQUIRE(step.state == HandshakeState::kRefused);
    REQUIRE(pair.client.consume(step.send).state == HandshakeState::kRefused);

    REQUIRE(pair.client.refusal().by == RefusedBy::kPeer);
    REQUIRE(pair.client.refusal().reason == RefusalReason::kDraining);
    REQUIRE(pair.client.refusal().words == "this node is going down");
}

TEST_CASE("fop handshake: when it is over, nothing more is taken and nothing is lost", "[fop]") {
    HandshakePair pair;
    pair.run();
    const std::string before = to_hex(pair.server.session().keys.client.bytes());

    REQUIRE(pair.server.consume(pair.said[0], pair.admission).state == HandshakeState::kRefused);
    REQUIRE(pair.client.consume(pair.said[3]).state == HandshakeState::kRefused);
    REQUIRE(to_hex(pair.server.session().keys.client.bytes()) == before);
    REQUIRE(to_hex(pair.client.session().keys.client.bytes()) == before);
    REQUIRE(pair.server.consume(pair.said[0], pair.admission).send.empty());
}

TEST_CASE("fop handshake: refusals without sense are refusals all the same", "[fop]") {
    const Bytes messages[] = {
        {std::byte{5}},
        {std::byte{5}, std::byte{77}, std::byte{0}},
        {std::byte{5}, std::byte{1}, std::byte{9}, std::byte{'x'}},
    };
    for (const Bytes& message : messages) {
        HandshakePair pair;
        pair.client.start(example_connect_data());
        const auto step = pair.client.consume(message);
        REQUIRE(step.state == HandshakeState::kRefused);
        REQUIRE(step.send.empty());
        REQUIRE(pair.client.refusal().by == RefusedBy::kPeer);
    }
}

TEST_CASE("fop handshake: random bytes are refused and harm nobody", "[fop]") {
    core::Random random(1);
    for (int i = 0; i < 3000; ++i) {
        HandshakePair pair;
        pair.run([&](std::size_t number, Bytes& bytes) {
            if (number != static_cast<std::size_t>(i % 4)) return;
            bytes.resize(random.below(kHandshakeBytesMax * 2));
            for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
            if (!bytes.empty()) bytes[0] = static_cast<std::byte>(1 + random.below(5));
        });
        REQUIRE_FALSE(pair.both_done());
    }
}

}  // namespace fopd::fop
