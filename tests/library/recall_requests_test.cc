// Goal: a recall remembers who asked for it first, and since when it waits, also over a restart.
// Method: several ask at an object's home in the simulated world; its record is read.

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "core/gate.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

void ask(TapeStage& stage, RecallWish wish) {
    const store::Fid fid = wish.fid;
    const auto asked = stage.at_home(fid, stage.staging_of(fid).recall(std::move(wish), {}));
    REQUIRE(asked.has_value());
}

std::optional<store::Recall> record_of(TapeStage& stage, store::Fid fid) {
    auto found = stage.volume(fid.slot() - 1U).map().find_recall(fid);
    REQUIRE(found.has_value());
    return *found;
}

Task<void> cancel_there(StagingDisks* disks, store::Fid fid) {
    [[maybe_unused]] const auto cancelled = co_await disks->cancel_recall(fid, {});
}

Task<void> ask_and_wait(StagingDisks* disks, store::Fid fid, std::optional<RecallEnd>* end) {
    RecallWish wish{.fid = fid};
    const auto asked = co_await disks->recall(std::move(wish), {});
    ENSURE(asked.has_value());
    const auto ended = co_await disks->wait_for_recall(fid, {}, {});
    ENSURE(ended.has_value());
    *end = *ended;
}

Task<Result<void>> record_recalls(store::Volume* volume, const std::vector<store::Fid>* fids) {
    std::uint64_t number = 0;
    for (const store::Fid fid : *fids) {
        const store::Recall recall{.ticket = (volume->newest().epoch << 32U) + ++number,
                                   .priority = kRecallPriorityDefault};
        const auto put = co_await volume->put_recall(fid, recall, {});
        if (!put) co_return std::unexpected(put.error());
    }
    co_return Result<void>{};
}

}  // namespace

TEST_CASE("library recall: the first who asks is its requester, whoever joins", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());

    ask(stage, {.fid = fid, .priority = 10, .requester = "ann"});
    ask(stage, {.fid = fid, .priority = 200, .requester = "bob"});
    const auto record = record_of(stage, fid);
    REQUIRE(record.has_value());
    REQUIRE(record->requester == "ann");
    REQUIRE(record->priority == 200);
}

TEST_CASE("library recall: a pin that outlives a recall does not keep its requester", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    ask(stage, {.fid = fid, .pin = 1h, .requester = "ann"});
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    stage.run_for(2h);
    REQUIRE(stage.release(fid).has_value());

    ask(stage, {.fid = fid, .requester = "bob"});
    const auto record = record_of(stage, fid);
    REQUIRE(record.has_value());
    REQUIRE(record->requester == "bob");
    stage.run_for(1ms);  // The library learns of it.
    const std::vector<RecallRow> rows = stage.library().recalls(10);
    REQUIRE(rows.size() == 1);
    for (const RecallRow& each : rows) REQUIRE(stage.reactor(0).now() - each.asked_at < 1h);
}

TEST_CASE("library recall: a pin that is over does not raise the priority of a recall",
          "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    ask(stage, {.fid = fid, .priority = 255, .pin = 1h});
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    stage.run_for(2h);
    REQUIRE(stage.release(fid).has_value());

    ask(stage, {.fid = fid, .priority = 10});
    const auto record = record_of(stage, fid);
    REQUIRE(record.has_value());
    REQUIRE(record->priority == 10);
}

TEST_CASE("library recall: one that is cancelled is not done for those who ask meanwhile",
          "[library]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        TapeStage stage({.seed = seed});
        const store::Fid fid = stage.put(pattern(10'000, 1));
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.release(fid).has_value());
        ask(stage, {.fid = fid});
        std::optional<RecallEnd> end;
        StagingDisks* const disks = &stage.staging_of(fid);
        core::Gate gate;
        stage.reactor(0).spawn(gate, cancel_there(disks, fid));
        stage.reactor(0).spawn(gate, ask_and_wait(disks, fid, &end));
        for (int tries = 0; tries < 600 && !end; ++tries) stage.run_for(1s);
        REQUIRE(end.has_value());
        // It has joined the one that was cancelled, or made another one.
        const bool is_cancelled = end->how == RecallEnd::How::kCancelled;
        CHECK((is_cancelled || end->how == RecallEnd::How::kDone));
        CHECK(stage.is_released(fid) == is_cancelled);
        // None is left that nobody serves.
        CHECK_FALSE(record_of(stage, fid).has_value());
    }
}

