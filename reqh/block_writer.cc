#include "reqh/block_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::reqh {

namespace {

// The number of consecutive whole blocks of the object that start at this index.
std::size_t run_at(std::span<const WritePlan::Block> blocks, std::size_t index) {
    std::size_t count = 1;
    while (index + count < blocks.size() && !blocks[index + count].is_partial() &&
           blocks[index + count].number == blocks[index].number + count) {
        ++count;
    }
    return count;
}

// Blocks moved at a time; the rest of the buffer holds the data read from the old
// location.
constexpr std::size_t kMovedBlocks = WritePlan::kChunkBlocks / 2 - 1;

}  // namespace

// -- fetching the bytes of the write --

// A client may have lost the session over which its bytes were requested, and have resent the
// request over another: the request that has the bytes first is executed, and the other gets the
// same reply.
Task<Granted<std::optional<fop::Reply>>> BlockWriter::bring() {
    brought_offset_ = source_.ranges.empty() ? 0 : source_.ranges.front().offset;
    const bool waits_for_client = source_.memory != nullptr;
    if (waits_for_client) operation_.let_same_run();
    const auto brought = co_await bring_chunks();
    if (!brought) co_return refused(brought.error());
    if (!waits_for_client) co_return std::nullopt;
    co_return co_await operation_.find_recorded_reply();
}

// The last chunk stays in the buffer.
Task<Granted<>> BlockWriter::bring_chunks() {
    operation_.enter(Phase::kFetch);
    while (plan_.next_chunk()) {
        // The previous chunk must leave the buffer first.
        const auto written = co_await write_out();
        if (!written) co_return written;
        const auto fetched = co_await fetch();
        if (!fetched) co_return fetched;
        const auto checked = check_runs();
        if (!checked) co_return co_await explain_mismatch(checked.error());
        for (const WritePlan::Fragment& fragment : plan_.fragments()) keep_parts(fragment);
        if (plan_.is_last()) break;
        for (const WritePlan::Block& block : plan_.blocks()) {
            if (block.is_partial()) staged().left.push_back(block);
        }
        const auto allocated = co_await allocate_blocks(plan_.blocks());
        if (!allocated) co_return allocated;
    }
    co_return Granted<>{};
}

Task<Granted<>> BlockWriter::fetch() {
    const auto payload = operation_.request().payload;
    for (const WritePlan::Fragment& fragment : plan_.fragments()) {
        if (brought_ != nullptr) {
            const auto fetched = co_await fetch_brought(fragment);
            if (!fetched) co_return fetched;
        } else if (source_.memory != nullptr) {
            const core::Buffer into = part_of_buffer(fragment.buffer_at, fragment.length);
            const auto pulled =
                co_await operation_.client().pull(source_.memory, fragment.sender_at, into);
            if (!pulled) co_return refused(untraced(pulled.error()));
        } else {
            const core::Buffer into = part_of_buffer(fragment.buffer_at, fragment.length);
            const auto from = payload.subspan(fragment.sender_at, fragment.length);
            std::memcpy(into.data, from.data(), from.size());
        }
    }
    co_return Granted<>{};
}

Granted<> BlockWriter::check_runs() {
    for (const WritePlan::Fragment& fragment : plan_.fragments()) {
        const fop::Range& range = source_.ranges[fragment.range];
        if (!check_ || check_range_ != fragment.range) {
            const std::uint64_t basis = source_.runs_from_zero ? 0 : range.offset;
            check_.emplace(basis, range.length, checksums_of(fragment.range));
            check_range_ = fragment.range;
        }
        const auto bytes = part_of_buffer(fragment.buffer_at, fragment.length).span();
        if (!check_->take(bytes)) {
            return refused(fop::Status::kCorrupt,
                           "the received bytes do not match their checksums");
        }
        take_checksums(fragment);
    }
    compute_checksums();
    return {};
}

// A client that gives up a write takes its memory back, which then reads as zeros, and says so
// afterwards. The fop is found to be cancelled when the client has answered another transfer.
Task<Granted<>> BlockWriter::explain_mismatch(Refusal mismatch) {
    if (source_.memory != nullptr && brought_ == nullptr) {
        const core::Buffer into = part_of_buffer(0, 1);
        [[maybe_unused]] const auto asked =
            co_await operation_.client().pull(source_.memory, 0, into);
        const auto wanted = operation_.check_wanted();
        if (!wanted) co_return wanted;
    }
    co_return refused(mismatch);
}

