// SPDX-License-Identifier: BSD-2-Clause
#include "client/held_writes.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/ensure.h"

namespace fopd::client {

namespace {

// Of two changes in one slot.
bool is_later(const fop::Receipt& one, const fop::Receipt& other) {
    return std::tie(one.incarnation, one.seq) > std::tie(other.incarnation, other.seq);
}

}  // namespace

void HeldWrites::insert(const fop::Fid& fid, Pieces& pieces, std::uint64_t offset, Held held) {
    by_receipt_.insert(place_of(fid, offset, held.receipt));
    bytes_ += held.bytes.size();
    const bool is_new = pieces.emplace(offset, std::move(held)).second;
    ENSURE(is_new);
}

HeldWrites::Pieces::iterator HeldWrites::erase(const fop::Fid& fid, Pieces& pieces,
                                               Pieces::iterator piece) {
    const auto erased = by_receipt_.erase(place_of(fid, piece->first, piece->second.receipt));
    ENSURE(erased == 1);
    bytes_ -= piece->second.bytes.size();
    return pieces.erase(piece);
}

void HeldWrites::add(const fop::Fid& fid, std::uint64_t offset, std::span<const std::byte> bytes,
                     const fop::Receipt& receipt) {
    ENSURE(!bytes.empty());
    const fop::Range range{.offset = offset, .length = bytes.size()};
    cut(fid, range, receipt);
    Pieces& pieces = objects_[fid];
    // The pieces that are left in the range are of later writes.
    std::uint64_t at = offset;
    const auto add_up_to = [&](std::uint64_t end) {
        if (at >= end) return;
        const auto part = bytes.subspan(at - offset, end - at);
        insert(fid, pieces, at, {.bytes = {part.begin(), part.end()}, .receipt = receipt});
    };
    auto later = pieces.lower_bound(offset);
    if (later != pieces.begin()) --later;  // It may reach into the range.
    for (; later != pieces.end() && later->first < range.end(); ++later) {
        add_up_to(later->first);
        at = std::max(at, later->first + later->second.bytes.size());
    }
    add_up_to(range.end());
}

void HeldWrites::cut(const fop::Fid& fid, const fop::Range& range, const fop::Receipt& receipt) {
    const auto object = objects_.find(fid);
    if (object == objects_.end() || range.length == 0) return;
    Pieces& pieces = object->second;
    auto piece = pieces.lower_bound(range.offset);
    if (piece != pieces.begin()) --piece;  // It may reach into the range.
    while (piece != pieces.end() && piece->first < range.end()) {
        const std::uint64_t start = piece->first;
        const std::uint64_t end = start + piece->second.bytes.size();
        if (end <= range.offset || is_later(piece->second.receipt, receipt)) {
            ++piece;
            continue;
        }
        const Held whole = piece->second;
        piece = erase(fid, pieces, piece);
        const auto part = [&](std::uint64_t from, std::uint64_t to) {
            const auto bytes = std::span(whole.bytes).subspan(from - start, to - from);
            return Held{.bytes = {bytes.begin(), bytes.end()}, .receipt = whole.receipt};
        };
        if (start < range.offset) insert(fid, pieces, start, part(start, range.offset));
        if (end > range.end()) insert(fid, pieces, range.end(), part(range.end(), end));
    }
    if (pieces.empty()) objects_.erase(object);
}

void HeldWrites::clear(const fop::Fid& fid, const fop::Range& range, const fop::Receipt& receipt) {
    const auto object = objects_.find(fid);
    if (object == objects_.end() || range.length == 0) return;
    const auto& [start, last] = *object->second.rbegin();
    const std::uint64_t end = start + last.bytes.size();
    const fop::Receipt of_last = last.receipt;
    cut(fid, range, receipt);
    if (end > range.offset && end <= range.end() && !is_later(of_last, receipt)) {
        insert(fid, objects_[fid], end - 1, {.bytes = {std::byte{0}}, .receipt = of_last});
    }
}

void HeldWrites::drop(const fop::Fid& fid, const fop::Range& range) {
    cut(fid, range, {.incarnation = UINT64_MAX, .seq = UINT64_MAX, .slot = fid.slot()});
}

void HeldWrites::forget(const fop::Fid& fid) {
    drop(fid, {.offset = 0, .length = fop::kOffsetMax});
}

void HeldWrites::release(const fop::Receipt& durable) {
    auto place = by_receipt_.lower_bound(
        {.slot = durable.slot, .incarnation = durable.incarnation, .seq = 0, .fid = {}});
    while (place != by_receipt_.end() && place->slot == durable.slot &&
           place->incarnation == durable.incarnation && place->seq <= durable.seq) {
        const Place covered = *place++;
        const auto object = objects_.find(covered.fid);
        erase(covered.fid, object->second, object->second.find(covered.offset));
        if (object->second.empty()) objects_.erase(object);
    }
}

std::vector<fop::Receipt> HeldWrites::receipts(const HeldScope& scope) const {
    std::vector<fop::Receipt> last;
    for (const Place& place : by_receipt_) {
        if (!scope.has(place.fid)) continue;
        if (last.empty() || last.back().slot != place.slot ||
            last.back().incarnation != place.incarnation) {
            last.push_back({.incarnation = place.incarnation, .seq = 0, .slot = place.slot});
        }
        last.back().seq = place.seq;
    }
    return last;
}

bool HeldWrites::has_other(std::uint16_t slot, std::uint64_t incarnation) const {
    const auto first = by_receipt_.lower_bound({.slot = slot, .fid = {}});
    if (first == by_receipt_.end() || first->slot != slot) return false;
    auto behind = by_receipt_.lower_bound({.slot = slot, .incarnation = UINT64_MAX, .fid = {}});
    return first->incarnation != incarnation || std::prev(behind)->incarnation != incarnation;
}

bool HeldWrites::has_other(const fop::Fid& fid, std::uint64_t incarnation) const {
    const auto object = objects_.find(fid);
    if (object == objects_.end()) return false;
    return std::ranges::any_of(object->second, [incarnation](const auto& piece) {
        return piece.second.receipt.incarnation != incarnation;
    });
}

std::vector<fop::Fid> HeldWrites::objects_behind(const fop::Receipt& kept,
                                                 const HeldScope& scope) const {
    std::set<fop::Fid> behind;
    auto place = by_receipt_.lower_bound(
        {.slot = kept.slot, .incarnation = kept.incarnation, .seq = kept.seq, .fid = {}});
    for (; place != by_receipt_.end() && place->slot == kept.slot &&
           place->incarnation == kept.incarnation;
         ++place) {
        if (place->seq > kept.seq && scope.has(place->fid)) behind.insert(place->fid);
    }
    return {behind.begin(), behind.end()};
}

std::optional<HeldWrites::Piece> HeldWrites::piece_behind(const fop::Receipt& kept,
                                                          const fop::Fid& fid,
                                                          std::uint64_t offset) const {
    const auto object = objects_.find(fid);
    if (object == objects_.end()) return std::nullopt;
    const Pieces& pieces = object->second;
    const auto found =
        std::find_if(pieces.lower_bound(offset), pieces.end(), [&kept](const auto& piece) {
            const fop::Receipt& receipt = piece.second.receipt;
            return receipt.slot == kept.slot && receipt.incarnation == kept.incarnation &&
                   receipt.seq > kept.seq;
        });
    if (found == pieces.end()) return std::nullopt;
    return Piece{.fid = fid, .offset = found->first, .bytes = found->second.bytes};
}

}  // namespace fopd::client
