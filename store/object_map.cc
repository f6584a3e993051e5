#include "store/object_map.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::store {

using Found = LayeredIndex::Found;

namespace {

// An extent that holds a block begins no further before it.
constexpr std::uint64_t kReachBlocks = kExtentBlocksMax - 1;

std::uint64_t reach_before(std::uint64_t block) {
    return block - std::min(block, kReachBlocks);
}

Result<StoredExtent> extent_of(const IndexEntry& entry) {
    return read_extent(entry.key, entry.value);
}

std::unexpected<Error> overlap() {
    return std::unexpected(
        Error{.code = Errc::kCorrupt, .context = "extents overlap in the index"});
}

// The checksums of the first blocks of an extent.
Bytes checksums_to(const StoredExtent& extent, std::uint64_t end) {
    return extent.checksums.first((end - extent.first) * sizeof(std::uint32_t));
}

Bytes checksums_behind(const StoredExtent& extent, std::uint64_t begin) {
    return extent.checksums_from(static_cast<std::uint32_t>(begin - extent.first));
}

// Where the part of an extent within a range lies on the disk.
DiskRange disk_range(const StoredExtent& extent, BlockRange range) {
    const auto first = std::max(extent.first, range.first);
    const auto end = std::min(extent.end(), range.end());
    return {.block = extent.block + (first - extent.first),
            .count = static_cast<std::uint32_t>(end - first)};
}

// The part of the range that an object can have.
BlockRange within_object(BlockRange range) {
    ENSURE(range.first <= kObjectBlocksMax);
    range.count = std::min(range.count, kObjectBlocksMax - range.first);
    return range;
}

}  // namespace

ObjectMap::ObjectMap(core::Reactor& reactor, LayeredIndex& index)
    : reactor_(reactor), index_(index), cleared_(index), copies_(index) {}

// -- objects, uploads, replies --

Result<std::optional<Object>> ObjectMap::find(Fid fid) {
    const auto value = index_.get(Key::object(fid));
    if (!value) return std::unexpected(value.error());
    if (!*value) return std::nullopt;
    return read_object(**value);
}

Result<void> ObjectMap::put(Fid fid, const Object& object) {
    // Written first, because the texts may be lent by the index.
    const Bytes value = write_object(middle_, object);
    const auto dead = copies_.find_dead_of(fid, object);
    if (!dead) return dead;
    if (object.is_released) may_have_released_ = true;
    index_.put(Key::object(fid), value);
    copies_.erase_found();
    return {};
}

Result<std::optional<Upload>> ObjectMap::find_upload(Fid fid) {
    const auto value = index_.get(Key::upload(fid));
    if (!value) return std::unexpected(value.error());
    if (!*value) return std::nullopt;
    return read_upload(**value);
}

void ObjectMap::put_upload(Fid fid, const Upload& upload) {
    index_.put(Key::upload(fid), write_upload(middle_, upload));
}

Result<void> ObjectMap::commit_upload(Fid fid, const Object& object) {
    const auto put_there = put(fid, object);
    if (put_there) index_.erase(Key::upload(fid));
    return put_there;
}

Result<void> ObjectMap::remove(Fid fid) {
    const auto found = copies_.find_of(fid);
    if (!found) return found;
    const auto recall = index_.get(Key::recall(fid));
    if (!recall) return std::unexpected(recall.error());
    if (*recall) index_.erase(Key::recall(fid));
    copies_.erase_found();
    index_.erase(Key::object(fid));
    index_.erase(Key::upload(fid));
    cleared_.add_all(fid);
    return {};
}

Result<std::optional<Recall>> ObjectMap::find_recall(Fid fid) {
    const auto value = index_.get(Key::recall(fid));
    if (!value) return std::unexpected(value.error());
    if (!*value) return std::nullopt;
    return read_recall(**value);
}

void ObjectMap::put_recall(Fid fid, const Recall& recall) {
    index_.put(Key::recall(fid), write_recall(middle_, recall));
}

Result<std::optional<ReplyRecord>> ObjectMap::find_reply(const ReplyKey& key) {
    const Key where = Key::reply(key);
    const auto value = index_.get(where);
    if (!value) return std::unexpected(value.error());
    if (!*value) return std::nullopt;
    return read_reply(where, **value);
}

