#pragma once

#include <compare>
#include <cstdint>
#include <string_view>

namespace fopd::lrs {

// The hash of a group's name: the same at all nodes. Groups of one id share their turns.
using GroupId = std::uint64_t;
GroupId group_id_of(std::string_view name);

// A turn of a group, in the order of all turns. Turns are in rounds; in each round a group has as
// many tags as its weight, evenly spaced, whether it uses them or not. So the tags of a group
// follow from its id and weight alone, and the last turn taken is all that nodes have to agree on
// to know the next one.
struct Tag {
    std::uint64_t at = 0;
    GroupId group = 0;

    friend auto operator<=>(const Tag&, const Tag&) = default;
};

inline constexpr std::uint64_t kRoundLength = std::uint64_t{1} << 20;
// After a tag beyond this, tags begin again with Tag{}.
inline constexpr std::uint64_t kLastTagAt = std::uint64_t{1} << 62;

// The first tag of the group after `last`. REQUIRES: 1 <= weight <= kRoundLength.
Tag next_tag(const Tag& last, GroupId group, std::uint32_t weight);

}  // namespace fopd::lrs
