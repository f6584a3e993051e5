// Goal: wildcards mean what they say, and no pattern takes long.
// Method: every short pattern on every short text against a recursive definition; then the patterns
// that make matchers slow.

#include "lrs/classes/glob.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "tests/catch.h"

using namespace fopd::lrs;

namespace {

Glob glob_of(std::string_view pattern) {
    std::vector<std::string> literals{""};
    for (const char c : pattern) {
        if (c == '*') {
            literals.emplace_back();
        } else {
            literals.back() += c;
        }
    }
    return Glob(std::move(literals));
}

bool is_match(std::string_view pattern, std::string_view text) {
    if (pattern.empty()) return text.empty();
    if (pattern[0] == '*') {
        return is_match(pattern.substr(1), text) ||
               (!text.empty() && is_match(pattern, text.substr(1)));
    }
    return !text.empty() && pattern[0] == text[0] && is_match(pattern.substr(1), text.substr(1));
}

// All texts over some letters, up to a length.
std::vector<std::string> texts_over(std::string_view letters, std::size_t length_max) {
    std::vector<std::string> texts{""};
    for (std::size_t i = 0; texts[i].size() < length_max; ++i) {
        for (const char letter : letters) texts.push_back(texts[i] + letter);
    }
    return texts;
}

}  // namespace

TEST_CASE("lrs glob: every short pattern matches as defined on every short text", "[lrs]") {
    const auto texts = texts_over("ab", 7);
    std::size_t wrong_count = 0;
    for (const std::string& pattern : texts_over("ab*", 5)) {
        const Glob glob = glob_of(pattern);
        for (const std::string& text : texts) {
            if (glob.matches(text) == is_match(pattern, text)) continue;
            UNSCOPED_INFO(pattern << " on " << text);
            ++wrong_count;
        }
    }

    CHECK(wrong_count == 0);
}

TEST_CASE("lrs glob: many gaps and long texts take no time", "[lrs]") {
    std::string gaps;
    for (int i = 0; i < 2000; ++i) gaps += "*a";
    std::string stutter = "*";
    for (int i = 0; i < 50; ++i) stutter.append(40, 'a').append("b*");
    const std::string text(4000, 'a');

    // What counts is the best of several tries.
    auto best = std::chrono::steady_clock::duration::max();
    for (int i = 0; i < 3; ++i) {
        const auto start = std::chrono::steady_clock::now();
        CHECK_FALSE(glob_of(gaps + "*b").matches(text));
        CHECK_FALSE(glob_of(gaps + "*b*").matches(text));
        CHECK(glob_of(gaps + "*").matches(text));
        CHECK_FALSE(glob_of(stutter).matches(text));
        best = std::min(best, std::chrono::steady_clock::now() - start);
    }

    // Some tens of microseconds; a matcher that tries again takes for ever.
    CHECK(best < std::chrono::seconds(1));
}