// If a checksummed run is a whole block, its checksum is used unchanged from the client's
// memory to the disk.
void BlockWriter::take_checksums(const WritePlan::Fragment& fragment) {
    const fop::Range& range = source_.ranges[fragment.range];
    if (source_.runs_from_zero && range.offset % fop::kBlockBytes != 0) return;
    const auto checksums = checksums_of(fragment.range);
    const std::uint64_t first_run = range.offset / fop::kBlockBytes;
    for (std::size_t index = fragment.buffer_at / fop::kBlockBytes; index < plan_.blocks().size();
         ++index) {
        WritePlan::Block& block = plan_.blocks()[index];
        const std::uint64_t offset = block.number * fop::kBlockBytes;
        if (offset >= fragment.offset + fragment.length) break;
        const bool is_whole = offset >= fragment.offset && !block.is_partial() &&
                              offset + fop::kBlockBytes <= fragment.offset + fragment.length;
        if (!is_whole) continue;
        block.checksum = checksums[block.number - first_run];
        block.checked = true;
    }
}

void BlockWriter::compute_checksums() {
    for (std::size_t index = 0; index < plan_.blocks().size(); ++index) {
        WritePlan::Block& block = plan_.blocks()[index];
        if (block.is_partial() || block.checked) continue;
        block.checksum = core::crc32c(block_bytes(index));
        block.checked = true;
    }
}

std::span<const std::uint32_t> BlockWriter::checksums_of(std::size_t range) const {
    if (source_.runs_from_zero) return source_.checksums;
    const std::size_t before = fop::count_checksums(source_.ranges.first(range));
    return source_.checksums.subspan(before, fop::count_checksums(source_.ranges[range]));
}

void BlockWriter::keep_parts(const WritePlan::Fragment& fragment) {
    const std::size_t end = fragment.buffer_at + fragment.length;
    for (std::size_t at = fragment.buffer_at; at < end;) {
        const std::size_t index = at / fop::kBlockBytes;
        const std::size_t part_end = std::min(end, (index + 1) * fop::kBlockBytes);
        const WritePlan::Block& block = plan_.blocks()[index];
        if (block.is_partial()) {
            const auto bytes = operation_.buffer().span().subspan(at, part_end - at);
            staged().parts.push_back({.number = block.number,
                                      .at = at % fop::kBlockBytes,
                                      .length = bytes.size(),
                                      .bytes_at = staged().bytes.size()});
            staged().bytes.insert(staged().bytes.end(), bytes.begin(), bytes.end());
        }
        at = part_end;
    }
}

// -- moving the bytes to another offset --

Task<Granted<>> BlockWriter::move() {
    ENSURE(source_.runs_from_zero);
    const std::uint64_t offset = source_.ranges.front().offset;
    if (offset % fop::kBlockBytes == brought_offset_ % fop::kBlockBytes) {
        shift_ = offset / fop::kBlockBytes - brought_offset_ / fop::kBlockBytes;
        co_return Granted<>{};
    }
    if (move_in_buffer()) co_return Granted<>{};
    co_return co_await move_on_disk();
}

// Returns false, and changes nothing, if the bytes need more than one chunk.
bool BlockWriter::move_in_buffer() {
    if (!staged().runs.empty() || !staged().left.empty()) return false;
    const fop::Range& range = source_.ranges.front();
    const std::size_t from = brought_offset_ % fop::kBlockBytes;
    const std::size_t to = range.offset % fop::kBlockBytes;
    if (to + range.length > WritePlan::kChunkBlocks * fop::kBlockBytes) return false;
    std::byte* const data = operation_.buffer().data;
    std::memmove(data + to, data + from, range.length);
    const auto planned = plan_.begin(source_.ranges);
    ENSURE(planned.has_value());
    const bool has_chunk = plan_.next_chunk();
    ENSURE(has_chunk);
    staged().clear();
    keep_parts(plan_.fragments().front());
    compute_checksums();
    return true;
}

