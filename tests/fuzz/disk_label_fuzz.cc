// Whatever a disk holds where its label should be: it is read or refused, never more; what is read
// is written again to the same bytes. Half of the inputs get a right checksum, so that what is
// behind it is reached.
//
//     build/fuzz/bin/fuzz_disk_label -max_len=160 tests/fuzz/corpus/disk_label
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "devices/label.h"

using namespace fopd::devices;

namespace {

using Bytes = std::array<std::byte, kBlockBytes>;

void check(const Bytes& bytes) {
    const auto label = read_label(bytes);
    if (!label) return;
    Bytes again;
    write_label(*label, again);
    ENSURE(again == bytes);
    ENSURE(label->offset() < kLabelCopies * kBlockBytes);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    Bytes bytes{};
    std::memcpy(bytes.data(), data, std::min(size_bytes, bytes.size()));
    check(bytes);
    constexpr std::size_t kChecksumAt = 12;
    std::memset(bytes.data() + kChecksumAt, 0, sizeof(std::uint32_t));
    const std::uint32_t sum = fopd::core::crc32c(bytes);
    std::memcpy(bytes.data() + kChecksumAt, &sum, sizeof sum);
    check(bytes);
    return 0;
}
