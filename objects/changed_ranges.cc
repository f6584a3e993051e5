#include "objects/changed_ranges.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/ensure.h"

namespace fopd::objects {

namespace {

// Means several writers: no real id is zero.
constexpr ChangedRanges::Writer kSeveral{};

}  // namespace

ChangedRanges::ChangedRanges(const Life& life, const Limits& limits)
    : life_(life), limits_(limits) {
    ENSURE(life_.incarnation <= std::numeric_limits<std::uint32_t>::max());
    ENSURE(limits_.of_object < limits_.in_all);
}

std::uint32_t ChangedRanges::last_by_others(const store::LastWriter& record,
                                            const Writer& writer) const {
    // A record without an incarnation was written before this incarnation began.
    if (record.incarnation == 0) return static_cast<std::uint32_t>(life_.incarnation - 1);
    return record.who == writer ? record.others_in : record.incarnation;
}

store::LastWriter ChangedRanges::last_writer(const store::LastWriter& before,
                                             const Writer& writer) const {
    return {.incarnation = static_cast<std::uint32_t>(life_.incarnation),
            .others_in = last_by_others(before, writer),
            .who = writer};
}

bool ChangedRanges::may_be_newer(const Change& change, std::uint64_t lost_in) const {
    if (lost_in >= life_.incarnation || lost_in < life_.first_known) return true;
    if (last_by_others(change.before, change.writer) <= lost_in) return false;
    const auto object = objects_.find(change.fid);
    if (object == objects_.end()) return true;
    if (last_by_others(object->second.before, change.writer) > lost_in) return true;
    const Parts& parts = object->second.parts;
    auto part = parts.upper_bound(change.range.offset);
    if (part != parts.begin() && std::prev(part)->second.end > change.range.offset) --part;
    for (; part != parts.end() && part->first < change.range.end(); ++part) {
        if (part->second.writer != change.writer) return true;
    }
    return false;
}

void ChangedRanges::add(const Change& change) {
    if (change.range.length == 0) return;
    const auto [at, is_new] = objects_.try_emplace(change.fid);
    Object& object = at->second;
    if (is_new) {
        object.before = change.before;
        object.by_age = by_age_.insert(by_age_.end(), change.fid);
        ++size_;
    } else {
        by_age_.splice(by_age_.end(), by_age_, object.by_age);
    }
    size_ -= object.parts.size();
    mark(object.parts, change.range, change.writer);
    if (object.parts.size() > limits_.of_object) {
        object.parts.clear();
        object.parts[0] = {.end = fop::kOffsetMax, .writer = kSeveral};
    }
    size_ += object.parts.size();
    // A forgotten object's record still says that it was changed in this incarnation.
    while (size_ > limits_.in_all) forget(by_age_.front());
}

void ChangedRanges::forget(store::Fid fid) {
    const auto object = objects_.find(fid);
    if (object == objects_.end()) return;
    size_ -= object->second.parts.size() + 1;
    by_age_.erase(object->second.by_age);
    objects_.erase(object);
}

void ChangedRanges::mark(Parts& parts, const fop::Range& range, const Writer& writer) {
    split(parts, range.offset);
    split(parts, range.end());
    auto part = parts.lower_bound(range.offset);
    for (std::uint64_t at = range.offset; at < range.end();) {
        if (part == parts.end() || part->first > at) {
            const std::uint64_t end =
                part == parts.end() ? range.end() : std::min(range.end(), part->first);
            part = parts.emplace_hint(part, at, Part{.end = end, .writer = writer});
        } else if (part->second.writer != writer) {
            part->second.writer = kSeveral;
        }
        at = part->second.end;
        part = std::next(join(parts, part));
    }
    if (part != parts.end()) join(parts, part);
}

void ChangedRanges::split(Parts& parts, std::uint64_t at) {
    const auto behind = parts.upper_bound(at);
    if (behind == parts.begin()) return;
    const auto part = std::prev(behind);
    if (part->first == at || part->second.end <= at) return;
    parts.emplace_hint(behind, at, part->second);
    part->second.end = at;
}

// Merges the part with the one before it, if they are adjacent and have the same writer.
ChangedRanges::Parts::iterator ChangedRanges::join(Parts& parts, Parts::iterator part) {
    if (part == parts.begin()) return part;
    const auto before = std::prev(part);
    const bool is_one =
        before->second.end == part->first && before->second.writer == part->second.writer;
    if (!is_one) return part;
    before->second.end = part->second.end;
    parts.erase(part);
    return before;
}

}  // namespace fopd::objects
