// Goal: the main scheduler serves drives: cartridges change as their scheduler decides, failures go
// to another drive or cartridge, and nothing that cannot go holds up anything else.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "tests/io_sched/library_stage.h"

namespace drives_test {

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;

namespace {

std::vector<std::unique_ptr<TapeRequest>> interleaved_reads(LibraryStage& stage) {
    std::vector<std::unique_ptr<TapeRequest>> reads;
    for (std::uint32_t i = 0; i < 100; ++i) {
        reads.push_back(std::make_unique<TapeRequest>(
            IoType::kRead, std::initializer_list<MediumId>{MediumId{1 + i % 10}}, i * kGiB));
        stage.push(*reads.back());
    }
    return reads;
}

}  // namespace

TEST_CASE("io_sched tape: grouped reads mount each cartridge once, fifo again and again",
          "[io_sched]") {
    LibraryStage fifo(2);
    const auto fifo_reads = interleaved_reads(fifo);
    fifo.settle();
    for (const auto& read : fifo_reads) CHECK(read->ended_well());
    CHECK(fifo.log.mounts >= 90);

    LibraryStage stage(2, grouped());
    const auto reads = interleaved_reads(stage);
    stage.settle();
    for (const auto& read : reads) CHECK(read->ended_well());
    CHECK(stage.log.mounts == 10);
    CHECK(stage.log.running_max == 2);
}

TEST_CASE("io_sched tape: a read that failed is tried on another drive, then on another cartridge",
          "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        stage.log.bad_drives = {1};
        TapeRequest other_drive(IoType::kRead, {MediumId{1}});
        stage.push(other_drive);
        stage.settle();
        CHECK(other_drive.ended_well());
        CHECK(stage.log.begun ==
              std::vector<DriveLog::Operation>{{1, MediumId{1}, 0}, {2, MediumId{1}, 0}});

        stage.log.bad_drives = {};
        stage.log.bad_media = {MediumId{2}};
        stage.log.begun.clear();
        TapeRequest other_medium(IoType::kRead, {MediumId{2}, MediumId{3}});
        stage.push(other_medium);
        stage.settle();
        CHECK(other_medium.ended_well());
        REQUIRE(stage.log.begun.size() == 3);
        CHECK(stage.log.begun[0].medium == MediumId{2});
        CHECK(stage.log.begun[1].medium == MediumId{2});
        CHECK(stage.log.begun[1].drive != stage.log.begun[0].drive);
        CHECK(stage.log.begun[2].medium == MediumId{3});

        TapeRequest hopeless(IoType::kRead, {MediumId{2}});
        stage.push(hopeless);
        stage.settle();
        CHECK(hopeless.ended_with(Errc::kIo));
    }
}

TEST_CASE("io_sched tape: what waits for a cartridge that goes moves to another copy or fails",
          "[io_sched]") {
    LibraryStage stage(1, grouped());
    TapeRequest busy(IoType::kRead, {MediumId{9}});
    TapeRequest copied(IoType::kRead, {MediumId{1}, MediumId{2}});
    TapeRequest single(IoType::kRead, {MediumId{1}});
    TapeRequest unknown(IoType::kRead, {MediumId{77}});
    for (TapeRequest* const request : {&busy, &copied, &single, &unknown}) stage.push(*request);
    stage.world.run_for(1s);
    CHECK(unknown.ended_with(Errc::kNotFound));

    IoMedium gone = LibraryStage::cartridge(1);
    gone.use = MediumUse::kNone;
    stage.main->put_medium(gone);
    stage.world.run_for(1s);
    CHECK(single.ended_with(Errc::kNotFound));
    CHECK(copied.completed == 0);
    stage.settle();
    CHECK(copied.ended_well());
    CHECK(stage.log.begun.back().medium == MediumId{2});
}

TEST_CASE("io_sched tape: a cartridge in a busy drive holds up no other type or cartridge",
          "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        TapeRequest first(IoType::kRead, {MediumId{1}});
        TapeRequest blocked(IoType::kRead, {MediumId{1}});
        TapeRequest write(IoType::kWrite, {kAnyMedium});
        stage.push(first);
        stage.world.run_for(1s);
        stage.push(blocked);
        stage.push(write);
        stage.world.run_for(1s);

        REQUIRE(stage.log.begun.size() == 2);
        CHECK(stage.log.begun[1].drive == 2);
        stage.settle();
        CHECK(blocked.ended_well());
        CHECK(write.ended_well());
        CHECK(write.parts[0].medium != kAnyMedium);
    }
}

