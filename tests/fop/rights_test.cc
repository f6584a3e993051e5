#include "fop/rights.h"

#include <string>

#include "tests/catch.h"

namespace fopd::fop {

TEST_CASE("fop rights: every set has a text that reads back as the same set", "[fop]") {
    for (std::uint16_t bits = 0; bits <= kAllRights.bits(); ++bits) {
        const Rights rights = Rights::from_bits(bits).value();
        CAPTURE(to_text(rights));
        REQUIRE(parse_rights(to_text(rights)).value() == rights);
    }
    REQUIRE(to_text(kDelete | kRead) == "read,delete");
    REQUIRE(to_text(kNoRights) == "none");
}

TEST_CASE("fop rights: bits that stand for nothing are refused", "[fop]") {
    REQUIRE_FALSE(Rights::from_bits(0x20).has_value());
    REQUIRE_FALSE(Rights::from_bits(0x8001).has_value());
}

TEST_CASE("fop rights: a set covers its parts and nothing else", "[fop]") {
    const Rights both = kRead | kWrite;
    REQUIRE(both.cover(kRead));
    REQUIRE(both.cover(both));
    REQUIRE(both.cover(kNoRights));
    REQUIRE_FALSE(both.cover(kRead | kDelete));
    REQUIRE_FALSE(kNoRights.cover(kRead));
}

TEST_CASE("fop rights: order and spaces in the text do not matter, doubtful words do", "[fop]") {
    REQUIRE(parse_rights(" write , read ").value() == (kRead | kWrite));
    for (const char* const text :
         {"", ",", "read,", "read,,write", "Read", "all", "read write", "none,read", "read,read"}) {
        CAPTURE(text);
        REQUIRE(parse_rights(text).error().code == Errc::kInvalid);
    }
}

}  // namespace fopd::fop
