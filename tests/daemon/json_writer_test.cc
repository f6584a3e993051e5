#include "daemon/json_writer.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/catch.h"

using namespace fopd::daemon;

namespace {

std::string in_quotes(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

}  // namespace

TEST_CASE("daemon json: commas stand between elements and nowhere else", "[daemon]") {
    JsonWriter json;
    json.begin_object();
    json.field("a", 1).key("b").begin_array().value(1).value(true).begin_object().end_object();
    json.end_array().key("c").begin_array().end_array().field("d", "x").end_object();

    REQUIRE(json.text() == R"({"a":1,"b":[1,true,{}],"c":[],"d":"x"})");
}

TEST_CASE("daemon json: a list has its name and its texts", "[daemon]") {
    const std::vector<std::string> texts{"a", "b\"c"};
    JsonWriter json;
    json.begin_object().list("none", {}).list("some", texts).end_object();

    REQUIRE(json.text() == R"({"none":[],"some":["a","b\"c"]})");
}

TEST_CASE("daemon json: a parser reads back any string", "[daemon]") {
    std::string every_byte;
    for (int byte = 0; byte < 0x80; ++byte) every_byte.push_back(static_cast<char>(byte));
    every_byte += "ä€😀";

    REQUIRE(nlohmann::json::parse(in_quotes(every_byte)).get<std::string>() == every_byte);
}

TEST_CASE("daemon json: what a terminal obeys or reorders text by is escaped", "[daemon]") {
    // DEL, U+0080, U+009F, U+061C, U+2028, U+202A, U+202E, U+2066, U+2069, U+FEFF.
    const std::string text =
        "\x7f\xc2\x80\xc2\x9f\xd8\x9c\xe2\x80\xa8\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9"
        "\xef\xbb\xbf";
    CHECK(in_quotes(text) == R"("\u007f\u0080\u009f\u061c\u2028\u202a\u202e\u2066\u2069\ufeff")");
    CHECK(nlohmann::json::parse(in_quotes(text)).get<std::string>() == text);
    const std::string harmless =
        "\xc2\xa0\xe2\x80\xaf\xf0\x9f\x98\x80";  // U+00A0, U+202F, U+1F600.
    CHECK(in_quotes(harmless) == '"' + harmless + '"');
}

TEST_CASE("daemon json: bytes that are no UTF-8 become U+FFFD", "[daemon]") {
    // Overlong, half a surrogate pair, beyond U+10FFFF, cut short, alone.
    for (const char* bad : {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\xff"}) {
        const auto parsed = nlohmann::json::parse(in_quotes(bad)).get<std::string>();
        REQUIRE(parsed.find("\xef\xbf\xbd") == 0);
    }
}

TEST_CASE("daemon json: numbers keep their value, NaN and infinity are null", "[daemon]") {
    JsonWriter json;
    json.begin_array();
    json.value(std::numeric_limits<std::uint64_t>::max());
    json.value(std::numeric_limits<std::int64_t>::min());
    json.value(0.1).value(1e300).value(std::nan("")).value(std::numeric_limits<double>::infinity());
    json.end_array();

    const auto parsed = nlohmann::json::parse(json.text());
    REQUIRE(parsed[0].get<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
    REQUIRE(parsed[1].get<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
    REQUIRE(parsed[2].get<double>() == 0.1);
    REQUIRE(parsed[3].get<double>() == 1e300);
    REQUIRE(parsed[4].is_null());
    REQUIRE(parsed[5].is_null());
}
