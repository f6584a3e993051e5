#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fop/admission.h"
#include "fop/handshake_message.h"
#include "fop/hello.h"
#include "fop/key_schedule.h"
#include "fop/principal.h"

namespace fopd::fop {

// Two state machines that turn received messages into messages to send, until each side knows that
// the other has the same key and saw the same bytes. They do no I/O; deadlines are up to their
// owner.
//
//     client                              server
//     ConnectHello  ─────────────────────►
//                   ◄───────────────────── AcceptHello       (the connection stands)
//     ClientHello   ─────────────────────►                   as the ConnectHello promised
//                   ◄───────────────────── ServerHello       proves the server
//     ClientFinish  ─────────────────────►                   proves the client
//                   ◄───────────────────── Welcome
//
// Either side may send Refused instead, once; then the handshake is over. Before the proofs, a
// message does not show its sender: a server that cannot find the sender otherwise calls
// is_promised() or proves() first, and ignores a message that fails the check.

// The connect data that both sides saw before the handshake began.
struct ConnectData {
    ConnectHello::Bytes connect;
    AcceptHello::Bytes accept;
};

enum class HandshakeState : std::uint8_t {
    kRunning,
    kProved,  // On the server: the client's identity is proved, and the owner must welcome or
              // refuse it.
    kDone,
    kRefused,
};

struct HandshakeStep {
    HandshakeState state = HandshakeState::kRunning;
    // The message to send, in every state; empty if there is none. Borrowed until the next call.
    std::span<const std::byte> send = {};
};

enum class RefusedBy : std::uint8_t { kUs, kPeer };

struct Refusal {
    RefusedBy by = RefusedBy::kUs;
    RefusalReason reason = RefusalReason::kDenied;
    std::string words = {};  // From the peer if it refused: untrusted text, to be made printable.
};

// The identity that a client claims.
struct Credentials {
    AuthKind kind = AuthKind::kNone;
    Key key = {};  // Zeros if not authenticated.
    // The name it gives itself: a peer's is its node's name, others are informative.
    std::string name = {};
    std::string user = {};  // The user it acts for; empty for itself.
};

// Unpredictable bytes, used once: the caller draws and wipes them.
inline constexpr std::size_t kClientRandomBytes = 64;
inline constexpr std::size_t kServerRandomBytes = 96;
using ClientRandom = SecretBytes<kClientRandomBytes>;
using ServerRandom = SecretBytes<kServerRandomBytes>;

// The client's result of the handshake.
struct ClientSession {
    SessionKeys keys = {};
    RecordKeys records = {};
    std::string name = {};  // Our name according to the server.
    Rights rights = {};
    ServerOffer server = {};
    Grant grant = {};
    bool resumed = false;  // The server still remembers this client's earlier requests.
};

// The server's result of the handshake.
struct ServerSession {
    SessionKeys keys = {};
    RecordKeys records = {};
    Identity identity = {};
    ClientOffer client = {};
    std::uint8_t minor_version = 0;  // The lower one of both sides.
};

class ClientHandshake {
public:
    struct Options {
        Credentials credentials = {};
        ClientOffer offer = {};
        Protection protection = Protection::kSeal;
    };

    // REQUIRES: valid names, and a key if the kind of authentication uses one.
    ClientHandshake(Options options, const ClientRandom& random);
    ClientHandshake(const ClientHandshake&) = delete;
    ClientHandshake& operator=(const ClientHandshake&) = delete;

    // The promise for the ConnectHello.
    HelloPromise promise() const { return promise_of(hello()); }
    std::span<const std::byte> hello() const { return std::span(hello_).first(hello_bytes_); }
    // The first message. Called once, before consume(). Borrowed until the next call.
    std::span<const std::byte> start(const ConnectData& connect_data);
    // Processes a message from the server. After the end of the handshake, all are refused.
    HandshakeStep consume(std::span<const std::byte> bytes);

    // REQUIRES: the state has reached kDone.
    const ClientSession& session() const;
    // REQUIRES: kRefused.
    const Refusal& refusal() const;

private:
    enum class Waiting : std::uint8_t { kForStart, kForServerHello, kForWelcome, kForNothing };

    HandshakeStep on_server_hello(std::span<const std::byte> bytes);
    HandshakeStep on_welcome(std::span<const std::byte> bytes);
    HandshakeStep refuse(RefusalReason reason, std::string_view words);

    Options options_;
    Key ephemeral_;
    std::array<std::byte, kHandshakeBytesMax> hello_{};
    std::size_t hello_bytes_ = 0;
    std::optional<Transcript> transcript_;
    Waiting waiting_ = Waiting::kForStart;
    std::optional<KeySchedule> keys_;
    ServerOffer server_;
    std::optional<ClientSession> session_;
    std::optional<Refusal> refusal_;
    std::array<std::byte, kHandshakeBytesMax> outgoing_{};
};

class ServerHandshake {
public:
    struct Options {
        ServerOffer offer = {};
        Grant grant = {};
        ConnectData connect_data = {};
        // Clients that want another one are refused.
        Protection protection = Protection::kSeal;
    };

    ServerHandshake(const Options& options, const ServerRandom& random);
    ServerHandshake(const ServerHandshake&) = delete;
    ServerHandshake& operator=(const ServerHandshake&) = delete;

    // Whether these bytes are the first message promised in the client's ConnectHello.
    bool is_promised(std::span<const std::byte> bytes) const;
    // Whether this is the client's proof. Cheap, and changes nothing.
    bool proves(std::span<const std::byte> bytes) const;
    // Processes a message from the client; `admission` at its last message decides. After the end
    // of the handshake, all are refused.
    HandshakeStep consume(std::span<const std::byte> bytes, const Admission& admission);
    // Admits the client. REQUIRES: kProved.
    HandshakeStep welcome(bool resumed);
    // Refuses the client for a reason of the caller's: too many sessions, draining. REQUIRES: at
    // most kRefusalWordsMax bytes.
    HandshakeStep refuse(RefusalReason reason, std::string_view words);

    // REQUIRES: the state has reached kProved.
    const ServerSession& session() const;
    // REQUIRES: kRefused.
    const Refusal& refusal() const;
    // For the log: the identity that the client claims, without proof. Empty before its hello.
    const std::optional<Identity>& claimed() const { return claimed_; }

private:
    enum class Waiting : std::uint8_t {
        kForClientHello,
        kForClientFinish,
        kForWelcome,
        kForNothing
    };

    HandshakeStep on_client_hello(std::span<const std::byte> bytes, const Admission& admission);
    HandshakeStep on_client_finish(std::span<const std::byte> bytes, const Admission& admission);

    Options options_;
    ServerRandom random_;
    Transcript transcript_;
    Waiting waiting_ = Waiting::kForClientHello;
    std::optional<Identity> claimed_;
    std::optional<KnownKey> known_;  // Empty for an unknown key, whose client fails at its finish.
    ClientOffer client_;
    std::uint8_t minor_version_ = 0;
    std::optional<KeySchedule> keys_;
    std::optional<ServerSession> session_;
    std::optional<Refusal> refusal_;
    std::array<std::byte, kHandshakeBytesMax> outgoing_{};
};

}  // namespace fopd::fop
