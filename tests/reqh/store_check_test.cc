// Goal: a check of a disk finds each thing that does not fit together, and nothing while objects
// change under it. Method: a node over simulated disks; what is there is damaged behind its back.

#include "objects/store_check.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <vector>

#include "objects/fids.h"
#include "objects/home_volume.h"
#include "store/name_key.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

using State = objects::CheckStatus::State;
constexpr std::uint64_t kCheckPace = 1UL << 30;

std::string key_text(store::Bytes key) {
    return {reinterpret_cast<const char*>(key.data()), key.size()};
}

// To its end.
objects::CheckStatus run_check(StoreStage& stage) {
    objects::StoreCheck check(stage.stores(), kCheckPace);
    REQUIRE(check.begin(kFirstSlot).has_value());
    while (check.status(kFirstSlot).state == State::kRunning) REQUIRE(stage.world.step());
    objects::CheckStatus status = check.status(kFirstSlot);
    for (const auto& finding : status.report.findings) UNSCOPED_INFO(finding.reason);
    return status;
}

// What changes is in the index itself from here on, where it can be damaged.
void checkpoint(StoreStage& stage) {
    const std::uint64_t before = stage.volume().checkpoint_count();
    stage.create();
    while (stage.volume().checkpoint_count() == before) stage.run_for(1s);
    stage.run_for(20s);
}

store::DiskRange disk_range_of(StoreStage& stage, fop::Fid fid, std::uint64_t block) {
    auto extents =
        stage.volume().map().extents(objects::store_fid(fid), {.first = block, .count = 1});
    const auto extent = extents.next();
    REQUIRE(extent.has_value());
    REQUIRE(extent->has_value());
    const store::DiskRange range{.block = (*extent)->block, .count = 1};
    stage.volume().map().release();
    return range;
}

void put_extent(StoreStage& stage, store::Fid fid, std::uint64_t first, std::uint64_t block) {
    store::ValueBuffer value;
    const std::array<std::byte, 4> checksum{};
    stage.index_image().entries[key_text(store::Key::extent(fid, first))] =
        key_text(store::write_extent(value, block, checksum));
}

void put_cleared(StoreStage& stage, store::Fid fid, std::uint64_t first, std::uint64_t end) {
    store::ValueBuffer value;
    stage.index_image().entries[key_text(store::Key::cleared(fid, end))] =
        key_text(store::write_cleared(value, first));
}

bool has_found(const objects::CheckStatus& status, std::string_view words) {
    return std::ranges::any_of(status.report.findings, [words](const auto& finding) {
        return finding.reason.find(words) != std::string::npos;
    });
}

}  // namespace

TEST_CASE("reqh store check: what fits together is called so, and counted", "[reqh]") {
    StoreStage stage;
    for (const char* name : {"a", "b", "c"}) {
        stage.write(stage.create(name), 0, pattern(300 * objects::kBlock, 1));
    }
    stage.write(stage.create(), 5000 * objects::kBlock, pattern(objects::kBlock, 2));

    const objects::CheckStatus status = run_check(stage);

    REQUIRE(status.state == State::kDone);
    REQUIRE(status.report.finding_count == 0);
    REQUIRE(status.report.objects == 4);
    REQUIRE(status.report.blocks == 901);
    REQUIRE(status.report.names == 3);
    REQUIRE(status.report.log_entries > 0);
    REQUIRE(status.report.log_records > 8);
    REQUIRE(stage.all_buffers_are_back());
}

