#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "fop/hash.h"
#include "fop/hello.h"
#include "fop/key.h"

namespace fopd::fop {

// A running hash over all messages of both sides so far, so that none can be changed, omitted or
// reordered. Each message states its own length.
class Transcript {
public:
    Transcript(const ConnectHello::Bytes& connect, const AcceptHello::Bytes& accept);

    void add(std::span<const std::byte> bytes);
    const Hash& value() const { return value_; }

private:
    Hash value_;
};

// The keys that authenticate a session's messages and descriptors.
struct SessionKeys {
    MacKey client;      // Messages of the client.
    MacKey server;      // Messages of the server.
    MacKey descriptor;  // Descriptors of the client's memory.
};

// The keys that encrypt a connection with Protection::kEncrypt.
struct RecordKeys {
    Key client;  // Protects the messages of the client.
    Key server;  // Protects the messages of the server.
};

// A public key of X25519.
using PublicKey = std::array<std::byte, 32>;
PublicKey public_key(const Key& secret);

// The secrets shared by the two sides of a handshake after the hellos.
struct KeySchedule {
    Key server_finish;
    Key client_finish;
    Key welcome;
    SessionKeys session;
    RecordKeys records;

    struct Inputs {
        const Key& shared_before;  // The key the client named; zeros without authentication.
        const Key& own_secret;
        const PublicKey& peer_public;
        const Transcript& transcript;  // The messages up to the server's hello.
    };
    // Nothing if the peer's public key is one with which the shared secret is zero for every key of
    // ours.
    static std::optional<KeySchedule> make(const Inputs& inputs);
};

}  // namespace fopd::fop
