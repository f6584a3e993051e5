#include "tests/sim/tape_swarm.h"

#include <array>
#include <string>
#include <string_view>

#include "tests/sim/swarm_worlds.h"

namespace fopd::sim::testing {

namespace {

using Kind = ObjectFault::Kind;

// Some of the rates are 0, so that each fault is also seen alone.
SimulatedLibrary::Faults draw_tape_faults(core::Random& random) {
    const auto some = [&random](std::uint32_t ppm) {
        return random.below(3) == 0 ? static_cast<std::uint32_t>(random.below(ppm)) : 0;
    };
    return {.drives = {.load_ppm = some(300'000),
                       .read_ppm = some(50'000),
                       .write_ppm = some(50'000),
                       .late_write_ppm = some(50'000),
                       .early_end_ppm = some(20'000),
                       .stuck_ppm = some(200'000),
                       .death_ppm = some(3'000),
                       .slow_ppm = some(50'000),
                       .slow_delay = Duration{random.between(0, Duration(5min).count())}},
            .robot = {.busy_ppm = some(300'000),
                      .error_ppm = some(200'000),
                      .stuck_ppm = some(500'000),
                      .takes_other = random.below(4) == 0,
                      .reports_nothing = random.below(12) == 0}};
}

ObjectFault draw_fault_with_tapes(core::Random& random, const ObjectStageOptions& options) {
    constexpr std::array kKinds{
        Kind::kCrash,      Kind::kCrash,        Kind::kPowerCut,      Kind::kPowerCut,
        Kind::kPowerCut,   Kind::kRestart,      Kind::kRestart,       Kind::kCrashUser,
        Kind::kLose,       Kind::kPartition,    Kind::kStallLocality, Kind::kTapes,
        Kind::kTapes,      Kind::kTapes,        Kind::kDriveDies,     Kind::kSwapLabels,
        Kind::kSwapLabels, Kind::kSwapElements, Kind::kTakeCartridge, Kind::kFormat,
        Kind::kRepack,     Kind::kRepack,       Kind::kRepack};
    ObjectFault fault;
    fault.kind = kKinds[random.below(kKinds.size())];
    fault.after = random.below(30);
    // Short steps of disks and users, or the long ones of tapes.
    fault.steps = static_cast<std::uint32_t>(random.below(random.below(2) == 0 ? 60 : 3000));
    if (fault.kind == Kind::kPowerCut) fault.steps %= 500;
    fault.span = Duration{random.between(0, Duration(3s).count())};
    fault.user = static_cast<std::uint32_t>(random.below(options.users));
    fault.locality = static_cast<std::uint32_t>(random.below(options.localities));
    fault.tape = static_cast<std::uint32_t>(random.below(1'000'000));
    fault.tapes = draw_tape_faults(random);
    fault.lose_indexes = random.below(6) == 0;
    fault.older_media = random.below(2) == 0;
    if (random.below(4) == 0) {
        fault.cut_start_at = static_cast<std::uint32_t>(1 + random.below(100));
    }
    return fault;
}

// The algorithms for drives, and their times: short ones, so that they pass while users work.
std::string draw_tape_io(core::Random& random) {
    std::string io;
    if (random.below(4) > 0) {
        constexpr std::array kOrders{"arrival", "linear", "scan", "sltf", "auto"};
        io += "read_algo: grouped_read, grouped_read_order: ";
        io += kOrders[random.below(kOrders.size())];
        constexpr std::array kAges{"0s", "10s", "5min"};
        io += std::string(", grouped_read_mount_age: ") + kAges[random.below(kAges.size())];
        constexpr std::array kWaits{"1s", "1min", "30min"};
        io += std::string(", grouped_read_max_wait: ") + kWaits[random.below(kWaits.size())];
        if (random.below(3) == 0) io += ", grouped_read_stay_mounted: 1min";
    }
    const auto add = [&io](std::string_view words) {
        if (!io.empty()) io += ", ";
        io += words;
    };
    if (random.below(4) > 0) add("write_algo: grouped_write");
    if (random.below(2) == 0) {
        add("dispatch_algo: fair_share");
        if (random.below(3) == 0) add("fair_share_weights: \"1,2,1\"");
    }
    if (random.below(3) == 0) add("request_algo: fair_share");
    return io.empty() ? io : "{ " + io + " }";
}

std::vector<ObjectFault> draw_faults(core::Random& random, const ObjectStageOptions& options) {
    std::vector<ObjectFault> faults;
    for (std::uint64_t count = random.below(4); count > 0; --count) {
        faults.push_back(draw_fault_with_tapes(random, options));
    }
    return faults;
}

}  // namespace

ObjectStageOptions options_with_tapes(std::uint64_t seed) {
    core::Random random(core::mix(seed, 1));
    ObjectStageOptions options;
    options.wire = draw_wire(seed);
    options.localities = seed % 2 == 0 ? 4 : 1;
    options.disks = static_cast<std::uint32_t>(1 + random.below(3));
    options.users = 2;
    options.user.tapes = true;
    options.user.object_bytes = random.below(4) == 0 ? 600U << 10 : 48U << 10;
    options.user.names = static_cast<std::uint32_t>(2 + random.below(6));
    options.user.impatient = random.below(4) == 0;
    options.library.drives = static_cast<std::uint32_t>(1 + random.below(3));
    options.library.cartridges = static_cast<std::uint32_t>(4 + random.below(4));
    // The small ones have room for few batches, so that many of them are used.
    constexpr std::array<std::uint64_t, 4> kCartridgeBytes{14U << 20, 20U << 20, 32U << 20,
                                                           96U << 20};
    options.library.cartridge_bytes = kCartridgeBytes[random.below(kCartridgeBytes.size())];
    library::TapePoolOptions pool{.name = "cold", .staging = "fast"};
    constexpr std::array<Duration, 4> kAges{1s, 5s, 1min, 1h};
    pool.migrate_age = kAges[random.below(kAges.size())];
    pool.migrate_files = random.below(2) == 0 ? 3 : 1000;
    if (random.below(4) == 0) pool.migrate_bytes = 100'000;
    // Most disks are nearly empty, so that some leave them at once.
    pool.staging_high = random.below(3) == 0 ? 1 : 80;
    pool.staging_low = random.below(2) == 0 ? 0 : pool.staging_high - 1;
    constexpr std::array<std::uint64_t, 4> kPieces{8U << 10, 64U << 10, 256U << 10, 64ULL << 30};
    pool.piece_bytes = kPieces[random.below(kPieces.size())];
    if (options.library.drives > 1 && random.below(2) == 0) {
        pool.copies = 2;
        options.library.cartridges += 3;
    }
    options.tape_pool = pool;
    options.tape_io = draw_tape_io(random);
    if (random.below(2) == 0) options.user.collections = 2;
    return options;
}

bool live_with_tapes(ReplayedStage& stage, std::uint64_t seed) {
    core::Random random(core::mix(seed, 2));
    const ObjectStageOptions options = options_with_tapes(seed);
    if (!stage.start()) return false;
    for (std::uint64_t rounds = 1 + random.below(2); rounds > 0; --rounds) {
        stage.work(static_cast<std::uint32_t>(1 + random.below(3)),
                   static_cast<std::uint32_t>(4 + random.below(12)));
        if (!stage.play(draw_faults(random, options))) return false;
        constexpr std::array kEnds{Kind::kCrash, Kind::kPowerCut, Kind::kRestart};
        ObjectFault end;
        end.kind = kEnds[random.below(kEnds.size())];
        end.lose_indexes = random.below(4) == 0;
        end.older_media = random.below(2) == 0;
        if (!stage.restart(end)) return false;
        if (!stage.repair_tapes()) return false;
        if (random.below(2) == 0 && !stage.sync_tapes()) return false;
        if (!stage.settle()) return false;
    }
    // Once more, and then for good.
    const bool is_damaged = random.below(4) == 0;
    if (is_damaged) {
        stage.work(2, 6);
        std::vector<ObjectFault> faults;
        for (std::uint64_t count = 1 + random.below(3); count > 0; --count) {
            faults.push_back({.kind = random.below(2) == 0 ? Kind::kDamage : Kind::kOlderTape,
                              .after = random.below(10),
                              .tape = static_cast<std::uint32_t>(random.below(1'000'000))});
        }
        if (!stage.play(faults)) return false;
        if (!stage.read_all()) return false;
    }
    if (!stage.sync_tapes() || !stage.rest_tapes()) return false;
    return stage.end_and_check_tapes();
}

std::optional<std::string> broken_with_tapes(std::uint64_t seed) {
    ReplayedStage stage(seed, options_with_tapes(seed));
    if (live_with_tapes(stage, seed)) return std::nullopt;
    return std::string(stage.broken_promise());
}

}  // namespace fopd::sim::testing