Result<std::uint64_t> ObjectMap::newest_request(const ReplyKey& key) {
    if (const auto known = reply_places_.find(key)) return *known;
    const auto there = find_reply(key);
    if (!there) return std::unexpected(there.error());
    const std::uint64_t newest = there->has_value() ? (*there)->key.request_number : 0;
    reply_places_.set(key, newest);
    return newest;
}

Result<void> ObjectMap::put_reply(const ReplyRecord& record) {
    const auto newest = newest_request(record.key);
    if (!newest) return std::unexpected(newest.error());
    if (*newest > record.key.request_number) return {};
    index_.put(Key::reply(record.key), write_reply(middle_, record));
    reply_places_.set(record.key, record.key.request_number);
    return {};
}

void ObjectMap::forget_reply(const ReplyKey& key) {
    index_.erase(Key::reply(key));
    reply_places_.set(key, 0);
}

Result<std::uint64_t> ObjectMap::newest_name() {
    const auto value = index_.get(Key::names());
    if (!value) return std::unexpected(value.error());
    if (!*value) return 0;
    return read_newest_name(**value);
}

void ObjectMap::put_newest_name(std::uint64_t seq) {
    index_.put(Key::names(), write_newest_name(middle_, seq));
}

// -- reading extents --

ObjectMap::Extents::Extents(ObjectMap& map, Fid fid, BlockRange range, bool with_parts)
    : map_(map),
      fid_(fid),
      range_(range),
      is_checked_(with_parts || range.count == 0 || !map.may_have_released_),
      state_(State::kBefore),
      next_(range.first),
      to_(Key::first_of(KeyKind::kExtent)) {
    ENSURE(range.count <= kReadBlocksMax);
    ENSURE(range.first <= kObjectBlocksMax - range.count);
}

Result<void> ObjectMap::Extents::check_released() const {
    const auto object = map_.find(fid_);
    if (!object) return std::unexpected(object.error());
    if (!object->has_value() || !(*object)->is_released) return {};
    return std::unexpected(
        Error{.code = Errc::kBusy, .context = "the bytes of the object are not on the disk"});
}

// Goes through the parts between cleared ranges: in each, first the extent that holds the first
// block, if there is one, then the extents that begin in the part.
Result<std::optional<Extent>> ObjectMap::Extents::next() {
    LayeredIndex& index = map_.index_;
    if (!std::exchange(is_checked_, true)) {
        const auto checked = check_released();
        if (!checked) return std::unexpected(checked.error());
    }
    while (state_ != State::kEnd) {
        if (state_ == State::kBefore) {
            const auto begun = begin_part();
            if (!begun) return std::unexpected(begun.error());
            if (!*begun) break;
            const auto extent = holding_first();
            if (!extent) return std::unexpected(extent.error());
            if (*extent) return cut(**extent);
            next_ = part_.first + 1;
        }
        if (next_ >= part_.end()) {
            next_ = part_.end();
            state_ = State::kBefore;
            continue;
        }
        const auto found =
            index.past_erased(state_ == State::kFirst
                                  ? index.at_or_after({.from = Key::extent(fid_, next_), .to = to_})
                                  : index.next());
        state_ = State::kWithin;
        if (!found) return std::unexpected(found.error());
        if (*found == Found::kNothing) {
            next_ = part_.end();
            state_ = State::kBefore;
            continue;
        }
        const auto extent = extent_of(index.entry());
        if (!extent) return std::unexpected(extent.error());
        if (extent->first < next_) return overlap();
        return cut(*extent);
    }
    state_ = State::kEnd;
    return std::nullopt;
}

// Begins the part from the end of the last one to the next cleared range. False at the end.
Result<bool> ObjectMap::Extents::begin_part() {
    state_ = State::kFirst;
    while (next_ < range_.end()) {
        part_ = {.first = next_, .count = range_.end() - next_};
        const auto cleared = map_.cleared_.next(fid_, next_);
        if (!cleared) return std::unexpected(cleared.error());
        const bool is_whole = !*cleared || (*cleared)->first >= range_.end();
        if (!is_whole && (*cleared)->first <= next_) {
            next_ = (*cleared)->end;
            continue;
        }
        if (!is_whole) part_.count = (*cleared)->first - next_;
        to_ = Key::extent(fid_, part_.end() - 1);
        return true;
    }
    return false;
}

