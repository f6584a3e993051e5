// Goal: a drive or a cartridge that fails holds up nothing else: another drive takes over, with the
// cartridge.

#include <memory>
#include <vector>

#include "tests/io_sched/library_stage.h"

namespace drive_failures_test {

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;

TEST_CASE("io_sched tape: a cartridge in a drive that goes down is read in another", "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.load(1, MediumId{1});
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kDown);
        TapeRequest read(IoType::kRead, {MediumId{1}});
        TapeRequest write(IoType::kWrite, {MediumId{1}});
        stage.push(read);
        stage.push(write);
        stage.settle();
        CHECK(read.ended_well());
        CHECK(write.ended_well());
        CHECK(stage.drive[0]->medium() == std::nullopt);
        CHECK(stage.drive[1]->medium() == MediumId{1});
    }
}

TEST_CASE("io_sched tape: a cartridge stays in a drive that is used otherwise", "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.load(1, MediumId{1});
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kHeld);
        TapeRequest read(IoType::kRead, {MediumId{1}});
        stage.push(read);
        stage.settle();
        CHECK(read.completed == 0);
        CHECK(stage.drive[0]->medium() == MediumId{1});
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kReady);
        stage.settle();
        CHECK(read.ended_well());
        CHECK(stage.log.begun == std::vector<DriveLog::Operation>{{1, MediumId{1}, 0}});
    }
}

TEST_CASE("io_sched tape: what is stuck in a drive is read from another copy, or fails",
          "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.load(1, MediumId{1});
        stage.log.stuck_drives = {1};
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kDown);
        TapeRequest single(IoType::kRead, {MediumId{1}});
        TapeRequest copied(IoType::kRead, {MediumId{1}, MediumId{2}});
        stage.push(single);
        stage.push(copied);
        stage.settle();
        CHECK(single.ended_with(Errc::kIo));
        CHECK(copied.ended_well());
        // Each is tried with the other drive twice.
        CHECK(stage.log.not_begun == 4);
    }
}

TEST_CASE("io_sched tape: a read whose only drive is down uses another copy", "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(1, settings);
        IoMedium newer = LibraryStage::cartridge(20);
        newer.technology = "lto8";
        stage.main->put_medium(newer);
        const auto added = stage.main->add_drive(
            {.number = 2, .technology = "lto8"},
            std::make_unique<TimedDrive>(*stage.reactor, std::uint8_t{2}, stage.log));
        REQUIRE(added.has_value());
        // Waits for a drive of its kind, which goes down.
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kHeld);
        TapeRequest read(IoType::kRead, {MediumId{1}, MediumId{20}});
        TapeRequest single(IoType::kRead, {MediumId{1}});
        TapeRequest busy(IoType::kRead, {MediumId{20}});
        stage.push(busy);
        stage.world.run_for(1s);
        stage.push(single);
        stage.push(read);
        stage.world.run_for(1s);
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kDown);
        stage.settle();
        CHECK(read.ended_well());
        CHECK(stage.log.begun.back().medium == MediumId{20});
        // It waits for its drive.
        CHECK(single.completed == 0);
    }
}

TEST_CASE("io_sched tape: a read that waits for another drive holds up no read of its cartridge",
          "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.log.bad_drives = {1};
        TapeRequest failing(IoType::kRead, {MediumId{1}});
        stage.push(failing);
        stage.world.run_for(1s);
        std::vector<std::unique_ptr<TapeRequest>> others;
        for (std::uint64_t i = 0; i < 200; ++i) {
            others.push_back(std::make_unique<TapeRequest>(
                IoType::kRead, std::initializer_list<MediumId>{MediumId{2}}, i * kGiB));
            stage.push(*others.back());
        }
        stage.world.run_for(72s);
        CHECK(failing.completed == 0);
        stage.log.bad_drives = {};
        TapeRequest behind(IoType::kRead, {MediumId{1}});
        stage.push(behind);
        // With fifo the older one gets the other drive at once, and the cartridge with it.
        const bool is_fifo = settings == IoSchedSettings{};
        stage.world.run_for(is_fifo ? 2min : 11s);
        CHECK(behind.ended_well());
        stage.settle();
        CHECK(behind.ended_well());
        CHECK(failing.ended_well());
        for (const auto& read : others) CHECK(read->ended_well());
    }
}

TEST_CASE("io_sched tape: a read that failed ends though its other drive goes down", "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.log.bad_drives = {1};
        TapeRequest busy(IoType::kRead, {MediumId{2}});
        TapeRequest failing(IoType::kRead, {MediumId{1}});
        stage.push(failing);
        stage.world.run_for(5s);
        stage.push(busy);
        stage.world.run_for(66s);
        CHECK(failing.completed == 0);
        stage.main->set_drive_state(*stage.drive[1], DeviceState::kDown);
        stage.settle();
        CHECK(failing.ended_with(Errc::kIo));
    }
}

