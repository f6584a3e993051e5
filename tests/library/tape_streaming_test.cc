// Goal: a virtual LTO-9 drive streams while objects are migrated from a disk that is faster than
// it, and needs few stops.
// Method: a library in the simulated world, whose drive has the model's buffer and takes its time.
// The difference between a long batch and a longer one is the rate at which it goes on.

#include <malloc.h>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

constexpr double kDriveRate = 400e6;
constexpr std::size_t kMB = 1'000'000;

// The memory that objects take here is too much with those.
bool has_sanitizers() {
    return mallinfo2().uordblks + mallinfo2().hblkhd == 0;
}

struct Migration {
    double seconds = 0;
    std::uint64_t backhitches = 0;
};

Migration migrate(std::size_t object_bytes, std::size_t count) {
    TapeStageOptions options;
    options.localities = 1;
    options.disks = 1;
    options.disk_bytes = (object_bytes * count / (1UL << 20) + 512) << 20;
    options.drives = 1;
    options.cartridge_bytes = 18'000'000'000'000;
    options.pool.migrate_age = 24h;
    options.pool.staging_high = 0;
    TapeStage stage(options);
    // So that the cartridge is loaded and labelled.
    stage.put(pattern(1000, 1));
    REQUIRE(stage.sync(1h).has_value());
    for (std::size_t i = 0; i < count; ++i) stage.put(Bytes(object_bytes, std::byte{0x5a}));
    // That of a SATA SSD, for a read of 256 KiB.
    stage.disk(0).faults().delay_min = 500us;
    stage.disk(0).faults().delay_max = 500us;
    const std::uint64_t before = stage.drive(0).figures().backhitches;
    const Instant began = stage.world.now();
    REQUIRE(stage.sync(1h).has_value());
    return {.seconds = in_seconds(stage.world.now() - began),
            .backhitches = stage.drive(0).figures().backhitches - before};
}

}  // namespace

// Larger ones cost less, as it takes time to begin an object.
TEST_CASE("library streaming: no stop within a batch of objects of 20 MB", "[library]") {
    if (has_sanitizers()) return;
    const Migration done = migrate(20 * kMB, 45);
    CAPTURE(done.seconds, done.backhitches);
    // The one of its beginning.
    CHECK(done.backhitches <= 1);
}

TEST_CASE("library streaming: objects of 1 MB are written at nine tenths of the drive's rate",
          "[library]") {
    if (has_sanitizers()) return;
    constexpr std::size_t kFew = 800;
    constexpr std::size_t kMore = 400;
    const Migration few = migrate(kMB, kFew);
    const Migration many = migrate(kMB, kFew + kMore);
    const double rate = kMore * kMB / (many.seconds - few.seconds);
    CAPTURE(few.seconds, many.seconds, rate);
    CHECK(rate >= 0.9 * kDriveRate);
    CHECK(many.backhitches <= 1);
}
