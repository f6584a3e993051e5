// Goal: who is told of what was lost, once, and within bounds.
#include "client/lost_writes.h"

#include "tests/catch.h"

namespace fopd::client {
namespace {

constexpr fop::Fid kFid{.high = 0x10002, .low = 0x2a};
constexpr std::string_view kWhy = "others may have changed these bytes since";

}  // namespace

TEST_CASE("client lost writes: each object is told of once, by its id and bytes", "[client]") {
    LostWrites lost;
    lost.add(kFid, {.offset = 4096, .length = 4096}, kWhy);
    lost.add(kFid, {.offset = 0, .length = 4096}, kWhy);
    lost.add(kFid, {.offset = 100'000, .length = 1}, kWhy);
    lost.add({.high = 1, .low = 1}, {.offset = 5, .length = 5}, "the object was removed since");
    REQUIRE_FALSE(lost.take({.high = 9, .low = 9}).has_value());

    const auto taken = lost.take(kFid);

    REQUIRE(taken.has_value());
    REQUIRE(taken->ranges == std::vector<fop::Range>{{.offset = 0, .length = 8192},
                                                     {.offset = 100'000, .length = 1}});
    REQUIRE(describe(*taken) ==
            "object 0000000000010002000000000000002a: the buffered writes to bytes 0 to "
            "8191, 100000 to 100000 are lost: others may have changed these bytes since");
    REQUIRE_FALSE(lost.take(kFid).has_value());
    REQUIRE(lost.take_first()->fid == fop::Fid{.high = 1, .low = 1});
    REQUIRE(lost.empty());
}

TEST_CASE("client lost writes: of many ranges the words say where they end", "[client]") {
    LostWrites lost;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        lost.add(kFid, {.offset = i * 100, .length = 10}, kWhy);
    }

    const auto taken = lost.take_first();

    REQUIRE(taken->ranges.size() == LostWrites::kRangesMax);
    REQUIRE(
        describe(*taken) ==
        "object 0000000000010002000000000000002a: the buffered writes to bytes 0 to 9, "
        "100 to 109 and others up to 99909 are lost: others may have changed these bytes since");
}

TEST_CASE("client lost writes: of too many objects it is known how many writes are lost",
          "[client]") {
    LostWrites lost;
    for (std::uint64_t i = 1; i <= LostWrites::kObjectsMax + 3; ++i) {
        lost.add({.high = 1, .low = i}, {.offset = 0, .length = 1}, kWhy);
    }
    for (std::size_t i = 0; i < LostWrites::kObjectsMax; ++i) {
        REQUIRE(lost.take_first().has_value());
    }
    REQUIRE_FALSE(lost.take_first().has_value());
    REQUIRE_FALSE(lost.empty());
    REQUIRE(lost.take_unnamed() == 3);
    REQUIRE(lost.empty());
}

}  // namespace fopd::client
