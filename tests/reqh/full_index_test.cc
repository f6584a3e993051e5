// Goal: an index that cannot follow, since its file system is full, stops nobody before the log is
// full, and then everybody at once with the reason; and it goes on when there is space.

#include "tests/catch.h"
#include "tests/reqh/store_stage.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

// Buffered writes of a block, until one is refused.
fop::Status write_until_refused(StoreStage& stage, fop::Fid fid) {
    const WriteSpec write(fid, {{.offset = 0, .length = kBlock}}, pattern(kBlock, 1));
    for (int i = 0; i < 10'000; ++i) {
        const fop::Status status = stage.call(write.spec(WriteSpec::Way::kInline)).status();
        if (status != fop::Status::kDone) return status;
    }
    return fop::Status::kDone;
}

}  // namespace

TEST_CASE("reqh index: one that is full says so when the log is, and goes on afterwards",
          "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    const auto fid = stage.create("one");
    stage.index_image().refusal = Error{.code = Errc::kNoSpace, .os_errno = 28, .context = "map"};
    REQUIRE(write_until_refused(stage, fid) == fop::Status::kNoSpace);

    const Instant began = stage.world.now();
    const WriteSpec write(fid, {{.offset = 0, .length = kBlock}}, pattern(kBlock, 2));
    FakeFop& refused = stage.call(write.spec(WriteSpec::Way::kInline));
    REQUIRE(refused.status() == fop::Status::kNoSpace);
    REQUIRE(refused.answer->words == "there is no space left for the index of its disk");
    REQUIRE(stage.world.now() - began < 1s);
    REQUIRE(stage.read(fid, 0, kBlock) == pattern(kBlock, 1));

    stage.index_image().refusal.reset();
    stage.run_for(10s);
    REQUIRE(stage.call(write.spec(WriteSpec::Way::kInline)).status() == fop::Status::kDone);
    REQUIRE(stage.read(fid, 0, kBlock) == pattern(kBlock, 2));
    REQUIRE(stage.all_pieces_are_back());
}

TEST_CASE("reqh index: nothing is lost when the power goes while it is full", "[reqh]") {
    StoreStage stage({.disk_bytes = 8UL << 20});
    const auto fid = stage.create("one");
    stage.index_image().refusal = Error{.code = Errc::kNoSpace, .os_errno = 28, .context = "map"};
    REQUIRE(write_until_refused(stage, fid) == fop::Status::kNoSpace);
    stage.lose_power();
    stage.index_image().refusal.reset();
    stage.start();

    REQUIRE(stage.read(fid, 0, kBlock) == pattern(kBlock, 1));
    stage.write(fid, 0, pattern(kBlock, 2));
    REQUIRE(stage.read(fid, 0, kBlock) == pattern(kBlock, 2));
}
