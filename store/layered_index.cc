#include "store/layered_index.h"

#include <algorithm>
#include <cstring>

#include "core/ensure.h"

namespace fopd::store {

namespace {

// So few changes touch few pages, for which the index has room without its reserve.
constexpr std::size_t kChangesWithoutReserve = 128;
// A change copies its page, and at most as much for split pages and those above.
constexpr std::uint64_t kCopiedByChange = 2 * 4096;

int compare(Bytes a, Bytes b) {
    const int order = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
    if (order != 0 || a.size() == b.size()) return order;
    return a.size() < b.size() ? -1 : 1;
}

bool equal(Bytes a, Bytes b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

LayeredIndex::LayeredIndex(Index& index)
    : index_(index), index_bytes_(index.figures().size_bytes) {}

bool LayeredIndex::wants_checkpoint() const {
    if (!index_.has_reserve()) return change_count() > kChangesWithoutReserve;
    const std::uint64_t copied = std::min(index_bytes_, change_count() * kCopiedByChange);
    return copied + changed_bytes() > index_.room_bytes() / 2;
}

Result<std::optional<Bytes>> LayeredIndex::get(Bytes key) {
    const auto found = at_or_before({.from = key, .to = key});
    if (!found) return std::unexpected(found.error());
    if (*found != Found::kEntry) return std::nullopt;
    return entry_.value;
}

Result<LayeredIndex::Found> LayeredIndex::at_or_after(Range range) {
    return search(Direction::kUp, range);
}

Result<LayeredIndex::Found> LayeredIndex::at_or_before(Range range) {
    return search(Direction::kDown, range);
}

// If the newest layer that has the key itself has a value, that is the answer, and older layers are
// not searched: most searches end there.
Result<LayeredIndex::Found> LayeredIndex::search(Direction direction, Range range) {
    direction_ = direction;
    to_ = range.to;
    entry_ = {.key = range.from, .value = {}};
    bool erased = false;
    for (layers_ready_ = 0; layers_ready_ < kLayerCount;) {
        const auto sought = seek(layers_ready_, range.from);
        if (!sought) return std::unexpected(sought.error());
        const auto& there = layers_[layers_ready_++].change;
        if (!there || erased || !equal(there->key, range.from)) continue;
        if (there->value) {
            entry_ = {.key = there->key, .value = *there->value};
            return Found::kEntry;
        }
        erased = true;
    }
    return settle();
}

Result<LayeredIndex::Found> LayeredIndex::go_on() {
    while (layers_ready_ < kLayerCount) {
        const auto sought = seek(layers_ready_, entry_.key);
        if (!sought) return std::unexpected(sought.error());
        ++layers_ready_;
    }
    const auto stepped = leave_key();
    if (!stepped) return std::unexpected(stepped.error());
    return settle();
}

void LayeredIndex::set_cursor(std::size_t layer, Overlay::Cursor cursor) {
    layers_[layer].cursor = cursor;
    layers_[layer].change.reset();
    if (cursor) layers_[layer].change = overlay(layer).at(cursor);
}

Result<void> LayeredIndex::set_entry(const Result<std::optional<IndexEntry>>& entry) {
    auto& change = layers_[kIndexLayer].change;
    change.reset();
    if (!entry) return std::unexpected(entry.error());
    if (*entry) change = IndexChange{.key = (*entry)->key, .value = (*entry)->value};
    return {};
}

Result<void> LayeredIndex::seek(std::size_t layer, Bytes key) {
    const bool up = direction_ == Direction::kUp;
    if (layer == kIndexLayer) {
        auto& reader = index_.reader();
        return set_entry(up ? reader.at_or_after(key) : reader.at_or_before(key));
    }
    const auto& from = overlay(layer);
    set_cursor(layer, up ? from.at_or_after(key) : from.at_or_before(key));
    return {};
}

Result<void> LayeredIndex::step(std::size_t layer) {
    const bool up = direction_ == Direction::kUp;
    if (layer == kIndexLayer) {
        auto& reader = index_.reader();
        return set_entry(up ? reader.next() : reader.previous());
    }
    const auto& from = overlay(layer);
    const auto cursor = layers_[layer].cursor;
    set_cursor(layer, up ? from.next(cursor) : from.previous(cursor));
    return {};
}

// Moves every layer that is at the key of entry_ to its next key.
Result<void> LayeredIndex::leave_key() {
    for (std::size_t layer = 0; layer < kLayerCount; ++layer) {
        const auto& there = layers_[layer].change;
        if (!there || !equal(there->key, entry_.key)) continue;
        const auto stepped = step(layer);
        if (!stepped) return stepped;
    }
    return {};
}

// The next key in the direction of the search, from the newest layer that has it.
const IndexChange* LayeredIndex::nearest() const {
    const IndexChange* best = nullptr;
    for (const auto& layer : layers_) {
        if (!layer.change) continue;
        const int order = best == nullptr ? -1 : compare(layer.change->key, best->key);
        const bool nearer = direction_ == Direction::kUp ? order < 0 : order > 0;
        if (best == nullptr || nearer) best = &*layer.change;
    }
    return best;
}

Result<LayeredIndex::Found> LayeredIndex::settle() {
    for (std::uint32_t skipped = 0;; ++skipped) {
        const IndexChange* const best = nearest();
        if (best == nullptr) return Found::kNothing;
        const int order = compare(best->key, to_);
        if (direction_ == Direction::kUp ? order > 0 : order < 0) return Found::kNothing;
        if (best->value) {
            entry_ = {.key = best->key, .value = *best->value};
            return Found::kEntry;
        }
        entry_ = {.key = best->key, .value = {}};
        if (skipped == kSkipMax) return Found::kErasedKeys;
        const auto left = leave_key();
        if (!left) return std::unexpected(left.error());
    }
}

void LayeredIndex::release() {
    index_.reader().release();
    layers_ = {};
    layers_ready_ = 0;
    entry_ = {};
}

Task<Result<void>> LayeredIndex::checkpoint(std::uint64_t applied) {
    return checkpoint_of(applied, nullptr);
}

Task<Result<void>> LayeredIndex::checkpoint(ChangeLog* log) {
    return checkpoint_of(std::nullopt, log);
}

Task<Result<void>> LayeredIndex::checkpoint_of(std::optional<std::uint64_t> applied,
                                               ChangeLog* log) {
    ENSURE(!checkpointing_);
    checkpointing_ = true;
    Result<void> done{};
    if (!frozen_->empty()) done = co_await apply_frozen(log);
    if (done) {
        std::swap(active_, frozen_);
        frozen_applied_ = applied ? *applied : log->newest_change();
        done = co_await apply_frozen(log);
    }
    checkpointing_ = false;
    co_return done;
}

// Frozen changes look the same to readers before and after the index has them. Without a log
// everything is durable already.
Task<Result<void>> LayeredIndex::apply_frozen(ChangeLog* log) {
    if (log != nullptr) {
        const auto durable = co_await log->make_durable();
        if (!durable) co_return durable;
    }
    // Nothing that was found in an earlier turn is used any more.
    release();
    const Index::Step step{.changes = frozen_, .applied = frozen_applied_};
    const auto applied = co_await index_.apply(step);
    if (applied) frozen_->clear();
    if (applied) index_bytes_ = index_.figures().size_bytes;
    co_return applied;
}

}  // namespace fopd::store
