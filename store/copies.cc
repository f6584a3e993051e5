#include "store/copies.h"

#include <algorithm>
#include <limits>

#include "store/corrupt.h"

namespace fopd::store {

namespace {

constexpr auto kNumberMax = std::numeric_limits<std::uint64_t>::max();

VsnText vsn_of(char each) {
    VsnText vsn;
    vsn.fill(each);
    return vsn;
}

}  // namespace

// -- in the index --

Result<bool> Copies::any() {
    if (any_) return *any_;
    const auto from = Key::first_of(KeyKind::kCopy);
    const auto to = Key::last_of(KeyKind::kCopy);
    const auto found = index_.past_erased(index_.at_or_after({.from = from, .to = to}));
    if (!found) return std::unexpected(found.error());
    any_ = *found == LayeredIndex::Found::kEntry;
    return *any_;
}

Result<std::optional<Copy>> Copies::find(const CopyKey& key) {
    const Key bytes = copy_key(key);
    const auto value = index_.get(bytes);
    if (!value) return std::unexpected(value.error());
    if (!*value) return std::nullopt;
    return read_copy(bytes, **value);
}

Result<std::optional<CopyKey>> Copies::at(const VsnText& vsn, CopyPosition position) {
    const Key key = position_key(vsn, position);
    const auto value = index_.get(key);
    if (!value) return std::unexpected(value.error());
    if (!*value) return std::nullopt;
    const auto owner = read_position(key, **value);
    if (!owner) return std::unexpected(owner.error());
    return owner->key;
}

Result<bool> Copies::owns_position(const Copy& copy) {
    const auto owner = at(copy.cartridge.vsn, copy.position);
    if (!owner) return std::unexpected(owner.error());
    return *owner == key_of(copy);
}

Result<void> Copies::find_of(Fid fid) {
    return search(fid, nullptr);
}

Result<void> Copies::find_dead_of(Fid fid, const Object& object) {
    return search(fid, &object);
}

Result<void> Copies::search(Fid fid, const Object* dead_for) {
    found_.clear();
    has_position_.clear();
    const auto has_any = any();
    if (!has_any) return std::unexpected(has_any.error());
    if (!*has_any) return {};
    const auto from = Key::copy(fid, 0, vsn_of('\0'));
    const auto to = Key::copy(fid, kNumberMax, vsn_of('\xff'));
    auto found = index_.past_erased(index_.at_or_after({.from = from, .to = to}));
    for (; found && *found == LayeredIndex::Found::kEntry;
         found = index_.past_erased(index_.next())) {
        const auto copy = read_copy(index_.entry().key, index_.entry().value);
        if (!copy) return std::unexpected(copy.error());
        if (dead_for != nullptr && is_of_content(*copy, *dead_for)) continue;
        found_.push_back(*copy);
    }
    if (!found) return std::unexpected(found.error());
    for (const Copy& each : found_) {
        const auto owns = owns_position(each);
        if (!owns) return std::unexpected(owns.error());
        has_position_.push_back(*owns);
    }
    return {};
}

void Copies::erase_found() {
    for (std::size_t i = 0; i < found_.size(); ++i) erase_keys(found_[i], has_position_[i]);
    found_.clear();
    has_position_.clear();
}

void Copies::erase_keys(const Copy& copy, bool has_position) {
    index_.erase(copy_key(key_of(copy)));
    if (has_position) index_.erase(position_key(copy.cartridge.vsn, copy.position));
    count(copy, -1);
}

// While a log is replayed, the position may still have another copy, whose end comes later in the
// log.
Result<void> Copies::put(const Copy& copy) {
    const auto before = find(key_of(copy));
    if (!before) return std::unexpected(before.error());
    bool had_position = false;
    if (before->has_value()) {
        const auto owns = owns_position(**before);
        if (!owns) return std::unexpected(owns.error());
        had_position = *owns;
        erase_keys(**before, had_position && (*before)->position != copy.position);
    }
    ValueBuffer value;
    index_.put(copy_key(key_of(copy)), write_copy(value, copy));
    index_.put(position_key(copy.cartridge.vsn, copy.position),
               write_position(value, key_of(copy)));
    count(copy);
    any_ = true;
    return {};
}

Result<void> Copies::erase(const CopyKey& key) {
    const auto before = find(key);
    if (!before) return std::unexpected(before.error());
    if (!before->has_value()) return {};
    const auto owns = owns_position(**before);
    if (!owns) return std::unexpected(owns.error());
    erase_keys(**before, *owns);
    return {};
}

void Copies::put_total(const CartridgeTotal& total) {
    ValueBuffer value;
    index_.put(Key::total(total.cartridge.vsn), write_total(value, total));
    count(total);
}

void Copies::erase_total(const VsnText& vsn) {
    index_.erase(Key::total(vsn));
    const auto found = use_.find(vsn);
    if (found == use_.end()) return;
    found->second.total_copies = 0;
    found->second.total_bytes = 0;
    if (found->second.live_copies == 0) use_.erase(found);
}

// -- questions --

Result<bool> Copies::cover(Fid fid, const Object& object, const std::vector<CopyKey>& excluded) {
    const auto searched = find_of(fid);
    if (!searched) return std::unexpected(searched.error());
    std::uint64_t covered = 0;
    for (const Copy& each : found_) {
        if (!is_of_content(each, object)) continue;
        if (std::ranges::binary_search(excluded, key_of(each))) continue;
        if (each.offset > covered) break;
        covered = std::max(covered, each.end());
    }
    return covered >= object.size_bytes;
}

Result<std::vector<Copy>> Copies::on(const VsnText& vsn, CopyPosition from, std::size_t count_max) {
    const ReleaseAtEnd release(index_);
    const auto first = position_key(vsn, from);
    const auto last = position_key(
        vsn, {.file = std::numeric_limits<std::uint32_t>::max(), .member = kTapeNumberEnd - 1});
    std::vector<PositionOwner> owners;
    auto found = index_.past_erased(index_.at_or_after({.from = first, .to = last}));
    for (; found && *found == LayeredIndex::Found::kEntry && owners.size() < count_max;
         found = index_.past_erased(index_.next())) {
        const auto owner = read_position(index_.entry().key, index_.entry().value);
        if (!owner) return std::unexpected(owner.error());
        owners.push_back(*owner);
    }
    if (!found) return std::unexpected(found.error());
    std::vector<Copy> copies;
    copies.reserve(owners.size());
    for (const PositionOwner& each : owners) {
        const auto copy = find(each.key);
        if (!copy) return std::unexpected(copy.error());
        if (!copy->has_value() || (*copy)->position != each.position) {
            return corrupt("position of a copy in the index");
        }
        copies.push_back(**copy);
    }
    return copies;
}

// -- figures --

void Copies::count(const Copy& copy, std::int64_t copies) {
    CartridgeUse& use = use_[copy.cartridge.vsn];
    if (use.total_copies == 0) use.cartridge = copy.cartridge;
    use.live_copies += static_cast<std::uint64_t>(copies);
    use.live_bytes += static_cast<std::uint64_t>(copies) * copy.length;
}

void Copies::count(const CartridgeTotal& total) {
    CartridgeUse& use = use_[total.cartridge.vsn];
    use.cartridge = total.cartridge;
    use.total_copies = total.copies;
    use.total_bytes = total.bytes;
}

CartridgeUse Copies::use_of(const VsnText& vsn) const {
    const auto found = use_.find(vsn);
    return found == use_.end() ? CartridgeUse{} : found->second;
}

}  // namespace fopd::store
