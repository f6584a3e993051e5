// Goal: each damaged block of a disk is counted once, over scrubs and restarts.

#include "daemon/damage_record.h"

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;

TEST_CASE("daemon damage: blocks that reads meet are added to those of earlier starts",
          "[daemon]") {
    DamageRecord record;
    NodeDisk::Figures figures;
    const SlotEntry entry{.slot = 1, .pool = "fast", .scrubbed_at_s = 50, .damaged_blocks = 3};
    figures.met_damage.set(2);

    const auto state = record.next(entry, figures, 100);

    REQUIRE(state.damaged_blocks == 5);
    REQUIRE(state.scrubbed_at_s == 50);
}

TEST_CASE("daemon damage: what was written into the entry is not counted again", "[daemon]") {
    DamageRecord record;
    NodeDisk::Figures figures;
    SlotEntry entry{.slot = 1, .pool = "fast", .scrubbed_at_s = 50, .damaged_blocks = 3};
    figures.met_damage.set(2);
    entry.damaged_blocks = record.next(entry, figures, 100).damaged_blocks;

    REQUIRE(record.next(entry, figures, 101).damaged_blocks == 5);
}

TEST_CASE("daemon damage: a complete scrub replaces all earlier counts", "[daemon]") {
    DamageRecord record;
    NodeDisk::Figures figures;
    const SlotEntry entry{.slot = 1, .pool = "fast", .scrubbed_at_s = 50, .damaged_blocks = 3};
    figures.met_damage.set(2);
    [[maybe_unused]] const auto before = record.next(entry, figures, 100);
    figures.scrubs_done.set(1);
    figures.scrub_done_damage.set(1);
    figures.met_damage.set(0);

    const auto state = record.next(entry, figures, 200);

    REQUIRE(state.damaged_blocks == 1);
    REQUIRE(state.scrubbed_at_s == 200);
}

TEST_CASE("daemon damage: what was found is counted before it is written into the entry",
          "[daemon]") {
    DamageRecord record;
    NodeDisk::Figures figures;
    const SlotEntry entry{.slot = 1, .pool = "fast", .scrubbed_at_s = 50, .damaged_blocks = 3};
    CHECK(record.damaged_blocks(entry, figures) == 3);
    figures.met_damage.set(2);
    CHECK(record.damaged_blocks(entry, figures) == 5);
    [[maybe_unused]] const auto before = record.next(entry, figures, 100);
    CHECK(record.damaged_blocks(entry, figures) == 5);

    figures.scrubs_done.set(1);
    figures.scrub_done_damage.set(1);
    figures.met_damage.set(0);
    CHECK(record.damaged_blocks(entry, figures) == 1);
    CHECK(record.next(entry, figures, 200).damaged_blocks == 1);
}
