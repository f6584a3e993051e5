// Goal: a truncate or a punch of an object of many extents is one change to whoever looks, before
// and after a loss of power, though its space comes back in steps.
// Method: a volume whose turns look at two extents.

#include "objects/store_check.h"
#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

constexpr std::uint64_t kExtents = 60;
constexpr store::SweepOptions kSweep{.extents_a_turn = 2, .pause = 10ms};
constexpr std::uint64_t kSize = 2 * kExtents * objects::kBlock;

// Every other block of an object, and what it reads as.
class Fragments {
public:
    explicit Fragments(StoreStage& stage) : stage_(stage), fid(stage.create("torn")) {
        bytes.resize(kSize - objects::kBlock);
        for (std::uint64_t i = 0; i < kExtents; ++i) write(2 * i, i);
    }

    void write(std::uint64_t block, std::uint64_t seed) {
        const Bytes what = pattern(objects::kBlock, seed);
        stage_.write(fid, block * objects::kBlock, what);
        std::ranges::copy(what,
                          bytes.begin() + static_cast<std::ptrdiff_t>(block * objects::kBlock));
    }
    void cut(std::uint64_t size) {
        REQUIRE(stage_.call(truncate(fid, size)).status() == fop::Status::kDone);
        bytes.resize(size);
    }
    void grow(std::uint64_t size) { cut(size); }
    void tear(fop::Range range) {
        REQUIRE(stage_.call(punch(fid, range)).status() == fop::Status::kDone);
        std::ranges::fill(std::span(bytes).subspan(range.offset, range.length), std::byte{0});
    }
    void check() { REQUIRE(stage_.read(fid, 0, kSize) == bytes); }
    std::uint64_t blocks() { return stage_.stat(fid).allocated_bytes / objects::kBlock; }

private:
    StoreStage& stage_;

public:
    const fop::Fid fid;
    Bytes bytes;
};

std::uint64_t used_blocks(StoreStage& stage) {
    return stage.volume().space_use().used_blocks;
}

// What is left of the disk goes to another object.
fop::Fid fill_disk(StoreStage& stage) {
    const fop::Fid other = stage.create("other");
    fop::Status status = fop::Status::kDone;
    for (std::uint64_t at = 0; status == fop::Status::kDone; at += objects::kBlock) {
        const WriteSpec write(other, {{.offset = at, .length = objects::kBlock}},
                              pattern(objects::kBlock, at));
        status = stage.call(write.spec(WriteSpec::Way::kInline)).status();
    }
    REQUIRE(status == fop::Status::kNoSpace);
    return other;
}

class RangeCounter final : public store::MapVisitor {
public:
    Result<void> cleared(const store::Cleared&) override {
        ++count;
        return {};
    }
    int count = 0;
};

Task<void> count_ranges(store::ObjectMap* map, RangeCounter* counter, bool* done) {
    const auto shown = co_await map->for_each(store::KeyKind::kCleared, counter);
    *done = shown.has_value();
}

int cleared_ranges(StoreStage& stage) {
    RangeCounter counter;
    bool done = false;
    core::Gate gate;
    stage.stores().parts().reactor.spawn(gate,
                                         count_ranges(&stage.volume().map(), &counter, &done));
    while (!done) REQUIRE(stage.world.step());
    return counter.count;
}

void must_fit_together(StoreStage& stage) {
    objects::StoreCheck check(stage.stores(), 1ULL << 40);
    REQUIRE(check.begin(kFirstSlot).has_value());
    using State = objects::CheckStatus::State;
    while (check.status(kFirstSlot).state == State::kRunning) REQUIRE(stage.world.step());
    const objects::CheckStatus status = check.status(kFirstSlot);
    for (const auto& finding : status.report.findings) UNSCOPED_INFO(finding.reason);
    REQUIRE(status.state == State::kDone);
    REQUIRE(status.report.finding_count == 0);
}

}  // namespace

TEST_CASE("reqh fragments: a truncate is whole at once, and its space comes back", "[reqh]") {
    StoreStage stage({.sweep = kSweep});
    Fragments torn(stage);
    stage.run_for(1s);
    const std::uint64_t used = used_blocks(stage);

    torn.cut(9 * objects::kBlock + 7);

    REQUIRE(used_blocks(stage) > used - kExtents + 10);
    REQUIRE(torn.blocks() == 5);
    torn.check();
    must_fit_together(stage);
    stage.run_for(1s);
    REQUIRE(used_blocks(stage) == used - kExtents + 5);
    REQUIRE(!stage.volume().sweeping());
    torn.grow(kSize);
    torn.check();
    must_fit_together(stage);
}

TEST_CASE("reqh fragments: a write into a cleared range stays", "[reqh]") {
    StoreStage stage({.sweep = kSweep});
    Fragments torn(stage);
    stage.run_for(1s);
    torn.cut(0);
    torn.grow(kSize);
    for (const std::uint64_t block : {100U, 50U, 51U, 101U, 52U, 0U})
        torn.write(block, 1000 + block);
    REQUIRE(stage.volume().sweeping());
    REQUIRE(torn.blocks() == 6);
    torn.check();
    torn.tear({.offset = 40 * objects::kBlock, .length = 12 * objects::kBlock});
    REQUIRE(torn.blocks() == 4);
    torn.check();
    must_fit_together(stage);

    stage.run_for(1s);

    REQUIRE(!stage.volume().sweeping());
    REQUIRE(torn.blocks() == 4);
    torn.check();
    must_fit_together(stage);
}

