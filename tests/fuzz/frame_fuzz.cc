// Whatever bytes a connection over TCP delivers: the frames found are the same however the stream
// is split, also when it is encrypted; a body never exceeds the length that was announced, and
// nothing more is delivered after an error. Bytes that are no encrypted records deliver nothing.
//
//     build/fuzz/bin/fuzz_frame -max_len=4096 tests/fuzz/corpus/frame
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/ensure.h"
#include "fabric/tcp/frame_reader.h"
#include "fabric/tcp/record_reader.h"
#include "tests/fabric/records.h"

using namespace fopd;
using namespace fopd::fabric;

namespace {

// What a connection does with frames: messages as a whole, writes into memory, the rest skipped.
class User final : public FrameUser {
public:
    Result<Destination> on_frame(const Frame& frame) override {
        ENSURE(!failed);
        const auto again = decode_frame(encode_frame(frame));
        ENSURE(again && *again == frame);
        if (frame.length > kBodyMax) {
            failed = true;
            return std::unexpected(Error{.code = Errc::kInvalid});
        }
        frames.push_back(frame);
        if (frame.kind == FrameKind::kWrite || frame.kind == FrameKind::kReadData) {
            memory.assign(frame.length, std::byte{0});
            return Destination{.kind = Destination::Kind::kMemory, .memory = memory};
        }
        if (frame.kind == FrameKind::kMessage) return Destination{};
        return Destination{.kind = Destination::Kind::kNowhere};
    }
    bool on_body(const Frame& frame, std::span<const std::byte> body) override {
        ENSURE(!failed && frame == frames.back());
        if (frame.kind == FrameKind::kMessage) {
            ENSURE(body.size() == frame.length);
        } else {
            ENSURE(body.empty());
            body = frame.body_bytes() == memory.size() ? std::span<const std::byte>(memory) : body;
        }
        bodies.insert(bodies.end(), body.begin(), body.end());
        memory.clear();
        return true;
    }

    static constexpr std::uint32_t kBodyMax = 2048;
    bool failed = false;
    std::vector<std::byte> memory;
    std::vector<Frame> frames;
    std::vector<std::byte> bodies;
};

// The bytes in records of many sizes.
std::vector<std::byte> encrypted(std::span<const std::byte> bytes) {
    std::size_t size = 1;
    return testing::in_records(bytes, [&size] { return std::exchange(size, size * 3 % 1009); });
}

// Delivers bytes to a reader of records in parts; false after an error.
bool take_records(std::span<const std::byte> bytes, FrameReader& frames) {
    RecordReader records{fop::Key()};
    std::vector<std::byte> scratch(kRecordPlainMax);
    for (std::size_t step = 1; !bytes.empty(); step = step * 2 % 509 + 1) {
        const auto part = bytes.first(std::min(step, bytes.size()));
        if (!records.take(part, frames, scratch)) return false;
        bytes = bytes.subspan(part.size());
    }
    return true;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    User at_once;
    FrameReader whole(at_once);
    const bool is_good = whole.take(bytes).has_value();

    User in_parts;
    FrameReader parts(in_parts);
    bool is_good_in_parts = true;
    std::size_t step = 1;
    for (std::size_t at = 0; at < bytes.size() && is_good_in_parts;) {
        // Some parts are received directly, as a connection does with the rest of a body.
        std::span<const std::byte> part = bytes.subspan(at, std::min(step, bytes.size() - at));
        if (const std::span<std::byte> target = parts.target(); !target.empty()) {
            part = part.first(std::min(part.size(), target.size()));
            std::ranges::copy(part, target.begin());
            is_good_in_parts = parts.filled(part.size()).has_value();
        } else {
            is_good_in_parts = parts.take(part).has_value();
        }
        at += part.size();
        step = step * 2 + 1;
        if (step > 300) step = 1;
    }

    ENSURE(is_good == is_good_in_parts);
    ENSURE(at_once.frames == in_parts.frames);
    ENSURE(at_once.bodies == in_parts.bodies);

    User from_records;
    FrameReader decrypted(from_records);
    ENSURE(take_records(encrypted(bytes), decrypted) == is_good);
    ENSURE(at_once.frames == from_records.frames);
    ENSURE(at_once.bodies == from_records.bodies);

    User from_garbage;
    FrameReader garbage(from_garbage);
    [[maybe_unused]] const bool is_incomplete = take_records(bytes, garbage);
    ENSURE(from_garbage.frames.empty());
    return 0;
}