TEST_CASE(
    "library recall: one that was cancelled while its cartridge is loaded can be wanted again",
    "[library]") {
    TapeStage stage;
    const Bytes bytes = pattern(10'000, 1);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    unload_all(stage);
    const auto is_exchanging = [&stage] {
        const auto drives = stage.library().drives();
        return std::ranges::any_of(
            drives, [](const DriveRow& each) { return each.activity == "exchanging"; });
    };
    ask(stage, {.fid = fid});
    for (int i = 0; i < 10'000 && !is_exchanging(); ++i) stage.run_for(1ms);
    REQUIRE(is_exchanging());
    REQUIRE(stage.at_home(fid, stage.staging_of(fid).cancel_recall(fid, {})).has_value());
    stage.run_for(10ms);
    REQUIRE(is_exchanging());

    ask(stage, {.fid = fid});
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    CHECK(stage.read(fid) == bytes);
}

TEST_CASE("library recall: a node may stop while recalls that are not needed end", "[library]") {
    TapeStage stage({.localities = 1, .disks = 1});
    std::vector<store::Fid> fids;
    for (std::uint64_t i = 0; i < 300; ++i) fids.push_back(stage.put(pattern(100, i)));
    for (int steps = 0; steps < 40; ++steps) {
        CAPTURE(steps);
        auto recording = record_recalls(&stage.volume(0), &fids);
        REQUIRE(stage.at(0, std::move(recording)).has_value());
        stage.restart();
        for (int i = 0; i < steps; ++i) stage.world.step();
        REQUIRE(stage.at(0, stage.stop_stores(0)).has_value());
        stage.restart();
    }
}

TEST_CASE("library recall: who asks after it was cancelled is told so, until it is wanted again",
          "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    // A library that cannot be opened lets it wait.
    stage.bay.refuses_to_write = true;
    stage.restart();
    ask(stage, {.fid = fid});
    REQUIRE(stage.at_home(fid, stage.staging_of(fid).cancel_recall(fid, {})).has_value());
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kCancelled);
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kCancelled);
    REQUIRE(stage.at_home(fid, stage.staging_of(fid).cancel_recall(fid, {})).error().code ==
            Errc::kNotFound);

    stage.bay.refuses_to_write = false;
    ask(stage, {.fid = fid});
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
}

