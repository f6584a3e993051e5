#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "core/time.h"
#include "fop/hello.h"
#include "fop/key.h"
#include "fop/key_schedule.h"
#include "fop/principal.h"
#include "fop/protection.h"
#include "fop/rights.h"

namespace fopd::fop {

// Encodes and decodes the messages of the handshake; docs/formats/handshake.md has their layouts.
// Decoded texts are borrowed from the bytes.

inline constexpr std::size_t kHandshakeBytesMax = 512;
inline constexpr std::size_t kRefusalWordsMax = 64;

// A message of this size has room for any fop without its payload.
inline constexpr std::uint32_t kMessageBytesMin = 2048;

enum class HandshakeKind : std::uint8_t {
    kClientHello = 1,
    kServerHello = 2,
    kClientFinish = 3,
    kWelcome = 4,
    kRefused = 5,
};

// Why a handshake ended: one value for each different reaction of the other side.
enum class RefusalReason : std::uint8_t {
    kDenied = 1,  // Not proved, or not allowed. The same for a wrong key and no such key.
    kAuthenticationNeeded = 2,  // A key is needed here.
    kVersion = 3,               // No version in common.
    kMalformed = 4,             // The message is not of the expected kind.
    kBusy = 5,                  // Try again later.
    kDraining = 6,              // Connect elsewhere, or later.
};

// The limits of the messages that a client can receive.
struct ClientOffer {
    std::uint32_t message_bytes_max = 0;
    std::uint16_t message_credits = 0;

    friend bool operator==(const ClientOffer&, const ClientOffer&) = default;
};

// The limits of the messages that a daemon can receive, and the lease of silent clients.
struct ServerOffer {
    std::uint32_t message_bytes_max = 0;
    std::uint32_t inline_max = 0;  // Larger payloads travel by RMA.
    std::uint64_t incarnation = 0;
    Duration lease{};  // In milliseconds on the wire.

    friend bool operator==(const ServerOffer&, const ServerOffer&) = default;
};

// The client's initial credits.
struct Grant {
    std::uint16_t message_credits = 0;
    std::uint16_t fop_credits_data = 0;
    std::uint16_t fop_credits_control = 0;

    friend bool operator==(const Grant&, const Grant&) = default;
};

using Nonce = std::array<std::byte, 32>;
using FinishMac = Hash;

struct ClientHello {
    AuthKind auth = AuthKind::kNone;
    // The protection of all messages after the handshake.
    Protection protection = Protection::kSeal;
    std::uint8_t major = 0;
    std::uint8_t minor = 0;
    KeyId key_id{};
    PublicKey ephemeral{};
    Nonce nonce{};
    ClientOffer offer = {};
    std::string_view name = {};
    std::string_view user = {};
};

struct ServerHello {
    PublicKey ephemeral{};
    Nonce nonce{};
    ServerOffer offer = {};
    FinishMac mac{};
};

struct ClientFinish {
    FinishMac mac{};
};

struct Welcome {
    Rights rights = {};
    std::string_view name = {};
    Grant grant = {};
    bool resumed = false;  // The server still remembers this client's earlier requests.
    FinishMac mac{};
};

struct Refused {
    RefusalReason reason = RefusalReason::kDenied;
    std::string_view words = {};
};

// Each returns the part of `into` that it filled. REQUIRES: texts within their limits, and
// kHandshakeBytesMax bytes in `into`.
std::span<const std::byte> encode(const ClientHello& hello, std::span<std::byte> into);
std::span<const std::byte> encode(const ServerHello& hello, std::span<std::byte> into);
std::span<const std::byte> encode(const ClientFinish& finish, std::span<std::byte> into);
std::span<const std::byte> encode(const Welcome& welcome, std::span<std::byte> into);
std::span<const std::byte> encode(const Refused& refused, std::span<std::byte> into);

// kInvalid with the reason as context; kUnsupported for a ClientHello of another major version.
Result<ClientHello> decode_client_hello(std::span<const std::byte> bytes);
Result<ServerHello> decode_server_hello(std::span<const std::byte> bytes);
Result<ClientFinish> decode_client_finish(std::span<const std::byte> bytes);
Result<Welcome> decode_welcome(std::span<const std::byte> bytes);
Result<Refused> decode_refused(std::span<const std::byte> bytes);

bool is_refused(std::span<const std::byte> bytes);

// Identifies a ClientHello before it is sent.
HelloPromise promise_of(std::span<const std::byte> client_hello);

// The part of a message that its MAC covers, in addition to all earlier messages: the bytes before
// the MAC. REQUIRES: `bytes` was encoded or decoded as a message with a MAC.
std::span<const std::byte> without_mac(std::span<const std::byte> bytes);

}  // namespace fopd::fop
