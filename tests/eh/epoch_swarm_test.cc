// Goal: whatever is lost, doubled, late, cut off, paused, killed, or not answered by the view
// store, the laws of epochs hold at each step (sim/epochs/epoch_laws.h), and after the last fault
// all are members and move, in a bounded time. Method: worlds drawn from seeds, a quarter of them
// twice. FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED is the first.

#include "tests/eh/epoch_swarm.h"

#include <cstdlib>
#include <optional>

#include "tests/catch.h"
#include "tests/slowness.h"

namespace epoch_swarm_test {

using namespace fopd::eh::testing;

namespace {

constexpr std::uint64_t kFewSeeds = fopd::testing::few_of(400);

std::optional<std::uint64_t> number_in(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("eh swarm: the laws of epochs hold, and after the last fault all move", "[eh][swarm]") {
    const auto first = number_in("FOPD_SEED");
    const auto many = number_in("FOPD_SWARM_SEEDS");
    const std::uint64_t count = many.value_or(first ? 1 : kFewSeeds);
    std::uint64_t epochs = 0;
    std::uint64_t views = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t seed = first.value_or(1) + i;
        const SwarmResult result = run_swarm(seed);
        INFO("seed " << seed << ": " << result.wrong << "\nreplay: FOPD_SEED=" << seed
                     << " build/<preset>/bin/test_eh '[swarm]'");
        REQUIRE(result.wrong.empty());
        if (many || seed % 4 == 0) REQUIRE(run_swarm(seed).trace == result.trace);
        epochs += result.epochs;
        views += result.views;
    }
    if (count < 100) return;
    CHECK(epochs > 10 * count);
    CHECK(views > 4 * count);
}

}  // namespace epoch_swarm_test
