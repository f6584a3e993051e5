#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "fop/version.h"

namespace fopd::fop {

// Lets the server choose the locality.
inline constexpr std::uint16_t kAnyLocality = 0xffff;
// The text of a refusal if the server has no such locality; clients know it by that.
inline constexpr std::string_view kNoSuchLocality = "there is no such locality";

// Identifies a client process: chosen at random when the process starts, and kept over reconnects.
using ClientId = std::array<std::byte, 16>;

// The start of the hash of a ClientHello.
using HelloPromise = std::array<std::byte, 16>;

// The client's data in its connection request. It is not authenticated yet; the handshake verifies
// afterwards that both sides saw the same bytes.
struct ConnectHello {
    static constexpr std::size_t kSizeBytes = 48;
    using Bytes = std::array<std::byte, kSizeBytes>;

    std::uint8_t major = kMajorVersion;
    std::uint8_t minor = kMinorVersion;
    std::uint16_t locality = kAnyLocality;
    ClientId client_id{};
    // The session number in messages to the client: receive buffers are shared between sessions, so
    // each message must name its session.
    std::uint64_t session = 0;
    // Identifies the ClientHello that will follow. Every transport shows which connection the
    // connect data belongs to, but not every one which connection a message belongs to.
    HelloPromise promise{};

    friend bool operator==(const ConnectHello&, const ConnectHello&) = default;
};

// The daemon's connect data when it accepts. A refusal carries text instead.
struct AcceptHello {
    static constexpr std::size_t kSizeBytes = 32;
    using Bytes = std::array<std::byte, kSizeBytes>;

    std::uint8_t major = kMajorVersion;
    std::uint8_t minor = kMinorVersion;
    std::uint16_t locality = 0;     // Where the session lives.
    std::uint64_t session = 0;      // Its number, unique in this incarnation of the daemon.
    std::uint64_t incarnation = 0;  // The incarnation of the daemon; differs after each start.

    friend bool operator==(const AcceptHello&, const AcceptHello&) = default;
};

ConnectHello::Bytes encode(const ConnectHello& hello);
AcceptHello::Bytes encode(const AcceptHello& hello);

// Transports may append padding, which is ignored. kInvalid if it is not a hello, kUnsupported for
// another major version.
Result<ConnectHello> decode_connect_hello(std::span<const std::byte> bytes);
Result<AcceptHello> decode_accept_hello(std::span<const std::byte> bytes);

}  // namespace fopd::fop
