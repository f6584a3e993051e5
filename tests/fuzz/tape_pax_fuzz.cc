// Whatever stands where the header of a copy on a tape should: it is read or refused, and what is
// read says the same when it is written again. The sums of headers are made right, which chance
// would not.
//
//     build/fuzz/bin/fuzz_tape_pax -max_len=8192 tests/fuzz/corpus/tape_pax
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "core/ensure.h"
#include "store/tape/pax.h"

using namespace fopd::store;

namespace {

void mend_sum(std::span<std::byte> unit) {
    std::memset(unit.data() + 148, ' ', 8);
    unsigned sum = 0;
    for (const std::byte byte : unit) sum += std::to_integer<unsigned>(byte);
    std::array<char, 8> digits{};
    std::snprintf(digits.data(), digits.size(), "%06o", sum);
    std::memcpy(unit.data() + 148, digits.data(), digits.size());
}

void check(std::vector<std::byte> bytes) {
    const auto size = member_header_bytes(std::span(std::as_const(bytes)).first<kPaxUnitBytes>());
    if (!size || *size == 0) return;
    ENSURE(*size <= kMemberHeaderBytesMax);
    bytes.resize(std::max(bytes.size(), *size));
    mend_sum(std::span(bytes).subspan(*size - kPaxUnitBytes, kPaxUnitBytes));
    const auto header = parse_member_header(std::span(bytes).first(*size));
    if (!header) return;
    ENSURE(is_valid(header->member));
    if (header->path != member_path(*header, 1, 0)) return;
    const auto again = encode_member_header(*header, 0);
    const auto reread = parse_member_header(again);
    ENSURE(reread.has_value());
    ENSURE(*reread == *header);
    const auto list = encode_checksums_header(*header);
    ENSURE(check_checksums_header(std::span(list).first<kPaxUnitBytes>(), *header).has_value());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto given = std::as_bytes(std::span(data, size_bytes));
    std::vector<std::byte> bytes(given.begin(), given.end());
    bytes.resize(std::max<std::size_t>(bytes.size(), 2 * kPaxUnitBytes));
    check(bytes);
    mend_sum(std::span(bytes).first(kPaxUnitBytes));
    check(std::move(bytes));
    return 0;
}
