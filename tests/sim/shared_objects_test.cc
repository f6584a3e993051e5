// Goal: a buffered write that a crash has lost never lands on what others have changed since, what
// others have not changed comes back, and who has lost something is told so once. Method: as in
// objects_test.cc; the book knows who may be told what.
// FOPD_SWARM_SEEDS sets how many seeds; FOPD_SEED runs one, or says which is the first.

#include "tests/sim/shared_objects.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::number_in;
using fopd::sim::testing::ReplayedStage;

namespace {

using WishOf = ObjectWish::Kind;

constexpr std::uint64_t kFewSharedSeeds = 60;
constexpr std::uint32_t kAnn = 0;
constexpr std::uint32_t kBob = 1;
constexpr std::uint32_t kEve = 2;

fop::Range bytes(std::uint64_t offset, std::uint64_t length) {
    return {.offset = offset, .length = length};
}

// Ann and Bob, an object, and what one of them does to it after the other.
class Sharing {
public:
    explicit Sharing(std::uint64_t seed) : stage_(seed, {.disks = 1, .users = 3}) {
        stage_.must(stage_.start());
        does(kAnn, {.kind = WishOf::kCreate, .name = "a", .mode = 0600});
        fid_ = stage_.book().fids().front();
    }

    void does(std::uint32_t who, ObjectWish wish) {
        if (wish.kind != WishOf::kCreate && wish.kind != WishOf::kPut) wish.fid = fid_;
        stage_.user(who).make(std::move(wish));
        stage_.must(stage_.play());
    }
    void writes(std::uint32_t who, const fop::Range& range,
                fop::Durability durability = fop::Durability::kDurable) {
        does(who, {.kind = WishOf::kWrite, .range = range, .durability = durability});
    }
    void buffers(std::uint32_t who, const fop::Range& range) {
        writes(who, range, fop::Durability::kBuffered);
    }
    void reads(std::uint32_t who, const fop::Range& range) {
        does(who, {.kind = WishOf::kRead, .range = range});
    }
    void syncs(std::uint32_t who) {
        stage_.user(who).sync();
        stage_.must(stage_.play());
    }
    // While this happens.
    void syncs_over(std::uint32_t who, const ObjectFault& fault) {
        stage_.user(who).sync();
        stage_.must(stage_.play({fault}));
    }
    // Without power, so that what is not durable may be lost.
    void crashes() { stage_.must(stage_.restart(ObjectFault::Kind::kPowerCut)); }
    std::uint64_t size_on_disk() {
        store::Volume& volume = *stage_.node().node().disks().find("d0")->volume();
        const auto object = volume.map().find({.high = fid_.high, .low = fid_.low});
        REQUIRE(object.has_value());
        REQUIRE(object->has_value());
        return (*object)->size_bytes;
    }
    // How often that was so.
    void was(std::string_view outcome, std::uint64_t count) {
        CAPTURE(outcome, stage_.book().summary(), stage_.book().history());
        REQUIRE(stage_.book().count(outcome) == count);
    }
    void ends() {
        stage_.must(stage_.settle());
        stage_.must(stage_.end());
    }

private:
    ReplayedStage stage_;
    fop::Fid fid_{};
};

// What `begin` does is lost but for the first 100 bytes, and then comes `go_on`: which part of what
// was not durable a loss of power leaves is drawn.
template <typename Begin, typename GoOn>
void lose_and(Begin begin, GoOn go_on) {
    for (std::uint64_t seed = 1; seed < 100; ++seed) {
        Sharing sharing(seed);
        sharing.writes(kBob, bytes(0, 100));
        begin(sharing);
        sharing.crashes();
        if (sharing.size_on_disk() != 100) continue;
        CAPTURE(seed);
        go_on(sharing);
        return sharing.ends();
    }
    FAIL("nothing was lost");
}

// Ann has written buffered, the node has lost it, and then Bob does this.
void refuse_after(const ObjectWish& wish, bool ann_syncs) {
    const auto begin = [](Sharing& sharing) { sharing.buffers(kAnn, bytes(0, 5000)); };
    lose_and(begin, [&](Sharing& sharing) {
        sharing.does(kBob, wish);
        if (ann_syncs) {
            sharing.syncs(kAnn);
        } else {
            sharing.reads(kAnn, bytes(0, 6000));
        }
        sharing.was(ann_syncs ? "sync lost" : "read lost", 1);
        sharing.was("told lost", 1);
        sharing.reads(kAnn, bytes(0, 6000));
        sharing.syncs(kAnn);
        sharing.was("told lost", 1);
    });
}

}  // namespace

TEST_CASE("sim shared objects: a lost write does not land on another client's newer bytes",
          "[sim]") {
    const bool ann_syncs = GENERATE(false, true);
    const fop::Range from_ten{.offset = 10, .length = fop::kOffsetMax - 10};
    SECTION("a write") {
        refuse_after({.kind = WishOf::kWrite, .range = bytes(1000, 1)}, ann_syncs);
    }
    SECTION("a buffered write") {
        refuse_after({.kind = WishOf::kWrite,
                      .range = bytes(0, 5000),
                      .durability = fop::Durability::kBuffered},
                     ann_syncs);
    }
    SECTION("a truncate") {
        refuse_after({.kind = WishOf::kTruncate, .range = from_ten}, ann_syncs);
    }
    SECTION("a punch") {
        refuse_after({.kind = WishOf::kPunch, .range = bytes(0, 8192)}, ann_syncs);
    }
    SECTION("an append") {
        refuse_after({.kind = WishOf::kAppend, .range = bytes(0, 64)}, ann_syncs);
    }
}

