// Measures the cost of an epoch, in virtual time with the real members.
//
//     bench_epochs [--json]
//
// All members of a view become ready at once; measured is the time from then until the last of them
// has the epoch, and the messages. A message takes 20 us; a member handles one at a time, 1 us for
// each that it gets or sends. Then how the time grows with the number of members.

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "sim/epochs/epoch_world.h"

namespace fopd::sim {
namespace {

constexpr Duration kHop = 20us;
constexpr Duration kHandling = 1us;
constexpr std::size_t kFanout = 16;

struct Cost {
    std::size_t members = 0;
    double us = 0;
    std::uint64_t messages = 0;
};

Cost measure(std::size_t members) {
    EpochWorldOptions options{.members = members};
    options.member.rules = EpochLaws::rules(5s);
    options.member.fanout = kFanout;
    options.hop = kHop;
    options.handling = kHandling;
    options.in_bytes = false;
    options.bytes_max = 64;
    options.checks_laws = false;
    EpochWorld world(options);
    world.begin_joined();
    // The beats of the beginning are over, and the next ones are far.
    world.run_until(world.now() + 100ms);
    world.stop_participants();
    const std::uint64_t before = world.messages();
    const Instant ready = world.now();
    for (std::size_t i = 0; i < members; ++i) world.run_participant(i, 1s);
    world.run_until(ready + 100ms);
    Instant last = ready;
    for (std::size_t i = 0; i < members; ++i) {
        if (world.answers(i).size() != 1 || !world.answers(i)[0]) bench::fail("no epoch");
        last = std::max(last, world.answered_at(i)[0]);
    }
    return {.members = members,
            .us = in_seconds(last - ready) * 1e6,
            .messages = world.messages() - before};
}

// How much each factor of the fanout adds, as a multiple of a hop and the handling of the children.
double growth(const Cost& few, const Cost& many) {
    const double factors =
        std::log(static_cast<double>(many.members) / static_cast<double>(few.members)) /
        std::log(static_cast<double>(kFanout));
    const double step = in_seconds(kHop + kHandling * static_cast<int>(kFanout)) * 1e6;
    return (many.us - few.us) / factors / step;
}

int run(bool as_json) {
    std::vector<Cost> costs;
    for (const std::size_t members : {10U, 100U, 1000U, 10'000U}) costs.push_back(measure(members));
    const Cost& most = costs.back();
    const double grows = growth(costs.front(), most);
    if (as_json) {
        std::printf(
            "{\"latency_10k_us\": %.1f, \"messages_10k\": %llu, \"growth_per_factor\": %.2f, "
            "\"latency\": [",
            most.us, static_cast<unsigned long long>(most.messages), grows);
        for (const Cost& cost : costs) {
            std::printf("%s{\"members\": %zu, \"us\": %.1f, \"messages\": %llu}",
                        &cost == &costs.front() ? "" : ", ", cost.members, cost.us,
                        static_cast<unsigned long long>(cost.messages));
        }
        std::printf("]}\n");
        return 0;
    }
    for (const Cost& cost : costs) {
        std::printf("%6zu members: %7.1f us, %llu messages\n", cost.members, cost.us,
                    static_cast<unsigned long long>(cost.messages));
    }
    std::printf("each factor of %zu adds %.2f times a hop and the handling of %zu\n", kFanout,
                grows, kFanout);
    return 0;
}

}  // namespace
}  // namespace fopd::sim

int main(int count, char** words) {
    return fopd::sim::run(count > 1 && std::strcmp(words[1], "--json") == 0);
}
