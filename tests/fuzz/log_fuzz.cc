// Whatever stands on a disk where a superblock or an entry of a log should: what is accepted says
// the same when it is written again.
//
//     build/fuzz/bin/fuzz_log -max_len=70000 tests/fuzz/corpus/log
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "core/ensure.h"
#include "store/log_entry.h"
#include "store/superblock.h"

using namespace fopd;
using namespace fopd::store;

namespace {

void check_superblock(std::vector<std::byte> bytes) {
    bytes.resize(kSuperblockBytes);
    const auto parsed = parse_superblock(bytes);
    if (!parsed) return;
    ENSURE(!parsed->segments.empty());
    ENSURE(parsed->segments.size() <= kSuperblockSegmentsMax);
    std::vector<std::byte> again(kSuperblockBytes);
    encode_superblock(*parsed, again);
    const auto reread = parse_superblock(again);
    ENSURE(reread.has_value());
    ENSURE(*reread == *parsed);
}

// The checksum is made right, which chance would not.
void check_mended_superblock(std::vector<std::byte> bytes) {
    bytes.resize(kSuperblockBytes);
    const auto count = std::min(get_little<std::uint32_t>(bytes, 72), kSuperblockSegmentsMax);
    const std::span<const std::byte> whole = bytes;
    const std::uint32_t before = fopd::core::crc32c(whole.first(76));
    put_little(std::span(bytes), 76,
               fopd::core::crc32c(whole.subspan(80, 48 + std::size_t{12} * count), before));
    check_superblock(std::move(bytes));
}

void check_entry(std::vector<std::byte> bytes) {
    bytes.resize(std::max<std::size_t>((bytes.size() + 4095) / 4096 * 4096, 4096));
    LogId id;
    std::copy_n(bytes.begin() + 8, id.size(), id.begin());
    const auto header = peek_entry(bytes, id);
    if (!header || !entry_is_whole(bytes, *header)) return;
    const std::size_t size = entry_blocks(header->payload_bytes) * std::size_t{4096};
    ENSURE(size <= bytes.size());
    std::vector<std::byte> again(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    seal_entry(again, id, *header);
    const std::size_t used = kEntryHeaderBytes + header->payload_bytes;
    ENSURE(std::equal(again.begin(), again.begin() + static_cast<std::ptrdiff_t>(used),
                      bytes.begin()));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto given = std::as_bytes(std::span(data, size_bytes));
    const std::vector<std::byte> bytes(given.begin(), given.end());
    check_superblock(bytes);
    check_mended_superblock(bytes);
    check_entry(bytes);
    return 0;
}
