// Goal: simulated tape drives and changers fail as they are told, and stop dead when the power
// goes.
#include "devices/tape/memory_tape.h"

#include <memory>
#include <optional>

#include "tests/devices/tape_kinds.h"
#include "tests/replay.h"

namespace memory_tape_test {

using namespace fopd;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

constexpr TapeRow kRow{.library = TapeKind::kSimulated, .reactor = core::testing::Kind::kVirtual};

MemoryTape& drive_of(TapeStage& stage) {
    return stage.memory_library().drive(0);
}

}  // namespace

TEST_CASE("devices memory tape: takes the time of the model", "[devices]") {
    TapeStage stage(kRow);
    const Instant began = stage.harness->now();
    stage.load_blank();
    const Instant loaded = stage.harness->now();
    REQUIRE(loaded - began >= 17s + kChangerMove);
    stage.write_all("a|");
    REQUIRE(stage.harness->now() - loaded < 1s);
    stage.to_end();

    REQUIRE(stage.unload().has_value());

    REQUIRE(stage.harness->now() - loaded >= 30s);
    REQUIRE(drive_of(stage).figures().loads == 1);
}

TEST_CASE("devices memory tape: a failed load leaves the cartridge free", "[devices]") {
    TapeStage stage(kRow);
    const auto home = stage.add({});
    REQUIRE(stage.move(home, kDriveAddress).has_value());
    drive_of(stage).inject(TapeFault::kLoad);

    REQUIRE(stage.load().error().code == Errc::kIo);

    REQUIRE_FALSE(stage.drive().loaded().has_value());
    REQUIRE(stage.move(kDriveAddress, home).has_value());
}

TEST_CASE("devices memory tape: a block may be unreadable once, or for good", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("abc");
    REQUIRE(stage.unload().has_value());
    stage.image.at(kDriveAddress)->make_unreadable(1);
    REQUIRE(stage.load().has_value());
    drive_of(stage).inject(TapeFault::kRead);

    REQUIRE(stage.read().error().code == Errc::kIo);
    REQUIRE(stage.read().error().code == Errc::kCorrupt);
    REQUIRE(stage.read() == "c");
    REQUIRE(stage.locate(0).has_value());
    REQUIRE(stage.read() == "a");
    REQUIRE(stage.read().error().code == Errc::kCorrupt);
    REQUIRE(stage.locate(1).has_value());
    REQUIRE(stage.write("B").has_value());
    REQUIRE(stage.content() == "aB.");
}

TEST_CASE("devices memory tape: a failed write takes what was not durable with it", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("ab");
    REQUIRE(stage.sync().has_value());
    stage.write_all("cdefgh");
    drive_of(stage).inject(TapeFault::kWrite);

    REQUIRE(stage.write("i").error().code == Errc::kIo);

    const TapePosition position = stage.position();
    REQUIRE(position.block >= 2);
    REQUIRE(position.block <= 8);
    REQUIRE(stage.content() == std::string("abcdefgh").substr(0, position.block) + ".");
    REQUIRE(stage.write("X").has_value());
    REQUIRE(stage.sync().has_value());
}

TEST_CASE("devices memory tape: an error may come as late as the next sync", "[devices]") {
    const auto reporter = GENERATE(as<std::string>(), "sync", "unload", "read", "locate");
    CAPTURE(reporter);
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("ab");
    REQUIRE(stage.sync().has_value());
    drive_of(stage).inject(TapeFault::kLateWrite);
    stage.write_all("cdef|");
    REQUIRE(stage.position().block == 7);

    Result<void> late;
    if (reporter == "sync") {
        const auto synced = stage.sync();
        if (!synced) late = std::unexpected(synced.error());
    }
    if (reporter == "unload") late = stage.unload();
    if (reporter == "read") {
        const auto read = stage.read();
        if (!read) late = std::unexpected(read.error());
    }
    if (reporter == "locate") late = stage.locate(0);

    REQUIRE(late.error().code == Errc::kIo);
    if (reporter == "unload") REQUIRE(stage.load().has_value());
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.content() == "ab.");
}

