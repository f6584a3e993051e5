// SPDX-License-Identifier: BSD-2-Clause
#include "client/local_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/replaced_file.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

constexpr mode_t kNewFileMode = 0666;  // The umask is applied.
// The mode bits that a replaced file keeps: permission bits, not setuid, setgid or sticky. The new
// file belongs to the caller: with setuid it would run the bytes of others with the caller's
// rights.
constexpr mode_t kKeptMode = 0777;

std::unexpected<Problem> file_failed(const std::string& name, int os_errno) {
    return failed(fop::Status::kInternal, file_words(name, os_errno));
}

// Returns the number of bytes, or a negative errno.
ssize_t read_at(int fd, std::uint64_t offset, std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
        const ssize_t size =
            ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) return -errno;
        if (size == 0) break;
        done += static_cast<std::size_t>(size);
    }
    return static_cast<ssize_t>(done);
}

std::int64_t ns_of(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Whether the clock that file systems read does not show this time any more.
bool is_over(const timespec& time) {
    timespec now{};
    if (::clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0) return false;
    // Some file systems keep whole seconds.
    if (time.tv_nsec == 0) now.tv_nsec = 0;
    return ns_of(time) < ns_of(now);
}

}  // namespace

FileStamp stamp_of(const struct stat& info) {
    return {.size_bytes = static_cast<std::uint64_t>(info.st_size),
            .inode = info.st_ino,
            .modified_ns = ns_of(info.st_mtim),
            .changed_ns = ns_of(info.st_ctim)};
}

// -- reading --

std::expected<std::unique_ptr<LocalSource>, std::string> LocalSource::open(
    LocalWorld world, const std::string& path) {
    const bool is_standard = path == "-";
    const std::string name = is_standard ? "standard input" : path;
    const int fd = is_standard ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                               : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::unexpected(file_words(name, errno));
    return take(world, fd, name);
}

std::expected<std::unique_ptr<LocalSource>, std::string> LocalSource::take(LocalWorld world, int fd,
                                                                           std::string name) {
    std::unique_ptr<LocalSource> source(new LocalSource(world, std::move(name)));
    source->fd_ = fd;
    struct stat info{};
    if (::fstat(fd, &info) != 0) return std::unexpected(file_words(source->name_, errno));
    if (S_ISDIR(info.st_mode)) return std::unexpected(file_words(source->name_, EISDIR));
    source->is_regular_ = S_ISREG(info.st_mode);
    if (!source->is_regular_) return source;
    const off_t at = ::lseek(fd, 0, SEEK_CUR);
    if (at < 0) return std::unexpected(file_words(source->name_, errno));
    source->begin_ = static_cast<std::uint64_t>(at);
    source->size_bytes_ = static_cast<std::uint64_t>(std::max<off_t>(info.st_size - at, 0));
    source->stamp_ = stamp_of(info);
    source->is_settled_ = is_over(info.st_ctim);
    return source;
}

std::expected<FileStamp, int> LocalSource::stamp_now() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) return std::unexpected(errno);
    return stamp_of(info);
}

Task<Outcome<FileStamp>> LocalSource::check_unchanged(std::uint64_t read_bytes) const {
    if (!is_regular_) co_return FileStamp{};
    auto look = [this] { return stamp_now(); };
    const auto now = co_await world_.offload.run(world_.reactor, look);
    if (!now) co_return failed(now.error());
    if (!*now) co_return file_failed(name_, now->error());
    // Files of the kernel have bytes although their size is 0.
    const bool is_whole = read_bytes == size_bytes_ || stamp_.size_bytes == 0;
    const bool is_unchanged =
        (*now)->size_bytes == stamp_.size_bytes && (*now)->modified_ns == stamp_.modified_ns;
    if (is_whole && is_unchanged) co_return **now;
    co_return failed(fop::Status::kInternal,
                     core::printable(name_) +
                         ": it changed while it was read; the object is stored, and may mix "
                         "several states of the file");
}

LocalSource::~LocalSource() {
    if (fd_ >= 0) ::close(fd_);
}

Task<Outcome<std::size_t>> LocalSource::read(std::uint64_t offset, std::span<std::byte> into) {
    if (is_regular_) return read_regular(offset, into);
    return read_stream(into);
}

Task<Outcome<std::size_t>> LocalSource::read_regular(std::uint64_t offset,
                                                     std::span<std::byte> into) {
    auto job = [this, offset, into] { return read_at(fd_, begin_ + offset, into); };
    const auto size = co_await world_.offload.run(world_.reactor, job);
    if (!size) co_return failed(size.error());
    if (*size < 0) co_return file_failed(name_, static_cast<int>(-*size));
    co_return static_cast<std::size_t>(*size);
}

// Does not block: reads only when the stream is readable.
Task<Outcome<std::size_t>> LocalSource::read_stream(std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
        // No deadline: the writer of a pipe may be slow.
        const auto ready = co_await world_.reactor.poll(fd_, POLLIN, {.cancel = &world_.cancel});
        if (!ready) co_return failed(ready.error());
        const ssize_t size = ::read(fd_, into.data() + done, into.size() - done);
        if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (size < 0) co_return file_failed(name_, errno);
        if (size == 0) break;
        done += static_cast<std::size_t>(size);
    }
    co_return done;
}

// -- writing --

