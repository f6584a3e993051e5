// Goal: the laws of epochs hold in every state of small worlds (tests/eh/epoch_exploration.h), and
// in as many states of larger ones as there is time for. The long run sees each world with each
// fault, and with two, whole, if the messages from one member to another arrive in order, however
// many are lost; if they arrive in any order, it sees FOPD_EXPLORE_STATES states of each.

#include "tests/eh/epoch_exploration.h"

#include <cstdio>
#include <cstdlib>

#include "tests/catch.h"
#include "tests/slowness.h"

using namespace fopd::eh::testing;

namespace {

constexpr ExplorationBudget kWhole[] = {
    {.name = "epochs", .calls = 6, .jumps = 0},
    {.name = "a message twice", .calls = 3, .jumps = 0, .doubles = 1},
    {.name = "a lost answer of the store", .calls = 1, .jumps = 0, .leaves = 1, .unknown = 1},
    {.name = "a message twice in a chain", .calls = 3, .jumps = 0, .doubles = 1, .fanout = 1},
    {.name = "a clock that is ahead in a chain", .calls = 1, .jumps = 1, .fanout = 1},
};
constexpr ExplorationBudget kWholeInOrder[] = {
    {.name = "a clock that is ahead", .calls = 2, .jumps = 1, .is_in_order = true},
    {.name = "a crash and a return", .calls = 1, .jumps = 1, .crashes = 1, .is_in_order = true},
    {.name = "two roots, and an abort", .calls = 1, .jumps = 2, .is_in_order = true},
};
constexpr ExplorationBudget kLarge[] = {
    {.name = "a clock that is ahead", .calls = 2, .jumps = 1},
    {.name = "a silent root", .calls = 1, .jumps = 2},
    {.name = "a crash", .calls = 1, .jumps = 2, .crashes = 1},
    {.name = "a leave and a return", .calls = 2, .jumps = 0, .leaves = 1},
    {.name = "a crash and a return", .calls = 2, .jumps = 3, .crashes = 1},
};
// The smallest worlds in which each of these can happen.
constexpr ExplorationBudget kLong[] = {
    {.name = "clocks that are ahead", .calls = 2, .jumps = 2},
    {.name = "a leave", .calls = 1, .jumps = 1, .leaves = 1},
    {.name = "a crash and a return", .calls = 1, .jumps = 1, .crashes = 1},
    {.name = "two roots, and an abort", .calls = 1, .jumps = 2},
    {.name = "a leave and a return", .calls = 2, .jumps = 0, .leaves = 1},
    {.name = "a swap whose answer is lost", .calls = 1, .jumps = 1, .leaves = 1, .unknown = 1},
    {.name = "a message twice", .calls = 2, .jumps = 1, .doubles = 1},
    {.name = "a message that overtakes others", .calls = 1, .jumps = 1, .overtakes = 1},
    {.name = "a message twice and two roots", .calls = 1, .jumps = 2, .doubles = 1},
    {.name = "a message that overtakes, and two roots", .calls = 1, .jumps = 2, .overtakes = 1},
    {.name = "a crash, a return and a leave", .calls = 1, .jumps = 1, .crashes = 1, .leaves = 1},
    {.name = "a crash, a return and two roots", .calls = 1, .jumps = 2, .crashes = 1},
};
// Each world once with a root of two children, and once as a chain, in which one member relays.
constexpr std::uint32_t kFanouts[] = {2, 1};
constexpr std::uint64_t kFewStates = 6'000;
constexpr std::uint64_t kManyStates = 2'000'000;
constexpr std::uint64_t kAllStates = 200'000'000;

ExplorationBudget with_fanout(ExplorationBudget budget, std::uint32_t fanout) {
    budget.fanout = fanout;
    return budget;
}

}  // namespace

TEST_CASE("eh exploration: the laws of epochs hold in every state of small worlds", "[eh]") {
    for (const ExplorationBudget& budget : kWhole) {
        CAPTURE(budget.name);
        const Explored explored = explore(budget, 1'000'000);
        CHECK(explored.wrong == "");
        CHECK(explored.is_whole);
        CHECK(explored.states > 500);
    }
}

TEST_CASE("eh exploration: they hold if messages of a link arrive in order", "[eh]") {
    for (const ExplorationBudget& budget : kWholeInOrder) {
        CAPTURE(budget.name);
        const Explored explored = explore(budget, 1'000'000);
        CHECK(explored.wrong == "");
        CHECK(explored.is_whole);
        CHECK(explored.states > 500);
    }
}

TEST_CASE("eh exploration: they hold in the first states of larger ones", "[eh]") {
    for (const ExplorationBudget& budget : kLarge) {
        for (const std::uint32_t fanout : kFanouts) {
            CAPTURE(budget.name, fanout);
            const Explored explored =
                explore(with_fanout(budget, fanout), fopd::testing::few_of(kFewStates));
            CHECK(explored.wrong == "");
        }
    }
}

TEST_CASE("eh exploration: they hold in worlds with each fault, and with two", "[.exploration]") {
    const char* const many = std::getenv("FOPD_EXPLORE_STATES");
    const std::uint64_t states_max = many ? std::strtoull(many, nullptr, 10) : kManyStates;
    for (const bool is_in_order : {true, false}) {
        for (ExplorationBudget budget : kLong) {
            budget.is_in_order = is_in_order;
            if (!is_in_order && budget.overtakes > 0) continue;
            for (const std::uint32_t fanout : kFanouts) {
                CAPTURE(budget.name, fanout, is_in_order);
                const Explored explored =
                    explore(with_fanout(budget, fanout), is_in_order ? kAllStates : states_max);
                CHECK(explored.wrong == "");
                if (is_in_order) CHECK(explored.is_whole);
                std::printf("%s, fanout %u, %s: %llu states, %llu steps, depth %zu, %s\n",
                            budget.name, fanout, is_in_order ? "in order" : "in any order",
                            static_cast<unsigned long long>(explored.states),
                            static_cast<unsigned long long>(explored.steps), explored.depth,
                            explored.is_whole ? "all" : "not all");
                (void)std::fflush(stdout);
            }
        }
    }
}
