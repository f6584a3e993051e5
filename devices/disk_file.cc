#include "devices/disk_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/directory.h"
#include "core/killed_process.h"
#include "core/owned_fd.h"

namespace fopd::devices {

namespace {

std::unexpected<Error> last_error(const char* context) {
    return std::unexpected(os_error(errno, context));
}

std::unexpected<Error> refused_file(Errc code, const char* context) {
    return std::unexpected(Error{.code = code, .context = context});
}

// A queue figure that the kernel publishes for the disk of device `number`; 0 if there is none.
std::uint64_t queue_figure(dev_t number, const std::string& figure) {
    const std::string device =
        "/sys/dev/block/" + std::to_string(major(number)) + ":" + std::to_string(minor(number));
    // A partition has no queue of its own.
    for (const char* const queue : {"/queue/", "/../queue/"}) {
        const core::OwnedFd file(::open((device + queue + figure).c_str(), O_RDONLY | O_CLOEXEC));
        if (file.get() < 0) continue;
        std::array<char, 32> text{};
        const ssize_t size = ::read(file.get(), text.data(), text.size() - 1);
        return size > 0 ? std::strtoull(text.data(), nullptr, 10) : 0;
    }
    return 0;
}

// Returns the errno if the file system does not support preallocation; the disk is still usable.
Result<int> take_space(int fd, off_t size) {
    if (::fallocate(fd, 0, 0, size) == 0) return 0;
    const int failed = errno;
    if (failed == EOPNOTSUPP || failed == ENOSYS) return failed;
    if (::ftruncate(fd, 0) != 0) return last_error("give back the space of the disk file");
    return std::unexpected(os_error(failed, "take the space of the disk file"));
}

Result<void> give_size(DiskFile& file, int fd, const DiskOptions& options) {
    const auto size = static_cast<off_t>(options.create_bytes);
    if (!options.thin) {
        const auto taken = take_space(fd, size);
        if (!taken) return std::unexpected(taken.error());
        file.thin_errno = *taken;
    }
    if (::ftruncate(fd, size) != 0) return last_error("give the disk file its size");
    if (::fsync(fd) != 0) return last_error("sync the disk file");
    return core::sync_directory(core::directory_of(options.path),
                                "sync the directory of the disk file");
}

// Some file systems accept O_DIRECT at open, and fail each read.
int try_direct_read(int fd) {
    alignas(kBlockBytes) std::array<std::byte, kBlockBytes> block;
    if (::pread(fd, block.data(), block.size(), 0) >= 0) return 0;
    return errno == EINVAL ? errno : 0;  // Other errors are reported by the actual reads.
}

// File systems that allocate a block at its first write, and record it as written; later writes are
// in place. Others never write in place, or need not record the first write.
bool first_writes_are_slow(int fd) {
    constexpr decltype(statfs::f_type) kXfs = 0x58465342;
    struct statfs status{};
    if (::fstatfs(fd, &status) != 0) return false;
    return status.f_type == EXT4_SUPER_MAGIC || status.f_type == kXfs;
}

Result<void> measure_file(DiskFile& file, int fd, const DiskOptions& options) {
    Geometry& geometry = file.geometry;
    struct stat status{};
    if (::fstat(fd, &status) != 0) return last_error("look at the disk file");
    if (status.st_size == 0 && options.create_bytes > 0) {
        if (const auto sized = give_size(file, fd, options); !sized) return sized;
        if (::fstat(fd, &status) != 0) return last_error("look at the disk file");
    }
    const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
    geometry.size_bytes = size_bytes / kBlockBytes * kBlockBytes;
    geometry.rotational = queue_figure(status.st_dev, "rotational") != 0;
    // Tested beyond the end, where no data can be lost.
    geometry.discards =
        ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(geometry.size_bytes + kBlockBytes), kBlockBytes) == 0;
    geometry.slow_holes = first_writes_are_slow(fd);
    return {};
}

Result<void> measure_block_device(int fd, Geometry& geometry) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return last_error("look at the block device");
    int sector_bytes = 0;
    if (::ioctl(fd, BLKSSZGET, &sector_bytes) != 0) return last_error("ask for the sector size");
    if (static_cast<std::size_t>(sector_bytes) > kBlockBytes) {
        return refused_file(Errc::kUnsupported, "block device with sectors of more than 4 KiB");
    }
    std::uint64_t size_bytes = 0;
    if (::ioctl(fd, BLKGETSIZE64, &size_bytes) != 0) return last_error("ask for the size");
    geometry.size_bytes = size_bytes / kBlockBytes * kBlockBytes;
    geometry.rotational = queue_figure(status.st_rdev, "rotational") != 0;
    geometry.discards = queue_figure(status.st_rdev, "discard_max_bytes") != 0;
    return {};
}

