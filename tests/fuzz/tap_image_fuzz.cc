// Whatever is in the image of a cartridge: its records are found within it, and lie one behind the
// other; without what is behind them they are found again, and another one can be written there.
//
//     build/fuzz/bin/fuzz_tap_image -max_len=20000 tests/fuzz/corpus/tap_image
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "devices/tape/tap_image.h"

using namespace fopd;
using namespace fopd::devices;

namespace {

MappedImage map_bytes(std::span<const std::byte> bytes) {
    const ReadImage read = [bytes](std::uint64_t offset,
                                   std::span<std::byte> into) -> Result<std::size_t> {
        ENSURE(offset <= bytes.size());
        const std::size_t size = std::min(into.size(), bytes.size() - offset);
        if (size > 0) std::memcpy(into.data(), bytes.data() + offset, size);
        return size;
    };
    const auto image = map_image(read, bytes.size());
    ENSURE(image.has_value());
    return *image;
}

// Every record is where the map says. Gaps are between records only.
void check_records(std::span<const std::byte> bytes, const RecordMap& records) {
    std::uint64_t end = 0;
    std::uint64_t filemarks = 0;
    for (std::uint64_t number = 0; number < records.count(); ++number) {
        const TapeRecord record = records.find(number);
        ENSURE(record.number == number);
        ENSURE(record.offset >= end);
        ENSURE(record.filemarks == filemarks);
        end = record.offset + image_bytes(record.size_bytes);
        ENSURE(end <= bytes.size());
        const auto length = get_little<std::uint32_t>(bytes, record.offset);
        ENSURE((length & kTapBlockMax) == record.size_bytes);
        ENSURE(record.readable == (length == record.size_bytes));
        if (!record.is_filemark()) continue;
        ++filemarks;
        ENSURE(records.behind_filemark(filemarks) == number + 1);
    }
    ENSURE(records.filemarks() == filemarks);
    ENSURE(records.end_offset() >= end);
    ENSURE(records.end_offset() <= bytes.size());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const std::span input(reinterpret_cast<const std::byte*>(data), size_bytes);
    const MappedImage image = map_bytes(input);
    check_records(input, image.records);

    const auto whole = input.first(image.records.end_offset());
    std::vector<std::byte> more(whole.begin(), whole.end());
    ENSURE(map_bytes(more).end == MappedImage::End::kWhole);
    more.resize(more.size() + kTapLengthBytes);
    const MappedImage longer = map_bytes(more);
    ENSURE(longer.end == MappedImage::End::kWhole);
    ENSURE(longer.records.count() == image.records.count() + 1);
    ENSURE(longer.records.filemarks() == image.records.filemarks() + 1);
    return 0;
}
