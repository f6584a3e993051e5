// Goal: a scrub finds every damaged block of a disk and calls nothing else damaged, also while
// objects change under it. Method: a node over simulated disks whose bits are flipped behind its
// back.

#include "objects/scrub.h"

#include "objects/fids.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

constexpr std::uint64_t kFast = 1UL << 30;

const objects::ScrubProgress& progress_of(StoreStage& stage) {
    return stage.stores().find(kFirstSlot)->scrub();
}

void run_scrub(StoreStage& stage) {
    objects::Scrub scrub(stage.stores(), kFast);
    REQUIRE(scrub.begin(kFirstSlot).has_value());
    while (progress_of(stage).state.get() == objects::ScrubProgress::kRunning)
        REQUIRE(stage.world.step());
}

// Where the block of an object is on the disk.
std::uint64_t disk_block_of(StoreStage& stage, fop::Fid fid, std::uint64_t block) {
    auto extents = stage.volume().map().extents({.high = fid.high, .low = fid.low},
                                                {.first = block, .count = 1});
    const auto extent = extents.next();
    REQUIRE(extent.has_value());
    REQUIRE(extent->has_value());
    const std::uint64_t found = (*extent)->block;
    stage.volume().map().release();
    return found;
}

void flip_bit(StoreStage& stage, std::uint64_t block) {
    stage.image().flip_bit(block * objects::kBlock + 77, 3);
}

}  // namespace

TEST_CASE("reqh scrub: undamaged data are reported as such", "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    stage.write(fid, 0, pattern(600 * objects::kBlock, 1));
    stage.write(fid, 1000 * objects::kBlock + 5, pattern(3 * objects::kBlock, 2));

    run_scrub(stage);

    REQUIRE(progress_of(stage).state.get() == objects::ScrubProgress::kDone);
    REQUIRE(progress_of(stage).read_blocks.get() == 604);
    REQUIRE(progress_of(stage).total_blocks.get() == 604);
    REQUIRE(progress_of(stage).damaged_blocks.get() == 0);
    REQUIRE(stage.all_buffers_are_back());
}

TEST_CASE("reqh scrub: each damaged block is found, and only those", "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    stage.write(fid, 0, pattern(300 * objects::kBlock, 1));
    for (const std::uint64_t block : {0U, 63U, 64U, 299U}) {
        flip_bit(stage, disk_block_of(stage, fid, block));
    }

    run_scrub(stage);

    REQUIRE(progress_of(stage).state.get() == objects::ScrubProgress::kDone);
    REQUIRE(progress_of(stage).damaged_blocks.get() == 4);
    REQUIRE(stage.stores().find(kFirstSlot)->checksum_errors().get() == 4);
    const auto* const event = stage.last_event("store.scrub_found_damage");
    REQUIRE(event != nullptr);
    CHECK(event->texts.at("device") == stage.volume().device_name());
    CHECK(event->texts.at("object") == objects::format_fid(objects::store_fid(fid)));
    CHECK(event->texts.at("name") == "a");
    REQUIRE(stage.last_event("store.scrubbed") != nullptr);
    CHECK(stage.last_event("store.scrubbed")->texts.at("device") == stage.volume().device_name());

    // A read that meets the damage says the same.
    const ReadSpec read(fid, {{.offset = 63 * objects::kBlock, .length = objects::kBlock}});
    CHECK(stage.call(read.spec(WriteSpec::Way::kInline)).status() == fop::Status::kCorrupt);
    const auto* const met = stage.last_event("store.block_damaged");
    REQUIRE(met != nullptr);
    CHECK(met->texts.at("device") == stage.volume().device_name());
    CHECK(met->texts.at("object") == event->texts.at("object"));
    CHECK(met->texts.at("name") == "a");
    CHECK(met->numbers.at("block") == 63);

    // Written anew, it is well again.
    stage.write(fid, 0, pattern(300 * objects::kBlock, 2));
    run_scrub(stage);
    REQUIRE(progress_of(stage).damaged_blocks.get() == 0);
}

TEST_CASE("reqh scrub: a damaged block that it has found does not count again when it is read",
          "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    stage.write(fid, 0, pattern(20 * objects::kBlock, 1));
    const auto read_block = [&stage, fid](std::uint64_t block) {
        const ReadSpec read(fid, {{.offset = block * objects::kBlock, .length = objects::kBlock}});
        return stage.call(read.spec(WriteSpec::Way::kInline)).status();
    };
    const auto& met = stage.stores().find(kFirstSlot)->met_damage();
    flip_bit(stage, disk_block_of(stage, fid, 3));
    CHECK(read_block(3) == fop::Status::kCorrupt);
    CHECK(met.count() == 1);

    run_scrub(stage);
    CHECK(met.count() == 0);
    CHECK(read_block(3) == fop::Status::kCorrupt);
    REQUIRE(met.count() == 0);

    // Damage that came later counts.
    flip_bit(stage, disk_block_of(stage, fid, 7));
    CHECK(read_block(7) == fop::Status::kCorrupt);
    REQUIRE(met.count() == 1);

    // The next scrub forgets what it does not find any more.
    stage.write(fid, 0, pattern(20 * objects::kBlock, 2));
    run_scrub(stage);
    REQUIRE(met.count() == 0);
    flip_bit(stage, disk_block_of(stage, fid, 3));
    CHECK(read_block(3) == fop::Status::kCorrupt);
    REQUIRE(met.count() == 1);
}

TEST_CASE("reqh scrub: what changes meanwhile is no damage", "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    stage.write(fid, 0, pattern(900 * objects::kBlock, 1));
    objects::Scrub scrub(stage.stores(), 20UL << 20);
    REQUIRE(scrub.begin(kFirstSlot).has_value());

    std::uint64_t writes = 0;
    while (progress_of(stage).state.get() == objects::ScrubProgress::kRunning) {
        stage.write(fid, stage.random.below(900) * objects::kBlock,
                    pattern(7 * objects::kBlock, ++writes));
    }

    REQUIRE(writes > 20);
    REQUIRE(progress_of(stage).state.get() == objects::ScrubProgress::kDone);
    REQUIRE(progress_of(stage).damaged_blocks.get() == 0);
}

TEST_CASE("reqh scrub: there is one at a time, and it ends when it is told to", "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    stage.write(fid, 0, pattern(300 * objects::kBlock, 1));
    objects::Scrub scrub(stage.stores(), 4096);
    REQUIRE(scrub.begin(kFirstSlot + 1).error().code == Errc::kNotFound);
    REQUIRE(scrub.begin(kFirstSlot).has_value());
    REQUIRE(scrub.begin(kFirstSlot).error().code == Errc::kBusy);
    stage.run_for(1s);

    scrub.end(kFirstSlot);
    stage.run_for(120s);
    REQUIRE(progress_of(stage).state.get() == objects::ScrubProgress::kEnded);

    REQUIRE(scrub.begin(kFirstSlot).has_value());
    stage.run_for(1s);
    stage.stop();  // Waits for nothing that takes minutes.
}
