#include "objects/block_set.h"

#include <cstdint>
#include <set>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using objects::BlockSet;

namespace {

std::vector<store::BlockRange> ranges_of(const BlockSet& blocks) {
    return {blocks.ranges().begin(), blocks.ranges().end()};
}

std::set<std::uint64_t> numbers_of(const BlockSet& blocks) {
    std::set<std::uint64_t> numbers;
    for (const store::BlockRange& each : blocks.ranges()) {
        for (std::uint64_t at = each.first; at < each.end(); ++at) numbers.insert(at);
    }
    return numbers;
}

}  // namespace

TEST_CASE("objects block set: ranges that overlap or touch become one", "[objects]") {
    BlockSet blocks;
    CHECK(blocks.empty());
    blocks.add({.first = 10, .count = 5});
    blocks.add({.first = 30, .count = 5});
    blocks.add({.first = 20, .count = 0});
    CHECK(ranges_of(blocks) == std::vector<store::BlockRange>{{10, 5}, {30, 5}});
    blocks.add({.first = 15, .count = 3});
    CHECK(ranges_of(blocks) == std::vector<store::BlockRange>{{10, 8}, {30, 5}});
    blocks.add({.first = 12, .count = 20});
    CHECK(ranges_of(blocks) == std::vector<store::BlockRange>{{10, 25}});
    blocks.add({.first = 0, .count = 1});
    CHECK(ranges_of(blocks) == std::vector<store::BlockRange>{{0, 1}, {10, 25}});
    CHECK(blocks.count() == 26);
}

TEST_CASE("objects block set: what both sets have is taken", "[objects]") {
    BlockSet blocks;
    blocks.add({.first = 0, .count = 10});
    blocks.add({.first = 20, .count = 10});
    BlockSet others;
    others.add({.first = 2, .count = 3});
    others.add({.first = 8, .count = 14});
    others.add({.first = 40, .count = 1});
    const BlockSet taken = blocks.take(others);
    CHECK(ranges_of(taken) == std::vector<store::BlockRange>{{2, 3}, {8, 2}, {20, 2}});
    CHECK(ranges_of(blocks) == std::vector<store::BlockRange>{{0, 2}, {5, 3}, {22, 8}});
    CHECK(blocks.take(others).empty());
}

TEST_CASE("objects block set: it equals a set of numbers", "[objects]") {
    core::Random random(5);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        BlockSet one;
        BlockSet other;
        std::set<std::uint64_t> numbers;
        std::set<std::uint64_t> others;
        for (int i = 0; i < 12; ++i) {
            const store::BlockRange range{.first = random.below(60), .count = random.below(7)};
            const bool is_first = random.below(2) == 0;
            (is_first ? one : other).add(range);
            for (std::uint64_t at = range.first; at < range.end(); ++at) {
                (is_first ? numbers : others).insert(at);
            }
        }
        REQUIRE(numbers_of(one) == numbers);
        const BlockSet taken = one.take(other);
        std::set<std::uint64_t> both;
        for (const std::uint64_t each : numbers) {
            if (others.contains(each)) both.insert(each);
        }
        for (const std::uint64_t each : both) numbers.erase(each);
        REQUIRE(numbers_of(taken) == both);
        REQUIRE(numbers_of(one) == numbers);
        REQUIRE(one.count() == numbers.size());
    }
}
