// Goal: the expected end of a recall is what the models of the drives say about all that is before
// it. Method: hand-made drives and waits, and the library of a simulated node, whose drives take
// the time of their models.

#include "library/recall_forecast.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

const devices::DriveModel& model() {
    return *devices::find_drive_model("lto9");
}

RecallForecast::Drive drive_with(std::optional<CartridgeId> cartridge) {
    return {.model = model(), .cartridge = cartridge};
}

constexpr std::uint64_t kGigabyte = 1'000'000'000;

}  // namespace

TEST_CASE("library forecast: nothing is known without a drive or a cartridge", "[library]") {
    RecallForecast without({});
    without.add({.cartridge = 1, .size_bytes = kGigabyte});
    REQUIRE(without.ends() == std::vector<std::optional<Instant>>{std::nullopt});

    RecallForecast unknown({});
    unknown.add(drive_with({}));
    unknown.add({.cartridge = 0, .size_bytes = kGigabyte});
    REQUIRE(unknown.ends() == std::vector<std::optional<Instant>>{std::nullopt});
}

TEST_CASE("library forecast: a mount, a locate and the bytes count", "[library]") {
    const Instant now{10h};
    RecallForecast forecast({.now = now});
    forecast.add(drive_with({}));
    forecast.add({.cartridge = 1, .offset = 0, .size_bytes = kGigabyte});
    // So near that the drive reads on.
    forecast.add({.cartridge = 1, .offset = kGigabyte + 1000, .size_bytes = kGigabyte});
    forecast.add({.cartridge = 1, .offset = 9 * kGigabyte, .size_bytes = kGigabyte});
    const auto ends = forecast.ends();

    const Duration transfer = devices::transfer_time(model(), kGigabyte);
    REQUIRE(ends[0].has_value());
    REQUIRE(*ends[0] - now == devices::kChangerMove + model().load + transfer);
    REQUIRE(*ends[1] - *ends[0] == devices::transfer_time(model(), 1000) + transfer);
    const Duration locate =
        devices::locate_time(model(), devices::position_of_byte(model(), 2 * kGigabyte + 1000),
                             devices::position_of_byte(model(), 9 * kGigabyte));
    REQUIRE(*ends[2] - *ends[1] == model().costs.base + locate + transfer);
}

TEST_CASE("library forecast: one that is being read needs its locates, and may be late",
          "[library]") {
    RecallForecast::Drive drive = drive_with(1);
    drive.activity = DriveActivity::kReading;
    drive.busy_since = Instant{10h};
    drive.busy_bytes = kGigabyte;
    const std::uint64_t far = 5'000 * kGigabyte;
    const RecallForecast::Wait wait{
        .cartridge = 1, .offset = far, .size_bytes = kGigabyte, .reads = true};
    const auto end_at = [&](Instant now) {
        RecallForecast forecast({.now = now});
        forecast.add(drive);
        forecast.add(wait);
        return forecast.ends().front();
    };
    const auto expected = end_at(drive.busy_since);
    REQUIRE(expected.has_value());
    const Duration locate = devices::locate_time(model(), devices::beginning_of(model()),
                                                 devices::position_of_byte(model(), far));
    CHECK(*expected - drive.busy_since >= locate + devices::transfer_time(model(), kGigabyte));
    CHECK(end_at(drive.busy_since + 5s) == expected);
    CHECK_FALSE(end_at(*expected + 1s).has_value());
}

TEST_CASE("library forecast: what is on one cartridge is read together, loaded ones first",
          "[library]") {
    RecallForecast forecast({.grouped = true});
    forecast.add(drive_with(2));
    forecast.add({.cartridge = 1, .offset = 0, .size_bytes = kGigabyte});
    forecast.add({.cartridge = 2, .offset = 5 * kGigabyte, .size_bytes = kGigabyte});
    forecast.add({.cartridge = 1, .offset = 9 * kGigabyte, .size_bytes = kGigabyte});
    forecast.add({.cartridge = 2, .offset = 0, .size_bytes = kGigabyte});
    const auto ends = forecast.ends();

    REQUIRE(*ends[3] < *ends[1]);
    REQUIRE(*ends[1] < *ends[0]);
    REQUIRE(*ends[0] < *ends[2]);
    // One exchange lies between the two cartridges, and none between files of one.
    REQUIRE(*ends[0] - *ends[1] > devices::kChangerMove * 2 + model().load);
    REQUIRE(*ends[2] - *ends[0] < devices::kChangerMove * 2 + model().load + model().rewind_mean);
}

