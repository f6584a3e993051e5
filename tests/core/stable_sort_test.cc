#include "core/stable_sort.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using fopd::core::stable_sort;

TEST_CASE("core stable sort: equal elements keep their order", "[core]") {
    fopd::core::Random random(1);
    for (std::size_t count = 0; count < 200; ++count) {
        std::vector<std::pair<std::uint64_t, std::size_t>> values;
        for (std::size_t i = 0; i < count; ++i) values.emplace_back(random.below(7), i);
        auto expected = values;
        std::ranges::sort(expected);  // The second member is the order of arrival.

        stable_sort(values, std::less{}, &std::pair<std::uint64_t, std::size_t>::first);
        REQUIRE(values == expected);
    }
}

TEST_CASE("core stable sort: sorts what can only be moved, in any order", "[core]") {
    std::vector<std::unique_ptr<std::string>> words;
    for (const char* word : {"b", "c", "a"}) words.push_back(std::make_unique<std::string>(word));
    stable_sort(words, std::greater{}, [](const auto& word) { return *word; });
    REQUIRE(*words[0] == "c");
    REQUIRE(*words[1] == "b");
    REQUIRE(*words[2] == "a");
}
