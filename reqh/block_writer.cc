#include "reqh/block_writer.h"

#include <algorithm>
#include <cstring>

#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::reqh {

Task<Granted<>> BlockWriter::stage() {
    while (plan_.next_chunk()) {
        operation_.enter(Phase::kFetch);
        // The chunk before has left the piece.
        const auto written = co_await write_out();
        if (!written) co_return written;
        const auto read = co_await read_around();
        if (!read) co_return read;
        const auto fetched = co_await fetch();
        if (!fetched) co_return fetched;
        const auto checked = check_pieces();
        if (!checked) co_return checked;
        const auto placed = co_await place_chunk();
        if (!placed) co_return placed;
    }
    co_return Granted<>{};
}

// -- the rest of blocks that are written in part --

Task<Granted<>> BlockWriter::read_around() {
    for (std::size_t index = 0; index < plan_.blocks().size(); ++index) {
        WritePlan::Block& block = plan_.blocks()[index];
        if (!block.is_partial()) continue;
        if (operation_.io().full()) {
            const auto some = co_await operation_.io().wait();
            if (!some) co_return refused(untraced(some.error()));
        }
        auto extents = operation_.volume().map().extents(fid_, {.first = block.number, .count = 1});
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
        operation_.io().read(part_of_piece(index * fop::kBlockBytes, fop::kBlockBytes),
                             (*extent)->block, operation_.wait());
    }
    const auto rest = co_await operation_.io().wait();
    if (!rest) co_return refused(untraced(rest.error()));
    std::uint64_t damaged = 0;
    if (!around_is_intact(&damaged)) co_return refused(operation_.corrupt(fid_, damaged));
    co_return Granted<>{};
}

bool BlockWriter::around_is_intact(std::uint64_t* damaged) const {
    for (std::size_t index = 0; index < plan_.blocks().size(); ++index) {
        WritePlan::Block& block = plan_.blocks()[index];
        if (!block.checked) continue;
        block.checked = false;
        if (core::crc32c(block_bytes(index)) == block.checksum) continue;
        *damaged = block.number;
        return false;
    }
    return true;
}

// -- the bytes of the write --

Task<Granted<>> BlockWriter::fetch() {
    const auto payload = operation_.request().payload;
    for (const WritePlan::Fragment& fragment : plan_.fragments()) {
        const core::Buffer into = part_of_piece(fragment.piece_at, fragment.length);
        if (source_.memory == nullptr) {
            const auto from = payload.subspan(fragment.sender_at, fragment.length);
            std::memcpy(into.data, from.data(), from.size());
            continue;
        }
        const auto pulled = co_await operation_.pull(source_.memory, fragment.sender_at, into);
        if (!pulled) co_return refused(untraced(pulled.error()));
    }
    co_return Granted<>{};
}

Granted<> BlockWriter::check_pieces() {
    for (const WritePlan::Fragment& fragment : plan_.fragments()) {
        const fop::Range& range = source_.ranges[fragment.range];
        if (!check_ || check_range_ != fragment.range) {
            const std::uint64_t basis = source_.pieces_from_zero ? 0 : range.offset;
            check_.emplace(basis, range.length, checksums_of(fragment.range));
            check_range_ = fragment.range;
        }
        const auto bytes = part_of_piece(fragment.piece_at, fragment.length).span();
        if (!check_->take(bytes)) {
            return refused(fop::Status::kCorrupt,
                           "the bytes that came are not those the checksums are of");
        }
        take_checksums(fragment);
    }
    for (std::size_t index = 0; index < plan_.blocks().size(); ++index) {
        WritePlan::Block& block = plan_.blocks()[index];
        if (!block.checked) block.checksum = core::crc32c(block_bytes(index));
    }
    return {};
}

// Where a piece is a block, its checksum goes with it from the client's memory to the medium.
void BlockWriter::take_checksums(const WritePlan::Fragment& fragment) {
    const fop::Range& range = source_.ranges[fragment.range];
    if (source_.pieces_from_zero && range.offset % fop::kBlockBytes != 0) return;
    const auto checksums = checksums_of(fragment.range);
    const std::uint64_t first_piece = range.offset / fop::kBlockBytes;
    for (std::size_t index = fragment.piece_at / fop::kBlockBytes; index < plan_.blocks().size();
         ++index) {
        WritePlan::Block& block = plan_.blocks()[index];
        const std::uint64_t offset = block.number * fop::kBlockBytes;
        if (offset >= fragment.offset + fragment.length) break;
        const bool is_whole = offset >= fragment.offset && !block.is_partial() &&
                              offset + fop::kBlockBytes <= fragment.offset + fragment.length;
        if (!is_whole) continue;
        block.checksum = checksums[block.number - first_piece];
        block.checked = true;
    }
}

std::span<const std::uint32_t> BlockWriter::checksums_of(std::size_t range) const {
    if (source_.pieces_from_zero) return source_.checksums;
    const std::size_t before = fop::count_pieces(source_.ranges.first(range));
    return source_.checksums.subspan(before, fop::count_pieces(source_.ranges[range]));
}

// -- where they go --

Task<Granted<>> BlockWriter::place_chunk() {
    std::array<std::uint32_t, WritePlan::kChunkBlocks> checksums;
    for (std::size_t index = 0; index < plan_.blocks().size(); ++index) {
        checksums[index] = plan_.blocks()[index].checksum;
    }
    const auto charged = charge_chunk();
    if (!charged) co_return charged;
    for (std::size_t index = 0; index < plan_.blocks().size();) {
        if (target_count_ == targets_.size()) {
            const auto written = co_await write_out();
            if (!written) co_return written;
        }
        const auto place =
            co_await operation_.allocate(static_cast<std::uint32_t>(plan_.run_at(index)));
        if (!place) co_return refused(place.error());
        const store::Extent extent{.first = plan_.blocks()[index].number,
                                   .block = place->block,
                                   .checksums = std::span(checksums).subspan(index, place->count)};
        operation_.change().records.extent(fid_, extent);
        targets_[target_count_++] = {.index = index, .place = *place};
        index += place->count;
    }
    co_return Granted<>{};
}

Granted<> BlockWriter::charge_chunk() {
    for (std::size_t index = 0; index < plan_.blocks().size();) {
        const std::size_t run = plan_.run_at(index);
        const auto charged =
            operation_.charge_holes(fid_, {.first = plan_.blocks()[index].number, .count = run});
        if (!charged) return charged;
        index += run;
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

// Without a deadline: what is begun is waited for, and the wait for a device is short.
void BlockWriter::start_write(const Target& target) {
    const core::Buffer from =
        part_of_piece(target.index * fop::kBlockBytes, target.place.count * fop::kBlockBytes);
    operation_.io().write(from, target.place.block, {});
}

core::Buffer BlockWriter::part_of_piece(std::size_t at, std::size_t size_bytes) const {
    ENSURE(at + size_bytes <= operation_.piece().size_bytes);
    const core::Buffer& piece = operation_.piece();
    return {.data = piece.data + at, .size_bytes = size_bytes, .region = piece.region};
}

}  // namespace fopd::reqh