TEST_CASE("io_sched tape: a read that failed does not wait for a drive of another scheduler",
          "[io_sched]") {
    for (const std::string_view name : {"fifo", "grouped_read"}) {
        IoMedia media;
        media.put(LibraryStage::cartridge(1));
        IoDevice own(IoDevice::Drive{.number = 1, .technology = "lto9"});
        IoDevice other(IoDevice::Drive{.number = 2, .technology = "lto9"});
        media.add_drive(own);
        media.add_drive(other);
        own.set_medium(MediumId{1});
        const auto scheduler = named(drive_algorithms(), name)->make(TapeSettings{}, media);
        scheduler->add_device(own);
        TapeRequest read(IoType::kRead, {MediumId{1}});
        read.stamp(1, Instant{});
        read.parts[0].failed_on = 1;
        scheduler->push_request(read);
        CHECK(scheduler->peek_request(Instant{}) == &read);

        scheduler->add_device(other);
        CHECK(scheduler->peek_request(Instant{}) == &read);
        const auto pair = scheduler->get_device_medium_pair(read, Instant{});
        REQUIRE(pair.has_value());
        REQUIRE(pair->has_value());
        scheduler->remove_request(read);
    }
}

TEST_CASE("io_sched tape: a drive goes on while what has waited for too long cannot use it",
          "[io_sched]") {
    IoSchedSettings settings = grouped();
    settings.tape.grouped_read_max_wait = 20min;
    LibraryStage stage(2, settings);
    stage.log.bad_drives = {1};
    TapeRequest failing(IoType::kRead, {MediumId{1}});
    stage.push(failing);
    stage.world.run_for(1s);
    std::vector<std::unique_ptr<TapeRequest>> reads;
    for (std::uint32_t i = 0; i < 1200; ++i) {
        reads.push_back(std::make_unique<TapeRequest>(
            IoType::kRead, std::initializer_list<MediumId>{MediumId{1 + i % 2}}, i * kGiB));
        stage.push(*reads.back());
    }
    stage.world.run_for(70s);
    stage.log.bad_drives = {};
    CHECK(failing.completed == 0);
    stage.world.run_for(60min);
    // It got the other drive after max_wait, and both were used nearly all the time.
    CHECK(failing.ended_well());
    const auto done =
        std::ranges::count_if(reads, [](const auto& each) { return each->completed; });
    CHECK(done >= 2 * 6 * 55);
    stage.settle();
    for (const auto& read : reads) CHECK(read->ended_well());
}

TEST_CASE("io_sched tape: a cartridge that a drive gives back is waited for", "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.load(1, MediumId{1});
        stage.load(2, MediumId{2});
        TapeRequest other(IoType::kRead, {MediumId{3}});
        stage.push(other);
        stage.world.run_for(1s);
        TapeRequest back(IoType::kRead, {MediumId{1}});
        stage.push(back);
        stage.settle();
        CHECK(other.ended_well());
        CHECK(back.ended_well());
        CHECK(stage.log.begun.size() == 2);
    }
}

TEST_CASE("io_sched tape: a write that its drive fails is tried on another", "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.log.bad_drives = {1};
        TapeRequest write(IoType::kWrite, {kAnyMedium});
        stage.push(write);
        stage.settle();
        CHECK(write.ended_well());
        REQUIRE(stage.log.begun.size() == 2);
        CHECK(stage.log.begun[0].medium == stage.log.begun[1].medium);
        stage.log.bad_drives = {1, 2};
        TapeRequest hopeless(IoType::kWrite, {kAnyMedium});
        stage.push(hopeless);
        stage.settle();
        CHECK(hopeless.ended_with(Errc::kIo));
        CHECK(stage.log.begun.size() == 4);
    }
}

TEST_CASE("io_sched tape: a drive that gives its cartridge back late costs the other drive nothing",
          "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        for (const IoType type : {IoType::kRead, IoType::kWrite}) {
            LibraryStage stage(2, settings);
            stage.load(1, MediumId{1});
            stage.log.slow_to_give = {1};
            stage.main->set_drive_state(*stage.drive[0], DeviceState::kDown);
            TapeRequest request(type, {MediumId{1}});
            stage.push(request);
            stage.settle();
            CHECK(request.ended_well());
            CHECK(request.parts[0].failed_on == 1);
            CHECK(stage.log.not_begun == 1);
            CHECK(stage.drive[0]->medium() == std::nullopt);
            CHECK(stage.drive[1]->medium() == MediumId{1});
        }
    }
}

TEST_CASE("io_sched tape: a write that its drive does not answer is tried on another",
          "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.log.silent_drives = {1};
        TapeRequest write(IoType::kWrite, {kAnyMedium});
        stage.push(write);
        stage.settle();
        CHECK(write.ended_well());
        CHECK(stage.log.begun.size() == 2);
    }
}

}  // namespace drive_failures_test
