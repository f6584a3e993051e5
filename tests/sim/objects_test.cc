// Goal: whatever befalls a node, its clients and the network between them, what clients were told
// about their objects is true: what was acknowledged is there, once and whole, what was not is
// there whole or not at all, and no byte is anybody else's. Method: the real node over simulated
// disks, the real client library, and a book of what was promised.
// FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED runs one, or says which is the first. These run
// twice; without them, every fourth of a few does.

#include "tests/sim/replayed_stage.h"
#include "tests/sim/seeds.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::kSmallDisk;
using fopd::sim::testing::number_in;
using fopd::sim::testing::ReplayedStage;
using fopd::sim::testing::run_swarm;
using FaultKind = ObjectFault::Kind;

namespace {

constexpr std::uint64_t kFewObjectSeeds = 24;
ObjectFault draw_fault(core::Random& random, const ObjectStageOptions& options) {
    constexpr std::array kKinds{
        FaultKind::kCrash,       FaultKind::kCrash,        FaultKind::kPowerCut,
        FaultKind::kPowerCut,    FaultKind::kPowerCut,     FaultKind::kRestart,
        FaultKind::kCrashUser,   FaultKind::kLose,         FaultKind::kLoseAtNode,
        FaultKind::kLoseAtUser,  FaultKind::kPartition,    FaultKind::kStallToNode,
        FaultKind::kStallToUser, FaultKind::kStallLocality};
    ObjectFault fault;
    fault.kind = kKinds[random.below(kKinds.size())];
    fault.after = random.below(20);
    fault.steps = static_cast<std::uint32_t>(random.below(60));
    fault.span = Duration{random.between(0, Duration(3s).count())};
    fault.user = static_cast<std::uint32_t>(random.below(options.users));
    fault.locality = static_cast<std::uint32_t>(random.below(options.localities));
    fault.lose_indexes = random.below(4) == 0;
    fault.lose_names = random.below(4) == 0;
    // Where they come and go, one that is no good does not come.
    if (random.below(3) == 0 && options.disks > 1 && !options.moves) {
        fault.lose_disk = static_cast<std::uint32_t>(random.below(options.disks));
    }
    if (random.below(3) == 0) {
        fault.cut_start_at =
            static_cast<std::uint32_t>(1 + random.below(std::uint64_t{30} * options.disks));
    }
    return fault;
}

ObjectStageOptions draw_options(core::Random& random) {
    ObjectStageOptions options;
    options.localities = static_cast<std::uint32_t>(1 + random.below(4));
    options.disks = static_cast<std::uint32_t>(1 + random.below(4));
    if (random.below(4) == 0) options.disk_bytes = kSmallDisk;
    options.users = 2;
    options.user.object_bytes = random.below(4) == 0 ? 256U << 10 : 48U << 10;
    options.user.fop_bytes = random.below(2) == 0 ? 16U << 10 : 64U << 10;
    options.user.names = static_cast<std::uint32_t>(2 + random.below(5));
    options.user.impatient = random.below(4) == 0;
    // Of these nobody has all that is wanted.
    if (options.disk_bytes == kSmallDisk && options.disks == 1) {
        options.user.object_bytes = 2U << 20;
        options.user.names = 10;
    }
    options.checks = random.below(2) == 0;
    options.moves = random.below(3) == 0;
    if (options.moves) {
        options.disks += 1;
        options.user.names = 2;  // Of more objects no disk is ever empty.
    }
    return options;
}

std::uint64_t run_objects_seed(std::uint64_t seed) {
    core::Random random(seed);
    ObjectStageOptions options = draw_options(random);
    options.wire = draw_wire(seed);
    // An object of a few extents is of too many for some.
    options.user.tears = seed % 2 == 0;
    if (options.user.tears) {
        options.sweep = {.extents_a_turn = static_cast<std::uint32_t>(1 + seed / 2 % 3),
                         .pause = seed / 6 % 2 == 0 ? 0ms : 20ms};
    }
    ReplayedStage stage(seed, options, ReplayedStage::Seed::kOfSwarm);
    stage.must(stage.start());
    for (std::uint64_t rounds = 1 + random.below(2); rounds > 0; --rounds) {
        std::vector<ObjectFault> faults;
        for (std::uint64_t count = random.below(4); count > 0; --count) {
            faults.push_back(draw_fault(random, options));
        }
        stage.work(static_cast<std::uint32_t>(1 + random.below(3)),
                   static_cast<std::uint32_t>(4 + random.below(8)));
        stage.must(stage.play(faults));
        if (random.below(2) == 0) stage.must(stage.bring_back());
        constexpr std::array kEnds{FaultKind::kCrash, FaultKind::kPowerCut, FaultKind::kRestart};
        const bool lose_indexes = random.below(3) == 0;
        const bool lose_names = random.below(3) == 0;
        stage.must(stage.restart(kEnds[random.below(kEnds.size())], lose_indexes, lose_names));
        stage.must(stage.bring_back());
        stage.must(stage.settle());
        if (options.disks > 1 && random.below(4) == 0) {
            stage.must(stage.write_off(static_cast<std::uint32_t>(random.below(options.disks))));
            stage.must(stage.settle());
        }
        if (options.moves) stage.resume_moves();
    }
    stage.must(stage.bring_back());
    if (random.below(8) == 0) stage.must(stage.empty());
    stage.must(stage.end());
    return stage.world().trace_hash();
}

// Until somebody looks at all of it: a node that starts again from damaged disks knows less.
std::uint64_t run_seed_with_bad_disks(std::uint64_t seed) {
    core::Random random(seed);
    ObjectStageOptions options = draw_options(random);
    options.checks = false;  // What a disk makes of its bytes is there to be found.
    options.moves = false;   // None comes back from that.
    ReplayedStage stage(seed, options, ReplayedStage::Seed::kOfSwarm);
    stage.must(stage.start());
    stage.work(2, 6);
    stage.must(stage.play());
    ObjectFault fault{.kind = FaultKind::kDisks, .after = random.below(10)};
    const auto some = [&random](std::uint32_t ppm) {
        return random.below(3) == 0 ? static_cast<std::uint32_t>(random.below(ppm)) : 0;
    };
    fault.disks = {.read_error_ppm = some(100'000),
                   .write_error_ppm = some(20'000),
                   .flush_error_ppm = some(20'000),
                   .read_flip_ppm = some(200'000),
                   .write_flip_ppm = some(200'000),
                   .slow_ppm = some(100'000)};
    stage.work(2, 10);
    stage.must(stage.play({fault}));
    stage.must(stage.read_all());
    return stage.world().trace_hash();
}

// The same short work again and again, and each time the fault comes later, until it comes too
// late. Every `stride`th moment, or every one in the long tier.
template <typename Work, typename Check>
void befall_everywhere(ObjectFault fault, std::uint32_t stride, Work work, Check check) {
    if (number_in("FOPD_SWARM_SEEDS")) stride = 1;
    const std::uint32_t size = GENERATE(1U, 4U);
    for (bool came = true; came; fault.steps += stride) {
        CAPTURE(size, fault.steps);
        ReplayedStage stage(17, {.localities = size, .disks = size});
        stage.must(stage.start());
        work(stage);
        stage.must(stage.play({fault}));
        came = stage.faults_begun() > 0;
        check(stage);
        stage.must(stage.end());
    }
    REQUIRE(fault.steps > 50);
}

void live_through(const ObjectFault& fault, std::uint64_t seed) {
    ReplayedStage stage(seed);
    stage.must(stage.start());
    for (std::uint32_t round = 0; round < 3; ++round) {
        stage.work(2, 15);
        ObjectFault each = fault;
        each.after = 20 + 3 * round;
        each.user = round % 2;
        each.locality = round % 2;
        stage.must(stage.play({each}));
        stage.must(stage.restart(FaultKind::kCrash));
        stage.must(stage.settle());
    }
    stage.must(stage.end());
}

Task<void> scrub(daemon::Locality* locality) {
    const auto begun = locality->scrub()->begin(1);
    REQUIRE(begun.has_value());
    co_return;
}

}  // namespace

TEST_CASE("sim objects: replies about shared objects are true", "[sim]") {
    ReplayedStage stage(1);
    stage.must(stage.start());
    stage.work(3, 60);
    stage.must(stage.play());
    stage.must(stage.settle());
    stage.must(stage.empty());
    stage.must(stage.end());
    INFO(stage.book().summary());
    REQUIRE(stage.book().count("write done") > 20);
    REQUIRE(stage.book().count("read done") > 20);
    REQUIRE(stage.book().count("rename done") > 0);
    REQUIRE(stage.book().count("remove done") > 0);
    REQUIRE(stage.book().count("put done") > 0);
}

TEST_CASE("sim objects: a check of the disks finds nothing while clients are at work", "[sim]") {
    ReplayedStage stage(17, {.checks = true});
    stage.must(stage.start());
    stage.work(3, 60);
    stage.must(stage.play());
    stage.must(stage.settle());
    stage.must(stage.empty());
    stage.must(stage.end());
    REQUIRE(stage.check_count() > 10);
}

TEST_CASE("sim objects: a torn write is repaired after a power loss at any moment", "[sim]") {
    ReplayedStage stage(
        29,
        {.sweep = {.extents_a_turn = 1, .pause = 50ms}, .user = {.tears = true}, .checks = true});
    stage.must(stage.start());
    for (std::uint64_t round = 0; round < 6; ++round) {
        stage.work(3, 60);
        stage.must(stage.play({{.kind = FaultKind::kPowerCut,
                                .after = 40 + 10 * round,
                                .lose_indexes = round % 3 == 2}}));
        stage.must(stage.settle());
    }
    stage.must(stage.empty());
    stage.must(stage.end());
    INFO(stage.book().summary());
    REQUIRE(stage.book().count("truncate done") > 20);
    REQUIRE(stage.book().count("punch done") > 20);
    REQUIRE(stage.check_count() > 5);
}

TEST_CASE("sim objects: disks come and go while clients are at work", "[sim]") {
    ReplayedStage stage(19, {.disks = 6, .user = {.names = 2}, .checks = true, .moves = true});
    stage.must(stage.start());
    for (int round = 0; round < 6; ++round) {
        stage.work(3, 150);
        stage.must(stage.play());
        stage.must(stage.bring_back());
        stage.must(stage.settle());
        stage.resume_moves();
    }
    stage.must(stage.bring_back());
    stage.must(stage.empty());
    stage.must(stage.end());
    CAPTURE(stage.moves().came, stage.moves().went, stage.moves().stayed);
    REQUIRE(stage.moves().went > 3);
    REQUIRE(stage.moves().came == stage.moves().went);
    REQUIRE(stage.moves().stayed > 0);
}

TEST_CASE("sim objects: disks come and go, and the node is killed in between", "[sim]") {
    for (const FaultKind kind : {FaultKind::kCrash, FaultKind::kPowerCut, FaultKind::kRestart}) {
        ReplayedStage stage(23, {.disks = 3, .user = {.names = 2}, .moves = true});
        stage.must(stage.start());
        for (std::uint32_t round = 0; round < 6; ++round) {
            stage.work(2, 20);
            stage.must(stage.play({{.kind = kind, .after = 10 + 3 * round}}));
            stage.must(stage.bring_back());
            stage.must(stage.settle());
            stage.resume_moves();
        }
        stage.must(stage.bring_back());
        stage.must(stage.end());
        CAPTURE(stage.moves().came, stage.moves().went, stage.moves().stayed);
        REQUIRE(stage.moves().came > 0);
    }
}

// One kind of fault each, three times while they are at work.

TEST_CASE("sim objects: replies are true after a kill -9 of the node", "[sim]") {
    live_through({.kind = FaultKind::kCrash, .steps = 30, .span = 100ms}, 2);
}

TEST_CASE("sim objects: replies are true after a loss of power", "[sim]") {
    live_through({.kind = FaultKind::kPowerCut, .steps = 17, .span = 100ms}, 3);
}

TEST_CASE("sim objects: replies are true after a loss of power and the indexes", "[sim]") {
    live_through({.kind = FaultKind::kPowerCut,
                  .steps = 5,
                  .span = 100ms,
                  .lose_indexes = true,
                  .lose_names = true},
                 4);
}

TEST_CASE("sim objects: objects that may be on a missing disk are not reported as gone", "[sim]") {
    const bool lose_names = GENERATE(false, true);
    ReplayedStage stage(24);
    stage.must(stage.start());
    for (std::uint32_t round = 0; round < 4; ++round) {
        stage.work(2, 40);
        stage.must(stage.play({{.kind = FaultKind::kCrash,
                                .after = 20,
                                .span = 10ms,
                                .lose_names = lose_names,
                                .lose_disk = round % 2}}));
        stage.must(stage.restart(FaultKind::kCrash));
        stage.must(stage.settle());
    }
    stage.must(stage.end());
    INFO(stage.book().summary());
    REQUIRE(stage.book().count("lookup medium_missing") > 0);
    REQUIRE(stage.book().count("list medium_missing") > 0);
    REQUIRE(stage.book().count("read medium_missing") > 0);
    REQUIRE(stage.book().count("remove medium_missing") > 0);
    REQUIRE(stage.book().count("put done") > 0);
}

TEST_CASE("sim objects: exactly the objects of a disk that was written off are gone", "[sim]") {
    ReplayedStage stage(25);
    stage.must(stage.start());
    for (std::uint32_t round = 0; round < 4; ++round) {
        stage.work(2, 30);
        stage.must(stage.play());
        stage.must(stage.settle());
        stage.must(stage.write_off(round % 2));
        stage.must(stage.settle());
    }
    stage.must(stage.end());
}

TEST_CASE("sim objects: replies are true over a restart", "[sim]") {
    live_through({.kind = FaultKind::kRestart}, 5);
}

TEST_CASE("sim objects: a killed client leaves each change whole or not made", "[sim]") {
    live_through({.kind = FaultKind::kCrashUser, .steps = 20, .span = 10ms}, 6);
}

TEST_CASE("sim objects: replies are true over lost connections", "[sim]") {
    live_through({.kind = FaultKind::kLose, .steps = 20}, 7);
    live_through({.kind = FaultKind::kLoseAtNode, .steps = 20}, 8);
    live_through({.kind = FaultKind::kLoseAtUser, .steps = 20}, 9);
}

TEST_CASE("sim objects: replies are true over a stalled network", "[sim]") {
    live_through({.kind = FaultKind::kPartition, .steps = 20, .span = 20s}, 10);
    live_through({.kind = FaultKind::kStallToNode, .steps = 20, .span = 2s}, 11);
    live_through({.kind = FaultKind::kStallToUser, .steps = 20, .span = 2s}, 12);
}

TEST_CASE("sim objects: replies are true over a stalled locality", "[sim]") {
    live_through({.kind = FaultKind::kStallLocality, .steps = 20, .span = 2s}, 13);
}

// At every moment.

TEST_CASE("sim objects: a kill -9 of the node at any step of the world breaks no promise",
          "[sim][swarm]") {
    befall_everywhere(
        {.kind = FaultKind::kCrash, .span = 10ms}, 31,
        [](ReplayedStage& stage) { stage.work(1, 12); },
        [](ReplayedStage& stage) { stage.must(stage.settle()); });
}

TEST_CASE("sim objects: a loss of power at any step of a disk breaks no promise", "[sim][swarm]") {
    befall_everywhere(
        {.kind = FaultKind::kPowerCut, .span = 10ms}, 7,
        [](ReplayedStage& stage) { stage.work(1, 12); },
        [](ReplayedStage& stage) { stage.must(stage.settle()); });
}

TEST_CASE("sim objects: a put of a killed client is invisible, and its space is freed",
          "[sim][swarm]") {
    befall_everywhere(
        {.kind = FaultKind::kCrashUser, .span = 10ms}, 13,
        [](ReplayedStage& stage) {
            stage.user(0).make({.kind = ObjectWish::Kind::kPut,
                                .name = "a",
                                .range = {.offset = 0, .length = 300'000},
                                .mode = 0600});
        },
        [](ReplayedStage& stage) {
            stage.must(stage.settle());
            stage.must(stage.empty());
        });
}

TEST_CASE("sim objects: a disk that changes bytes is found out, and never believed", "[sim]") {
    ReplayedStage stage(14);
    stage.must(stage.start());
    stage.work(2, 20);
    stage.must(stage.play());
    stage.work(2, 40);
    stage.must(stage.play({{.kind = FaultKind::kDisks, .disks = {.write_flip_ppm = 500'000}}}));
    stage.must(stage.read_all());
    INFO(stage.book().summary());
    REQUIRE(stage.book().count("read corrupt") > 0);
}

TEST_CASE("sim objects: a disk that fails a flush takes nothing any more, and shows what it has",
          "[sim]") {
    ReplayedStage stage(15);
    stage.must(stage.start());
    stage.work(2, 20);
    stage.must(stage.play());
    stage.work(2, 40);
    stage.must(stage.play({{.kind = FaultKind::kDisks, .disks = {.flush_error_ppm = 1'000'000}}}));
    stage.must(stage.read_all());
    INFO(stage.book().summary());
    REQUIRE(stage.book().count("write read_only") > 0);
    REQUIRE(stage.book().count("append read_only") > 0);
}

TEST_CASE("sim objects: a full disk takes no more, keeps what it has, and has room again",
          "[sim]") {
    ReplayedStage stage(18, {.disks = 1, .disk_bytes = kSmallDisk});
    stage.must(stage.start());
    for (int round = 0; round < 2; ++round) {
        for (const char* const name : {"big-1", "big-2", "big-3", "big-4", "big-5", "big-6"}) {
            stage.user(0).make({.kind = ObjectWish::Kind::kPut,
                                .name = name,
                                .range = {.offset = 0, .length = 3U << 20},
                                .mode = 0600});
        }
        stage.must(stage.play());
        stage.work(2, 20);
        stage.must(stage.play({{.kind = FaultKind::kPowerCut, .after = 20, .span = 10ms}}));
        stage.must(stage.restart(FaultKind::kPowerCut));
        stage.must(stage.settle());
        stage.must(stage.empty());
    }
    stage.must(stage.end());
    INFO(stage.book().summary());
    REQUIRE(stage.book().count("put no_space") > 0);
    REQUIRE(stage.book().count("put done") > 0);
}

// A scrub reads into buffers of the locality, which are closed when the node stops.
TEST_CASE("sim objects: a node stops while a scrub reads", "[sim]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        ReplayedStage stage(seed, {.disks = 1});
        stage.must(stage.start());
        stage.work(2, 10);
        stage.must(stage.play());
        for (std::uint32_t each = 0; each < stage.user_count(); ++each) stage.user(each).leave();
        stage.world().run_for(10s);
        daemon::Locality& locality = *stage.node().node().localities()[0];
        locality.reactor().spawn(locality.work(), scrub(&locality));

        stage.must(stage.end());

        REQUIRE(stage.node().events().errors().empty());
    }
}

TEST_CASE("sim objects: a flush that makes nothing durable is missed", "[sim]") {
    std::string broken;
    for (std::uint64_t seed = 1; broken.empty() && seed <= 10; ++seed) {
        ReplayedStage stage(seed, {.disks = 1});
        stage.must(stage.start());
        stage.node().disks().set_faults("d0", {.lost_flush_ppm = 1'000'000});
        stage.work(2, 10);
        [[maybe_unused]] const bool kept =
            stage.play() && stage.restart(FaultKind::kPowerCut) && stage.settle();
        broken = stage.broken_promise();
    }
    REQUIRE_FALSE(broken.empty());
}

TEST_CASE("sim objects: one of ten thousand concurrent creates gets the name", "[sim]") {
    constexpr std::uint64_t kMany = 10'000;
    ReplayedStage stage(19, {.localities = 2, .disks = 2});
    stage.must(stage.start());
    for (std::uint32_t i = 0; i < kMany; ++i) {
        stage.user(i % 2).make(
            {.kind = ObjectWish::Kind::kCreate, .name = "one", .mode = 0600, .no_replace = true});
    }
    stage.must(stage.play());
    REQUIRE(stage.book().count("create done") == 1);
    REQUIRE(stage.book().count("create exists") == kMany - 1);
    stage.must(stage.settle());
    stage.must(stage.end());
    CAPTURE(stage.most().foms, stage.most().waiting, stage.most().changed_bytes);
    REQUIRE(stage.most().foms > 30);
}

TEST_CASE("sim objects: buffered writes on a failing disk are not reported as durable", "[sim]") {
    ReplayedStage stage(16, {.disks = 1});
    stage.must(stage.start());
    stage.user(0).make({.kind = ObjectWish::Kind::kCreate, .name = "a"});
    stage.must(stage.play());
    const fop::Fid fid = stage.book().fids().front();
    stage.user(0).make({.kind = ObjectWish::Kind::kWrite,
                        .fid = fid,
                        .range = {.offset = 0, .length = 5000},
                        .durability = fop::Durability::kBuffered});
    stage.must(stage.play());

    stage.user(0).sync();
    stage.must(stage.play({{.kind = FaultKind::kDisks, .disks = {.flush_error_ppm = 1'000'000}}}));

    REQUIRE(stage.book().count("write done") == 1);
    // The disk takes nothing any more, so it cannot be written again either.
    REQUIRE(stage.book().count("sync lost") == 1);
    REQUIRE(stage.book().count("told lost") == 1);
}

TEST_CASE("sim objects swarm: replies are true under all faults", "[sim][swarm]") {
    run_swarm(kFewObjectSeeds, run_objects_seed);
}

TEST_CASE("sim objects swarm: corrupt disks never return wrong data", "[sim][swarm]") {
    run_swarm(kFewObjectSeeds, run_seed_with_bad_disks);
}
