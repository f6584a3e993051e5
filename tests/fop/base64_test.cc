#include "fop/base64.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::fop;

namespace {

std::vector<std::byte> bytes_in(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("fop base64: it is written and read as RFC 4648 says", "[fop]") {
    const std::pair<std::string_view, std::string_view> samples[] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
        {"\xff\xfe", "//4="},
        {"\xfb\xef", "++8="},
    };
    for (const auto& [plain, padded] : samples) {
        std::string unpadded(padded.substr(0, padded.find('=')));
        for (char& each : unpadded) each = each == '/' ? '_' : each == '+' ? '-' : each;
        CAPTURE(padded, unpadded);
        CHECK(to_base64(bytes_in(plain), Base64::kPadded) == padded);
        CHECK(from_base64(padded, Base64::kPadded).value() == bytes_in(plain));
        CHECK(to_base64(bytes_in(plain), Base64::kUrlSafeUnpadded) == unpadded);
        CHECK(from_base64(unpadded, Base64::kUrlSafeUnpadded).value() == bytes_in(plain));
    }
}

TEST_CASE("fop base64: what no bytes are written as is not read", "[fop]") {
    for (const char* const bad : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "Zm9v=", "Z g=",
                                  "Zg==Zg==", "Zm-_", "Zg==\n"}) {
        CAPTURE(bad);
        CHECK_FALSE(from_base64(bad, Base64::kPadded));
    }
    for (const char* const bad :
         {"Z", "Zg==", "Zh", "Zm9", "Zm9v=", "Z g", "Zm+/", "Zg\n", "ZgZgZ"}) {
        CAPTURE(bad);
        CHECK_FALSE(from_base64(bad, Base64::kUrlSafeUnpadded));
    }
}

TEST_CASE("fop base64: no character but the digits is taken for one", "[fop]") {
    const std::string common = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (const auto& [form, digits] : {std::pair(Base64::kPadded, common + "+/"),
                                       std::pair(Base64::kUrlSafeUnpadded, common + "-_")}) {
        for (int c = 0; c < 256; ++c) {
            std::string text(8, 'A');
            text[3] = static_cast<char>(c);
            CAPTURE(c);
            REQUIRE(from_base64(text, form).has_value() ==
                    (digits.find(static_cast<char>(c)) != std::string::npos));
        }
    }
}
