#include "store/log_entry.h"

#include <algorithm>
#include <cstring>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "core/ensure.h"

namespace fopd::store {

namespace {

constexpr std::uint64_t kEntryMagic = 0x31474f4c44504f46;  // "FOPDLOG1"

constexpr std::size_t kIdAt = 8;
constexpr std::size_t kEpochAt = 24;
constexpr std::size_t kSeqAt = 32;
constexpr std::size_t kMarkAt = 40;
constexpr std::size_t kPayloadBytesAt = 48;
constexpr std::size_t kRecordCountAt = 52;
constexpr std::size_t kEntrySchemaAt = 56;
constexpr std::size_t kChecksumAt = 60;

std::uint32_t entry_checksum_of(std::span<const std::byte> entry, std::uint32_t payload_bytes) {
    const std::uint32_t before = core::crc32c(entry.first(kChecksumAt));
    return core::crc32c(entry.subspan(kEntryHeaderBytes, payload_bytes), before);
}

}  // namespace

void seal_entry(std::span<std::byte> entry, const LogId& id, const EntryHeader& header) {
    ENSURE(entry.size() == entry_blocks(header.payload_bytes) * std::size_t{4096});
    put_little(entry, 0, kEntryMagic);
    std::ranges::copy(id, entry.begin() + kIdAt);
    put_little(entry, kEpochAt, header.epoch);
    put_little(entry, kSeqAt, header.seq);
    put_little(entry, kMarkAt, header.mark);
    put_little(entry, kPayloadBytesAt, header.payload_bytes);
    put_little(entry, kRecordCountAt, header.record_count);
    put_little(entry, kEntrySchemaAt, header.schema_version);
    put_little(entry, kChecksumAt, entry_checksum_of(entry, header.payload_bytes));
    const auto rest = entry.subspan(kEntryHeaderBytes + header.payload_bytes);
    if (!rest.empty()) std::memset(rest.data(), 0, rest.size());
}

std::optional<EntryHeader> peek_entry(std::span<const std::byte> block, const LogId& id) {
    ENSURE(block.size() >= kEntryHeaderBytes);
    if (get_little<std::uint64_t>(block, 0) != kEntryMagic) return std::nullopt;
    if (!std::ranges::equal(id, block.subspan(kIdAt, id.size()))) return std::nullopt;
    return EntryHeader{.epoch = get_little<std::uint64_t>(block, kEpochAt),
                       .seq = get_little<std::uint64_t>(block, kSeqAt),
                       .mark = get_little<std::uint64_t>(block, kMarkAt),
                       .payload_bytes = get_little<std::uint32_t>(block, kPayloadBytesAt),
                       .record_count = get_little<std::uint32_t>(block, kRecordCountAt),
                       .schema_version = get_little<std::uint32_t>(block, kEntrySchemaAt)};
}

bool entry_is_whole(std::span<const std::byte> bytes, const EntryHeader& header) {
    if (bytes.size() < kEntryHeaderBytes) return false;
    if (header.payload_bytes > bytes.size() - kEntryHeaderBytes) return false;
    if (header.mark >= header.seq) return false;
    return get_little<std::uint32_t>(bytes, kChecksumAt) ==
           entry_checksum_of(bytes, header.payload_bytes);
}

}  // namespace fopd::store
