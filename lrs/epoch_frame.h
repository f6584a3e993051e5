#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/time.h"
#include "eh/handler.h"

namespace fopd::lrs {

// The part of a node's contribution to an epoch that one kind of policy writes and reads. Nodes
// change their policies one by one, so nodes with different policies take part in the same epoch:
// each fills its own part of a frame, which has the same size at every node.
struct EpochPart {
    std::string_view name;  // The name of the policy.
    std::size_t size_bytes = 0;
    // As in EpochRules, for this part. Called only with parts that nodes have filled.
    void (*combine)(std::span<std::byte> into, std::span<const std::byte> one,
                    std::span<const std::byte> other) = nullptr;
    void (*swap_bytes)(std::span<std::byte> data) = nullptr;
};

// The parts of all policies, sorted by name.
std::span<const EpochPart> epoch_parts();

// A policy's part of the frame of an epoch.
struct EpochPartData {
    std::uint32_t filled = 0;  // Nodes that have filled the part; 0: the bytes are zeros.
    std::span<const std::byte> bytes;
    // If this node has begun no further epoch at this time, the other nodes may be in a later epoch
    // without it.
    Instant expires_at = kNever;
};

// A frame has for each part the number of nodes that filled it, 4 bytes in the host's order, and
// its bytes.
class EpochFrame {
public:
    static constexpr std::size_t kCountBytes = sizeof(std::uint32_t);

    explicit EpochFrame(std::span<const EpochPart> parts) : parts_(parts) {}

    std::size_t size_bytes() const;
    // Makes the part's count 1. Returns its room, all zeros; empty if there is no such part.
    // REQUIRES: `frame` has size_bytes() zeros.
    std::span<std::byte> fill(std::span<std::byte> frame, std::string_view name) const;
    // Nothing if there is no such part, or if the frame has another size.
    EpochPartData part(std::span<const std::byte> frame, std::string_view name) const;
    // Whether a node has filled any part.
    bool is_filled(std::span<const std::byte> frame) const;
    void combine(std::span<std::byte> into, std::span<const std::byte> one,
                 std::span<const std::byte> other) const;
    void swap_bytes(std::span<std::byte> frame) const;

private:
    std::span<const EpochPart> parts_;
};

// A hash of the names and sizes of epoch_parts(), in their order: nodes with another one cannot
// combine their frames.
std::uint64_t epoch_parts_hash();

// The rules under which frames of epoch_parts() are combined.
eh::EpochRules epoch_rules(Duration timeout);

}  // namespace fopd::lrs
