// Whatever stands in an index of names: a claim is refused, or is the same when it is written
// again, and lies where its name is looked for.
//
//     build/fuzz/bin/fuzz_names -max_len=600 tests/fuzz/corpus/names
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ensure.h"
#include "store/name_key.h"

using namespace fopd::store;

namespace {

bool is_between(Bytes key, Bytes first, Bytes last) {
    return !std::ranges::lexicographical_compare(key, first) &&
           !std::ranges::lexicographical_compare(last, key);
}

void check_claim(NameKind kind, Bytes key) {
    const auto claim = read_claim(kind, {.key = key, .value = {}});
    if (!claim) return;
    ENSURE(std::ranges::equal(NameKey::claim(kind, claim->claim()).bytes(), key));
    if (kind != NameKind::kClaim) return;
    ENSURE(is_between(key, NameKey::first_claim(claim->name), NameKey::last_claim(claim->name)));
    ENSURE(!is_between(key, NameKey::behind_name(claim->name), NameKey::last_of(kind)));
}

void check_values(Bytes value) {
    ValueBuffer buffer;
    if (const auto head = read_name_head(value)) {
        ENSURE(std::ranges::equal(write_name_head(buffer, *head), value));
    }
    if (const auto seq = read_known_seq(value)) {
        ENSURE(std::ranges::equal(write_known_seq(buffer, *seq), value));
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const Bytes bytes = std::as_bytes(std::span(data, std::min(size_bytes, kIndexKeyBytesMax)));
    if (bytes.empty()) return 0;
    check_claim(NameKind::kClaim, bytes);
    check_claim(NameKind::kOutranked, bytes);
    check_values(bytes);
    return 0;
}
