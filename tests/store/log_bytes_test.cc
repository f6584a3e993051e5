// Goal: what the log writes is what docs/formats/log.md says, comes back as it was, and is refused
// when it is not; and the room that is promised is there, whatever the entries' sizes.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "core/random.h"
#include "store/log_entry.h"
#include "store/log_space.h"
#include "store/superblock.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::store;

namespace {

LogId counting_id() {
    LogId id;
    for (std::size_t i = 0; i < id.size(); ++i) id[i] = static_cast<std::byte>(0x40 + i);
    return id;
}

Superblock example_superblock() {
    return {.disk_id = counting_id(),
            .schema_version = 3,
            .segment_blocks = 256,
            .generation = 12,
            .epoch = 3,
            .epoch_first_seq = 900,
            .earlier_first_seqs = {870, 1},
            .trusted_seq = 1000,
            .clean = false,
            .segments = {{.number = 7, .first_seq = 801},
                         {.number = 3, .first_seq = 1001},
                         {.number = 4},
                         {.number = 0}}};
}

std::vector<std::byte> encoded(const Superblock& superblock) {
    std::vector<std::byte> bytes(kSuperblockBytes, std::byte{0xee});
    REQUIRE(encode_superblock(superblock, bytes) % 4096 == 0);
    return bytes;
}

const EntryHeader kExampleHeader{
    .epoch = 3, .seq = 1001, .mark = 998, .payload_bytes = 5, .record_count = 2};

std::vector<std::byte> sealed(const EntryHeader& header) {
    std::vector<std::byte> bytes(entry_blocks(header.payload_bytes) * std::size_t{4096},
                                 std::byte{0xee});
    for (std::size_t i = 0; i < header.payload_bytes; ++i) {
        bytes[kEntryHeaderBytes + i] = static_cast<std::byte>('a' + i % 26);
    }
    seal_entry(bytes, counting_id(), header);
    return bytes;
}

// Relative to the root of the project, where tests run.
std::string document() {
    std::ifstream file("docs/formats/log.md");
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string shown(const std::string& name, std::span<const std::byte> bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    std::string text = "    " + name + ", " + std::to_string(bytes.size()) + " bytes\n";
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        const std::string offset = std::to_string(at);
        text += "    " + std::string(4 - offset.size(), ' ') + offset + " ";
        for (const std::byte byte :
             bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at))) {
            const auto value = static_cast<unsigned>(byte);
            text += std::string(" ") + kDigits[value / 16] + kDigits[value % 16];
        }
        text += "\n";
    }
    return text;
}

}  // namespace

TEST_CASE("store log bytes: the written bytes match the document's examples", "[store]") {
    const auto superblock = encoded(example_superblock());
    const auto entry = sealed(kExampleHeader);
    const std::string expected = shown("superblock", std::span(superblock).first(176)) + "\n" +
                                 shown("entry", std::span(entry).first(69));
    INFO("the document should show\n" << expected);
    const std::string text = document();
    REQUIRE(text.find(expected) != std::string::npos);
}

TEST_CASE("store superblock: comes back as it was written", "[store]") {
    Superblock superblock = example_superblock();
    REQUIRE(parse_superblock(encoded(superblock)).value() == superblock);

    superblock.clean = true;
    superblock.segments.clear();
    for (std::uint32_t i = 0; i < kSuperblockSegmentsMax; ++i) {
        superblock.segments.push_back({.number = 3 * i, .first_seq = i < 5 ? 801 + i : 0});
    }
    REQUIRE(parse_superblock(encoded(superblock)).value() == superblock);
}

TEST_CASE("store superblock: a flipped bit is refused", "[store]") {
    const auto whole = encoded(example_superblock());
    for (std::size_t bit = 0; bit < 176UL * 8; ++bit) {
        auto bytes = whole;
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        CAPTURE(bit);
        REQUIRE(!parse_superblock(bytes).has_value());
    }
}

