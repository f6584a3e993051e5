// Goal: whatever happens to the power, a volume has every change it acknowledged, each whole or not
// at all, and no block that reads as anything but what was written.
// Method: workers write, truncate, remove and read objects of a volume on a simulated disk, whose
// power is cut at a step drawn from the seed; then the machine starts again, with or without its
// index, and every object is compared with what it may be.

#include <cstdlib>
#include <string>

#include "tests/catch.h"
#include "tests/slowness.h"
#include "tests/store/volume_stage.h"

namespace fopd::store::testing {
namespace {

std::string run(Plan plan, Remains* figures = nullptr) {
    const fopd::testing::Replay replay(plan.seed);
    Remains remains(kDiskBytes);
    std::string violation = carry_out(plan, remains);
    if (figures != nullptr) {
        figures->reads += remains.reads;
        figures->checkpoints += remains.checkpoints;
        figures->recoveries += remains.recoveries;
    }
    return violation;
}

std::uint64_t first_seed() {
    const char* const text = std::getenv("FOPD_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

// Some damage shows only a few starts later.
unsigned boots_of(std::uint64_t seed) {
    return static_cast<unsigned>(3 + seed % 5);
}

std::uint64_t seeds() {
    const char* const text = std::getenv("FOPD_SWARM_SEEDS");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : fopd::testing::few_of(25);
}

TEST_CASE("volume: an orderly life keeps everything", "[store]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        REQUIRE(run({.seed = seed, .orderly = true}) == kNothing);
    }
}

TEST_CASE("volume: what was acknowledged survives a loss of power", "[store][swarm]") {
    Remains figures(kDiskBytes);
    for (std::uint64_t seed = first_seed(); seed <= seeds(); ++seed) {
        CAPTURE(seed);
        REQUIRE(run({.seed = seed, .boots = boots_of(seed)}, &figures) == kNothing);
    }
    REQUIRE(figures.reads > 0);
    REQUIRE(figures.checkpoints > 0);
}

TEST_CASE("volume: the power may fail while cleared ranges are freed in parts", "[store][swarm]") {
    Remains figures(kDiskBytes);
    for (std::uint64_t seed = first_seed(); seed <= seeds(); ++seed) {
        CAPTURE(seed);
        Remains remains(kDiskBytes);
        const Plan plan{.seed = seed,
                        .boots = boots_of(seed),
                        .operations = 60,
                        .cut_within = 2500,
                        .in_steps = true};
        REQUIRE(carry_out(plan, remains) == kNothing);
        figures.sweeps += remains.sweeps;
        figures.writes_meanwhile += remains.writes_meanwhile;
    }
    CAPTURE(figures.sweeps, figures.writes_meanwhile);
    REQUIRE(figures.sweeps > seeds() / 2);
    REQUIRE(figures.writes_meanwhile > 10 * seeds());
}

TEST_CASE("volume: zeros ahead of data never overwrite data", "[store][swarm]") {
    std::uint64_t zeros = 0;
    for (std::uint64_t seed = first_seed(); seed <= seeds(); ++seed) {
        CAPTURE(seed);
        Remains remains(kDiskBytes);
        const std::string violation = carry_out(
            {.seed = seed, .operations = 60, .cut_within = 2500, .sparse = true}, remains);
        REQUIRE(violation == kNothing);
        zeros += remains.zeros;
    }
    REQUIRE(zeros > kDiskBytes / devices::kBlockBytes);
}

TEST_CASE("volume: nothing that anybody needs is discarded", "[store][swarm]") {
    const bool sparse = GENERATE(false, true);
    CAPTURE(sparse);
    std::uint64_t discards = 0;
    for (std::uint64_t seed = first_seed(); seed <= seeds(); ++seed) {
        CAPTURE(seed);
        Remains remains(kDiskBytes);
        const std::string violation = carry_out(
            {.seed = seed, .operations = 60, .cut_within = 2500, .sparse = sparse, .discard = true},
            remains);
        REQUIRE(violation == kNothing);
        discards += remains.discards;
    }
    REQUIRE(discards > seeds());
}

TEST_CASE("volume: a log that has come around several times still says everything", "[store]") {
    for (std::uint64_t seed = 1; seed <= fopd::testing::few_of(2); ++seed) {
        CAPTURE(seed);
        Remains remains(kDiskBytes);

        const std::string violation = carry_out(
            {.seed = seed, .boots = 3, .operations = 2000, .orderly = true, .rescue = true},
            remains);

        REQUIRE(violation == kNothing);
        REQUIRE(remains.entries > 2 * remains.log_entries);
    }
}

TEST_CASE("volume: the power may go while the log is being cleaned", "[store][swarm]") {
    for (std::uint64_t seed = first_seed(); seed <= seeds() / 10; ++seed) {
        CAPTURE(seed);
        REQUIRE(run({.seed = seed, .boots = 4, .operations = 300, .cut_within = 9000}) == kNothing);
    }
}

TEST_CASE("volume: the power may go at each step of a start", "[store]") {
    for (std::uint64_t step = 1; step <= 40; ++step) {
        CAPTURE(step);
        REQUIRE(run({.seed = 9, .operations = 6, .first_cut = step}) == kNothing);
    }
}

// An object loses a block, others use the log meanwhile, and it is given the same block for the
// same place again: what cleaning finds of its first time is not what it has now.
TEST_CASE("volume: a block that an object gets again is what it was written last", "[store]") {
    const auto [seed, rescue] = GENERATE(std::pair(272, false), std::pair(889, false),
                                         std::pair(448, true), std::pair(605, true));
    CAPTURE(seed);
    REQUIRE(run({.seed = static_cast<std::uint64_t>(seed), .boots = 6, .rescue = rescue}) ==
            kNothing);
}

TEST_CASE("volume: a newer program finds everything, and brings it to its own version",
          "[store][swarm]") {
    std::uint32_t upgrades = 0;
    for (std::uint64_t seed = first_seed(); seed <= seeds(); ++seed) {
        CAPTURE(seed);
        Remains remains(kDiskBytes);
        REQUIRE(carry_out({.seed = seed, .boots = 6, .upgrade = true}, remains) == kNothing);
        upgrades += remains.version - 1;
    }
    REQUIRE(upgrades >= seeds());
}

TEST_CASE("volume: what is only on cartridges is found there, whatever the power does",
          "[store][swarm]") {
    TapeBook figures;
    for (std::uint64_t seed = first_seed(); seed <= seeds(); ++seed) {
        CAPTURE(seed);
        Remains remains(kDiskBytes);
        const Plan plan{.seed = seed,
                        .boots = boots_of(seed),
                        .operations = 80,
                        .cut_within = 3000,
                        .rescue = seed % 4 == 1,
                        .in_steps = seed % 3 == 0,
                        .upgrade = seed % 5 == 0,
                        .tape = true};
        REQUIRE(carry_out(plan, remains) == kNothing);
        figures.releases += remains.tape.releases;
        figures.returns += remains.tape.returns;
        figures.abandoned += remains.tape.abandoned;
        figures.stale += remains.tape.stale;
        figures.refused += remains.tape.refused;
        figures.reads += remains.tape.reads;
    }
    CAPTURE(figures.releases, figures.returns, figures.abandoned, figures.stale, figures.refused,
            figures.reads);
    REQUIRE(figures.releases > 10 * seeds());
    REQUIRE(figures.returns > 5 * seeds());
    REQUIRE(figures.abandoned > seeds());
    REQUIRE(figures.stale > seeds());
    REQUIRE(figures.refused > 10 * seeds());
    REQUIRE(figures.reads > 10 * seeds());
}

TEST_CASE("volume: a log that has come around still has all copies and recalls", "[store]") {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        CAPTURE(seed);
        Remains remains(kDiskBytes);
        const Plan plan{.seed = seed,
                        .boots = 3,
                        .operations = 2000,
                        .orderly = true,
                        .rescue = true,
                        .tape = true};
        REQUIRE(carry_out(plan, remains) == kNothing);
        REQUIRE(remains.entries > 2 * remains.log_entries);
    }
}

TEST_CASE("volume: mutants are detected", "[store]") {
    const auto mutation =
        GENERATE(Mutation::kNoFlush, Mutation::kIndexForgets, Mutation::kIndexRunsAhead,
                 Mutation::kZerosLate, Mutation::kDiscardsLate, Mutation::kOldIndex);
    CAPTURE(static_cast<int>(mutation));
    unsigned caught = 0;
    for (std::uint64_t seed = 1; seed <= 40 && caught == 0; ++seed) {
        Remains remains(kDiskBytes);
        const Plan plan{.seed = seed,
                        .mutation = mutation,
                        .operations = 60,
                        .sparse = mutation == Mutation::kZerosLate,
                        .discard = mutation == Mutation::kDiscardsLate,
                        .upgrade = mutation == Mutation::kOldIndex};
        if (!carry_out(plan, remains).empty()) ++caught;
    }
    REQUIRE(caught > 0);
}

}  // namespace
}  // namespace fopd::store::testing
