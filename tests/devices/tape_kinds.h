#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "core/offload.h"
#include "devices/tape/library_directory.h"
#include "devices/tape/memory_library.h"
#include "devices/tape/sg_port.h"
#include "devices/tape/virtual_library.h"
#include "tests/core/reactor_kinds.h"
#include "tests/devices/scsi_target.h"
#include "tests/temp_dir.h"

namespace fopd::devices::testing {

// The libraries there are, for tests that hold for each of them.
enum class TapeKind {
    kVirtual,
    kSimulated,
    kScsi,         // Of SCSI devices, whose drives are as those of LTO.
    kScsiBlocks,   // Drives tell the block, but not how many filemarks precede it.
    kScsiCounted,  // They tell nothing, and find blocks by counting only.
    kReal,         // One drive of this machine, with a cartridge in it that may be overwritten.
};

inline std::ostream& operator<<(std::ostream& out, TapeKind kind) {
    constexpr std::array kNames{"virtual library",
                                "simulated library",
                                "SCSI library",
                                "SCSI library of drives that tell blocks",
                                "SCSI library of drives that tell nothing",
                                "drive of this machine"};
    return out << kNames[static_cast<std::size_t>(kind)];
}

// The abilities of the drives of a kind. REQUIRES: it is a SCSI library.
inline ScsiTalents talents_of(TapeKind kind) {
    using Locate = ScsiTalents::Locate;
    using Numbers = ScsiTalents::Numbers;
    switch (kind) {
        case TapeKind::kScsiBlocks:
            return {.locate = Locate::kBy32Bits, .numbers = Numbers::kBlock};
        case TapeKind::kScsiCounted:
            return {.locate = Locate::kNone, .numbers = Numbers::kNone, .sloppy = true};
        default: return {};
    }
}

struct TapeRow {
    TapeKind library;
    core::testing::Kind reactor;
};
inline constexpr std::array kTapeRows{
    TapeRow{.library = TapeKind::kVirtual, .reactor = core::testing::Kind::kUring},
    TapeRow{.library = TapeKind::kVirtual, .reactor = core::testing::Kind::kPoll},
    TapeRow{.library = TapeKind::kVirtual, .reactor = core::testing::Kind::kVirtual},
    TapeRow{.library = TapeKind::kSimulated, .reactor = core::testing::Kind::kVirtual},
    TapeRow{.library = TapeKind::kScsi, .reactor = core::testing::Kind::kUring},
    TapeRow{.library = TapeKind::kScsi, .reactor = core::testing::Kind::kPoll},
    TapeRow{.library = TapeKind::kScsi, .reactor = core::testing::Kind::kVirtual},
    TapeRow{.library = TapeKind::kScsiBlocks, .reactor = core::testing::Kind::kVirtual},
    TapeRow{.library = TapeKind::kScsiCounted, .reactor = core::testing::Kind::kVirtual},
};

// The device of the drive of kReal; empty: there is none.
inline std::string real_drive_path() {
    const char* const path = std::getenv("FOPD_TEST_TAPE_DRIVE");
    return path == nullptr ? std::string() : path;
}

// For tests that need one drive only, and only the first four bytes of each block.
inline std::vector<TapeRow> drive_rows() {
    std::vector<TapeRow> rows(kTapeRows.begin(), kTapeRows.end());
    if (!real_drive_path().empty()) {
        rows.push_back({.library = TapeKind::kReal, .reactor = core::testing::Kind::kUring});
    }
    return rows;
}

// Block sizes are arbitrary, so that blocks are texts.
inline core::Buffer block_of(std::string& text) {
    return core::testing::buffer_of(text);
}

// A library with two drives, eight storage and two exchange elements.
class TapeStage {
public:
    static constexpr std::uint64_t kCapacity = 16UL << 20;
    static constexpr std::uint32_t kDrives = 2;
    static constexpr std::uint32_t kStorage = 8;

    explicit TapeStage(TapeRow row, TapeTiming timing = TapeTiming::kNone)
        : harness(row.reactor),
          image({.drives = kDrives, .exchange = 2, .storage = kStorage}),
          target(image, talents_of(row.library)),
          row_(row),
          timing_(timing) {
        if (harness.world() != nullptr) {
            offload_ = core::make_virtual_offload(*harness.world(), {.thread_count = 3});
        } else {
            auto made = core::make_thread_offload({.thread_count = 3});
            REQUIRE(made.has_value());
            offload_ = std::move(*made);
        }
        start();
    }
    ~TapeStage() {
        // Threads may post to the reactor until the offload is gone.
        stop();
        offload_.reset();
    }
    TapeStage(const TapeStage&) = delete;
    TapeStage& operator=(const TapeStage&) = delete;

