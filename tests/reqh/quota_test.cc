// Goal: the objects of a pool have no more on all its disks than its quota, and may have as much
// again as is given up. Method: a node with two localities and a disk on each.

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

fop::Status write_status(StoreStage& stage, fop::Fid fid, std::uint64_t first,
                         std::uint64_t blocks) {
    const Bytes bytes = pattern(blocks * kBlock, 1);
    const WriteSpec write(fid, {{.offset = first * kBlock, .length = bytes.size()}}, bytes);
    return stage.call(write.spec(WriteSpec::Way::kMemory)).status();
}

}  // namespace

TEST_CASE("reqh quota: what is above it is refused, on every disk of the pool", "[reqh]") {
    StoreStage stage({.localities = 2, .disks = 2, .quota_blocks = 100});
    const auto one = stage.create("one", kFirstSlot);
    const auto other = stage.create("other", kFirstSlot + 1);
    REQUIRE(write_status(stage, one, 0, 40) == fop::Status::kDone);
    REQUIRE(write_status(stage, other, 0, 60) == fop::Status::kDone);

    REQUIRE(write_status(stage, one, 40, 1) == fop::Status::kQuota);
    REQUIRE(write_status(stage, other, 60, 1) == fop::Status::kQuota);

    REQUIRE(stage.read(other, 0, 60 * kBlock) == pattern(60 * kBlock, 1));
    REQUIRE(stage.all_pieces_are_back());
}

TEST_CASE("reqh quota: what was given up can be had again", "[reqh]") {
    StoreStage stage({.quota_blocks = 100});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 100) == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 100, 1) == fop::Status::kQuota);

    FakeFop& cut = stage.call({.type = type_of("truncate"),
                               .body = fop::Truncate{.fid = fid, .size_bytes = 50 * kBlock}});
    REQUIRE(cut.status() == fop::Status::kDone);

    REQUIRE(write_status(stage, fid, 50, 50) == fop::Status::kDone);
    REQUIRE(write_status(stage, fid, 100, 1) == fop::Status::kQuota);
}

TEST_CASE("reqh quota: it is what is in use after a restart, too", "[reqh]") {
    StoreStage stage({.quota_blocks = 100});
    const auto fid = stage.create("one");
    REQUIRE(write_status(stage, fid, 0, 99) == fop::Status::kDone);
    stage.restart();

    REQUIRE(write_status(stage, fid, 99, 2) == fop::Status::kQuota);
    REQUIRE(write_status(stage, fid, 99, 1) == fop::Status::kDone);
}
