// Goal: the figures of a tape library say what it has done and what waits, for any thread.
// Method: the library of a simulated node writes, forgets and brings back; a sink keeps the
// figures.

#include <algorithm>
#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

// By name and labels, as in `fopd_tape_media{state="ok"}`.
class Figures final : public core::MetricSink {
public:
    explicit Figures(TapeStage& stage) {
        stage.library().figures().collect(*this, stage.reactor(0).now());
    }
    double operator[](const std::string& series) const {
        const auto found = values_.find(series);
        return found == values_.end() ? -1 : found->second;
    }
    // Over all series of a name.
    double sum(const std::string& name) const {
        double sum = 0;
        for (const auto& [series, value] : values_) {
            if (series == name || series.starts_with(name + "{")) sum += value;
        }
        return sum;
    }

    void counter(std::string_view name, std::string_view /*help*/,
                 std::span<const core::Label> labels, double value) override {
        add(name, labels, value);
    }
    void gauge(std::string_view name, std::string_view /*help*/,
               std::span<const core::Label> labels, double value) override {
        add(name, labels, value);
    }
    void time_histogram(std::string_view /*name*/, std::string_view /*help*/,
                        std::span<const core::Label> /*labels*/, const core::Histogram& /*value*/,
                        core::Buckets /*buckets*/) override {}

private:
    void add(std::string_view name, std::span<const core::Label> labels, double value) {
        std::string series(name);
        for (const core::Label& each : labels) {
            series += &each == labels.data() ? '{' : ',';
            series += std::string(each.key) + "=\"" + std::string(each.value) + '"';
        }
        if (!labels.empty()) series += '}';
        REQUIRE(values_.emplace(series, value).second);
    }

    std::map<std::string, double> values_;
};

}  // namespace

