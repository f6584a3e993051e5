#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/time.h"
#include "fop/bodies.h"
#include "fop/status.h"

namespace fopd::fop {

// What messages carry, as written by MessageWriter and read by RequestsView, RepliesView and
// read_control(). Texts and spans are borrowed: for the call when writing, from the message when
// reading.

// More is not put into a message, and a message with more is refused.
inline constexpr std::size_t kFopsMax = 128;  // Requests or replies in one message.
inline constexpr std::size_t kCancelsMax = 128;
inline constexpr std::size_t kHeaderTextBytesMax = 255;  // Each of job, pool and user.
inline constexpr std::size_t kTokenBytesMax = 256;
inline constexpr std::size_t kWordsBytesMax = 200;

// The lowest ten bits of a request's id name one of 1024 places of the client. A client has at most
// one request in a place at a time: before it sends the next one there, it has the reply to the
// earlier one, or will not resend that.
inline constexpr std::size_t kRequestPlaces = 1024;

// Fields common to all requests of one message.
struct RequestHeader {
    std::string_view job{};
    std::string_view pool{};
    std::string_view user{};  // On behalf of whom, where the principal may say that.
    std::uint8_t priority = 0;
};

struct Request {
    std::uint64_t id = 0;
    std::uint16_t type = 0;  // FopType::number.
    // Counted from the arrival at the server, in microseconds on the wire; zero: none.
    Duration timeout{};
    std::span<const std::byte> token{};
    std::span<const std::byte> payload{};
    // CRC32C of the payload. Writing: computed when it is not given. Reading: always there, and yet
    // to be compared: payload_intact().
    std::optional<std::uint32_t> payload_crc{};
    RequestBody body{};
    // Reading: kDone, or what this request alone has to be answered with at once — kUnknownFop, or
    // kMalformed when its parts do not fit its type. Writing: ignored.
    Status fault = Status::kDone;
    std::string_view
        fault_words{};  // Reading: why, for people, where there is more to say. Static.
};

struct Reply {
    std::uint64_t id = 0;
    Status status = Status::kDone;
    std::string_view words{};  // Why, for people. Writing: cut at kWordsBytesMax.
    std::span<const std::byte> payload{};
    std::optional<std::uint32_t> payload_crc{};  // As in Request.
    ReplyBody body{};
};

// Whether the payload is what its writer computed the checksum of. Requires: read from a message.
bool payload_intact(const Request& request);
bool payload_intact(const Reply& reply);

// Why the sender will take no more requests.
enum class Bye : std::uint8_t {
    kNone = 0,
    kDraining = 1,  // Connect elsewhere, or later.
    kOther = 255,   // Reading: a reason newer than the reader.
};

// What the two sides of a session tell each other beside fops.
struct Control {
    std::uint64_t ping = 0;                  // The peer is to send it back as pong. 0: none.
    std::uint64_t pong = 0;                  // 0: none.
    std::uint16_t surrender_messages = 0;    // Please give back that many credits.
    std::uint16_t surrendered_messages = 0;  // So many are given back.
    std::uint16_t surrender_fops = 0;
    std::uint16_t surrendered_fops = 0;
    std::span<const std::uint64_t> cancel{};  // Requests the client does not want any more.
    Bye bye = Bye::kNone;
    std::string_view words{};  // Why, for people. Writing: cut at kWordsBytesMax.
    // Of cancelled requests: the server reaches no more for the memory that came with them, though
    // the reply may still be to come.
    std::span<const std::uint64_t> let_go{};
};

}  // namespace fopd::fop