// Checks the type first: nothing but a file or block device is opened, since opening alone may have
// side effects.
Result<bool> is_block_device(const DiskOptions& options) {
    struct stat status{};
    if (::stat(options.path.c_str(), &status) != 0) {
        if (errno == ENOENT && options.create_bytes > 0) return false;
        return last_error("cannot open the disk");
    }
    if (S_ISBLK(status.st_mode)) return true;
    if (S_ISREG(status.st_mode)) return false;
    return refused_file(Errc::kInvalid, "disk is neither a file nor a block device");
}

}  // namespace

Result<DiskFile> open_disk_file(const DiskOptions& options) {
    const auto block_device = is_block_device(options);
    if (!block_device) return std::unexpected(block_device.error());
    DiskFile result{.is_block_device = *block_device};

    int flags = O_RDWR | O_CLOEXEC;
    // O_EXCL without O_CREAT on a block device: it must not be in use elsewhere, including mounts.
    if (result.is_block_device) flags |= O_EXCL;
    if (!result.is_block_device && options.create_bytes > 0) flags |= O_CREAT;
    const bool direct = options.cache == DiskOptions::Cache::kBypass;
    int fd = -1;
    const auto open_with = [&](int all_flags) {
        fd = ::open(options.path.c_str(), all_flags, 0600);
        return fd < 0 ? errno : 0;
    };
    int failed = core::wait_for_killed_process(
        EBUSY, [&] { return open_with(direct ? flags | O_DIRECT : flags); });
    if (failed == EINVAL && direct) {
        result.direct_errno = failed;
        failed = open_with(flags);
    }
    if (failed == EBUSY) return std::unexpected(os_error(failed, "block device is in use"));
    if (failed != 0) return std::unexpected(os_error(failed, "cannot open the disk"));
    core::OwnedFd file(fd);

    if (!result.is_block_device) {
        const auto locked = core::lock_file(
            fd, {.held = "disk file is open in another daemon", .failed = "lock the disk file"});
        if (!locked) return std::unexpected(locked.error());
    }
    const auto measured = result.is_block_device ? measure_block_device(fd, result.geometry)
                                                 : measure_file(result, fd, options);
    if (!measured) return std::unexpected(measured.error());
    if (result.geometry.size_bytes == 0) return refused_file(Errc::kInvalid, "disk is empty");

    if (direct && result.direct_errno == 0) result.direct_errno = try_direct_read(fd);
    result.geometry.direct = direct && result.direct_errno == 0;
    if (direct && !result.geometry.direct) {
        const int status_flags = ::fcntl(fd, F_GETFL);
        if (status_flags < 0 || ::fcntl(fd, F_SETFL, status_flags & ~O_DIRECT) != 0) {
            return last_error("turn direct I/O off");
        }
    }
    result.fd = file.release();
    return result;
}

Result<void> discard_range(const DiskFile& file, std::uint64_t offset, std::uint64_t size_bytes) {
    if (size_bytes == 0) return {};
    int failed = 0;
    if (file.is_block_device) {
        const std::array<std::uint64_t, 2> range{offset, size_bytes};
        failed = ::ioctl(file.fd, BLKDISCARD, range.data());
    } else {
        failed = ::fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                             static_cast<off_t>(offset), static_cast<off_t>(size_bytes));
    }
    if (failed != 0) return last_error("discard");
    return {};
}

Result<Stretch> find_hole_in(const DiskFile& file, std::uint64_t offset, std::uint64_t size_bytes) {
    const std::uint64_t end = offset + size_bytes;
    const off_t hole = ::lseek(file.fd, static_cast<off_t>(offset), SEEK_HOLE);
    if (hole < 0 && errno == ENXIO) return Stretch{};  // Beyond the end: the file was truncated.
    if (hole < 0) return last_error("look for a hole");
    const std::uint64_t first = static_cast<std::uint64_t>(hole) / kBlockBytes * kBlockBytes;
    if (first >= end) return Stretch{};  // The implicit hole at the end of the file.
    const off_t data = ::lseek(file.fd, hole, SEEK_DATA);
    // ENXIO: no data up to the end of the file.
    if (data < 0 && errno != ENXIO) return last_error("find the end of a hole");
    const std::uint64_t last = data < 0 ? end : std::min(end, static_cast<std::uint64_t>(data));
    const std::uint64_t whole = (last - first) / kBlockBytes * kBlockBytes;
    return Stretch{.offset = first, .size_bytes = whole};
}

void close_disk_file(const DiskFile& file) {
    // The ring may keep its own reference for a while; the lock is released now.
    if (!file.is_block_device) ::flock(file.fd, LOCK_UN);
    ::close(file.fd);
}

}  // namespace fopd::devices
