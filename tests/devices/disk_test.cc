// Goal: what opening a disk of the real world takes and refuses, and whose it is meanwhile.
#include "devices/disk.h"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include "tests/devices/device_kinds.h"
#include "tests/killed_process.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::devices;
using namespace fopd::devices::testing;

namespace {

constexpr std::uint64_t kBytes = 1UL << 20;

void make_file(const std::string& path, std::uintmax_t size_bytes) {
    std::ofstream(path).put('x');
    std::filesystem::resize_file(path, size_bytes);
}

Task<void> write_one(Device* disk, const Blocks* from, Result<void>* result) {
    *result = co_await disk->write(from->buffer(), 0);
}

}  // namespace

TEST_CASE("devices disk: a file that is not there is made, for its owner alone", "[devices]") {
    const bool thin = GENERATE(false, true);
    TempDir directory;
    Machine machine(Kind::kUring);
    const auto disk =
        machine.make_disk({.path = directory / "disk", .create_bytes = kBytes, .thin = thin});

    const auto opened = machine.open(*disk);

    REQUIRE(opened.has_value());
    REQUIRE(disk->geometry().size_bytes == kBytes);
    REQUIRE(disk->geometry().discards);
    struct stat status{};
    REQUIRE(::stat((directory / "disk").c_str(), &status) == 0);
    REQUIRE(status.st_size == static_cast<off_t>(kBytes));
    const bool is_said = machine.events.names().find("devices.thin") != std::string::npos;
    REQUIRE(status.st_blocks * 512 == (thin || is_said ? 0 : static_cast<off_t>(kBytes)));
    REQUIRE((status.st_mode & 0777) == 0600);
}

TEST_CASE("devices disk: a file for which there is no space is made again when there is",
          "[devices]") {
    TempDir directory;
    const std::string path = directory / "disk";
    Machine machine(Kind::kUring);
    // More than any file system of a machine that tests have.
    const auto large = machine.make_disk({.path = path, .create_bytes = 1ULL << 42});
    const auto refused = machine.open(*large);

    REQUIRE_FALSE(refused.has_value());
    REQUIRE(std::filesystem::file_size(path) == 0);
    const auto small = machine.make_disk({.path = path, .create_bytes = kBytes});
    REQUIRE(machine.open(*small).has_value());
    REQUIRE(small->geometry().size_bytes == kBytes);
}

TEST_CASE("devices disk: a file that is there keeps its size and its content", "[devices]") {
    TempDir directory;
    make_file(directory / "disk", 5 * kBlockBytes + 100);
    Machine machine(Kind::kUring);
    const auto disk = machine.make_disk({.path = directory / "disk", .create_bytes = kBytes});

    REQUIRE(machine.open(*disk).has_value());

    REQUIRE(disk->geometry().size_bytes == 5 * kBlockBytes);
    const Blocks into(1);
    REQUIRE(machine.read(*disk, into, 0).has_value());
    REQUIRE(into.span().front() == std::byte{'x'});
}

TEST_CASE("devices disk: a file that is not a disk is refused with the reason", "[devices]") {
    TempDir directory;
    Machine machine(Kind::kUring);
    make_file(directory / "empty", 0);
    make_file(directory / "small", kBlockBytes - 1);
    REQUIRE(::mkfifo((directory / "fifo").c_str(), 0600) == 0);
    const auto open = [&](const std::string& path) {
        const auto disk = machine.make_disk({.path = path});
        return machine.open(*disk).error();
    };

    REQUIRE(open(directory / "nothing").code == Errc::kNotFound);
    REQUIRE(open(directory / "empty").code == Errc::kInvalid);
    REQUIRE(open(directory / "small").code == Errc::kInvalid);
    REQUIRE(describe(open(directory / "fifo")) ==
            "disk is neither a file nor a block device: invalid");
    REQUIRE(open(directory.path()).code == Errc::kInvalid);
    REQUIRE(open("/dev/null").code == Errc::kInvalid);
    REQUIRE_FALSE(std::filesystem::exists(directory / "nothing"));
}

TEST_CASE("devices disk: it is open once, by whatever name, until it is closed", "[devices]") {
    TempDir directory;
    Machine machine(Kind::kUring);
    const auto first = machine.make_disk({.path = directory / "disk", .create_bytes = kBytes});
    REQUIRE(machine.open(*first).has_value());
    std::filesystem::create_symlink("disk", directory / "link");
    std::filesystem::create_hard_link(directory / "disk", directory / "name");
    const auto open = [&](const std::string& name) {
        const auto disk = machine.make_disk({.path = directory / name, .create_bytes = kBytes});
        return machine.open(*disk);
    };

    REQUIRE(open("disk").error().code == Errc::kBusy);
    REQUIRE(open("link").error().code == Errc::kBusy);
    REQUIRE(open("name").error().code == Errc::kBusy);
    machine.harness.run(first->close());

    REQUIRE(open("link").has_value());
    REQUIRE(open("disk").has_value());
}

