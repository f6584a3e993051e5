// Goal: when memory is closed or taken back, what uses it is told, and nothing else is. Method:
// uses that note that they were told.
#include "fabric/opened_memory.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace fopd::fabric::testing::opened_memory_test {

namespace {

constexpr std::uint64_t kKey = 7;
constexpr std::uint64_t kOtherKey = 8;

struct NotedUse final : OpenedMemory::Use {
    void on_left() override {
        ++told;
        while (!ends_too.empty()) ends_too.pop_back();
    }
    int told = 0;
    std::vector<std::unique_ptr<NotedUse>> ends_too;
};

// Two regions of memory.
struct Regions {
    Regions() {
        REQUIRE(opened.open(kKey, span(), Access::kRead));
        REQUIRE(opened.open(kOtherKey, span(), Access::kRead));
    }
    std::span<std::byte> span() { return std::as_writable_bytes(std::span(bytes)); }

    std::string bytes = std::string(100, 'x');
    OpenedMemory opened;
};

}  // namespace

TEST_CASE("fabric memory: who uses a region is told when it is left, and nobody else", "[fabric]") {
    const bool is_closed = GENERATE(true, false);
    CAPTURE(is_closed);
    Regions regions;
    NotedUse first;
    NotedUse second;
    NotedUse other;
    NotedUse over;
    regions.opened.add_use(kKey, first);
    regions.opened.add_use(kOtherKey, other);
    regions.opened.add_use(kKey, over);
    regions.opened.add_use(kKey, second);
    over.unlink();

    if (is_closed) {
        regions.opened.close(kKey);
    } else {
        regions.opened.take_back(kKey);
    }

    CHECK(first.told == 1);
    CHECK(second.told == 1);
    CHECK(other.told == 0);
    CHECK(over.told == 0);
    CHECK_FALSE(first.linked());
    CHECK(other.linked());
    CHECK(regions.opened.find({.address = 0, .key = kOtherKey}, 100, Access::kRead).has_value());
    const auto left = regions.opened.find({.address = 0, .key = kKey}, 100, Access::kRead);
    REQUIRE(left.has_value() != is_closed);
    if (left) CHECK(left->is_taken_back);
}

TEST_CASE("fabric memory: a region that was taken back is closed without telling again",
          "[fabric]") {
    Regions regions;
    NotedUse use;
    regions.opened.add_use(kKey, use);

    regions.opened.take_back(kKey);
    regions.opened.close(kKey);

    REQUIRE(use.told == 1);
}

TEST_CASE("fabric memory: a use that is told may end others of the same region", "[fabric]") {
    Regions regions;
    NotedUse first;
    NotedUse last;
    regions.opened.add_use(kKey, first);
    for (int i = 0; i < 3; ++i) {
        first.ends_too.push_back(std::make_unique<NotedUse>());
        regions.opened.add_use(kKey, *first.ends_too.back());
    }
    regions.opened.add_use(kKey, last);

    regions.opened.close(kKey);

    REQUIRE(first.told == 1);
    REQUIRE(last.told == 1);
    REQUIRE(first.ends_too.empty());
}

}  // namespace fopd::fabric::testing::opened_memory_test