TEST_CASE("io_sched tape: a write of several copies gets all its drives at once, or none",
          "[io_sched]") {
    for (const IoSchedSettings& settings : {IoSchedSettings{}, grouped()}) {
        LibraryStage stage(2, settings);
        TapeRequest busy(IoType::kRead, {MediumId{1}});
        TapeRequest copies(IoType::kWrite, {kAnyMedium, kAnyMedium});
        TapeRequest other(IoType::kRead, {MediumId{2}});
        stage.push(busy);
        stage.push(copies);
        stage.world.run_for(1s);
        // It holds no drive while it waits: a younger request has the other one.
        CHECK(stage.drive[1]->is_idle());
        stage.push(other);
        stage.world.run_for(1s);
        CHECK_FALSE(stage.drive[1]->is_idle());
        stage.settle();

        CHECK(copies.ended_well());
        REQUIRE(stage.log.begun.size() == 4);
        CHECK(copies.parts[0].medium != copies.parts[1].medium);
        CHECK(stage.log.begun[2].drive != stage.log.begun[3].drive);
    }
}

TEST_CASE("io_sched tape: a write for which no cartridge has space fails", "[io_sched]") {
    LibraryStage stage(1, grouped());
    TapeRequest large(IoType::kWrite, {kAnyMedium});
    large.own_parts[0].size_bytes = 20'000 * kGiB;
    TapeRequest elsewhere(IoType::kWrite, {kAnyMedium});
    elsewhere.pool = 5;
    stage.push(large);
    stage.push(elsewhere);
    stage.world.run_for(1s);

    CHECK(large.ended_with(Errc::kNoSpace));
    CHECK(elsewhere.ended_with(Errc::kNoSpace));
}

TEST_CASE("io_sched tape: collections stay on their cartridges", "[io_sched]") {
    LibraryStage stage(2, grouped());
    std::vector<std::unique_ptr<TapeRequest>> writes;
    for (std::uint64_t i = 0; i < 40; ++i) {
        writes.push_back(std::make_unique<TapeRequest>(
            IoType::kWrite, std::initializer_list<MediumId>{kAnyMedium}));
        writes.back()->collection = 1 + i % 2;
        stage.push(*writes.back());
    }
    stage.settle();

    CHECK(stage.log.mounts == 2);
    for (std::uint64_t i = 0; i < 40; ++i) {
        CHECK(writes[i]->ended_well());
        CHECK(writes[i]->parts[0].medium == writes[i % 2]->parts[0].medium);
    }
}

TEST_CASE("io_sched tape: a cartridge is mounted when enough waits, or when it has waited enough",
          "[io_sched]") {
    IoSchedSettings settings = grouped();
    settings.tape.grouped_read_mount_files = 3;
    settings.tape.grouped_read_mount_age = 10min;
    LibraryStage stage(2, settings);
    std::vector<std::unique_ptr<TapeRequest>> enough;
    for (std::uint64_t i = 0; i < 3; ++i) {
        CHECK(stage.log.mounts == 0);
        enough.push_back(std::make_unique<TapeRequest>(
            IoType::kRead, std::initializer_list<MediumId>{MediumId{1}}, i));
        stage.push(*enough.back());
        stage.world.run_for(1s);
    }
    CHECK(stage.log.mounts == 1);
    TapeRequest alone(IoType::kRead, {MediumId{2}});
    stage.push(alone);
    stage.world.run_for(599s);
    CHECK(stage.log.mounts == 1);
    // Nothing happens but that the time passes.
    stage.world.run_for(2s);
    CHECK(stage.log.mounts == 2);
}

TEST_CASE(
    "io_sched tape: a single read of one cartridge waits no longer than max_wait for a popular "
    "one",
    "[io_sched]") {
    IoSchedSettings settings = grouped();
    settings.tape.grouped_read_max_wait = 20min;
    LibraryStage stage(1, settings);
    std::vector<std::unique_ptr<TapeRequest>> popular;
    for (std::uint64_t i = 0; i < 1000; ++i) {
        popular.push_back(std::make_unique<TapeRequest>(
            IoType::kRead, std::initializer_list<MediumId>{MediumId{1}}, i * kGiB));
        stage.push(*popular.back());
    }
    stage.world.run_for(1s);
    TapeRequest single(IoType::kRead, {MediumId{2}});
    stage.push(single);

    stage.world.run_for(19min);
    CHECK(single.completed == 0);
    stage.world.run_for(1min + 90s);
    CHECK(single.ended_well());
    stage.settle();
    for (const auto& read : popular) CHECK(read->ended_well());
    CHECK(stage.log.mounts == 3);
}