TEST_CASE("store superblock: blank, newer and senseless ones are told apart", "[store]") {
    const auto refusal = [](const std::vector<std::byte>& bytes) {
        const auto parsed = parse_superblock(bytes);
        REQUIRE(!parsed.has_value());
        return parsed.error().code;
    };
    REQUIRE(refusal(std::vector<std::byte>(kSuperblockBytes)) == Errc::kNotFound);
    auto newer = encoded(example_superblock());
    newer[8] = std::byte{2};
    REQUIRE(refusal(newer) == Errc::kUnsupported);
    auto damaged = encoded(example_superblock());
    damaged[75] = std::byte{0xff};  // Segments without end.
    REQUIRE(refusal(damaged) == Errc::kCorrupt);
}

TEST_CASE("store log entry: comes back as it was sealed", "[store]") {
    const auto payload_bytes = GENERATE(0U, 1U, 4032U, 4033U, 100'000U);
    EntryHeader header = kExampleHeader;
    header.payload_bytes = payload_bytes;
    const auto bytes = sealed(header);

    const auto found = peek_entry(bytes, counting_id());
    REQUIRE(found.has_value());
    REQUIRE(*found == header);
    REQUIRE(entry_is_whole(bytes, *found));
    // What is behind it, in its last block, is nobody's old memory.
    const auto rest = std::span(bytes).subspan(kEntryHeaderBytes + payload_bytes);
    REQUIRE(std::ranges::count(rest, std::byte{0}) == std::ssize(rest));
}

TEST_CASE("store log entry: a flipped bit, another log and a cut one are refused", "[store]") {
    const auto whole = sealed(kExampleHeader);
    for (std::size_t bit = 0; bit < 69UL * 8; ++bit) {
        auto bytes = whole;
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        const auto found = peek_entry(bytes, counting_id());
        CAPTURE(bit);
        REQUIRE((!found || !entry_is_whole(bytes, *found)));
    }
    REQUIRE(!peek_entry(whole, LogId{}).has_value());
    const auto found = peek_entry(whole, counting_id());
    REQUIRE(!entry_is_whole(std::span(whole).first(68), *found));
    REQUIRE(!entry_is_whole(std::span(whole).first(60), *found));
    EntryHeader huge = *found;
    huge.payload_bytes = std::numeric_limits<std::uint32_t>::max();
    REQUIRE(!entry_is_whole(whole, huge));
}

TEST_CASE("store log space: what was promised fits, whatever the sizes", "[store]") {
    // Method: promise as much as is allowed, join what was promised to entries in all ways, take
    // them. take() itself ENSUREs that there is a segment for each.
    const auto seed = GENERATE(range(1, 60));
    core::Random random(static_cast<std::uint64_t>(seed));
    const auto entry_max = static_cast<std::uint32_t>(1 + random.below(8));
    LogSpace space({.segment_blocks = 4 * entry_max + static_cast<std::uint32_t>(random.below(9)),
                    .entry_blocks_max = entry_max});
    space.restore({{0, 1}, {1, 0}, {2, 0}, {3, 0}}, 0, 0);
    std::vector<std::uint32_t> promised;
    std::uint64_t seq = 0;
    std::uint32_t next_segment = 4;
    for (int round = 0; round < 3000; ++round) {
        const auto blocks = static_cast<std::uint32_t>(1 + random.below(entry_max));
        if (space.fits(blocks, 0)) {
            space.promise(blocks);
            promised.push_back(blocks);
        }
        while (!promised.empty() && random.below(3) == 0) {
            std::uint32_t together = 0;
            while (!promised.empty() && together + promised.back() <= entry_max) {
                together += promised.back();
                promised.pop_back();
            }
            const auto used = static_cast<std::uint32_t>(1 + random.below(together));
            space.release(together - used);
            space.take({.seq = ++seq, .blocks = used});
        }
        if (space.head() > 0 && random.below(2) == 0) {
            space.remove_oldest();
            space.add(next_segment++);
        }
    }
    REQUIRE(seq > 100);
    const auto& segments = space.segments();
    REQUIRE(segments[space.head()].first_seq > segments.front().first_seq - 1);
}