TEST_CASE("reqh store check: a damaged thing is found, and named", "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    const store::Fid object = objects::store_fid(fid);
    stage.write(fid, 0, pattern(100 * objects::kBlock, 1));
    const auto other = stage.create("b");
    stage.write(other, 0, pattern(10 * objects::kBlock, 2));
    checkpoint(stage);
    auto& entries = stage.index_image().entries;
    const store::SpaceUse use = stage.volume().space_use();
    REQUIRE(run_check(stage).report.finding_count == 0);

    struct Damage {
        const char* what;
        std::function<void()> plant;
        const char* words;
    };
    const std::vector<Damage> damages{
        {"an extent on a free block",
         [&] { put_extent(stage, object, 50, 256 + use.total_blocks - 1); }, "is free"},
        {"an extent on the log", [&] { put_extent(stage, object, 50, 256); }, "segment of the log"},
        {"an extent beyond the disk", [&] { put_extent(stage, object, 50, 1U << 30); },
         "not in the part of the disk"},
        {"an extent on the labels", [&] { put_extent(stage, object, 50, 1); },
         "not in the part of the disk"},
        {"a block with two owners",
         [&] {
             put_extent(stage, objects::store_fid(other), 5, disk_range_of(stage, fid, 7).block);
         },
         "belongs to two extents"},
        {"an overlap", [&] { put_extent(stage, object, 5, disk_range_of(stage, fid, 5).block); },
         "overlaps"},
        {"an extent behind the end",
         [&] {
             put_extent(stage, objects::store_fid(other), 10, disk_range_of(stage, fid, 7).block);
         },
         "behind the end"},
        {"a lost extent",
         [&] { entries.erase(key_text(store::Key::extent(objects::store_fid(other), 0))); },
         "without an owner"},
        {"a lost object",
         [&] { entries.erase(key_text(store::Key::object(objects::store_fid(other)))); },
         "of no object"},
        {"a lost object, whose name is known",
         [&] { entries.erase(key_text(store::Key::object(objects::store_fid(other)))); },
         "that its object does not have"},
        {"cleared ranges that overlap",
         [&] {
             put_cleared(stage, object, 200, 220);
             put_cleared(stage, object, 210, 230);
         },
         "overlap"},
        {"a cleared range that is none", [&] { put_cleared(stage, object, 220, 220); },
         "cleared range"},
        {"a value that is none", [&] { entries[key_text(store::Key::object(object))].pop_back(); },
         "length of an object"},
        {"an extent that is none",
         [&] { entries[key_text(store::Key::extent(objects::store_fid(other), 0))].pop_back(); },
         "length of an extent"},
        {"a key that is none", [&] { entries["z"] = "?"; }, "no known kind"},
        {"an object of another disk",
         [&] {
             store::Fid foreign = object;
             foreign.high ^= 1ULL << 48;
             put_cleared(stage, foreign, 0, 1);
         },
         "another disk"},
        {"a reply that is none",
         [&] {
             store::ValueBuffer value;
             const std::array<std::byte, 4> reply{};
             entries[key_text(store::Key::reply({.request_number = 9}))] = key_text(
                 store::write_reply(value, {.key = {.request_number = 9}, .reply = reply}));
         },
         "reply"},
        {"blocks that somebody forgot", [&] { REQUIRE(stage.volume().allocate(3).has_value()); },
         "without an owner"},
    };
    const auto which = GENERATE(range(0, 18));
    REQUIRE(damages.size() == 18);
    const Damage& damage = damages[static_cast<std::size_t>(which)];
    CAPTURE(damage.what);
    damage.plant();

    const objects::CheckStatus status = run_check(stage);

    REQUIRE(status.state == State::kDone);
    REQUIRE(has_found(status, damage.words));
    REQUIRE(status.report.finding_count >= status.report.findings.size());
}

TEST_CASE("reqh store check: a name that was lost, and one too many, are found", "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    stage.create("b");
    const store::Fid nobody{.high = objects::store_fid(fid).high,
                            .low = objects::store_fid(fid).low + 1'000'000};
    const objects::PoolId pool = stage.stores().find(kFirstSlot)->pool();
    store::NameChanges changes{
        {.kind = store::NameChange::Kind::kMade,
         .claim = {.pool = pool, .name = "c", .version = 77, .fid = nobody}}};
    const auto object = stage.volume().map().find(objects::store_fid(fid));
    REQUIRE(object.has_value());
    changes.push_back({.kind = store::NameChange::Kind::kEnded,
                       .claim = {.pool = pool,
                                 .name = "a",
                                 .version = (*object)->name_version,
                                 .fid = objects::store_fid(fid)}});
    stage.volume().map().release();
    stage.tell_names(&changes);

    const objects::CheckStatus status = run_check(stage);

    REQUIRE(status.report.finding_count == 2);
    REQUIRE(has_found(status, "missing from the index of names"));
    REQUIRE(has_found(status, "that its object does not have"));
    const auto lost = std::ranges::find(status.report.findings, "a", &store::CheckFinding::name);
    REQUIRE(lost != status.report.findings.end());
    REQUIRE(lost->object == objects::store_fid(fid));
}

