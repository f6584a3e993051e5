// Goal: what the scenarios believe of reads beside appends. Method: changes and reads made by hand.

#include "sim/object_bytes.h"

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
    ObjectChange append_;
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
