#include "tests/eh/epoch_swarm.h"

#include <algorithm>

#include "core/random.h"

namespace fopd::eh::testing {

using sim::EpochLaws;
using sim::EpochWorld;
using sim::EpochWorldOptions;

SwarmResult run_swarm(std::uint64_t seed) {
    core::Random draw(seed * 2'654'435'761U + 1);
    EpochWorldOptions options{.seed = seed};
    options.members = 2 + draw.below(seed % 8 == 0 ? 20 : 6);
    options.member.rules = EpochLaws::rules(1s);
    // An answer through the whole tree must come within the grace.
    const bool is_large = options.members > 8;
    options.member.fanout = (is_large ? 3 : 1) + draw.below(4);
    options.member.grace = 100ms;
    options.member.root_silent = 400ms;
    options.member.resend = 25ms;
    options.member.join_batch = 20ms;
    options.member.back_off_max = 1s;
    options.member.block = draw.below(3) == 0 ? 16 : 1 << 20;
    options.is_shared = draw.below(4) != 0;
    options.hop = 500us;
    options.jitter = draw.below(2) == 0 ? 2ms : is_large ? 15ms : 60ms;
    options.lost_ppm = draw.below(2) == 0 ? 0 : static_cast<std::uint32_t>(draw.below(100'000));
    options.twice_ppm = draw.below(2) == 0 ? 0 : static_cast<std::uint32_t>(draw.below(100'000));
    options.store_unknown_ppm = draw.below(2) == 0 ? 0 : 100'000;
    if (draw.below(4) == 0) options.bytes_max = 8 * (1 + draw.below(options.members));
    EpochWorld world(options);
    if (draw.below(2) == 0)
        world.be_irregular(static_cast<std::uint32_t>(draw.below(30'000)),
                           static_cast<std::uint32_t>(draw.below(50'000)));
    for (std::size_t i = 0; i < options.members; ++i)
        world.run_participant(i, draw.between(2, 40) * Duration(1ms));
    const Instant last_fault = world.now() + 8s;
    world.draw_faults(last_fault);

    world.run_until(last_fault);
    // Everybody's call ends, those that are evicted join again, and a silent root is replaced.
    const eh::peers::MemberOptions& member = options.member;
    const Duration bound = member.watchdog() + member.root_silent + member.back_off_max;
    const bool joined =
        world.run_until_true(last_fault + bound, [&] { return world.all_joined(); });
    SwarmResult result;
    const EpochNumber before = world.laws().newest();
    const bool moves = joined && world.run_until_true(last_fault + bound + 1s, [&] {
        return world.laws().newest() >= before + 3;
    });
    world.run_until(world.now() + 1s);
    // The last calls end, and then nobody has anything to say.
    world.stop_participants();
    world.run_until(world.now() + member.watchdog() + 4s);
    if (!world.laws().broken().empty()) {
        result.wrong = world.laws().broken() + "\n" + world.describe();
    } else if (!joined) {
        result.wrong = "not all joined " + world.describe();
    } else if (!moves) {
        result.wrong = "no epochs " + world.describe();
    }
    result.epochs = world.laws().epochs();
    result.views = world.laws().history().size();
    result.messages = world.messages();
    result.trace = world.trace();
    return result;
}

}  // namespace fopd::eh::testing
