// Goal: the blocks that writes in flight add count once, and are given back. Method: writes by
// themselves, on a disk without data.

#include "objects/writes_in_flight.h"

#include <cstdint>
#include <memory>

#include "objects/pool_quota.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::objects;

namespace {

class Disk {
public:
    Disk() { use.join(1, quota); }
    DiskUse::Owner& owner() { return use.owner({.pool = 1, .owner = "alice"}); }
    // A write of these blocks, all of which are holes.
    WritesInFlight::Write::Counted begin(WritesInFlight::Write& write, const BlockSet& blocks) {
        return write.begin(all, {.owner = &owner(), .fid = {.high = 1, .low = 2}}, blocks, blocks);
    }
    std::uint64_t in_flight() const { return quota->whole().in_flight_blocks(); }
    std::uint64_t used() const { return quota->whole().used().blocks; }

    std::shared_ptr<PoolQuota> quota = std::make_shared<PoolQuota>();
    DiskUse use{store::PoolShares{}};
    WritesInFlight all{use};
};

BlockSet blocks_of(std::uint64_t first, std::uint64_t count) {
    BlockSet blocks;
    blocks.add({.first = first, .count = count});
    return blocks;
}

}  // namespace

TEST_CASE("objects writes in flight: a hole that a failed write had filled already counts once",
          "[objects]") {
    Disk disk;
    WritesInFlight::Write first;
    WritesInFlight::Write second;
    REQUIRE(disk.begin(first, blocks_of(0, 10)).blocks == 10);
    // The change of the first one is made, and waits for room in the log.
    REQUIRE(first.fill(disk.owner(), blocks_of(0, 10)) == 10);
    REQUIRE(disk.begin(second, blocks_of(5, 10)).blocks == 5);
    REQUIRE(disk.used() == 15);

    // It does not begin.
    REQUIRE(first.unfill() == 10);
    first.end();
    CHECK(disk.in_flight() == 10);
    CHECK(disk.used() == 10);
    second.end();
    CHECK(disk.in_flight() == 0);
    CHECK(disk.used() == 0);
}

TEST_CASE("objects writes in flight: a hole that another write has filled does not count again",
          "[objects]") {
    Disk disk;
    WritesInFlight::Write first;
    WritesInFlight::Write second;
    REQUIRE(disk.begin(first, blocks_of(0, 10)).blocks == 10);
    REQUIRE(first.fill(disk.owner(), blocks_of(0, 10)) == 10);
    REQUIRE(disk.begin(second, blocks_of(5, 10)).blocks == 5);

    first.done();
    CHECK(disk.in_flight() == 5);
    second.end();
    CHECK(disk.in_flight() == 0);
    CHECK(disk.used() == 10);
}
