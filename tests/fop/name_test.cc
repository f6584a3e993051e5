#include "fop/name.h"

#include <string>

#include "tests/catch.h"

namespace fopd::fop {

TEST_CASE("fop name: 1 to 480 bytes", "[fop]") {
    REQUIRE_FALSE(check_object_name(""));
    REQUIRE(check_object_name("x"));
    REQUIRE(check_object_name(std::string(480, 'x')));
    REQUIRE_FALSE(check_object_name(std::string(481, 'x')));
    std::string wide;
    while (wide.size() < 480) wide += "\u20ac";
    REQUIRE(check_object_name(wide));
    REQUIRE_FALSE(check_object_name(wide + "x"));
}

TEST_CASE("fop name: slashes and dots have no meaning", "[fop]") {
    for (const auto* const name : {"/", "..", ".", "a//b", " ", "a b", "\u200fright"}) {
        CAPTURE(name);
        REQUIRE(check_object_name(name));
    }
}

TEST_CASE("fop name: neither control characters nor what is no UTF-8", "[fop]") {
    for (const auto& name : {std::string("a\0b", 3), std::string("\n"), std::string("a\x7f"),
                             std::string("\u0085"), std::string("\x1b[2J")}) {
        CAPTURE(name);
        const auto checked = check_object_name(name);
        REQUIRE_FALSE(checked);
        REQUIRE(std::string(checked.error().context) == "the name has a control character");
    }
    for (const auto* const name : {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf"}) {
        CAPTURE(name);
        const auto checked = check_object_name(name);
        REQUIRE_FALSE(checked);
        REQUIRE(std::string(checked.error().context) == "the name is not UTF-8");
    }
}

}  // namespace fopd::fop
