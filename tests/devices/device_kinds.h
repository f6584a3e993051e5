#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/offload.h"
#include "devices/disk.h"
#include "devices/memory_disk.h"
#include "tests/core/reactor_kinds.h"
#include "tests/devices/blocks.h"
#include "tests/temp_dir.h"

namespace fopd::devices::testing {

using core::testing::Kind;

// The disks there are, for tests that hold for each of them.
enum class DiskKind { kDirectFile, kCachedFile, kMemoryFile, kBlockDevice, kSimulated };

inline std::ostream& operator<<(std::ostream& out, DiskKind kind) {
    constexpr std::array kNames{"direct file", "cached file", "file in tmpfs", "block device",
                                "simulated disk"};
    return out << kNames[static_cast<std::size_t>(kind)];
}

// A file as a block device, where this machine lets us have one.
class LoopDevice {
public:
    explicit LoopDevice(const std::string& file) {
        const int control = ::open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        if (control < 0) return;
        const int number = ::ioctl(control, LOOP_CTL_GET_FREE);
        ::close(control);
        if (number < 0) return;
        path_ = "/dev/loop" + std::to_string(number);
        fd_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
        const int backing = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
        if (fd_ >= 0 && backing >= 0 && ::ioctl(fd_, LOOP_SET_FD, backing) == 0) is_there_ = true;
        if (backing >= 0) ::close(backing);
    }
    ~LoopDevice() {
        if (is_there_) ::ioctl(fd_, LOOP_CLR_FD);
        if (fd_ >= 0) ::close(fd_);
    }
    LoopDevice(const LoopDevice&) = delete;
    LoopDevice& operator=(const LoopDevice&) = delete;

    bool is_there() const { return is_there_; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
    int fd_ = -1;
    bool is_there_ = false;
};

// What notes which events there were.
class EventNames final : public core::EventSink {
public:
    void emit(core::Level, std::string_view name, std::span<const core::Field>) override {
        names_.append(name).append(" ");
    }
    bool wants(core::Level) const override { return true; }
    const std::string& names() const { return names_; }

private:
    std::string names_;
};

// A reactor of some kind with what a disk needs besides.
class Machine {
public:
    explicit Machine(Kind kind) : harness(kind) {
        if (harness.world() != nullptr) {
            offload = core::make_virtual_offload(*harness.world(), {});
        } else {
            auto made = core::make_thread_offload({});
            REQUIRE(made.has_value());
            offload = std::move(*made);
        }
    }

    std::unique_ptr<Disk> make_disk(DiskOptions options) {
        return std::make_unique<Disk>(harness.reactor(), *offload, events, std::move(options));
    }
    Result<void> open(Disk& disk) { return harness.run(disk.open()); }
    Result<void> read(Device& disk, const Blocks& into, std::uint64_t offset,
                      core::WaitOptions wait = {}) {
        return harness.run(disk.read(into.buffer(), offset, wait));
    }
    Result<void> write(Device& disk, const Blocks& from, std::uint64_t offset) {
        return harness.run(disk.write(from.buffer(), offset));
    }

    core::testing::Harness harness;
    EventNames events;
    std::unique_ptr<core::Offload> offload;
};

// An open disk of one kind.
class DiskStage {
public:
    static constexpr std::uint64_t kBytes = 8UL << 20;

    DiskStage(DiskKind kind, Kind reactor) : machine(reactor), image_(kBytes) {
        if (kind == DiskKind::kSimulated) {
            disk_ = std::make_unique<MemoryDisk>(machine.harness.reactor(), image_,
                                                 MemoryDiskOptions{});
            return;
        }
        std::string path = directory_ / "disk";
        if (kind == DiskKind::kMemoryFile) path = memory_directory_.path() + "/disk";
        if (kind == DiskKind::kBlockDevice) {
            make_file(path);
            loop_ = std::make_unique<LoopDevice>(path);
            if (!loop_->is_there()) return;
            path = loop_->path();
        }
        const auto cache =
            kind == DiskKind::kCachedFile ? DiskOptions::Cache::kUse : DiskOptions::Cache::kBypass;
        auto disk = machine.make_disk({.name = "d0",
                                       .path = path,
                                       .create_bytes = kind == DiskKind::kBlockDevice ? 0 : kBytes,
                                       .cache = cache});
        const auto opened = machine.open(*disk);
        if (!opened) FAIL(describe(opened.error()));
        real_ = disk.get();
        disk_ = std::move(disk);
    }
    ~DiskStage() {
        if (real_ != nullptr) machine.harness.run(real_->close());
    }
    DiskStage(const DiskStage&) = delete;
    DiskStage& operator=(const DiskStage&) = delete;

    // False when this machine has no such disk.
    bool is_there() const { return disk_ != nullptr; }
    Device& disk() { return *disk_; }
    Result<void> read(const Blocks& into, std::uint64_t offset, core::WaitOptions wait = {}) {
        return machine.read(*disk_, into, offset, wait);
    }
    Result<void> write(const Blocks& from, std::uint64_t offset) {
        return machine.write(*disk_, from, offset);
    }
    Result<void> flush() { return machine.harness.run(disk_->flush()); }
    Result<void> discard(std::uint64_t offset, std::uint64_t size_bytes) {
        return machine.harness.run(disk_->discard(offset, size_bytes));
    }
    Result<Stretch> find_hole(std::uint64_t offset, std::uint64_t size_bytes) {
        return machine.harness.run(disk_->find_hole(offset, size_bytes));
    }

    Machine machine;

private:
    // A directory in a file system of memory.
    class MemoryDirectory {
    public:
        MemoryDirectory() {
            std::string pattern = "/dev/shm/fopd-test.XXXXXX";
            if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
        }
        ~MemoryDirectory() {
            std::error_code ignored;
            std::filesystem::remove_all(path_, ignored);
        }
        MemoryDirectory(const MemoryDirectory&) = delete;
        MemoryDirectory& operator=(const MemoryDirectory&) = delete;
        const std::string& path() const { return path_; }

    private:
        std::string path_;
    };

    static void make_file(const std::string& path) {
        const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0);
        REQUIRE(::ftruncate(fd, kBytes) == 0);
        ::close(fd);
    }

    TempDir directory_;
    MemoryDirectory memory_directory_;
    std::unique_ptr<LoopDevice> loop_;
    DiskImage image_;
    std::unique_ptr<Device> disk_;
    Disk* real_ = nullptr;  // disk_, unless it is simulated.
};

}  // namespace fopd::devices::testing
