// Goal: whatever a loss of power leaves of a log and its data, all that was acknowledged is found
// again, what is found is a prefix of what was begun, and every byte is right. Method: a store in
// small keeps the rules of a volume; its machine loses power at every write and every flush, or at
// drawn ones, several times in a row; a recovery may be hit as well. And each of the rules is left
// out once, to see that it is missed.
// FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED runs one.

#include <cstdlib>
#include <optional>

#include "tests/catch.h"
#include "tests/store/log_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

constexpr std::uint64_t kFewSeeds = 150;
constexpr std::uint64_t kMutantSeeds = 2000;

std::optional<std::uint64_t> number_in(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
}

Plan drawn_plan(std::uint64_t seed) {
    core::Random random(seed);
    return {.seed = seed,
            .boots = static_cast<unsigned>(1 + random.below(4)),
            .operations = static_cast<unsigned>(10 + random.below(60)),
            .cut_within = static_cast<std::uint32_t>(40 + random.below(900)),
            .segments_max = static_cast<std::uint32_t>(4 + random.below(6))};
}

// Short lives: what one of them left behind its end is what the next runs into.
Plan short_lives(std::uint64_t seed) {
    core::Random random(seed);
    return {.seed = seed,
            .boots = static_cast<unsigned>(4 + random.below(8)),
            .operations = 20,
            .cut_within = static_cast<std::uint32_t>(30 + random.below(120)),
            .segments_max = 6};
}

}  // namespace

TEST_CASE("store log: a power failure at any write or flush loses nothing acknowledged",
          "[store]") {
    const Plan plan{.seed = 3, .boots = 1, .operations = 6, .cut_within = 30, .segments_max = 6};
    Plan whole = plan;
    whole.orderly = true;
    Stage undisturbed(whole);
    REQUIRE(undisturbed.run() == kNothing);
    const std::uint64_t steps = undisturbed.first_steps();
    REQUIRE(steps > 100);

    for (std::uint64_t step = 1; step <= steps; ++step) {
        Plan cut = plan;
        cut.first_cut = step;
        Stage stage(cut);
        CAPTURE(step);
        REQUIRE(stage.run() == kNothing);
    }
}

TEST_CASE("store log: power failures in a row, some while recovering, lose nothing acknowledged",
          "[store][swarm]") {
    const auto one = number_in("FOPD_SEED");
    const std::uint64_t count = one ? 1 : number_in("FOPD_SWARM_SEEDS").value_or(kFewSeeds);
    std::uint64_t cleaned = 0;
    std::uint64_t grown = 0;
    std::uint64_t dropped = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t seed = one.value_or(i + 1);
        const Plan plan = seed % 2 == 0 ? drawn_plan(seed) : short_lives(seed);
        Stage stage(plan);
        CAPTURE(seed);
        REQUIRE(stage.run() == kNothing);
        cleaned += stage.remains().cleaned;
        grown += stage.remains().grown;
        dropped += stage.remains().dropped;
        if (i % 16 != 0) continue;
        Stage again(plan);
        REQUIRE(again.run() == kNothing);
        REQUIRE(again.world.trace_hash() == stage.world.trace_hash());
    }
    if (count < kFewSeeds) return;
    // It did test what it says.
    CHECK(cleaned > count / 4);
    CHECK(grown > count / 8);
    CHECK(dropped > count / 8);
}

TEST_CASE("store log: each rule that is left out is missed", "[store]") {
    const auto mutation =
        GENERATE(Mutation::kNoFlush, Mutation::kMarksUnread, Mutation::kEpochsUnread,
                 Mutation::kDataUnchecked, Mutation::kReuseWhenDurable, Mutation::kCleanForgets,
                 Mutation::kCleanLate);
    CAPTURE(static_cast<int>(mutation));
    std::string violation;
    std::uint64_t seed = 0;
    while (violation.empty() && seed < kMutantSeeds) {
        ++seed;
        Plan plan = seed % 2 == 0 ? drawn_plan(seed) : short_lives(seed);
        plan.mutation = mutation;
        Stage stage(plan);
        violation = stage.run();
    }
    CAPTURE(seed, violation);
    REQUIRE(violation != kNothing);
}
