#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fopd::fabric {

// A peer that connected to a listening address and ended, or was ended, before it had sent a whole
// request to connect: a program that speaks something else, a port scan, a health check. A peer
// that stays and sends nothing is not one of them: see RequestUser::on_silent().
struct Stranger {
    // What it sent.
    enum class Kind : std::uint8_t {
        kLeft,        // Nothing, or the beginning of a request.
        kHttp,        // A request of HTTP.
        kTls,         // A hello of TLS.
        kOtherBytes,  // Bytes that begin no frame.
        kWrongFrame,  // A frame that is no request to connect, or is malformed.
    };
    static constexpr std::size_t kKindCount = 5;

    Kind kind = Kind::kLeft;
    std::string peer;  // Its address and port.
};

// All kinds, in the order of their numbers.
inline constexpr std::array<Stranger::Kind, Stranger::kKindCount> kStrangerKinds{
    Stranger::Kind::kLeft, Stranger::Kind::kHttp, Stranger::Kind::kTls, Stranger::Kind::kOtherBytes,
    Stranger::Kind::kWrongFrame};

// The word for the kind in metrics and events.
std::string_view to_string(Stranger::Kind kind);
// What such a peer did, and what it may be, for people.
std::string_view summary_of(Stranger::Kind kind);

// The kind of a stranger that sent these bytes, all or the first of them, and then left or was
// ended.
Stranger::Kind stranger_kind(std::span<const std::byte> first_bytes);

}  // namespace fopd::fabric
