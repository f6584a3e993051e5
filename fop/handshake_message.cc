#include "fop/handshake_message.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/ensure.h"
#include "fop/bytes.h"
#include "fop/hash.h"
#include "fop/invalid.h"
#include "fop/version.h"

namespace fopd::fop {
namespace {

using std::chrono::milliseconds;

void put_kind(ByteWriter& writer, HandshakeKind kind) {
    writer.number(static_cast<std::uint8_t>(kind));
}

bool take_kind(ByteReader& reader, HandshakeKind kind) {
    return reader.number<std::uint8_t>() == static_cast<std::uint8_t>(kind);
}

// In the byte of the kind of authentication: the client asks for an encrypted session. A server
// that does not know it refuses the hello.
constexpr std::uint8_t kEncryptBit = 0x80;

constexpr const char* kOutOfOrder = "another message of the handshake belongs here";
constexpr const char* kBadLength = "the message is cut short, or goes on after its end";

}  // namespace

std::span<const std::byte> encode(const ClientHello& hello, std::span<std::byte> into) {
    ByteWriter writer(into);
    put_kind(writer, HandshakeKind::kClientHello);
    const int protection = hello.protection == Protection::kEncrypt ? kEncryptBit : 0;
    writer.number(static_cast<std::uint8_t>(static_cast<int>(hello.auth) | protection));
    writer.number(hello.major);
    writer.number(hello.minor);
    writer.put(hello.key_id);
    writer.put(hello.ephemeral);
    writer.put(hello.nonce);
    writer.number(hello.offer.message_bytes_max);
    writer.number(hello.offer.message_credits);
    ENSURE(is_name(hello.name));
    writer.short_text(hello.name);
    ENSURE(is_name(hello.user));
    writer.short_text(hello.user);
    return writer.written();
}

Result<ClientHello> decode_client_hello(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    if (!take_kind(reader, HandshakeKind::kClientHello)) return invalid(kOutOfOrder);
    ClientHello hello;
    const auto how = reader.number<std::uint8_t>();
    const auto auth = static_cast<std::uint8_t>(how & ~kEncryptBit);
    if ((how & kEncryptBit) != 0) hello.protection = Protection::kEncrypt;
    hello.major = reader.number<std::uint8_t>();
    hello.minor = reader.number<std::uint8_t>();
    if (reader.ok() && hello.major != kMajorVersion) {
        return std::unexpected(Error{.code = Errc::kUnsupported,
                                     .context = "another version of the protocol is spoken here"});
    }
    reader.take_into(hello.key_id);
    reader.take_into(hello.ephemeral);
    reader.take_into(hello.nonce);
    hello.offer.message_bytes_max = reader.number<std::uint32_t>();
    hello.offer.message_credits = reader.number<std::uint16_t>();
    hello.name = reader.short_text();
    hello.user = reader.short_text();
    if (!reader.complete()) return invalid(kBadLength);
    if (auth > static_cast<std::uint8_t>(AuthKind::kPeer)) {
        return invalid("an unknown kind of authentication");
    }
    hello.auth = static_cast<AuthKind>(auth);
    if (hello.auth == AuthKind::kNone && hello.key_id != KeyId{}) {
        return invalid("a key is named, but not to be used");
    }
    if (hello.offer.message_bytes_max < kMessageBytesMin) {
        return invalid("messages of less than 2048 bytes are too small");
    }
    if (hello.offer.message_credits == 0) return invalid("at least one message credit is needed");
    if (!is_name(hello.name)) return invalid("the client's name is too long or not plain text");
    if (hello.auth == AuthKind::kPeer && hello.name.empty()) return invalid("a peer has a name");
    if (!is_name(hello.user)) return invalid("the user's name is too long or not plain text");
    return hello;
}

std::span<const std::byte> encode(const ServerHello& hello, std::span<std::byte> into) {
    const auto lease_ms = std::chrono::duration_cast<milliseconds>(hello.offer.lease).count();
    ENSURE(lease_ms > 0);
    ENSURE(lease_ms <= std::numeric_limits<std::uint32_t>::max());
    ByteWriter writer(into);
    put_kind(writer, HandshakeKind::kServerHello);
    writer.put(hello.ephemeral);
    writer.put(hello.nonce);
    writer.number(hello.offer.message_bytes_max);
    writer.number(hello.offer.inline_max);
    writer.number(hello.offer.incarnation);
    writer.number(static_cast<std::uint32_t>(lease_ms));
    writer.put(hello.mac);
    return writer.written();
}

Result<ServerHello> decode_server_hello(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    if (!take_kind(reader, HandshakeKind::kServerHello)) return invalid(kOutOfOrder);
    ServerHello hello;
    reader.take_into(hello.ephemeral);
    reader.take_into(hello.nonce);
    hello.offer.message_bytes_max = reader.number<std::uint32_t>();
    hello.offer.inline_max = reader.number<std::uint32_t>();
    hello.offer.incarnation = reader.number<std::uint64_t>();
    hello.offer.lease = milliseconds(reader.number<std::uint32_t>());
    reader.take_into(hello.mac);
    if (!reader.complete()) return invalid(kBadLength);
    if (hello.offer.message_bytes_max < kMessageBytesMin) {
        return invalid("messages of less than 2048 bytes are too small");
    }
    if (hello.offer.lease == Duration::zero()) return invalid("a lease of no time");
    return hello;
}

std::span<const std::byte> encode(const ClientFinish& finish, std::span<std::byte> into) {
    ByteWriter writer(into);
    put_kind(writer, HandshakeKind::kClientFinish);
    writer.put(finish.mac);
    return writer.written();
}

Result<ClientFinish> decode_client_finish(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    if (!take_kind(reader, HandshakeKind::kClientFinish)) return invalid(kOutOfOrder);
    ClientFinish finish;
    reader.take_into(finish.mac);
    if (!reader.complete()) return invalid(kBadLength);
    return finish;
}

std::span<const std::byte> encode(const Welcome& welcome, std::span<std::byte> into) {
    ByteWriter writer(into);
    put_kind(writer, HandshakeKind::kWelcome);
    writer.number(welcome.rights.bits());
    ENSURE(is_name(welcome.name));
    writer.short_text(welcome.name);
    writer.number(welcome.grant.message_credits);
    writer.number(welcome.grant.fop_credits_data);
    writer.number(welcome.grant.fop_credits_control);
    writer.number(std::uint8_t{welcome.resumed});
    writer.put(welcome.mac);
    return writer.written();
}

Result<Welcome> decode_welcome(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    if (!take_kind(reader, HandshakeKind::kWelcome)) return invalid(kOutOfOrder);
    Welcome welcome;
    const auto rights = Rights::from_bits(reader.number<std::uint16_t>());
    welcome.name = reader.short_text();
    welcome.grant.message_credits = reader.number<std::uint16_t>();
    welcome.grant.fop_credits_data = reader.number<std::uint16_t>();
    welcome.grant.fop_credits_control = reader.number<std::uint16_t>();
    const auto resumed = reader.number<std::uint8_t>();
    reader.take_into(welcome.mac);
    if (!reader.complete()) return invalid(kBadLength);
    if (!rights) return invalid("an unknown right");
    if (!is_name(welcome.name)) return invalid("the name is too long or not plain text");
    if (resumed > 1) return invalid("neither known nor unknown");
    welcome.rights = *rights;
    welcome.resumed = resumed == 1;
    return welcome;
}

std::span<const std::byte> encode(const Refused& refused, std::span<std::byte> into) {
    ByteWriter writer(into);
    put_kind(writer, HandshakeKind::kRefused);
    writer.number(static_cast<std::uint8_t>(refused.reason));
    ENSURE(refused.words.size() <= kRefusalWordsMax);
    writer.short_text(refused.words);
    return writer.written();
}

Result<Refused> decode_refused(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    if (!take_kind(reader, HandshakeKind::kRefused)) return invalid(kOutOfOrder);
    const auto reason = reader.number<std::uint8_t>();
    const std::string_view words = reader.short_text();
    if (!reader.complete()) return invalid(kBadLength);
    if (words.size() > kRefusalWordsMax) return invalid("too many words");
    // An unknown reason cannot be acted upon.
    const bool is_known = reason >= static_cast<std::uint8_t>(RefusalReason::kDenied) &&
                          reason <= static_cast<std::uint8_t>(RefusalReason::kDraining);
    return Refused{.reason = is_known ? static_cast<RefusalReason>(reason) : RefusalReason::kDenied,
                   .words = words};
}

bool is_refused(std::span<const std::byte> bytes) {
    return !bytes.empty() && bytes[0] == static_cast<std::byte>(HandshakeKind::kRefused);
}

HelloPromise promise_of(std::span<const std::byte> client_hello) {
    const Hash whole = hash({client_hello});
    HelloPromise promise;
    std::copy_n(whole.begin(), promise.size(), promise.begin());
    return promise;
}

std::span<const std::byte> without_mac(std::span<const std::byte> bytes) {
    ENSURE(bytes.size() > sizeof(FinishMac));
    return bytes.first(bytes.size() - sizeof(FinishMac));
}

}  // namespace fopd::fop