Result<std::optional<StoredExtent>> ObjectMap::Extents::holding_first() {
    LayeredIndex& index = map_.index_;
    const auto from = Key::extent(fid_, part_.first);
    const auto to = Key::extent(fid_, reach_before(part_.first));
    const auto found = index.past_erased(index.at_or_before({.from = from, .to = to}));
    if (!found) return std::unexpected(found.error());
    if (*found == Found::kNothing) return std::nullopt;
    const auto extent = extent_of(index.entry());
    if (!extent) return std::unexpected(extent.error());
    if (extent->end() <= part_.first) return std::nullopt;
    return *extent;
}

Extent ObjectMap::Extents::cut(const StoredExtent& extent) {
    const auto first = std::max(extent.first, part_.first);
    const DiskRange on_disk = disk_range(extent, part_);
    const auto checksums = std::span(checksums_).first(on_disk.count);
    extent.copy_checksums(static_cast<std::uint32_t>(first - extent.first), checksums);
    next_ = first + on_disk.count;
    return {.first = first, .block = on_disk.block, .checksums = checksums};
}

Result<ObjectMap::Counted> ObjectMap::count(Fid fid, BlockRange range, std::uint32_t steps_max) {
    range = within_object(range);
    const ReleaseAtEnd release(index_);
    const auto cleared = cleared_.next(fid, range.first);
    if (!cleared) return std::unexpected(cleared.error());
    if (!*cleared || (*cleared)->first >= range.end()) return count_all(fid, range, steps_max);
    if ((*cleared)->first <= range.first) {
        const auto next = std::min((*cleared)->end, range.end());
        return Counted{.next = next, .finished = next == range.end(), .met_cleared = true};
    }
    const BlockRange part{.first = range.first, .count = (*cleared)->first - range.first};
    auto counted = count_all(fid, part, steps_max);
    if (counted) counted->finished = false;
    return counted;
}

Result<ObjectMap::Counted> ObjectMap::count_all(Fid fid, BlockRange range,
                                                std::uint32_t steps_max) {
    range = within_object(range);
    const ReleaseAtEnd release(index_);
    Counted counted{.next = range.end(), .finished = true};
    if (range.count == 0) return counted;
    Around around;
    const auto before = find_left(fid, range, around);
    if (!before) return std::unexpected(before.error());
    auto next = range.first;
    if (around.left) next = std::min(around.left->end(), range.end());
    counted.blocks = next - range.first;
    if (next == range.end()) return counted;
    const Key to = Key::extent(fid, range.end() - 1);
    auto found = index_.at_or_after({.from = Key::extent(fid, next), .to = to});
    for (std::uint32_t steps = 0;; ++steps) {
        if (!found) return std::unexpected(found.error());
        if (*found == Found::kNothing) return counted;
        if (steps == steps_max) break;
        if (*found == Found::kEntry) {
            const auto extent = extent_of(index_.entry());
            if (!extent) return std::unexpected(extent.error());
            counted.blocks += disk_range(*extent, range).count;
            next = std::min(extent->end(), range.end());
        } else {
            const auto key = read_extent_key(index_.entry().key);
            if (!key) return std::unexpected(key.error());
            next = key->first + 1;
        }
        found = index_.next();
    }
    counted.next = next;
    counted.finished = false;
    return counted;
}

// -- cleared ranges --

Result<void> ObjectMap::clear(Fid fid, BlockRange range) {
    range = within_object(range);
    if (range.count == 0) return {};
    const ReleaseAtEnd release(index_);
    return cleared_.add(fid, range);
}

Result<void> ObjectMap::forget_cleared(Fid fid, BlockRange hole) {
    hole = within_object(hole);
    if (hole.count == 0) return {};
    const ReleaseAtEnd release(index_);
    const auto found = cleared_.find(fid, hole);
    if (!found) return found;
    cleared_.cut(hole);
    return {};
}

// -- changing extents: first everything is looked at, then everything is changed --

