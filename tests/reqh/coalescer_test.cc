// Goal: what is scattered on a disk is brought together, and stays what it was, whatever changes
// meanwhile. Method: a node over simulated disks; objects that are written a block at a time.

#include "objects/coalescer.h"

#include "store/extent_move.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

constexpr std::uint64_t kBlocks = 64;

StageOptions hasty() {
    return {.coalescer = {.bytes_per_second = 1UL << 30, .interval = 50ms, .idle = 100ms}};
}

// Every other block of the first half, and all of the second, the last one first.
Bytes scatter(StoreStage& stage, fop::Fid fid) {
    Bytes whole(kBlocks * objects::kBlock);
    for (std::uint64_t i = kBlocks; i > 0; --i) {
        const std::uint64_t block = i - 1;
        if (block < kBlocks / 2 && block % 2 == 1) continue;
        const Bytes bytes = pattern(objects::kBlock, 100 + block);
        stage.write(fid, block * objects::kBlock, bytes);
        std::ranges::copy(bytes,
                          whole.begin() + static_cast<std::ptrdiff_t>(block * objects::kBlock));
    }
    return whole;
}

std::uint32_t breaks_of(StoreStage& stage, fop::Fid fid) {
    store::ExtentMove extents;
    const store::Fid which{.high = fid.high, .low = fid.low};
    const auto looked = extents.look(stage.volume().map(), which, {.first = 0, .count = kBlocks});
    REQUIRE(looked.has_value());
    stage.volume().map().release();
    return extents.breaks();
}

std::uint64_t moved(StoreStage& stage) {
    return stage.stores().find(kFirstSlot)->coalesced_blocks().get();
}

}  // namespace

TEST_CASE("reqh coalescer: scattered blocks are moved together, once", "[reqh]") {
    StoreStage stage(hasty());
    const auto fid = stage.create("a");
    const Bytes whole = scatter(stage, fid);
    REQUIRE(breaks_of(stage, fid) > 20);

    stage.run_for(10s);

    REQUIRE(breaks_of(stage, fid) <= 1);
    REQUIRE(moved(stage) == 48);
    REQUIRE(stage.read(fid, 0, kBlocks * objects::kBlock) == whole);
    REQUIRE(stage.volume().space_use().used_blocks == 48);

    stage.restart();
    REQUIRE(stage.read(fid, 0, kBlocks * objects::kBlock) == whole);
    stage.run_for(10s);
    REQUIRE(moved(stage) == 0);  // Since the start.
    REQUIRE(stage.all_buffers_are_back());
}

TEST_CASE("reqh coalescer: nothing is done while something changes", "[reqh]") {
    StoreStage stage(hasty());
    const auto fid = stage.create("a");
    scatter(stage, fid);

    const auto other = stage.create("b");
    for (unsigned i = 0; i < 100; ++i) {
        stage.write(other, 0, pattern(100, i));
        stage.run_for(50ms);
    }

    REQUIRE(moved(stage) == 0);
}

TEST_CASE("reqh coalescer: concurrent writes are kept", "[reqh]") {
    StageOptions options = hasty();
    options.coalescer.idle = Duration{0};
    options.coalescer.interval = 1ms;
    StoreStage stage(options);
    const auto fid = stage.create("a");
    Bytes whole = scatter(stage, fid);

    for (unsigned i = 0; i < 600; ++i) {
        const std::uint64_t at = stage.random.below(kBlocks * objects::kBlock - 5000);
        const Bytes bytes = pattern(1 + stage.random.below(5000), i);
        stage.write(fid, at, bytes);
        std::ranges::copy(bytes, whole.begin() + static_cast<std::ptrdiff_t>(at));
        if (stage.random.below(4) == 0) stage.run_for(3ms);
    }

    REQUIRE(stage.read(fid, 0, kBlocks * objects::kBlock) == whole);
    REQUIRE(moved(stage) > kBlocks);
}

TEST_CASE("reqh coalescer: damaged blocks are not moved", "[reqh]") {
    StoreStage stage(hasty());
    const auto fid = stage.create("a");
    scatter(stage, fid);
    auto extents =
        stage.volume().map().extents({.high = fid.high, .low = fid.low}, {.first = 40, .count = 1});
    const auto extent = extents.next();
    REQUIRE(extent->has_value());
    stage.image().flip_bit((*extent)->block * objects::kBlock + 9, 2);
    stage.volume().map().release();

    stage.run_for(10s);

    REQUIRE(moved(stage) == 0);
    const ReadSpec read(fid, {{.offset = 40 * objects::kBlock, .length = objects::kBlock}});
    REQUIRE(stage.call(read.spec(WriteSpec::Way::kMemory)).status() == fop::Status::kCorrupt);
}

TEST_CASE("reqh coalescer: a disk that is nearly full is left alone", "[reqh]") {
    StoreStage stage(hasty());
    const auto fid = stage.create("a");
    scatter(stage, fid);
    const auto filler = stage.create("b");
    std::uint64_t at = 0;
    const auto is_nearly_full = [&stage] {
        const store::SpaceUse use = stage.volume().space_use();
        return use.free_blocks < use.total_blocks / 10;
    };
    for (; !is_nearly_full(); at += 16 * objects::kBlock) {
        stage.write(filler, at, pattern(16 * objects::kBlock, at));
    }

    stage.run_for(10s);

    REQUIRE(moved(stage) == 0);
}
