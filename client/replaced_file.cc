// SPDX-License-Identifier: BSD-2-Clause
#include "client/replaced_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/printable.h"
#include "fop/secret.h"

namespace fopd::client {

namespace {

constexpr std::size_t kTextMax = 64UL << 20;

ReplacedFile::Problem problem_with(const std::string& path, int os_errno) {
    const bool denied = os_errno == EACCES || os_errno == EPERM;
    return {.failure = denied ? ReplacedFile::Failure::kDenied : ReplacedFile::Failure::kProblem,
            .words = file_words(path, os_errno)};
}

// The problem of a file that cannot be created. Names the directory of the file if that is missing.
ReplacedFile::Problem problem_making(const std::string& path, int os_errno) {
    ReplacedFile::Problem problem = problem_with(path, os_errno);
    const std::filesystem::path directory = std::filesystem::path(path).parent_path();
    if (os_errno == ENOENT && !directory.empty()) {
        problem.words = core::printable(path) + ": the directory " +
                        core::printable(directory.string()) + " does not exist";
    }
    return problem;
}

}  // namespace

std::expected<std::string, int> whole_path(const std::string& path) {
    std::error_code failed;
    // weakly_canonical() does not make the plain name of a missing file absolute.
    std::filesystem::path whole = std::filesystem::absolute(path, failed);
    if (!failed) whole = std::filesystem::weakly_canonical(whole, failed);
    if (failed) return std::unexpected(failed.value());
    return whole.string();
}

std::string file_words(const std::string& path, int os_errno) {
    return core::printable(path) + ": " + std::system_category().message(os_errno);
}

int read_all(int fd, std::size_t size_max, std::string& text) {
    while (text.size() <= size_max) {
        const std::size_t before = text.size();
        text.resize(before + 65536);
        const ssize_t size = ::read(fd, text.data() + before, text.size() - before);
        text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
        if (size < 0 && errno != EINTR) return errno;
        if (size == 0) break;
    }
    return 0;
}

int write_all(int fd, std::span<const std::byte> from) {
    while (!from.empty()) {
        const ssize_t size = ::write(fd, from.data(), from.size());
        if (size < 0 && errno == EINTR) continue;
        if (size < 0 && errno == EAGAIN) {  // Another process may have made standard output so.
            pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
            ::poll(&writable, 1, -1);
            continue;
        }
        if (size < 0) return errno;
        from = from.subspan(static_cast<std::size_t>(size));
    }
    return 0;
}

ReplacedFile::ReplacedFile(ReplacedFile&& other) noexcept
    : path_(std::move(other.path_)),
      text_(std::move(other.text_)),
      existed_(other.existed_),
      mode_(other.mode_),
      owner_(other.owner_),
      group_(other.group_),
      directory_fd_(std::exchange(other.directory_fd_, -1)) {}

ReplacedFile::~ReplacedFile() {
    fop::wipe(std::as_writable_bytes(std::span(text_)));
    if (directory_fd_ >= 0) ::close(directory_fd_);
}

std::unexpected<ReplacedFile::Problem> ReplacedFile::problem(int os_errno) const {
    return std::unexpected(problem_with(path_, os_errno));
}

std::expected<ReplacedFile, ReplacedFile::Problem> ReplacedFile::open(const std::string& path,
                                                                      Missing missing) {
    ReplacedFile file;
    auto whole = whole_path(path);
    if (!whole) return std::unexpected(problem_with(path, whole.error()));
    file.path_ = std::move(*whole);
    const std::string directory = std::filesystem::path(file.path_).parent_path();
    file.directory_fd_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file.directory_fd_ < 0) return std::unexpected(problem_making(file.path_, errno));
    if (::flock(file.directory_fd_, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) return file.problem(errno);
        return std::unexpected(
            Problem{.failure = Failure::kBusy,
                    .words = file.path_ + ": another fopctl is changing it; try again"});
    }
    struct stat info{};
    const int fd = ::open(file.path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        if (errno != ENOENT || missing == Missing::kProblem) return file.problem(errno);
        if (::fstat(file.directory_fd_, &info) != 0) return file.problem(errno);
        file.owner_ = ::geteuid();
        file.group_ = file.owner_ == 0 ? info.st_gid : ::getegid();
        file.mode_ = file.owner_ == 0 ? 0640 : 0600;
        return file;
    }
    int os_errno = ::fstat(fd, &info) == 0 ? read_all(fd, kTextMax, file.text_) : errno;
    if (file.text_.size() > kTextMax) os_errno = EFBIG;
    ::close(fd);
    if (os_errno != 0) return file.problem(os_errno);
    if (!S_ISREG(info.st_mode)) return file.problem(EINVAL);
    file.existed_ = true;
    file.mode_ = info.st_mode & 07777U;
    file.owner_ = info.st_uid;
    file.group_ = info.st_gid;
    return file;
}

bool ReplacedFile::can_read(Reader reader) const {
    if (reader.user == 0) return true;
    if (owner_ == reader.user) return (mode_ & S_IRUSR) != 0;
    return (mode_ & (group_ == reader.group ? S_IRGRP : S_IROTH)) != 0;
}

// fopd takes a file from its own user with mode 0600, or from root, also readable by a group.
void ReplacedFile::let_read(Reader reader) {
    if (::geteuid() != 0 || (existed_ && can_read(reader))) return;
    if (owner_ == 0) {
        group_ = reader.group;
        mode_ = 0640;
    } else {
        owner_ = reader.user;
        group_ = reader.group;
        mode_ = 0600;
    }
}

std::expected<void, ReplacedFile::Problem> ReplacedFile::replace(std::string_view text) const {
    const std::string made = path_ + ".new";
    if (::unlink(made.c_str()) != 0 && errno != ENOENT) return problem(errno);  // Left by a crash.
    const int fd = ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return problem(errno);
    int os_errno = write_all(fd, std::as_bytes(std::span(text)));
    const bool written = os_errno == 0 && ::fchown(fd, owner_, group_) == 0 &&
                         ::fchmod(fd, mode_) == 0 && ::fsync(fd) == 0;
    if (os_errno == 0) os_errno = errno;
    ::close(fd);
    if (written && std::rename(made.c_str(), path_.c_str()) == 0) {
        if (::fsync(directory_fd_) == 0) return {};
        return problem(errno);
    }
    if (written) os_errno = errno;
    ::unlink(made.c_str());
    return problem(os_errno);
}

std::expected<void, ReplacedFile::Problem> ReplacedFile::put_back() const {
    if (existed_) return replace(text_);
    if (::unlink(path_.c_str()) != 0) return problem(errno);
    return {};
}

std::expected<void, ReplacedFile::Problem> write_new_secret(const std::string& path,
                                                            std::string_view text) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return std::unexpected(problem_making(path, errno));
    int os_errno = write_all(fd, std::as_bytes(std::span(text)));
    const bool written = os_errno == 0 && ::fsync(fd) == 0;
    if (os_errno == 0) os_errno = errno;
    ::close(fd);
    if (written) return {};
    ::unlink(path.c_str());
    return std::unexpected(problem_with(path, os_errno));
}

}  // namespace fopd::client
