#include "store/volume_replay.h"

#include <utility>

#include "core/crc32c.h"

namespace fopd::store {

Result<void> VolumeReplay::allocate() {
    auto memory = AlignedMemory::allocate(kExtentBlocksMax * devices::kBlockBytes);
    if (!memory) return std::unexpected(memory.error());
    memory_ = std::move(*memory);
    return {};
}

Task<Result<bool>> VolumeReplay::data_ok(LogEntry entry) {
    RecordReader reader(entry.payload);
    for (;;) {
        const auto record = reader.next();
        if (!record) co_return std::unexpected(record.error());
        if (!record->has_value()) co_return true;
        if ((*record)->kind != RecordKind::kExtent) continue;
        ExtentRuns runs(**record);
        while (const std::optional<Extent> run = runs.next()) {
            const auto match = co_await blocks_match(*run);
            if (!match || !*match) co_return match;
        }
    }
}

Task<Result<bool>> VolumeReplay::blocks_match(Extent extent) {
    const std::uint64_t disk_blocks = parts_.device.geometry().size_bytes / devices::kBlockBytes;
    if (extent.block >= disk_blocks || extent.count() > disk_blocks - extent.block) co_return false;
    core::Buffer into = memory_.buffer();
    into.size_bytes = extent.count() * devices::kBlockBytes;
    // Without a deadline: a start waits for its disks.
    const core::WaitOptions wait{};
    const auto read = co_await parts_.device.read(into, extent.block * devices::kBlockBytes, wait);
    if (!read) co_return std::unexpected(read.error());
    for (std::uint32_t i = 0; i < extent.count(); ++i) {
        const auto block = into.span().subspan(i * devices::kBlockBytes, devices::kBlockBytes);
        if (core::crc32c(block) != extent.checksums[i]) co_return false;
    }
    co_return true;
}

Task<Result<void>> VolumeReplay::replay(LogEntry entry) {
    RecordEffects effects;
    RecordReader reader(entry.payload);
    for (;;) {
        const auto record = reader.next();
        if (!record) co_return std::unexpected(record.error());
        if (!record->has_value()) break;
        const Result<void> applied = parts_.applier.apply(**record, effects);
        if (!applied) co_return applied;
        effects.freed.clear();
    }
    if (!effects.names.empty()) {
        // A log that is only read need not be flushed; its disk may have failed.
        Result<void> flushed{};
        if (options_.mode == ReplayOptions::Mode::kServe) flushed = co_await flush_once();
        if (!flushed) co_return flushed;
        const auto told = co_await parts_.names.tell_replayed(&effects.names, entry.seq);
        if (!told) co_return told;
    }
    const bool is_much = parts_.index.changed_bytes() * 2 >= options_.overlay_bytes;
    if (!is_much && !parts_.index.wants_checkpoint()) co_return Result<void>{};
    const auto flushed = co_await flush_once();
    if (!flushed) co_return flushed;
    const auto kept = co_await parts_.names.keep(entry.seq, &parts_.stop);
    if (!kept) co_return kept;
    co_return co_await parts_.index.checkpoint(entry.seq);
}

// Entries behind the last mark may still be in the disk's cache, and index and names are about to
// rely on them.
Task<Result<void>> VolumeReplay::flush_once() {
    if (flushed_) co_return Result<void>{};
    const auto flushed = co_await parts_.device.flush();
    if (flushed) flushed_ = true;
    co_return flushed;
}

}  // namespace fopd::store