TEST_CASE("reqh fragments: the power may go at each step of it", "[reqh]") {
    const bool has_index = GENERATE(true, false);
    std::uint64_t undone = 0;
    std::uint64_t done = 0;
    for (std::uint64_t step = 1; step <= 40; step += 3) {
        CAPTURE(has_index, step);
        StoreStage stage({.sweep = kSweep});
        Fragments torn(stage);
        stage.run_for(1s);
        stage.power().cut_at(stage.power().steps() + step);
        FakeFop& fop = stage.send(truncate(torn.fid, 0));
        while (stage.power().on() && (!fop.answer || stage.volume().sweeping())) {
            REQUIRE(stage.world.step());
        }
        const bool is_answered = fop.answer.has_value();
        stage.lose_power();
        if (!has_index) stage.index_image() = {};
        stage.start();

        const bool is_cut = stage.stat(torn.fid).size_bytes == 0;
        REQUIRE((is_cut || !is_answered));
        if (is_cut) torn.bytes.clear();
        (is_cut ? done : undone) += 1;
        torn.check();
        REQUIRE(torn.blocks() == (is_cut ? 0 : kExtents));
        must_fit_together(stage);
        stage.run_for(1s);
        torn.grow(kSize);
        torn.check();
        must_fit_together(stage);
    }
    REQUIRE(undone > 0);
    REQUIRE(done > 0);
}

TEST_CASE("reqh fragments: a full disk has room for a write right after a truncate", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20, .sweep = kSweep});
    Fragments torn(stage);
    fill_disk(stage);

    torn.cut(0);

    torn.grow(kSize);
    torn.write(7, 7);
    torn.check();
}

TEST_CASE("reqh fragments: a truncate that is given up changes nothing", "[reqh]") {
    std::uint64_t given_up = 0;
    for (unsigned steps = 1; steps <= 30; ++steps) {
        CAPTURE(steps);
        StoreStage stage({.sweep = kSweep});
        Fragments torn(stage);
        stage.run_for(1s);
        const std::uint64_t used = used_blocks(stage);
        FakeFop& fop = stage.send(truncate(torn.fid, 0));
        for (unsigned i = 0; i < steps && !fop.answer; ++i) stage.world.step();
        fop.cancel_source().cancel();
        stage.wait_for(fop);
        if (fop.status() == fop::Status::kDone) {
            torn.bytes.clear();
        } else {
            REQUIRE(fop.status() == fop::Status::kCancelled);
            ++given_up;
        }
        torn.check();
        stage.run_for(1s);
        REQUIRE(used_blocks(stage) == (torn.bytes.empty() ? used - kExtents : used));
        REQUIRE(stage.all_buffers_are_back());
    }
    REQUIRE(given_up > 10);
}

TEST_CASE("reqh fragments: a truncate with few cleared ranges does not wait", "[reqh]") {
    StoreStage stage({.sweep = {.extents_a_turn = 1, .pause = 10s}});
    const fop::Fid fid = stage.create("long");
    for (std::uint64_t i = 0; i < 400; ++i)
        stage.write(fid, 2 * i * objects::kBlock, pattern(objects::kBlock, i));
    stage.run_for(20s);
    REQUIRE(stage.call(truncate(fid, 2 * 390 * objects::kBlock)).status() == fop::Status::kDone);
    const Instant before = stage.world.now();
    REQUIRE(stage.call(truncate(fid, 0)).status() == fop::Status::kDone);
    REQUIRE(stage.world.now() - before < 5s);
}

TEST_CASE("reqh fragments: a turn that frees nothing ends no wait for space", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20, .sweep = {.extents_a_turn = 2, .pause = 1s}});
    std::vector<fop::Fid> empty;
    for (const char* const name : {"e1", "e2", "e3"}) empty.push_back(stage.create(name));
    Fragments torn(stage);
    fill_disk(stage);
    for (const fop::Fid fid : empty) {
        FopSpec gone{.type = type_of("delete"), .body = fop::Delete{.fid = fid}};
        REQUIRE(stage.call(std::move(gone)).status() == fop::Status::kDone);
    }
    torn.cut(0);
    torn.grow(kSize);
    torn.write(7, 7);
    torn.check();
}

TEST_CASE("reqh fragments: a wait for space ends when the disk fails", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20, .sweep = {.extents_a_turn = 2, .pause = 1h}});
    Fragments torn(stage);
    const fop::Fid other = fill_disk(stage);
    torn.cut(0);
    const Bytes what = pattern(objects::kBlock, 5);
    const WriteSpec write(torn.fid, {{.offset = 7 * objects::kBlock, .length = objects::kBlock}},
                          what);
    const FakeFop& waits = stage.send(write.spec(WriteSpec::Way::kInline));
    stage.run_for(5ms);
    REQUIRE(!waits.answer);
    stage.disk().faults().write_error_ppm = 1'000'000;
    const FakeFop& fails = stage.send(truncate(other, 0));
    stage.run_for(10s);
    REQUIRE(!stage.volume().serving());
    REQUIRE(fails.answer.has_value());
    REQUIRE(waits.answer.has_value());
}

TEST_CASE("reqh fragments: what has gone does not go again after a replay", "[reqh]") {
    StoreStage stage({.sweep = kSweep});
    const fop::Fid fid = stage.create("short");
    for (std::uint64_t i = 0; i < 10; ++i)
        stage.write(fid, 2 * i * objects::kBlock, pattern(objects::kBlock, i));
    REQUIRE(stage.call(truncate(fid, 0)).status() == fop::Status::kDone);
    REQUIRE(cleared_ranges(stage) == 1);
    stage.run_for(500ms);
    REQUIRE(cleared_ranges(stage) == 0);
    for (std::uint64_t i = 1; i < 30; i += 2)
        stage.write(fid, i * objects::kBlock, pattern(objects::kBlock, i));
    stage.lose_power();
    stage.index_image() = {};
    stage.start();
    REQUIRE(cleared_ranges(stage) == 0);
}
