#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "fop/version.h"

namespace fopd::fop {

inline constexpr std::size_t kPrefixBytes = 64;
inline constexpr std::size_t kMacBytes = 16;
// The alignment of payloads and the envelope within a message, and of a message that is read.
inline constexpr std::size_t kMessageAlignment = 8;

// The contents of a message's envelope.
enum class MessageKind : std::uint8_t { kHandshake = 1, kRequests, kReplies, kControl };

// The prefix fields that the session sets.
struct PrefixFields {
    std::uint64_t session = 0;
    std::uint64_t sequence = 0;         // Counts the messages of a direction, from 0.
    std::uint16_t message_credits = 0;  // Granted to the receiver of this message.
    std::uint16_t fop_credits = 0;      // Granted to the receiver; for the data lane.
    // From a client: it has received the replies to all requests with a smaller id. From a server:
    // 0.
    std::uint64_t acknowledged = 0;
};

// The fixed layout at the start of a message; docs/formats/message.md.
struct Prefix : PrefixFields {
    MessageKind kind = MessageKind::kHandshake;
    std::uint8_t minor = kMinorVersion;
    std::uint32_t message_bytes = 0;  // In total: prefix, payloads, envelope.
    std::uint32_t envelope_bytes = 0;
};

// Reads and checks the prefix of a complete message, and its lengths. Cheap, because it comes
// before the MAC check. kUnsupported for another major version, otherwise kInvalid.
Result<Prefix> read_prefix(std::span<const std::byte> message);

// The input of a message's MAC, in this order; payloads are covered by their checksums in the
// envelope.
struct MacInput {
    std::span<const std::byte> prefix;
    std::span<const std::byte> envelope;
};

// REQUIRES for these three: the message was sealed, or read_prefix() accepted it.
MacInput mac_input(std::span<const std::byte> message);
void write_mac(std::span<std::byte> message, std::span<const std::byte, kMacBytes> mac);
std::span<const std::byte, kMacBytes> read_mac(std::span<const std::byte> message);

// Wraps the handshake's bytes in a message, and returns its length; the MAC is zero. REQUIRES: the
// buffer has room for kPrefixBytes and the envelope, which is not empty.
std::size_t write_handshake(std::span<std::byte> buffer, const PrefixFields& fields,
                            std::span<const std::byte> envelope);
// REQUIRES: read_prefix() accepted the message, and it is a handshake. kInvalid if it contains
// anything besides an envelope.
Result<std::span<const std::byte>> read_handshake(std::span<const std::byte> message);

}  // namespace fopd::fop
