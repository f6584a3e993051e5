// Goal: what an administrator reads of a program at the wrong port is what the program is.

#include "fabric/stranger.h"

#include <string>
#include <string_view>

#include "fabric/tcp/frame.h"
#include "tests/catch.h"

namespace fopd::fabric {

namespace {

Stranger::Kind kind_of(std::string_view bytes) {
    return stranger_kind(std::as_bytes(std::span(bytes)));
}

std::string header_of(FrameKind kind) {
    const FrameHeader header = encode_frame({.kind = kind, .length = 1});
    return {reinterpret_cast<const char*>(header.data()), header.size()};
}

}  // namespace

TEST_CASE("fabric stranger: the first bytes tell what it speaks", "[fabric]") {
    using Kind = Stranger::Kind;
    CHECK(kind_of("") == Kind::kLeft);
    CHECK(kind_of("f") == Kind::kLeft);
    CHECK(kind_of(header_of(FrameKind::kConnect).substr(0, 31)) == Kind::kLeft);
    CHECK(kind_of(header_of(FrameKind::kMessage)) == Kind::kWrongFrame);
    CHECK(kind_of("GET / HTTP/1.1\r\n") == Kind::kHttp);
    CHECK(kind_of("POST /v1 HTTP/1.1\r\n") == Kind::kHttp);
    CHECK(kind_of("GETTING") == Kind::kOtherBytes);
    CHECK(kind_of("\x16\x03\x01\x02") == Kind::kTls);
    CHECK(kind_of("\x16\x04") == Kind::kOtherBytes);
    CHECK(kind_of("SSH-2.0-OpenSSH_9.2\r\n") == Kind::kOtherBytes);
    CHECK(kind_of("fq") == Kind::kOtherBytes);
}

TEST_CASE("fabric stranger: each kind has a name of its own, and words", "[fabric]") {
    for (const Stranger::Kind one : kStrangerKinds) {
        CHECK_FALSE(summary_of(one).empty());
        for (const Stranger::Kind other : kStrangerKinds) {
            CHECK((to_string(one) == to_string(other)) == (one == other));
        }
    }
}

TEST_CASE("fabric tcp frame: only the first bytes of a frame may begin one", "[fabric]") {
    const FrameHeader header = encode_frame({.kind = FrameKind::kConnect});
    for (const std::size_t count : {0U, 1U, 2U, 3U, 32U}) {
        CHECK(may_begin_frame(std::span(header).first(count)));
    }
    for (const std::size_t at : {0U, 1U}) {
        FrameHeader other = header;
        other[at] ^= std::byte{1};
        CHECK_FALSE(may_begin_frame(other));
        CHECK_FALSE(may_begin_frame(std::span(other).first(at + 1)));
    }
}

}  // namespace fopd::fabric
