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

// Some of the held writes: those of one slot, those of one object, or all.
struct HeldScope {
    std::optional<std::uint16_t> slot{};
    std::optional<fop::Fid> fid{};

    bool has(const fop::Fid& which) const {
        return (!slot || which.slot() == *slot) && (!fid || which == *fid);
    }
};

// Copies of acknowledged buffered writes, kept until they are durable, so that they can be written
// again if the server loses them. The parts of an object never overlap: a later change removes the
// bytes that it covers from earlier parts. So the parts may be written again in any order.
// "Later" refers to the order of the changes at the server, which their receipts give; replies may
// arrive in another order. Does no I/O.
class HeldWrites {
public:
    // Copies the bytes, except where a later write is held. REQUIRES: `bytes` is not empty.
    void add(const fop::Fid& fid, std::uint64_t offset, std::span<const std::byte> bytes,
             const fop::Receipt& receipt);
    // The change with this receipt has overwritten the range or cut it off: drops the bytes that
    // were written to it before.
    void cut(const fop::Fid& fid, const fop::Range& range, const fop::Receipt& receipt);
    // The change with this receipt has set the range to zeros: drops the bytes that were written to
    // it before. If the last held byte of the object is one of them, a zero is held in its place,
    // so that a retry extends the object to the same size.
    void clear(const fop::Fid& fid, const fop::Range& range, const fop::Receipt& receipt);
    // Drops the bytes held for the range, whenever they were written: they are given up as lost.
    void drop(const fop::Fid& fid, const fop::Range& range);
    // The object was removed: drops everything held for it.
    void forget(const fop::Fid& fid);
    // All changes up to this one, in its slot and incarnation, are durable: drops their bytes.
    void release(const fop::Receipt& durable);

    bool holds(const fop::Fid& fid) const { return objects_.contains(fid); }
    // The last change held for each slot and incarnation.
    std::vector<fop::Receipt> receipts(const HeldScope& scope = {}) const;
    // Whether anything is held for the slot, or for the object, from another incarnation: the
    // server may have lost it.
    bool has_other(std::uint16_t slot, std::uint64_t incarnation) const;
    bool has_other(const fop::Fid& fid, std::uint64_t incarnation) const;

    struct Part {
        fop::Fid fid{};
        std::uint64_t offset = 0;
        std::vector<std::byte> bytes;

        fop::Range range() const { return {.offset = offset, .length = bytes.size()}; }
    };
    // `kept` is the last change that the server still has. Returns the objects with parts that are
    // later than `kept`, in the slot and incarnation of `kept`.
    std::vector<fop::Fid> objects_behind(const fop::Receipt& kept,
                                         const HeldScope& scope = {}) const;
    // A copy of the first part of the object that is later than `kept` and begins at `offset` or
    // after it.
    std::optional<Part> part_behind(const fop::Receipt& kept, const fop::Fid& fid,
                                    std::uint64_t offset = 0) const;

    std::uint64_t bytes() const { return bytes_; }
    bool empty() const { return by_receipt_.empty(); }

private:
    struct Held {
        std::vector<std::byte> bytes;
        fop::Receipt receipt;
    };
    using Parts = std::map<std::uint64_t, Held>;  // By offset.
    struct ReceiptKey {
        std::uint16_t slot = 0;
        std::uint64_t incarnation = 0;
        std::uint64_t seq = 0;
        fop::Fid fid{};
        std::uint64_t offset = 0;
        friend auto operator<=>(const ReceiptKey&, const ReceiptKey&) = default;
    };

    static ReceiptKey key_of(const fop::Fid& fid, std::uint64_t offset,
                             const fop::Receipt& receipt) {
        return {receipt.slot, receipt.incarnation, receipt.seq, fid, offset};
    }
    void insert(const fop::Fid& fid, Parts& parts, std::uint64_t offset, Held held);
    Parts::iterator erase(const fop::Fid& fid, Parts& parts, Parts::iterator part);

    std::map<fop::Fid, Parts> objects_;
    std::set<ReceiptKey> by_receipt_;  // One entry for each part.
    std::uint64_t bytes_ = 0;
};

}  // namespace fopd::client
