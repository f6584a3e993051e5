#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/time.h"
#include "fop/bodies.h"
#include "fop/status.h"
#include "fop/time_spent.h"

namespace fopd::fop {

// The contents of messages, as written by MessageWriter and read by RequestsView, RepliesView and
// read_control(). Texts and spans are borrowed: for the call when writing, from the message when
// reading.

// Limits of a message: the writer keeps them, and a message that exceeds them is refused.
inline constexpr std::size_t kFopsMax = 128;  // Requests or replies in one message.
inline constexpr std::size_t kCancelsMax = 128;
inline constexpr std::size_t kHeaderTextBytesMax = 255;  // Each of job, pool and user.
inline constexpr std::size_t kTokenBytesMax = 256;
inline constexpr std::size_t kWordsBytesMax = 200;

// The lowest ten bits of a request's id name one of the client's 1024 request places. A client has
// at most one request in a place at a time: before it sends the next one there, it has received the
// reply to the earlier one, or will not resend that one.
inline constexpr std::size_t kRequestPlaces = 1024;

// Fields common to all requests of one message.
struct RequestHeader {
    std::string_view job{};
    std::string_view pool{};
    std::string_view user{};  // The user on whose behalf, if the principal may act for others.
    std::uint8_t priority = 0;
    bool wants_times = false;  // The replies are to say how the server has spent the time.
};

struct Request {
    std::uint64_t id = 0;
    std::uint16_t type = 0;  // FopType::number.
    // Counted from the arrival at the server, in microseconds on the wire; zero: none.
    Duration timeout{};
    std::span<const std::byte> token{};
    std::span<const std::byte> payload{};
    // CRC32C of the payload. Writing: computed if not given. Reading: always set, but not verified
    // yet: see payload_intact().
    std::optional<std::uint32_t> payload_crc{};
    RequestBody body{};
    // Reading: kDone, or the status with which this request must be answered at once: kUnknownFop,
    // or kMalformed if its parts do not match its type. Writing: ignored.
    Status fault = Status::kDone;
    std::string_view fault_words{};  // Reading: the reason in words, if there is one. Static.
};

struct Reply {
    std::uint64_t id = 0;
    Status status = Status::kDone;
    std::string_view words{};  // The reason in words. Writing: truncated to kWordsBytesMax.
    std::span<const std::byte> payload{};
    std::optional<std::uint32_t> payload_crc{};  // As in Request.
    ReplyBody body{};
    std::optional<TimeSpent> times{};  // If the request's header wants them.
};

// Whether the payload matches its checksum. REQUIRES: read from a message.
bool payload_intact(const Request& request);
bool payload_intact(const Reply& reply);

// Why the sender accepts no more requests.
enum class Bye : std::uint8_t {
    kNone = 0,
    kDraining = 1,  // Connect elsewhere, or later.
    kOther = 255,   // When reading: a reason that this reader does not know.
};

// Messages between the two sides of a session apart from fops.
struct Control {
    std::uint64_t ping = 0;                  // The peer must return it as pong. 0: none.
    std::uint64_t pong = 0;                  // 0: none.
    std::uint16_t surrender_messages = 0;    // Asks for this many credits back.
    std::uint16_t surrendered_messages = 0;  // Returns this many credits.
    std::uint16_t surrender_fops = 0;
    std::uint16_t surrendered_fops = 0;
    std::span<const std::uint64_t> cancel{};  // Requests that the client has cancelled.
    Bye bye = Bye::kNone;
    std::string_view words{};  // The reason in words. Writing: truncated to kWordsBytesMax.
    // Cancelled requests whose client memory the server no longer accesses, although the reply may
    // still follow.
    std::span<const std::uint64_t> let_go{};
};

}  // namespace fopd::fop
