// Goal: cartridges of a node that was lost give another node every object that is complete on them,
// with its newest content and all its attributes, whatever the order of the cartridges; nothing of
// the other node is replaced, and nothing happens by itself.
// Method: disks and a library in the simulated world. The disks and the table of media are replaced
// by new ones, and the node gets another id.

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "library/media_table.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

using Kind = MediaOutcome::Kind;
using End = TapeStage::End;

// The cartridges with files.
std::vector<std::string> used_barcodes(TapeStage& stage) {
    std::vector<std::string> used;
    for (const Cartridge& each : stage.library().media()) {
        if (each.files > 0) used.push_back(each.barcode);
    }
    return used;
}

MediaOutcome ask_for_rescue(TapeStage& stage, const std::string& barcode,
                            const std::string& pool = "") {
    return stage.at(0, stage.library().rescue({.barcode = barcode, .pool = pool}));
}

MediumWork ended_rescue(TapeStage& stage, const std::string& barcode) {
    for (int i = 0; i < 5000; ++i) {
        const auto work = stage.library().rescue_work(barcode);
        if (work && work->state != MediumWork::State::kRunning) return *work;
        stage.run_for(10s);
    }
    FAIL("the rescue does not end");
    return {};
}

void wait_for_library(TapeStage& stage) {
    for (int i = 0; i < 3600 && stage.library().why_not_open(); ++i) stage.run_for(1s);
    REQUIRE_FALSE(stage.library().why_not_open().has_value());
    // Until all of its drives are open.
    stage.run_for(1min);
}

MediumWork rescue(TapeStage& stage, const std::string& barcode) {
    wait_for_library(stage);
    const MediaOutcome begun = ask_for_rescue(stage, barcode);
    INFO(begun.words);
    REQUIRE(begun.kind == Kind::kDone);
    return ended_rescue(stage, barcode);
}

// Nothing more is written to it, so that the next objects go to another cartridge.
void close_cartridge(TapeStage& stage, const std::string& barcode) {
    restart_with_state(stage, barcode, CartridgeState::kReadOnly, "the test");
}

void check_complete(const MediumWork& work) {
    INFO(work.reason);
    for (const MediumWork::Failure& each : work.listed) INFO(each.reason);
    CHECK(work.state == MediumWork::State::kDone);
    CHECK(work.failures == 0);
    CHECK(work.copies_done == work.copies);
    CHECK(work.bytes_done == work.bytes);
}

Task<void> end(TapeLibrary* library, std::string barcode, std::vector<Kind>* kinds) {
    const auto ended = co_await library->cancel_rescue(std::move(barcode));
    kinds->push_back(ended.kind);
}

Task<void> begin(TapeLibrary* library, std::string barcode, std::vector<Kind>* kinds) {
    LibraryService::RescueWish wish{.barcode = std::move(barcode)};
    const auto begun = co_await library->rescue(std::move(wish));
    kinds->push_back(begun.kind);
}

Task<void> end_and_begin(TapeLibrary* library, std::string barcode, std::vector<Kind>* kinds) {
    co_await end(library, barcode, kinds);
    co_await begin(library, barcode, kinds);
}

// Begins another rescue when the first has ended, and its end is not saved yet.
Task<void> begin_when_over(TapeStage* stage, std::string barcode, std::vector<Kind>* kinds) {
    while (cartridge(*stage, barcode).rescue == Rescue::kRunning) {
        [[maybe_unused]] const auto slept = co_await stage->reactor(0).sleep_for(1ms);
    }
    CHECK(stage->events.count("library.rescue_ended") == 0);
    co_await begin(&stage->library(), barcode, kinds);
}

}  // namespace

