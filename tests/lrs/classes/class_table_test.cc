// Goal: a table knows the classes that were added and not dropped, wherever they lie.
// Method: random classes that come and go, against a map.
#include "lrs/classes/class_table.h"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::lrs {

namespace {

struct NumberedClass : KnownClass {
    NumberedClass(const ClassHash& of, int number_of, int& alive_of)
        : KnownClass(of), number(number_of), alive(alive_of) {
        ++alive;
    }
    ~NumberedClass() { --alive; }

    int number;
    int& alive;
};

ClassHash hash_of(std::uint64_t number) {
    return {.high = core::mix(number, 1), .low = core::mix(number, 2)};
}

}  // namespace

TEST_CASE("lrs class table: random changes leave the same as in a map", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        int alive = 0;
        {
            ClassTable<NumberedClass> table(random.below(100));
            std::map<std::uint64_t, NumberedClass*> model;
            for (int step = 0; step < 2000; ++step) {
                // Now many come, now many go.
                const bool grows = step / 500 % 2 == 0;
                const std::uint64_t key = random.below(400);
                const auto known = model.find(key);
                if (known == model.end()) {
                    REQUIRE(table.find(hash_of(key)) == nullptr);
                    if (!grows && random.below(4) != 0) continue;
                    model[key] = &table.add(hash_of(key), static_cast<int>(key), alive);
                } else {
                    REQUIRE(table.find(hash_of(key)) == known->second);
                    if (grows && random.below(4) != 0) continue;
                    const std::uint32_t index = known->second->index;
                    table.drop(*known->second);
                    REQUIRE(table.at(index) == nullptr);
                    model.erase(known);
                }
            }

            REQUIRE(table.count() == model.size());
            std::set<NumberedClass*> seen;
            table.for_each([&](NumberedClass& each) {
                REQUIRE(table.at(each.index) == &each);
                REQUIRE(model.at(static_cast<std::uint64_t>(each.number)) == &each);
                seen.insert(&each);
            });
            REQUIRE(seen.size() == model.size());
            REQUIRE(alive == static_cast<int>(model.size()));
        }
        REQUIRE(alive == 0);
    }
}

TEST_CASE("lrs class table: the longest idle is the first to be forgotten", "[lrs]") {
    int alive = 0;
    ClassTable<NumberedClass> table(4);
    const Instant start{1h};
    for (int i = 0; i < 5; ++i) {
        NumberedClass& made = table.add(hash_of(static_cast<std::uint64_t>(i)), i, alive);
        table.fell_idle(made, start + i * 1s);
    }
    REQUIRE(table.longest_idle()->number == 0);
    static_cast<KnownClass*>(table.longest_idle())->unlink();
    REQUIRE(table.longest_idle()->number == 1);

    std::vector<int> forgotten;
    const auto drop = [&](NumberedClass& idle) {
        forgotten.push_back(idle.number);
        table.drop(idle);
    };
    for (int i = 0; i < 10; ++i) table.forget_idle(start + 62s, 60s, drop);
    REQUIRE(forgotten == std::vector{1, 2});
    REQUIRE(table.count() == 3);
    REQUIRE(table.longest_idle()->number == 3);
}

}  // namespace fopd::lrs