// Writes all bytes to the disk, and copies them from there to other blocks.
Task<Granted<>> BlockWriter::move_on_disk() {
    const auto allocated = co_await allocate_blocks(plan_.blocks());
    if (!allocated) co_return allocated;
    const auto written = co_await write_out();
    if (!written) co_return written;
    const StagedBlocks brought = std::exchange(staged(), StagedBlocks());
    const std::size_t ranges = operation_.change().allocated().size();
    const auto planned = plan_.begin(source_.ranges, kMovedBlocks);
    ENSURE(planned.has_value());
    brought_ = &brought;
    check_.reset();
    const auto moved = co_await bring_chunks();
    brought_ = nullptr;
    if (!moved) co_return moved;
    operation_.change().give_back_first(ranges);
    co_return Granted<>{};
}

// Reads the bytes back from their first location, through the upper half of the buffer.
Task<Granted<>> BlockWriter::fetch_brought(WritePlan::Fragment fragment) {
    constexpr std::size_t kAt = (kMovedBlocks + 1) * fop::kBlockBytes;
    const std::uint64_t from = brought_offset_ + fragment.sender_at;
    const std::uint64_t first = from / fop::kBlockBytes;
    const std::uint64_t end = (from + fragment.length - 1) / fop::kBlockBytes + 1;
    const auto offset_of = [first](std::uint64_t number) {
        return kAt + static_cast<std::size_t>(number - first) * fop::kBlockBytes;
    };
    for (const StagedBlocks::Run& run : brought_->runs) {
        const std::uint64_t run_first = std::max(first, run.first);
        const std::uint64_t run_end = std::min(end, run.first + run.count);
        if (run_first >= run_end) continue;
        if (operation_.io().full()) {
            const auto some = co_await operation_.io().wait();
            if (!some) co_return refused(untraced(some.error()));
        }
        operation_.io().read(
            part_of_buffer(offset_of(run_first), (run_end - run_first) * fop::kBlockBytes),
            run.block + (run_first - run.first), operation_.wait());
    }
    const auto read = co_await operation_.io().wait();
    if (!read) co_return refused(untraced(read.error()));
    for (const StagedBlocks::Part& part : brought_->parts) {
        if (part.number < first || part.number >= end) continue;
        const auto bytes = brought_->bytes_of(part);
        std::memcpy(operation_.buffer().data + offset_of(part.number) + part.at, bytes.data(),
                    bytes.size());
    }
    std::memcpy(operation_.buffer().data + fragment.buffer_at,
                operation_.buffer().data + kAt + from % fop::kBlockBytes, fragment.length);
    co_return Granted<>{};
}

// -- writing to the disk --

Task<Granted<>> BlockWriter::write_chunks() {
    const auto last = co_await complete(plan_.blocks());
    if (!last) co_return last;
    const std::span<WritePlan::Block> left = staged().left;
    for (std::size_t at = 0; at < left.size(); at += WritePlan::kChunkBlocks) {
        // The previous contents of the buffer must be written first.
        const auto written = co_await write_out();
        if (!written) co_return written;
        const std::size_t count = std::min(WritePlan::kChunkBlocks, left.size() - at);
        const auto completed = co_await complete(left.subspan(at, count));
        if (!completed) co_return completed;
    }
    co_return record();
}

// Completes the blocks in the buffer, and allocates blocks of the disk for them: reads the
// unwritten rest of partly written ones.
Task<Granted<>> BlockWriter::complete(std::span<WritePlan::Block> blocks) {
    const auto read = co_await read_around(blocks);
    if (!read) co_return read;
    put_parts(blocks);
    co_return co_await allocate_blocks(blocks);
}

Task<Granted<>> BlockWriter::read_around(std::span<WritePlan::Block> blocks) {
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        WritePlan::Block& block = blocks[index];
        if (!block.is_partial()) continue;
        if (operation_.io().full()) {
            const auto some = co_await operation_.io().wait();
            if (!some) co_return refused(untraced(some.error()));
        }
        auto extents =
            operation_.volume().map().extents(fid_, {.first = block.number + shift_, .count = 1});
        const auto extent = extents.next();
        if (!extent) {
            [[maybe_unused]] const auto others = co_await operation_.io().wait();
            co_return refused(extent.error());
        }
        if (!extent->has_value()) {
            std::ranges::fill(block_bytes(index), std::byte{0});
            continue;
        }
        block.checksum = (*extent)->checksums.front();
        block.checked = true;
        operation_.io().read(part_of_buffer(index * fop::kBlockBytes, fop::kBlockBytes),
                             (*extent)->block, operation_.wait());
    }
    const auto rest = co_await operation_.io().wait();
    if (!rest) co_return refused(untraced(rest.error()));
    std::uint64_t damaged = 0;
    if (!around_is_intact(blocks, &damaged)) {
        co_return refused(operation_.corrupt(fid_, damaged));
    }
    co_return Granted<>{};
}