TEST_CASE("library recall: the latest pin counts, and can be ended", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    const auto unpin = [&stage, fid] {
        return stage.at_home(fid, stage.staging_of(fid).recall({.fid = fid, .unpins = true}, {}));
    };
    CHECK(unpin() == RecallAsked::kOnDisk);

    ask(stage, {.fid = fid, .pin = 1h});
    ask(stage, {.fid = fid, .pin = 1min});
    CHECK(stage.release(fid).error().code == Errc::kBusy);
    stage.run_for(2min);
    CHECK(stage.release(fid).has_value());
    // It brings nothing back.
    CHECK(unpin() == RecallAsked::kOnDisk);
    CHECK_FALSE(record_of(stage, fid).value_or(store::Recall{}).ticket != 0);

    ask(stage, {.fid = fid, .pin = 1h});
    CHECK(unpin() == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    CHECK(stage.release(fid).has_value());
    ask(stage, {.fid = fid, .pin = 1h});
    REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
    CHECK(stage.release(fid).error().code == Errc::kBusy);
    CHECK(unpin() == RecallAsked::kOnDisk);
    CHECK_FALSE(record_of(stage, fid).has_value());
    CHECK(stage.release(fid).has_value());
}

TEST_CASE("library recall: requester and age survive a restart", "[library]") {
    TapeStage stage;
    const store::Fid fid = stage.put(pattern(10'000, 1));
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.release(fid).has_value());
    // A library that cannot be opened lets it wait.
    stage.bay.refuses_to_write = true;
    stage.restart();
    ask(stage, {.fid = fid, .requester = "ann"});
    stage.run_for(3h);
    stage.bay.refuses_to_write = false;
    stage.restart();

    const auto record = record_of(stage, fid);
    REQUIRE(record.has_value());
    REQUIRE(record->requester == "ann");
    bool is_listed = false;
    for (int tries = 0; tries < 20'000 && !is_listed; ++tries) {
        stage.run_for(10ms);
        for (const RecallRow& each : stage.library().recalls(10)) {
            is_listed = true;
            REQUIRE(stage.reactor(0).now() - each.asked_at >= 3h);
        }
    }
    REQUIRE(is_listed);
}

TEST_CASE("library recalls: a pin that comes while the last bytes do is kept", "[library]") {
    TapeStage stage({.localities = 1, .disks = 1, .drives = 1});
    const Bytes bytes = pattern(10'000, 1);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync().has_value());
    bool was_back = false;
    for (int steps = 0; steps < 3000 && !was_back; ++steps) {
        CAPTURE(steps);
        REQUIRE(stage.release(fid).has_value());
        REQUIRE(stage.recall(fid) == RecallAsked::kWaiting);
        for (int i = 0; i < steps; ++i) stage.world.step();
        was_back = !stage.is_released(fid);
        REQUIRE(stage.recall(fid, 1h).has_value());
        REQUIRE(stage.wait_for(fid).how == RecallEnd::How::kDone);
        REQUIRE(stage.release(fid).error().code == Errc::kBusy);
        const RecallWish unpin{.fid = fid, .unpins = true};
        REQUIRE(stage.at_home(fid, stage.staging_of(fid).recall(unpin, {})).has_value());
    }
    CHECK(was_back);
}

TEST_CASE("library recalls: a repack takes back only what no client has asked for", "[library]") {
    TapeStage stage({.localities = 1, .disks = 1, .drives = 1});
    const Book book = put_some(stage, 3);
    REQUIRE(stage.sync().has_value());
    release_all(stage, book);
    const auto ask = [&stage](const RecallWish& wish) {
        return stage.at_home(wish.fid, stage.staging_of(wish.fid).recall(wish, {}));
    };
    const auto of_repack = [](store::Fid fid) {
        return RecallWish{.fid = fid, .priority = kRepackPriority};
    };
    const auto withdrawn = [](store::Fid fid) {
        return RecallWish{.fid = fid, .priority = kRepackPriority, .withdraws = true};
    };
    const store::Fid unwanted = book.begin()->first;
    REQUIRE(ask(of_repack(unwanted)) == RecallAsked::kWaiting);
    REQUIRE(ask(withdrawn(unwanted)) == RecallAsked::kOnDisk);

    const store::Fid wanted = std::next(book.begin())->first;
    RecallWish of_client = of_repack(wanted);
    of_client.client.bytes[0] = std::byte{7};
    REQUIRE(ask(of_repack(wanted)) == RecallAsked::kWaiting);
    REQUIRE(ask(of_client) == RecallAsked::kWaiting);
    REQUIRE(ask(withdrawn(wanted)) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(wanted).how == RecallEnd::How::kDone);
    REQUIRE(ask(withdrawn(wanted)) == RecallAsked::kWaiting);

    const store::Fid moved = std::next(book.begin(), 2)->first;
    REQUIRE(ask(of_repack(moved)) == RecallAsked::kWaiting);
    REQUIRE(stage.wait_for(moved).how == RecallEnd::How::kDone);
    REQUIRE(ask(withdrawn(moved)) == RecallAsked::kOnDisk);

    stage.run_for(1h);
    CHECK(stage.is_released(unwanted));
    CHECK_FALSE(stage.is_released(wanted));
    check_all(stage, book);
}
