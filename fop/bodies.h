#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace fopd::fop {

// The client memory that a transfer goes to or comes from, as its owner has sealed it.
using SealedDescriptor = std::array<std::byte, 64>;

// What a fop and its reply say beyond what all have in common; a struct for each type in kFopTypes.
// A payload is no part of the body: it travels beside it.

// Answered as soon as it is read.
struct Ping {
    bool operator==(const Ping&) const = default;
};
struct PingReply {
    bool operator==(const PingReply&) const = default;
};

// The payload comes back.
struct Echo {
    bool operator==(const Echo&) const = default;
};
struct EchoReply {
    bool operator==(const EchoReply&) const = default;
};

// `bytes` are pulled from `source` and pushed to `target`.
struct BulkEcho {
    SealedDescriptor source{};
    SealedDescriptor target{};
    std::uint64_t bytes = 0;
    bool operator==(const BulkEcho&) const = default;
};
struct BulkEchoReply {
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;  // CRC32C of what was pulled.
    bool operator==(const BulkEchoReply&) const = default;
};

// An alternative's index is its type in the unions of wire.fbs; monostate: none, or none we know.
using RequestBody = std::variant<std::monostate, Ping, Echo, BulkEcho>;
using ReplyBody = std::variant<std::monostate, PingReply, EchoReply, BulkEchoReply>;

}  // namespace fopd::fop
