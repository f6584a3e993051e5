#include "devices/tape/tap_image.h"

#include <array>
#include <optional>

#include "core/byte_order.h"

namespace fopd::devices {

namespace {

// Gives the lengths in an image. It reads ahead a little, so that small records, and the length
// behind a block and the one before the next, need one read together.
class Lengths {
public:
    Lengths(const ReadImage& read, std::uint64_t size_bytes) : read_(read), size_(size_bytes) {}

    // Nothing: the image ends before.
    Result<std::optional<std::uint32_t>> at(std::uint64_t offset) {
        if (size_ < kTapLengthBytes || offset > size_ - kTapLengthBytes) return std::nullopt;
        if (offset < begin_ || offset + kTapLengthBytes > begin_ + known_) {
            const auto got = read_(offset, window_);
            if (!got) return std::unexpected(got.error());
            begin_ = offset;
            known_ = *got;
            if (known_ < kTapLengthBytes) return std::nullopt;
        }
        return get_little<std::uint32_t>(window_, offset - begin_);
    }

private:
    const ReadImage& read_;
    const std::uint64_t size_;
    std::array<std::byte, 4096> window_{};
    std::uint64_t begin_ = 0;
    std::size_t known_ = 0;
};

// The blocks that SIMH marks as unreadable have this in their length.
constexpr std::uint32_t kUnreadable = 0x8000'0000;

}  // namespace

Result<MappedImage> map_image(const ReadImage& read, std::uint64_t size_bytes) {
    Lengths lengths(read, size_bytes);
    MappedImage image;
    RecordMap& records = image.records;
    while (records.end_offset() < size_bytes) {
        const std::uint64_t offset = records.end_offset();
        const auto length = lengths.at(offset);
        if (!length) return std::unexpected(length.error());
        if (*length == kTapEnd) return image;
        if (*length == kTapFilemark) {
            records.add(0);
            continue;
        }
        if (*length == kTapGap) {
            records.add_gap(kTapLengthBytes);
            continue;
        }
        const std::uint32_t block_bytes = length->value_or(0) & ~kUnreadable;
        if (block_bytes == 0 || block_bytes > kTapBlockMax) break;
        const auto again = lengths.at(offset + image_bytes(block_bytes) - kTapLengthBytes);
        if (!again) return std::unexpected(again.error());
        if (*again != *length) break;
        if (*length == block_bytes) {
            records.add(block_bytes);
        } else {
            records.add_unreadable(block_bytes);
        }
    }
    if (records.end_offset() < size_bytes) image.end = MappedImage::End::kDamaged;
    return image;
}

}  // namespace fopd::devices
