#include "sim/object_bytes.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fopd::sim {

namespace {

// This many equal bytes of a change are no coincidence.
constexpr std::size_t kTelling = 8;

std::string text(const fop::Range& range) {
    return "[" + std::to_string(range.offset) + ", " + std::to_string(range.end()) + ")";
}

bool are_zeros(std::span<const std::byte> bytes) {
    if (bytes.empty()) return true;
    return bytes.front() == std::byte{} &&
           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

bool cuts(const BookedChange& change) {
    return change.zeros && change.range.end() == fop::kOffsetMax;
}

std::uint64_t size_after(const BookedChange& change) {
    return cuts(change) ? change.range.offset : change.range.end();
}

}  // namespace

void ObjectBytes::split(std::uint64_t at) {
    const auto behind = changes_.upper_bound(at);
    const auto before = std::prev(behind);
    if (before->first != at) changes_.emplace_hint(behind, at, Changes(before->second));
}

void ObjectBytes::add(const BookedChange& change) {
    // Punching a hole does not change the size.
    if (!change.zeros || cuts(change)) sizes_.push_back(&change);
    if (change.range.length == 0) return;
    split(change.range.offset);
    split(change.range.end());
    const auto end = changes_.lower_bound(change.range.end());
    for (auto each = changes_.lower_bound(change.range.offset); each != end; ++each) {
        each->second.push_back(&change);
    }
}

void ObjectBytes::add_append(BookedChange& change) {
    change.placed = false;
    appends_.push_back(&change);
}

std::string ObjectBytes::place_append(BookedChange& change, std::uint64_t offset) {
    if (change.placed) {  // A read has shown where it is.
        if (change.range.offset == offset) return {};
        return "was seen at " + text(change.range) + ", and lies at " + std::to_string(offset);
    }
    change.placed = true;
    change.range.offset = offset;
    std::erase(appends_, &change);
    const ObjectLook look{.life = change.life, .begun = change.begun};
    const Bounds bounds = size_bounds(look);
    std::string wrong;
    if (change.range.offset < bounds.least || change.range.offset > bounds.most) {
        wrong = "lies at " + text(change.range) + ", and the object ended between " +
                std::to_string(bounds.least) + " and " + std::to_string(bounds.most);
    }
    const bool was_cut = std::ranges::any_of(sizes_, [](const auto* each) { return cuts(*each); });
    for (const BookedChange* const other : placed_) {
        const bool apart =
            other->range.end() <= change.range.offset || change.range.end() <= other->range.offset;
        if (!apart && !was_cut) wrong = "lies where another append is, at " + text(other->range);
    }
    placed_.push_back(&change);
    add(change);
    return wrong;
}

// -- the size --

// Each change that gives the object a size determines it, unless a truncation comes later.
ObjectBytes::Bounds ObjectBytes::size_bounds(const ObjectLook& look) const {
    const BookedChange known{.ended = 0,
                             .sure = 0,
                             .over = 0,
                             .state = BookedChange::State::kDone,
                             .range = {.offset = 0, .length = known_size_}};
    Bounds bounds;
    const auto look_at = [&](const BookedChange& change) {
        std::uint64_t least = size_after(change);
        std::uint64_t most = least;
        for (const BookedChange* const cut : sizes_) {
            if (cut == &change || !cuts(*cut) || !cut->may_show()) continue;
            const bool before = &change != &known && comes_before(*cut, change);
            if (!before) least = std::min(least, cut->range.offset);
            if (has_happened(*cut, look) && comes_before(change, *cut)) {
                most = std::min(most, cut->range.offset);
            }
        }
        if (&change == &known || has_happened(change, look)) {
            bounds.least = std::max(bounds.least, least);
        }
        bounds.most = std::max(bounds.most, most);
    };
    look_at(known);
    for (const BookedChange* const change : sizes_) {
        if (change->may_show()) look_at(*change);
    }
    for (const BookedChange* const append : appends_) {
        if (append->may_show()) bounds.most += append->range.length;
    }
    return bounds;
}

std::string ObjectBytes::judge_size(const ObjectLook& look, std::uint64_t size_bytes) const {
    const Bounds bounds = size_bounds(look);
    if (size_bytes >= bounds.least && size_bytes <= bounds.most) return {};
    return "has " + std::to_string(size_bytes) + " bytes instead of " +
           std::to_string(bounds.least) + " to " + std::to_string(bounds.most);
}

// -- the bytes --

std::byte ObjectBytes::known(std::uint64_t at) const {
    const auto behind = known_.upper_bound(at);
    if (behind == known_.begin()) return {};
    const auto& [offset, bytes] = *std::prev(behind);
    return at - offset < bytes.size() ? bytes[at - offset] : std::byte{};
}

bool ObjectBytes::matches_known(std::uint64_t at, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
        const auto behind = known_.upper_bound(at);
        std::size_t size = bytes.size();
        if (behind != known_.end()) size = std::min<std::uint64_t>(size, behind->first - at);
        std::span<const std::byte> expected;  // Otherwise zeros.
        if (behind != known_.begin()) {
            const auto& [offset, written] = *std::prev(behind);
            if (at - offset < written.size()) expected = std::span(written).subspan(at - offset);
        }
        if (expected.empty()) {
            if (!are_zeros(bytes.first(size))) return false;
        } else {
            size = std::min(size, expected.size());
            if (std::memcmp(bytes.data(), expected.data(), size) != 0) return false;
        }
        at += size;
        bytes = bytes.subspan(size);
    }
    return true;
}