TEST_CASE("io_sched tape: the background waits no longer than max_wait for a popular cartridge",
          "[io_sched]") {
    for (const bool is_grouped : {false, true}) {
        IoSchedSettings settings = is_grouped ? grouped() : IoSchedSettings{};
        settings.tape.grouped_read_max_wait = 20min;
        LibraryStage stage(1, settings);
        std::vector<std::unique_ptr<TapeRequest>> popular;
        const auto push = [&] {
            popular.push_back(std::make_unique<TapeRequest>(
                IoType::kRead, std::initializer_list<MediumId>{MediumId{1}},
                popular.size() * kGiB));
            stage.push(*popular.back());
        };
        push();
        push();
        std::vector<std::unique_ptr<TapeRequest>> background;
        for (std::uint64_t i = 0; i < 20; ++i) {
            background.push_back(std::make_unique<TapeRequest>(
                IoType::kRead, std::initializer_list<MediumId>{MediumId{1}}, i * kGiB));
            background.back()->priority = IoPriority::kBackground;
            stage.push(*background.back());
        }
        // There is always one that waits while another is read.
        const auto go_on_for = [&](Duration span) {
            for (const Instant end = stage.world.now() + span; stage.world.now() < end;) {
                stage.world.run_for(10s);
                push();
            }
        };
        go_on_for(is_grouped ? 19min : 5min);
        CHECK(background.back()->completed == 0);
        CHECK(background.front()->completed == (is_grouped ? 0 : 1));
        const std::size_t before = popular.size();
        go_on_for(60min);
        for (const auto& read : background) CHECK(read->ended_well());
        // The foreground goes on meanwhile.
        CHECK(popular[before + 10]->ended_well());
        stage.settle();
        for (const auto& read : popular) CHECK(read->ended_well());
        CHECK(stage.log.mounts == 1);
    }
}

TEST_CASE("io_sched tape: a read that is far away is not passed by without end", "[io_sched]") {
    IoSchedSettings settings = grouped();
    settings.tape.grouped_read_max_wait = 5min;
    LibraryStage stage(1, settings);
    // Two cartridges that are wanted more than the drive can read, always near their beginning.
    std::vector<std::unique_ptr<TapeRequest>> popular;
    const auto go_on_for_a_minute = [&] {
        std::array<std::size_t, 2> waiting{};
        for (const auto& read : popular) {
            const auto medium = static_cast<std::size_t>(read->own_parts[0].medium);
            if (read->completed == 0) ++waiting[medium - 1];
        }
        for (std::uint32_t medium = 1; medium <= 2; ++medium) {
            for (std::size_t i = waiting[medium - 1]; i < 60; ++i) {
                popular.push_back(std::make_unique<TapeRequest>(
                    IoType::kRead, std::initializer_list<MediumId>{MediumId{medium}},
                    (popular.size() % 8) * kGiB));
                stage.push(*popular.back());
            }
        }
        stage.world.run_for(1min);
    };
    for (int i = 0; i < 60; ++i) go_on_for_a_minute();
    // At the other end of the tape.
    TapeRequest far_away(IoType::kRead, {MediumId{1}}, 55 * kGiB);
    stage.push(far_away);
    for (int i = 0; i < 60 && far_away.completed == 0; ++i) go_on_for_a_minute();
    CHECK(far_away.ended_well());
    stage.settle();
}

TEST_CASE("io_sched tape: a read that has waited for too long waits for few that came later",
          "[io_sched]") {
    // Whether it has waited for too long before the others are planned, or only afterwards.
    for (const Duration held : {25min, 15min}) {
        CAPTURE(held);
        IoSchedSettings settings = grouped();
        settings.tape.grouped_read_max_wait = 20min;
        LibraryStage stage(1, settings);
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kHeld);
        TapeRequest far_away(IoType::kRead, {MediumId{1}}, 17'000 * kGiB);
        stage.push(far_away);
        stage.world.run_for(held);
        std::vector<std::unique_ptr<TapeRequest>> later;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            later.push_back(std::make_unique<TapeRequest>(
                IoType::kRead, std::initializer_list<MediumId>{MediumId{1}}, i * kGiB));
            stage.push(*later.back());
        }
        stage.main->set_drive_state(*stage.drive[0], DeviceState::kReady);
        std::size_t before = 0;
        while (far_away.completed == 0) {
            stage.world.run_for(1s);
            if (stage.world.now() - far_away.arrived_at() >= 20min) continue;
            before =
                static_cast<std::size_t>(std::ranges::count(later, 1, &TapeRequest::completed));
        }
        const auto passed =
            static_cast<std::size_t>(std::ranges::count(later, 1, &TapeRequest::completed));
        CHECK(passed - before <= 17);
        stage.settle();
        for (const auto& read : later) CHECK(read->ended_well());
        CHECK(stage.log.mounts == 1);
    }
}

