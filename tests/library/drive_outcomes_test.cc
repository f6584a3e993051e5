// Goal: drives and cartridges are judged by what their own operations come to, and by nothing else.
// Method: disks and a library in the simulated world, with faults of drives and of the disk that
// has the table of media.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "devices/tape/memory_library.h"
#include "library/drive_unit.h"
#include "library/tape_library.h"
#include "tests/catch.h"
#include "tests/library/tape_stage.h"

using namespace fopd;
using namespace fopd::library;
using namespace fopd::library::testing;

namespace {

bool none_is_judged(TapeStage& stage) {
    const auto is_good = [](const Cartridge& each) {
        return each.state == CartridgeState::kOk || each.state == CartridgeState::kBlank;
    };
    const std::vector<Cartridge> media = stage.library().media();
    return std::ranges::all_of(media, is_good);
}

std::vector<std::string> activities(TapeStage& stage) {
    std::vector<std::string> all;
    for (const DriveRow& each : stage.library().drives()) all.push_back(each.activity);
    return all;
}

// A block behind the data that no record names, as of a file that was given up, which the drive
// will not be able to keep.
Task<Result<void>> write_in_vain(devices::MemoryTape* drive, Bytes* block) {
    const auto at_end = co_await drive->to_end_of_data();
    if (!at_end) co_return at_end;
    drive->inject(devices::TapeFault::kLateWrite);
    const auto written =
        co_await drive->write({.data = block->data(), .size_bytes = block->size()});
    if (!written) co_return std::unexpected(written.error());
    co_return Result<void>{};
}

// -- a drive alone --

// What it does on the tape is to label it.
class LabelJob final : public TapeJob {
public:
    enum class Does : std::uint8_t { kLabel, kNothing, kFailElsewhere };
    Task<Result<void>> run(DriveUnit* drive, CartridgeId /*cartridge*/) override {
        ++runs;
        if (does == Does::kLabel) co_return co_await drive->format("cold");
        if (does == Does::kNothing) co_return Result<void>{};
        co_return std::unexpected(Error{.code = Errc::kIo, .context = "a disk of the node"});
    }

    Does does = Does::kNothing;
    int runs = 0;
};

class NoCopies final : public TapeCatalogue {
public:
    std::unique_ptr<store::TapeEntrySource> copies_on(const Cartridge& /*cartridge*/,
                                                      std::uint64_t /*first_file*/) override {
        return nullptr;
    }
    Task<Result<std::uint32_t>> newest_generation(store::VsnText /*vsn*/) override {
        co_return std::uint32_t{0};
    }
};

struct UnitStage {
    UnitStage()
        : reactor(world.make_reactor()),
          tapes({.drives = 1}),
          bay(tapes),
          library(*reactor, tapes, {}),
          io(*reactor, {}),
          figures({}),
          shelf({.reactor = *reactor,
                 .bay = bay,
                 .events = events,
                 .io = io,
                 .figures = figures,
                 .technologies = {"lto9"}}),
          robot({.reactor = *reactor, .events = events, .changer = library, .library = name}),
          measured(*reactor, library.drive(0), *figures.drive("drive")),
          unit({.reactor = *reactor,
                .clock = world.clock(),
                .events = events,
                .drive = measured,
                .robot = robot,
                .shelf = shelf,
                .blame = blame,
                .catalogue = catalogue}),
          executor(unit.executor()) {
        tapes.add({.barcode = "V00000L9", .capacity_bytes = 64UL << 20});
        cartridge = shelf.to_change().add("V00000L9")->id;
        shelf.show(cartridge);
    }
    ~UnitStage() { reactor->drop_coroutines(); }

