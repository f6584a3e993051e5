// Goal: whatever befalls a node with a tape library, its drives, its robot and its clients, objects
// of a pool on tape have the bytes that clients were told they have, what has left the disks comes
// back, and tapes have what the records say. Method: as in objects_test.cc, with the simulated
// library; the cartridges are read in the end without the node.
// FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED runs one, or says which is the first. These run
// twice; without them, every fourth of a few does.

#include "tests/sim/seeds.h"
#include "tests/sim/tape_swarm.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::ReplayedStage;
using fopd::sim::testing::run_swarm;
using FaultKind = ObjectFault::Kind;

namespace {

constexpr std::uint64_t kFewTapeSeeds = 40;

std::uint64_t run_tape_seed(std::uint64_t seed) {
    ReplayedStage stage(seed, fopd::sim::testing::options_with_tapes(seed),
                        ReplayedStage::Seed::kOfSwarm);
    stage.must(fopd::sim::testing::live_with_tapes(stage, seed));
    return stage.world().trace_hash();
}

}  // namespace

TEST_CASE("sim tapes: objects go to tape, leave the disks and come back", "[sim]") {
    ObjectStageOptions options;
    options.user.tapes = true;
    options.tape_pool = {.name = "cold", .staging = "fast", .migrate_age = 5s};
    ReplayedStage stage(1, options);
    stage.must(stage.start());
    stage.work(2, 60);
    stage.must(stage.play());
    stage.must(stage.settle());
    stage.must(stage.sync_tapes());
    stage.must(stage.rest_tapes());
    stage.must(stage.end_and_check_tapes());
    INFO(stage.book().summary());
    CAPTURE(stage.tapes_seen().files, stage.tapes_seen().copies);
    REQUIRE(stage.book().count("release done") > 5);
    REQUIRE(stage.book().count("sync tape done") > 5);
    REQUIRE(stage.book().count("stage done") > 0);
    REQUIRE(stage.tapes_seen().files > 3);
    REQUIRE(stage.tapes_seen().copies > 2);
}

TEST_CASE("sim tapes swarm: what clients are told of objects on tape is true", "[sim][swarm]") {
    run_swarm(kFewTapeSeeds, run_tape_seed);
}
