// Writes zeros into blocks that were never written, before the log reaches them, so that commits do
// not wait for slow first writes. A failed write is ignored here: the log meets it again when it
// writes an entry there.

#include <algorithm>

#include "store/log.h"

namespace fopd::store {

namespace {

constexpr std::uint64_t kAheadBytes = 16ULL << 20;
// The segments before a held one have room for everything that is promised then.
constexpr std::size_t kDistanceMin = 3;

}  // namespace

// Fills the segments where the log begins to write, during the start.
Task<void> Log::fill_head() {
    if (!options_.fills_holes || !filler_.is_of_use()) co_return;
    const std::vector<LogSegment>& segments = space_.segments();
    std::uint32_t first_block = space_.head_block();
    for (std::size_t i = space_.head(); i < segments.size() && i < space_.head() + kDistanceMin;
         ++i, first_block = 0) {
        const LogPosition from{.segment = segments[i].number, .block = first_block};
        const std::uint64_t blocks = options_.segment_blocks - first_block;
        const auto filled =
            co_await filler_.fill({.offset = byte_offset(from, options_.segment_blocks),
                                   .size_bytes = blocks * devices::kBlockBytes});
        if (!filled) co_return;
    }
}

// The next segment that is not known to be filled.
std::optional<std::size_t> Log::segment_to_fill() const {
    const std::vector<LogSegment>& segments = space_.segments();
    const std::size_t ahead = std::max<std::size_t>(
        kDistanceMin, kAheadBytes / (options_.segment_blocks * devices::kBlockBytes));
    const std::size_t end = std::min(segments.size(), space_.head() + ahead + 1);
    for (std::size_t i = space_.head() + kDistanceMin; i < end; ++i) {
        if (!filled_.contains(segments[i].number)) return i;
    }
    return std::nullopt;
}

void Log::fill_ahead() {
    if (filling_ || !options_.fills_holes || !filler_.is_of_use() || !segment_to_fill()) return;
    filling_ = true;
    spawn(fill_ahead_until_done());
}

// The segment is held meanwhile: the log does not enter it, and promises no room behind it.
Task<void> Log::fill_ahead_until_done() {
    while (failed() == nullptr && !is_closing()) {
        const std::optional<std::size_t> index = segment_to_fill();
        if (!index || !space_.hold(*index)) break;
        const std::uint32_t segment = space_.segments()[*index].number;
        const auto filled = co_await filler_.fill(
            {.offset = byte_offset({.segment = segment}, options_.segment_blocks),
             .size_bytes = options_.segment_blocks * devices::kBlockBytes});
        space_.end_hold();
        wake_room();
        if (!filled || !*filled) break;
        filled_.insert(segment);
    }
    filling_ = false;
}

}  // namespace fopd::store