TEST_CASE("reqh store check: a flipped bit of the log is found", "[reqh]") {
    StoreStage stage;
    const auto fid = stage.create("a");
    for (unsigned i = 0; i < 30; ++i) stage.write(fid, 0, pattern(3 * objects::kBlock, i));
    stage.run_for(5s);
    const objects::CheckStatus before = run_check(stage);
    REQUIRE(before.report.finding_count == 0);
    // The first entry, a superblock, and what is no part of either.
    stage.image().flip_bit(256 * objects::kBlock + 100, 2);
    const objects::CheckStatus status = run_check(stage);
    REQUIRE(status.report.finding_count == 1);
    REQUIRE(has_found(status, "an entry of the log"));
    REQUIRE(status.report.findings.front().entry == 1);
    REQUIRE(status.report.findings.front().range->block == 256);
    REQUIRE(status.report.log_entries < before.report.log_entries);

    stage.image().flip_bit(32 * objects::kBlock + 20, 2);
    const objects::CheckStatus with_superblock = run_check(stage);
    REQUIRE(with_superblock.report.finding_count == 2);
    REQUIRE(has_found(with_superblock, "a superblock"));
}

TEST_CASE("reqh store check: objects counted wrongly are found", "[reqh]") {
    StoreStage stage;
    stage.create("a");
    stage.run_for(5s);
    stage.stores().find(kFirstSlot)->objects().note_added({}, objects::pool_id("fast"));

    const objects::CheckStatus status = run_check(stage);

    REQUIRE(status.report.finding_count == 1);
    REQUIRE(has_found(status, "are counted"));
}

TEST_CASE("reqh store check swarm: nothing is found while fops are under way", "[reqh][swarm]") {
    std::uint64_t checks = 0;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        CAPTURE(seed);
        StoreStage stage({.localities = 2,
                          .disks = 2,
                          .seed = seed,
                          .buffer_count = 16,
                          .whose_seed = fopd::testing::Replay::Seed::kOfSwarm});
        core::Random random(seed);
        const std::array<const char*, 4> names{"a", "b", "c", "d"};
        std::vector<fop::Fid> fids;
        for (const char* name : names) fids.push_back(stage.create(name));
        objects::StoreCheck check(stage.stores(), kCheckPace);
        std::deque<WriteSpec> writes;
        for (unsigned round = 0; round < 80; ++round) {
            const objects::CheckStatus status = check.status(kFirstSlot);
            if (status.state != State::kRunning) {
                for (const auto& finding : status.report.findings) UNSCOPED_INFO(finding.reason);
                REQUIRE(status.report.finding_count == 0);
                REQUIRE(check.begin(kFirstSlot).has_value());
                ++checks;
            }
            const std::size_t which = random.below(fids.size());
            const std::uint64_t at = random.below(60 * objects::kBlock);
            switch (random.below(6)) {
                case 0:  // In the place of another, whose extents go.
                    fids[which] = stage.create(names[which]);
                    break;
                case 1: stage.send(truncate(fids[which], at)); break;
                case 2:
                    stage.send(punch(fids[which], {.offset = at, .length = 9 * objects::kBlock}));
                    break;
                default:
                    writes.emplace_back(fids[which],
                                        std::vector<fop::Range>{{.offset = at, .length = 70'000}},
                                        pattern(70'000, round));
                    stage.send(writes.back().spec(WriteSpec::Way::kMemory));
            }
            for (std::uint64_t steps = random.below(30); steps > 0; --steps) stage.world.step();
        }
        for (FakeFop& fop : stage.fops) stage.wait_for(fop);
        check.end(kFirstSlot);
        stage.run_for(1s);
    }
    REQUIRE(checks > 40);
}

TEST_CASE("reqh store check: there is one at a time, and it ends when it is told to", "[reqh]") {
    StoreStage stage;
    stage.write(stage.create("a"), 0, pattern(100 * objects::kBlock, 1));
    REQUIRE(stage.volume().allocate(1).has_value());  // For which it waits.
    objects::StoreCheck check(stage.stores(), kCheckPace);
    REQUIRE(check.status(kFirstSlot).state == State::kNever);
    REQUIRE(check.begin(kFirstSlot + 1).error().code == Errc::kNotFound);
    REQUIRE(check.begin(kFirstSlot).has_value());
    REQUIRE(check.begin(kFirstSlot).error().code == Errc::kBusy);
    stage.run_for(5s);
    REQUIRE(check.status(kFirstSlot).state == State::kRunning);

    check.end(kFirstSlot);
    stage.run_for(2s);
    REQUIRE(check.status(kFirstSlot).state == State::kEnded);

    REQUIRE(check.begin(kFirstSlot).has_value());
    stage.run_for(1s);
    stage.stop();
    REQUIRE(check.status(kFirstSlot).state == State::kEnded);
}
