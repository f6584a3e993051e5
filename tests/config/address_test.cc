#include "config/address.h"

#include <string>

#include "tests/catch.h"

using namespace fopd::config;

TEST_CASE("config address: IPv4, IPv6 and names are read and printed alike", "[config]") {
    for (const char* text :
         {"127.0.0.1:9420", "0.0.0.0:0", "255.255.255.255:65535", "[::]:1", "[fe80::1]:80",
          "[::ffff:1.2.3.4]:80", "localhost:1", "node-a.example:9420", "1a:2", "3com.example:2"}) {
        CAPTURE(text);
        const auto address = parse_address(text);

        REQUIRE(address.has_value());
        REQUIRE(format_address(*address) == text);
    }
    REQUIRE(parse_address("[::1]:80") == Address{"::1", 80});
}

TEST_CASE("config address: an invalid address is refused with a reason", "[config]") {
    const std::string long_label = std::string(64, 'a') + ":1";
    std::string long_name;
    while (long_name.size() <= 253) long_name += "abcdefg.";
    long_name += "a:1";
    for (const std::string& text : {std::string(""),
                                    std::string(":"),
                                    std::string("a"),
                                    std::string("a:"),
                                    std::string(":1"),
                                    std::string("a:65536"),
                                    std::string("a:-1"),
                                    std::string("a:01"),
                                    std::string("a: 1"),
                                    std::string("a :1"),
                                    std::string("*:1"),
                                    std::string("::1:80"),
                                    std::string("[::1]"),
                                    std::string("[::1]80"),
                                    std::string("[]:1"),
                                    std::string("[1.2.3.4]:1"),
                                    std::string("[fe80::1%eth0]:1"),
                                    std::string("1.2.3:1"),
                                    std::string("1.2.3.256:1"),
                                    std::string("1.2.3.4.5:1"),
                                    std::string("-a:1"),
                                    std::string("a-:1"),
                                    std::string("a..b:1"),
                                    std::string("a.:1"),
                                    std::string(".a:1"),
                                    std::string("a_b:1"),
                                    std::string("\xc3\xa4:1"),
                                    std::string("tcp://a:1"),
                                    std::string("a/b:1"),
                                    std::string("a\0b:1", 5),
                                    std::string("[::1\0]:1", 8),
                                    long_label,
                                    long_name}) {
        CAPTURE(text);
        const auto address = parse_address(text);

        REQUIRE_FALSE(address.has_value());
        REQUIRE_FALSE(address.error().wrong.empty());
        REQUIRE_FALSE(address.error().right.empty());
    }
}
