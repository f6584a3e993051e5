#include "core/whole_number.h"

#include "tests/catch.h"

namespace fopd::core {

TEST_CASE("core whole number: the whole text is the number", "[core]") {
    REQUIRE(whole_number("0") == 0U);
    REQUIRE(whole_number("18446744073709551615") == UINT64_MAX);
    REQUIRE(whole_number<std::int64_t>("-7") == -7);
    REQUIRE(whole_number("fF", 16) == 0xffU);

    for (const char* const text : {"", " 1", "1 ", "+1", "-1", "1.0", "0x1", "ten"}) {
        CAPTURE(text);
        REQUIRE_FALSE(whole_number(text).has_value());
    }
}

TEST_CASE("core whole number: a number that does not fit is none", "[core]") {
    REQUIRE_FALSE(whole_number("18446744073709551616").has_value());
    REQUIRE(whole_number<std::uint16_t>("65535") == 65535);
    REQUIRE_FALSE(whole_number<std::uint16_t>("65536").has_value());
    REQUIRE_FALSE(whole_number<std::uint8_t>("100", 16).has_value());
}

}  // namespace fopd::core