    Result<void> execute(LabelJob::Does does) {
        job.does = does;
        JobRequest request([](io_sched::IoRequest& /*request*/) {}, job);
        request.type = io_sched::IoType::kFormat;
        const io_sched::IoPart part{.medium = io_sched::MediumId{cartridge}};
        const auto done = world.run(*reactor, executor->execute(request, part));
        REQUIRE(done.has_value());
        return *done;
    }
    std::uint32_t open_failures() const { return blame.open_failures(unit.name(), cartridge); }

    core::VirtualWorld world{1};
    std::unique_ptr<core::Reactor> reactor;
    NamedEvents events;
    devices::TapeLibraryImage tapes;
    StageBay bay;
    devices::MemoryLibrary library;
    io_sched::MainScheduler io;
    TapeFigures figures;
    MediaShelf shelf;
    const std::string name = "library";
    Robot robot;
    MeasuredDrive measured;
    Blame blame;
    NoCopies catalogue;
    DriveUnit unit;
    std::unique_ptr<io_sched::IoExecutor> executor;
    LabelJob job;
    CartridgeId cartridge = 0;
};

}  // namespace

TEST_CASE("library outcomes: only what is done on the tape speaks for or against a drive",
          "[library]") {
    using Does = LabelJob::Does;
    const devices::TapeFault fault =
        GENERATE(devices::TapeFault::kWrite, devices::TapeFault::kSilent);
    UnitStage stage;
    REQUIRE(stage.execute(Does::kNothing).has_value());
    stage.library.drive(0).inject(fault);
    REQUIRE_FALSE(stage.execute(Does::kLabel).has_value());
    REQUIRE(stage.open_failures() == 1);
    REQUIRE_FALSE(stage.executor->content().fails_everywhere);
    REQUIRE(stage.measured.figures().failures.get() == 1);

    REQUIRE(stage.execute(Does::kFailElsewhere).error().code == Errc::kIo);
    REQUIRE(stage.open_failures() == 1);
    REQUIRE(stage.executor->content().fails_everywhere);
    REQUIRE(stage.measured.figures().failures.get() == 1);
    REQUIRE(stage.shelf.find(stage.cartridge)->failures == 1);

    REQUIRE(stage.execute(Does::kNothing).has_value());
    REQUIRE(stage.open_failures() == 1);

    REQUIRE(stage.execute(Does::kLabel).has_value());
    REQUIRE(stage.open_failures() == 0);
    REQUIRE(stage.job.runs == 5);
}

TEST_CASE("library outcomes: a cartridge keeps its collection after each request", "[library]") {
    UnitStage stage;
    stage.shelf.note_collection(stage.cartridge, "run-7");
    REQUIRE(stage.execute(LabelJob::Does::kNothing).has_value());
    REQUIRE(stage.io.media().find(io_sched::MediumId{stage.cartridge})->collection ==
            MediaShelf::collection_number("run-7"));
}

