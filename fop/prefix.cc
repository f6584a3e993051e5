#include "fop/prefix.h"

#include <algorithm>
#include <cstring>

#include "core/ensure.h"
#include "fop/bytes.h"
#include "fop/invalid.h"
#include "fop/layout.h"

namespace fopd::fop {

namespace {

constexpr std::size_t kMacAt = 48;
static_assert(kMacAt + kMacBytes == kPrefixBytes);

}  // namespace

Result<Prefix> read_prefix(std::span<const std::byte> message) {
    if (message.size() < kPrefixBytes) return invalid("short message");
    ByteReader reader(message.first(kMacAt));
    if (reader.number<std::uint32_t>() != kMagic) return invalid("no message");
    if (reader.number<std::uint8_t>() != kMajorVersion) {
        return std::unexpected(Error{.code = Errc::kUnsupported, .context = "wire version"});
    }
    Prefix prefix;
    prefix.minor = reader.number<std::uint8_t>();
    const auto kind = reader.number<std::uint8_t>();
    const auto zero_byte = reader.number<std::uint8_t>();
    prefix.session = reader.number<std::uint64_t>();
    prefix.sequence = reader.number<std::uint64_t>();
    prefix.message_bytes = reader.number<std::uint32_t>();
    prefix.envelope_bytes = reader.number<std::uint32_t>();
    prefix.message_credits = reader.number<std::uint16_t>();
    prefix.fop_credits = reader.number<std::uint16_t>();
    const auto zero_word = reader.number<std::uint32_t>();
    prefix.acknowledged = reader.number<std::uint64_t>();
    ENSURE(reader.complete());

    if (kind < static_cast<std::uint8_t>(MessageKind::kHandshake) ||
        kind > static_cast<std::uint8_t>(MessageKind::kControl)) {
        return invalid("kind of message");
    }
    prefix.kind = static_cast<MessageKind>(kind);
    // A newer minor version may use these bytes.
    if (prefix.minor <= kMinorVersion && (zero_byte != 0 || zero_word != 0)) {
        return invalid("reserved bytes of a message");
    }
    if (prefix.message_bytes != message.size() || prefix.envelope_bytes == 0 ||
        prefix.envelope_bytes > message.size() - kPrefixBytes ||
        (prefix.message_bytes - prefix.envelope_bytes) % kMessageAlignment != 0) {
        return invalid("lengths in a message");
    }
    return prefix;
}

void write_prefix(std::span<std::byte> message, MessageKind kind, const PrefixFields& fields,
                  std::size_t envelope_bytes) {
    ENSURE(message.size() <= UINT32_MAX);
    ENSURE(envelope_bytes > 0 && envelope_bytes <= message.size() - kPrefixBytes);
    ByteWriter writer(message.first(kMacAt));
    writer.number(kMagic);
    writer.number(kMajorVersion);
    writer.number(kMinorVersion);
    writer.number(static_cast<std::uint8_t>(kind));
    writer.number(std::uint8_t{0});
    writer.number(fields.session);
    writer.number(fields.sequence);
    writer.number(static_cast<std::uint32_t>(message.size()));
    writer.number(static_cast<std::uint32_t>(envelope_bytes));
    writer.number(fields.message_credits);
    writer.number(fields.fop_credits);
    writer.number(std::uint32_t{0});
    writer.number(fields.acknowledged);
    ENSURE(writer.size() == kMacAt);
    std::ranges::fill(message.subspan(kMacAt, kMacBytes), std::byte{0});
}

std::span<const std::byte> envelope_of(std::span<const std::byte> message) {
    const std::size_t envelope_bytes = load_little<std::uint32_t>(message.data() + 28);
    ENSURE(message.size() >= kPrefixBytes);
    ENSURE(envelope_bytes <= message.size() - kPrefixBytes);
    return message.last(envelope_bytes);
}

MacInput mac_input(std::span<const std::byte> message) {
    return {.prefix = message.first(kMacAt), .envelope = envelope_of(message)};
}

void write_mac(std::span<std::byte> message, std::span<const std::byte, kMacBytes> mac) {
    ENSURE(message.size() >= kPrefixBytes);
    std::ranges::copy(mac, message.begin() + kMacAt);
}

std::span<const std::byte, kMacBytes> read_mac(std::span<const std::byte> message) {
    ENSURE(message.size() >= kPrefixBytes);
    return message.subspan<kMacAt, kMacBytes>();
}

std::size_t write_handshake(std::span<std::byte> buffer, const PrefixFields& fields,
                            std::span<const std::byte> envelope) {
    ENSURE(!envelope.empty());
    ENSURE(buffer.size() >= kPrefixBytes + envelope.size());
    const auto message = buffer.first(kPrefixBytes + envelope.size());
    std::memcpy(message.data() + kPrefixBytes, envelope.data(), envelope.size());
    write_prefix(message, MessageKind::kHandshake, fields, envelope.size());
    return message.size();
}

Result<std::span<const std::byte>> read_handshake(std::span<const std::byte> message) {
    const auto envelope = envelope_of(message);
    if (envelope.size() != message.size() - kPrefixBytes) {
        return invalid("handshake with a payload");
    }
    return envelope;
}

}  // namespace fopd::fop