TEST_CASE("devices memory tape: a late error is not durable after a crash", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("ab");
    REQUIRE(stage.sync().has_value());
    drive_of(stage).inject(TapeFault::kLateWrite);
    stage.write_all("cd");

    stage.crash(1);

    REQUIRE(stage.load().has_value());
    REQUIRE(stage.rest() == "ab.");
}

TEST_CASE("devices memory tape: a dead drive keeps its cartridge, also for the next process",
          "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("ab");
    REQUIRE(stage.sync().has_value());
    drive_of(stage).inject(TapeFault::kDeath);

    REQUIRE(stage.write("c").error().code == Errc::kIo);

    REQUIRE(stage.read().error().code == Errc::kIo);
    REQUIRE(stage.unload().error().code == Errc::kIo);
    stage.kill();
    REQUIRE(stage.load().error().code == Errc::kIo);
    REQUIRE(stage.move(kDriveAddress, kStorageAddress).error().code == Errc::kBusy);
    stage.image.drive(0) = {};
    REQUIRE(stage.move(kDriveAddress, kDriveAddress + 1).has_value());
    REQUIRE(stage.load(1).has_value());
}

TEST_CASE("devices memory tape: a stuck cartridge is still loaded", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("ab");
    drive_of(stage).inject(TapeFault::kStuck);

    REQUIRE(stage.unload().error().code == Errc::kIo);

    REQUIRE(stage.move(kDriveAddress, kStorageAddress).error().code == Errc::kBusy);
    REQUIRE(stage.rest() == "ab.");
    REQUIRE(stage.unload().has_value());
    REQUIRE(stage.move(kDriveAddress, kStorageAddress).has_value());
}

TEST_CASE("devices memory tape: a tape may end before its capacity", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    const std::string block(kTapeBlockMax, 'x');
    REQUIRE(stage.write(block) == TapeRoom::kPlenty);
    drive_of(stage).inject(TapeFault::kEarlyEnd);

    REQUIRE(stage.write(block) == TapeRoom::kEarlyWarning);

    std::size_t early = 0;
    while (stage.write(block) == TapeRoom::kEarlyWarning) ++early;
    REQUIRE(early == 3);
    REQUIRE(stage.write(block) == TapeRoom::kFull);
    REQUIRE(stage.unload().has_value());
    REQUIRE(stage.load().has_value());
    stage.to_end();
    REQUIRE(stage.write(block) == TapeRoom::kFull);
}

TEST_CASE("devices memory tape: an operation may be slow", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    const Instant began = stage.harness->now();
    drive_of(stage).inject(TapeFault::kSlow);

    REQUIRE(stage.write("a").has_value());

    REQUIRE(stage.harness->now() - began >= 30s);
    REQUIRE(stage.content() == "a.");
}

TEST_CASE("devices memory tape: faults come as often as they are set to", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("a");
    drive_of(stage).faults().read_ppm = 500'000;
    int failed = 0;
    for (int i = 0; i < 100; ++i) {
        REQUIRE(stage.locate(0).has_value());
        if (!stage.read()) ++failed;
    }

    REQUIRE(failed > 20);
    REQUIRE(failed < 80);
}

TEST_CASE("devices memory library: people swap cartridges", "[devices]") {
    TapeStage stage(kRow);
    const auto one = stage.add({.barcode = "A00001L9"});
    const auto two = stage.add({.barcode = "A00002L9"});

    stage.image.swap(one, two);
    stage.image.swap(two, kExchangeAddress);

    REQUIRE(stage.element(one).barcode == "A00002L9");
    REQUIRE_FALSE(stage.element(two).full);
    REQUIRE(stage.element(kExchangeAddress).barcode == "A00001L9");
}

TEST_CASE("devices memory library: a changer may be busy, or fail and have moved", "[devices]") {
    TapeStage stage(kRow);
    const auto one = stage.add({});
    stage.memory_library().faults().busy_ppm = 1'000'000;
    REQUIRE(stage.move(one, one + 1).error().code == Errc::kBusy);
    REQUIRE(stage.element(one).full);
    stage.memory_library().faults() = {.error_ppm = 1'000'000};
    bool has_moved = false;
    bool has_stayed = false;
    for (int i = 0; i < 30; ++i) {
        const auto from = stage.element(one).full ? one : one + 1;
        const auto to = from == one ? one + 1 : one;
        REQUIRE(stage.move(from, to).error().code == Errc::kIo);
        REQUIRE(stage.element(one).full != stage.element(one + 1).full);
        (stage.element(to).full ? has_moved : has_stayed) = true;
    }
    REQUIRE(has_moved);
    REQUIRE(has_stayed);
}