TEST_CASE("library outcomes: a drive that does not answer goes down, and no cartridge is blamed",
          "[library]") {
    TapeStage stage;
    stage.run_for(1min);
    stage.drive(0).faults().silent_ppm = 1'000'000;
    Book book;
    for (int round = 0; round < 6; ++round) {
        book.merge(put_some(stage, 2, 10'000));
        REQUIRE(stage.sync(1h).has_value());
        // What does not answer gives no cartridge back.
        for (const DriveRow& each : stage.library().drives()) {
            static_cast<void>(stage.at(0, stage.library().unload(each.name)));
        }
    }
    CHECK(activities(stage) == std::vector<std::string>{"down", "idle"});
    CHECK(none_is_judged(stage));
    for (const auto& [fid, bytes] : book) CHECK(stage.release(fid).has_value());
}

TEST_CASE("library outcomes: a drive that answers no longer is left for another one", "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 2, 10'000);
    REQUIRE(stage.sync().has_value());
    const std::vector<DriveRow> rows = stage.library().drives();
    const auto used =
        std::ranges::find_if(rows, [](const DriveRow& each) { return !each.barcode.empty(); });
    REQUIRE(used != rows.end());
    const auto index = static_cast<std::uint32_t>(used - rows.begin());
    stage.drive(index).faults().silent_ppm = 1'000'000;
    const Book later = put_some(stage, 2, 10'000);

    REQUIRE(stage.sync(1h).has_value());

    CHECK(stage.library().drives()[index].activity == "down");
    // It does not give its cartridge back.
    CHECK(cartridge(stage, used->barcode).state == CartridgeState::kMissing);
    release_all(stage, later);
    check_all(stage, later);
}

TEST_CASE("library outcomes: an end of data that cannot be found yet makes no cartridge suspect",
          "[library]") {
    // The table of media is older than the tape, whose end is looked for before it is written.
    for (std::uint32_t nth = 1; nth <= 48; ++nth) {
        CAPTURE(nth);
        TapeStage stage({.drives = 1, .cartridges = 1});
        Book book = put_some(stage, 2, 10'000);
        REQUIRE(stage.sync().has_value());
        const std::string older = stage.bay.media();
        book.merge(put_some(stage, 2, 10'000));
        REQUIRE(stage.sync().has_value());
        stage.stop();
        stage.bay.media() = older;
        stage.start();
        stage.run_for(1min);
        const std::size_t found = stage.events.count("library.end_found");
        stage.drive(0).inject(devices::TapeFault::kSilent, nth);
        book.merge(put_some(stage, 2, 10'000));

        REQUIRE(stage.sync(1h).has_value());

        REQUIRE(stage.events.count("library.end_found") == found + 1);
        REQUIRE(none_is_judged(stage));
        for (const auto& [fid, bytes] : book) REQUIRE(stage.release(fid).has_value());
    }
}

TEST_CASE("library outcomes: without its table's disk a library judges no drive and no cartridge",
          "[library]") {
    const bool has_formatted = GENERATE(true, false);
    TapeStage stage({.pool = {.name = "cold", .staging = "fast", .migrate_age = 1s}});
    stage.run_for(1min);
    Book book;
    if (has_formatted) {
        book = put_some(stage, 2, 10'000);
        REQUIRE(stage.sync().has_value());
    }
    stage.bay.refuses_to_write = true;
    book.merge(put_some(stage, 4, 10'000));
    stage.run_for(5min);

    CHECK(stage.events.count("library.media_not_saved") >= 2);
    CHECK(stage.events.count("library.drive_down") == 0);
    CHECK(none_is_judged(stage));
    for (const Cartridge& each : stage.library().media()) CHECK(each.failures == 0);

    stage.bay.refuses_to_write = false;
    REQUIRE(stage.sync(1h).has_value());
    release_all(stage, book);
    check_all(stage, book);
}

TEST_CASE("library outcomes: a write that is lost when its cartridge leaves takes no drive down",
          "[library]") {
    TapeStage stage;
    const Book book = put_some(stage, 4);
    REQUIRE(stage.sync().has_value());
    stage.run_for(10min);  // The index file is written.
    const std::vector<DriveRow> before = stage.library().drives();
    const auto loaded =
        std::ranges::find_if(before, [](const DriveRow& each) { return !each.barcode.empty(); });
    REQUIRE(loaded != before.end());
    const auto index = static_cast<std::uint32_t>(loaded - before.begin());
    Bytes block = pattern(80, 1);
    REQUIRE(stage.at(0, write_in_vain(&stage.drive(index), &block)).has_value());

    const MediaOutcome unloaded = stage.at(0, stage.library().unload(loaded->name));

    INFO(unloaded.words);
    CHECK(unloaded.kind == MediaOutcome::Kind::kDone);
    CHECK(activities(stage) == std::vector<std::string>{"idle", "idle"});
    CHECK(stage.events.count("library.operation_failed") == 1);
    CHECK(address_of(stage, loaded->barcode) > 0);
    CHECK(none_is_judged(stage));
    release_all(stage, book);
    check_all(stage, book);
}
