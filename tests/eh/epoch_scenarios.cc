#include "tests/eh/epoch_scenarios.h"

#include <algorithm>

#include "tests/eh/epoch_swarm.h"

namespace fopd::eh::testing {

using peers::EventKind;
using sim::EpochWorld;
using sim::EpochWorldOptions;

EpochWorldOptions quick_world(std::size_t members) {
    EpochWorldOptions options{.members = members};
    options.member.rules = sim::EpochLaws::rules(1s);
    options.member.fanout = 2;
    options.member.grace = 100ms;
    options.member.root_silent = 400ms;
    options.member.resend = 25ms;
    options.member.join_batch = 20ms;
    options.member.back_off_max = 1s;
    return options;
}

namespace {

std::string with_state(const EpochWorld& world, std::string wrong) {
    if (!world.laws().broken().empty()) wrong = world.laws().broken();
    return wrong.empty() ? wrong : wrong + "\n" + world.describe();
}

void run_all(EpochWorld& world, std::size_t members, Duration think) {
    world.begin_joined();
    for (std::size_t i = 0; i < members; ++i) world.run_participant(i, think);
}

}  // namespace

std::string busy_member_and_dead_root() {
    EpochWorld world(quick_world(5));
    world.begin_joined();
    const Instant began = world.now();
    for (std::size_t i = 0; i < 4; ++i) world.run_participant(i, 10ms);
    // Takes part in the first epoch, and is busy for long: it is alive, and promises.
    world.run_participant(4, 1min);
    world.run_until(began + 980ms);
    const std::size_t before = world.answers(1).size();
    world.crash(0);
    world.run_until(began + 2100ms);
    std::string wrong;
    for (std::size_t i = 1; i < 4; ++i) {
        const auto& answers = world.answers(i);
        if (answers.size() <= before || !answers.back())
            wrong = sim::EpochLaws::name_of(i) + " does not move";
    }
    return with_state(world, wrong);
}

std::string lost_answer_of_store() {
    EpochWorld world(quick_world(4));
    run_all(world, 4, 10ms);
    world.run_until(world.now() + 200ms);
    world.crash(3);
    world.lose_next_swap_answer(0ns);
    world.start(3);
    world.run_until(world.now() + 1s);
    std::string wrong;
    if (world.count(EventKind::kAbdicates) > 0) wrong = "the root abdicates for its own view";
    if (!world.all_joined()) wrong = "not all joined";
    return with_state(world, wrong);
}

std::string late_swap() {
    for (int tenths = 10; tenths < 200; ++tenths) {
        EpochWorldOptions options = quick_world(5);
        options.jitter = 20ms;
        options.seed = static_cast<std::uint64_t>(tenths);
        EpochWorld world(options);
        run_all(world, 5, 1ms);
        world.run_until(world.now() + 200ms);
        world.crash(4);
        world.lose_next_swap_answer(tenths * 100us);
        world.start(4);
        world.run_until(world.now() + 1s);
        std::string wrong;
        if (world.count(EventKind::kAbdicates) > 0) wrong = "the root abdicates for its own view";
        if (!world.all_joined()) wrong = "not all joined";
        wrong = with_state(world, wrong);
        if (!wrong.empty()) return wrong;
    }
    return {};
}

std::string start_reaches_one() {
    EpochWorldOptions options = quick_world(3);
    EpochWorld world(options);
    run_all(world, 3, 300ms);
    world.run_until(world.now() + 100ms);
    const Instant until = world.now() + 1min;
    // The second child of the root hears nothing of it any more, and the root dies with the start.
    world.block(0, 2, until);
    const std::size_t before = world.answers(1).size();
    if (!world.run_until_true(until, [&] { return world.answers(1).size() > before; }))
        return with_state(world, "no epoch");
    world.crash(0);
    if (!world.answers(1).back()) return with_state(world, "an error");
    const EpochNumber begun = *world.answers(1).back();
    world.run_until(world.now() + 1500ms);
    std::string wrong;
    const auto& others = world.answers(2);
    const bool is_there =
        std::ranges::any_of(others, [&](const auto& answer) { return answer && *answer == begun; });
    if (!is_there) wrong = "an epoch began at one only";
    return with_state(world, wrong);
}

}  // namespace fopd::eh::testing
