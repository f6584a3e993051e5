#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "devices/device.h"

namespace fopd::devices {

// Random, and never assigned twice.
using DiskId = std::array<std::byte, 16>;
using NodeId = std::array<std::byte, 16>;

// 32 hexadecimal digits, the form for users and files.
std::string format_id(const DiskId& id);
std::optional<DiskId> parse_id(std::string_view text);

inline bool all_zero(std::span<const std::byte> bytes) {
    if (bytes.empty()) return true;
    // The first byte is zero and each byte equals its predecessor: memcmp() compares many at a
    // time.
    return bytes.front() == std::byte{0} &&
           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

inline constexpr std::size_t kPoolNameBytesMax = 64;
// The label's copies are the first blocks of a disk, one block each.
inline constexpr std::uint64_t kLabelCopies = 2;

enum class LabelState : std::uint8_t {
    kActive = 1,
    kRetired = 2,   // Was taken out of service in order: contains no data any more.
    kReleased = 3,  // The same, but its own node can open it again.
};

// Identifies a disk and its owner. docs/formats/label.md has the bytes.
struct Label {
    DiskId disk{};
    NodeId owner{};
    // Increases by one with each label written.
    std::uint64_t generation = 0;
    // The disk's size when it was taken. It may be larger now.
    std::uint64_t size_bytes = 0;
    std::int64_t created_unix_ns = 0;
    std::uint32_t segment_bytes = 0;
    std::uint16_t slot = 0;
    LabelState state = LabelState::kActive;
    std::string pool;

    std::uint32_t segment_blocks() const {
        return static_cast<std::uint32_t>(segment_bytes / kBlockBytes);
    }
    // The generation determines the copy to write: never the newest one.
    std::uint64_t offset() const { return generation % kLabelCopies * kBlockBytes; }

    friend bool operator==(const Label&, const Label&) = default;
};

using LabelBlock = std::span<std::byte, kBlockBytes>;
using ConstLabelBlock = std::span<const std::byte, kBlockBytes>;

// REQUIRES: a pool's name of 1 to 64 bytes, a segment size that is a power of two of whole blocks.
void write_label(const Label& label, LabelBlock into);

enum class LabelFlaw : std::uint8_t {
    kNone,     // Apparently never a label of ours.
    kDamaged,  // A damaged label of ours.
    kNewer,    // A label in a newer format, unknown to this program.
};
// Accepts any bytes, because they come from a disk.
std::expected<Label, LabelFlaw> read_label(ConstLabelBlock from);

// The copies of the label on a disk: for each, the label or the reason why it is not valid.
using LabelCopies = std::array<std::expected<Label, LabelFlaw>, kLabelCopies>;
// The newest of the copies that are labels.
std::optional<Label> newest_of(const LabelCopies& copies);

}  // namespace fopd::devices
