// Goal: every object that is due gets its turn to be written to tape, however many others come.
// Method: disks and a library in the simulated world, with fewer drives than collections.

#include <string>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

TapeStageOptions one_slow_drive() {
    TapeStageOptions options;
    options.drives = 1;
    options.timing = LibraryTiming::kCalculate;
    options.pool.migrate_files = 1;
    return options;
}

}  // namespace

TEST_CASE("library migration: a collection that is always due does not keep the drive",
          "[library]") {
    TapeStage stage(one_slow_drive());
    stage.collection = "a";
    stage.put(pattern(1000, 1));
    stage.run_for(1s);
    stage.collection = "z";
    const store::Fid last = stage.put(pattern(1000, 2));
    stage.collection = "a";
    for (std::uint64_t i = 0; i < 600 && stage.copies_of(last).empty(); ++i) {
        stage.put(pattern(1000, 3 + i));
        stage.run_for(1s);
    }
    REQUIRE_FALSE(stage.copies_of(last).empty());
}

TEST_CASE("library migration: what a repack moves gets its turn", "[library]") {
    TapeStage stage(one_slow_drive());
    stage.collection = "a";
    const store::Fid old = stage.put(pattern(1000, 1));
    REQUIRE(stage.sync(1h).has_value());
    const std::string barcode = written_cartridge(stage);
    REQUIRE(stage.at(0, stage.library().repack(barcode)).kind == MediaOutcome::Kind::kDone);
    for (std::uint64_t i = 0; i < 900; ++i) {
        stage.put(pattern(1000, 3 + i));
        stage.run_for(1s);
        if (stage.library().repack_work(barcode)->state != MediumWork::State::kRunning) break;
    }
    CHECK(stage.library().repack_work(barcode)->state == MediumWork::State::kDone);
    CHECK(stage.copies_of(old).size() == 1);
}
