// Goal: a recall brings an object back once, for all who ask for it, and ends with what it is for,
// whatever happens in between.
// Method: disks and a library in the simulated world; objects are compared with what was put.

#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

TEST_CASE("library: many who ask for an object make one recall", "[library]") {
    TapeStage stage;
    const Bytes bytes = pattern(100'000, 1);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());

    for (int i = 0; i < 5; ++i) REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    stage.run_for(1s);
    REQUIRE(stage.library().recalls(10).size() == 1);
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    REQUIRE(stage.read(fid) == bytes);
    REQUIRE(stage.library().recalls(10).empty());
    REQUIRE(stage.recall(fid) == RecallAsked::kOnDisk);
}

TEST_CASE("library: a recall survives restarts and power cuts", "[library]") {
    TapeStage stage;
    const Bytes bytes = pattern(100'000, 1);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);

    stage.lose_power();
    stage.start();
    REQUIRE(stage.is_released(fid));
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    stage.run_for(10min);
    REQUIRE(stage.read(fid) == bytes);
}

TEST_CASE("library: a recall ends with a cancel and with the object", "[library]") {
    TapeStage stage;
    const store::Fid one = stage.put(pattern(100'000, 1));
    const store::Fid other = stage.put(pattern(100'000, 2));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(one).has_value());
    REQUIRE(stage.release(other).has_value());
    REQUIRE(stage.recall(one) == RecallAsked::kWaiting);
    REQUIRE(stage.recall(other) == RecallAsked::kWaiting);

    const core::WaitOptions wait{};
    REQUIRE(stage.at_home(one, stage.staging_of(one).cancel_recall(one, wait)).has_value());
    stage.remove(other);
    stage.run_for(10min);
    REQUIRE(stage.is_released(one));
    REQUIRE(stage.library().recalls(10).empty());
    const auto again = stage.at_home(one, stage.staging_of(one).cancel_recall(one, wait));
    REQUIRE(again.error().code == Errc::kNotFound);
}

TEST_CASE("library: a recall that a power cut ends does not count its parts", "[library]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed=" << seed);
        TapeStage stage({.seed = seed});
        const Bytes bytes = pattern(6'000'000, 1);
        const store::Fid fid = stage.put(bytes);
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.release(fid).has_value());
        REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
        stage.lose_power_within(400, 10min);
        stage.start();
        REQUIRE(stage.owned_blocks() == 1465);
        REQUIRE(stage.recalled(fid) == bytes);
        REQUIRE(stage.owned_blocks() == 1465);
    }
}

TEST_CASE("library: a pinned object stays on the disk", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(100'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.recall(fid, 1h) == RecallAsked::kOnDisk);

    REQUIRE(stage.release(fid).error().code == Errc::kBusy);
    stage.run_for(2h);
    REQUIRE(stage.release(fid).has_value());
}

TEST_CASE("library: a recall that is not needed any more does not fail", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(1000, 1));
    const RecallEnd failure{.how = RecallEnd::How::kFailed, .reason = "no copy"};
    const auto failed = stage.at_home(fid, stage.staging_of(fid).fail_recall(fid, failure));
    REQUIRE(failed.has_value());
    REQUIRE_FALSE(*failed);
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
}

TEST_CASE("library: a recall ends when its object is emptied while it comes back", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(1'000'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    const ReturningObjects& returning = stage.staging_of(fid).returning();
    for (int i = 0; i < 3600 && !returning.contains(fid); ++i) stage.run_for(100ms);
    REQUIRE(returning.contains(fid));

    stage.overwrite(fid, {});
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    stage.run_for(10min);
    REQUIRE(stage.library().recalls(10).empty());
    REQUIRE(stage.read(fid) == Bytes{});
}

TEST_CASE("library: what came back stays for those who wait, on a disk that is too full",
          "[library]") {
    TapeStageOptions options;
    options.pool.migrate_age = 1s;
    options.pool.staging_high = 1;
    options.pool.staging_low = 0;
    TapeStage stage(options);
    const Bytes bytes = pattern(1'000'000, 1);
    const store::Fid fid = stage.put(bytes);
    stage.put(pattern(1'000'000, 2), 0);
    stage.run_for(10min);
    REQUIRE(stage.is_released(fid));

    REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    stage.run_for(10s);
    REQUIRE(stage.read(fid) == bytes);
    stage.run_for(1min);
    REQUIRE(stage.is_released(fid));
    stage.stop();
}
