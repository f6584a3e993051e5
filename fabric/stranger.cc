#include "fabric/stranger.h"

#include <algorithm>

#include "core/ensure.h"
#include "fabric/tcp/frame.h"

namespace fopd::fabric {

namespace {

// Requests of HTTP begin with one of these, or with a part of one if few bytes came.
constexpr std::array<std::string_view, 8> kHttpMethods{"GET ",     "HEAD ",    "POST ",  "PUT ",
                                                       "OPTIONS ", "CONNECT ", "PATCH ", "DELETE "};
// A record of TLS with a handshake message, of any version from SSL 3 on.
constexpr std::byte kTlsHandshake{0x16};
constexpr std::byte kTlsMajorVersion{0x03};

bool is_http(std::span<const std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return std::ranges::any_of(
        kHttpMethods, [text](std::string_view method) { return text.starts_with(method); });
}

}  // namespace

std::string_view to_string(Stranger::Kind kind) {
    switch (kind) {
        case Stranger::Kind::kLeft: return "left";
        case Stranger::Kind::kHttp: return "http";
        case Stranger::Kind::kTls: return "tls";
        case Stranger::Kind::kOtherBytes: return "other_bytes";
        case Stranger::Kind::kWrongFrame: return "wrong_frame";
    }
    ENSURE(false);
    return {};
}

std::string_view summary_of(Stranger::Kind kind) {
    switch (kind) {
        case Stranger::Kind::kLeft:
            return "it left before it had sent a request to connect, as port scans and health "
                   "checks do";
        case Stranger::Kind::kHttp:
            return "it speaks HTTP, and nothing here does; metrics are at admin.metrics";
        case Stranger::Kind::kTls:
            return "it speaks TLS, and nothing here does; fabric.protect says how sessions are "
                   "protected";
        case Stranger::Kind::kOtherBytes:
            return "what it sent is not of tcp://; perhaps it is a client of ofi+tcp://, or of "
                   "another service";
        case Stranger::Kind::kWrongFrame: return "its first frame is not a request to connect";
    }
    ENSURE(false);
    return {};
}

Stranger::Kind stranger_kind(std::span<const std::byte> first_bytes) {
    if (may_begin_frame(first_bytes)) {
        return first_bytes.size() < kFrameHeaderBytes ? Stranger::Kind::kLeft
                                                      : Stranger::Kind::kWrongFrame;
    }
    const bool is_tls = first_bytes.size() >= 2 && first_bytes[0] == kTlsHandshake &&
                        first_bytes[1] == kTlsMajorVersion;
    if (is_tls) return Stranger::Kind::kTls;
    return is_http(first_bytes) ? Stranger::Kind::kHttp : Stranger::Kind::kOtherBytes;
}

}  // namespace fopd::fabric
