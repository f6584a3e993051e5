// Goal: one section of a file is written anew, and nothing else in it changes.
// Method: files as people write them, and such as cannot be changed by lines.

#include "config/section_text.h"

#include "tests/catch.h"

using namespace fopd::config;

namespace {

constexpr std::string_view kNew = "lrs:\n  policy: crr\n";

std::string replaced(std::string_view text) {
    const auto changed = replace_section(text, "lrs", kNew);
    if (!changed) INFO(changed.error());
    REQUIRE(changed.has_value());
    return *changed;
}

}  // namespace

TEST_CASE("config section text: the lines of the section alone change", "[config]") {
    CHECK(replaced("# Of a node.\n"
                   "node: { name: a }  # Its name.\n"
                   "\n"
                   "# Who is next.\n"
                   "lrs:\n"
                   "  # In the order of arrival.\n"
                   "  policy: fifo\n"
                   "\n"
                   "# What is logged.\n"
                   "log:\n"
                   "  level: info\n") ==
          "# Of a node.\n"
          "node: { name: a }  # Its name.\n"
          "\n"
          "# Who is next.\n"
          "lrs:\n"
          "  policy: crr\n"
          "\n"
          "# What is logged.\n"
          "log:\n"
          "  level: info\n");
}

TEST_CASE("config section text: the section may be the last, or the only one", "[config]") {
    CHECK(replaced("log: {level: info}\nlrs: {policy: tbf}") ==
          "log: {level: info}\nlrs:\n  policy: crr\n");
    CHECK(replaced("lrs:\n  policy: tbf\n# The end.\n") == "lrs:\n  policy: crr\n# The end.\n");
    CHECK(replaced("lrs: {policy: tbf,\n  tbf: {}}\nlog: {}\n") ==
          "lrs:\n  policy: crr\nlog: {}\n");
}

TEST_CASE("config section text: one that is not there comes last", "[config]") {
    CHECK(replaced("log:\n  level: info") == "log:\n  level: info\n\nlrs:\n  policy: crr\n");
    CHECK(replaced("# Nothing yet.\n") == "# Nothing yet.\n\nlrs:\n  policy: crr\n");
    CHECK(replaced("") == kNew);
}

TEST_CASE("config section text: a file in flow style, indented or broken is refused", "[config]") {
    CHECK(!replace_section("{log: {level: info}, lrs: {}}\n", "lrs", kNew));
    CHECK(!replace_section(" log: {}\n lrs: {}\n", "lrs", kNew));
    CHECK(!replace_section("log: [\n", "lrs", kNew));
}
