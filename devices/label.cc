#include "devices/label.h"

#include <algorithm>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "core/ensure.h"
#include "core/utf8.h"
#include "core/whole_number.h"

namespace fopd::devices {

namespace {

constexpr std::string_view kMagic = "fopddisk";
constexpr std::uint32_t kVersion = 1;

// The offsets of the fields. The first three are the same in every version.
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kChecksumAt = 12;
constexpr std::size_t kDiskAt = 16;
constexpr std::size_t kOwnerAt = 32;
constexpr std::size_t kGenerationAt = 48;
constexpr std::size_t kSizeAt = 56;
constexpr std::size_t kCreatedAt = 64;
constexpr std::size_t kSegmentAt = 72;
constexpr std::size_t kSlotAt = 76;
constexpr std::size_t kStateAt = 78;
constexpr std::size_t kPoolLengthAt = 79;
constexpr std::size_t kPoolAt = 80;

// The checksum of the whole block, with the checksum field taken as zeros.
std::uint32_t checksum_of(ConstLabelBlock block) {
    constexpr std::array<std::byte, sizeof(std::uint32_t)> kZeros{};
    std::uint32_t sum = core::crc32c(block.first(kChecksumAt));
    sum = core::crc32c(kZeros, sum);
    return core::crc32c(block.subspan(kChecksumAt + kZeros.size()), sum);
}

bool is_segment_size(std::uint32_t size_bytes) {
    return size_bytes >= kBlockBytes && std::has_single_bit(size_bytes);
}

bool is_pool_name(std::string_view name) {
    return !name.empty() && name.size() <= kPoolNameBytesMax && core::is_utf8(name) &&
           !core::has_control(name);
}

}  // namespace

std::string format_id(const DiskId& id) {
    std::string text;
    for (const std::byte each : id) {
        const auto value = std::to_integer<unsigned>(each);
        text += "0123456789abcdef"[value >> 4];
        text += "0123456789abcdef"[value & 15];
    }
    return text;
}

std::optional<DiskId> parse_id(std::string_view text) {
    DiskId id{};
    if (text.size() != 2 * id.size()) return std::nullopt;
    for (std::size_t i = 0; i < id.size(); ++i) {
        const auto value = core::whole_number<std::uint8_t>(text.substr(2 * i, 2), 16);
        if (!value) return std::nullopt;
        id[i] = std::byte{*value};
    }
    return id;
}

void write_label(const Label& label, LabelBlock into) {
    ENSURE(is_pool_name(label.pool));
    ENSURE(is_segment_size(label.segment_bytes));
    std::ranges::fill(into, std::byte{0});
    std::memcpy(into.data() + kMagicAt, kMagic.data(), kMagic.size());
    put_little(into, kVersionAt, kVersion);
    std::ranges::copy(label.disk, into.begin() + kDiskAt);
    std::ranges::copy(label.owner, into.begin() + kOwnerAt);
    put_little(into, kGenerationAt, label.generation);
    put_little(into, kSizeAt, label.size_bytes);
    put_little(into, kCreatedAt, static_cast<std::uint64_t>(label.created_unix_ns));
    put_little(into, kSegmentAt, label.segment_bytes);
    put_little(into, kSlotAt, label.slot);
    put_little(into, kStateAt, static_cast<std::uint8_t>(label.state));
    put_little(into, kPoolLengthAt, static_cast<std::uint8_t>(label.pool.size()));
    std::memcpy(into.data() + kPoolAt, label.pool.data(), label.pool.size());
    put_little(into, kChecksumAt, checksum_of(into));
}

std::expected<Label, LabelFlaw> read_label(ConstLabelBlock from) {
    if (std::memcmp(from.data() + kMagicAt, kMagic.data(), kMagic.size()) != 0) {
        return std::unexpected(LabelFlaw::kNone);
    }
    const std::unexpected damaged(LabelFlaw::kDamaged);
    if (get_little<std::uint32_t>(from, kChecksumAt) != checksum_of(from)) return damaged;
    const auto version = get_little<std::uint32_t>(from, kVersionAt);
    if (version > kVersion) return std::unexpected(LabelFlaw::kNewer);
    if (version != kVersion) return damaged;

    // The fields are checked although the checksum is right: the label may have been written by
    // other software.
    Label label{
        .generation = get_little<std::uint64_t>(from, kGenerationAt),
        .size_bytes = get_little<std::uint64_t>(from, kSizeAt),
        .created_unix_ns = static_cast<std::int64_t>(get_little<std::uint64_t>(from, kCreatedAt)),
        .segment_bytes = get_little<std::uint32_t>(from, kSegmentAt),
        .slot = get_little<std::uint16_t>(from, kSlotAt),
        .state = static_cast<LabelState>(get_little<std::uint8_t>(from, kStateAt)),
        .pool = {}};
    std::ranges::copy(from.subspan<kDiskAt, sizeof(DiskId)>(), label.disk.begin());
    std::ranges::copy(from.subspan<kOwnerAt, sizeof(NodeId)>(), label.owner.begin());
    const auto pool_bytes = get_little<std::uint8_t>(from, kPoolLengthAt);
    if (pool_bytes > kPoolNameBytesMax) return damaged;
    label.pool.assign(reinterpret_cast<const char*>(from.data()) + kPoolAt, pool_bytes);
    if (!is_pool_name(label.pool)) return damaged;
    if (!all_zero(from.subspan(kPoolAt + pool_bytes))) return damaged;
    if (!is_segment_size(label.segment_bytes)) return damaged;
    if (label.state < LabelState::kActive || label.state > LabelState::kReleased) return damaged;
    return label;
}

std::optional<Label> newest_of(const LabelCopies& copies) {
    std::optional<Label> newest;
    for (const auto& copy : copies) {
        if (copy && (!newest || copy->generation > newest->generation)) newest = *copy;
    }
    return newest;
}

}  // namespace fopd::devices
