// Whatever the bytes of a listing: it is refused, or all that is read of it lies within it and is
// the same when it is written anew.
//
//     build/fuzz/bin/fuzz_listing tests/fuzz/corpus/listing
//
// The corpus holds the samples of tests/fop/samples.cc:
//
//     build/dev/bin/message_samples tests/fuzz/corpus/listing listings
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ensure.h"
#include "fop/listing.h"

using namespace fopd::fop;

namespace {

template <typename Read>
void reread(std::span<const std::byte> payload, Read read) {
    const auto entries = read(payload);
    if (!entries) return;
    std::vector<std::byte> copy(payload.size());
    ListingWriter writer(copy);
    for (const auto& entry : *entries) {
        const bool added = writer.add(entry);
        ENSURE(added);
    }
    const auto again = read(writer.written());
    ENSURE(again.has_value());
    ENSURE(*again == *entries);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    // A copy that ends where the payload does: looking beyond it is found.
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    const std::vector<std::byte> payload(bytes.begin(), bytes.end());
    reread(payload, &read_list);
    reread(payload, &read_slots);
    reread(payload, &read_pools);
    reread(payload, &read_quotas);
    reread(payload, &read_recalls);
    reread(payload, &read_formats);
    reread(payload, &read_media);
    reread(payload, &read_copies);
    reread(payload, &read_failed_copies);
    return 0;
}
