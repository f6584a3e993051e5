#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "fop/version.h"

namespace fopd::fop {

inline constexpr std::size_t kPrefixBytes = 64;
inline constexpr std::size_t kMacBytes = 16;
// Payloads and the envelope start at multiples of this; a message that is read does, too.
inline constexpr std::size_t kMessageAlignment = 8;

// What the envelope of a message holds.
enum class MessageKind : std::uint8_t { kHandshake = 1, kRequests, kReplies, kControl };

// The prefix fields that the session sets.
struct PrefixFields {
    std::uint64_t session = 0;
    std::uint64_t sequence = 0;         // Counts the messages of a direction, from 0.
    std::uint16_t message_credits = 0;  // Given to the receiver of this message.
    std::uint16_t fop_credits = 0;      // Given to the receiver; for the data lane.
    // From a client: it has the reply to every request with a smaller id. From a server: 0.
    std::uint64_t acknowledged = 0;
};

// The fixed layout a message begins with; docs/formats/message.md.
struct Prefix : PrefixFields {
    MessageKind kind = MessageKind::kHandshake;
    std::uint8_t minor = kMinorVersion;
    std::uint32_t message_bytes = 0;  // All of it: prefix, payloads, envelope.
    std::uint32_t envelope_bytes = 0;
};

// Reads and checks the prefix of a whole message, and that its lengths add up. Cheap: this comes
// before the MAC. Fails with kUnsupported for another major version, with kInvalid otherwise.
Result<Prefix> read_prefix(std::span<const std::byte> message);

// What a MAC is computed over, in this order; payloads are covered through their checksums in the
// envelope.
struct MacInput {
    std::span<const std::byte> prefix;
    std::span<const std::byte> envelope;
};

// Requires of these three: the message was sealed, or read_prefix() took it.
MacInput mac_input(std::span<const std::byte> message);
void write_mac(std::span<std::byte> message, std::span<const std::byte, kMacBytes> mac);
std::span<const std::byte, kMacBytes> read_mac(std::span<const std::byte> message);

// Makes a handshake message of what the handshake wrote, and returns its length; the MAC is zero.
// Requires: the buffer holds kPrefixBytes and the envelope, which is not empty.
std::size_t write_handshake(std::span<std::byte> buffer, const PrefixFields& fields,
                            std::span<const std::byte> envelope);
// Requires: read_prefix() took the message, and it is a handshake. Fails with kInvalid when there
// is anything but an envelope.
Result<std::span<const std::byte>> read_handshake(std::span<const std::byte> message);

}  // namespace fopd::fop
