// Whatever the bytes of a message: it is refused, or all that the readers hand out lies within it
// and stays the same when it is written anew.
//
//     build/fuzz/bin/fuzz_message -max_len=8192 tests/fuzz/corpus/message
//
// The corpus holds the samples of tests/fop/samples.cc, to which a new type of fop adds its own:
//
//     build/dev/bin/message_samples tests/fuzz/corpus/message
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fop/prefix.h"
#include "tests/fop/reread.h"
#include "tests/fuzz/repaired_prefix.h"

using namespace fopd::fop;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    // A copy that ends where the message does: looking beyond it is found.
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    std::vector<std::byte> message(bytes.begin(), bytes.end());
    reread(message);
    if (message.size() <= kPrefixBytes) return 0;
    repair_prefix(message);
    reread(message);
    return 0;
}
