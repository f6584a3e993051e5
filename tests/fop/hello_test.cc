#include "fop/hello.h"

#include <vector>

#include "fop/hex.h"
#include "tests/catch.h"
#include "tests/fop/example_bytes.h"

namespace fopd::fop {
namespace {

const ConnectHello kConnect{.locality = 3,
                            .client_id = counting_bytes<16>(0x10),
                            .session = 0x1122334455667788,
                            .promise = counting_bytes<16>(0x30)};
const AcceptHello kAccept{.locality = 3, .session = 0x0102030405060708, .incarnation = 9};

}  // namespace

TEST_CASE("fop hello: a client's hello is read back", "[fop]") {
    const auto bytes = encode(kConnect);

    REQUIRE(to_hex(bytes) ==
            "666f706402000300101112131415161718191a1b1c1d1e1f8877665544332211"
            "303132333435363738393a3b3c3d3e3f");
    REQUIRE(decode_connect_hello(bytes).value() == kConnect);
}

TEST_CASE("fop hello: a daemon's answer is read back", "[fop]") {
    const auto bytes = encode(kAccept);

    REQUIRE(to_hex(bytes) == "666f706402000300080706050403020109000000000000000000000000000000");
    REQUIRE(decode_accept_hello(bytes).value() == kAccept);
}

TEST_CASE("fop hello: padding of the transport is passed over, a cut one refused", "[fop]") {
    const auto connect = encode(kConnect);
    const auto accept = encode(kAccept);
    std::vector<std::byte> padded(connect.begin(), connect.end());
    padded.resize(72, std::byte{7});

    REQUIRE(decode_connect_hello(padded).value() == kConnect);
    for (std::size_t size = 0; size < connect.size(); ++size) {
        REQUIRE(decode_connect_hello(std::span(connect).first(size)).error().code ==
                Errc::kInvalid);
    }
    for (std::size_t size = 0; size < accept.size(); ++size) {
        REQUIRE(decode_accept_hello(std::span(accept).first(size)).error().code == Errc::kInvalid);
    }
}

TEST_CASE("fop hello: another protocol and another major version are told apart", "[fop]") {
    auto bytes = encode(kConnect);
    bytes[4] = std::byte{1};
    REQUIRE(decode_connect_hello(bytes).error().code == Errc::kUnsupported);
    bytes[0] = std::byte{0};
    REQUIRE(decode_connect_hello(bytes).error().code == Errc::kInvalid);
}

TEST_CASE("fop hello: only a newer minor version may use reserved bytes", "[fop]") {
    auto bytes = encode(kAccept);
    bytes[31] = std::byte{1};
    REQUIRE(decode_accept_hello(bytes).error().code == Errc::kInvalid);
    bytes[5] = static_cast<std::byte>(kMinorVersion + 1);
    REQUIRE(decode_accept_hello(bytes).has_value());
}

}  // namespace fopd::fop
