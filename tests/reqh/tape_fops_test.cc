// Goal: a fop that needs bytes which are on tape only is answered at once, with a recall of the
// object; clients wait for recalls without holding anything up, and see what they may see.
// Method: a node of two localities, with a library that does what the test says.

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "fop/listing.h"
#include "objects/fids.h"
#include "tests/catch.h"
#include "tests/reqh/tape_node.h"

namespace fopd::reqh::testing::tape_fops {

namespace {

using Way = WriteSpec::Way;

std::vector<fop::RecallState> states_of(const FakeFop& fop) {
    INFO(fop.answer->words);
    REQUIRE(fop.status() == fop::Status::kDone);
    std::vector<fop::RecallState> states;
    for (const std::uint8_t each : std::get<fop::RecallWaitReply>(fop.answer->body).states) {
        states.push_back(static_cast<fop::RecallState>(each));
    }
    return states;
}

}  // namespace

TEST_CASE("reqh tape: what needs bytes that are on tape makes a recall, and holds nothing",
          "[reqh]") {
    for (const std::uint32_t locality : {0U, 1U}) {
        TapeStage tape;
        StoreStage& stage = tape.stage;
        const fop::Fid fid = tape.object_on_tape(1);
        const std::vector<fop::Range> range{{.offset = 5, .length = 100}};
        const Bytes bytes = pattern(100, 9);
        const ReadSpec read(fid, range);
        const WriteSpec write(fid, range, bytes);
        const AppendSpec append(fid, bytes);
        const std::vector<FopSpec> specs{
            read.spec(Way::kInline),   read.spec(Way::kMemory),   write.spec(Way::kInline),
            write.spec(Way::kMemory),  append.spec(Way::kInline), append.spec(Way::kMemory),
            truncate(fid, kBytes - 1), truncate(fid, 2 * kBytes), punch(fid, range[0])};
        for (std::size_t i = 0; i < specs.size(); ++i) {
            CAPTURE(locality, i);
            const FakeFop& fop = stage.call(specs[i], locality);
            REQUIRE(fop.status() == fop::Status::kStaging);
            REQUIRE(fop.transfers.empty());
            REQUIRE(tape.stagings[1]->wishes.size() == i + 1);
            REQUIRE(tape.stagings[1]->wishes.back().fid == objects::store_fid(fid));
            REQUIRE(tape.stagings[1]->wishes.back().pin == Duration::zero());
        }
        CHECK(tape.stagings[0]->wishes.empty());
        CHECK(stage.all_buffers_are_back());
        // No lock is left, and nothing has changed.
        CHECK(stage.stat(fid).size_bytes == kBytes);
        CHECK(stage.stat(fid).allocated_bytes == 0);
    }
}

TEST_CASE("reqh tape: what needs no bytes is done while they are on tape", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const fop::Fid fid = tape.object_on_tape(0, "one");
    const ReadSpec nothing(fid, {{.offset = 7, .length = 0}});
    const ReadSpec behind(fid, {{.offset = kBytes, .length = 100}});

    CHECK(stage.call(nothing.spec(Way::kInline)).status() == fop::Status::kDone);
    CHECK(stage.call(behind.spec(Way::kInline)).status() == fop::Status::kDone);
    CHECK(tape.status_of(
              "set_attributes",
              fop::SetAttributes{.fid = fid, .mode = 0640, .which = fop::SetAttributes::kMode}) ==
          fop::Status::kDone);
    CHECK(tape.status_of("rename", fop::Rename{.fid = fid, .name = "two"}) == fop::Status::kDone);
    const ReadSpec some(fid, {{.offset = 0, .length = 1}});
    CHECK(stage.call(some.spec(Way::kInline)).status() == fop::Status::kStaging);

    REQUIRE(stage.call(truncate(fid, 0)).status() == fop::Status::kDone);
    CHECK(stage.stat(fid).size_bytes == 0);
    stage.write(fid, 0, pattern(100, 4));
    CHECK(stage.read(fid, 0, 1000) == pattern(100, 4));

    const fop::Fid other = tape.object_on_tape(0);
    CHECK(tape.status_of("delete", fop::Delete{.fid = other}) == fop::Status::kDone);
}

TEST_CASE("reqh tape: a wait ends when one of its recalls has ended", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const std::vector<fop::Fid> fids{tape.object_on_tape(0), tape.object_on_tape(1),
                                     tape.object_on_tape(1)};
    for (const fop::Fid fid : fids) {
        REQUIRE(tape.status_of("stage", fop::Stage{.fid = fid}) == fop::Status::kDone);
    }
    const auto how = GENERATE(How::kDone, How::kFailed, How::kCancelled, How::kGone);
    const FakeFop& waiting = stage.send(tape.wait_for(fids), 0);
    stage.run_for(1h);
    REQUIRE_FALSE(waiting.answer.has_value());
    REQUIRE(tape.stagings[0]->waiting + tape.stagings[1]->waiting == 3);

    tape.end(1, fids[1], how, how == How::kFailed ? "all copies are damaged" : "");

    const std::array expected{fop::RecallState::kDone, fop::RecallState::kFailed,
                              fop::RecallState::kCancelled, fop::RecallState::kGone};
    REQUIRE(states_of(waiting) == std::vector{fop::RecallState::kWaiting,
                                              expected[static_cast<std::size_t>(how)],
                                              fop::RecallState::kWaiting});
    CHECK(waiting.answer->words == (how == How::kFailed ? "all copies are damaged" : ""));
    CHECK(tape.stagings[0]->waiting + tape.stagings[1]->waiting == 0);
    CHECK(stage.handler(0).running_count() == 0);
    // An hour of waiting for drives is no sign of a defect.
    CHECK(stage.event_count("reqh.hung_fop") == 0);
    CHECK(stage.event_count("reqh.slow_fop") == 0);
}

TEST_CASE("reqh tape: a staging is told who waits for an object, and what it reads", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const fop::Fid fid = tape.object(1);
    const std::vector<fop::Fid> fids{fid};
    REQUIRE(tape.status_of("stage", fop::Stage{.fid = fid}) == fop::Status::kDone);
    const store::ClientId client = tape.stagings[1]->wishes.back().client;
    REQUIRE(client != store::ClientId{});
    REQUIRE(states_of(stage.call(tape.wait_for(fids))) == std::vector{fop::RecallState::kDone});
    CHECK(tape.stagings[1]->readers == std::vector{client});

    const std::vector<fop::Range> some{{.offset = 100, .length = 200},
                                       {.offset = kBytes - 50, .length = 100}};
    for (const Way way : {Way::kInline, Way::kMemory}) {
        const ReadSpec read(fid, some);
        REQUIRE(stage.call(read.spec(way)).status() == fop::Status::kDone);
        REQUIRE(tape.stagings[1]->reads.size() == 1);
        CHECK(tape.stagings[1]->reads.back().fid == objects::store_fid(fid));
        CHECK(tape.stagings[1]->reads.back().reader == client);
        // The bytes behind the end do not count.
        CHECK(tape.stagings[1]->reads.back().bytes == 250);
        tape.stagings[1]->reads.clear();
    }
    const ReadSpec missing(tape.object_on_tape(1), some);
    REQUIRE(stage.call(missing.spec(Way::kInline)).status() == fop::Status::kStaging);
    CHECK(tape.stagings[0]->reads.empty());
    CHECK(tape.stagings[1]->reads.empty());
}

TEST_CASE("reqh tape: a recall that does not exist has ended", "[reqh]") {
    TapeStage tape;
    const std::vector<fop::Fid> fids{tape.object(0), tape.object_on_tape(1)};
    REQUIRE(tape.status_of("stage", fop::Stage{.fid = fids[1]}) == fop::Status::kDone);
    CHECK(states_of(tape.stage.call(tape.wait_for(fids), 1)) ==
          std::vector{fop::RecallState::kDone, fop::RecallState::kWaiting});

    REQUIRE(tape.status_of("delete", fop::Delete{.fid = fids[0]}) == fop::Status::kDone);
    CHECK(states_of(tape.stage.call(tape.wait_for(fids), 1)) ==
          std::vector{fop::RecallState::kGone, fop::RecallState::kWaiting});
}

TEST_CASE("reqh tape: a wait ends at its deadline, and when it is given up", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const std::vector<fop::Fid> fids{tape.object_on_tape(0), tape.object_on_tape(1)};
    for (const fop::Fid fid : fids) {
        REQUIRE(tape.status_of("stage", fop::Stage{.fid = fid}) == fop::Status::kDone);
    }
    FopSpec spec = tape.wait_for(fids);
    spec.deadline = after(stage.world.now(), 5min);
    CHECK(stage.call(spec).status() == fop::Status::kTimedOut);

    FakeFop& given_up = stage.send(tape.wait_for(fids));
    stage.run_for(1min);
    given_up.cancel_source().cancel();
    stage.run_for(1s);
    CHECK(given_up.status() == fop::Status::kCancelled);
    CHECK(tape.stagings[0]->waiting + tape.stagings[1]->waiting == 0);
}

TEST_CASE("reqh tape: many waits do not keep other fops from running", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const std::vector<fop::Fid> fids{tape.object_on_tape(0)};
    REQUIRE(tape.status_of("stage", fop::Stage{.fid = fids[0]}) == fop::Status::kDone);
    constexpr std::size_t kMany = 500;
    std::vector<const FakeFop*> waits;
    for (std::size_t i = 0; i < kMany; ++i) waits.push_back(&stage.send(tape.wait_for(fids), 0));
    stage.run_for(10s);
    REQUIRE(tape.stagings[0]->waiting == kMany);

    const FakeFop& other = stage.send({.type = type_of("stat"), .body = fop::Stat{.fid = fids[0]}});
    stage.run_for(1s);
    CHECK(other.status() == fop::Status::kDone);
    CHECK(stage.handler(0).admission().running() == 0);

    tape.end(0, fids[0], How::kDone);
    for (const FakeFop* const each : waits) {
        REQUIRE(states_of(*each) == std::vector{fop::RecallState::kDone});
    }
}

TEST_CASE("reqh tape: waits for tape end when the server stops", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    tape.library->sync_takes = 1h;
    const std::vector<fop::Fid> fids{tape.object_on_tape(1)};
    REQUIRE(tape.status_of("stage", fop::Stage{.fid = fids[0]}) == fop::Status::kDone);
    const FakeFop& waiting = stage.send(tape.wait_for(fids));
    const FakeFop& syncing =
        stage.send({.type = type_of("sync_tape"), .body = fop::SyncTape{}, .pool = "cold"});
    stage.run_for(1s);
    REQUIRE_FALSE(waiting.answer.has_value());

    stage.handler(0).drain();
    stage.run_for(1s);
    CHECK(waiting.status() == fop::Status::kTryAgain);
    CHECK(syncing.status() == fop::Status::kTryAgain);
}

TEST_CASE("reqh tape: a change that does not fit on a staging makes room, and holds nothing",
          "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const std::uint16_t slot = stage.slot(1);
    const auto begin = [&](std::string pool, std::uint64_t blocks) {
        FopSpec spec{.type = type_of("upload_begin"),
                     .body = fop::UploadBegin{.size_bytes = blocks * kBlock, .slot = slot}};
        spec.pool = std::move(pool);
        return stage.call(std::move(spec)).status();
    };
    FopSpec create{.type = type_of("create"), .body = fop::Create{.slot = slot, .mode = 0600}};
    create.pool = "cold";
    FakeFop& created = stage.call(std::move(create));
    REQUIRE(created.status() == fop::Status::kDone);
    const fop::Fid cold = std::get<fop::CreateReply>(created.answer->body).fid;

    // All but a few blocks of the disk.
    const fop::Fid others = tape.object(1);
    const store::SpaceUse before = stage.volume(1).space_use();
    const Bytes bytes = pattern(128 * kBlock, 5);
    for (std::uint64_t at = 0; at + 128 < before.free_blocks; at += 128) {
        const WriteSpec write(others, {{.offset = (4 + at) * kBlock, .length = bytes.size()}},
                              bytes);
        if (stage.call(write.spec(WriteSpec::Way::kMemory)).status() != fop::Status::kDone) break;
    }
    const store::SpaceUse use = stage.volume(1).space_use();
    REQUIRE(use.free_blocks < 300);
    const std::uint64_t lacking = use.room_blocks() + 50;
    CHECK(begin("fast", lacking) == fop::Status::kNoSpace);
    // It would not fit on an empty disk.
    CHECK(begin("cold", use.total_blocks) == fop::Status::kNoSpace);
    CHECK(tape.stagings[1]->wanted_room.empty());
    CHECK(begin("cold", lacking) == fop::Status::kStagingFull);
    REQUIRE(tape.stagings[1]->wanted_room.size() == 1);
    CHECK(tape.stagings[1]->wanted_room.front() == std::pair{store::Slot{slot}, lacking});
    CHECK(tape.stagings[0]->wanted_room.empty());

    const Bytes large = pattern(lacking * kBlock, 6);
    const WriteSpec write(cold, {{.offset = 0, .length = large.size()}}, large);
    FakeFop& refused = stage.call(write.spec(WriteSpec::Way::kMemory));
    CHECK(refused.status() == fop::Status::kStagingFull);
    // Its bytes were not asked for.
    CHECK(refused.transfers.empty());
    CHECK(tape.stagings[1]->wanted_room.size() == 2);
    CHECK(stage.all_buffers_are_back());

    REQUIRE(tape.status_of("delete", fop::Delete{.fid = others}) == fop::Status::kDone);
    stage.run_for(5s);
    CHECK(begin("cold", lacking) == fop::Status::kDone);
    CHECK(stage.call(write.spec(WriteSpec::Way::kMemory)).status() == fop::Status::kDone);
    CHECK(tape.stagings[1]->wanted_room.size() == 2);
}

TEST_CASE("reqh tape: who may recall, pin, release and cancel", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const fop::Fid fid = tape.object_on_tape(1, "one");
    const fop::Fid readable = tape.object_on_tape(1, "two");
    REQUIRE(
        tape.status_of("set_attributes",
                       fop::SetAttributes{
                           .fid = readable, .mode = 0604, .which = fop::SetAttributes::kMode}) ==
        fop::Status::kDone);
    const auto as = [&stage](std::string principal, std::string_view type, fop::RequestBody body,
                             fop::Rights rights = fop::kRead | fop::kWrite) {
        return stage
            .call({.type = type_of(type),
                   .body = std::move(body),
                   .rights = rights,
                   .principal = std::move(principal)})
            .status();
    };
    using fop::Status;
    CHECK(as("bob", "stage", fop::Stage{.fid = fid}) == Status::kDenied);
    CHECK(as("bob", "stage", fop::Stage{.fid = readable}) == Status::kDone);
    CHECK(as("bob", "stage", fop::Stage{.fid = readable, .pin_s = 1}) == Status::kDenied);
    CHECK(as("bob", "stage", fop::Stage{.fid = readable, .priority = 200}) == Status::kDenied);
    CHECK(as("bob", "stage", fop::Stage{.fid = readable, .priority = 10}) == Status::kDone);
    CHECK(tape.stagings[1]->wishes.size() == 2);
    CHECK(tape.stagings[1]->wishes.back().requester == "bob");
    // Whoever only claims a name could have others cancel by it.
    FopSpec claims{.type = type_of("stage"), .body = fop::Stage{.fid = readable}};
    claims.kind = fop::AuthKind::kNone;
    CHECK(stage.call(claims).status() == Status::kDone);
    CHECK(tape.stagings[1]->wishes.back().requester.empty());
    CHECK(as("alice", "stage", fop::Stage{.fid = fid, .pin_s = 3600}) == Status::kDone);
    CHECK(tape.stagings[1]->wishes.back().pin == 1h);
    CHECK(as("root", "stage", fop::Stage{.fid = fid, .priority = 200}, fop::kAllRights) ==
          Status::kDone);
    CHECK(tape.stagings[1]->wishes.back().priority == 200);

    CHECK(as("bob", "release", fop::Release{.fid = readable}) == Status::kDenied);
    CHECK(as("alice", "release", fop::Release{.fid = readable}) == Status::kDone);
    tape.stagings[1]->is_on_tape = false;
    CHECK(as("alice", "release", fop::Release{.fid = readable}) == Status::kBusy);
    tape.stagings[1]->is_of_tape_pool = false;
    CHECK(as("alice", "release", fop::Release{.fid = readable}) == Status::kWrongPool);

    const std::vector<fop::Fid> fids{fid};
    FopSpec wait = tape.wait_for(fids);
    wait.principal = "bob";
    wait.rights = fop::kRead;
    CHECK(stage.call(wait).status() == Status::kDenied);

    CHECK(as("bob", "recall_cancel", fop::RecallCancel{.fid = readable}) == Status::kDenied);
    store::Recall record{.ticket = 1, .requester = "bob"};
    const auto recorded =
        stage.world.run(stage.stores(1).parts().reactor,
                        stage.volume(1).put_recall(objects::store_fid(readable), record, {}));
    REQUIRE((recorded.has_value() && recorded->has_value()));
    CHECK(as("carol", "recall_cancel", fop::RecallCancel{.fid = readable}) == Status::kDenied);
    CHECK(as("bob", "recall_cancel", fop::RecallCancel{.fid = readable}) == Status::kDone);
    CHECK(as("alice", "recall_cancel", fop::RecallCancel{.fid = fid}) == Status::kDone);
    const fop::Fid idle = tape.object(1);
    CHECK(as("alice", "recall_cancel", fop::RecallCancel{.fid = idle}) == Status::kNotFound);
}

TEST_CASE("reqh tape: recalls of objects that one may not read are counted, not listed", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const std::array fids{tape.object_on_tape(0, "zero"), tape.object_on_tape(1, "one")};
    REQUIRE(tape.status_of("set_attributes",
                           fop::SetAttributes{
                               .fid = fids[1], .mode = 0604, .which = fop::SetAttributes::kMode}) ==
            fop::Status::kDone);
    store::Recall record{.ticket = 1, .requester = "bob"};
    const auto recorded =
        stage.world.run(stage.stores(1).parts().reactor,
                        stage.volume(1).put_recall(objects::store_fid(fids[1]), record, {}));
    REQUIRE((recorded.has_value() && recorded->has_value()));
    const Instant now = stage.world.now();
    tape.library->recall_rows = {
        {.ticket = objects::store_fid(fids[0]),
         .state = library::RecallRow::State::kReading,
         .size_bytes = kBytes,
         .asked_at = now,
         .cartridge = "TAPE01L9"},
        {.ticket = objects::store_fid(fids[1]), .place = 1, .expected_at = after(now, 1min)}};
    const auto listed = [&stage](std::string principal, fop::Rights rights) {
        const FakeFop& fop = stage.call({.type = type_of("recalls"),
                                         .body = fop::Recalls{},
                                         .rights = rights,
                                         .principal = std::move(principal)});
        REQUIRE(fop.status() == fop::Status::kDone);
        CHECK(std::get<fop::RecallsReply>(fop.answer->body).total == 2);
        std::vector<std::string> names;
        const auto entries = fop::read_recalls(fop.answer->payload);
        REQUIRE(entries.has_value());
        for (const fop::RecallEntry& each : *entries) names.emplace_back(each.name);
        return names;
    };
    CHECK(listed("alice", fop::kRead) == std::vector<std::string>{"zero", "one"});
    CHECK(listed("bob", fop::kRead) == std::vector<std::string>{"one"});

    const FakeFop& fop = stage.call({.type = type_of("recalls"), .body = fop::Recalls{}}, 1);
    const auto entries = fop::read_recalls(fop.answer->payload);
    REQUIRE(entries->size() == 2);
    CHECK(entries->front().fid == fids[0]);
    CHECK(entries->front().state == fop::RecallEntry::State::kReading);
    CHECK(entries->front().cartridge == "TAPE01L9");
    CHECK(entries->front().expected_ms == fop::RecallEntry::kUnknown);
    CHECK(entries->front().requester.empty());
    CHECK(entries->back().requester == "bob");
    CHECK(entries->back().place == 1);
    CHECK(entries->back().expected_ms <= 60'000);
    CHECK(entries->back().expected_ms > 0);
}

TEST_CASE("reqh tape: recalls that a list has no place for are counted, with their age", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const library::Ticket ticket = objects::store_fid(tape.object_on_tape(0));
    stage.run_for(1h);
    const Instant now = stage.world.now();
    tape.library->recall_rows.assign(10'000, {.ticket = ticket, .asked_at = now});
    tape.library->recall_rows.back().asked_at = now - 1h;
    const FakeFop& fop = stage.call({.type = type_of("recalls"), .body = fop::Recalls{}});
    REQUIRE(fop.status() == fop::Status::kDone);
    const auto& reply = std::get<fop::RecallsReply>(fop.answer->body);
    CHECK(reply.total == 10'000);
    CHECK(reply.oldest_ms >= 3'600'000);
    CHECK(reply.oldest_ms < 3'601'000);
    const auto entries = fop::read_recalls(fop.answer->payload);
    REQUIRE(entries.has_value());
    CHECK(entries->size() < 10'000);

    tape.library->recall_rows.clear();
    const FakeFop& none = stage.call({.type = type_of("recalls"), .body = fop::Recalls{}});
    const auto& empty = std::get<fop::RecallsReply>(none.answer->body);
    CHECK(empty.total == 0);
    CHECK(empty.oldest_ms == fop::RecallsReply::kUnknown);
}

TEST_CASE("reqh tape: a patient wait is answered with the place of the recall", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const std::vector<fop::Fid> fids{tape.object_on_tape(1), tape.object_on_tape(0)};
    for (const fop::Fid& fid : fids) {
        REQUIRE(tape.status_of("stage", fop::Stage{.fid = fid}) == fop::Status::kDone);
    }
    FopSpec wait = tape.wait_for(fids);
    std::get<fop::RecallWait>(wait.body).patience_ms = 5000;
    const Instant began = stage.world.now();
    const auto unknown = std::get<fop::RecallWaitReply>(stage.call(wait).answer->body);
    CHECK(stage.world.now() - began >= 5s);
    CHECK(stage.world.now() - began < 10s);
    CHECK(unknown.place == fop::RecallWaitReply::kUnknown);
    CHECK(unknown.expected_ms == fop::RecallWaitReply::kUnknown);

    tape.library->recall_rows = {{.ticket = objects::store_fid(fids[0]),
                                  .place = 7,
                                  .expected_at = after(stage.world.now(), 1min)}};
    const FakeFop& known = stage.call(wait);
    using State = fop::RecallState;
    CHECK(states_of(known) == std::vector{State::kWaiting, State::kWaiting});
    const auto reply = std::get<fop::RecallWaitReply>(known.answer->body);
    CHECK(reply.place == 7);
    CHECK(reply.expected_ms <= 55'000);
    CHECK(reply.expected_ms > 50'000);

    FakeFop& ended = stage.send(wait);
    stage.run_for(1s);
    tape.end(0, fids[1], How::kDone);
    CHECK(states_of(ended) == std::vector{State::kWaiting, State::kDone});
}

TEST_CASE("reqh tape: who stages, waits or lists is told why no recall is served", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const std::vector<fop::Fid> fids{tape.object_on_tape(1)};
    tape.library->recalls_wait = "all drives are down";
    const FopSpec wish{.type = type_of("stage"), .body = fop::Stage{.fid = fids[0]}};

    const FakeFop& staged = stage.call(wish);
    REQUIRE(staged.status() == fop::Status::kDone);
    CHECK(std::get<fop::StageReply>(staged.answer->body).waits);
    CHECK(staged.answer->words == "all drives are down");

    FopSpec wait = tape.wait_for(fids);
    std::get<fop::RecallWait>(wait.body).patience_ms = 5000;
    const FakeFop& waiting = stage.call(wait);
    CHECK(states_of(waiting) == std::vector{fop::RecallState::kWaiting});
    CHECK(waiting.answer->words == "all drives are down");

    const FopSpec list{.type = type_of("recalls"), .body = fop::Recalls{}};
    CHECK(stage.call(list).answer->words.empty());
    tape.library->recall_rows = {{.ticket = objects::store_fid(fids[0])}};
    CHECK(stage.call(list).answer->words == "all drives are down");

    tape.library->recalls_wait = "";
    CHECK(stage.call(wish).answer->words.empty());
    CHECK(stage.call(wait).answer->words.empty());
}

TEST_CASE("reqh tape: a node without a library says so", "[reqh]") {
    TapeStage tape;
    const fop::Fid fid = tape.object_on_tape(1);
    tape.door.service = nullptr;
    const ReadSpec read(fid, {{.offset = 0, .length = 1}});
    CHECK(tape.stage.call(read.spec(Way::kInline)).status() == fop::Status::kMediumMissing);
    CHECK(tape.status_of("stage", fop::Stage{.fid = fid}) == fop::Status::kNotFound);
    CHECK(tape.status_of("release", fop::Release{.fid = fid}) == fop::Status::kNotFound);
    CHECK(tape.stage.call({.type = type_of("sync_tape"), .body = fop::SyncTape{}, .pool = "cold"})
              .status() == fop::Status::kNotFound);
    CHECK(tape.status_of("unload_drive", fop::UnloadDrive{.drive = "d0"}) ==
          fop::Status::kNotFound);
    CHECK(tape.status_of("recalls", fop::Recalls{}) == fop::Status::kDone);
    CHECK(tape.status_of("media", fop::Media{}) == fop::Status::kDone);
}

}  // namespace fopd::reqh::testing::tape_fops