Result<std::uint64_t> ObjectMap::insert(Fid fid, const Extent& extent,
                                        std::vector<DiskRange>& freed) {
    ENSURE(extent.count() > 0);
    ENSURE(extent.count() <= kExtentBlocksMax);
    ENSURE(extent.first <= kObjectBlocksMax - extent.count());
    const BlockRange range{.first = extent.first, .count = extent.count()};
    const ReleaseAtEnd release(index_);
    const auto cleared = cleared_.find(fid, range);
    if (!cleared) return std::unexpected(cleared.error());
    const auto around = find_around(fid, range);
    if (!around) return std::unexpected(around.error());
    const auto had = count_overlapping(*around, range);

    const auto checksums = std::as_bytes(extent.checksums);
    const auto& left = around->left;
    const auto ahead = left ? extent.first - left->first : 0;
    const bool joins =
        left && left->block + ahead == extent.block && ahead + extent.count() <= kExtentBlocksMax;
    const bool cuts_left = left && !joins && left->end() > extent.first;
    // The values are made before the first change, which ends the view of the index.
    const auto kept = left ? checksums_to(*left, extent.first) : Bytes{};
    const auto cut_left = cuts_left ? write_extent(left_, left->block, kept) : Bytes{};
    const auto whole = joins ? write_extent(middle_, left->block, kept, checksums)
                             : write_extent(middle_, extent.block, checksums);
    const auto begin = joins ? left->first : extent.first;

    put_right(fid, range, around->right);
    for (const auto& overlap : std::span(overlaps_).first(around->overlap_count)) {
        // A replay may insert an extent that is there already.
        const auto skipped = std::max(overlap.first, extent.first) - extent.first;
        if (overlap.on_disk.block != extent.block + skipped) freed.push_back(overlap.on_disk);
        // The keys written below need no erasure.
        const bool stays = overlap.first < extent.first || overlap.first == begin;
        if (!stays) index_.erase(Key::extent(fid, overlap.first));
    }
    if (cuts_left) index_.put(Key::extent(fid, left->first), cut_left);
    index_.put(Key::extent(fid, begin), whole);
    cleared_.cut(range);
    return range.count - had;
}

// How many blocks of the range the object has, without cleared ones.
std::uint64_t ObjectMap::count_overlapping(const Around& around, BlockRange range) const {
    std::uint64_t blocks = 0;
    for (const auto& overlap : std::span(overlaps_).first(around.overlap_count)) {
        const auto first = std::max(overlap.first, range.first);
        const auto end = first + overlap.on_disk.count;
        blocks += overlap.on_disk.count;
        for (const Cleared& each : cleared_.found()) {
            const auto from = std::max(first, each.first);
            const auto to = std::min(end, each.end);
            if (from < to) blocks -= to - from;
        }
    }
    return blocks;
}

// The extents that a range overlaps, backwards down to the one that begins before it.
Result<ObjectMap::Around> ObjectMap::find_around(Fid fid, BlockRange range) {
    Around around;
    const auto from = Key::extent(fid, range.end() - 1);
    const auto to = Key::extent(fid, reach_before(range.first));
    auto found = index_.at_or_before({.from = from, .to = to});
    for (std::uint64_t end = kObjectBlocksMax; found && *found != Found::kNothing;
         found = index_.next()) {
        if (*found == Found::kErasedKeys) continue;
        const auto extent = extent_of(index_.entry());
        if (!extent) return std::unexpected(extent.error());
        if (extent->end() > end) return overlap();
        end = extent->first;
        if (extent->end() > range.first) note_overlapped(*extent, range, around);
        if (extent->first < range.first) {
            if (extent->end() >= range.first) around.left = *extent;
            break;
        }
    }
    if (!found) return std::unexpected(found.error());
    return around;
}

void ObjectMap::note_overlapped(const StoredExtent& extent, BlockRange range, Around& around) {
    ENSURE(around.overlap_count < overlaps_.size());
    overlaps_[around.overlap_count++] = {.first = extent.first,
                                         .on_disk = disk_range(extent, range)};
    if (extent.end() > range.end()) {
        around.right = write_extent(right_, extent.block + (range.end() - extent.first),
                                    checksums_behind(extent, range.end()));
    }
}

