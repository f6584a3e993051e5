#include "tests/store/mutant_worlds.h"

#include "tests/store/volume_stage.h"

namespace fopd::store::testing {

namespace {

Plan plan_of(std::uint64_t seed) {
    switch (seed % 5) {
        case 0:
            return {.seed = seed, .boots = 3, .operations = 2000, .orderly = true, .rescue = true};
        case 1:
            return {.seed = seed,
                    .boots = 4,
                    .operations = 300,
                    .cut_within = 9000,
                    .rescue = seed % 8 == 1};
        case 2: return {.seed = seed, .operations = 60, .cut_within = 2500, .in_steps = true};
        case 3: return {.seed = seed, .operations = 60, .cut_within = 2500, .tape = true};
        default: return {.seed = seed};
    }
}

}  // namespace

std::string violation_with(std::uint64_t seed) {
    Remains remains(kDiskBytes);
    return carry_out(plan_of(seed), remains);
}

}  // namespace fopd::store::testing