TEST_CASE("devices disk: a block device is open once", "[devices]") {
    TempDir directory;
    make_file(directory / "disk", kBytes);
    const LoopDevice loop(directory / "disk");
    if (!loop.is_there()) {
        SUCCEED("this machine has no loop devices");
        return;
    }
    Machine machine(Kind::kUring);
    const auto first = machine.make_disk({.path = loop.path()});
    const auto second = machine.make_disk({.path = loop.path()});

    const auto opened = machine.open(*first);
    const auto again = machine.open(*second);
    machine.harness.run(first->close());

    REQUIRE(opened.has_value());
    REQUIRE(first->geometry().size_bytes == kBytes);
    REQUIRE(again.error().code == Errc::kBusy);
}

TEST_CASE("devices disk: the page cache is passed by, or it is said that it is not", "[devices]") {
    const auto where = GENERATE(as<std::string>{}, "/tmp", "/dev/shm");
    const std::string path = where + "/fopd-test-disk-" + std::to_string(::getpid());
    Machine machine(Kind::kUring);
    {
        const auto disk = machine.make_disk({.path = path, .create_bytes = kBytes});
        const auto opened = machine.open(*disk);
        std::filesystem::remove(path);
        REQUIRE(opened.has_value());

        const bool is_said =
            machine.events.names().find("devices.without_direct_io") != std::string::npos;
        REQUIRE(disk->geometry().direct != is_said);
    }
    const auto disk = machine.make_disk(
        {.path = path, .create_bytes = kBytes, .cache = DiskOptions::Cache::kUse});
    const auto opened = machine.open(*disk);
    std::filesystem::remove(path);
    REQUIRE(opened.has_value());
    REQUIRE_FALSE(disk->geometry().direct);
}

TEST_CASE("devices disk: a file that was cut off under it is an error, not a wait", "[devices]") {
    TempDir directory;
    Machine machine(Kind::kUring);
    const auto disk = machine.make_disk({.path = directory / "disk", .create_bytes = kBytes});
    REQUIRE(machine.open(*disk).has_value());
    std::filesystem::resize_file(directory / "disk", kBlockBytes + 512);

    const Blocks into(3);
    REQUIRE(machine.read(*disk, into, 0).error().code == Errc::kIo);
    REQUIRE(machine.read(*disk, into, 4 * kBlockBytes).error().code == Errc::kIo);
}

TEST_CASE("devices disk: closing waits for operations in flight and refuses later ones",
          "[devices]") {
    TempDir directory;
    Machine machine(Kind::kUring);
    const auto disk = machine.make_disk({.path = directory / "disk", .create_bytes = kBytes});
    REQUIRE(machine.open(*disk).has_value());
    const Blocks blocks(64, 0x11);
    Result<void> under_way = std::unexpected(Error{.code = Errc::kInvalid});
    Gate gate;
    machine.harness->spawn(gate, write_one(disk.get(), &blocks, &under_way));
    machine.harness->turn(machine.harness->now());

    machine.harness.run(disk->close());
    const auto later = machine.write(*disk, blocks, 0);
    const auto flushed = machine.harness.run(disk->flush());

    REQUIRE(under_way.has_value());
    REQUIRE(later.error().code == Errc::kClosed);
    REQUIRE(flushed.error().code == Errc::kClosed);
    REQUIRE(std::filesystem::file_size(directory / "disk") == kBytes);
}

TEST_CASE("devices disk: discarding gives the space of a file back", "[devices]") {
    TempDir directory;
    Machine machine(Kind::kUring);
    const auto disk = machine.make_disk({.path = directory / "disk", .create_bytes = kBytes});
    REQUIRE(machine.open(*disk).has_value());
    REQUIRE(machine.write(*disk, Blocks(kBytes / kBlockBytes, 0x11), 0).has_value());
    REQUIRE(machine.harness.run(disk->flush()).has_value());
    struct stat before{};
    REQUIRE(::stat((directory / "disk").c_str(), &before) == 0);

    REQUIRE(machine.harness.run(disk->discard(0, kBytes)).has_value());

    struct stat status{};
    REQUIRE(::stat((directory / "disk").c_str(), &status) == 0);
    REQUIRE(before.st_blocks > 0);
    REQUIRE(status.st_blocks == 0);
    REQUIRE(status.st_size == static_cast<off_t>(kBytes));
}

TEST_CASE("devices disk: a disk of a killed process opens although its ring still ends",
          "[devices]") {
    TempDir directory;
    const DiskOptions options{.path = directory / "disk", .create_bytes = kBytes};
    // The ring of a killed process keeps its registered files, and with them the lock, for 10 to 70
    // ms.
    kill_process_that([&options](const auto& ready) {
        Machine killed(Kind::kUring);
        const auto disk = killed.make_disk(options);
        if (killed.open(*disk)) ready();
    });
    Machine machine(Kind::kUring);
    const auto disk = machine.make_disk(options);

    const auto opened = machine.open(*disk);

    REQUIRE(opened.has_value());
}