// A null `change` stands for the known state before all changes.
bool ObjectBytes::matches(const BookedChange* change, std::uint64_t at,
                          std::span<const std::byte> bytes) const {
    if (change == nullptr) return matches_known(at, bytes);
    if (change->zeros) return are_zeros(bytes);
    return change->has(at - change->range.offset, bytes);
}

namespace {

// Visits the parts of a read between the boundaries of changes.
template <typename Map, typename Visit>
void for_each_part(const Map& changes, std::uint64_t at, std::span<const std::byte> bytes,
                   Visit visit) {
    const std::uint64_t end = at + bytes.size();
    std::uint64_t from = at;
    while (from < end) {
        const auto behind = changes.upper_bound(from);
        const std::uint64_t to = behind == changes.end() ? end : std::min(end, behind->first);
        if (!visit(from, bytes.subspan(from - at, to - from), std::prev(behind)->second)) return;
        from = to;
    }
}

}  // namespace

void ObjectBytes::witness(ObjectLook& look, std::uint64_t at, std::span<const std::byte> bytes) {
    for_each_part(changes_, at, bytes, [&](auto from, auto part, const Changes& changes) {
        if (part.size() < kTelling) return true;
        for (const BookedChange* const change : changes) {
            if (change->zeros || !change->may_show()) continue;
            if (matches(change, from, part)) look.witnessed.insert(change);
        }
        return true;
    });
}

// A null `change` stands for the known state before all changes.
bool ObjectBytes::shows(const BookedChange* change, const Changes& changes,
                        const ObjectLook& look) const {
    if (change != nullptr && !change->may_show()) return false;
    return std::ranges::none_of(changes, [&](const BookedChange* later) {
        if (later == change || !later->may_show() || !has_happened(*later, look)) return false;
        return change == nullptr || comes_before(*change, *later);
    });
}

// A change takes effect as a whole, so each part must show exactly one of its possible changes.
std::optional<std::uint64_t> ObjectBytes::find_wrong(const ObjectLook& look, std::uint64_t at,
                                                     std::span<const std::byte> bytes) const {
    std::optional<std::uint64_t> wrong;
    for_each_part(changes_, at, bytes, [&](auto from, auto part, const Changes& changes) {
        if (shows(nullptr, changes, look) && matches(nullptr, from, part)) return true;
        for (const BookedChange* const change : changes) {
            if (shows(change, changes, look) && matches(change, from, part)) return true;
        }
        wrong = from;
        return false;
    });
    return wrong;
}

bool ObjectBytes::find_append(ObjectLook& look, std::uint64_t at,
                              std::span<const std::byte> bytes) {
    struct Written {
        BookedChange* append;
        std::vector<std::byte> bytes;
    };
    std::vector<Written> all;
    for (BookedChange* const append : appends_) {
        if (!append->may_show()) continue;
        std::vector<std::byte> written(append->range.length);
        append->fill(written);
        all.push_back({.append = append, .bytes = std::move(written)});
    }
    for (std::size_t first = 0; first + kTelling <= bytes.size(); ++first) {
        const auto some = bytes.subspan(first, kTelling);
        for (const Written& each : all) {
            const auto found =
                std::search(each.bytes.begin(), each.bytes.end(), some.begin(), some.end());
            const auto index = static_cast<std::uint64_t>(found - each.bytes.begin());
            // The append cannot have begun before the object.
            if (found == each.bytes.end() || index > at + first) continue;
            look.witnessed.insert(each.append);
            [[maybe_unused]] const auto may_be = place_append(*each.append, at + first - index);
            return true;
        }
    }
    return false;
}

