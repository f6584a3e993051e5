// Whatever bytes a client calls a descriptor, sealed by it or not: what is accepted allows what is
// needed, and is sealed again to the same bytes.
//
//     build/fuzz/bin/fuzz_descriptor -max_len=128 tests/fuzz/corpus/descriptor
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/ensure.h"
#include "fop/bytes.h"
#include "fop/mac.h"
#include "tests/fop/sealed_examples.h"

using namespace fopd;
using namespace fopd::fop;

namespace {

void check(std::span<const std::byte> bytes, const DescriptorNeed& need) {
    const auto checked = check_descriptor(bytes, kDescriptorKey, need);
    if (!checked) {
        const bool is_known = checked.error().code == fopd::Errc::kInvalid ||
                              checked.error().code == fopd::Errc::kDenied;
        ENSURE(is_known);
        return;
    }
    ENSURE(checked->use == need.use);
    ENSURE(checked->session == need.session);
    ENSURE(checked->operation == need.operation);
    ENSURE(checked->bytes >= need.bytes);
    ENSURE(checked->address <= std::numeric_limits<std::uint64_t>::max() - checked->bytes);
    ENSURE(std::ranges::equal(seal(*checked, kDescriptorKey), bytes));
}

// The need that fits the fields, so that the last checks are reached too.
DescriptorNeed need_of(const Descriptor::Bytes& bytes) {
    return {.use = static_cast<DescriptorUse>(bytes[1]),
            .session = load_little<std::uint64_t>(&bytes[8]),
            .operation = load_little<std::uint64_t>(&bytes[16]),
            .bytes = load_little<std::uint64_t>(&bytes[40]) / 2};
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    check(bytes, kDescriptorNeed);

    Descriptor::Bytes sealed{};
    std::ranges::copy(bytes.first(std::min<std::size_t>(bytes.size(), 48)), sealed.begin());
    std::ranges::copy(mac(kDescriptorKey, std::span(sealed).first<48>()).bytes,
                      sealed.begin() + 48);
    check(sealed, kDescriptorNeed);
    if (sealed[1] == std::byte{1} || sealed[1] == std::byte{2}) check(sealed, need_of(sealed));
    return 0;
}
