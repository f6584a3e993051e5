// Goal: people's edits of a virtual library are read or refused, and the rest is found again.
#include "devices/tape/cartridge_text.h"

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::devices;

TEST_CASE("devices cartridge text: is read as it was written", "[devices]") {
    const CartridgeInfo info{.barcode = "A00001L9",
                             .technology = "lto8",
                             .serial = "S 1",
                             .capacity_bytes = 1'000'000,
                             .write_protected = true,
                             .cleaning = true};

    REQUIRE(parse_cartridge(format_cartridge(info)) == info);
    REQUIRE(parse_cartridge(format_cartridge({})) == CartridgeInfo{});
    REQUIRE(format_cartridge({.barcode = "A00001L9", .serial = "S1"}) ==
            "barcode: A00001L9\ntechnology: lto9\nserial: S1\nwrite_protected: no\n");
}

TEST_CASE("devices cartridge text: takes comments, blanks and other line ends", "[devices]") {
    const auto info = parse_cartridge("# mine\r\n\r\n  barcode :  A 1  \r\nwrite_protected:yes");

    REQUIRE(info->barcode == "A 1");
    REQUIRE(info->write_protected);
    REQUIRE(parse_cartridge("").has_value());
    REQUIRE(parse_cartridge("barcode:\n")->barcode.empty());
}

TEST_CASE("devices cartridge text: what is wrong is refused", "[devices]") {
    for (const char* const text :
         {"barcode", "colour: red", "barcode: a\nbarcode: b", "technology: lto5", "technology:",
          "capacity_bytes: 1 GB", "capacity_bytes: -1", "capacity_bytes: 99999999999999999999",
          "write_protected: true", "cleaning:", "barcode: \xc3\xa4", "serial: a\tb",
          "barcode: 123456789012345678901234567890123", ": a"}) {
        CAPTURE(text);
        const auto info = parse_cartridge(text);
        REQUIRE_FALSE(info.has_value());
        REQUIRE(info.error().code == Errc::kInvalid);
    }
}

TEST_CASE("devices cartridge positions: are read as they were written", "[devices]") {
    const CartridgePositions positions{{1, "a"}, {2001, "b.c"}, {4'294'967'295, "d-e_f"}};

    REQUIRE(parse_positions(format_positions(positions)) == positions);
    REQUIRE(parse_positions("").empty());
}

TEST_CASE("devices cartridge positions: wrong lines count as missing", "[devices]") {
    REQUIRE(
        parse_positions("1 a\nx b\n2\n\n 3  c \n-4 d\n5 ../e\n4294967296 f\n1 g\n6 a\n7 h i\n") ==
        CartridgePositions{{1, "a"}, {3, "c"}});
}

TEST_CASE("devices cartridge names: are those of files", "[devices]") {
    REQUIRE(is_cartridge_name("A00001L9"));
    REQUIRE(is_cartridge_name(std::string(64, 'a')));
    for (const std::string& name : {std::string(), std::string(65, 'a'), std::string("a/b"),
                                    std::string(".a"), std::string("a b"), std::string("a\n")}) {
        CAPTURE(name);
        REQUIRE_FALSE(is_cartridge_name(name));
    }
}
