#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fop/handshake.h"
#include "fop/principal.h"
#include "tests/fop/example_bytes.h"

namespace fopd::fop {

using Bytes = std::vector<std::byte>;

inline Bytes copy_of(std::span<const std::byte> bytes) {
    return {bytes.begin(), bytes.end()};
}

// The example of docs/formats/handshake.md: all that is chosen or drawn.
inline const Key kAnnKey(counting_bytes<32>(0x00));
inline const Key kAnnOldKey(counting_bytes<32>(0x20));
inline const Key kPeerKey(counting_bytes<32>(0x40));
inline const ClientRandom kExampleClientRandom(counting_bytes<64>(0x60));
inline const ServerRandom kExampleServerRandom(counting_bytes<96>(0xa0));

inline KeyRing example_keys() {
    return KeyRing::make({.principals = {{.name = "ann",
                                          .keys = {kAnnKey, kAnnOldKey},
                                          .rights = kRead | kWrite,
                                          .groups = {"staff"}}},
                          .peer_keys = {kPeerKey}})
        .value();
}

inline ClientHandshake::Options example_client() {
    return {.credentials = {.kind = AuthKind::kPrincipal, .key = kAnnKey, .name = "fopctl"},
            .offer = {.message_bytes_max = 36 * 1024, .message_credits = 8}};
}

inline ConnectData example_connect_data() {
    const ClientHandshake client(example_client(), kExampleClientRandom);
    return {.connect = encode(
                ConnectHello{.client_id = counting_bytes<16>(0xc0), .promise = client.promise()}),
            .accept = encode(AcceptHello{.locality = 1, .session = 7, .incarnation = 99})};
}

inline ServerHandshake::Options example_server() {
    return {.offer = {.message_bytes_max = 16 * 1024,
                      .inline_max = 12 * 1024,
                      .incarnation = 99,
                      .lease = 30s},
            .grant = {.message_credits = 4, .fop_credits_data = 64, .fop_credits_control = 16},
            .connect_data = example_connect_data()};
}

inline ClientHandshake::Options client_with(const Key& key) {
    auto options = example_client();
    options.credentials.key = key;
    return options;
}

// A client and a server, and what they say to each other.
struct HandshakePair {
    explicit HandshakePair(ClientHandshake::Options client_options = example_client(),
                           const ServerHandshake::Options& server_options = example_server(),
                           KeyRing ring = example_keys(),
                           const ClientRandom& client_random = kExampleClientRandom,
                           const ServerRandom& server_random = kExampleServerRandom)
        : admission{.keys = std::make_shared<const KeyRing>(std::move(ring))},
          client(std::move(client_options), client_random),
          server(server_options, server_random) {}

    // Hands messages to and fro until nobody has anything to say. `change`, if any, sees each
    // message before it arrives, with its number.
    template <typename Change>
    void run(Change change) {
        said.push_back(copy_of(client.start(connect_data)));
        while (true) {
            change(said.size() - 1, said.back());
            auto answer = server.consume(said.back(), admission);
            if (answer.state == HandshakeState::kProved) answer = server.welcome(resumed);
            server_state = answer.state;
            if (answer.send.empty()) return;
            said.push_back(copy_of(answer.send));
            change(said.size() - 1, said.back());
            const auto reply = client.consume(said.back());
            client_state = reply.state;
            if (reply.send.empty()) return;
            said.push_back(copy_of(reply.send));
        }
    }
    void run() {
        run([](std::size_t, Bytes&) {});
    }

    bool both_done() const {
        return client_state == HandshakeState::kDone && server_state == HandshakeState::kDone;
    }

    Admission admission;
    ConnectData connect_data = example_connect_data();
    bool resumed = false;
    ClientHandshake client;
    ServerHandshake server;
    HandshakeState client_state = HandshakeState::kRunning;
    HandshakeState server_state = HandshakeState::kRunning;
    std::vector<Bytes> said;  // As they arrived: the client's at even indexes.
};

}  // namespace fopd::fop
