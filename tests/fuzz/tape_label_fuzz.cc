// Whatever stands where labels of a tape should: what is accepted is written again to the same
// bytes.
//
//     build/fuzz/bin/fuzz_tape_label -max_len=240 tests/fuzz/corpus/tape_label
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ensure.h"
#include "store/tape/labels.h"

using namespace fopd::store;

namespace {

using Labels = std::array<TapeLabel, kFileLabels>;

void check_file_labels(const Labels& labels) {
    for (const auto side : {FileLabels::Side::kHeader, FileLabels::Side::kTrailer}) {
        const auto parsed = parse_file_labels(side, labels);
        if (parsed) ENSURE(encode_file_labels(side, *parsed) == labels);
    }
}

void check_volume_label(std::span<const std::byte> bytes) {
    const auto parsed = parse_volume_label(bytes);
    if (!parsed) return;
    const auto reread = parse_volume_label(encode_volume_label(*parsed));
    ENSURE(reread.has_value());
    ENSURE(*reread == *parsed);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto given = std::as_bytes(std::span(data, size_bytes));
    check_volume_label(given);
    Labels labels;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i].fill(std::byte{' '});
        const std::size_t at = std::min(i * kTapeLabelBytes, given.size());
        const std::size_t size = std::min(given.size() - at, kTapeLabelBytes);
        std::ranges::copy(given.subspan(at, size), labels[i].begin());
    }
    check_volume_label(labels[0]);
    check_file_labels(labels);
    return 0;
}
