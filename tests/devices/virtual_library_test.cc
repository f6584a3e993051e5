// Goal: a virtual library copes with whatever is done to its files, and takes the time that it
// should.
#include "devices/tape/virtual_library.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <sys/mount.h>

#include "tests/devices/tape_kinds.h"

using namespace fopd;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

constexpr TapeRow kRow{.library = TapeKind::kVirtual, .reactor = core::testing::Kind::kPoll};
constexpr TapeRow kVirtualTime{.library = TapeKind::kVirtual,
                               .reactor = core::testing::Kind::kVirtual};

std::string get_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.is_open());
    return {std::istreambuf_iterator<char>(file), {}};
}

void set_file(const std::string& path, const std::string& bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << bytes;
    REQUIRE(file.flush().good());
}

std::string bytes_of(std::initializer_list<int> values) {
    std::string bytes;
    for (const int value : values) bytes.push_back(static_cast<char>(value));
    return bytes;
}

}  // namespace

TEST_CASE("devices virtual library: an image is what other programs read", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    REQUIRE(stage.write("abc").has_value());
    REQUIRE(stage.marks(1).has_value());
    REQUIRE(stage.write("de").has_value());
    REQUIRE(stage.unload().has_value());

    REQUIRE(get_file(stage.path() + "/c0.tap") ==
            bytes_of({3, 0, 0, 0, 'a', 'b', 'c', 0,   3,   0, 0, 0, 0,
                      0, 0, 0, 2, 0,   0,   0,   'd', 'e', 2, 0, 0, 0}));
    REQUIRE_FALSE(std::filesystem::exists(stage.path() + "/c0.tap.durable"));
}

TEST_CASE("devices virtual library: a record that a killed process had not finished is dropped",
          "[devices]") {
    for (std::size_t torn = 1; torn < 12; ++torn) {
        TapeStage stage(kRow);
        stage.load_blank();
        stage.write_all("ab|c");
        stage.kill();
        const std::string path = stage.path() + "/c0.tap";
        const std::string whole = get_file(path);
        set_file(path, whole.substr(0, whole.size() - 1) +
                           (torn > 1 ? std::string(torn - 1, 'x') : std::string()));

        REQUIRE(stage.load().has_value());

        REQUIRE_FALSE(stage.drive().loaded()->write_protected);
        REQUIRE(stage.rest() == "ab|.");
        REQUIRE(stage.write("d").has_value());
        REQUIRE(stage.content() == "ab|d.");
    }
}

TEST_CASE("devices virtual library: what the system's crash left behind durable data is dropped",
          "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("ab|");
    REQUIRE(stage.sync().has_value());
    stage.write_all("cd");
    const std::string path = stage.path() + "/c0.tap";
    const std::string image = get_file(path);
    // Blocks of the file system that were not written yet are zeros, and look like filemarks.
    set_file(path, image.substr(0, image.size() - 20) + std::string(20, '\0'));

    stage.crash(1);

    REQUIRE(stage.load().has_value());
    REQUIRE(stage.rest() == "ab|.");
}

TEST_CASE("devices virtual library: data that are overwritten are no longer said to be durable",
          "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("abcdef");
    REQUIRE(stage.sync().has_value());
    REQUIRE(stage.locate(1).has_value());
    stage.write_all("XYZ");

    stage.crash(1);

    REQUIRE(stage.load().has_value());
    REQUIRE(stage.rest() == "a.");
}

TEST_CASE("devices virtual library: a damaged image is read up to the damage, and not written",
          "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("ab|cd|");
    REQUIRE(stage.unload().has_value());
    const std::string path = stage.path() + "/c0.tap";
    const std::string whole = get_file(path);
    const auto damage = GENERATE(as<std::string>(), "cut", "flipped", "odd");
    CAPTURE(damage);
    std::string image = whole;
    if (damage == "cut") image.resize(image.size() - 6);
    if (damage == "flipped") image[30] = 'x';  // The length behind the block "c".
    if (damage == "odd") image += "xyz";
    set_file(path, image);

    REQUIRE(stage.load().has_value());

    REQUIRE(stage.drive().loaded()->write_protected);
    REQUIRE(stage.rest() == (damage == "cut" ? "ab|c!" : damage == "flipped" ? "ab|!" : "ab|cd|!"));
    REQUIRE(stage.read() == ".");
    REQUIRE(stage.write("e").error().code == Errc::kDenied);
    REQUIRE(stage.unload().has_value());
    REQUIRE(get_file(path) == image);
    // A kill does not make damage of what was there before.
    REQUIRE(stage.load().has_value());
    stage.kill();
    REQUIRE(stage.load().has_value());
    REQUIRE(stage.drive().loaded()->write_protected);
}

