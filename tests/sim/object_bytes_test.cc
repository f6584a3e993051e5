// Goal: what the scenarios believe of reads beside appends. Method: changes and reads made by hand.

#include "sim/object_bytes.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::sim;

namespace {

constexpr std::uint64_t kEnd = 100;  // Of the object, before the append.
constexpr std::uint64_t kAppended = 40;

// An append of which nobody knows yet where it lies, to an object of zeros.
class Appending {
public:
    Appending() {
        bytes_.settle(kEnd);
        append_.number = 7;
        append_.begun = 1;
        append_.range.length = kAppended;
        bytes_.add_append(append_);
    }
    // What the object has there once the append was done.
    std::vector<std::byte> at(const fop::Range& range) const {
        std::vector<std::byte> all(kEnd);
        for (std::uint64_t i = 0; i < kAppended; ++i) all.push_back(append_.byte_at(i));
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(range.offset);
        return {begin, begin + static_cast<std::ptrdiff_t>(range.length)};
    }
    std::string judge(const fop::Range& range, const std::vector<std::byte>& found) {
        ObjectLook look{.life = 2, .begun = 2};
        return bytes_.judge(look, range, found);
    }

private:
    BookedChange append_;
    ObjectBytes bytes_;
};

}  // namespace

TEST_CASE("sim object bytes: a read may end or begin anywhere in an append under way", "[sim]") {
    const auto length = static_cast<std::uint64_t>(GENERATE(range(1, 20)));
    CAPTURE(length);
    Appending appending;
    fop::Range range;
    SECTION("its first bytes") {
        range = {.offset = kEnd - 30, .length = 30 + length};
    }
    SECTION("its last bytes") {
        range = {.offset = kEnd + kAppended - length, .length = length};
    }
    SECTION("some in the middle") {
        range = {.offset = kEnd + 9, .length = length};
    }

    REQUIRE(appending.judge(range, appending.at(range)) == "");
}

TEST_CASE("sim object bytes: bytes behind the end that no append left are wrong", "[sim]") {
    Appending appending;
    const fop::Range range{.offset = kEnd - 30, .length = 33};
    std::vector<std::byte> found = appending.at(range);
    SECTION("other bytes") {
        found.back() ^= std::byte{1};
    }
    SECTION("its bytes behind a gap") {
        found[31] = found[30];
        found[32] = found[31];
        found[30] = std::byte{};
    }
    SECTION("its bytes before the end") {
        found[29] = found[30];
        found[30] = found[31];
    }

    REQUIRE(appending.judge(range, found) != "");
}

TEST_CASE("sim object change: its bytes are the same one by one and by words, and none is zero",
          "[sim]") {
    for (std::uint64_t number = 0; number < 200; ++number) {
        const BookedChange change{.number = number};
        std::vector<std::byte> bytes(100 + number % 8);
        change.fill(bytes);
        for (std::uint64_t i = 0; i < bytes.size(); ++i) {
            const auto expected = static_cast<std::uint8_t>(core::mix(number, i / 8) >> i % 8 * 8);
            REQUIRE(bytes[i] == static_cast<std::byte>(expected == 0 ? 0x5a : expected));
            REQUIRE(bytes[i] == change.byte_at(i));
        }
        const std::span some = std::span(bytes).subspan(number % 16);
        REQUIRE(change.has(number % 16, some));
        for (std::byte& each : some) {
            each ^= std::byte{1};
            REQUIRE_FALSE(change.has(number % 16, some));
            each ^= std::byte{1};
        }
    }
}

TEST_CASE("sim object bytes: a read is compared with each known part and the zeros between them",
          "[sim]") {
    ObjectBytes object;
    object.settle(60);
    std::vector<std::byte> right(60);
    for (const auto& [offset, size] : {std::pair(5, 10), std::pair(15, 7), std::pair(40, 12)}) {
        std::vector<std::byte> part(static_cast<std::size_t>(size), std::byte{0x11});
        part.front() = std::byte{0x22};
        object.settle(static_cast<std::uint64_t>(offset), part);
        std::ranges::copy(part, right.begin() + offset);
    }
    const auto judge = [&](std::uint64_t from, const std::vector<std::byte>& bytes) {
        ObjectLook look{.life = 1, .begun = 1};
        return object.judge(look, {.offset = from, .length = bytes.size()}, bytes);
    };
    for (std::uint64_t from = 0; from < 60; ++from) {
        const auto begin = right.begin() + static_cast<std::ptrdiff_t>(from);
        std::vector<std::byte> read(begin, right.end());
        REQUIRE(judge(from, read).empty());
        for (std::byte& each : read) {
            each ^= std::byte{1};
            REQUIRE_FALSE(judge(from, read).empty());
            each ^= std::byte{1};
        }
    }
}