bool ObjectBytes::may_be_append(const ObjectLook& look, std::uint64_t at,
                                std::span<const std::byte> bytes) const {
    for (const BookedChange* const append : appends_) {
        if (!append->may_show()) continue;
        const std::uint64_t before = std::min(at, append->range.length - 1);
        for (std::uint64_t offset = at - before; offset < at + bytes.size(); ++offset) {
            ObjectBytes supposed = *this;
            BookedChange placed = *append;
            std::erase(supposed.appends_, append);
            const std::string wrong = supposed.place_append(placed, offset);
            if (wrong.empty() && !supposed.find_wrong(look, at, bytes)) return true;
        }
    }
    return false;
}

std::string ObjectBytes::explain(const ObjectLook& look, std::uint64_t at, std::byte found) const {
    const auto number = [](std::byte byte) { return std::to_string(static_cast<unsigned>(byte)); };
    const Changes& changes = std::prev(changes_.upper_bound(at))->second;
    std::string words = "byte " + std::to_string(at) + " is " + number(found);
    words += "; before all changes it was " + number(known(at));
    if (shows(nullptr, changes, look)) words += " (may show)";
    for (const BookedChange* const change : changes) {
        words += "; change " + std::to_string(change->number) + " of life " +
                 std::to_string(change->life) + " at " + text(change->range) + ": ";
        words += change->zeros ? "zero" : number(change->byte_at(at - change->range.offset));
        words += shows(change, changes, look) ? " (may show)" : "";
        words += has_happened(*change, look) ? " (has happened)" : "";
        words += change->buffered ? " (buffered)" : "";
    }
    return words;
}

std::string ObjectBytes::judge(ObjectLook& look, const fop::Range& range,
                               std::span<const std::byte> bytes) {
    std::optional<std::uint64_t> wrong;
    do {
        witness(look, range.offset, bytes);
        wrong = find_wrong(look, range.offset, bytes);
    } while (wrong && find_append(look, *wrong, bytes.subspan(*wrong - range.offset)));
    if (wrong && !may_be_append(look, *wrong, bytes.subspan(*wrong - range.offset))) {
        // Finds the first wrong byte of the part.
        const Changes& changes = std::prev(changes_.upper_bound(*wrong))->second;
        std::uint64_t at = *wrong;
        const auto may_be = [&](std::uint64_t where) {
            const std::span one = bytes.subspan(where - range.offset, 1);
            if (shows(nullptr, changes, look) && matches(nullptr, where, one)) return true;
            return std::ranges::any_of(changes, [&](const BookedChange* change) {
                return shows(change, changes, look) && matches(change, where, one);
            });
        };
        while (at + 1 < range.offset + bytes.size() && may_be(at)) ++at;
        return explain(look, at, bytes[at - range.offset]);
    }
    const Bounds bounds = size_bounds(look);
    const std::uint64_t end = range.offset + bytes.size();
    const bool reaches = bytes.empty() || end <= bounds.most;
    const bool short_of = bytes.size() < range.length && end < bounds.least;
    if (reaches && !short_of) return {};
    return "ends at " + std::to_string(end) + " instead of between " +
           std::to_string(bounds.least) + " and " + std::to_string(bounds.most);
}

// -- the known bytes --

std::vector<fop::Range> ObjectBytes::written_ranges() const {
    std::vector<fop::Range> ranges;
    for (const auto& [offset, bytes] : known_) {
        ranges.push_back({.offset = offset, .length = bytes.size()});
    }
    ranges.push_back({.offset = known_size_, .length = 0});
    for (const BookedChange* const change : sizes_) {
        ranges.push_back(cuts(*change) ? fop::Range{.offset = change->range.offset, .length = 0}
                                       : change->range);
    }
    // An append with an unknown offset is after any of these, or after another append.
    std::uint64_t behind = 0;
    for (const BookedChange* const append : appends_) behind += append->range.length;
    for (fop::Range& range : ranges) range.length += behind;
    return ranges;
}

void ObjectBytes::settle(std::uint64_t size_bytes) {
    known_size_ = size_bytes;
    known_.clear();
    changes_.clear();
    changes_[0] = {};
    sizes_.clear();
    appends_.clear();
    placed_.clear();
}

void ObjectBytes::settle(std::uint64_t offset, std::span<const std::byte> bytes) {
    known_[offset] = {bytes.begin(), bytes.end()};
}

}  // namespace fopd::sim
