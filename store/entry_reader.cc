#include "store/entry_reader.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "store/log.h"

namespace fopd::store {

namespace {
constexpr std::uint32_t kFirstWindowBlocks = 16;
constexpr std::uint32_t kWindowBlocksMax = 256;
}  // namespace

std::uint64_t byte_offset(LogPosition at, std::uint32_t segment_blocks) {
    const std::uint64_t block =
        Log::kSegmentsBlock + std::uint64_t{at.segment} * segment_blocks + at.block;
    return block * devices::kBlockBytes;
}

Result<void> EntryReader::allocate() {
    ENSURE(options_.entry_blocks_max <= kWindowBlocksMax);
    auto memory = AlignedMemory::allocate(kWindowBlocksMax * devices::kBlockBytes);
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

Task<Result<void>> EntryReader::load(LogPosition position, std::uint32_t at_least) {
    const bool reads_on = position.segment == window_.segment && position.block > window_.block &&
                          position.block <= window_.block + window_blocks_;
    const std::uint32_t wanted = reads_on ? 2 * window_blocks_ : kFirstWindowBlocks;
    const std::uint32_t blocks = std::min(
        {std::max(wanted, at_least), kWindowBlocksMax, options_.segment_blocks - position.block});
    core::Buffer into = memory_.buffer();
    into.size_bytes = blocks * devices::kBlockBytes;
    window_blocks_ = 0;
    const std::uint64_t offset = byte_offset(position, options_.segment_blocks);
    const auto read = co_await device_->read(into, offset, wait_);
    if (!read) co_return std::unexpected(read.error());
    window_ = position;
    window_blocks_ = blocks;
    co_return Result<void>{};
}

Task<Result<std::optional<EntryReader::Found>>> EntryReader::at(LogPosition position) {
    const std::optional<Found> none;
    if (position.block >= options_.segment_blocks) co_return none;
    const std::size_t payload_max =
        options_.entry_blocks_max * devices::kBlockBytes - kEntryHeaderBytes;
    std::span<const std::byte> bytes;
    std::optional<EntryHeader> header;
    for (std::uint32_t blocks = 1;;) {
        bytes = loaded_from(position);
        if (!bytes.empty()) header = peek_entry(bytes, options_.id);
        if (header && header->payload_bytes > payload_max) co_return none;
        if (header) blocks = entry_blocks(header->payload_bytes);
        if (blocks * devices::kBlockBytes <= bytes.size()) break;
        if (blocks > options_.segment_blocks - position.block) co_return none;
        const auto loaded = co_await load(position, blocks);
        if (!loaded) co_return std::unexpected(loaded.error());
    }
    if (!header || !entry_is_whole(bytes, *header)) co_return none;
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