TEST_CASE("library forecast: a higher priority is read first on its cartridge", "[library]") {
    RecallForecast forecast({.grouped = true});
    forecast.add(drive_with(1));
    forecast.add({.cartridge = 1, .offset = 0, .size_bytes = kGigabyte, .priority = 10});
    forecast.add(
        {.cartridge = 1, .offset = 9 * kGigabyte, .size_bytes = kGigabyte, .priority = 128});
    forecast.add(
        {.cartridge = 1, .offset = 5 * kGigabyte, .size_bytes = kGigabyte, .priority = 128});
    const auto ends = forecast.ends();

    REQUIRE(*ends[2] < *ends[1]);
    REQUIRE(*ends[1] < *ends[0]);
}

TEST_CASE("library forecast: in the order of asking each change of cartridge costs a mount",
          "[library]") {
    const auto last_end = [](bool grouped) {
        RecallForecast forecast({.grouped = grouped});
        forecast.add(drive_with({}));
        for (CartridgeId i = 0; i < 6; ++i) {
            forecast.add({.cartridge = 1 + i % 2, .offset = 0, .size_bytes = kGigabyte});
        }
        const auto ends = forecast.ends();
        return **std::ranges::max_element(ends);
    };
    REQUIRE(last_end(false) - last_end(true) > 4 * model().load);
}

TEST_CASE("library forecast: two drives share the work, and one that writes is free later",
          "[library]") {
    const auto ends_with = [](const std::vector<RecallForecast::Drive>& drives) {
        RecallForecast forecast({});
        for (const RecallForecast::Drive& each : drives) forecast.add(each);
        forecast.add({.cartridge = 1, .size_bytes = 100 * kGigabyte});
        forecast.add({.cartridge = 2, .size_bytes = 100 * kGigabyte});
        return forecast.ends();
    };
    const auto one = ends_with({drive_with({})});
    const auto two = ends_with({drive_with({}), drive_with({})});
    REQUIRE(*two[0] == *one[0]);
    REQUIRE(*two[1] == *two[0]);
    REQUIRE(*one[1] > *two[1]);

    RecallForecast::Drive writes = drive_with(3);
    writes.activity = DriveActivity::kWriting;
    writes.busy_bytes = 100 * kGigabyte;
    const auto busy = ends_with({writes, drive_with({})});
    REQUIRE(*busy[0] == *two[0]);
    REQUIRE(*busy[1] > *two[1]);
}

TEST_CASE("library forecast: drives that take no time let nobody wait", "[library]") {
    const Instant now{1h};
    RecallForecast forecast({.now = now, .takes_time = false});
    forecast.add(drive_with({}));
    forecast.add({.cartridge = 1, .offset = kGigabyte, .size_bytes = kGigabyte});
    REQUIRE(*forecast.ends()[0] == now);
}

TEST_CASE("library forecast: a recall of a simulated library ends about when it should",
          "[library]") {
    TapeStageOptions options;
    options.timing = LibraryTiming::kReal;
    TapeStage stage(options);
    std::vector<store::Fid> fids;
    for (std::uint32_t i = 0; i < 4; ++i) fids.push_back(stage.put(pattern(3'000'000, i), i % 2));
    REQUIRE(stage.sync().has_value());
    for (const store::Fid fid : fids) REQUIRE(stage.release(fid).has_value());
    unload_all(stage);
    for (const store::Fid fid : fids) REQUIRE(stage.recall(fid).has_value());
    stage.run_for(10ms);

    const std::vector<RecallRow> rows = stage.library().recalls(10);
    REQUIRE(rows.size() == fids.size());
    const Instant asked = stage.reactor(0).now();
    Instant last = asked;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        REQUIRE(rows[i].place == i);
        REQUIRE(rows[i].expected_at.has_value());
        REQUIRE(*rows[i].expected_at >= last);
        last = *rows[i].expected_at;
        const auto found = stage.library().find_recall(rows[i].ticket);
        REQUIRE(found.has_value());
        REQUIRE(found->place == i);
    }
    for (const store::Fid fid : fids) REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    const double took = in_seconds(stage.reactor(0).now() - asked);
    const double expected = in_seconds(last - asked);
    CAPTURE(took);
    CAPTURE(expected);
    // On so short a tape the blocks between two positions are an uncertain measure of their
    // distance.
    REQUIRE(expected > took / 3);
    REQUIRE(expected < took * 3);
    REQUIRE_FALSE(stage.library().find_recall(fids[0]).has_value());
}
