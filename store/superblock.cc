#include "store/superblock.h"

#include <algorithm>
#include <cstring>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "core/ensure.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

constexpr std::uint64_t kSuperblockMagic = 0x5250555344504f46;  // "FOPDSUPR"
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::uint32_t kClean = 1;

constexpr std::size_t kFormatVersionAt = 8;
constexpr std::size_t kSchemaVersionAt = 12;
constexpr std::size_t kDiskIdAt = 16;
constexpr std::size_t kGenerationAt = 32;
constexpr std::size_t kSuperblockEpochAt = 40;
constexpr std::size_t kEpochFirstSeqAt = 48;
constexpr std::size_t kTrustedSeqAt = 56;
constexpr std::size_t kFlagsAt = 64;
constexpr std::size_t kSegmentBlocksAt = 68;
constexpr std::size_t kSegmentCountAt = 72;
constexpr std::size_t kSuperblockChecksumAt = 76;
constexpr std::size_t kEarlierFirstSeqsAt = 80;
constexpr std::size_t kCleanedSeqAt = 120;
constexpr std::size_t kSegmentsAt = 128;
constexpr std::size_t kSegmentBytes = 12;
static_assert(kEarlierFirstSeqsAt + sizeof(Superblock::earlier_first_seqs) == kCleanedSeqAt);
static_assert(kCleanedSeqAt + sizeof(Superblock::cleaned_seq) == kSegmentsAt);

std::uint32_t superblock_checksum_of(std::span<const std::byte> bytes, std::size_t segment_count) {
    const std::uint32_t before = core::crc32c(bytes.first(kSuperblockChecksumAt));
    return core::crc32c(bytes.subspan(kEarlierFirstSeqsAt, kSegmentsAt - kEarlierFirstSeqsAt +
                                                               kSegmentBytes * segment_count),
                        before);
}

bool all_different(const std::vector<LogSegment>& segments) {
    std::vector<std::uint32_t> numbers;
    for (const LogSegment& segment : segments) numbers.push_back(segment.number);
    std::ranges::sort(numbers);
    return std::ranges::adjacent_find(numbers) == numbers.end();
}

// Segments that have entries come first, and their entries follow each other.
bool in_order(const std::vector<LogSegment>& segments) {
    for (std::size_t i = 1; i < segments.size(); ++i) {
        const std::uint64_t before = segments[i - 1].first_seq;
        const std::uint64_t here = segments[i].first_seq;
        if (here != 0 && (before == 0 || here <= before)) return false;
    }
    return true;
}

bool come_down(const EarlierFirstSeqs& earlier, std::uint64_t from) {
    for (const std::uint64_t each : earlier) {
        if (each > from) return false;
        from = each;
    }
    return true;
}

// Checks that hold for every superblock ever written.
bool makes_sense(const Superblock& superblock) {
    const Superblock& s = superblock;
    if (s.generation == 0 || s.epoch == 0 || s.segment_blocks == 0 || s.segments.empty())
        return false;
    const std::uint64_t trusted_end = s.trusted_seq + 1;
    if (s.epoch_first_seq == 0 || s.epoch_first_seq > trusted_end) return false;
    if (!come_down(s.earlier_first_seqs, s.epoch_first_seq)) return false;
    const std::uint64_t tail_seq = s.segments.front().first_seq;
    if (tail_seq == 0 || tail_seq > trusted_end) return false;
    // Cleaning skips the entries up to cleaned_seq.
    if (s.cleaned_seq > s.trusted_seq) return false;
    return all_different(s.segments) && in_order(s.segments);
}

}  // namespace

