#include "store/live_records.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fopd::store {

namespace {

// How many records cleaning looks at, and how many bytes it commits, in one turn; other commits
// wait meanwhile.
constexpr std::uint32_t kCleanedInATurn = 128;
constexpr std::uint32_t kKeptBytesMax = 12'000;  // In three blocks.
constexpr std::size_t kLiveRecordBytesMax =
    std::max(kPutRecordBytesMax, extent_record_bytes(kExtentBlocksMax));
static_assert(kLiveRecordBytesMax <= kKeptBytesMax);

}  // namespace

// In short commits: the records of each are chosen in the turn of its begin().
Task<Result<void>> LiveRecords::keep(LogEntry entry) {
    RecordReader reader(entry.payload);
    const core::WaitOptions wait{.cancel = &parts_.stop};
    const auto bytes = std::min(kKeptBytesMax, static_cast<std::uint32_t>(entry.payload.size()));
    for (bool has_more = bytes > 0; has_more;) {
        auto reserved = co_await parts_.log.reserve(bytes, wait, Purpose::kCleaning);
        if (!reserved) co_return std::unexpected(reserved.error());
        kept_.clear();
        const auto sorted = keep_some(reader);
        if (!sorted) co_return std::unexpected(sorted.error());
        has_more = *sorted;
        if (kept_.count() > 0) {
            Commit commit;
            parts_.log.begin(commit, std::move(*reserved), kept_.bytes(), kept_.count(),
                             Durability::kBuffered, Data::kNone);
        }
        if (has_more) co_await parts_.reactor.yield();
    }
    co_return Result<void>{};
}

// Chooses the records of one commit. Returns whether the entry has more records.
Result<bool> LiveRecords::keep_some(RecordReader& reader) {
    for (std::uint32_t looked_at = 0; looked_at < kCleanedInATurn; ++looked_at) {
        if (kept_.bytes().size() + kLiveRecordBytesMax > kKeptBytesMax) return true;
        const auto record = reader.next();
        if (!record) return std::unexpected(record.error());
        if (!record->has_value()) return false;
        const Result<void> kept = keep_if_alive(**record);
        if (!kept) return std::unexpected(kept.error());
    }
    return true;
}

// Records that only end something are never kept: the records that they undo came before them in
// the log and are gone.
Result<void> LiveRecords::keep_if_alive(const Record& record) {
    switch (record.kind) {
        case RecordKind::kPut:
        case RecordKind::kCommit: {
            const auto current = parts_.index.get(record.key);
            if (!current) return std::unexpected(current.error());
            const bool lives = current->has_value() && std::ranges::equal(**current, record.value);
            if (lives) kept_.put(record.key, record.value);
            return {};
        }
        case RecordKind::kExtent: return keep_extent(record);
        case RecordKind::kPunch:
        case RecordKind::kClear:
        case RecordKind::kRemove:
        case RecordKind::kForget: break;
    }
    return {};
}

Result<void> LiveRecords::keep_extent(const Record& record) {
    // The blocks of a removed object need no description: a replay takes them as free.
    const auto there = is_there(record.fid);
    if (!there) return std::unexpected(there.error());
    if (!*there) return {};
    // Compares checksums, because the object may have freed this block and received it again later;
    // the position alone does not prove that the record is live.
    std::array<std::uint32_t, kExtentBlocksMax> checksums{};
    ExtentBlocks described;
    ExtentRuns runs(record);
    while (const std::optional<Extent> run = runs.next()) {
        for (std::size_t i = 0; i < run->checksums.size(); ++i) {
            checksums[run->first - record.first + i] = run->checksums[i];
            described.set(run->first - record.first + i);
        }
    }
    ExtentBlocks live;
    ObjectMap::Extents extents =
        parts_.map.parts(record.fid, {.first = record.first, .count = record.count});
    for (;;) {
        const auto extent = extents.next();
        if (!extent) return std::unexpected(extent.error());
        if (!extent->has_value()) break;
        if ((*extent)->block - record.block != (*extent)->first - record.first) continue;
        for (std::size_t i = 0; i < (*extent)->checksums.size(); ++i) {
            const std::uint64_t distance = (*extent)->first - record.first + i;
            if ((*extent)->checksums[i] == checksums[distance]) live.set(distance);
        }
    }
    // Blocks that this record does not describe are described by a later one.
    live &= described;
    if (live.any()) kept_.rest_of_extent(record, live);
    return {};
}

Result<bool> LiveRecords::is_there(Fid fid) {
    const auto object = parts_.map.find(fid);
    if (!object) return std::unexpected(object.error());
    if (object->has_value()) return true;
    const auto upload = parts_.map.find_upload(fid);
    if (!upload) return std::unexpected(upload.error());
    return upload->has_value();
}

}  // namespace fopd::store
