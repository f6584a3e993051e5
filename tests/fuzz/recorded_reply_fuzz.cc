// Whatever the bytes of a recorded reply: it is refused, or the same when it is written anew.
//
//     build/fuzz/bin/fuzz_recorded_reply tests/fuzz/corpus/recorded_reply
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ensure.h"
#include "objects/reply_record.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    // A copy that ends where the record does: looking beyond it is found.
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    const std::vector<std::byte> record(bytes.begin(), bytes.end());
    const auto reply = fopd::objects::read_recorded_reply(record);
    if (!reply) return 0;
    std::array<std::byte, fopd::objects::kRecordedReplyBytesMax> written;
    const auto again =
        fopd::objects::read_recorded_reply(fopd::objects::write_recorded_reply(*reply, written));
    ENSURE(again && *again == *reply);
    return 0;
}
