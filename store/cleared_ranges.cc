#include "store/cleared_ranges.h"

#include <algorithm>

namespace fopd::store {

using Found = LayeredIndex::Found;

namespace {

bool comes_before(const Key& one, const Key& other) {
    return std::ranges::lexicographical_compare(one.bytes(), other.bytes());
}

}  // namespace

Result<bool> ClearedRanges::any() {
    if (any_) return *any_;
    const auto to = Key::last_of(KeyKind::kCleared);
    const auto found = index_.past_erased(
        index_.at_or_after({.from = Key::first_of(KeyKind::kCleared), .to = to}));
    if (!found) return std::unexpected(found.error());
    any_ = *found == Found::kEntry;
    return *any_;
}

Result<std::optional<Cleared>> ClearedRanges::next(Fid fid, std::uint64_t from) {
    const auto has_any = any();
    if (!has_any) return std::unexpected(has_any.error());
    if (!*has_any || from >= kObjectBlocksMax) return std::nullopt;
    const auto to = Key::cleared(fid, kObjectBlocksMax);
    auto first = Key::cleared(fid, from + 1);
    if (comes_before(first, from_)) first = from_;
    if (comes_before(to, first)) return std::nullopt;
    const auto found = index_.past_erased(index_.at_or_after({.from = first, .to = to}));
    if (!found) return std::unexpected(found.error());
    if (*found == Found::kNothing) return std::nullopt;
    return read_cleared(index_.entry().key, index_.entry().value);
}

Result<void> ClearedRanges::find(Fid fid, BlockRange range) {
    found_.clear();
    for (auto from = range.first;;) {
        const auto cleared = next(fid, from);
        if (!cleared) return std::unexpected(cleared.error());
        if (!*cleared || (*cleared)->first >= range.end()) return {};
        found_.push_back(**cleared);
        from = (*cleared)->end;
    }
}

void ClearedRanges::put(const Cleared& range) {
    const auto key = Key::cleared(range.fid, range.end);
    ValueBuffer value;
    index_.put(key, write_cleared(value, range.first));
    if (comes_before(key, from_)) from_ = key;
}

void ClearedRanges::cut(BlockRange range) {
    for (const Cleared& each : found_) {
        if (each.end > range.end()) {
            put({.fid = each.fid, .first = range.end(), .end = each.end});
        } else {
            index_.erase(Key::cleared(each.fid, each.end));
        }
        if (each.first < range.first) {
            put({.fid = each.fid, .first = each.first, .end = range.first});
        }
    }
}

Result<void> ClearedRanges::add(Fid fid, BlockRange range) {
    const auto before = std::min<std::uint64_t>(range.first, 1);
    const auto searched =
        find(fid, {.first = range.first - before, .count = before + range.count + 1});
    if (!searched) return searched;
    Cleared all{.fid = fid, .first = range.first, .end = range.end()};
    for (const Cleared& each : found_) {
        all.first = std::min(all.first, each.first);
        all.end = std::max(all.end, each.end);
    }
    for (const Cleared& each : found_) {
        if (each.end != all.end) index_.erase(Key::cleared(fid, each.end));
    }
    put(all);
    any_ = true;
    return {};
}

Result<std::optional<ClearedRanges::First>> ClearedRanges::first() {
    const auto to = Key::last_of(KeyKind::kCleared);
    const auto found = index_.at_or_after({.from = from_, .to = to});
    if (!found) return std::unexpected(found.error());
    if (*found == Found::kNothing) {
        any_ = false;
        return std::nullopt;
    }
    const auto& entry = index_.entry();
    const bool is_erased = *found == Found::kErasedKeys;
    const auto cleared =
        is_erased ? read_cleared_key(entry.key) : read_cleared(entry.key, entry.value);
    if (!cleared) return std::unexpected(cleared.error());
    from_ = Key::cleared(cleared->fid, cleared->end);
    return First{.range = *cleared, .is_erased = is_erased};
}

void ClearedRanges::shorten(const Cleared& range, std::uint64_t first) {
    if (first == range.end) {
        index_.erase(Key::cleared(range.fid, range.end));
    } else {
        put({.fid = range.fid, .first = first, .end = range.end});
    }
}

}  // namespace fopd::store
