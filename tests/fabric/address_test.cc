#include "fabric/address.h"

#include <utility>

#include "tests/catch.h"

namespace fopd::fabric {

TEST_CASE("fabric address: is read and written the same", "[fabric]") {
    const auto text =
        GENERATE(as<std::string>{}, "tcp://127.0.0.1:31470", "tcp://[::1]:1/3",
                 "ofi+tcp://10.0.0.1:4", "verbs://node-a.example:65535/65535", "mem://node-a:0");
    CAPTURE(text);

    const auto address = parse_address(text);

    REQUIRE(address.has_value());
    REQUIRE(format_address(*address) == text);
}

TEST_CASE("fabric address: a parse error has the reason", "[fabric]") {
    const auto [text, why] = GENERATE(table<std::string, std::string>({
        {"127.0.0.1:31470", "it has no scheme; write tcp://HOST:PORT"},
        {"http://a:1", "schemes are tcp://, verbs:// and ofi+tcp://"},
        {"tcp://a", "the port is missing"},
        {"tcp://[::1]", "the port is missing"},
        {"tcp://a:65536", "a port is a number from 0 to 65535"},
        {"tcp://a:1/-1", "a locality is a number from 0 to 65535"},
        {"tcp://a:1/", "a locality is a number from 0 to 65535"},
        {"tcp://::1:1", "an IPv6 address stands in brackets"},
        {"tcp://:1", "the host is missing"},
        {"tcp://a b:1", "the host has a character that no host name has"},
    }));
    CAPTURE(text);

    const auto address = parse_address(text);

    REQUIRE_FALSE(address.has_value());
    REQUIRE(std::string(address.error().context) == why);
}

}  // namespace fopd::fabric