void ObjectMap::put_right(Fid fid, BlockRange range, const std::optional<Bytes>& value) {
    if (value) index_.put(Key::extent(fid, range.end()), *value);
}

Result<ObjectMap::Punched> ObjectMap::punch(Fid fid, BlockRange range, std::uint32_t steps_max,
                                            std::vector<DiskRange>& freed) {
    ENSURE(steps_max > 0);
    range = within_object(range);
    if (range.count == 0) return Punched{.next = range.first, .finished = true};

    const ReleaseAtEnd release(index_);
    Around around;
    const auto before = find_left(fid, range, around);
    if (!before) return std::unexpected(before.error());
    const auto cut_left = around.left ? write_extent(left_, around.left->block,
                                                     checksums_to(*around.left, range.first))
                                      : Bytes{};
    const auto punched = find_within(fid, range, steps_max, around);
    if (!punched) return std::unexpected(punched.error());

    put_right(fid, range, around.right);
    for (const auto& overlap : std::span(overlaps_).first(around.overlap_count)) {
        freed.push_back(overlap.on_disk);
        if (overlap.first >= range.first) index_.erase(Key::extent(fid, overlap.first));
    }
    if (around.left) index_.put(Key::extent(fid, around.left->first), cut_left);
    return punched;
}

// The extent that begins before a range and reaches into it.
Result<void> ObjectMap::find_left(Fid fid, BlockRange range, Around& around) {
    if (range.first == 0) return {};
    const auto from = Key::extent(fid, range.first - 1);
    const auto to = Key::extent(fid, reach_before(range.first));
    const auto found = index_.past_erased(index_.at_or_before({.from = from, .to = to}));
    if (!found) return std::unexpected(found.error());
    if (*found == Found::kNothing) return {};
    const auto extent = extent_of(index_.entry());
    if (!extent) return std::unexpected(extent.error());
    if (extent->end() <= range.first) return {};
    around.left = *extent;
    note_overlapped(*extent, range, around);
    return {};
}

// The extents that begin in a range, up to the limit of steps.
Result<ObjectMap::Punched> ObjectMap::find_within(Fid fid, BlockRange range,
                                                  std::uint32_t steps_max, Around& around) {
    const Punched whole{.next = range.end(), .finished = true};
    auto next = range.first;
    if (around.left) next = std::min(around.left->end(), range.end());
    if (next == range.end()) return whole;
    const auto count_max = std::min<std::size_t>(steps_max, overlaps_.size());
    const auto from = Key::extent(fid, next);
    const auto to = Key::extent(fid, range.end() - 1);
    for (auto found = index_.at_or_after({.from = from, .to = to});; found = index_.next()) {
        if (!found) return std::unexpected(found.error());
        if (*found == Found::kNothing) return whole;
        if (*found == Found::kErasedKeys) {
            const auto key = read_extent_key(index_.entry().key);
            if (!key) return std::unexpected(key.error());
            return Punched{.next = key->first + 1, .finished = key->first + 1 == range.end()};
        }
        if (around.overlap_count == count_max) return Punched{.next = next, .finished = false};
        const auto extent = extent_of(index_.entry());
        if (!extent) return std::unexpected(extent.error());
        if (extent->first < next) return overlap();
        note_overlapped(*extent, range, around);
        next = std::min(extent->end(), range.end());
    }
}

Result<std::optional<ObjectMap::Swept>> ObjectMap::sweep(std::uint32_t steps_max,
                                                         std::vector<DiskRange>& freed) {
    const ReleaseAtEnd release(index_);
    const auto first = cleared_.first();
    if (!first) return std::unexpected(first.error());
    if (!*first) return std::nullopt;
    const Cleared cleared = (*first)->range;
    if ((*first)->is_erased) return Swept{.fid = cleared.fid};

    const BlockRange rest{.first = cleared.first, .count = cleared.end - cleared.first};
    const auto punched = punch(cleared.fid, rest, steps_max, freed);
    if (!punched) return std::unexpected(punched.error());
    cleared_.shorten(cleared, punched->finished ? cleared.end : punched->next);
    return Swept{.fid = cleared.fid,
                 .range = {.first = rest.first, .count = punched->next - rest.first}};
}

}  // namespace fopd::store
