// Goal: recalls are served by priority and by age, which is that of the first wish.
// Method: objects of a library in the simulated world are asked for; its list of recalls is read.

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

void ask_for(TapeStage& stage, store::Fid fid, std::uint8_t priority = kRecallPriorityDefault) {
    RecallWish wish{.fid = fid, .priority = priority};
    const auto asked = stage.at_home(fid, stage.staging_of(fid).recall(std::move(wish), {}));
    REQUIRE(asked == RecallAsked::kWaiting);
}

// Objects that are on tape only.
std::vector<store::Fid> put_several_on_tape(TapeStage& stage, std::size_t count) {
    std::vector<store::Fid> fids;
    for (std::size_t i = 0; i < count; ++i) {
        const auto disk = static_cast<std::uint32_t>(i % stage.options.disks);
        fids.push_back(stage.put(pattern(10'000, i), disk));
    }
    REQUIRE(stage.sync().has_value());
    for (const store::Fid fid : fids) REQUIRE(stage.release(fid).has_value());
    return fids;
}

std::vector<store::Fid> listed(TapeStage& stage) {
    std::vector<store::Fid> fids;
    for (const RecallRow& each : stage.library().recalls(1000)) fids.push_back(each.ticket);
    return fids;
}

RecallRow recall_row_of(TapeStage& stage, store::Fid fid) {
    for (const RecallRow& each : stage.library().recalls(1000)) {
        if (each.ticket == fid) return each;
    }
    FAIL("it is not recalled");
    return {};
}

}  // namespace

TEST_CASE("library recall: after a restart the oldest goes first, whatever its object and disk",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const std::vector<store::Fid> fids = put_several_on_tape(stage, 700);
    // A library that cannot be opened lets them wait.
    stage.bay.refuses_to_write = true;
    stage.restart();
    const Instant asked_at = stage.world.now();
    std::vector<store::Fid> asked;
    for (std::size_t i = 0; i < fids.size(); ++i) {
        // All of one disk, then all of the other, both from the last to the first.
        const std::size_t half = fids.size() / 2;
        asked.push_back(fids[i < half ? fids.size() - 1 - 2 * i : 2 * (fids.size() - 1 - i)]);
        ask_for(stage, asked.back());
        stage.run_for(10ms);
    }
    stage.bay.refuses_to_write = false;
    stage.restart();
    std::vector<store::Fid> rows;
    for (int tries = 0; tries < 100'000 && rows.size() < asked.size(); ++tries) {
        stage.run_for(1ms);
        rows = listed(stage);
    }
    REQUIRE(rows.size() == asked.size());
    const auto equal_count = std::ranges::mismatch(rows, asked).in1 - rows.begin();
    CHECK(static_cast<std::size_t>(equal_count) == asked.size());
    const auto oldest =
        Duration(static_cast<Duration::rep>(stage.library().figures().recalls.oldest_ns.get()));
    CHECK(Instant{} + oldest - asked_at < 1s);
}

TEST_CASE("library recall: one that is cancelled while its cartridge is brought is not pending",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const std::vector<store::Fid> fids = put_several_on_tape(stage, 2);
    unload_all(stage);
    CHECK(stage.library().pending_recalls().count == 0);
    CHECK_FALSE(stage.library().pending_recalls().oldest_at.has_value());
    ask_for(stage, fids[0]);
    stage.run_for(3s);  // The changer moves the cartridge.
    ask_for(stage, fids[1]);
    stage.run_for(10ms);
    CHECK(stage.library().pending_recalls().count == 2);
    const auto first = stage.library().pending_recalls().oldest_at;

    REQUIRE(
        stage.at_home(fids[0], stage.staging_of(fids[0]).cancel_recall(fids[0], {})).has_value());
    stage.run_for(10ms);
    CHECK(listed(stage) == std::vector<store::Fid>{fids[1]});
    const PendingRecalls left = stage.library().pending_recalls();
    CHECK(left.count == 1);
    REQUIRE((first.has_value() && left.oldest_at.has_value()));
    CHECK(*left.oldest_at - *first >= 2s);
    CHECK(stage.library().figures().recalls.waiting_bytes.get() == 10'000);
    CHECK(stage.wait_for(fids[1]).how == RecallEnd::How::kDone);
    stage.run_for(1s);
    CHECK(stage.library().pending_recalls().count == 0);
    CHECK(stage.library().figures().recalls.waiting_bytes.get() == 0);
}

TEST_CASE("library recall: a second wish raises the priority of one that waits", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const std::vector<store::Fid> fids = put_several_on_tape(stage, 3);
    unload_all(stage);  // So that none is read at once.
    for (const store::Fid fid : fids) ask_for(stage, fid, 10);
    ask_for(stage, fids.back(), 200);
    stage.run_for(10ms);

    CHECK(listed(stage).front() == fids.back());
    CHECK(recall_row_of(stage, fids.back()).priority == 200);
    CHECK(recall_row_of(stage, fids.front()).priority == 10);
}

TEST_CASE("library recall: a higher priority goes first, whatever the two are", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const std::vector<store::Fid> fids = put_several_on_tape(stage, 5);
    unload_all(stage);  // So that none is read at once.
    const std::vector<std::uint8_t> priorities{10, 30, 20, 128, 129};
    for (std::size_t i = 0; i < fids.size(); ++i) ask_for(stage, fids[i], priorities[i]);
    stage.run_for(10ms);
    CHECK(listed(stage) == std::vector<store::Fid>{fids[4], fids[3], fids[1], fids[2], fids[0]});
    // Raised among those that are less than a read.
    ask_for(stage, fids[2], 31);
    stage.run_for(10ms);
    CHECK(listed(stage) == std::vector<store::Fid>{fids[4], fids[3], fids[2], fids[1], fids[0]});
    for (const store::Fid fid : fids) CHECK(stage.wait_for(fid).how == RecallEnd::How::kDone);
}

TEST_CASE("library recall: one whose priority is raised becomes overdue as if it were not",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    // No cartridge is mounted before a read of it is overdue.
    const auto algorithms = io_sched::drive_algorithms();
    options.io.tape.read_algo = &*std::ranges::find(algorithms, std::string_view("grouped_read"),
                                                    &io_sched::DriveAlgorithm::name);
    options.io.tape.grouped_read_mount_bytes = 1ULL << 50;
    options.io.tape.grouped_read_mount_files = 1'000'000;
    options.io.tape.grouped_read_mount_age = 24h;
    options.io.tape.grouped_read_max_wait = 1h;
    TapeStage stage(options);
    const std::vector<store::Fid> fids = put_several_on_tape(stage, 1);
    unload_all(stage);
    ask_for(stage, fids.front(), 10);
    for (const std::uint8_t priority : {std::uint8_t{20}, std::uint8_t{200}}) {
        stage.run_for(25min);
        CHECK(stage.is_released(fids.front()));
        ask_for(stage, fids.front(), priority);
        stage.run_for(10ms);
        CHECK(recall_row_of(stage, fids.front()).priority == priority);
    }
    stage.run_for(9min);
    CHECK(stage.is_released(fids.front()));
    // An hour after the first wish, and the time to load the cartridge and to read it.
    stage.run_for(6min);
    CHECK_FALSE(stage.is_released(fids.front()));
}

TEST_CASE("library recall: a second wish raises the priority of one that is tried again",
          "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    const std::vector<store::Fid> fids = put_several_on_tape(stage, 2);
    ask_for(stage, fids.back(), 10);
    stage.drive(0).inject(devices::TapeFault::kRead);
    for (int tries = 0; tries < 600 && stage.events.count("library.operation_failed") == 0;
         ++tries) {
        stage.run_for(100ms);
    }
    REQUIRE(stage.events.count("library.operation_failed") == 1);
    ask_for(stage, fids.front(), 20);
    ask_for(stage, fids.back(), 200);
    stage.run_for(10ms);
    CHECK(recall_row_of(stage, fids.back()).priority == 200);
    CHECK(stage.wait_for(fids.back()).how == RecallEnd::How::kDone);
    CHECK(stage.wait_for(fids.front()).how == RecallEnd::How::kDone);
}
