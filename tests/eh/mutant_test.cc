// Goal: the tests of epochs can fail. Method: a member with one of its rules left out, by
// mutate.cmake, lives through the scenarios and the swarm until something is wrong.

#include <array>
#include <string>

#include "tests/catch.h"
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
