// SPDX-License-Identifier: BSD-2-Clause
#include "client/local_tree.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/replaced_file.h"
#include "core/owned_fd.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

constexpr mode_t kNewDirectoryMode = 0777;  // The umask is applied.
constexpr std::size_t kPartBytesMax = 255;

// Opens a path that stays below the directory and has no symbolic link in it. With O_PATH and
// O_NOFOLLOW the last part may be one. Returns -1 and sets errno if it fails.
int open_below(int directory_fd, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    long fd = 0;
    do {
        fd = ::syscall(SYS_openat2, directory_fd, path.c_str(), &how, sizeof how);
    } while (fd < 0 && errno == EINTR);
    return static_cast<int>(fd);
}

// Opens the directory of a file, and makes it if it is missing. Returns -1 and sets errno if it
// fails.
int open_directory_of(int top_fd, const std::string& path) {
    constexpr int kDirectory = O_PATH | O_DIRECTORY;
    const std::size_t end = path.rfind('/');
    if (end == std::string::npos) return open_below(top_fd, ".", kDirectory);
    const std::string whole = path.substr(0, end);
    core::OwnedFd at(open_below(top_fd, whole, kDirectory));
    if (at.get() >= 0 || errno != ENOENT) return at.release();
    at = core::OwnedFd(open_below(top_fd, ".", kDirectory));
    for (std::size_t begin = 0; at.get() >= 0 && begin <= whole.size();) {
        const std::size_t slash = std::min(whole.find('/', begin), whole.size());
        const std::string part = whole.substr(begin, slash - begin);
        if (::mkdirat(at.get(), part.c_str(), kNewDirectoryMode) != 0 && errno != EEXIST) return -1;
        at = core::OwnedFd(open_below(at.get(), part, kDirectory));
        begin = slash + 1;
    }
    return at.release();
}

const char* file_kind_of(mode_t mode) {
    if (S_ISLNK(mode)) return "a symbolic link";
    if (S_ISFIFO(mode)) return "a named pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

}  // namespace

std::string_view fault_of_path(std::string_view path) {
    if (path.empty()) return "the name is empty without the prefix";
    if (path.find('\0') != path.npos) return "it has a NUL";
    if (path.front() == '/') return "the name without the prefix begins with a slash";
    if (path.back() == '/') return "it ends with a slash";
    while (!path.empty()) {
        const std::string_view part = path.substr(0, path.find('/'));
        if (part.empty()) return "it has two slashes in a row";
        if (part == "." || part == "..") return "a part of it is . or ..";
        if (part.size() > kPartBytesMax) return "a part of it is longer than 255 bytes";
        path.remove_prefix(std::min(part.size() + 1, path.size()));
    }
    return {};
}

// -- the tree --

std::expected<std::unique_ptr<LocalTree>, std::string> LocalTree::open(const std::string& directory,
                                                                       Missing missing) {
    if (missing == Missing::kMake && ::mkdir(directory.c_str(), kNewDirectoryMode) != 0 &&
        errno != EEXIST) {
        return std::unexpected(file_words(directory, errno));
    }
    const int access = missing == Missing::kProblem ? O_RDONLY : O_PATH;
    const int fd = ::open(directory.c_str(), access | O_DIRECTORY | O_CLOEXEC);
    const bool is_empty = fd < 0 && errno == ENOENT && missing == Missing::kEmpty;
    if (fd < 0 && !is_empty) return std::unexpected(file_words(directory, errno));
    return std::unique_ptr<LocalTree>(new LocalTree(directory, fd));
}

LocalTree::~LocalTree() {
    if (fd_ >= 0) ::close(fd_);
}

std::string LocalTree::shown(std::string_view path) const {
    std::string whole = directory_;
    if (!whole.ends_with('/') && !path.empty()) whole += '/';
    return whole.append(path);
}

