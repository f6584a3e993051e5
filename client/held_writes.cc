// SPDX-License-Identifier: BSD-2-Clause
#include "client/held_writes.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "core/ensure.h"

namespace fopd::client {

namespace {

// Whether `one` is the later of two changes on the same disk slot.
bool is_later(const fop::Receipt& one, const fop::Receipt& other) {
    return std::tie(one.incarnation, one.seq) > std::tie(other.incarnation, other.seq);
}

}  // namespace

void HeldWrites::insert(const fop::Fid& fid, Parts& parts, std::uint64_t offset, Held held) {
    by_receipt_.insert(key_of(fid, offset, held.receipt));
    bytes_ += held.bytes.size();
    const bool is_new = parts.emplace(offset, std::move(held)).second;
    ENSURE(is_new);
}

HeldWrites::Parts::iterator HeldWrites::erase(const fop::Fid& fid, Parts& parts,
                                              Parts::iterator part) {
    const auto erased = by_receipt_.erase(key_of(fid, part->first, part->second.receipt));
    ENSURE(erased == 1);
    bytes_ -= part->second.bytes.size();
    return parts.erase(part);
}

void HeldWrites::add(const fop::Fid& fid, std::uint64_t offset, std::span<const std::byte> bytes,
                     const fop::Receipt& receipt) {
    ENSURE(!bytes.empty());
    const fop::Range range{.offset = offset, .length = bytes.size()};
    cut(fid, range, receipt);
    Parts& parts = objects_[fid];
    // The parts that are left in the range are of later writes.
    std::uint64_t at = offset;
    const auto add_up_to = [&](std::uint64_t end) {
        if (at >= end) return;
        const auto missing = bytes.subspan(at - offset, end - at);
        insert(fid, parts, at, {.bytes = {missing.begin(), missing.end()}, .receipt = receipt});
    };
    auto later = parts.lower_bound(offset);
    if (later != parts.begin()) --later;  // It may reach into the range.
    for (; later != parts.end() && later->first < range.end(); ++later) {
        add_up_to(later->first);
        at = std::max(at, later->first + later->second.bytes.size());
    }
    add_up_to(range.end());
}

void HeldWrites::cut(const fop::Fid& fid, const fop::Range& range, const fop::Receipt& receipt) {
    const auto object = objects_.find(fid);
    if (object == objects_.end() || range.length == 0) return;
    Parts& parts = object->second;
    auto part = parts.lower_bound(range.offset);
    if (part != parts.begin()) --part;  // It may reach into the range.
    while (part != parts.end() && part->first < range.end()) {
        const std::uint64_t start = part->first;
        const std::uint64_t end = start + part->second.bytes.size();
        if (end <= range.offset || is_later(part->second.receipt, receipt)) {
            ++part;
            continue;
        }
        const auto rest = [&held = part->second, start](std::uint64_t from, std::uint64_t to) {
            const auto bytes = std::span(held.bytes).subspan(from - start, to - from);
            return Held{.bytes = {bytes.begin(), bytes.end()}, .receipt = held.receipt};
        };
        std::optional<Held> before;
        std::optional<Held> behind;
        if (start < range.offset) before = rest(start, range.offset);
        if (end > range.end()) behind = rest(range.end(), end);
        part = erase(fid, parts, part);
        if (before) insert(fid, parts, start, std::move(*before));
        if (behind) insert(fid, parts, range.end(), std::move(*behind));
    }
    if (parts.empty()) objects_.erase(object);
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
    auto key = by_receipt_.lower_bound(
        {.slot = durable.slot, .incarnation = durable.incarnation, .seq = 0, .fid = {}});
    while (key != by_receipt_.end() && key->slot == durable.slot &&
           key->incarnation == durable.incarnation && key->seq <= durable.seq) {
        const ReceiptKey covered = *key++;
        const auto object = objects_.find(covered.fid);
        erase(covered.fid, object->second, object->second.find(covered.offset));
        if (object->second.empty()) objects_.erase(object);
    }
}

std::vector<fop::Receipt> HeldWrites::receipts(const HeldScope& scope) const {
    std::vector<fop::Receipt> last;
    for (const ReceiptKey& key : by_receipt_) {
        if (!scope.has(key.fid)) continue;
        if (last.empty() || last.back().slot != key.slot ||
            last.back().incarnation != key.incarnation) {
            last.push_back({.incarnation = key.incarnation, .seq = 0, .slot = key.slot});
        }
        last.back().seq = key.seq;
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
    return std::ranges::any_of(object->second, [incarnation](const auto& part) {
        return part.second.receipt.incarnation != incarnation;
    });
}

std::vector<fop::Fid> HeldWrites::objects_behind(const fop::Receipt& kept,
                                                 const HeldScope& scope) const {
    std::set<fop::Fid> behind;
    auto key = by_receipt_.lower_bound(
        {.slot = kept.slot, .incarnation = kept.incarnation, .seq = kept.seq, .fid = {}});
    for (;
         key != by_receipt_.end() && key->slot == kept.slot && key->incarnation == kept.incarnation;
         ++key) {
        if (key->seq > kept.seq && scope.has(key->fid)) behind.insert(key->fid);
    }
    return {behind.begin(), behind.end()};
}

std::optional<HeldWrites::Part> HeldWrites::part_behind(const fop::Receipt& kept,
                                                        const fop::Fid& fid,
                                                        std::uint64_t offset) const {
    const auto object = objects_.find(fid);
    if (object == objects_.end()) return std::nullopt;
    const Parts& parts = object->second;
    const auto found =
        std::find_if(parts.lower_bound(offset), parts.end(), [&kept](const auto& part) {
            const fop::Receipt& receipt = part.second.receipt;
            return receipt.slot == kept.slot && receipt.incarnation == kept.incarnation &&
                   receipt.seq > kept.seq;
        });
    if (found == parts.end()) return std::nullopt;
    return Part{.fid = fid, .offset = found->first, .bytes = found->second.bytes};
}

}  // namespace fopd::client