TEST_CASE("devices virtual library: whoever writes behind a marker of the end replaces it",
          "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    stage.write_all("a|");
    REQUIRE(stage.unload().has_value());
    const std::string path = stage.path() + "/c0.tap";
    const std::string image = get_file(path);
    set_file(path, image + std::string(4, '\xff') + "rubbish");
    REQUIRE(stage.load().has_value());
    REQUIRE(stage.rest() == "a|.");

    REQUIRE(stage.write("b").has_value());

    REQUIRE(stage.unload().has_value());
    REQUIRE(get_file(path) == image + bytes_of({1, 0, 0, 0, 'b', 0, 1, 0, 0, 0}));
}

TEST_CASE("devices virtual library: a text that cannot be read is a cartridge without a barcode",
          "[devices]") {
    TapeStage stage(kRow);
    const auto address = stage.add({.barcode = "A00001L9"});
    set_file(stage.path() + "/c0.cartridge", "barcode: A00001L9\ncolour: red\n");

    REQUIRE(stage.element(address).full);
    REQUIRE(stage.element(address).barcode.empty());
    REQUIRE(stage.move(address, kDriveAddress).has_value());
    REQUIRE(stage.load().error().code == Errc::kInvalid);
    REQUIRE(stage.move(kDriveAddress, address).has_value());
}

TEST_CASE("devices virtual library: people bring cartridges and take them away", "[devices]") {
    TapeStage stage(kRow);
    const auto first = stage.add({.barcode = "A00001L9"});
    set_file(stage.path() + "/mine.cartridge", "barcode: B00001L9\n");
    set_file(stage.path() + "/not yours.cartridge", "");
    set_file(stage.path() + "/notes.txt", "");

    REQUIRE(stage.full_elements() == std::vector<std::uint32_t>{first, first + 1});
    REQUIRE(stage.element(first + 1).barcode == "B00001L9");
    std::filesystem::remove(stage.path() + "/c0.cartridge");
    REQUIRE(stage.full_elements() == std::vector<std::uint32_t>{first + 1});
    REQUIRE(stage.move(first + 1, kDriveAddress).has_value());
    REQUIRE(stage.load().has_value());
    std::filesystem::remove(stage.path() + "/mine.cartridge");
    REQUIRE(stage.element(kDriveAddress).full);
    REQUIRE(stage.write("a").has_value());
    REQUIRE(stage.unload().has_value());
    REQUIRE_FALSE(stage.element(kDriveAddress).full);
    REQUIRE(stage.load().error().code == Errc::kNotFound);
}

TEST_CASE("devices virtual library: cartridges that do not fit are not in it", "[devices]") {
    TapeStage stage(kRow);
    for (int i = 0; i < 12; ++i) {
        set_file(stage.path() + "/m" + std::to_string(100 + i) + ".cartridge", "");
    }

    REQUIRE(stage.full_elements().size() == TapeStage::kStorage + 2);
    REQUIRE(stage.element(kExchangeAddress + 1).full);
}

TEST_CASE("devices virtual library: a storage element stays free for each cartridge in a drive",
          "[devices]") {
    TapeStage stage(kRow);
    for (int i = 0; i < 12; ++i) {
        set_file(stage.path() + "/m" + std::to_string(100 + i) + ".cartridge", "");
    }
    const std::uint32_t home = stage.full_elements().back();
    REQUIRE(home >= kStorageAddress);
    REQUIRE(stage.move(home, kDriveAddress).has_value());
    REQUIRE_FALSE(stage.element(home).full);
    stage.kill();
    REQUIRE_FALSE(stage.element(home).full);
    REQUIRE(stage.move(kDriveAddress, home).has_value());
}

TEST_CASE("devices virtual library: positions that make no sense are chosen anew", "[devices]") {
    TapeStage stage(kRow);
    const auto first = stage.add({.barcode = "A00001L9"});
    stage.add({.barcode = "A00002L9"});
    set_file(stage.path() + "/positions", "77777 c0\nrubbish\n1 c1\n2 c9\n");

    stage.kill();

    REQUIRE(stage.element(first).barcode == "A00001L9");
    REQUIRE(stage.element(kDriveAddress).barcode == "A00002L9");
    REQUIRE_FALSE(stage.element(kDriveAddress + 1).full);
}

TEST_CASE("devices virtual library: only one uses the directory", "[devices]") {
    TapeStage stage(kRow);
    VirtualLibrary second(stage.harness.reactor(), stage.offload(),
                          {.name = "second", .path = stage.path()});
    REQUIRE(stage.run(second.open()).error().code == Errc::kBusy);
    REQUIRE(stage.run(stage.virtual_library().close()).has_value());

    REQUIRE(stage.run(second.open()).has_value());

    REQUIRE(stage.run(second.close()).has_value());
    VirtualLibrary nowhere(stage.harness.reactor(), stage.offload(),
                           {.name = "third", .path = stage.path() + "/none"});
    REQUIRE(stage.run(nowhere.open()).error().code == Errc::kNotFound);
}

