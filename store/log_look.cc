// Looking through a log while it is written to, and cleaned.

#include <algorithm>

#include "store/log.h"

namespace fopd::store {

Task<Result<void>> Log::look_through(LogVisitor* visitor, core::WaitOptions wait) {
    if (damage_.first_seq != 0) {
        visitor->fault({.reason = "entries of the log were found damaged",
                        .first_seq = damage_.first_seq,
                        .last_seq = damage_.last_seq});
    }
    co_await look_at_superblocks(visitor);
    EntryReader reader(background_, reader_options());
    reader.read_from(background_, wait);
    const auto allocated = reader.allocate();
    if (!allocated) co_return allocated;
    const std::uint64_t end_seq = durable_seq();
    std::uint64_t seq = space_.segments().front().first_seq;
    while (const std::optional<Stretch> stretch = stretch_with(seq, end_seq)) {
        const auto looked = co_await look_at_segment(visitor, &reader, *stretch);
        if (!looked) co_return looked;
        seq = stretch->last_seq + 1;
    }
    co_return Result<void>{};
}

// A log that serves has written both copies, and they say the same.
Task<void> Log::look_at_superblocks(LogVisitor* visitor) {
    co_await lock_superblock();
    for (unsigned copy = 0; copy < SuperblockCopies::kCount; ++copy) {
        const auto read = co_await copies_.read_copy(copy, options_.disk_id);
        const std::uint64_t block = SuperblockCopies::block_of(copy);
        if (!read) {
            visitor->fault({.reason = read.error().context, .block = block});
        } else if (is_serving() && failed() == nullptr && read->generation != generation_) {
            visitor->fault({.reason = "a superblock that is not the newest", .block = block});
        }
    }
    unlock_superblock();
}

// The segment that holds the entry `seq`, and its last entry up to `end_seq`. If the entry was
// cleaned away, the oldest segment.
std::optional<Log::Stretch> Log::stretch_with(std::uint64_t seq, std::uint64_t end_seq) const {
    const std::vector<LogSegment>& segments = space_.segments();
    seq = std::max(seq, segments.front().first_seq);
    if (seq > end_seq) return std::nullopt;
    std::size_t index = 0;
    while (index < space_.head() && segments[index + 1].first_seq <= seq) ++index;
    Stretch stretch{.segment = segments[index], .last_seq = end_seq};
    if (index < space_.head()) {
        stretch.last_seq = std::min(end_seq, segments[index + 1].first_seq - 1);
    }
    return stretch;
}

// False once the segment was cleaned: entries read from it may be damaged without any fault.
bool Log::has(const LogSegment& segment) const {
    return std::ranges::find(space_.segments(), segment) != space_.segments().end();
}

std::uint64_t Log::block_of(LogPosition at) const {
    return byte_offset(at, options_.segment_blocks) / devices::kBlockBytes;
}

Task<Result<void>> Log::look_at_segment(LogVisitor* visitor, EntryReader* reader, Stretch stretch) {
    LogPosition at{.segment = stretch.segment.number};
    std::uint64_t epoch_min = 0;
    for (std::uint64_t seq = stretch.segment.first_seq; seq <= stretch.last_seq; ++seq) {
        const auto found = co_await reader->at(at);
        if (!has(stretch.segment)) co_return Result<void>{};
        if (!found && found.error().code == Errc::kCancelled) {
            co_return std::unexpected(found.error());
        }
        if (!found || !is_entry(*found, seq, epoch_min)) {
            visitor->fault({.reason = found ? "is not whole, or is another" : "cannot be read",
                            .first_seq = seq,
                            .last_seq = stretch.last_seq,
                            .block = block_of(at)});
            co_return Result<void>{};
        }
        const std::uint64_t block = block_of(at);
        epoch_min = (*found)->header.epoch;
        at.block += (*found)->blocks;
        const auto taken = co_await visitor->entry((*found)->entry, block);
        if (!taken) co_return taken;
    }
    co_return Result<void>{};
}

}  // namespace fopd::store