std::expected<std::unique_ptr<LocalSource>, std::string> LocalTree::open_source(
    LocalWorld world, const std::string& path) const {
    const std::string name = shown(path);
    if (const std::string_view fault = fault_of_path(path); !fault.empty()) {
        return std::unexpected(core::printable(name) + ": " + std::string(fault));
    }
    // O_NONBLOCK: open() must not block if the file has been replaced by a FIFO.
    core::OwnedFd file(open_below(fd_, path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat info{};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0) {
        return std::unexpected(file_words(name, errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return std::unexpected(core::printable(name) + ": it is not a regular file any more");
    }
    return LocalSource::take(world, file.release(), name);
}

std::expected<std::unique_ptr<LocalSink>, std::string> LocalTree::open_sink(
    LocalWorld world, const std::string& path) const {
    std::string name = shown(path);
    if (const std::string_view fault = fault_of_path(path); !fault.empty()) {
        return std::unexpected(core::printable(name) + ": " + std::string(fault));
    }
    const int directory_fd = open_directory_of(fd_, path);
    if (directory_fd < 0) {
        if (errno != ELOOP) return std::unexpected(file_words(name, errno));
        return std::unexpected(core::printable(name) + ": a symbolic link is in the way");
    }
    return LocalSink::open_at(world, {.directory_fd = directory_fd,
                                      .leaf = path.substr(path.rfind('/') + 1),
                                      .shown = std::move(name)});
}

std::optional<FileStamp> LocalTree::look(const std::string& path) const {
    const core::OwnedFd file(open_below(fd_, path, O_PATH | O_NOFOLLOW));
    struct stat info{};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return std::nullopt;
    }
    return stamp_of(info);
}

bool LocalTree::is_blocked(const std::string& path) const {
    std::size_t end = 0;
    while (end < path.size()) {
        end = std::min(path.find('/', end + 1), path.size());
        const core::OwnedFd file(open_below(fd_, path.substr(0, end), O_PATH | O_NOFOLLOW));
        struct stat info{};
        if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return false;
        const bool is_last = end == path.size();
        if (is_last ? !S_ISREG(info.st_mode) : !S_ISDIR(info.st_mode)) return true;
    }
    return false;
}

int LocalTree::remove(const std::string& path, What what) const {
    int flags = what == What::kDirectory ? AT_REMOVEDIR : 0;
    std::string_view rest(path);
    for (;;) {
        const std::size_t slash = rest.rfind('/');
        const std::string above(slash == rest.npos ? "." : rest.substr(0, slash));
        const std::string leaf(rest.substr(slash == rest.npos ? 0 : slash + 1));
        const core::OwnedFd directory(open_below(fd_, above, O_PATH | O_DIRECTORY));
        const bool is_gone =
            directory.get() >= 0 && ::unlinkat(directory.get(), leaf.c_str(), flags) == 0;
        const bool is_first = rest.size() == path.size();
        if (!is_gone && is_first) return errno;
        // A directory above stays if there is something else in it.
        if (!is_gone || slash == rest.npos) return 0;
        rest = rest.substr(0, slash);
        flags = AT_REMOVEDIR;
    }
}

Outcome<void> LocalTree::finish(LocalSink& sink) {
    const std::lock_guard lock(finishing_);
    const auto there = sink.replaced();
    if (there && finished_.contains(*there)) {
        return failed(fop::Status::kExists,
                      core::printable(sink.name()) +
                          ": the file system has this name for a file that was just written");
    }
    const auto id = sink.id();
    auto done = sink.finish();
    if (done && id) finished_.insert(*id);
    return done;
}

// -- all that is in it --

LocalWalk::LocalWalk(const LocalTree& tree, std::size_t path_bytes_max)
    : tree_(tree), path_bytes_max_(path_bytes_max) {}

std::optional<LocalEntry> LocalWalk::next() {
    if (!std::exchange(is_begun_, true)) {
        if (const int os_errno = enter({}); os_errno != 0) return failed({}, os_errno);
        if (levels_.back().names.empty()) {
            return LocalEntry{.kind = LocalEntry::Kind::kEmptyDirectory};
        }
    }
    while (!levels_.empty()) {
        Level& level = levels_.back();
        if (level.next == level.names.size()) {
            levels_.pop_back();
            continue;
        }
        std::string path = level.path + level.names[level.next++];
        core::OwnedFd file(open_below(tree_.fd_, path, O_PATH | O_NOFOLLOW));
        struct stat info{};
        if (file.get() < 0 || ::fstat(file.get(), &info) != 0) {
            // Also if it is missing: when a directory above has another name now, so is all that
            // was in it, and no copy is made of any of it.
            return failed(std::move(path), errno);
        }
        if (S_ISREG(info.st_mode)) {
            return LocalEntry{.path = std::move(path), .stamp = stamp_of(info)};
        }
        if (!S_ISDIR(info.st_mode)) {
            return LocalEntry{.kind = LocalEntry::Kind::kSkipped,
                              .path = std::move(path),
                              .words = file_kind_of(info.st_mode)};
        }
        if (path.size() + 2 > path_bytes_max_) {
            LocalEntry entry{.kind = LocalEntry::Kind::kFailed,
                             .path = path,
                             .words = core::printable(tree_.shown(path)) +
                                      ": the objects of its files would have too long names"};
            return entry;
        }
        if (const int os_errno = enter(path); os_errno != 0) {
            return failed(std::move(path), os_errno);
        }
        if (!levels_.back().names.empty()) continue;
        levels_.pop_back();
        return LocalEntry{.kind = LocalEntry::Kind::kEmptyDirectory, .path = std::move(path)};
    }
    return std::nullopt;
}

LocalEntry LocalWalk::failed(std::string path, int os_errno) const {
    std::string words = file_words(tree_.shown(path), os_errno);
    return {.kind = LocalEntry::Kind::kFailed, .path = std::move(path), .words = std::move(words)};
}

int LocalWalk::enter(const std::string& path) {
    const int fd = open_below(tree_.fd_, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return errno;
    DIR* const directory = ::fdopendir(fd);
    if (directory == nullptr) {
        const int os_errno = errno;
        ::close(fd);
        return os_errno;
    }
    Level level{.path = path.empty() ? path : path + "/"};
    errno = 0;
    while (const dirent* const each = ::readdir(directory)) {
        const std::string_view name(each->d_name);
        if (name != "." && name != "..") level.names.emplace_back(name);
        errno = 0;
    }
    const int os_errno = errno;
    ::closedir(directory);
    if (os_errno != 0) return os_errno;
    std::ranges::sort(level.names);
    levels_.push_back(std::move(level));
    return 0;
}

}  // namespace fopd::client
