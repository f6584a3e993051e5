// Goal: every object that needs a copy is taken once, oldest first, until it has one.

#include "library/staged_objects.h"

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::library;

namespace {

constexpr objects::PoolId kPool = 7;

store::Fid fid(std::uint64_t number) {
    return {.high = 1ULL << 48, .low = number};
}

StagedObjects::Object object(std::uint64_t number, std::uint64_t size_bytes = 10,
                             std::string collection = "") {
    return {.fid = fid(number),
            .group = {.pool = kPool, .collection = std::move(collection)},
            .size_bytes = size_bytes,
            .since = Instant{Duration{static_cast<Duration::rep>(number)}}};
}

std::vector<std::uint64_t> numbers(const std::vector<StagedObjects::Object>& objects) {
    std::vector<std::uint64_t> numbers;
    for (const auto& each : objects) numbers.push_back(each.fid.low);
    return numbers;
}

constexpr StagedObjects::Limits kAll{.bytes = 1'000'000, .objects = 1000};

}  // namespace

TEST_CASE("library staged: the oldest of a group are taken, within the limits", "[library]") {
    StagedObjects staged;
    for (const std::uint64_t each : {3U, 1U, 2U, 4U}) staged.needs_copy(object(each));
    staged.needs_copy(object(5, 10, "other"));

    REQUIRE(numbers(staged.take({.pool = kPool}, {.bytes = 25, .objects = 10})) ==
            std::vector<std::uint64_t>{1, 2});
    REQUIRE(numbers(staged.take({.pool = kPool}, {.bytes = 1000, .objects = 1})) ==
            std::vector<std::uint64_t>{3});
    // An object that is larger than the limit is taken alone.
    REQUIRE(numbers(staged.take({.pool = kPool}, {.bytes = 1, .objects = 10})) ==
            std::vector<std::uint64_t>{4});
    REQUIRE_FALSE(staged.has_waiting({.pool = kPool}));
    REQUIRE(staged.has_waiting({.pool = kPool, .collection = "other"}));
    REQUIRE(staged.take({.pool = kPool}, kAll).empty());
    REQUIRE(staged.groups().size() == 1);
    REQUIRE(staged.groups()[0].key.collection == "other");
    REQUIRE(staged.waiting_count() == 5);
}

TEST_CASE("library staged: groups have the bytes, the number and the age of what waits",
          "[library]") {
    StagedObjects staged;
    staged.needs_copy(object(2, 10));
    staged.needs_copy(object(3, 20));
    staged.needs_copy(object(3, 30));

    const auto groups = staged.groups();

    REQUIRE(groups.size() == 1);
    REQUIRE(groups[0].bytes == 40);
    REQUIRE(groups[0].objects == 2);
    REQUIRE(groups[0].oldest == Instant{2ns});
}

TEST_CASE("library staged: an object that changes keeps its place", "[library]") {
    StagedObjects staged;
    staged.needs_copy(object(1));
    staged.needs_copy(object(2));
    auto changed = object(1);
    changed.since = Instant{9ns};
    staged.needs_copy(changed);

    REQUIRE(numbers(staged.take({.pool = kPool}, kAll)) == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("library staged: an object that changes while it is copied waits again", "[library]") {
    StagedObjects staged;
    staged.needs_copy(object(1));
    REQUIRE(staged.take({.pool = kPool}, kAll).size() == 1);
    staged.needs_copy(object(1, 50));
    // It cannot be given up for what it was.
    staged.give_up(fid(1));
    REQUIRE_FALSE(staged.is_given_up(fid(1)));
    REQUIRE(staged.groups().empty());
    staged.put_back(fid(1));

    REQUIRE(staged.groups().at(0).bytes == 50);
}

TEST_CASE("library staged: an object with a copy does not wait, until it changes", "[library]") {
    StagedObjects staged;
    staged.needs_copy(object(1));
    REQUIRE(staged.take({.pool = kPool}, kAll).size() == 1);
    staged.has_copy(object(1));
    staged.put_back(fid(1));
    REQUIRE(staged.waiting_count() == 0);
    REQUIRE(staged.oldest_with_copy({}, 1)->fid == fid(1));
    staged.needs_copy(object(1));

    REQUIRE(staged.groups().size() == 1);
    REQUIRE_FALSE(staged.oldest_with_copy({}, 1).has_value());
}

TEST_CASE("library staged: what is given up comes back when it changes", "[library]") {
    StagedObjects staged;
    staged.needs_copy(object(1));
    REQUIRE(staged.take({.pool = kPool}, kAll).size() == 1);
    staged.give_up(fid(1));
    staged.put_back(fid(1));
    REQUIRE(staged.is_given_up(fid(1)));
    REQUIRE(staged.groups().empty());
    REQUIRE(staged.waiting_of(kPool).size() == 1);
    staged.needs_copy(object(1));

    REQUIRE(staged.groups().size() == 1);
}

TEST_CASE("library staged: objects with a copy are found by age, for each disk", "[library]") {
    StagedObjects staged;
    for (const std::uint64_t each : {2U, 1U, 3U}) staged.has_copy(object(each));
    auto elsewhere = object(0);
    elsewhere.fid.high = 2ULL << 48;
    staged.has_copy(elsewhere);

    const auto in_order = [&staged](std::uint16_t slot) {
        std::vector<std::uint64_t> order;
        for (auto at = staged.oldest_with_copy({}, slot); at;
             at = staged.oldest_with_copy(at, slot)) {
            order.push_back(at->fid.low);
        }
        return order;
    };

    REQUIRE(in_order(1) == std::vector<std::uint64_t>{1, 2, 3});
    REQUIRE(in_order(2) == std::vector<std::uint64_t>{0});
    staged.forget(fid(1));
    REQUIRE(in_order(1) == std::vector<std::uint64_t>{2, 3});
    REQUIRE(in_order(2) == std::vector<std::uint64_t>{0});
}

TEST_CASE("library staged: what is being copied and what is given up has no copy yet",
          "[library]") {
    StagedObjects staged;
    staged.needs_copy(object(1, 10));
    staged.needs_copy(object(2, 20));
    staged.needs_copy(object(3, 40, "other"));
    const auto sum = [&staged] {
        const auto all = staged.uncopied();
        return all.empty() ? StagedObjects::Uncopied{} : all.front();
    };
    CHECK(sum().objects == 3);
    CHECK(staged.take({.pool = kPool}, {.bytes = 10, .objects = 1}).size() == 1);
    staged.give_up(fid(3));
    CHECK(sum().objects == 3);
    CHECK(sum().bytes == 70);
    CHECK(sum().oldest == Instant{1ns});
    CHECK(sum().pool == kPool);
    staged.needs_copy(object(1, 15));
    CHECK(sum().bytes == 75);
    staged.has_copy(object(1, 15));
    CHECK(sum().objects == 2);
    CHECK(sum().oldest == Instant{2ns});
    staged.put_back(fid(2));
    staged.needs_copy(object(3, 40, "other"));
    CHECK(sum().bytes == 60);
    staged.forget(fid(2));
    staged.forget(fid(3));
    CHECK(staged.uncopied().empty());
}