TEST_CASE("devices virtual library: closing it unloads its drives", "[devices]") {
    TapeStage stage(kRow);
    stage.load_blank();
    REQUIRE(stage.write("a").has_value());

    REQUIRE(stage.run(stage.virtual_library().close()).has_value());

    REQUIRE_FALSE(std::filesystem::exists(stage.path() + "/c0.tap.durable"));
}

TEST_CASE("devices virtual library: a cartridge is not made over another", "[devices]") {
    TempDir directory;
    REQUIRE(create_cartridge(directory.path(), "a", {.barcode = "A"}).has_value());

    REQUIRE(create_cartridge(directory.path(), "a", {}).error().code == Errc::kBusy);
    REQUIRE(create_cartridge(directory.path(), "../a", {}).error().code == Errc::kInvalid);
    REQUIRE(create_cartridge(directory / "none", "a", {}).error().code == Errc::kNotFound);

    REQUIRE(read_cartridge_text(cartridge_text_path(directory.path(), "a"))->barcode == "A");
    REQUIRE(list_cartridges(directory.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("devices virtual library: calculated time passes on the drive's own clock", "[devices]") {
    TapeStage stage(kRow, TapeTiming::kCalculate);
    stage.load_blank();
    VirtualDrive& drive = stage.virtual_library().drive(0);
    REQUIRE(drive.clock() == 17s);
    REQUIRE(stage.virtual_library().clock() == kChangerMove);
    const std::string block(kTapeBlockMax, 'x');
    for (int i = 0; i < 40; ++i) REQUIRE(stage.write(block).has_value());
    REQUIRE(drive.clock() == 17s);

    REQUIRE(stage.sync().has_value());
    REQUIRE(drive.clock() >= 17s + 26ms);
    REQUIRE(drive.clock() <= 17s + 27ms);
    const Duration before = drive.clock();
    REQUIRE(stage.locate(20).has_value());
    // 10 of 16 MiB are on the first 63 % of 280 wraps.
    REQUIRE(drive.clock() > before + 4s);
    REQUIRE(drive.figures().locates == 1);
    REQUIRE(drive.figures().locate_time == drive.clock() - before);
    REQUIRE(stage.unload().has_value());
    REQUIRE(drive.clock() > before + 34s);
    REQUIRE(drive.figures().loads == 1);
    REQUIRE(drive.figures().backhitches == 0);
}

TEST_CASE("devices virtual library: real time is waited for", "[devices]") {
    TapeStage stage(kVirtualTime, TapeTiming::kReal);
    const Instant began = stage.harness->now();

    stage.load_blank();

    const Duration loaded = stage.harness->now() - began;
    REQUIRE(loaded >= 17s + kChangerMove);
    REQUIRE(loaded < 18s + kChangerMove);
    REQUIRE(stage.unload().has_value());
    REQUIRE(stage.harness->now() - began >= loaded + 30s);
}

TEST_CASE("devices virtual library: a full file system is the end of the tape", "[devices]") {
    TempDir directory;
    if (::mount("none", directory.path().c_str(), "tmpfs", 0, "size=24m") != 0) {
        SUCCEED("this machine lets us have no small file system");
        return;
    }
    TapeStage stage(kRow);
    REQUIRE(create_cartridge(directory.path(), "a", {}).has_value());
    VirtualLibrary library(stage.harness.reactor(), stage.offload(),
                           {.name = "small", .path = directory.path()});
    REQUIRE(stage.run(library.open()).has_value());
    REQUIRE(stage.run(library.move(kStorageAddress, kDriveAddress)).has_value());
    VirtualDrive& drive = library.drive(0);
    REQUIRE(stage.run(drive.load()).has_value());

    std::string block(kTapeBlockMax, 'x');
    std::size_t plenty = 0;
    std::size_t early = 0;
    Result<TapeRoom> room = TapeRoom::kPlenty;
    while (room) {
        room = stage.run(drive.write(block_of(block)));
        if (room) ++(*room == TapeRoom::kPlenty ? plenty : early);
    }
    const auto position = stage.run(drive.position());
    const auto synced = stage.run(drive.sync());
    const auto located = stage.run(drive.locate(plenty));
    const auto read = stage.run(drive.read(block_of(block)));
    const auto closed = stage.run(library.close());
    const int unmounted = ::umount(directory.path().c_str());

    REQUIRE(room.error().code == Errc::kNoSpace);
    REQUIRE(plenty >= 70);
    REQUIRE(early >= 4);
    REQUIRE(position->block == plenty + early);
    REQUIRE(synced.has_value());
    REQUIRE(located.has_value());
    REQUIRE(read->size_bytes == kTapeBlockMax);
    REQUIRE(closed.has_value());
    REQUIRE(unmounted == 0);
}