bool BlockWriter::around_is_intact(std::span<WritePlan::Block> blocks,
                                   std::uint64_t* damaged) const {
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        const WritePlan::Block& block = blocks[index];
        if (!block.is_partial() || !block.checked) continue;
        if (core::crc32c(block_bytes(index)) == block.checksum) continue;
        *damaged = block.number + shift_;
        return false;
    }
    return true;
}

// Copies the partly written bytes into the blocks, which are whole afterwards.
void BlockWriter::put_parts(std::span<WritePlan::Block> blocks) {
    for (const StagedBlocks::Part& part : staged().parts) {
        const auto block =
            std::ranges::lower_bound(blocks, part.number, {}, &WritePlan::Block::number);
        if (block == blocks.end() || block->number != part.number) continue;
        const auto index = static_cast<std::size_t>(block - blocks.begin());
        const auto bytes = staged().bytes_of(part);
        std::memcpy(block_bytes(index).data() + part.at, bytes.data(), bytes.size());
    }
    for (std::size_t index = 0; index < blocks.size(); ++index) {
        WritePlan::Block& block = blocks[index];
        if (!block.is_partial()) continue;
        block.checksum = core::crc32c(block_bytes(index));
        block.covered_bytes = fop::kBlockBytes;
    }
}

// Allocates disk blocks for the whole blocks.
Task<Granted<>> BlockWriter::allocate_blocks(std::span<const WritePlan::Block> blocks) {
    for (std::size_t index = 0; index < blocks.size();) {
        if (blocks[index].is_partial()) {
            ++index;
            continue;
        }
        if (target_count_ == targets_.size()) {
            const auto written = co_await write_out();
            if (!written) co_return written;
        }
        const auto on_disk =
            co_await operation_.space().allocate(static_cast<std::uint32_t>(run_at(blocks, index)));
        if (!on_disk) co_return refused(on_disk.error());
        staged().runs.push_back({.first = blocks[index].number,
                                 .block = on_disk->block,
                                 .count = on_disk->count,
                                 .checksums_at = staged().checksums.size()});
        for (const WritePlan::Block& block : blocks.subspan(index, on_disk->count)) {
            staged().checksums.push_back(block.checksum);
        }
        targets_[target_count_++] = {.index = index, .on_disk = *on_disk};
        index += on_disk->count;
    }
    co_return Granted<>{};
}

Granted<> BlockWriter::record() {
    for (const StagedBlocks::Run& run : staged().runs) {
        const std::uint64_t first = run.first + shift_;
        const auto charged =
            operation_.space().charge_holes(fid_, {.first = first, .count = run.count});
        if (!charged) return charged;
        operation_.change().records().extent(
            fid_, {.first = first, .block = run.block, .checksums = staged().checksums_of(run)});
    }
    return {};
}

Task<Granted<>> BlockWriter::write_out() {
    for (std::size_t i = 0; i < target_count_; ++i) start_write(targets_[i]);
    target_count_ = 0;
    const auto written = co_await operation_.io().wait();
    if (!written) co_return refused(untraced(written.error()));
    co_return Granted<>{};
}

bool BlockWriter::start_last_writes() {
    const bool any = target_count_ > 0;
    for (std::size_t i = 0; i < target_count_; ++i) start_write(targets_[i]);
    target_count_ = 0;
    return any;
}

// No deadline: a started write must be awaited anyway, and the wait for a device is short.
void BlockWriter::start_write(const Target& target) {
    const core::Buffer from =
        part_of_buffer(target.index * fop::kBlockBytes, target.on_disk.count * fop::kBlockBytes);
    operation_.io().write(from, target.on_disk.block, {});
}

core::Buffer BlockWriter::part_of_buffer(std::size_t at, std::size_t size_bytes) const {
    ENSURE(at + size_bytes <= operation_.buffer().size_bytes);
    const core::Buffer& buffer = operation_.buffer();
    return {.data = buffer.data + at, .size_bytes = size_bytes, .region = buffer.region};
}

}  // namespace fopd::reqh
