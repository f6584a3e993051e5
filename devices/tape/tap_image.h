#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/result.h"
#include "devices/tape/record_map.h"

namespace fopd::devices {

// The format of a cartridge's image, that of SIMH (docs/formats/virtual_library.md).
inline constexpr std::size_t kTapLengthBytes = 4;
inline constexpr std::uint32_t kTapFilemark = 0;
inline constexpr std::uint32_t kTapGap = 0xffff'fffe;
inline constexpr std::uint32_t kTapEnd = 0xffff'ffff;
inline constexpr std::uint32_t kTapBlockMax = 0x00ff'ffff;

// Reads bytes of an image; as many as there are.
using ReadImage =
    std::function<Result<std::size_t>(std::uint64_t offset, std::span<std::byte> into)>;

struct MappedImage {
    RecordMap records;
    // kWhole: the image ends behind a record, or with the end marker. kDamaged: the bytes behind
    // the last record are not a record.
    enum class End : std::uint8_t { kWhole, kDamaged } end = End::kWhole;
};

// Finds the records of an image, without reading their bytes. Fails only if `read` does.
Result<MappedImage> map_image(const ReadImage& read, std::uint64_t size_bytes);

}  // namespace fopd::devices
