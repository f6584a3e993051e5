#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "lrs/epoch_frame.h"
#include "lrs/epoch_groups/tag.h"

namespace fopd::lrs {

// A group that waits, and how many of its requests do.
struct GroupDemand {
    Tag tag;  // The tag of its next turn.
    std::uint64_t requests = 0;

    friend bool operator==(const GroupDemand&, const GroupDemand&) = default;
};

// The contribution of a node, or of several nodes together, to an epoch. It lists the groups that
// wait there, the group with the next turn first, as far as there is room. Groups beyond that are
// named when their turns are near.
//
// Tags count from the last turn. A node that has missed an epoch does not know that turn; its list
// is dropped, and the combination tells it. A list of the first tags remains exact when it is cut:
// a group that is among the first of all is among the first of each list that has it.
struct EpochDemand {
    static constexpr std::size_t kGroupsMax = 64;
    static constexpr std::size_t kBytes = 3 * 8 + kGroupsMax * 3 * 8;

    Tag last;  // The turn of the epoch that ends.
    std::size_t count = 0;
    std::array<GroupDemand, kGroupsMax> groups{};  // In the order of tags, which are unique.

    // The first kGroupsMax of `all`, which it sorts; equal tags are added up.
    void set_groups(std::span<GroupDemand> all);
    // Associative and commutative.
    static EpochDemand combine(const EpochDemand& one, const EpochDemand& other);
    // The turn of the epoch that begins; nothing if no group waits.
    std::optional<Tag> next() const;
    // Nothing if the group is not in the list.
    std::optional<std::uint64_t> requests_of(GroupId group) const;

    // The bytes are in the host's order. REQUIRES: kBytes bytes.
    static EpochDemand read(std::span<const std::byte> bytes);
    void write(std::span<std::byte> bytes) const;

    friend bool operator==(const EpochDemand&, const EpochDemand&) = default;
};

inline constexpr std::string_view kGroupsPartName = "epoch_groups";
void combine_group_parts(std::span<std::byte> into, std::span<const std::byte> one,
                         std::span<const std::byte> other);
void swap_group_part(std::span<std::byte> part);
inline constexpr EpochPart kGroupsPart{.name = kGroupsPartName,
                                       .size_bytes = EpochDemand::kBytes,
                                       .combine = combine_group_parts,
                                       .swap_bytes = swap_group_part};

}  // namespace fopd::lrs
