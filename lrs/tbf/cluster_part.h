#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "eh/handler.h"
#include "lrs/epoch_frame.h"

namespace fopd::lrs {

// The demand of a class for one of its rates. `demand` is in parts of that rate: kWholeDemand means
// as much as the rate allows.
struct ClusterDemand {
    std::uint64_t id = 0;  // Identifies the class and the rate's unit at all nodes.
    std::uint64_t demand = 0;
    // The lowest and the highest hash of the rule's text at all nodes: if these differ, the rules
    // differ.
    std::uint32_t terms_low = 0;
    std::uint32_t terms_high = 0;

    friend bool operator==(const ClusterDemand&, const ClusterDemand&) = default;
};
inline constexpr std::uint64_t kWholeDemand = std::uint64_t{1} << 24;
// The largest demand of a class. The sum of the demands of all nodes that can take part is less
// than 2^63.
inline constexpr std::uint64_t kDemandMax = std::uint64_t{1} << 40;

// The part of tbf in the frame of an epoch. The members have the layout of its bytes
// (docs/formats/epoch.md).
struct ClusterPart {
    static constexpr std::size_t kDemandsMax = 60;
    // The amount that each node adds to `nodes`. Each of its localities contributes an equal part
    // of it.
    static constexpr std::uint64_t kOneNode = std::uint64_t{1} << 20;

    // The epoch by whose result the contributors chose which demands to list; 0: none.
    eh::EpochNumber basis = 0;
    // Demands are sorted by id - first_id, modulo 2^64. If there are more than kDemandsMax, the
    // first kDemandsMax are kept.
    std::uint64_t first_id = 0;
    std::uint64_t nodes = 0;
    // The lowest and the highest hash of ClusterNode::key at all nodes: if these differ, equal
    // limits have different ids.
    std::uint32_t key_low = 0;
    std::uint32_t key_high = 0;
    std::uint32_t count = 0;
    // How much demands have changed since the epoch `basis`. Each contribution adds the largest
    // part of a rate by which one of its demands has changed.
    std::uint32_t moved = 0;
    std::array<ClusterDemand, kDemandsMax> demands{};

    // Returns an empty part if the bytes are not a valid part.
    static ClusterPart read(std::span<const std::byte> bytes);
    void write(std::span<std::byte> bytes) const;

    std::span<const ClusterDemand> all() const {
        return std::span(demands).first(std::min<std::size_t>(count, kDemandsMax));
    }
    bool is_full() const { return count >= kDemandsMax; }
    std::uint64_t index_of(std::uint64_t id) const { return id - first_id; }
    // Whether the part would have a demand of that id if any node had one.
    bool covers(std::uint64_t id) const {
        return !is_full() || index_of(id) <= index_of(demands.back().id);
    }
    // Null: there is no demand for this id.
    const ClusterDemand* find(std::uint64_t id) const;

    // If the contributions have different bases, the demands of those with the newest basis are
    // kept.
    static ClusterPart combined(const ClusterPart& one, const ClusterPart& other);

    friend bool operator==(const ClusterPart&, const ClusterPart&) = default;
};

void combine_cluster_parts(std::span<std::byte> into, std::span<const std::byte> one,
                           std::span<const std::byte> other);
void swap_cluster_part(std::span<std::byte> data);

inline constexpr EpochPart kTbfPart{.name = "tbf",
                                    .size_bytes = sizeof(ClusterPart),
                                    .combine = combine_cluster_parts,
                                    .swap_bytes = swap_cluster_part};

}  // namespace fopd::lrs
