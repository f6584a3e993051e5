#include "tests/sim/shared_objects.h"

#include <array>

#include "tests/sim/swarm_worlds.h"

namespace fopd::sim::testing {

namespace {

ObjectFault draw_fault_of_sharing(core::Random& random, const ObjectStageOptions& options) {
    using Kind = ObjectFault::Kind;
    constexpr std::array kKinds{Kind::kCrash,       Kind::kCrash,       Kind::kCrash,
                                Kind::kPowerCut,    Kind::kPowerCut,    Kind::kRestart,
                                Kind::kCrashUser,   Kind::kStopUser,    Kind::kStopUser,
                                Kind::kLose,        Kind::kLoseAtNode,  Kind::kLoseAtUser,
                                Kind::kStallToNode, Kind::kStallToUser, Kind::kPartition};
    ObjectFault fault;
    fault.kind = kKinds[random.below(kKinds.size())];
    fault.after = random.below(30);
    fault.steps = static_cast<std::uint32_t>(random.below(60));
    fault.span = Duration{random.between(0, Duration(500ms).count())};
    fault.user = static_cast<std::uint32_t>(random.below(options.users));
    if (random.below(6) == 0) {
        fault.cut_start_at = static_cast<std::uint32_t>(1 + random.below(30));
    }
    return fault;
}

}  // namespace

ObjectStageOptions options_to_share(std::uint64_t seed) {
    core::Random random(core::mix(seed, 1));
    ObjectStageOptions options;
    options.localities = static_cast<std::uint32_t>(1 + random.below(2));
    options.disks = 1;
    options.users = static_cast<std::uint32_t>(2 + random.below(3));
    options.user.shares = true;
    options.user.names = 2;
    options.user.object_bytes = 24U << 10;
    options.user.fop_bytes = random.below(2) == 0 ? 4U << 10 : 16U << 10;
    // Some have to make room before they can go on.
    options.user.held_bytes_max = random.below(4) == 0 ? 16U << 10 : 1U << 20;
    options.user.impatient = random.below(4) == 0;
    return options;
}

bool share_objects(ReplayedStage& stage, std::uint64_t seed) {
    core::Random random(core::mix(seed, 2));
    const ObjectStageOptions options = options_to_share(seed);
    if (!stage.start()) return false;
    for (const char* const name : {"object-0", "object-1"}) {
        stage.user(0).make({.kind = ObjectWish::Kind::kCreate, .name = name, .mode = 0600});
    }
    if (!stage.play()) return false;
    for (std::uint64_t rounds = 1 + random.below(3); rounds > 0; --rounds) {
        std::vector<ObjectFault> faults;
        for (std::uint64_t count = 1 + random.below(3); count > 0; --count) {
            faults.push_back(draw_fault_of_sharing(random, options));
        }
        for (std::uint32_t each = 0; each < options.users; ++each) {
            if (!stage.user(each).running()) stage.user(each).start();
        }
        stage.work(static_cast<std::uint32_t>(1 + random.below(2)),
                   static_cast<std::uint32_t>(3 + random.below(8)));
        if (!stage.play(std::move(faults))) return false;
        constexpr std::array kEnds{ObjectFault::Kind::kCrash, ObjectFault::Kind::kPowerCut,
                                   ObjectFault::Kind::kRestart};
        const auto how = kEnds[random.below(kEnds.size())];
        if (random.below(2) == 0 && !stage.restart(how)) return false;
        if ((rounds == 1 || random.below(3) == 0) && !stage.settle()) return false;
    }
    return stage.end();
}

bool keeps_shared_objects(std::uint64_t seed) {
    ReplayedStage stage(seed, options_to_share(seed));
    return share_objects(stage, seed);
}

}  // namespace fopd::sim::testing
