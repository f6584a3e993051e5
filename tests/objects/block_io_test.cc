// Goal: what a client waits for goes to a disk before background work does.

#include "objects/block_io.h"

#include <algorithm>
#include <vector>

#include "tests/objects/slow_disk.h"

namespace fopd::objects {

namespace {

struct ServedDisk : testing::SlowDisk {
    ServedDisk() { serve(); }

    Task<void> read_whole(io_sched::IoPriority priority, std::size_t count, std::uint64_t from,
                          Instant* ended) {
        const auto done = co_await read(priority, count, from);
        CHECK(done.has_value());
        *ended = reactor->now();
    }
};

}  // namespace

TEST_CASE("objects block io: background requests wait for those of the foreground", "[objects]") {
    ServedDisk stage;
    std::vector<Instant> scrubbed(8);
    for (std::size_t i = 0; i < scrubbed.size(); ++i) {
        stage.reactor->spawn(stage.gate, stage.read_whole(io_sched::IoPriority::kBackground, 16,
                                                          64 * i, &scrubbed[i]));
    }
    stage.world.run_for(5ms);
    Instant read{};
    stage.reactor->spawn(stage.gate,
                         stage.read_whole(io_sched::IoPriority::kForeground, 4, 900, &read));
    stage.world.run_for(1s);

    for (const Instant each : scrubbed) REQUIRE(each > Instant{});
    REQUIRE(read > Instant{});
    CHECK(read < *std::ranges::min_element(scrubbed));
}

}  // namespace fopd::objects
