#include "store/entry_reader.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "store/log.h"

namespace fopd::store {

namespace {
constexpr std::uint32_t kWindowBlocks = 256;
}

std::uint64_t byte_offset(LogPosition at, std::uint32_t segment_blocks) {
    const std::uint64_t block =
        Log::kSegmentsBlock + std::uint64_t{at.segment} * segment_blocks + at.block;
    return block * devices::kBlockBytes;
}

Result<void> EntryReader::allocate() {
    ENSURE(options_.entry_blocks_max <= kWindowBlocks);
    auto memory = AlignedMemory::allocate(kWindowBlocks * devices::kBlockBytes);
    if (!memory) return std::unexpected(memory.error());
    memory_ = std::move(*memory);
    return {};
}

std::span<const std::byte> EntryReader::loaded_from(LogPosition position) const {
    if (position.segment != window_.segment || position.block < window_.block) return {};
    const std::uint32_t skipped = position.block - window_.block;
    if (skipped >= window_blocks_) return {};
    return memory_.span()
        .first(window_blocks_ * devices::kBlockBytes)
        .subspan(skipped * devices::kBlockBytes);
}

Task<Result<void>> EntryReader::load(LogPosition position) {
    const std::uint32_t blocks = std::min(kWindowBlocks, options_.segment_blocks - position.block);
    core::Buffer into = memory_.buffer();
    into.size_bytes = blocks * devices::kBlockBytes;
    window_blocks_ = 0;
    const std::uint64_t offset = byte_offset(position, options_.segment_blocks);
    const core::WaitOptions no_limit;  // No deadline: the kernel bounds the time.
    const auto read = co_await device_.read(into, offset, no_limit);
    if (!read) co_return std::unexpected(read.error());
    window_ = position;
    window_blocks_ = blocks;
    co_return Result<void>{};
}

Task<Result<std::optional<EntryReader::Found>>> EntryReader::at(LogPosition position) {
    const std::optional<Found> none;
    if (position.block >= options_.segment_blocks) co_return none;
    auto bytes = loaded_from(position);
    auto header = bytes.empty() ? std::nullopt : peek_entry(bytes, options_.id);
    const bool ends_early =
        header && entry_blocks(header->payload_bytes) * devices::kBlockBytes > bytes.size();
    if (bytes.empty() || ends_early) {
        const auto loaded = co_await load(position);
        if (!loaded) co_return std::unexpected(loaded.error());
        bytes = loaded_from(position);
        header = peek_entry(bytes, options_.id);
    }
    if (!header) co_return none;
    const std::size_t payload_max =
        options_.entry_blocks_max * devices::kBlockBytes - kEntryHeaderBytes;
    if (header->payload_bytes > payload_max || !entry_is_whole(bytes, *header)) co_return none;
    const auto records = upgrade_.upgraded(
        header->schema_version, {.bytes = bytes.subspan(kEntryHeaderBytes, header->payload_bytes),
                                 .count = header->record_count});
    if (!records) co_return std::unexpected(records.error());
    co_return Found{.header = *header,
                    .blocks = entry_blocks(header->payload_bytes),
                    .entry = {.epoch = header->epoch,
                              .seq = header->seq,
                              .record_count = records->count,
                              .payload = records->bytes}};
}

}  // namespace fopd::store