std::size_t encode_superblock(const Superblock& superblock, std::span<std::byte> out) {
    ENSURE(out.size() == kSuperblockBytes);
    ENSURE(superblock.segments.size() <= kSuperblockSegmentsMax);
    ENSURE(makes_sense(superblock));
    const std::size_t used = kSegmentsAt + kSegmentBytes * superblock.segments.size();
    const std::size_t whole = (used + 4095) / 4096 * 4096;
    std::memset(out.data(), 0, whole);
    put_little(out, 0, kSuperblockMagic);
    put_little(out, kFormatVersionAt, kFormatVersion);
    put_little(out, kSchemaVersionAt, superblock.schema_version);
    std::ranges::copy(superblock.disk_id, out.begin() + kDiskIdAt);
    put_little(out, kGenerationAt, superblock.generation);
    put_little(out, kSuperblockEpochAt, superblock.epoch);
    put_little(out, kEpochFirstSeqAt, superblock.epoch_first_seq);
    put_little(out, kTrustedSeqAt, superblock.trusted_seq);
    put_little(out, kFlagsAt, superblock.clean ? kClean : 0U);
    put_little(out, kSegmentBlocksAt, superblock.segment_blocks);
    put_little(out, kSegmentCountAt, static_cast<std::uint32_t>(superblock.segments.size()));
    for (std::size_t i = 0; i < superblock.earlier_first_seqs.size(); ++i) {
        put_little(out, kEarlierFirstSeqsAt + 8 * i, superblock.earlier_first_seqs[i]);
    }
    put_little(out, kCleanedSeqAt, superblock.cleaned_seq);
    for (std::size_t i = 0; i < superblock.segments.size(); ++i) {
        const std::size_t at = kSegmentsAt + kSegmentBytes * i;
        put_little(out, at, superblock.segments[i].first_seq);
        put_little(out, at + 8, superblock.segments[i].number);
    }
    put_little(out, kSuperblockChecksumAt, superblock_checksum_of(out, superblock.segments.size()));
    return whole;
}

Result<Superblock> parse_superblock(std::span<const std::byte> bytes) {
    ENSURE(bytes.size() == kSuperblockBytes);
    if (get_little<std::uint64_t>(bytes, 0) != kSuperblockMagic) {
        return std::unexpected(Error{.code = Errc::kNotFound, .context = "superblock"});
    }
    if (get_little<std::uint32_t>(bytes, kFormatVersionAt) > kFormatVersion) {
        return std::unexpected(
            Error{.code = Errc::kUnsupported, .context = "superblock of a newer format"});
    }
    const auto count = get_little<std::uint32_t>(bytes, kSegmentCountAt);
    if (count > kSuperblockSegmentsMax) return corrupt("superblock");
    if (get_little<std::uint32_t>(bytes, kSuperblockChecksumAt) !=
        superblock_checksum_of(bytes, count)) {
        return corrupt("checksum of the superblock");
    }
    const auto flags = get_little<std::uint32_t>(bytes, kFlagsAt);
    Superblock found{.schema_version = get_little<std::uint32_t>(bytes, kSchemaVersionAt),
                     .segment_blocks = get_little<std::uint32_t>(bytes, kSegmentBlocksAt),
                     .generation = get_little<std::uint64_t>(bytes, kGenerationAt),
                     .epoch = get_little<std::uint64_t>(bytes, kSuperblockEpochAt),
                     .epoch_first_seq = get_little<std::uint64_t>(bytes, kEpochFirstSeqAt),
                     .trusted_seq = get_little<std::uint64_t>(bytes, kTrustedSeqAt),
                     .clean = (flags & kClean) != 0,
                     .cleaned_seq = get_little<std::uint64_t>(bytes, kCleanedSeqAt)};
    std::ranges::copy(bytes.subspan(kDiskIdAt, found.disk_id.size()), found.disk_id.begin());
    for (std::size_t i = 0; i < found.earlier_first_seqs.size(); ++i) {
        found.earlier_first_seqs[i] = get_little<std::uint64_t>(bytes, kEarlierFirstSeqsAt + 8 * i);
    }
    found.segments.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = kSegmentsAt + kSegmentBytes * i;
        found.segments.push_back({.number = get_little<std::uint32_t>(bytes, at + 8),
                                  .first_seq = get_little<std::uint64_t>(bytes, at)});
    }
    const bool known_flags = (flags & ~kClean) == 0;
    if (!known_flags || !makes_sense(found)) {
        return corrupt("fields of the superblock");
    }
    return found;
}

}  // namespace fopd::store