TEST_CASE("io_sched tape: the most urgent go first, on a cartridge and among cartridges",
          "[io_sched]") {
    LibraryStage stage(1, grouped());
    stage.load(1, MediumId{1});
    std::vector<std::unique_ptr<TapeRequest>> reads;
    const auto push = [&](std::uint32_t medium, std::uint64_t offset, int urgency,
                          IoPriority priority = IoPriority::kForeground) {
        reads.push_back(std::make_unique<TapeRequest>(
            IoType::kRead, std::initializer_list<MediumId>{MediumId{medium}}, offset * kGiB));
        reads.back()->urgency = static_cast<std::uint8_t>(urgency);
        reads.back()->priority = priority;
        stage.push(*reads.back());
    };
    // One that is being read, so that all others wait.
    push(1, 100, 0);
    // The most bytes wait for cartridge 2, and for cartridge 3 the most urgent.
    for (const std::uint64_t offset : {21U, 22U, 23U}) push(2, offset, 10);
    push(3, 31, 200);
    // Along the tape, but those of a lower urgency later, and the background last.
    push(1, 11, 5);
    push(1, 12, 10);
    push(1, 13, 7);
    push(1, 14, 10);
    push(1, 15, 255, IoPriority::kBackground);
    stage.settle();
    for (const auto& read : reads) CHECK(read->ended_well());
    std::vector<std::uint64_t> order;
    for (const DriveLog::Operation& each : stage.log.begun) order.push_back(each.offset / kGiB);
    CHECK(order == std::vector<std::uint64_t>{100, 12, 14, 13, 11, 15, 31, 21, 22, 23});
}

TEST_CASE("io_sched tape: the least urgent wait no longer than max_wait for more urgent ones",
          "[io_sched]") {
    for (const bool is_grouped : {false, true}) {
        IoSchedSettings settings = is_grouped ? grouped() : IoSchedSettings{};
        settings.tape.grouped_read_max_wait = 20min;
        LibraryStage stage(1, settings);
        std::vector<std::unique_ptr<TapeRequest>> urgent;
        const auto push = [&] {
            urgent.push_back(std::make_unique<TapeRequest>(
                IoType::kRead, std::initializer_list<MediumId>{MediumId{1}}, urgent.size() * kGiB));
            // Of two levels, so that there are three.
            urgent.back()->urgency = static_cast<std::uint8_t>(128 + urgent.size() % 2);
            stage.push(*urgent.back());
        };
        push();
        push();
        std::vector<std::unique_ptr<TapeRequest>> low;
        for (std::uint64_t i = 0; i < 10; ++i) {
            low.push_back(std::make_unique<TapeRequest>(
                IoType::kRead, std::initializer_list<MediumId>{MediumId{1}}, i * kGiB));
            low.back()->urgency = 1;
            stage.push(*low.back());
        }
        for (const Instant end = stage.world.now() + 80min; stage.world.now() < end;) {
            stage.world.run_for(10s);
            push();
        }
        for (const auto& read : low) CHECK(read->ended_well());
        stage.settle();
        for (const auto& read : urgent) CHECK(read->ended_well());
        CHECK(stage.log.mounts == 1);
    }
}

TEST_CASE("io_sched tape: a collection whose cartridge is full goes on with another one",
          "[io_sched]") {
    LibraryStage stage(1, grouped());
    TapeRequest first(IoType::kWrite, {kAnyMedium});
    first.collection = 7;
    stage.push(first);
    stage.settle();
    REQUIRE(first.ended_well());
    const auto used = static_cast<std::uint32_t>(first.parts[0].medium);
    IoMedium full = LibraryStage::cartridge(used);
    full.collection = 7;
    full.free_bytes = kGiB / 2;
    stage.main->put_medium(full);

    // The only drive has it.
    TapeRequest second(IoType::kWrite, {kAnyMedium});
    second.collection = 7;
    stage.push(second);
    stage.settle();
    CHECK(second.ended_well());
    CHECK(second.parts[0].medium != full.id);
}

