#include "client/shell_words.h"

#include "tests/catch.h"

namespace fopd::client::testing {

namespace {

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("client shell words: words are divided and unquoted", "[client]") {
    const std::vector<std::pair<std::string, Words>> lines{
        {"", {}},
        {" \t \r", {}},
        {"# all of it", {}},
        {"a", {"a"}},
        {"  a\tb  c\r", {"a", "b", "c"}},
        {"a #b c", {"a"}},
        {"a#b", {"a#b"}},
        {"''", {""}},
        {"a \"\" b", {"a", "", "b"}},
        {"'a b'c\"d e\"f", {"a bcd ef"}},
        {"'a\\b\"#'", {"a\\b\"#"}},
        {R"("a\"b\\c\d'#")", {R"(a"b\c\d'#)"}},
        {R"(a\ b \# \' \\ \$)", {"a b", "#", "'", "\\", "$"}},
        {"$x *? ~ ;|&>", {"$x", "*?", "~", ";|&>"}},
        {"\xc3\xa4 \xff", {"\xc3\xa4", "\xff"}},
    };
    for (const auto& [line, words] : lines) {
        CAPTURE(line);
        const auto got = shell_words(line);
        REQUIRE(got.has_value());
        REQUIRE(*got == words);
    }
}

TEST_CASE("client shell words: what does not end is refused", "[client]") {
    for (const std::string line : {"'", "a 'b", "\"", "\"a\\\"", "a\\", "'a\\'b'"}) {
        CAPTURE(line);
        REQUIRE_FALSE(shell_words(line).has_value());
    }
}

}  // namespace fopd::client::testing
