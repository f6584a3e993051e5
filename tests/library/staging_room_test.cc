// Goal: room is made on a staging disk for uploads that do not fit, and for nobody else.
// Method: as tape_library_test.cc; a change that did not fit is played by want_room().

#include <vector>

#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

constexpr std::size_t kObjectBlocks = 250;

TapeStageOptions one_disk() {
    TapeStageOptions options;
    options.disks = 1;
    options.localities = 1;
    options.pool.staging_high = 0;  // Nothing leaves by itself.
    options.pool.migrate_age = 24h;
    return options;
}

std::vector<store::Fid> put_objects(TapeStage& stage, std::size_t count) {
    std::vector<store::Fid> fids;
    for (std::size_t i = 0; i < count; ++i) {
        fids.push_back(stage.put(pattern(kObjectBlocks * 4096, i)));
        stage.run_for(1s);
    }
    return fids;
}

std::uint64_t free_blocks(TapeStage& stage) {
    const store::SpaceUse use = stage.volume(0).space_use();
    return use.free_blocks + use.waiting_blocks;
}

std::size_t released_count(TapeStage& stage, const std::vector<store::Fid>& fids) {
    std::size_t count = 0;
    for (const store::Fid fid : fids) count += stage.is_released(fid) ? 1 : 0;
    return count;
}

}  // namespace

TEST_CASE("library: room that is wanted is made from what is on tape, the oldest first",
          "[library]") {
    TapeStage stage(one_disk());
    const auto fids = put_objects(stage, 20);
    REQUIRE(stage.sync().has_value());
    stage.run_for(10min);
    REQUIRE(released_count(stage, fids) == 0);

    const std::uint64_t wanted = free_blocks(stage) + 3 * kObjectBlocks - 10;
    stage.staging(0).want_room(fids.front().slot(), wanted);
    stage.run_for(10s);
    CHECK(free_blocks(stage) >= wanted);
    CHECK(released_count(stage, fids) == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(stage.is_released(fids[i]));
}

TEST_CASE("library: room that is wanted makes objects go to tape at once", "[library]") {
    TapeStage stage(one_disk());
    const auto fids = put_objects(stage, 20);
    stage.run_for(1h);
    REQUIRE(stage.copies_of(fids.front()).empty());

    const std::uint64_t wanted = free_blocks(stage) + 5 * kObjectBlocks;
    for (int tries = 0; tries < 60 && free_blocks(stage) < wanted; ++tries) {
        // As long as the change is tried again.
        stage.staging(0).want_room(fids.front().slot(), wanted);
        stage.run_for(10s);
    }
    CHECK(free_blocks(stage) >= wanted);
    CHECK(released_count(stage, fids) == 5);
    for (std::size_t i = 0; i < fids.size(); ++i) {
        CHECK(stage.recalled(fids[i]) == pattern(kObjectBlocks * 4096, i));
    }
}

TEST_CASE("library: room that nobody wants any more is not made", "[library]") {
    TapeStage stage(one_disk());
    const auto fids = put_objects(stage, 4);
    stage.staging(0).want_room(fids.front().slot(), free_blocks(stage) + kObjectBlocks);
    stage.run_for(5min);
    REQUIRE(released_count(stage, fids) == 0);
    REQUIRE(stage.sync().has_value());
    stage.run_for(10min);
    CHECK(released_count(stage, fids) == 0);
}

TEST_CASE("library: a disk that is full to the last block is emptied", "[library]") {
    TapeStage stage(one_disk());
    std::vector<store::Fid> fids;
    std::size_t size = kObjectBlocks * 4096;
    while (size >= 4096) {
        if (free_blocks(stage) < 4 * size / 4096) {
            size /= 2;
            continue;
        }
        fids.push_back(stage.put(pattern(size, fids.size())));
        stage.run_for(1s);
    }
    const store::SpaceUse use = stage.volume(0).space_use();
    REQUIRE(use.free_blocks < use.used_blocks / 20);
    const std::uint64_t wanted = use.used_blocks / 2;
    for (int tries = 0; tries < 60 && free_blocks(stage) < wanted; ++tries) {
        stage.staging(0).want_room(fids.front().slot(), wanted);
        stage.run_for(10s);
    }
    CHECK(free_blocks(stage) >= wanted);
}