TEST_CASE("library rescue: all objects of a cartridge are there, on tape only", "[library]") {
    // With the index file that ends a session, and without it.
    const End end = GENERATE(End::kStopped, End::kKilled);
    TapeStageOptions options;
    options.drives = GENERATE(1U, 2U);
    TapeStage stage(options);
    stage.collection = "run-1";
    stage.group = "physics";
    const Book book = put_some(stage, 30);
    REQUIRE(stage.sync().has_value());
    const auto used = used_barcodes(stage);
    REQUIRE(used.size() == 1);
    const std::uint64_t blocks = stage.owned_blocks();
    const Cartridge before = cartridge(stage, used.front());

    stage.lose_node(end, options.disks);
    stage.run_for(1h);
    CHECK(cartridge(stage, used.front()).generation == 0);
    for (const auto& [fid, bytes] : book) REQUIRE_FALSE(stage.exists(fid));
    const MediumWork work = rescue(stage, used.front());
    check_complete(work);
    CHECK(work.copies == 30);
    for (const auto& [fid, bytes] : book) {
        REQUIRE(stage.exists(fid));
        CHECK(stage.is_released(fid));
        CHECK(stage.copies_of(fid).size() == 1);
        const store::Object object = stage.attributes(fid);
        CHECK(object.size_bytes == bytes.size());
        CHECK(object.owner == "alice");
        CHECK(object.group == "physics");
        CHECK(object.collection == "run-1");
        CHECK(object.mode == 0600);
    }
    CHECK(stage.owned_blocks() == blocks);
    const Cartridge after = cartridge(stage, used.front());
    CHECK(after.state == CartridgeState::kOk);
    CHECK(after.rescue == Rescue::kDone);
    CHECK(after.pool == "cold");
    CHECK(after.generation == before.generation);
    CHECK(after.files >= before.files);
    REQUIRE(after.node_on_tape.has_value());
    CHECK(after.node_on_tape->front() == std::byte{7});

    // Again without harm, and over a restart.
    check_complete(rescue(stage, used.front()));
    CHECK(stage.owned_blocks() == blocks);
    stage.restart();
    stage.run_for(5min);
    CHECK(stage.owned_blocks() == blocks);
    check_all(stage, book);
    // It is a cartridge like others: it can be written, scrubbed and repacked.
    const Book more = put_some(stage, 5);
    REQUIRE(stage.sync().has_value());
    CHECK(cartridge(stage, used.front()).files > after.files);
    release_all(stage, more);
    stage.restart();
    check_all(stage, more);
}

