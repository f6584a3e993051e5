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

// Two machines that turn received messages into messages to send, until both sides know that the
// other holds the same key and saw the same bytes. They do no I/O; deadlines are their owner's.
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

// What both saw before the handshake began.
struct ConnectData {
    ConnectHello::Bytes connect;
    AcceptHello::Bytes accept;
};

enum class HandshakeState : std::uint8_t {
    kRunning,
    kProved,  // The server's: it knows who the client is, and has to welcome or refuse it.
    kDone,
    kRefused,
};

struct HandshakeStep {
    HandshakeState state = HandshakeState::kRunning;
    // To be sent, in every state; empty when there is nothing to say. Borrowed until the next call.
    std::span<const std::byte> send = {};
};

enum class RefusedBy : std::uint8_t { kUs, kPeer };

struct Refusal {
    RefusedBy by = RefusedBy::kUs;
    RefusalReason reason = RefusalReason::kDenied;
    std::string words =
        {};  // Of the peer when it refused: to be made printable, not to be believed.
};

// Who a client says it is.
struct Credentials {
    AuthKind kind = AuthKind::kNone;
    Key key = {};  // Zeros without authentication.
    std::string name =
        {};  // How it calls itself: a peer's is its node's name, others are for people.
    std::string user = {};  // For whom it acts; empty for itself.
};

// Bytes nobody can guess, used once: the caller draws and wipes them.
inline constexpr std::size_t kClientRandomBytes = 64;
inline constexpr std::size_t kServerRandomBytes = 96;
using ClientRandom = SecretBytes<kClientRandomBytes>;
using ServerRandom = SecretBytes<kServerRandomBytes>;

// What a client knows at the end.
struct ClientSession {
    SessionKeys keys = {};
    std::string name = {};  // As whom the server knows us.
    Rights rights = {};
    ServerOffer server = {};
    Grant grant = {};
    bool resumed = false;  // The server knows what this client has asked before.
};

// What a server knows at the end.
struct ServerSession {
    SessionKeys keys = {};
    Identity identity = {};
    ClientOffer client = {};
    std::uint8_t minor_version = 0;  // The smaller of both.
};

class ClientHandshake {
public:
    struct Options {
        Credentials credentials = {};
        ClientOffer offer = {};
    };

    // Requires: names that are names, and a key where the kind of authentication has one.
    ClientHandshake(Options options, const ClientRandom& random);
    ClientHandshake(const ClientHandshake&) = delete;
    ClientHandshake& operator=(const ClientHandshake&) = delete;

    // What the ConnectHello is to promise.
    HelloPromise promise() const { return promise_of(hello()); }
    std::span<const std::byte> hello() const { return std::span(hello_).first(hello_bytes_); }
    // The first message. Once, before anything is consumed. Borrowed until the next call.
    std::span<const std::byte> start(const ConnectData& connect_data);
    // Whatever the server sent. Once it is over, everything is refused.
    HandshakeStep consume(std::span<const std::byte> bytes);

    // Requires: it came to kDone.
    const ClientSession& session() const;
    // Requires: kRefused.
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
    };

    ServerHandshake(const Options& options, const ServerRandom& random);
    ServerHandshake(const ServerHandshake&) = delete;
    ServerHandshake& operator=(const ServerHandshake&) = delete;

    // Whether the client can only mean this with its first message.
    bool is_promised(std::span<const std::byte> bytes) const;
    // Whether this is the client's proof. Little work, and changes nothing.
    bool proves(std::span<const std::byte> bytes) const;
    // Whatever the client sent; it is admitted as is said with its last message. Once it is over,
    // everything is refused.
    HandshakeStep consume(std::span<const std::byte> bytes, const Admission& admission);
    // Lets it in. Requires: kProved.
    HandshakeStep welcome(bool resumed);
    // Ends it for a reason of the caller's: too many sessions, draining. Requires: at most
    // kRefusalWordsMax bytes.
    HandshakeStep refuse(RefusalReason reason, std::string_view words);

    // Requires: it came to kProved.
    const ServerSession& session() const;
    // Requires: kRefused.
    const Refusal& refusal() const;
    // For the log: what the client said it is, not proved. Nothing before its hello.
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
    std::optional<KnownKey> known_;  // Not for an unknown key, whose client fails at its finish.
    ClientOffer client_;
    std::uint8_t minor_version_ = 0;
    std::optional<KeySchedule> keys_;
    std::optional<ServerSession> session_;
    std::optional<Refusal> refusal_;
    std::array<std::byte, kHandshakeBytesMax> outgoing_{};
};

}  // namespace fopd::fop
