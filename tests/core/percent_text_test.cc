#include "core/percent_text.h"

#include <string>

#include "tests/catch.h"

namespace fopd::core {

TEST_CASE("percent text: any text becomes one word, and reads back", "[core]") {
    std::string every;
    for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
    for (const std::string& text : {std::string(), std::string("/srv/d0.img"), every}) {
        const std::string word = percent_encoded(text);
        CHECK(word.find_first_of(" \n\t") == std::string::npos);
        CHECK(percent_decoded(word) == text);
    }
    CHECK(percent_encoded("a b%\n\xff") == "a%20b%25%0a%ff");
    CHECK(percent_decoded("%41") == "A");
}

TEST_CASE("percent text: what nobody writes is refused", "[core]") {
    for (const auto* const word : {"a b", "%", "%2", "%2g", "%FF", "a\x80", "\x7f"}) {
        CAPTURE(word);
        CHECK_FALSE(percent_decoded(word).has_value());
    }
}

}  // namespace fopd::core