TEST_CASE("io_sched tape: reads begin near the place where the write before them has ended",
          "[io_sched]") {
    IoSchedSettings settings = grouped();
    settings.tape.grouped_read_order = ReadOrder::kSltf;
    LibraryStage stage(1, settings);
    stage.log.end_of_data = 9'000 * kGiB;
    TapeRequest write(IoType::kWrite, {MediumId{1}});
    stage.push(write);
    stage.world.run_for(1s);
    // They wait for the drive.
    TapeRequest far(IoType::kRead, {MediumId{1}}, 20 * kGiB);
    TapeRequest near(IoType::kRead, {MediumId{1}}, 9'001 * kGiB);
    stage.push(far);
    stage.push(near);
    stage.settle();
    REQUIRE(stage.log.begun.size() == 3);
    CHECK(stage.log.begun[1].offset == near.parts[0].offset);
    CHECK(stage.drive[0]->position() == far.parts[0].offset + kGiB);
}

TEST_CASE("io_sched tape: a cartridge keeps its drive for the time that it stays mounted",
          "[io_sched]") {
    IoSchedSettings settings = grouped();
    settings.tape.grouped_read_stay_mounted = 5min;
    LibraryStage stage(1, settings);
    TapeRequest first(IoType::kRead, {MediumId{1}});
    TapeRequest other(IoType::kRead, {MediumId{2}});
    TapeRequest again(IoType::kRead, {MediumId{1}});
    stage.push(first);
    stage.world.run_for(71s);
    REQUIRE(first.ended_well());
    stage.push(other);
    stage.world.run_for(2min);
    stage.push(again);
    stage.world.run_for(11s);
    CHECK(again.ended_well());
    CHECK(stage.log.mounts == 1);
    stage.world.run_for(5min + 71s);
    CHECK(other.ended_well());
}

TEST_CASE("io_sched tape: other settings take over what waits", "[io_sched]") {
    LibraryStage stage(2);
    const auto reads = interleaved_reads(stage);
    stage.world.run_for(1s);
    stage.main->use(grouped());
    stage.settle();

    for (const auto& read : reads) CHECK(read->ended_well());
    CHECK(stage.log.mounts == 10);
    CHECK(stage.main->waiting_count(IoType::kRead) == 0);
}

TEST_CASE("io_sched tape: a drive that is down gets nothing, one that is removed ends first",
          "[io_sched]") {
    LibraryStage stage(2, grouped());
    stage.main->set_drive_state(*stage.drive[0], DeviceState::kDown);
    TapeRequest first(IoType::kRead, {MediumId{1}});
    TapeRequest second(IoType::kRead, {MediumId{2}});
    stage.push(first);
    stage.push(second);
    stage.world.run_for(1s);
    REQUIRE(stage.log.begun.size() == 1);
    CHECK(stage.log.begun[0].drive == 2);

    stage.main->set_drive_state(*stage.drive[0], DeviceState::kReady);
    stage.world.run(*stage.reactor, stage.main->remove_drive(*stage.drive[1]));
    CHECK(first.ended_well());
    stage.settle();
    CHECK(second.ended_well());
    CHECK(stage.log.begun.back().drive == 1);
}

TEST_CASE("io_sched tape: a medium for which no drive is fails at once, naming it", "[io_sched]") {
    LibraryStage stage(1, grouped());
    IoMedium foreign = LibraryStage::cartridge(20);
    foreign.technology = "lto10";
    stage.main->put_medium(foreign);
    TapeRequest request(IoType::kRead, {MediumId{20}});
    stage.push(request);
    stage.world.run_for(1s);
    CHECK(request.ended_with(Errc::kNotFound));
}

// With fair_share each type has drives of its own; a read whose cartridge is in a drive of the
// writes gets that drive for one of its own.
TEST_CASE("io_sched tape: fair_share serves all types, and stops with nothing in flight",
          "[io_sched]") {
    IoSchedSettings settings = grouped();
    settings.tape.dispatch_algo = named(dispatch_algorithms(), "fair_share");
    settings.tape.request_algo = named(request_algorithms(), "fair_share");
    LibraryStage stage(4, settings);
    const auto reads = interleaved_reads(stage);
    std::vector<std::unique_ptr<TapeRequest>> writes;
    for (std::uint64_t i = 0; i < 50; ++i) {
        writes.push_back(std::make_unique<TapeRequest>(
            IoType::kWrite, std::initializer_list<MediumId>{kAnyMedium}));
        stage.push(*writes.back());
    }
    TapeRequest format(IoType::kFormat, {MediumId{12}});
    stage.push(format);
    stage.settle();

    for (const auto& read : reads) CHECK(read->ended_well());
    for (const auto& write : writes) CHECK(write->ended_well());
    CHECK(format.ended_well());
    TapeRequest late(IoType::kRead, {MediumId{3}});
    stage.push(late);
    stage.world.run_for(1s);
    REQUIRE(stage.world.run(*stage.reactor, stage.main->stop()));
    CHECK(late.completed == 1);
}

}  // namespace drives_test
