// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "fop/bodies.h"

namespace fopd::client {

// What was written buffered and acknowledged, kept until it is durable, so that it can be written
// again if the server loses it. The pieces of an object never overlap: whatever changes it later
// takes from the earlier ones what it covers, so that the order in which they are written again
// does not matter. Pure.
class HeldWrites {
public:
    // Copies the bytes. Requires: there are any.
    void add(const fop::Fid& fid, std::uint64_t offset, std::span<const std::byte> bytes,
             const fop::Receipt& receipt);
    // These bytes of the object are others now, or none.
    void cut(const fop::Fid& fid, const fop::Range& range);
    // These bytes of the object are zeros now. Where it ends because of what is held it still ends:
    // where that was cleared a zero is held.
    void clear(const fop::Fid& fid, const fop::Range& range);
    // There is no such object any more.
    void forget(const fop::Fid& fid);
    // Everything up to this change is durable.
    void release(const fop::Receipt& durable);

    bool holds(const fop::Fid& fid) const { return objects_.contains(fid); }
    // The last change held for each slot and incarnation.
    std::vector<fop::Receipt> receipts() const;
    // Whether anything is held for the slot from another incarnation: the server may have lost it.
    bool has_other(std::uint16_t slot, std::uint64_t incarnation) const;

    struct Piece {
        fop::Fid fid{};
        std::uint64_t offset = 0;
        std::vector<std::byte> bytes;

        fop::Range range() const { return {.offset = offset, .length = bytes.size()}; }
    };
    // A copy of the oldest piece behind `kept`, in its slot and incarnation.
    std::optional<Piece> first_behind(const fop::Receipt& kept) const;

    std::uint64_t bytes() const { return bytes_; }
    bool empty() const { return by_receipt_.empty(); }

private:
    struct Held {
        std::vector<std::byte> bytes;
        fop::Receipt receipt;
    };
    using Pieces = std::map<std::uint64_t, Held>;  // By offset.
    struct Place {
        std::uint16_t slot = 0;
        std::uint64_t incarnation = 0;
        std::uint64_t seq = 0;
        fop::Fid fid{};
        std::uint64_t offset = 0;
        friend auto operator<=>(const Place&, const Place&) = default;
    };

    void insert(const fop::Fid& fid, Pieces& pieces, std::uint64_t offset, Held held);
    Pieces::iterator erase(const fop::Fid& fid, Pieces& pieces, Pieces::iterator piece);

    std::map<fop::Fid, Pieces> objects_;
    std::set<Place> by_receipt_;  // Every piece.
    std::uint64_t bytes_ = 0;
};

}  // namespace fopd::client
