#include "store/tape/block_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "store/corrupt.h"

namespace fopd::store {

Result<void> BlockReader::allocate() {
    if (!memory_.span().empty()) return {};
    auto memory = AlignedMemory::allocate(devices::kTapeBlockMax);
    if (!memory) return std::unexpected(memory.error());
    memory_ = std::move(*memory);
    return {};
}

Task<Result<void>> BlockReader::locate(std::uint64_t block) {
    const auto located = co_await drive_.locate(block);
    if (located) co_return Result<void>();
    if (located.error().code == Errc::kNotFound) co_return corrupt("the tape ends too early");
    co_return std::unexpected(located.error());
}

// Only the drive knows where the tape is: others may have moved it.
Task<Result<void>> BlockReader::go_to(std::uint64_t block) {
    const auto at = co_await drive_.position();
    const bool is_near =
        at && at->block <= block && block - at->block <= kTapeReadOnBytes / kTapeDataBytes;
    if (!is_near) co_return co_await locate(block);
    for (std::uint64_t left = block - at->block; left > 0; --left) {
        const auto passed = co_await next();
        // What cannot be read is not needed.
        const bool goes_on = passed && passed->met != devices::TapeMark::kEndOfData;
        if (!goes_on) co_return co_await locate(block);
    }
    co_return Result<void>();
}

Task<Result<BlockReader::Block>> BlockReader::next() {
    const auto read = co_await drive_.read(memory_.buffer());
    // kInvalid has no other cause: the block is larger than the buffer.
    too_large_ = !read && read.error().code == Errc::kInvalid;
    if (!read) {
        if (too_large_) co_return corrupt("a block is too large");
        co_return std::unexpected(read.error());
    }
    Block block;
    block.met = read->met;
    if (read->met == devices::TapeMark::kBlock)
        block.bytes = memory_.span().first(read->size_bytes);
    co_return block;
}

Task<Result<FileLabels>> BlockReader::labels(FileLabels::Side side) {
    std::array<TapeLabel, kFileLabels> labels;
    std::size_t count = 0;
    bool may_be_volume = side == FileLabels::Side::kHeader;
    while (count < kFileLabels) {
        const auto block = co_await next();
        if (!block) co_return std::unexpected(block.error());
        const bool is_label = block->bytes.size() == kTapeLabelBytes;
        if (!is_label) co_return corrupt("there is no label");
        const bool is_volume = may_be_volume && std::memcmp(block->bytes.data(), "VOL1", 4) == 0;
        may_be_volume = false;
        if (is_volume) continue;
        std::ranges::copy(block->bytes, labels[count].begin());
        ++count;
    }
    const auto mark = co_await next();
    if (!mark) co_return std::unexpected(mark.error());
    if (mark->met != devices::TapeMark::kFilemark) co_return corrupt("no filemark after labels");
    co_return parse_file_labels(side, labels);
}

void BlockReader::begin_payload(std::uint64_t first_block) {
    first_block_ = first_block;
    block_index_ = 0;
    loaded_ = false;
    at_ = 0;
}

Task<Result<void>> BlockReader::seek(std::uint64_t position) {
    const std::uint64_t index = position / kTapeDataBytes;
    const auto at = static_cast<std::size_t>(position % kTapeDataBytes);
    const bool is_here = loaded_ && index == block_index_;
    block_index_ = index;
    at_ = at;
    if (is_here) co_return Result<void>();
    loaded_ = false;
    co_return co_await go_to(first_block_ + index);
}

Task<Result<void>> BlockReader::load() {
    const bool passed = loaded_ && at_ >= loaded_bytes_;
    if (passed) {
        if (loaded_bytes_ < kTapeDataBytes) co_return corrupt("the payload ends too early");
        loaded_ = false;
        ++block_index_;
        at_ = 0;
    }
    if (!loaded_) {
        const auto block = co_await next();
        if (!block) co_return std::unexpected(block.error());
        if (block->met != devices::TapeMark::kBlock) {
            co_return corrupt("the payload ends too early");
        }
        loaded_ = true;
        loaded_bytes_ = block->bytes.size();
    }
    if (at_ >= loaded_bytes_) co_return corrupt("a data block is too short");
    co_return Result<void>();
}

Task<Result<void>> BlockReader::take(std::span<std::byte> into) {
    while (!into.empty()) {
        const auto bytes = co_await next_bytes(into.size());
        if (!bytes) co_return std::unexpected(bytes.error());
        std::ranges::copy(*bytes, into.begin());
        into = into.subspan(bytes->size());
    }
    co_return Result<void>();
}

Task<Result<std::span<const std::byte>>> BlockReader::next_bytes(std::uint64_t size_max) {
    const auto loaded = co_await load();
    if (!loaded) co_return std::unexpected(loaded.error());
    const std::uint64_t size = std::min<std::uint64_t>(loaded_bytes_ - at_, size_max);
    const auto bytes = memory_.span().subspan(at_, static_cast<std::size_t>(size));
    at_ += bytes.size();
    co_return std::span<const std::byte>(bytes);
}

Task<Result<std::uint64_t>> BlockReader::end_payload() {
    const auto skipped = co_await drive_.skip_filemarks(1);
    if (!skipped) {
        if (skipped.error().code == Errc::kNotFound) co_return corrupt("a file without its end");
        co_return std::unexpected(skipped.error());
    }
    loaded_ = false;
    const auto position = co_await drive_.position();
    if (!position) co_return std::unexpected(position.error());
    if (position->block <= first_block_) co_return corrupt("a file without its end");
    co_return position->block - 1 - first_block_;
}

}  // namespace fopd::store
