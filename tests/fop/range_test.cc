#include "fop/range.h"

#include <array>
#include <vector>

#include "core/crc32c.h"
#include "core/random.h"
#include "tests/catch.h"

namespace fopd::fop {

TEST_CASE("fop range: nothing reaches beyond 2^60", "[fop]") {
    REQUIRE(check_range({.offset = 0, .length = kOffsetMax}));
    REQUIRE(check_range({.offset = kOffsetMax, .length = 0}));
    REQUIRE(check_range({.offset = kOffsetMax - 1, .length = 1}));
    REQUIRE_FALSE(check_range({.offset = kOffsetMax + 1, .length = 0}));
    REQUIRE_FALSE(check_range({.offset = kOffsetMax - 1, .length = 2}));
    REQUIRE_FALSE(check_range({.offset = 1, .length = ~0ULL}));
    REQUIRE_FALSE(check_range({.offset = ~0ULL, .length = ~0ULL}));
}

TEST_CASE("fop range: at most 64 ranges of 4 MiB together", "[fop]") {
    std::vector<Range> ranges(64, Range{.offset = 5, .length = kTransferBytesMax / 64});
    REQUIRE(check_ranges(ranges));
    REQUIRE(total_bytes(ranges) == kTransferBytesMax);
    ++ranges[63].length;
    REQUIRE_FALSE(check_ranges(ranges));
    ranges.assign(65, Range{});
    REQUIRE_FALSE(check_ranges(ranges));
    REQUIRE(check_ranges({}));
}

TEST_CASE("fop range: runs end where blocks do", "[fop]") {
    const auto count = [](std::uint64_t offset, std::uint64_t length) {
        return count_checksums(Range{.offset = offset, .length = length});
    };
    REQUIRE(count(0, 0) == 0);
    REQUIRE(count(4096, 0) == 0);
    REQUIRE(count(0, 1) == 1);
    REQUIRE(count(0, 4096) == 1);
    REQUIRE(count(0, 4097) == 2);
    REQUIRE(count(4095, 1) == 1);
    REQUIRE(count(4095, 2) == 2);
    REQUIRE(count(4095, 4098) == 3);
    REQUIRE(count(kOffsetMax - 1, 1) == 1);
    REQUIRE(count(kOffsetMax, 0) == 0);

    // The most there can be.
    std::vector<Range> ranges(64, Range{.offset = 4095, .length = kTransferBytesMax / 64});
    REQUIRE(count_checksums(ranges) <= kChecksumsMax);
}

TEST_CASE("fop range: a range is cut at the end of the object", "[fop]") {
    constexpr Range kRange{.offset = 10, .length = 5};
    REQUIRE(within(kRange, 100) == kRange);
    REQUIRE(within(kRange, 15) == kRange);
    REQUIRE(within(kRange, 12) == Range{.offset = 10, .length = 2});
    REQUIRE(within(kRange, 10).length == 0);
    REQUIRE(within(kRange, 0).length == 0);
}

TEST_CASE("fop range: a changed byte is found wherever it is", "[fop]") {
    core::Random random(3);
    for (int round = 0; round < 200; ++round) {
        CAPTURE(round);
        std::array<Range, 3> ranges;
        for (Range& each : ranges) {
            each = {.offset = random.below(20'000), .length = random.below(9000)};
        }
        std::vector<std::byte> data(total_bytes(ranges));
        for (std::byte& each : data) each = static_cast<std::byte>(random.below(256));
        std::vector<std::uint32_t> checksums(count_checksums(ranges));
        checksum_ranges(ranges, data, checksums);

        REQUIRE(ranges_intact(ranges, data, checksums));
        if (data.empty()) continue;
        std::byte& victim = data[random.below(data.size())];
        victim ^= static_cast<std::byte>(1U << random.below(8));
        REQUIRE_FALSE(ranges_intact(ranges, data, checksums));
    }
}

TEST_CASE("fop range: the checksum of a whole block is that of its bytes", "[fop]") {
    const std::vector<std::byte> data(8192, std::byte{0x5a});
    const std::array ranges{Range{.offset = 2048, .length = 8192}};
    std::array<std::uint32_t, 3> checksums{};

    checksum_ranges(ranges, data, checksums);

    const auto all = std::span<const std::byte>(data);
    REQUIRE(checksums[0] == core::crc32c(all.first(2048)));
    REQUIRE(checksums[1] == core::crc32c(all.subspan(2048, 4096)));
    REQUIRE(checksums[2] == core::crc32c(all.last(2048)));
}

}  // namespace fopd::fop