TEST_CASE("library figures: objects wait for a copy, and are counted when they have it",
          "[library]") {
    TapeStage stage;
    const Bytes bytes = pattern(100'000, 1);
    stage.put(bytes, 0);
    stage.put(bytes, 1);
    stage.run_for(1s);

    const Figures waiting(stage);
    REQUIRE(waiting["fopd_tape_uncopied_objects{pool=\"cold\"}"] == 2);
    REQUIRE(waiting["fopd_tape_uncopied_bytes{pool=\"cold\"}"] == 200'000);
    const double age = waiting["fopd_tape_uncopied_oldest_seconds{pool=\"cold\"}"];
    REQUIRE(age > 0.5);
    REQUIRE(age < 2);
    REQUIRE(waiting["fopd_tape_media{state=\"blank\"}"] == stage.options.cartridges);
    REQUIRE(waiting.sum("fopd_tape_mounts") == 0);

    REQUIRE(stage.sync().has_value());
    const Figures copied(stage);
    REQUIRE(copied["fopd_tape_uncopied_objects{pool=\"cold\"}"] == 0);
    REQUIRE(copied["fopd_tape_uncopied_oldest_seconds{pool=\"cold\"}"] == 0);
    REQUIRE(copied["fopd_tape_copies{pool=\"cold\"}"] == 2);
    REQUIRE(copied["fopd_tape_copied_bytes{pool=\"cold\"}"] == 200'000);
    REQUIRE(copied["fopd_tape_copies_failed{pool=\"cold\"}"] == 0);
    REQUIRE(copied.sum("fopd_tape_written_bytes") > 200'000);
    REQUIRE(copied.sum("fopd_tape_mounts") == 1);
    REQUIRE(copied["fopd_tape_media{state=\"ok\"}"] == 1);
    REQUIRE(copied["fopd_tape_media{state=\"blank\"}"] == stage.options.cartridges - 1);
}

TEST_CASE("library figures: how long objects have waited for a copy survives a restart",
          "[library]") {
    TapeStage stage;
    stage.put(pattern(100'000, 1));
    stage.run_for(10min);
    stage.restart();
    stage.run_for(1s);
    const double age = Figures(stage)["fopd_tape_uncopied_oldest_seconds{pool=\"cold\"}"];
    CHECK(age >= 600);
    CHECK(age < 700);
    stage.stop();
}

TEST_CASE("library figures: objects that are being copied have no copy yet", "[library]") {
    TapeStage stage({.drives = 1, .pool = {.name = "cold", .staging = "fast", .migrate_age = 1s}});
    stage.run_for(1min);
    stage.drive(0).faults().slow_ppm = 1'000'000;
    stage.drive(0).faults().slow_delay = 10min;
    stage.put(pattern(100'000, 1));
    stage.run_for(1min);
    const Figures copying(stage);
    CHECK(copying["fopd_tape_uncopied_objects{pool=\"cold\"}"] == 1);
    CHECK(copying["fopd_tape_uncopied_bytes{pool=\"cold\"}"] == 100'000);
    CHECK(copying["fopd_tape_uncopied_oldest_seconds{pool=\"cold\"}"] > 50);
    stage.drive(0).faults().slow_ppm = 0;
    stage.stop();
}

TEST_CASE(
    "library figures: a recall counts while it waits, and its locates take what the model says",
    "[library]") {
    TapeStage stage;
    const store::Fid other = stage.put(pattern(3'000'000, 1), 0);
    REQUIRE(stage.sync().has_value());
    const store::Fid fid = stage.put(pattern(3'000'000, 2), 0);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(other).has_value());
    REQUIRE(stage.release(fid).has_value());
    REQUIRE(stage.recall(fid).has_value());
    REQUIRE(stage.recall(other).has_value());
    // The library has learned of them; a drive needs longer for the first.
    stage.run_for(1ms);

    const Figures waiting(stage);
    REQUIRE(waiting["fopd_tape_recalls"] == 2);
    REQUIRE(waiting["fopd_tape_recalls_pending"] == 2);
    REQUIRE(waiting["fopd_tape_recalls_bytes"] == 6'000'000);
    REQUIRE(waiting["fopd_tape_recalls_pending_bytes"] == 6'000'000);
    REQUIRE(waiting["fopd_tape_recalls_oldest_seconds"] > 0);

    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    REQUIRE(stage.wait_for(other).how == RecallEnd::How::kDone);
    stage.run_for(1s);
    const Figures done(stage);
    REQUIRE(done["fopd_tape_recalls"] == 0);
    REQUIRE(done["fopd_tape_recalls_pending"] == 0);
    REQUIRE(done["fopd_tape_recalls_bytes"] == 0);
    REQUIRE(done["fopd_tape_recalls_pending_bytes"] == 0);
    REQUIRE(done["fopd_tape_recalls_oldest_seconds"] == 0);
    REQUIRE(done["fopd_tape_recalls_ended{result=\"done\"}"] == 2);
    REQUIRE(done["fopd_tape_recalls_ended{result=\"failed\"}"] == 0);
    REQUIRE(done.sum("fopd_tape_read_bytes") > 6'000'000);
    REQUIRE(done.sum("fopd_tape_locates") >= 2);
    const double took = done.sum("fopd_tape_locate_seconds");
    const double predicted = done.sum("fopd_tape_locate_predicted_seconds");
    REQUIRE(took > 0);
    double by_drives = 0;
    double loads = 0;
    for (std::uint32_t i = 0; i < stage.options.drives; ++i) {
        by_drives += in_seconds(stage.drive(i).figures().locate_time);
        loads += static_cast<double>(stage.drive(i).figures().loads);
    }
    REQUIRE(done.sum("fopd_tape_mounts") == loads);
    REQUIRE(took <= by_drives * 1.001);
    // The simulated drive has the model that predicts; blocks are not all of the mean size.
    REQUIRE(predicted > took * 0.5);
    REQUIRE(predicted < took * 2);
}

TEST_CASE("library figures: each drive is in one state, and one that is down says so",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    const Figures at_rest(stage);
    REQUIRE(at_rest.sum("fopd_tape_drive_state") == stage.options.drives);
    const std::string first(stage.library().drives().front().name);
    REQUIRE(at_rest["fopd_tape_drive_state{drive=\"" + first + "\",state=\"idle\"}"] == 1);

    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    for (std::uint32_t i = 0; i < stage.options.drives; ++i) {
        stage.drive(i).inject(devices::TapeFault::kDeath);
    }
    REQUIRE(stage.recall(fid).has_value());
    stage.run_for(1h);
    const Figures failed(stage);
    double down = 0;
    for (const DriveRow& each : stage.library().drives()) {
        const double is_down =
            failed["fopd_tape_drive_state{drive=\"" + each.name + "\",state=\"down\"}"];
        REQUIRE(is_down == (each.activity == "down" ? 1 : 0));
        down += is_down;
    }
    REQUIRE(down >= 1);
    REQUIRE(failed.sum("fopd_tape_drive_state") == stage.options.drives);
    REQUIRE(failed.sum("fopd_tape_operations_failed") >= 1);
}

TEST_CASE("library figures: an idle library does nothing", "[library]") {
    TapeStage stage;
    stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    stage.run_for(100h);
    const Figures idle(stage);
    stage.run_for(100h);
    const Figures later(stage);
    // Nothing happens while nothing is wanted.
    REQUIRE(later.sum("fopd_tape_mounts") == idle.sum("fopd_tape_mounts"));
    REQUIRE(later.sum("fopd_tape_unmounts") == idle.sum("fopd_tape_unmounts"));
}

TEST_CASE("library figures: cartridges are counted once, however often the library was opened",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    stage.stop();
    stage.bay.refuses_to_write = true;
    stage.start();
    stage.run_for(2min);
    CHECK(stage.events.count("library.not_open") >= 3);
    CHECK(Figures(stage).sum("fopd_tape_media") == 0);
    stage.bay.refuses_to_write = false;
    stage.run_for(1min);
    CHECK(Figures(stage).sum("fopd_tape_media") == stage.options.cartridges);
}
