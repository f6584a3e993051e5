#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "fop/version.h"

namespace fopd::fop {

// "Whichever you choose", in place of a locality.
inline constexpr std::uint16_t kAnyLocality = 0xffff;

// Identifies a client process: chosen at random when the process starts, and kept over reconnects.
using ClientId = std::array<std::byte, 16>;

// The start of the hash of a ClientHello.
using HelloPromise = std::array<std::byte, 16>;

// What a client says with its request for a connection. Nobody has proved anything yet; the
// handshake makes sure afterwards that both sides saw the same.
struct ConnectHello {
    static constexpr std::size_t kSizeBytes = 48;
    using Bytes = std::array<std::byte, kSizeBytes>;

    std::uint8_t major = kMajorVersion;
    std::uint8_t minor = kMinorVersion;
    std::uint16_t locality = kAnyLocality;
    ClientId client_id{};
    // What messages to the client name the session by: receive buffers are shared, so each side
    // must be told which of its sessions a message is for.
    std::uint64_t session = 0;
    // Which ClientHello it will say. The transport shows whose connect data this is, but not whose
    // message one is.
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
    std::uint64_t incarnation = 0;  // Of the daemon: another one after each start.

    friend bool operator==(const AcceptHello&, const AcceptHello&) = default;
};

ConnectHello::Bytes encode(const ConnectHello& hello);
AcceptHello::Bytes encode(const AcceptHello& hello);

// Transports may append padding, which is passed over. kInvalid for what is no hello, kUnsupported
// for another major version.
Result<ConnectHello> decode_connect_hello(std::span<const std::byte> bytes);
Result<AcceptHello> decode_accept_hello(std::span<const std::byte> bytes);

}  // namespace fopd::fop
