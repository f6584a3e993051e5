#include "fop/range.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "fop/invalid.h"

namespace fopd::fop {

namespace {

// Calls `visit` with the bytes of each run, until it returns false.
template <typename Visit>
bool for_each_run(std::span<const Range> ranges, std::span<const std::byte> data, Visit visit) {
    for (const Range& range : ranges) {
        std::uint64_t offset = range.offset;
        while (offset < range.end()) {
            const std::uint64_t block_end = (offset / kBlockBytes + 1) * kBlockBytes;
            const std::uint64_t length = std::min(block_end, range.end()) - offset;
            ENSURE(length <= data.size());
            if (!visit(data.first(length))) return false;
            data = data.subspan(length);
            offset += length;
        }
    }
    ENSURE(data.empty());
    return true;
}

}  // namespace

Result<void> check_range(const Range& range) {
    if (range.offset > kOffsetMax) return invalid("the offset is beyond 2^60");
    if (range.length > kOffsetMax - range.offset) return invalid("the range ends beyond 2^60");
    return {};
}

Result<void> check_ranges(std::span<const Range> ranges) {
    if (ranges.size() > kRangesMax) return invalid("there are more than 64 ranges");
    std::uint64_t left = kTransferBytesMax;
    for (const Range& range : ranges) {
        const auto sound = check_range(range);
        if (!sound) return sound;
        if (range.length > left) return invalid("the ranges are longer than 4 MiB together");
        left -= range.length;
    }
    return {};
}

std::uint64_t total_bytes(std::span<const Range> ranges) {
    std::uint64_t total = 0;
    for (const Range& range : ranges) total += range.length;
    return total;
}

std::size_t count_checksums(std::span<const Range> ranges) {
    std::size_t count = 0;
    for (const Range& range : ranges) count += count_checksums(range);
    return count;
}

void checksum_ranges(std::span<const Range> ranges, std::span<const std::byte> data,
                     std::span<std::uint32_t> checksums) {
    auto next = checksums.begin();
    for_each_run(ranges, data, [&](std::span<const std::byte> run) {
        ENSURE(next != checksums.end());
        *next++ = core::crc32c(run);
        return true;
    });
    ENSURE(next == checksums.end());
}

bool ranges_intact(std::span<const Range> ranges, std::span<const std::byte> data,
                   std::span<const std::uint32_t> checksums) {
    ENSURE(checksums.size() == count_checksums(ranges));
    auto next = checksums.begin();
    return for_each_run(
        ranges, data, [&](std::span<const std::byte> run) { return core::crc32c(run) == *next++; });
}

}  // namespace fopd::fop