TEST_CASE("library rescue: a node with fewer disks gets all objects", "[library]") {
    TapeStageOptions options;
    options.localities = 1;
    options.disks = 4;
    TapeStage stage(options);
    const Book book = put_some(stage, 20, 100'000);
    REQUIRE(stage.sync().has_value());
    const std::string barcode = used_barcodes(stage).front();
    stage.lose_node(End::kStopped, 2);
    check_complete(rescue(stage, barcode));
    std::vector<store::Fid> here;
    for (const auto& [fid, bytes] : book) {
        std::vector<store::Fid> found;
        for (const store::Slot slot : {store::Slot{1}, store::Slot{2}}) {
            const auto moved = fid.moved_to(slot);
            if (moved && stage.exists(*moved)) found.push_back(*moved);
        }
        REQUIRE(found.size() == 1);
        CHECK(found.front().origin() == fid);
        if (fid.slot() <= 2) CHECK(found.front() == fid);
        const bool is_same = stage.recalled(found.front()) == bytes;
        CHECK(is_same);
        here.push_back(found.front());
    }
    const std::uint64_t blocks = stage.owned_blocks();
    check_complete(rescue(stage, barcode));
    CHECK(stage.owned_blocks() == blocks);

    // What is written of them has the ids that they were made with: a third node knows them again.
    stage.overwrite(here.back(), pattern(5000, 77));
    REQUIRE(stage.sync().has_value());
    stage.lose_node(End::kStopped, 4);
    check_complete(rescue(stage, barcode));
    for (const auto& [fid, bytes] : book) {
        REQUIRE(stage.exists(fid));
        const bool is_last = fid == here.back().origin();
        const bool is_same = stage.recalled(fid) == (is_last ? pattern(5000, 77) : bytes);
        CHECK(is_same);
    }
}

TEST_CASE("library rescue: the newest content wins, whatever the order of cartridges",
          "[library]") {
    const bool newest_first = GENERATE(true, false);
    TapeStageOptions options;
    options.localities = 1;
    options.disks = 1;
    options.names = true;
    TapeStage stage(options);
    const store::Fid changed = stage.put(pattern(50'000, 1));
    stage.name = "report";
    const store::Fid replaced = stage.put(pattern(60'000, 2));
    REQUIRE(stage.sync().has_value());
    const std::string old = used_barcodes(stage).front();
    close_cartridge(stage, old);
    stage.overwrite(changed, pattern(70'000, 3));
    stage.remove(replaced);
    const store::Fid named = stage.put(pattern(80'000, 4));
    REQUIRE(stage.sync().has_value());
    const auto used = used_barcodes(stage);
    REQUIRE(used.size() == 2);
    const std::string young = used[0] == old ? used[1] : used[0];

    stage.lose_node();
    check_complete(rescue(stage, newest_first ? young : old));
    if (!newest_first) {
        CHECK(stage.find_name("report") == replaced);
        CHECK(stage.attributes(changed).size_bytes == 50'000);
    }
    check_complete(rescue(stage, newest_first ? old : young));
    CHECK(stage.find_name("report") == named);
    CHECK(stage.recalled(changed) == pattern(70'000, 3));
    CHECK(stage.recalled(named) == pattern(80'000, 4));
    CHECK(stage.copies_of(changed).size() == 1);
    if (newest_first) CHECK_FALSE(stage.exists(replaced));
    stage.restart();
    CHECK(stage.find_name("report") == named);
}

TEST_CASE("library rescue: an object of two cartridges has both copies", "[library]") {
    TapeStageOptions options;
    options.pool.copies = 2;
    TapeStage stage(options);
    const Book book = put_some(stage, 12);
    REQUIRE(stage.sync().has_value());
    const auto used = used_barcodes(stage);
    REQUIRE(used.size() == 2);
    stage.lose_node();
    for (const std::string& each : used) check_complete(rescue(stage, each));
    for (const auto& [fid, bytes] : book) CHECK(stage.copies_of(fid).size() == 2);
    check_all(stage, book);
}

TEST_CASE("library rescue: pieces on several cartridges make an object when all are there",
          "[library]") {
    TapeStageOptions options;
    options.disks = 1;
    options.localities = 1;
    options.cartridge_bytes = 16UL << 20;
    options.pool.piece_bytes = 4UL << 20;
    TapeStage stage(options);
    const Bytes bytes = pattern(20UL << 20, 9);
    const store::Fid fid = stage.put(bytes);
    REQUIRE(stage.sync(1h).has_value());
    const auto used = used_barcodes(stage);
    REQUIRE(used.size() >= 2);

    stage.lose_node();
    for (std::size_t i = 0; i + 1 < used.size(); ++i) {
        const MediumWork work = rescue(stage, used[i]);
        CHECK(work.state == MediumWork::State::kPartly);
        REQUIRE(work.listed.size() == 1);
        CHECK(work.listed.front().fid == fid);
        CHECK_FALSE(stage.exists(fid));
    }
    check_complete(rescue(stage, used.back()));
    for (const std::string& each : used) check_complete(ended_rescue(stage, each));
    REQUIRE(stage.exists(fid));
    const bool is_same = stage.recalled(fid) == bytes;
    CHECK(is_same);
}

TEST_CASE("library rescue: objects that the node has stay as they are", "[library]") {
    TapeStageOptions options;
    options.localities = 1;
    options.disks = 1;
    options.names = true;
    TapeStage stage(options);
    stage.name = "report";
    const store::Fid old = stage.put(pattern(50'000, 1));
    stage.name.clear();
    const store::Fid changed = stage.put(pattern(60'000, 2));
    REQUIRE(stage.sync().has_value());
    const std::string barcode = used_barcodes(stage).front();

    stage.lose_node();
    stage.name = "report";
    const store::Fid own = stage.put(pattern(70'000, 3));
    const MediumWork work = rescue(stage, barcode);
    CHECK(work.state == MediumWork::State::kPartly);
    REQUIRE(work.listed.size() == 1);
    CHECK(work.listed.front().fid == old);
    CHECK(work.listed.front().name == "report");
    CHECK(stage.find_name("report") == own);
    CHECK_FALSE(stage.exists(old));
    CHECK(stage.recalled(own) == pattern(70'000, 3));

    // What was changed here is newer than what is on the tape.
    CHECK(stage.recalled(changed) == pattern(60'000, 2));
    stage.overwrite(changed, pattern(10'000, 5));
    // The cartridge is written, and its session ends; no index hides what was left out.
    REQUIRE(stage.sync().has_value());
    stage.run_for(1h);
    unload_all(stage);
    CHECK(rescue(stage, barcode).listed.size() == 1);
    CHECK(stage.recalled(changed) == pattern(10'000, 5));
}

TEST_CASE("library rescue: damaged files are passed, and listed", "[library]") {
    TapeStageOptions options;
    options.drives = 1;
    TapeStage stage(options);
    Book book;
    for (std::uint64_t i = 0; i < 6; ++i) {
        const Bytes bytes = pattern(300'000, i);
        book.emplace(stage.put(bytes), bytes);
        REQUIRE(stage.sync().has_value());
    }
    const std::string barcode = used_barcodes(stage).front();
    const std::size_t bad = GENERATE(0U, 3U);
    store::Fid fid{};
    std::uint64_t block = 0;
    for (const auto& [each, bytes] : book) {
        const store::Copy copy = stage.copies_of(each).at(0);
        if (copy.position.file != bad + 1) continue;
        fid = each;
        block = copy.block + (copy.block == 0 ? 5 : 4);
    }
    REQUIRE(block != 0);
    // There is no index file, which would list what was in the file.
    stage.lose_node(End::kKilled, options.disks);
    wait_for_library(stage);
    unload_all(stage);
    stage.tapes.at(address_of(stage, barcode))->make_unreadable(block);
    const MediumWork work = rescue(stage, barcode);
    CHECK(work.state == MediumWork::State::kPartly);
    REQUIRE(work.listed.size() == 1);
    CHECK(work.listed.front().file == bad + 1);
    const Cartridge medium = cartridge(stage, barcode);
    CHECK(medium.state == CartridgeState::kSuspect);
    CHECK(medium.rescue == Rescue::kPartly);
    CHECK_FALSE(stage.exists(fid));
    book.erase(fid);
    check_all(stage, book);
}

TEST_CASE("library rescue: begins anew after a loss of power, and does no harm", "[library]") {
    TapeStageOptions options;
    options.seed = GENERATE(range(1U, 9U));
    options.timing = LibraryTiming::kCalculate;
    TapeStage stage(options);
    const Book book = put_some(stage, 60, 20'000);
    REQUIRE(stage.sync(1h).has_value());
    const std::string barcode = used_barcodes(stage).front();
    stage.lose_node(options.seed % 2 == 0 ? End::kStopped : End::kKilled, options.disks);
    wait_for_library(stage);
    const MediaOutcome begun = ask_for_rescue(stage, barcode);
    INFO(begun.words);
    REQUIRE(begun.kind == Kind::kDone);
    for (int i = 0; i < 3; ++i) {
        stage.lose_power_within(400, 10min);
        stage.start();
    }
    stage.run_for(1min);
    if (!stage.library().rescue_work(barcode)) {
        // It was over before the power went last.
        CHECK(cartridge(stage, barcode).rescue == Rescue::kDone);
    } else {
        check_complete(ended_rescue(stage, barcode));
    }
    for (const auto& [fid, bytes] : book) REQUIRE(stage.exists(fid));
    check_all(stage, book);
    std::uint64_t blocks = 0;
    for (const auto& [fid, bytes] : book) blocks += (bytes.size() + 4095) / 4096;
    CHECK(stage.owned_blocks() == blocks);
}

TEST_CASE("library rescue: cartridges of another node are not used by themselves", "[library]") {
    TapeStageOptions options;
    options.cartridges = 2;
    TapeStage stage(options);
    const Book book = put_some(stage, 10);
    REQUIRE(stage.sync().has_value());
    const std::string barcode = used_barcodes(stage).front();
    unload_all(stage);
    stage.lose_node();
    wait_for_library(stage);
    const std::uint64_t records = stage.tapes.at(address_of(stage, barcode))->count();
    const Book own = put_some(stage, 10);
    REQUIRE(stage.sync(1h).has_value());
    unload_all(stage);
    CHECK(stage.tapes.at(address_of(stage, barcode))->count() == records);
    for (const auto& [fid, bytes] : book) CHECK_FALSE(stage.exists(fid));
    const auto used = used_barcodes(stage);
    REQUIRE(used.size() == 1);
    CHECK(used.front() != barcode);

    CHECK(ask_for_rescue(stage, used.front()).kind == Kind::kRefused);
    CHECK(ask_for_rescue(stage, barcode, "warm").kind == Kind::kRefused);
    CHECK(ask_for_rescue(stage, "V99999L9").kind == Kind::kNoSuchMedium);
    check_complete(rescue(stage, barcode));
    release_all(stage, own);
    check_all(stage, book);
    check_all(stage, own);
}

TEST_CASE("library rescue: a blank cartridge stays blank", "[library]") {
    TapeStage stage;
    const MediumWork work = rescue(stage, "V00002L9");
    CHECK(work.state == MediumWork::State::kDone);
    CHECK(work.copies == 0);
    const Cartridge medium = cartridge(stage, "V00002L9");
    CHECK(medium.state == CartridgeState::kBlank);
    CHECK(medium.rescue == Rescue::kNone);
    CHECK(medium.generation == 0);
}

TEST_CASE("library rescue: can be ended, and the objects that were made stay", "[library]") {
    TapeStageOptions options;
    options.timing = LibraryTiming::kCalculate;
    TapeStage stage(options);
    const Book book = put_some(stage, 40, 20'000);
    REQUIRE(stage.sync(1h).has_value());
    const std::string barcode = used_barcodes(stage).front();
    stage.lose_node();
    wait_for_library(stage);
    REQUIRE(ask_for_rescue(stage, barcode).kind == Kind::kDone);
    const MediaOutcome ended = stage.at(0, stage.library().cancel_rescue(barcode));
    REQUIRE(ended.kind == Kind::kDone);
    CHECK(stage.library().rescue_work(barcode)->state == MediumWork::State::kCancelled);
    CHECK(stage.at(0, stage.library().cancel_rescue(barcode)).kind == Kind::kRefused);
    CHECK(cartridge(stage, barcode).rescue == Rescue::kPartly);
    check_complete(rescue(stage, barcode));
    check_all(stage, book);
}

TEST_CASE("library rescue: one that begins while another is being ended runs to its end",
          "[library]") {
    TapeStageOptions options;
    options.timing = LibraryTiming::kCalculate;
    TapeStage stage(options);
    const Book book = put_some(stage, 40, 20'000);
    REQUIRE(stage.sync(1h).has_value());
    const std::string barcode = used_barcodes(stage).front();
    stage.lose_node();
    wait_for_library(stage);
    REQUIRE(ask_for_rescue(stage, barcode).kind == Kind::kDone);
    std::vector<Kind> kinds;
    core::Gate gate;
    SECTION("as soon as one of two orders to end it has returned") {
        stage.reactor(0).spawn(gate, end_and_begin(&stage.library(), barcode, &kinds));
        stage.reactor(0).spawn(gate, end(&stage.library(), barcode, &kinds));
        stage.run_for(1h);
        REQUIRE(kinds.size() == 3);
    }
    SECTION("while the end of the first is saved") {
        stage.reactor(0).spawn(gate, begin_when_over(&stage, barcode, &kinds));
        stage.run_for(1h);
        REQUIRE(kinds.size() == 1);
    }
    for (const Kind each : kinds) CHECK(each == Kind::kDone);
    check_complete(ended_rescue(stage, barcode));
    CHECK(stage.events.count("library.rescue_began") == 2);
    CHECK(cartridge(stage, barcode).rescue == Rescue::kDone);
    check_all(stage, book);
}
