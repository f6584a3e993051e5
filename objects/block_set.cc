#include "objects/block_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fopd::objects {

std::uint64_t BlockSet::count() const {
    std::uint64_t blocks = 0;
    for (const store::BlockRange& each : ranges_) blocks += each.count;
    return blocks;
}

// Ranges that the new one overlaps or touches become one with it.
void BlockSet::add(store::BlockRange range) {
    if (range.count == 0) return;
    if (ranges_.empty() || ranges_.back().end() < range.first) {
        ranges_.push_back(range);
        return;
    }
    const auto from = std::ranges::find_if(
        ranges_, [&range](const store::BlockRange& each) { return each.end() >= range.first; });
    const auto to = std::find_if(from, ranges_.end(), [&range](const store::BlockRange& each) {
        return each.first > range.end();
    });
    store::BlockRange joined = range;
    if (from != to) {
        joined.first = std::min(range.first, from->first);
        joined.count = std::max(range.end(), std::prev(to)->end()) - joined.first;
    }
    const auto at = ranges_.erase(from, to);
    ranges_.insert(at, joined);
}

BlockSet BlockSet::take(const BlockSet& blocks) {
    BlockSet taken;
    // Most sets of one object are apart.
    const bool is_apart = empty() || blocks.empty() ||
                          ranges_.back().end() <= blocks.ranges_.front().first ||
                          blocks.ranges_.back().end() <= ranges_.front().first;
    if (is_apart) return taken;
    std::vector<store::BlockRange> left;
    auto other = blocks.ranges_.begin();
    const auto last = blocks.ranges_.end();
    for (const store::BlockRange& each : ranges_) {
        std::uint64_t at = each.first;
        while (other != last && other->end() <= at) ++other;
        // The last one that overlaps `each` may overlap the next range, too.
        for (auto next = other; next != last && next->first < each.end(); ++next) {
            const std::uint64_t first = std::max(at, next->first);
            const std::uint64_t end = std::min(each.end(), next->end());
            if (first > at) left.push_back({.first = at, .count = first - at});
            taken.ranges_.push_back({.first = first, .count = end - first});
            at = end;
        }
        if (at < each.end()) left.push_back({.first = at, .count = each.end() - at});
    }
    ranges_ = std::move(left);
    return taken;
}

}  // namespace fopd::objects
