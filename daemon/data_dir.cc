#include "daemon/data_dir.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fopd::daemon {

namespace {

constexpr const char* kLockName = "/fopd.lock";

std::unexpected<StartProblem> refuse_dir(std::string message) {
    return std::unexpected(StartProblem{.exit_code = kExitDataDir, .message = std::move(message)});
}

// The lock file was replaced by something else, which is not ours: it is neither followed nor
// removed.
std::unexpected<StartProblem> refuse_lock_file(const std::string& lock_path) {
    return refuse_dir("lock file " + lock_path + " is not a regular file; remove it");
}

// Locks the open file, not the process (F_OFD_SETLK), so that a second daemon in the same process,
// as in tests, is refused too. Returns 0 or the errno.
int try_lock(int fd) {
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return ::fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

std::string holder_of(int fd) {
    std::array<char, 32> text{};
    const ssize_t size = ::pread(fd, text.data(), text.size() - 1, 0);
    std::string pid;
    for (ssize_t i = 0; i < size && text[static_cast<std::size_t>(i)] >= '0' &&
                        text[static_cast<std::size_t>(i)] <= '9';
         ++i) {
        pid.push_back(text[static_cast<std::size_t>(i)]);
    }
    return pid.empty() ? "a process whose pid is not recorded yet" : "pid " + pid;
}

bool same_file(int fd, const std::string& path) {
    struct stat open{};
    struct stat named{};
    return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

bool write_pid(int fd) {
    const std::string pid = std::to_string(::getpid()) + "\n";
    return ::ftruncate(fd, 0) == 0 &&
           ::pwrite(fd, pid.data(), pid.size(), 0) == static_cast<ssize_t>(pid.size());
}

}  // namespace

Started<std::unique_ptr<DataDir>> DataDir::open(const std::string& path) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) {
        const int os_errno = errno;
        return refuse_dir("data directory " + path + ": " + std::strerror(os_errno) +
                          (os_errno == ENOENT ? "; create it, writable for fopd's user" : ""));
    }
    if (!S_ISDIR(info.st_mode)) return refuse_dir("data directory " + path + ": not a directory");

    const std::string lock_path = path + kLockName;
    for (;;) {
        const int fd =
            ::open(lock_path.c_str(),
                   O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
        if (fd < 0) {
            const int os_errno = errno;
            if (os_errno == ELOOP || os_errno == EISDIR || os_errno == ENXIO) {
                return refuse_lock_file(lock_path);
            }
            return std::unexpected(
                StartProblem{.exit_code = exit_code_for(os_errno, kExitDataDir),
                             .message = "data directory " + path + ": lock file " + lock_path +
                                        " cannot be opened: " + std::strerror(os_errno)});
        }
        if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
            ::close(fd);
            return refuse_lock_file(lock_path);
        }
        if (const int lock_errno = try_lock(fd); lock_errno != 0) {
            const std::string holder = holder_of(fd);
            ::close(fd);
            if (lock_errno != EAGAIN && lock_errno != EACCES) {
                return refuse_dir("data directory " + path +
                                  " cannot be locked: " + std::strerror(lock_errno) +
                                  "; it must be on a local file system");
            }
            return std::unexpected(StartProblem{
                .exit_code = kExitInUse,
                .message =
                    "data directory " + path + " is in use by another fopd (" + holder + ")"});
        }
        // The previous holder may have removed the file between our open and our lock.
        if (!same_file(fd, lock_path)) {
            ::close(fd);
            continue;
        }
        if (!write_pid(fd)) {
            const int os_errno = errno;
            ::unlink(lock_path.c_str());
            ::close(fd);
            return refuse_dir("data directory " + path +
                              " cannot be written: " + std::strerror(os_errno));
        }
        return std::unique_ptr<DataDir>(new DataDir(path, lock_path, fd));
    }
}

DataDir::~DataDir() {
    release();
}

void DataDir::release() {
    if (lock_fd_ < 0) return;
    ::unlink(lock_path_.c_str());  // While the lock is held: the file is still ours.
    ::close(lock_fd_);
    lock_fd_ = -1;
}

}  // namespace fopd::daemon
