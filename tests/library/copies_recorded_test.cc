// Goal: copies on tape are recorded at every disk that can record them, whatever happens to others.
// Method: two disks of one locality in the simulated world, of which one fails while the batch of
// both is written to tape.

#include <vector>

#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

// Until a drive begins to write what it was given.
void wait_for_writing(TapeStage& stage) {
    const Instant end = after(stage.world.now(), 1h);
    const auto writes = [&stage] {
        for (const DriveRow& each : stage.library().drives()) {
            if (each.activity == "writing") return true;
        }
        return false;
    };
    while (!writes()) {
        REQUIRE(stage.world.now() < end);
        stage.world.step(end);
    }
}

}  // namespace

TEST_CASE("library: a disk that cannot record its copies keeps no other from recording theirs",
          "[library]") {
    const std::uint32_t bad = GENERATE(0U, 1U);
    CAPTURE(bad);
    const std::uint32_t good = 1 - bad;
    TapeStageOptions options;
    options.localities = 1;
    options.pool.migrate_age = 1min;
    TapeStage stage(options);
    std::vector<store::Fid> healthy;
    for (std::uint64_t i = 0; i < 300; ++i) healthy.push_back(stage.put(pattern(100, i), good));
    stage.put(pattern(100, 1000), bad);
    wait_for_writing(stage);
    stage.disk(bad).faults().flush_error_ppm = 1'000'000;
    stage.run_for(2min);

    REQUIRE_FALSE(stage.volume(bad).serving());
    CHECK(stage.events.count("library.copies_not_recorded") == 1);
    std::size_t without = 0;
    std::size_t waiting = 0;
    for (const store::Fid fid : healthy) {
        without += stage.copies_of(fid).size() == 1 ? 0U : 1U;
        waiting += stage.staging(0).staged().is_waiting(fid) ? 1U : 0U;
    }
    CHECK(without == 0);
    CHECK(waiting == 0);
    std::uint64_t written = 0;
    for (const auto& [vsn, use] : stage.volume(good).map().copies().use()) {
        written += use.total_copies;
    }
    CHECK(written == healthy.size());
    for (const store::Fid fid : healthy) REQUIRE(stage.release(fid).has_value());
}
