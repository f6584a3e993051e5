#include "core/ip_network.h"

#include "tests/catch.h"

namespace fopd::core {

TEST_CASE("core ip network: the addresses of a /64 are counted as one", "[core]") {
    const auto counted = [](std::string_view text) {
        const auto address = parse_ipv6(text);
        REQUIRE(address.has_value());
        return counted_as(*address);
    };
    CHECK(counted("2001:db8:1:2::1") == counted("2001:db8:1:2:ffff:ffff:ffff:ffff"));
    CHECK(counted("2001:db8:1:2::1") != counted("2001:db8:1:3::1"));
    CHECK(counted("fe80::1%eth0") == counted("fe80::2%eth0"));
    CHECK(counted("::1") == counted("::2"));
    CHECK(counted("::ffff:10.0.0.1") != counted("::ffff:10.0.0.2"));
    CHECK(counted("::ffff:10.0.0.1") != counted("::1"));
}

TEST_CASE("core ip network: other texts are no IPv6 addresses", "[core]") {
    CHECK_FALSE(parse_ipv6("").has_value());
    CHECK_FALSE(parse_ipv6("10.0.0.1").has_value());
    CHECK_FALSE(parse_ipv6("[::1]").has_value());
    CHECK_FALSE(parse_ipv6("client").has_value());
}

}  // namespace fopd::core
