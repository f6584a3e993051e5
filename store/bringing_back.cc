#include "store/bringing_back.h"

#include <algorithm>

namespace fopd::store {

void BringingBack::add(BlockRange range) {
    if (range.count == 0) return;
    const auto touches = [&range](const BlockRange& each) {
        return each.first <= range.end() && range.first <= each.end();
    };
    const auto first = std::ranges::find_if(there_, touches);
    auto last = first;
    for (; last != there_.end() && touches(*last); ++last) {
        const std::uint64_t begin = std::min(range.first, last->first);
        range = {.first = begin, .count = std::max(range.end(), last->end()) - begin};
    }
    there_.erase(first, last);
    const auto at = std::ranges::find_if(
        there_, [&range](const BlockRange& each) { return each.first > range.first; });
    there_.insert(at, range);
}

BlockRange BringingBack::missing() const {
    const std::uint64_t begin =
        there_.empty() || there_.front().first > 0 ? 0 : there_.front().end();
    if (begin >= blocks()) return {};
    const auto next = std::ranges::find_if(
        there_, [begin](const BlockRange& each) { return each.first > begin; });
    const std::uint64_t end = next == there_.end() ? blocks() : std::min(next->first, blocks());
    return {.first = begin, .count = end - begin};
}

bool BringingBack::is_complete() const {
    return missing().count == 0;
}

}  // namespace fopd::store
