#include "reqh/write_plan.h"

#include <map>
#include <vector>

#include "core/crc32c.h"
#include "core/random.h"
#include "tests/catch.h"

namespace fopd::reqh {

namespace {

// Each byte of the ranges, as the chunks of a plan bring it: where in the object it goes, and where
// in the sender's memory it comes from.
std::map<std::uint64_t, std::uint64_t> carry_out(WritePlan& plan) {
    std::map<std::uint64_t, std::uint64_t> bytes;
    std::uint64_t last_block = 0;
    bool is_first = true;
    while (plan.next_chunk()) {
        for (const WritePlan::Block& block : plan.blocks()) {
            CHECK((is_first || block.number > last_block));
            last_block = block.number;
            is_first = false;
        }
        for (const WritePlan::Fragment& fragment : plan.fragments()) {
            const std::size_t index = fragment.buffer_at / fop::kBlockBytes;
            CHECK(plan.blocks()[index].number == fragment.offset / fop::kBlockBytes);
            CHECK(fragment.buffer_at % fop::kBlockBytes == fragment.offset % fop::kBlockBytes);
            bool is_new = true;
            for (std::uint64_t i = 0; i < fragment.length; ++i) {
                is_new &= bytes.emplace(fragment.offset + i, fragment.sender_at + i).second;
            }
            CHECK(is_new);
        }
    }
    return bytes;
}

}  // namespace

TEST_CASE("reqh write plan: every byte goes where its range says, each block once", "[reqh]") {
    core::Random random(3);
    for (int round = 0; round < 30; ++round) {
        // Ascending, then in another order.
        std::vector<fop::Range> ranges;
        std::uint64_t at = random.below(9000);
        const std::uint64_t count = 1 + random.below(8);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t length = random.below(round % 5 != 0 ? 3000 : 300'000);
            ranges.push_back({.offset = at, .length = length});
            at += length + (random.below(3) == 0 ? random.below(20'000) : 0);
        }
        for (std::size_t i = ranges.size(); i > 1; --i) {
            std::swap(ranges[i - 1], ranges[random.below(i)]);
        }
        WritePlan plan;
        REQUIRE(plan.begin(ranges).has_value());
        const auto bytes = carry_out(plan);
        REQUIRE(bytes.size() == fop::total_bytes(ranges));
        std::uint64_t sender_at = 0;
        for (const fop::Range& range : ranges) {
            if (range.length > 0) {
                CHECK(bytes.at(range.offset) == sender_at);
                CHECK(bytes.at(range.end() - 1) == sender_at + range.length - 1);
            }
            sender_at += range.length;
        }
    }
}

TEST_CASE("reqh write plan: blocks of two ranges are whole when these cover them", "[reqh]") {
    const std::vector<fop::Range> ranges{{.offset = 2000, .length = 2096 + 100},
                                         {.offset = 0, .length = 2000}};
    WritePlan plan;
    REQUIRE(plan.begin(ranges).has_value());
    REQUIRE(plan.next_chunk());
    REQUIRE(plan.blocks().size() == 2);
    CHECK_FALSE(plan.blocks()[0].is_partial());
    CHECK(plan.blocks()[1].is_partial());
    CHECK(plan.is_last());
    CHECK_FALSE(plan.next_chunk());
}

TEST_CASE("reqh write plan: ranges that overlap are refused", "[reqh]") {
    const std::vector<fop::Range> ranges{{.offset = 100, .length = 100},
                                         {.offset = 0, .length = 101}};
    WritePlan plan;
    CHECK(plan.begin(ranges).error().code == Errc::kInvalid);
}

TEST_CASE("reqh write plan: a run is checked however its bytes come", "[reqh]") {
    std::vector<std::byte> bytes(10'000);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::byte>(i * 13 + i / 7);
    const std::vector<fop::Range> range{{.offset = 1000, .length = bytes.size()}};
    std::vector<std::uint32_t> checksums(fop::count_checksums(range));
    fop::checksum_ranges(range, bytes, checksums);

    const auto comes_intact = [&](std::size_t step) {
        RunCheck check(1000, bytes.size(), checksums);
        for (std::size_t at = 0; at < bytes.size(); at += step) {
            if (!check.take(std::span(bytes).subspan(at, std::min(step, bytes.size() - at)))) {
                return false;
            }
        }
        return true;
    };
    CHECK(comes_intact(bytes.size()));
    CHECK(comes_intact(1));
    CHECK(comes_intact(777));
    bytes[5000] ^= std::byte{1};
    CHECK_FALSE(comes_intact(777));
}

}  // namespace fopd::reqh