TEST_CASE("sim shared objects: a lost write to a removed object is reported", "[sim]") {
    SECTION("by a delete") {
        refuse_after({.kind = WishOf::kRemove, .from = "a"}, true);
    }
    SECTION("by another object of its name") {
        refuse_after({.kind = WishOf::kPut, .name = "a", .range = bytes(0, 10), .mode = 0600},
                     true);
    }
}

TEST_CASE("sim shared objects: a lost write comes back where nobody has changed anything since",
          "[sim]") {
    const auto begin = [](Sharing& sharing) {
        // Neighbours in a block, too.
        sharing.buffers(kAnn, bytes(0, 100));
        sharing.buffers(kBob, bytes(100, 100));
        sharing.buffers(kEve, bytes(8192, 4096));
    };
    lose_and(begin, [](Sharing& sharing) {
        sharing.does(kEve, {.kind = WishOf::kRename, .from = "a", .name = "b"});
        sharing.writes(kEve, bytes(200, 100));
        sharing.reads(kAnn, bytes(0, 20'000));
        sharing.reads(kBob, bytes(0, 20'000));
        sharing.syncs(kAnn);
        sharing.syncs(kBob);
        sharing.syncs(kEve);
        sharing.reads(kAnn, bytes(0, 20'000));
        sharing.was("told lost", 0);
        sharing.was("sync done", 3);
    });
}

TEST_CASE("sim shared objects: of two lost writes to the same bytes the first that comes stays",
          "[sim]") {
    const auto begin = [](Sharing& sharing) {
        sharing.buffers(kAnn, bytes(0, 5000));
        sharing.buffers(kBob, bytes(4000, 5000));
    };
    lose_and(begin, [](Sharing& sharing) {
        sharing.syncs(kBob);
        sharing.reads(kAnn, bytes(0, 10'000));
        sharing.was("read lost", 1);
        sharing.was("told lost", 1);
        sharing.reads(kAnn, bytes(0, 10'000));
        sharing.syncs(kAnn);
        sharing.was("told lost", 1);
    });
}

TEST_CASE("sim shared objects: changes of an incarnation in between are newer", "[sim]") {
    const auto begin = [](Sharing& sharing) { sharing.buffers(kAnn, bytes(0, 5000)); };
    lose_and(begin, [](Sharing& sharing) {
        sharing.writes(kBob, bytes(1000, 100));
        sharing.crashes();
        sharing.reads(kAnn, bytes(0, 6000));
        sharing.was("read lost", 1);
        sharing.reads(kAnn, bytes(0, 6000));
    });
}

TEST_CASE("sim shared objects: a write that is lost twice is replayed twice", "[sim]") {
    const auto begin = [](Sharing& sharing) {
        sharing.buffers(kAnn, bytes(100, 5000));
        sharing.buffers(kBob, bytes(5100, 5000));
    };
    lose_and(begin, [](Sharing& sharing) {
        for (int crash = 0; crash < 5; ++crash) {
            sharing.reads(kAnn, bytes(0, 20'000));
            sharing.reads(kBob, bytes(0, 20'000));
            sharing.crashes();
        }
        sharing.syncs(kAnn);
        sharing.syncs(kBob);
        sharing.was("told lost", 0);
    });
}

// Killed while a part has been written again, and what there was of it is on the disk.
TEST_CASE("sim shared objects: an interrupted replay is completed for a sole writer", "[sim]") {
    const auto begin = [](Sharing& sharing) {
        for (std::uint64_t i = 0; i < 8; ++i) sharing.buffers(kAnn, bytes(100 + i * 9000, 5000));
    };
    const auto steps = static_cast<std::uint32_t>(GENERATE(range(10, 250, 20)));
    CAPTURE(steps);
    lose_and(begin, [steps](Sharing& sharing) {
        sharing.syncs_over(kAnn, {.kind = ObjectFault::Kind::kCrash, .steps = steps});
        sharing.was("sync done", 1);
        sharing.was("told lost", 0);
    });
}

TEST_CASE("sim shared objects: a change reports a lost write before it has any effect", "[sim]") {
    const auto begin = [](Sharing& sharing) { sharing.buffers(kAnn, bytes(0, 5000)); };
    lose_and(begin, [](Sharing& sharing) {
        sharing.writes(kBob, bytes(0, 10));
        // It finds out, and is done.
        sharing.writes(kAnn, bytes(10'000, 10));
        sharing.was("told lost", 0);

        sharing.writes(kAnn, bytes(0, 10));

        sharing.was("write lost", 1);
        sharing.was("told lost", 1);
        sharing.writes(kAnn, bytes(0, 10));
    });
}

TEST_CASE("sim shared objects swarm: replies to several clients agree with the objects",
          "[sim][swarm]") {
    const auto first = number_in("FOPD_SEED");
    const auto many = number_in("FOPD_SWARM_SEEDS");
    const std::uint64_t begin = first.value_or(1);
    const std::uint64_t end = begin + many.value_or(first ? 1 : kFewSharedSeeds);
    for (std::uint64_t seed = begin; seed < end; ++seed) {
        const auto run = [seed] {
            ObjectStageOptions options = fopd::sim::testing::options_to_share(seed);
            options.wire = draw_wire(seed);
            ReplayedStage stage(seed, options, ReplayedStage::Seed::kOfSwarm);
            stage.must(fopd::sim::testing::share_objects(stage, seed));
            return stage.world().trace_hash();
        };
        const std::uint64_t hash = run();
        if (!first && seed % 4 != 0) continue;
        CAPTURE(seed);
        REQUIRE(run() == hash);
    }
}