namespace {

// Writes two files, each with its filemark durable, as a machine does whose power may go.
Task<void> write_two_files(MemoryLibrary* library, int* acknowledged) {
    const auto moved = co_await library->move(kStorageAddress, kDriveAddress);
    ENSURE(moved.has_value());
    MemoryTape& drive = library->drive(0);
    const auto loaded = co_await drive.load();
    ENSURE(loaded.has_value());
    for (int file = 0; file < 2; ++file) {
        std::string block(1000, static_cast<char>('a' + file));
        const core::Buffer buffer = block_of(block);
        for (int i = 0; i < 3; ++i) {
            const auto written = co_await drive.write(buffer);
            ENSURE(written.has_value());
        }
        const auto marked = co_await drive.write_filemarks(1, TapeDrive::Marks::kDurable);
        ENSURE(marked.has_value());
        ++*acknowledged;
    }
    const auto unloaded = co_await drive.unload();
    ENSURE(unloaded.has_value());
}

// A machine with one library.
class CrashStage : fopd::testing::Replay {
public:
    explicit CrashStage(std::uint64_t seed)
        : Replay(seed), world(seed), reactor(world.make_reactor()), image({.drives = 1}) {
        image.add({});
        library = std::make_unique<MemoryLibrary>(
            *reactor, image, MemoryLibraryOptions{.seed = seed, .power = &power});
    }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    TapeLibraryImage image;
    Power power;
    std::unique_ptr<MemoryLibrary> library;
};

}  // namespace

TEST_CASE("devices memory tape: a crash at any step keeps what a filemark acknowledged",
          "[devices]") {
    // Two for the move, the load, the unload and each record, and two for each sync.
    constexpr std::uint64_t kSteps = 2 * (1 + 1 + 8 + 2 + 1);
    bool is_torn = false;
    for (std::uint64_t step = 1; step <= kSteps + 1; ++step) {
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            CrashStage stage(seed);
            stage.power.cut_at(step);
            int acknowledged = 0;

            const bool ended = stage.world.run(*stage.reactor,
                                               write_two_files(stage.library.get(), &acknowledged));
            stage.reactor->drop_coroutines();
            core::Random random(seed);
            stage.image.crash(random);

            REQUIRE(ended == (step > kSteps));
            const bool is_moved = stage.image.at(kDriveAddress) != nullptr;
            REQUIRE(is_moved == (step > 1));
            const CartridgeImage* const cartridge =
                stage.image.at(is_moved ? kDriveAddress : kStorageAddress);
            const RecordMap map = cartridge->map();
            REQUIRE(map.count() >= static_cast<std::uint64_t>(acknowledged) * 4);
            REQUIRE(map.count() <= 8);
            for (std::uint64_t number = 0; number < map.count(); ++number) {
                const TapeRecord record = map.find(number);
                REQUIRE(record.is_filemark() == (number % 4 == 3));
                if (!record.readable) REQUIRE(number + 1 == map.count());
                is_torn = is_torn || !record.readable;
            }
        }
    }
    REQUIRE(is_torn);
}

TEST_CASE("devices memory tape: what writes had overwritten may be there again after a crash",
          "[devices]") {
    bool is_old = false;
    bool is_new = false;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        TapeStage stage(kRow);
        stage.load_blank();
        stage.write_all("abcd");
        REQUIRE(stage.sync().has_value());
        REQUIRE(stage.locate(1).has_value());
        stage.write_all("X");
        stage.crash(seed);
        REQUIRE(stage.load().has_value());
        const std::string left = stage.rest();
        is_old = is_old || left == "abcd.";
        is_new = is_new || left == "aX.";
    }

    REQUIRE(is_old);
    REQUIRE(is_new);
}

}  // namespace memory_tape_test
