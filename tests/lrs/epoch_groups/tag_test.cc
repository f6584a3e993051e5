// Goal: each group has as many turns in a round as its weight, evenly spaced, and all follow from
// the last turn.
// Method: a model that goes through the tags one by one.

#include "lrs/epoch_groups/tag.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

// All tags of the group in the first three rounds, in their order.
std::vector<Tag> tags_of(GroupId group, std::uint32_t weight) {
    std::vector<Tag> tags;
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::uint64_t i = 0; i < weight; ++i)
            tags.push_back(
                {.at = round * kRoundLength + i * kRoundLength / weight, .group = group});
    }
    return tags;
}

}  // namespace

TEST_CASE("lrs tag: the next one of a group is the first of all its tags that is later", "[lrs]") {
    core::Random random(3);
    for (const std::uint32_t weight : {1U, 2U, 3U, 7U, 10U, 999U, 1000U}) {
        constexpr GroupId kGroup = 500;
        const std::vector<Tag> tags = tags_of(kGroup, weight);
        for (int i = 0; i < 2000; ++i) {
            Tag last{.at = random.below(2 * kRoundLength), .group = random.below(1000)};
            // Often one of its own, or one beside it.
            if (i % 2 == 0) last.at = tags[random.below(2UL * weight)].at;
            if (i % 4 == 0) last.group = kGroup - 1 + random.below(3);
            CAPTURE(weight, last.at, last.group);
            CHECK(next_tag(last, kGroup, weight) == *std::ranges::upper_bound(tags, last));
        }
    }
}

TEST_CASE("lrs tag: those who always want have their weights' shares of the turns", "[lrs]") {
    constexpr std::array<std::uint32_t, 4> kWeights{1, 2, 4, 9};
    std::array<std::size_t, 4> turns{};
    Tag last;
    for (int i = 0; i < 16 * 50; ++i) {
        std::vector<Tag> next;
        for (std::size_t group = 0; group < kWeights.size(); ++group)
            next.push_back(next_tag(last, group + 1, kWeights[group]));
        last = std::ranges::min(next);
        ++turns[last.group - 1];
    }
    for (std::size_t group = 0; group < kWeights.size(); ++group)
        CHECK(turns[group] == kWeights[group] * 50);
}

TEST_CASE("lrs tag: the id of a group is the same on every host", "[lrs]") {
    // From another program, which takes the bytes of the name as little-endian words. With other
    // ids, nodes of different versions would not have the same groups.
    CHECK(group_id_of("") == 0x1bd819286dcfb74d);
    CHECK(group_id_of("zone-a") == 0x374d98d07df266bf);
    CHECK(group_id_of("default{job=simulation}") == 0xe7d6520768810846);
    CHECK(group_id_of("a") != group_id_of(std::string_view("a\0", 2)));
    CHECK(group_id_of("default{job=1}") != group_id_of("default{job=2}"));
}
