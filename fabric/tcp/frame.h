#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "fabric/transport.h"

namespace fopd::fabric {

// A connection over TCP is a stream of frames in each direction: a header of fixed size, and a body
// of the length that the header announces. docs/formats/tcp.md has the bytes.
enum class FrameKind : std::uint8_t {
    kConnect = 1,   // First frame of the connecting side; body: data for the acceptor.
    kAccept = 2,    // First frame of the accepting side; body: data for the connecting side.
    kRefuse = 3,    // Sent instead of kAccept, as the last frame; body: the acceptor's text.
    kMessage = 4,   // Body: one message.
    kRead = 5,      // Asks for `length` bytes of opened memory. Has no body.
    kReadData = 6,  // The answer to the oldest unanswered kRead; body: the bytes it asked for.
    kWrite = 7,     // Body: bytes to be placed in opened memory.
};

struct Frame {
    FrameKind kind = FrameKind::kMessage;
    std::uint32_t length = 0;
    // A number that the asking side chose and the answer repeats; for kRead and kReadData.
    std::uint32_t tag = 0;
    // Opened memory, for kRead and kWrite.
    std::uint64_t key = 0;
    std::uint64_t address = 0;

    RemoteMemory memory() const { return {.address = address, .key = key}; }
    std::uint32_t body_bytes() const { return kind == FrameKind::kRead ? 0 : length; }
    friend bool operator==(const Frame&, const Frame&) = default;
};

inline constexpr std::size_t kFrameHeaderBytes = 32;
using FrameHeader = std::array<std::byte, kFrameHeaderBytes>;

// The largest `length` of a kRead, kReadData or kWrite.
inline constexpr std::uint32_t kFrameTransferMax = 64U << 20;

FrameHeader encode_frame(const Frame& frame);
// Whether a frame may begin with these bytes, of which few are looked at.
bool may_begin_frame(std::span<const std::byte> first_bytes);
// kInvalid, with the reason as context: the bytes are no valid header. Checks `length` only for
// kinds with a fixed limit; the receiver has to check the length of a message.
Result<Frame> decode_frame(std::span<const std::byte, kFrameHeaderBytes> header);

}  // namespace fopd::fabric
