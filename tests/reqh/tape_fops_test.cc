// Goal: a fop that needs bytes which are on tape only is answered at once, with a recall of the
// object; clients wait for recalls without holding anything up, and see what they may see.
// Method: a node of two localities, with a library that does what the test says.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fop/listing.h"
#include "objects/fids.h"
#include "objects/home_volume.h"
#include "tests/catch.h"
#include "tests/reqh/fake_library.h"
#include "tests/reqh/store_stage.h"

namespace fopd::reqh::testing::tape_fops {

namespace {

using Way = WriteSpec::Way;
using How = library::RecallEnd::How;

constexpr std::uint64_t kBytes = 3 * kBlock + 100;

// Takes an object's bytes off its disk, as if they were on a cartridge.
Task<Result<void>> put_on_tape(store::Volume* volume, store::Fid fid, std::uint32_t file) {
    const auto object = volume->map().find(fid);
    if (!object || !object->has_value()) {
        co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "the object"});
    }
    const std::uint64_t version = (*object)->content_version();
    const store::Copy copy{.fid = fid,
                           .length = (*object)->size_bytes,
                           .version = version,
                           .cartridge = {.vsn = {'T', 'A', 'P', 'E', '0', '1'}, .generation = 1},
                           .position = {.file = file},
                           .block = file * 100ULL,
                           .checksum = 7,
                           .written_s = 1'800'000'000};
    std::vector<store::Copy> copies{copy};
    const core::WaitOptions wait{};
    const auto added = co_await volume->add_copies(std::move(copies), wait);
    if (!added) co_return std::unexpected(added.error());
    const auto released = co_await volume->release(fid, version, wait);
    if (!released) co_return std::unexpected(released.error());
    co_return Result<void>{};
}

// A node with two disks on two localities, and a library at the second.
class TapeStage {
public:
    TapeStage()
        : stage({.localities = 2, .disks = 2, .cold_quota_blocks = 100'000, .library = &door}) {
        door = {.service = nullptr,
                .reactor = &stage.stores(1).parts().reactor,
                .gate = &gate,
                .stagings = {}};
        library = std::make_unique<FakeLibrary>(*door.reactor);
        door.service = library.get();
        for (const std::uint32_t locality : {0U, 1U}) {
            stagings.push_back(std::make_unique<FakeStaging>(stage.stores(locality)));
            door.stagings.push_back(stagings.back().get());
        }
    }
    ~TapeStage() {
        // Nobody waits for the staging when it goes.
        for (const std::uint32_t locality : {0U, 1U}) stage.handler(locality).drain();
        stage.run_for(1s);
    }

    // An object on a disk: the first disk is at locality 0, the second at 1.
    fop::Fid object(std::uint32_t disk, std::string_view name = {}) {
        const fop::Fid fid = stage.create(name, stage.slot(disk));
        stage.write(fid, 0, pattern(kBytes, 3));
        return fid;
    }
    fop::Fid object_on_tape(std::uint32_t disk, std::string_view name = {}) {
        const fop::Fid fid = object(disk, name);
        store::Volume& volume = stage.volume(disk);
        core::Reactor& reactor = stage.stores(disk).parts().reactor;
        const auto done =
            stage.world.run(reactor, put_on_tape(&volume, objects::store_fid(fid), ++files_));
        REQUIRE(done.has_value());
        REQUIRE(done->has_value());
        return fid;
    }
    FakeFop& call(std::string_view type, fop::RequestBody body, std::uint32_t locality = 0) {
        return stage.call({.type = type_of(type), .body = std::move(body)}, locality);
    }
    fop::Status status_of(std::string_view type, fop::RequestBody body,
                          std::uint32_t locality = 0) {
        return call(type, std::move(body), locality).status();
    }
    FopSpec wait_for(const std::vector<fop::Fid>& fids) {
        return {.type = type_of("recall_wait"),
                .body = fop::RecallWait{.fids = fop::List<fop::Fid>(fids.data(), fids.size())}};
    }
    void end(std::uint32_t disk, fop::Fid fid, How how, std::string reason = {}) {
        stagings[disk]->end(objects::store_fid(fid), {.how = how, .reason = std::move(reason)});
        stage.run_for(1s);
    }

    core::Gate gate;
    library::LibraryDoor door;
    std::unique_ptr<FakeLibrary> library;
    std::vector<std::unique_ptr<FakeStaging>> stagings;
    StoreStage stage;

private:
    std::uint32_t files_ = 0;
};

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

TEST_CASE("reqh tape: the copies of an object are listed with their cartridges", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const fop::Fid fid = tape.object_on_tape(1);
    const auto copies_of = [&](fop::Fid object, bool on_disk) {
        const FakeFop& fop = tape.call("copies", fop::Copies{.fid = object});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_copies(fop.answer->payload);
        REQUIRE(entries.has_value());
        const auto& reply = std::get<fop::CopiesReply>(fop.answer->body);
        CHECK(reply.total == entries->size());
        CHECK(reply.on_disk == on_disk);
        std::vector<std::string> found;
        for (const fop::CopyEntry& each : *entries) {
            CHECK(each.file == 1);
            CHECK(each.block == 100);
            CHECK(each.length == kBytes);
            CHECK(each.written_s == 1'800'000'000);
            found.push_back(std::string(each.cartridge) + " " + std::string(each.state));
        }
        return found;
    };
    // The node does not have the cartridge.
    CHECK(copies_of(fid, false) == std::vector<std::string>{"TAPE01 "});
    library::Cartridge& cartridge = tape.library->cartridges.emplace_back();
    cartridge = {.barcode = "TAPE01L9", .vsn = "TAPE01", .generation = 1};
    cartridge.state = library::CartridgeState::kSuspect;
    CHECK(copies_of(fid, false) == std::vector<std::string>{"TAPE01L9 suspect"});
    // What an earlier label had is not this cartridge's.
    cartridge.generation = 2;
    CHECK(copies_of(fid, false) == std::vector<std::string>{"TAPE01 "});
    CHECK(copies_of(tape.object(0), true).empty());

    FopSpec other{.type = type_of("copies"), .body = fop::Copies{.fid = fid}};
    other.principal = "bob";
    other.rights = fop::kRead;
    CHECK(stage.call(other).status() == fop::Status::kDenied);
}

TEST_CASE("reqh tape: cartridges are listed by barcode, as many as fit", "[reqh]") {
    TapeStage tape;
    constexpr std::size_t kCount = 300;
    for (std::size_t i = 0; i < kCount; ++i) {
        library::Cartridge& each = tape.library->cartridges.emplace_back();
        each.barcode = "T" + std::to_string(99999 - i) + "L9";
        each.state = library::CartridgeState::kSuspect;
        each.reason = "shorter than its catalogue";
    }
    tape.library->drive_rows = {
        {.name = "drive0", .serial = {}, .technology = "lto9", .barcode = "T99999L9"}};
    std::vector<std::string> barcodes;
    std::string cursor;
    for (bool is_end = false; !is_end;) {
        const FakeFop& fop = tape.call("media", fop::Media{.cursor = cursor});
        REQUIRE(fop.status() == fop::Status::kDone);
        const auto entries = fop::read_media(fop.answer->payload);
        REQUIRE(entries.has_value());
        REQUIRE_FALSE(entries->empty());
        for (const fop::MediumEntry& each : *entries) {
            barcodes.emplace_back(each.barcode);
            CHECK(each.state == "suspect");
            CHECK(each.drive == (each.barcode == "T99999L9" ? "drive0" : ""));
        }
        const auto& reply = std::get<fop::MediaReply>(fop.answer->body);
        cursor = std::string(reply.cursor);
        is_end = reply.end;
    }
    REQUIRE(barcodes.size() == kCount);
    CHECK(std::ranges::is_sorted(barcodes));
    // New ones are looked for at the beginning of a list.
    CHECK(tape.library->looks == 1);
}

TEST_CASE("reqh tape: while the library is not open that is said at once", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const fop::Fid fid = tape.object_on_tape(1, "one");
    REQUIRE(tape.status_of("stage", fop::Stage{.fid = fid}) == fop::Status::kDone);
    const std::array fids{fid};
    const std::vector<std::pair<std::string_view, fop::RequestBody>> all{
        {"media", fop::Media{}},
        {"recalls", fop::Recalls{}},
        {"recall_wait", fop::RecallWait{.fids = fids, .patience_ms = 1}},
        {"format_medium", fop::FormatMedium{.name = "TAPE01L9"}},
        {"load_medium", fop::LoadMedium{.name = "TAPE01L9", .drive = "d9"}},
        {"unload_drive", fop::UnloadDrive{.drive = "d9"}}};

    tape.library->not_open = "the changer does not answer";
    for (const auto& [type, body] : all) {
        CAPTURE(type);
        const FakeFop& fop = stage.call({.type = type_of(type),
                                         .body = body,
                                         .pool = type == "format_medium" ? "fast" : "",
                                         .rights = fop::kAllRights});
        CHECK(fop.status() == fop::Status::kBusy);
        CHECK(fop.answer->words == "the tape library is not open: the changer does not answer");
    }
    CHECK(tape.library->formatted.empty());
    CHECK(tape.library->unloaded.empty());

    // It is opened soon after the start of the node.
    tape.library->not_open = "";
    CHECK(tape.status_of("media", fop::Media{}) == fop::Status::kTryAgain);
    CHECK(tape.status_of("unload_drive", fop::UnloadDrive{.drive = "d9"}) ==
          fop::Status::kTryAgain);
    CHECK(tape.status_of("recalls", fop::Recalls{}) == fop::Status::kDone);
    tape.library->not_open.reset();
    CHECK(tape.status_of("media", fop::Media{}) == fop::Status::kDone);
}

TEST_CASE("reqh tape: media are changed by administrators, through the library", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const auto format = [&](fop::Rights rights) -> const FakeFop& {
        return stage.call({.type = type_of("format_medium"),
                           .body = fop::FormatMedium{.name = "TAPE01L9", .forget_data = true},
                           .pool = "fast",
                           .rights = rights});
    };
    CHECK(format(fop::kRead | fop::kWrite).status() == fop::Status::kDenied);
    REQUIRE(tape.library->formatted.empty());
    CHECK(format(fop::kAllRights).status() == fop::Status::kDone);
    REQUIRE(tape.library->formatted.size() == 1);
    CHECK(tape.library->formatted[0].barcode == "TAPE01L9");
    CHECK(tape.library->formatted[0].pool == "fast");
    CHECK(tape.library->formatted[0].force == library::FormatForce::kForgetData);

    using Kind = library::MediaOutcome::Kind;
    tape.library->outcome = {.kind = Kind::kRefused, .words = "objects need it"};
    const FakeFop& refused = format(fop::kAllRights);
    CHECK(refused.status() == fop::Status::kExists);
    CHECK(refused.answer->words == "objects need it");
    tape.library->outcome = {.kind = Kind::kNoSuchDrive, .words = "there is no drive d9"};
    CHECK(tape.status_of("load_medium", fop::LoadMedium{.name = "TAPE01L9", .drive = "d9"}) ==
          fop::Status::kNotFound);
    CHECK(tape.library->loaded.at(0).drive == "d9");
    CHECK(tape.status_of("unload_drive", fop::UnloadDrive{.drive = "d9"}) ==
          fop::Status::kNotFound);
    CHECK(tape.library->unloaded == std::vector<std::string>{"d9"});
}

TEST_CASE("reqh tape: a sync of a pool waits for the library", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    tape.library->sync_takes = 10min;
    const FopSpec spec{.type = type_of("sync_tape"), .body = fop::SyncTape{}, .pool = "cold"};
    const FakeFop& done = stage.send(spec);
    stage.run_for(9min);
    CHECK_FALSE(done.answer.has_value());
    stage.run_for(2min);
    CHECK(done.status() == fop::Status::kDone);
    CHECK(tape.library->synced == std::vector<std::string>{"cold"});

    FopSpec of_disks = spec;
    of_disks.pool = "fast";
    CHECK(stage.call(of_disks).status() == fop::Status::kNotFound);
    FopSpec denied = spec;
    denied.rights = fop::kRead;
    CHECK(stage.call(denied).status() == fop::Status::kDenied);

    FopSpec late = spec;
    late.deadline = after(stage.world.now(), 1min);
    const FakeFop& timed_out = stage.call(late, 1);
    CHECK(timed_out.status() == fop::Status::kTimedOut);
    CHECK(timed_out.answer->words.find("are on tape yet") != std::string_view::npos);
    tape.library->sync_takes = Duration::zero();
    tape.library->sync_result =
        std::unexpected(Error{.code = Errc::kNotFound, .context = "not a tape pool"});
    CHECK(stage.call(spec).status() == fop::Status::kNotFound);
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

TEST_CASE("reqh tape: drives are taken down and brought up by administrators", "[reqh]") {
    TapeStage tape;
    const auto set = [&](bool down, fop::Rights rights) {
        return tape.stage
            .call({.type = type_of("set_drive"),
                   .body = fop::SetDrive{.drive = "drive0", .down = down},
                   .rights = rights})
            .status();
    };
    CHECK(set(true, fop::kRead | fop::kWrite) == fop::Status::kDenied);
    CHECK(set(true, fop::kAllRights) == fop::Status::kDone);
    CHECK(set(false, fop::kAllRights) == fop::Status::kDone);
    CHECK(tape.library->taken_down == std::vector<std::string>{"drive0"});
    CHECK(tape.library->brought_up == std::vector<std::string>{"drive0"});
}

TEST_CASE("reqh tape: cartridges are exported and imported by administrators", "[reqh]") {
    TapeStage tape;
    StoreStage& stage = tape.stage;
    const auto ask = [&](std::string_view type, const fop::RequestBody& body,
                         fop::Rights rights) -> const FakeFop& {
        return stage.call({.type = type_of(type), .body = body, .rights = rights});
    };
    const fop::ExportMedium wish{.name = "TAPE01L9", .hide_objects = true};
    CHECK(ask("export_medium", wish, fop::kRead | fop::kWrite).status() == fop::Status::kDenied);
    CHECK(ask("import_media", fop::ImportMedia{}, fop::kRead | fop::kWrite).status() ==
          fop::Status::kDenied);
    REQUIRE(tape.library->exported.empty());
    REQUIRE(tape.library->imported.empty());

    tape.library->outcome.objects = 12;
    tape.library->outcome.only_here = 3;
    tape.library->outcome.is_in_exchange = true;
    const FakeFop& exported = ask("export_medium", wish, fop::kAllRights);
    REQUIRE(exported.status() == fop::Status::kDone);
    const fop::ExportMediumReply told{.objects = 12, .only_here = 3, .in_exchange = true};
    CHECK(std::get<fop::ExportMediumReply>(exported.answer->body) == told);
    CHECK(tape.library->exported.at(0).barcode == "TAPE01L9");
    CHECK(tape.library->exported.at(0).hides_objects);

    tape.library->outcome.imported = {
        {.id = 1, .barcode = "TAPE01L9", .state = library::CartridgeState::kReadOnly}};
    const FakeFop& imported = ask("import_media", fop::ImportMedia{}, fop::kAllRights);
    REQUIRE(imported.status() == fop::Status::kDone);
    CHECK(std::get<fop::ImportMediaReply>(imported.answer->body).total == 1);
    const auto entries = fop::read_media(imported.answer->payload);
    REQUIRE(entries.has_value());
    CHECK(entries->at(0).barcode == "TAPE01L9");
    CHECK(entries->at(0).state == "read-only");
    CHECK(tape.library->imported == std::vector<std::string>{""});

    using Kind = library::MediaOutcome::Kind;
    tape.library->outcome = {.kind = Kind::kRefused, .words = "cartridge TAPE01L9 is in use"};
    const FakeFop& refused = ask("export_medium", wish, fop::kAllRights);
    CHECK(refused.status() == fop::Status::kExists);
    CHECK(refused.answer->words == "cartridge TAPE01L9 is in use");
}

TEST_CASE("reqh tape: a repack is ordered by administrators, and tells all of its failures",
          "[reqh]") {
    TapeStage tape;
    using Order = fop::MediumWork::Order;
    const auto ask = [&](Order order, std::uint32_t first, fop::Rights rights) -> const FakeFop& {
        return tape.stage.call(
            {.type = type_of("medium_work"),
             .body = fop::MediumWork{.name = "TAPE01L9", .order = order, .first = first},
             .rights = rights});
    };
    CHECK(ask(Order::kBegin, 0, fop::kRead | fop::kWrite).status() == fop::Status::kDenied);
    REQUIRE(tape.library->repacked.empty());
    const FakeFop& begun = ask(Order::kBegin, 0, fop::kAllRights);
    REQUIRE(begun.status() == fop::Status::kDone);
    CHECK(std::get<fop::MediumWorkReply>(begun.answer->body).state ==
          fop::MediumWorkReply::State::kNone);
    CHECK(tape.library->repacked == std::vector<std::string>{"TAPE01L9"});

    library::MediumWork& work = tape.library->work.emplace();
    work.state = library::MediumWork::State::kPartly;
    work.reason = "some copies could not be moved";
    work.copies = 4000;
    for (std::uint32_t i = 0; i < 1200; ++i) {
        work.add({.fid = {}, .file = i, .name = {}, .reason = std::string(100, 'x')});
    }
    std::uint32_t first = 0;
    while (first < 1000) {
        const FakeFop& shown = ask(Order::kShow, first, fop::kAllRights);
        REQUIRE(shown.status() == fop::Status::kDone);
        const auto& reply = std::get<fop::MediumWorkReply>(shown.answer->body);
        CHECK(reply.state == fop::MediumWorkReply::State::kPartly);
        CHECK(reply.failures == 1200);
        CHECK(reply.listed == 1000);
        CHECK(reply.reason == work.reason);
        const auto entries = fop::read_failed_copies(shown.answer->payload);
        REQUIRE(entries.has_value());
        REQUIRE_FALSE(entries->empty());
        for (const fop::FailedCopyEntry& each : *entries) CHECK(each.file == first++);
    }
    CHECK(tape.library->repacked.size() == 1);
    using Kind = library::MediaOutcome::Kind;
    tape.library->outcome = {.kind = Kind::kRefused, .words = "it is not repacked"};
    const FakeFop& refused = ask(Order::kEnd, 0, fop::kAllRights);
    CHECK(refused.status() == fop::Status::kExists);
    CHECK(refused.answer->words == "it is not repacked");
}

TEST_CASE("reqh tape: a rescue is ordered by administrators, and has a pool", "[reqh]") {
    TapeStage tape;
    const auto ask = [&](fop::Rights rights) {
        return tape.stage
            .call({.type = type_of("medium_work"),
                   .body = fop::MediumWork{.name = "TAPE01L9",
                                           .kind = fop::MediumWork::Kind::kRescue,
                                           .order = fop::MediumWork::Order::kBegin},
                   .pool = "cold",
                   .rights = rights})
            .status();
    };
    CHECK(ask(fop::kRead | fop::kWrite) == fop::Status::kDenied);
    REQUIRE(tape.library->rescued.empty());
    REQUIRE(ask(fop::kAllRights) == fop::Status::kDone);
    REQUIRE(tape.library->rescued.size() == 1);
    CHECK(tape.library->rescued.front().barcode == "TAPE01L9");
    CHECK(tape.library->rescued.front().pool == "cold");
    CHECK(tape.library->repacked.empty());
}

}  // namespace fopd::reqh::testing::tape_fops
