// Goal: the tests of epochs can fail. Method: a member with one of its rules left out, by
// mutate.cmake, lives through the scenarios and the swarm until something is wrong. Where a small
// world shows it, the exploration must find it, too.

#include <array>
#include <string>

#include "tests/catch.h"
#include "tests/eh/epoch_exploration.h"
#include "tests/eh/epoch_scenarios.h"
#include "tests/eh/epoch_swarm.h"

using namespace fopd::eh::testing;

TEST_CASE("eh mutant: something is wrong", "[eh]") {
    constexpr std::uint64_t kMutantSeeds = 1000;
    constexpr std::array kScenarios{busy_member_and_dead_root, lost_answer_of_store, late_swap,
                                    start_reaches_one};
    std::string wrong;
    for (const auto scenario : kScenarios) {
        if (wrong.empty()) wrong = scenario();
    }
    std::uint64_t seed = 0;
    while (wrong.empty() && seed < kMutantSeeds) wrong = run_swarm(++seed).wrong;
    INFO(seed << " seeds");
    CHECK_FALSE(wrong.empty());
    WARN("after " << seed << " seeds: " << wrong.substr(0, wrong.find('\n')));
}

TEST_CASE("eh mutant: something is wrong in a small world", "[eh][explored]") {
    constexpr ExplorationBudget kWorlds[] = {
        {.name = "a message twice", .calls = 3, .jumps = 0, .doubles = 1},
        {.name = "a lost answer of the store", .calls = 1, .jumps = 0, .leaves = 1, .unknown = 1},
        {.name = "two roots", .calls = 1, .jumps = 2},
    };
    std::string wrong;
    for (const ExplorationBudget& world : kWorlds) {
        if (wrong.empty()) wrong = explore(world, 10'000).wrong;
    }
    CHECK_FALSE(wrong.empty());
    WARN(wrong);
}