    Changer& changer() {
        if (library_) return *library_;
        if (scsi_) return *scsi_;
        return *memory_;
    }
    TapeDrive& drive(std::uint32_t index = 0) {
        if (library_) return library_->drive(index);
        if (scsi_) return scsi_->drive(index);
        if (real_) return *real_;
        return memory_->drive(index);
    }
    VirtualLibrary& virtual_library() { return *library_; }
    MemoryLibrary& memory_library() { return *memory_; }
    const std::string& path() const { return directory_.path(); }
    core::Offload& offload() { return *offload_; }
    template <typename T>
    T run(Task<T> task) {
        return harness.run(std::move(task));
    }

    // The process ends without unloading anything, and another one starts.
    void kill() {
        stop();
        image.settle();
        start();
    }
    // The whole system loses its power, and starts again.
    void crash(std::uint64_t seed) {
        stop();
        core::Random random(seed);
        image.crash(random);
        target.power_cycle();
        boot_id_ += "x";
        start();
    }

    // Returns where it is.
    std::uint32_t add(CartridgeInfo info) {
        if (info.capacity_bytes == 0) info.capacity_bytes = kCapacity;
        if (!library_) return image.add(std::move(info));
        const auto before = full_elements();
        const auto created =
            create_cartridge(path(), "c" + std::to_string(cartridge_count_++), info);
        REQUIRE(created.has_value());
        for (const std::uint32_t address : full_elements()) {
            if (std::ranges::find(before, address) == before.end()) return address;
        }
        FAIL("the library has no room for the cartridge");
        return 0;
    }
    std::vector<LibraryElement> inventory() {
        auto inventory = run(changer().inventory());
        REQUIRE(inventory.has_value());
        return std::move(*inventory);
    }
    std::vector<std::uint32_t> full_elements() {
        std::vector<std::uint32_t> addresses;
        for (const LibraryElement& element : inventory()) {
            if (element.full) addresses.push_back(element.address);
        }
        return addresses;
    }
    LibraryElement element(std::uint32_t address) {
        const auto all = inventory();
        const auto found = std::ranges::find(all, address, &LibraryElement::address);
        REQUIRE(found != all.end());
        return *found;
    }
    Result<void> move(std::uint32_t from, std::uint32_t to) {
        return run(changer().move(from, to));
    }

    Result<LoadedTape> load(std::uint32_t index = 0) { return run(drive(index).load()); }
    Result<void> unload(std::uint32_t index = 0) { return run(drive(index).unload()); }
    // A new cartridge, in the first drive.
    void load_blank(CartridgeInfo info = {}) {
        if (!real_) REQUIRE(move(add(std::move(info)), kDriveAddress).has_value());
        const auto loaded = load();
        if (!loaded) FAIL(describe(loaded.error()));
    }

