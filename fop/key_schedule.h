#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "fop/hash.h"
#include "fop/hello.h"
#include "fop/key.h"

namespace fopd::fop {

// A running hash over all both sides said so far, so that nothing of it can be changed, left out or
// put elsewhere. Each message tells its own length.
class Transcript {
public:
    Transcript(const ConnectHello::Bytes& connect, const AcceptHello::Bytes& accept);

    void add(std::span<const std::byte> bytes);
    const Hash& value() const { return value_; }

private:
    Hash value_;
};

// What a session's messages and descriptors are authenticated with.
struct SessionKeys {
    MacKey client;      // Messages of the client.
    MacKey server;      // Messages of the server.
    MacKey descriptor;  // Descriptors of the client's memory.
};

// X25519.
using PublicKey = std::array<std::byte, 32>;
PublicKey public_key(const Key& secret);

// What both sides of a handshake know after the two hellos, and nobody else.
struct KeySchedule {
    Key server_finish;
    Key client_finish;
    Key welcome;
    SessionKeys session;

    struct Inputs {
        const Key& shared_before;  // The key the client named; zeros without authentication.
        const Key& own_secret;
        const PublicKey& peer_public;
        const Transcript& transcript;  // Up to the server's hello.
    };
    // Nothing when the peer's half is one of those that make the secret zero, whatever ours is.
    static std::optional<KeySchedule> make(const Inputs& inputs);
};

}  // namespace fopd::fop
