// Goal: a recall for which the uploads on its disk leave too little room gets its turn. Method: as
// staging_room_test.cc; uploads that follow each other without end are played by what they ask of
// the disk.

#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "core/gate.h"
#include "objects/home_volume.h"
#include "objects/open_uploads.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace recall_turn {

namespace {

TapeStageOptions one_disk_for_all() {
    TapeStageOptions options;
    options.disks = 1;
    options.localities = 1;
    options.disk_bytes = 16UL << 20;
    options.pool.staging_high = 0;  // Nothing leaves by itself.
    options.pool.migrate_age = 24h;
    return options;
}

// Clients whose uploads keep half of the disk: each for 20 seconds, then the next one begins.
class EndlessUploads {
public:
    EndlessUploads(core::Reactor& reactor, objects::HomeVolume& home)
        : reactor_(reactor),
          home_(home),
          owner_(home.use().owner({.pool = objects::pool_id("cold"), .owner = "alice"})),
          blocks_(home.volume().space_use().data_blocks() / 4) {}

    Task<void> run() {
        while (!stopped_) {
            while (!open_.empty() && after(open_.front().begun_at, kLasts) <= reactor_.now()) {
                end_oldest();
            }
            for (std::uint8_t client = 1; client <= 2; ++client) begin(client);
            const auto slept = co_await reactor_.sleep_for(500ms);
            if (!slept) break;
        }
        while (!open_.empty()) end_oldest();
    }
    void stop() { stopped_ = true; }
    std::uint64_t begun() const { return begun_; }

private:
    static constexpr Duration kLasts = 20s;
    struct Open {
        store::Fid fid{};
        std::uint8_t client = 0;
        Instant begun_at{};
    };

    // A client has one upload at a time.
    void begin(std::uint8_t client) {
        for (const Open& each : open_) {
            if (each.client == client) return;
        }
        objects::OpenUploads& uploads = home_.uploads();
        const store::SpaceUse space = home_.volume().space_use();
        const store::Fid fid = home_.make_fid();
        const objects::OpenUploads::Asked asked{
            .owner = &owner_,
            .blocks = blocks_,
            .key = {.client = {.bytes = {std::byte{client}}}, .blocks = blocks_}};
        if (uploads.upload_needs(fid, asked, space, reactor_.now()) > space.room_blocks()) return;
        uploads.expect(fid, {.owner = &owner_, .left_blocks = blocks_});
        uploads.stay(fid, space, reactor_.now());
        open_.push_back({.fid = fid, .client = client, .begun_at = reactor_.now()});
        ++begun_;
    }
    void end_oldest() {
        home_.uploads().gone(open_.front().fid);
        open_.pop_front();
    }

    core::Reactor& reactor_;
    objects::HomeVolume& home_;
    objects::DiskUse::Owner& owner_;
    const std::uint64_t blocks_;
    std::deque<Open> open_;
    std::uint64_t begun_ = 0;
    bool stopped_ = false;
};

}  // namespace

TEST_CASE("library: a recall of more than half a disk gets its turn among endless uploads",
          "[library]") {
    TapeStage stage(one_disk_for_all());
    const std::uint64_t data_blocks = stage.volume(0).space_use().data_blocks();
    const Bytes bytes = pattern(data_blocks * 6 / 10 * 4096, 1);
    const store::Fid large = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(large).has_value());
    stage.run_for(10s);
    const objects::HomeVolume::Hold hold(stage.home_volume_of(large));
    EndlessUploads uploads(stage.reactor(0), stage.home_volume_of(large));
    core::Gate gate;
    stage.reactor(0).spawn(gate, uploads.run());
    stage.run_for(1min);
    REQUIRE(uploads.begun() >= 6);

    REQUIRE(stage.recall(large) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(large, 20min).how == RecallEnd::How::kDone);
    CHECK(stage.read(large) == bytes);

    // Uploads go on afterwards, as the recalled object leaves again.
    REQUIRE(stage.release(large).has_value());
    const std::uint64_t before = uploads.begun();
    stage.run_for(2min);
    CHECK(uploads.begun() >= before + 6);
    uploads.stop();
    stage.run_for(2s);
}

TEST_CASE("library: a recall that is cancelled while it waits for room stops no upload",
          "[library]") {
    TapeStage stage(one_disk_for_all());
    const std::uint64_t data_blocks = stage.volume(0).space_use().data_blocks();
    const store::Fid large = stage.put(pattern(data_blocks * 6 / 10 * 4096, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(large).has_value());
    stage.run_for(10s);
    objects::HomeVolume& home = stage.home_volume_of(large);
    const objects::HomeVolume::Hold hold(home);
    EndlessUploads uploads(stage.reactor(0), home);
    core::Gate gate;
    stage.reactor(0).spawn(gate, uploads.run());
    stage.run_for(30s);
    REQUIRE(stage.recall(large) == RecallAsked::kWaiting);
    for (int i = 0; i < 600 && home.uploads().line().count(stage.world.now()) == 0; ++i) {
        stage.run_for(100ms);
    }
    REQUIRE(home.uploads().line().count(stage.world.now()) >= 1);

    const core::WaitOptions wait{};
    auto cancelling = stage.staging_of(large).cancel_recall(large, wait);
    REQUIRE(stage.at_home(large, std::move(cancelling)).has_value());
    const objects::RoomLine::Key anybody{};
    stage.run_for(1min);
    CHECK(home.uploads().line().wanted_before(anybody, stage.world.now()) == 0);
    CHECK(stage.is_released(large));
    uploads.stop();
    stage.run_for(2s);
}

}  // namespace recall_turn