std::expected<std::unique_ptr<LocalSink>, std::string> LocalSink::open(LocalWorld world,
                                                                       const std::string& path) {
    const bool is_standard = path == "-";
    std::unique_ptr<LocalSink> sink(new LocalSink(world, is_standard ? "standard output" : path));
    if (is_standard) {
        sink->fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        if (sink->fd_ < 0) return std::unexpected(file_words(sink->name_, errno));
        return sink;
    }
    struct stat info{};
    const bool is_there = ::stat(path.c_str(), &info) == 0;
    if (is_there && !S_ISREG(info.st_mode)) {
        sink->fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (sink->fd_ < 0) return std::unexpected(file_words(sink->name_, errno));
        return sink;
    }
    const auto whole = whole_path(path);
    if (!whole) return std::unexpected(file_words(sink->name_, whole.error()));
    const std::filesystem::path file(*whole);
    const int directory_fd = ::open(file.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd < 0) return std::unexpected(file_words(sink->name_, errno));
    sink->directory_fd_ = directory_fd;
    sink->leaf_ = file.filename();
    return begun(std::move(sink), is_there ? info.st_mode : 0);
}

std::expected<std::unique_ptr<LocalSink>, std::string> LocalSink::open_at(LocalWorld world,
                                                                          FileAt file) {
    std::unique_ptr<LocalSink> sink(new LocalSink(world, std::move(file.shown)));
    sink->directory_fd_ = file.directory_fd;
    sink->leaf_ = std::move(file.leaf);
    struct stat info{};
    const bool is_there =
        ::fstatat(sink->directory_fd_, sink->leaf_.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (is_there && S_ISDIR(info.st_mode)) {
        return std::unexpected(file_words(sink->name_, EISDIR));
    }
    if (is_there && !S_ISREG(info.st_mode)) {
        return std::unexpected(core::printable(sink->name_) + ": it is not a regular file");
    }
    return begun(std::move(sink), is_there ? info.st_mode : 0);
}

std::expected<std::unique_ptr<LocalSink>, std::string> LocalSink::begun(
    std::unique_ptr<LocalSink> sink, unsigned mode) {
    // The file is replaced, not opened for writing, but the same permission is required.
    if (mode != 0 && ::faccessat(sink->directory_fd_, sink->leaf_.c_str(), W_OK, 0) != 0) {
        return std::unexpected(file_words(sink->name_, errno));
    }
    if (!sink->open_draft(mode & kKeptMode)) return std::unexpected(file_words(sink->name_, errno));
    return sink;
}

bool LocalSink::open_draft(unsigned mode) {
    fd_ = ::openat(directory_fd_, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, kNewFileMode);
    if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        draft_ = draft_name();
        fd_ = ::openat(directory_fd_, draft_.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kNewFileMode);
        if (fd_ < 0) draft_.clear();
    }
    if (fd_ < 0) return false;
    return mode == 0 || ::fchmod(fd_, mode) == 0;
}

std::string LocalSink::draft_name() const {
    return ".fopctl-" + std::to_string(::getpid()) + "-" + std::to_string(directory_fd_);
}

LocalSink::~LocalSink() {
    if (fd_ >= 0) ::close(fd_);
    if (!draft_.empty()) ::unlinkat(directory_fd_, draft_.c_str(), 0);
    if (directory_fd_ >= 0) ::close(directory_fd_);
}

std::optional<FileId> LocalSink::id() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) return std::nullopt;
    return FileId{.device = info.st_dev, .inode = info.st_ino};
}

std::optional<FileId> LocalSink::replaced() const {
    struct stat info{};
    if (directory_fd_ < 0 ||
        ::fstatat(directory_fd_, leaf_.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return std::nullopt;
    }
    return FileId{.device = info.st_dev, .inode = info.st_ino};
}

Task<Outcome<void>> LocalSink::write(std::span<const std::byte> from) {
    if (from.empty()) co_return {};
    auto job = [this, from] { return write_all(fd_, from); };
    const auto os_errno = co_await world_.offload.run(world_.reactor, job);
    if (!os_errno) co_return failed(os_errno.error());
    if (*os_errno != 0) co_return file_failed(name_, *os_errno);
    co_return {};
}

Outcome<void> LocalSink::finish() {
    if (directory_fd_ >= 0 && draft_.empty()) {
        const std::string draft = draft_name();
        const std::string unnamed = "/proc/self/fd/" + std::to_string(fd_);
        if (::linkat(AT_FDCWD, unnamed.c_str(), directory_fd_, draft.c_str(), AT_SYMLINK_FOLLOW) !=
            0) {
            return file_failed(name_, errno);
        }
        draft_ = draft;
    }
    if (modified_ns_) {
        const std::uint64_t second = 1'000'000'000;
        const std::array times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                               timespec{.tv_sec = static_cast<time_t>(*modified_ns_ / second),
                                        .tv_nsec = static_cast<long>(*modified_ns_ % second)}};
        if (::futimens(fd_, times.data()) != 0) return file_failed(name_, errno);
    }
    // Some file systems report a full disk only here.
    if (::close(std::exchange(fd_, -1)) != 0) return file_failed(name_, errno);
    if (directory_fd_ < 0) return {};
    if (::renameat(directory_fd_, draft_.c_str(), directory_fd_, leaf_.c_str()) != 0) {
        return file_failed(name_, errno);
    }
    draft_.clear();
    return {};
}

}  // namespace fopd::client
