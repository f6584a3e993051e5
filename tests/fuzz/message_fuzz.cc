// Whatever the bytes of a message: it is refused, or all that the readers hand out lies within it
// and stays the same when it is written anew.
//
//     build/fuzz/bin/fuzz_message -max_len=8192 tests/fuzz/corpus/message
//
// The corpus holds the samples of tests/fop/samples.cc, to which a new type of fop adds its own:
//
//     build/dev/bin/message_samples tests/fuzz/corpus/message
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fop/bytes.h"
#include "fop/prefix.h"
#include "tests/fop/reread.h"

using namespace fopd::fop;

namespace {

// Makes the prefix tell the truth, so that what changes the length is not refused for that alone.
void repair(std::vector<std::byte>& message) {
    const std::size_t envelope_max = message.size() - kPrefixBytes;
    const std::size_t envelope_said = load_little<std::uint32_t>(message.data() + 28);
    const std::size_t start = kPrefixBytes + envelope_max - std::min(envelope_said, envelope_max);
    const std::size_t envelope_bytes = message.size() - start / 8 * 8;
    store_little(message.data(), kMagic);
    store_little(message.data() + 4, kMajorVersion);
    message[6] = static_cast<std::byte>(1 + static_cast<unsigned>(message[6]) % 4);
    store_little(message.data() + 24, static_cast<std::uint32_t>(message.size()));
    store_little(message.data() + 28, static_cast<std::uint32_t>(envelope_bytes));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    // A copy that ends where the message does: looking beyond it is found.
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    std::vector<std::byte> message(bytes.begin(), bytes.end());
    reread(message);
    if (message.size() <= kPrefixBytes) return 0;
    repair(message);
    reread(message);
    return 0;
}
