// Goal: whatever happens to the power, a name belongs to whom it was last given, and to nobody
// whose giving or taking was not acknowledged but as a whole; what was replaced goes. Method:
// workers create, rename, replace and remove objects of the same few names on two disks; the power
// is cut at a step drawn from the seed, then the node starts again, now and then without an index
// or a part of the names. What the names know is compared with what the objects' own records say,
// and with what was acknowledged.

#include <cstdlib>
#include <string>

#include "tests/catch.h"
#include "tests/slowness.h"
#include "tests/store/names_stage.h"

namespace fopd::store::names_testing {
namespace {

std::string run(const Plan& plan, Remains* figures = nullptr) {
    const fopd::testing::Replay replay(plan.seed);
    const auto remains = std::make_unique<Remains>();
    std::string violation = carry_out(plan, *remains);
    if (figures != nullptr) {
        figures->recoveries += remains->recoveries;
        figures->created += remains->created;
        figures->refused += remains->refused;
        figures->renamed += remains->renamed;
        figures->removed += remains->removed;
        figures->swept += remains->swept;
        figures->found_after_crash += remains->found_after_crash;
    }
    return violation;
}

std::uint64_t first_seed() {
    const char* const text = std::getenv("FOPD_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

std::uint64_t seeds() {
    const char* const text = std::getenv("FOPD_SWARM_SEEDS");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : fopd::testing::few_of(60);
}

// Now and then so little memory that a replay makes a checkpoint after each entry.
Plan drawn_plan(std::uint64_t seed) {
    return {.seed = seed, .overlay_bytes = seed % 3 == 0 ? 128UL << 10 : 512UL << 10};
}

// What is wrong when something is left out.
std::string caught(Mutation mutation) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        std::string violation = run({.seed = seed, .mutation = mutation});
        if (!violation.empty()) return violation;
    }
    return "";
}

TEST_CASE("names: an orderly life keeps every name", "[store]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        REQUIRE(run({.seed = seed, .orderly = true}) == "");
    }
}

TEST_CASE("names: a loss of power at any write or flush loses no name", "[store]") {
    const Plan plan{.seed = 3, .boots = 2, .operations = 5};
    std::uint64_t steps = 0;
    for (std::uint64_t step = 1; steps == 0; ++step) {
        Plan cut = plan;
        cut.first_cut = step;
        const auto remains = std::make_unique<Remains>();
        CAPTURE(step);
        REQUIRE(carry_out(cut, *remains) == "");
        if (!remains->first_was_cut) steps = step;
    }
    REQUIRE(steps > 100);
}

TEST_CASE("names: what was acknowledged survives a loss of power", "[store][swarm]") {
    const auto figures = std::make_unique<Remains>();
    for (std::uint64_t seed = first_seed(); seed <= std::max(first_seed(), seeds()); ++seed) {
        CAPTURE(seed);
        REQUIRE(run(drawn_plan(seed), figures.get()) == "");
    }
    CAPTURE(figures->created, figures->refused, figures->renamed, figures->removed, figures->swept,
            figures->found_after_crash);
    REQUIRE(figures->recoveries > 0);
    REQUIRE(figures->created > 0);
    REQUIRE(figures->refused > 0);
    REQUIRE(figures->renamed > 0);
    REQUIRE(figures->removed > 0);
    REQUIRE(figures->swept > 0);
    REQUIRE(figures->found_after_crash > 0);
}

TEST_CASE("names: a checkpoint that does not keep them is found out", "[store]") {
    REQUIRE_THAT(caught(Mutation::kNotKept), ContainsSubstring("the names know"));
}

TEST_CASE("names: telling a claim that is not durable is detected", "[store]") {
    // There are claims of nobody, or for one of those an object was removed.
    REQUIRE_THAT(caught(Mutation::kToldEarly),
                 ContainsSubstring("the names know") || ContainsSubstring(" belongs to "));
}

TEST_CASE("names: giving up a name that others claim is found out", "[store]") {
    REQUIRE_THAT(caught(Mutation::kLeftAtOnce), ContainsSubstring(" belongs to "));
}

}  // namespace
}  // namespace fopd::store::names_testing