    Result<TapeRoom> write(std::string text, std::uint32_t index = 0) {
        // A kernel's drive takes no smaller blocks.
        if (real_) text.resize(std::max<std::size_t>(text.size(), 512));
        return run(drive(index).write(block_of(text)));
    }
    Result<TapeRoom> marks(std::uint32_t count,
                           TapeDrive::Marks how = TapeDrive::Marks::kImmediate) {
        return run(drive().write_filemarks(count, how));
    }
    Result<TapeRoom> sync() { return run(drive().sync()); }
    // The next sync fails.
    Result<TapeRoom> write_in_vain(const std::string& text) {
        if (memory_) memory_->drive(0).inject(TapeFault::kLateWrite);
        const auto written = write(text);
        if (library_) break_image();
        if (scsi_) target.drive(0).fails_next_sync = true;
        return written;
    }
    // Whether the cartridges are those of `image`.
    bool keeps_image() const { return !library_ && !real_; }
    // The text of the next block, "|" for a filemark, "." for the end of data.
    Result<std::string> read(std::size_t room = kTapeBlockMax) {
        std::string text(room, '?');
        const auto read = run(drive().read(block_of(text)));
        if (!read) return std::unexpected(read.error());
        if (read->met == TapeMark::kFilemark) return "|";
        if (read->met == TapeMark::kEndOfData) return ".";
        text.resize(read->size_bytes);
        if (real_) text.resize(text.find_last_not_of('\0') + 1);
        return text;
    }
    // All that follows, up to the end of data.
    std::string rest() {
        std::string all;
        for (;;) {
            const auto next = read();
            all += next ? *next : "!";
            if (!next || *next == ".") return all;
        }
    }
    std::string content() {
        REQUIRE(run(drive().locate(0)).has_value());
        return rest();
    }
    // Writes single letters as blocks, and "|" as filemarks.
    void write_all(std::string_view text) {
        for (const char each : text) {
            const auto written = each == '|' ? marks(1) : write(std::string(1, each));
            REQUIRE(written.has_value());
        }
    }
    TapePosition position() {
        const auto position = run(drive().position());
        REQUIRE(position.has_value());
        return *position;
    }
    Result<void> locate(std::uint64_t block) { return run(drive().locate(block)); }
    Result<void> skip(std::uint32_t count) { return run(drive().skip_filemarks(count)); }
    void to_end() { REQUIRE(run(drive().to_end_of_data()).has_value()); }

    core::testing::Harness harness;
    TapeLibraryImage image;
    ScsiTarget target;

private:
    void start() {
        if (row_.library == TapeKind::kSimulated) {
            memory_ =
                std::make_unique<MemoryLibrary>(harness.reactor(), image, MemoryLibraryOptions{});
            return;
        }
        if (row_.library == TapeKind::kReal) {
            const auto node = find_scsi_node(real_drive_path());
            if (!node) FAIL(describe(node.error()));
            auto port = SgPort::open(*node);
            if (!port) FAIL(describe(port.error()));
            real_ = std::make_unique<ScsiDrive>(harness.reactor(), *offload_, *std::move(port),
                                                ScsiDriveOptions{.name = "drive"});
            const auto opened = run(real_->open());
            if (!opened) FAIL(describe(opened.error()));
            return;
        }
        if (row_.library != TapeKind::kVirtual) {
            scsi_ = std::make_unique<ScsiLibrary>(harness.reactor(), *offload_, target.ports(),
                                                  ScsiLibraryOptions{.name = "library"});
            const auto opened = run(scsi_->open());
            if (!opened) FAIL(describe(opened.error()));
            return;
        }
        library_ = std::make_unique<VirtualLibrary>(harness.reactor(), *offload_,
                                                    VirtualLibraryOptions{.name = "library",
                                                                          .path = path(),
                                                                          .drive_count = kDrives,
                                                                          .storage_count = kStorage,
                                                                          .exchange_count = 2,
                                                                          .timing = timing_,
                                                                          .boot_id = boot_id_});
        const auto opened = run(library_->open());
        if (!opened) FAIL(describe(opened.error()));
    }
    // The file of the last cartridge of a virtual library becomes one that cannot be made durable.
    void break_image() {
        const std::string file = path() + "/c" + std::to_string(cartridge_count_ - 1) + ".tap";
        std::array<int, 2> pipe{};
        REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
        int replaced = 0;
        for (int each = 0; each < 1024; ++each) {
            const std::string link = "/proc/self/fd/" + std::to_string(each);
            std::error_code failed;
            if (std::filesystem::read_symlink(link, failed) != file) continue;
            REQUIRE(::dup2(pipe[1], each) == each);
            ++replaced;
        }
        ::close(pipe[0]);
        ::close(pipe[1]);
        REQUIRE(replaced == 1);
    }
    void stop() {
        library_.reset();
        memory_.reset();
        scsi_.reset();
        real_.reset();
    }

    const TapeRow row_;
    const TapeTiming timing_;
    TempDir directory_;
    std::string boot_id_ = "boot";
    std::uint32_t cartridge_count_ = 0;
    std::unique_ptr<core::Offload> offload_;
    std::unique_ptr<VirtualLibrary> library_;
    std::unique_ptr<MemoryLibrary> memory_;
    std::unique_ptr<ScsiLibrary> scsi_;
    std::unique_ptr<ScsiDrive> real_;
};

}  // namespace fopd::devices::testing
