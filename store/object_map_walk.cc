// Walks through all entries of a kind of an object map, a part in each turn.

#include <algorithm>

#include "store/object_map.h"

namespace fopd::store {

using Found = LayeredIndex::Found;

Task<Result<void>> ObjectMap::for_each(KeyKind kind, MapVisitor* visitor) {
    Position position(kind);
    for (bool more = true; more;) {
        const auto shown = show_some(position, visitor);
        index_.release();
        if (!shown) co_return std::unexpected(shown.error());
        more = *shown;
        const auto went_on = co_await visitor->between_turns();
        if (!went_on) co_return went_on;
        if (more) co_await reactor_.yield();
    }
    co_return {};
}

Result<bool> ObjectMap::show_some(Position& position, MapVisitor* visitor) {
    const auto to = Key::last_of(position.kind());
    auto found = index_.at_or_after({.from = position.key(), .to = to});
    for (std::uint32_t count = 1;; ++count) {
        if (!found) return std::unexpected(found.error());
        if (*found == Found::kNothing) return false;
        const auto& entry = index_.entry();
        if (*found == Found::kEntry) {
            const auto shown = show(position.kind(), entry, visitor);
            if (!shown) return std::unexpected(shown.error());
        }
        if (count == kEntriesATurn || *found == Found::kErasedKeys) {
            const auto set = position.set_behind(entry.key);
            if (!set) return std::unexpected(set.error());
            return true;
        }
        found = index_.next();
    }
}

Result<void> ObjectMap::show(KeyKind kind, const IndexEntry& entry, MapVisitor* visitor) {
    const auto show_to = [&](auto read, auto&& call) -> Result<void> {
        if (!read) return std::unexpected(read.error());
        return call(*read);
    };
    if (kind == KeyKind::kExtent) {
        return show_to(read_extent(entry.key, entry.value),
                       [&](auto& extent) { return visitor->extent(extent); });
    }
    if (kind == KeyKind::kReply) {
        return show_to(read_reply(entry.key, entry.value),
                       [&](auto& record) { return visitor->reply(record); });
    }
    if (kind == KeyKind::kCopy) {
        return show_to(read_copy(entry.key, entry.value),
                       [&](auto& copy) { return visitor->copy(copy); });
    }
    if (kind == KeyKind::kPosition) {
        return show_to(read_position(entry.key, entry.value),
                       [&](auto& owner) { return visitor->position(owner); });
    }
    if (kind == KeyKind::kTotal) {
        return show_to(read_total(entry.key, entry.value),
                       [&](auto& total) { return visitor->total(total); });
    }
    if (kind == KeyKind::kCleared) {
        return show_to(read_cleared(entry.key, entry.value),
                       [&](auto& cleared) { return visitor->cleared(cleared); });
    }
    const auto fid = read_fid_key(kind, entry.key);
    if (!fid) return std::unexpected(fid.error());
    if (kind == KeyKind::kRecall) {
        return show_to(read_recall(entry.value),
                       [&](auto& recall) { return visitor->recall(*fid, recall); });
    }
    if (kind == KeyKind::kObject) {
        return show_to(read_object(entry.value),
                       [&](auto& object) { return visitor->object(*fid, object); });
    }
    return show_to(read_upload(entry.value),
                   [&](auto& upload) { return visitor->upload(*fid, upload); });
}

ObjectMap::Position::Position(KeyKind kind) : kind_(kind) {
    const auto first = Key::first_of(kind);
    std::ranges::copy(first.bytes(), bytes_.begin());
    size_ = first.bytes().size();
}

// The key that comes next after another is that and a zero byte.
Result<void> ObjectMap::Position::set_behind(Bytes key) {
    if (key.size() >= bytes_.size()) {
        return std::unexpected(Error{.code = Errc::kCorrupt, .context = "long key in the index"});
    }
    std::ranges::copy(key, bytes_.begin());
    bytes_[key.size()] = std::byte{0};
    size_ = key.size() + 1;
    return {};
}

}  // namespace fopd::store
