#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/copy_bytes.h"
#include "fabric/tcp/frame_reader.h"
#include "fabric/tcp/record_reader.h"
#include "tests/catch.h"
#include "tests/fabric/records.h"

namespace fopd::fabric {

namespace {

// Collects what a reader delivers. Bodies of kWrite go into memory.
class Collector final : public FrameUser {
public:
    Result<Destination> on_frame(const Frame& frame) override {
        if (frame.length > length_max) return std::unexpected(Error{.code = Errc::kInvalid});
        if (frame.kind != FrameKind::kWrite) return Destination{};
        memory.assign(frame.length, std::byte{0});
        return Destination{.kind = Destination::Kind::kMemory, .memory = memory};
    }
    bool on_body(const Frame& frame, std::span<const std::byte> body) override {
        if (frame.kind == FrameKind::kWrite) body = memory;
        frames.emplace_back(frame,
                            std::string(reinterpret_cast<const char*>(body.data()), body.size()));
        return frames.size() != stop_after;
    }

    std::uint32_t length_max = 1 << 20;
    std::size_t stop_after = 0;
    std::vector<std::byte> memory;
    std::vector<std::pair<Frame, std::string>> frames;
};

void append(std::vector<std::byte>& stream, const Frame& frame, std::string_view body) {
    const FrameHeader header = encode_frame(frame);
    stream.insert(stream.end(), header.begin(), header.end());
    const auto bytes = std::as_bytes(std::span(body));
    stream.insert(stream.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> example_stream() {
    std::vector<std::byte> stream;
    append(stream, {.kind = FrameKind::kConnect, .length = 5}, "hello");
    append(stream, {.kind = FrameKind::kMessage, .length = 0}, "");
    append(stream, {.kind = FrameKind::kRead, .length = 77, .tag = 1, .key = 2, .address = 3}, "");
    append(stream, {.kind = FrameKind::kWrite, .length = 12, .key = 9, .address = 8},
           "twelve bytes");
    append(stream, {.kind = FrameKind::kMessage, .length = 7}, "message");
    return stream;
}

std::vector<std::string> bodies(const Collector& collector) {
    std::vector<std::string> all;
    for (const auto& [frame, body] : collector.frames) all.push_back(body);
    return all;
}

}  // namespace

TEST_CASE("fabric frame: a header has the bytes of the documented example", "[fabric]") {
    const FrameHeader header = encode_frame({.kind = FrameKind::kRead,
                                             .length = 0x00010000,
                                             .tag = 7,
                                             .key = 0x1122334455667788,
                                             .address = 0x2000});

    const std::array<unsigned char, kFrameHeaderBytes> expected{
        0x66, 0x70, 0x05, 0x00, 0x00, 0x00, 0x01, 0x00, 0x07, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33,
        0x22, 0x11, 0x00, 0x20, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
    REQUIRE(std::ranges::equal(header, std::as_bytes(std::span(expected))));
}

TEST_CASE("fabric frame: a header is decoded to what was encoded", "[fabric]") {
    for (std::uint8_t kind = 1; kind <= 7; ++kind) {
        const Frame frame{.kind = static_cast<FrameKind>(kind),
                          .length = 48,
                          .tag = 0xfffffffe,
                          .key = ~std::uint64_t{5},
                          .address = std::uint64_t{1} << 63};
        const auto decoded = decode_frame(encode_frame(frame));
        REQUIRE(decoded.has_value());
        REQUIRE(*decoded == frame);
    }
}

TEST_CASE("fabric frame: a header with a wrong byte is refused", "[fabric]") {
    // A byte of the header and a value that it may not have.
    const auto [at, value] = GENERATE(table<std::size_t, unsigned>(
        {{0, 0x65}, {1, 0x71}, {2, 0}, {2, 8}, {3, 1}, {12, 1}, {15, 0x80}}));
    CAPTURE(at, value);
    FrameHeader header = encode_frame({.kind = FrameKind::kMessage, .length = 9});

    header[at] = static_cast<std::byte>(value);

    const auto decoded = decode_frame(header);
    REQUIRE_FALSE(decoded.has_value());
    REQUIRE(decoded.error().code == Errc::kInvalid);
}

TEST_CASE("fabric frame: each kind has a maximum length", "[fabric]") {
    const auto [kind, length_max] = GENERATE(table<FrameKind, std::uint32_t>({
        {FrameKind::kConnect, 48},
        {FrameKind::kAccept, 48},
        {FrameKind::kRefuse, 64},
        {FrameKind::kRead, kFrameTransferMax},
        {FrameKind::kReadData, kFrameTransferMax},
        {FrameKind::kWrite, kFrameTransferMax},
    }));

    REQUIRE(decode_frame(encode_frame({.kind = kind, .length = length_max})).has_value());
    REQUIRE_FALSE(decode_frame(encode_frame({.kind = kind, .length = length_max + 1})).has_value());
}

TEST_CASE("fabric frame reader: frames do not depend on how the stream is split", "[fabric]") {
    const std::vector<std::byte> stream = example_stream();
    const std::vector<std::string> expected{"hello", "", "", "twelve bytes", "message"};
    for (std::size_t first = 0; first <= stream.size(); ++first) {
        for (std::size_t second = first; second <= stream.size(); second += 5) {
            Collector collector;
            FrameReader reader(collector);
            const std::span<const std::byte> bytes(stream);

            REQUIRE(reader.take(bytes.first(first)).has_value());
            REQUIRE(reader.take(bytes.first(second).subspan(first)).has_value());
            REQUIRE(reader.take(bytes.subspan(second)).has_value());

            REQUIRE(bodies(collector) == expected);
            REQUIRE(reader.current() == nullptr);
        }
    }
}

namespace {

std::vector<std::byte> in_records(std::span<const std::byte> stream, std::size_t size) {
    return testing::in_records(stream, [size] { return size; });
}

// Reads records that arrive in two parts.
struct RecordRead {
    RecordRead(std::span<const std::byte> records, std::size_t first) {
        taken = reader.take(records.first(first), frames, scratch);
        if (taken) taken = reader.take(records.subspan(first), frames, scratch);
    }
    Collector collector;
    FrameReader frames{collector};
    RecordReader reader{fop::Key()};
    std::vector<std::byte> scratch = std::vector<std::byte>(kRecordPlainMax);
    Result<void> taken;
};

}  // namespace

TEST_CASE("fabric record reader: frames do not depend on records or how they arrive", "[fabric]") {
    const std::size_t size = GENERATE(1U, 3U, 40U, 16384U);
    const std::vector<std::byte> records = in_records(example_stream(), size);
    for (std::size_t first = 0; first <= records.size(); ++first) {
        const RecordRead read(records, first);
        REQUIRE(read.taken.has_value());
        REQUIRE(bodies(read.collector) ==
                std::vector<std::string>{"hello", "", "", "twelve bytes", "message"});
        REQUIRE(read.reader.held_bytes() == 0);
    }
}

TEST_CASE("fabric record reader: a record that was changed ends the stream", "[fabric]") {
    const std::size_t size = 60;
    const std::size_t record = kRecordLabelBytes + size + fop::RecordCipher::kTagBytes;
    const std::vector<std::byte> records = in_records(example_stream(), size);
    for (std::size_t at = 0; at < records.size(); ++at) {
        std::vector<std::byte> changed = records;
        changed[at] ^= std::byte{4};
        const RecordRead read(changed, at);
        REQUIRE(read.collector.frames.size() < 5);
        // A changed length may announce more than comes.
        const bool is_length = at % record < kRecordLabelBytes;
        if (is_length && read.taken) {
            REQUIRE(read.reader.held_bytes() > 0);
        } else {
            REQUIRE_FALSE(read.taken.has_value());
            REQUIRE(read.taken.error().code == Errc::kInvalid);
        }
    }
}

TEST_CASE("fabric record reader: a record that is left out or repeated ends the stream",
          "[fabric]") {
    const std::size_t size = 40;
    const std::size_t record = kRecordLabelBytes + size + fop::RecordCipher::kTagBytes;
    const std::vector<std::byte> records = in_records(example_stream(), size);
    std::vector<std::byte> changed(records.begin(), records.begin() + record);
    const bool is_repeated = GENERATE(true, false);
    changed.insert(changed.end(), records.begin() + (is_repeated ? 0 : 2 * record), records.end());
    const RecordRead read(changed, record);
    REQUIRE_FALSE(read.taken.has_value());
    REQUIRE(read.collector.frames.size() == 1);
}

TEST_CASE("fabric record reader: a length out of its range is refused at once", "[fabric]") {
    const std::uint32_t length = GENERATE(0U, 0x4001U, 0x10000U, 0x1000000U, 0xffffffffU);
    std::array<std::byte, 4> label;
    for (std::size_t i = 0; i < label.size(); ++i) {
        label[i] = static_cast<std::byte>(length >> (8 * i) & 0xff);
    }
    const RecordRead read(label, 4);
    REQUIRE_FALSE(read.taken.has_value());
}

TEST_CASE("fabric frame reader: a body may be received directly into its memory", "[fabric]") {
    Collector collector;
    FrameReader reader(collector);
    std::vector<std::byte> stream;
    append(stream, {.kind = FrameKind::kWrite, .length = 6}, "ab");
    REQUIRE(reader.take(stream).has_value());
    REQUIRE(reader.target().size() == 4);

    core::copy_bytes(std::as_bytes(std::span("cdef", 4)), reader.target());
    REQUIRE(reader.filled(3).has_value());
    REQUIRE(collector.frames.empty());
    REQUIRE(reader.filled(1).has_value());

    REQUIRE(bodies(collector) == std::vector<std::string>{"abcdef"});
    REQUIRE(reader.target().empty());
}

TEST_CASE("fabric frame reader: the rest of a body is skipped on demand", "[fabric]") {
    Collector collector;
    FrameReader reader(collector);
    std::vector<std::byte> stream;
    append(stream, {.kind = FrameKind::kWrite, .length = 6}, "abcdef");
    append(stream, {.kind = FrameKind::kMessage, .length = 4}, "next");
    const std::span<const std::byte> bytes(stream);
    REQUIRE(reader.take(bytes.first(kFrameHeaderBytes + 2)).has_value());

    reader.skip_rest();
    REQUIRE(reader.target().empty());
    REQUIRE(reader.take(bytes.subspan(kFrameHeaderBytes + 2)).has_value());

    REQUIRE(bodies(collector) == std::vector<std::string>{std::string("ab\0\0\0\0", 6), "next"});
}

TEST_CASE("fabric frame reader: a frame that its user refuses ends the reading", "[fabric]") {
    Collector collector;
    collector.length_max = 6;
    FrameReader reader(collector);

    const auto taken = reader.take(example_stream());

    REQUIRE_FALSE(taken.has_value());
    REQUIRE(taken.error().code == Errc::kInvalid);
    REQUIRE(bodies(collector) == std::vector<std::string>{"hello", ""});
}

TEST_CASE("fabric frame reader: a reader that is stopped delivers nothing more", "[fabric]") {
    Collector collector;
    collector.stop_after = 2;
    FrameReader reader(collector);

    const auto taken = reader.take(example_stream());

    REQUIRE_FALSE(taken.has_value());
    REQUIRE(taken.error().code == Errc::kClosed);
    REQUIRE(collector.frames.size() == 2);
}

}  // namespace fopd::fabric
