#include "daemon/log_writer.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "daemon/log_format.h"

namespace fopd::daemon {

LineWriter::LineWriter(int fd)
    : fd_(fd), deadline_fd_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    struct stat status{};
    if (fstat(fd, &status) != 0) return;
    is_socket_ = S_ISSOCK(status.st_mode);
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
        const std::string path = "/proc/self/fd/" + std::to_string(fd);
        // Fails for another user's pipe; poll() and small writes are used then.
        nonblocking_fd_ = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
}

LineWriter::~LineWriter() {
    if (nonblocking_fd_ >= 0) close(nonblocking_fd_);
    if (deadline_fd_ >= 0) close(deadline_fd_);
}

void LineWriter::limit_waiting(Duration span) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(span);
    itimerspec when{};
    when.it_value.tv_sec = seconds.count();
    when.it_value.tv_nsec = (span - seconds).count();
    timerfd_settime(deadline_fd_, 0, &when, nullptr);
}

bool LineWriter::write(std::string_view line) {
    if (is_cut_ && !write_all("\n")) return false;
    return write_all(line);
}

bool LineWriter::write_all(std::string_view bytes) {
    const std::size_t size = bytes.size();
    while (!bytes.empty()) {
        const long written = write_some(bytes);
        if (written >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN ? !wait_writable() : errno != EINTR) {
            is_cut_ = is_cut_ || bytes.size() < size;
            return false;
        }
    }
    is_cut_ = false;
    return true;
}

long LineWriter::write_some(std::string_view bytes) {
    if (is_socket_) return send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (nonblocking_fd_ >= 0) return ::write(nonblocking_fd_, bytes.data(), bytes.size());
    if (!wait_writable()) {
        errno = ETIMEDOUT;
        return -1;
    }
    return ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
}

bool LineWriter::wait_writable() {
    const int fd = nonblocking_fd_ >= 0 ? nonblocking_fd_ : fd_;
    pollfd fds[] = {{.fd = fd, .events = POLLOUT, .revents = 0},
                    {.fd = deadline_fd_, .events = POLLIN, .revents = 0}};
    while (poll(fds, 2, -1) < 0) {
        if (errno != EINTR) return false;
    }
    return fds[1].revents == 0;
}

namespace {

// Appends to the file at `path`, which is made if it is missing; -1 and errno.
int open_to_append(const std::string& path) {
    constexpr int kFlags = O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
    const int fd = ::open(path.c_str(), kFlags | O_CLOEXEC, 0640);
    if (fd < 0) return fd;
    struct stat status{};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

// Whether the last line was written only in part, before a crash or for lack of space.
bool ends_within_line(int fd) {
    struct stat status{};
    if (fstat(fd, &status) != 0 || status.st_size == 0) return false;
    char last = '\n';
    return pread(fd, &last, 1, status.st_size - 1) == 1 && last != '\n';
}

}  // namespace

std::expected<std::unique_ptr<FileWriter>, int> FileWriter::open(std::string path) {
    const int fd = open_to_append(path);
    if (fd < 0) return std::unexpected(errno);
    std::unique_ptr<FileWriter> writer(new FileWriter(std::move(path), fd));
    writer->is_cut_ = ends_within_line(fd);
    return writer;
}

FileWriter::~FileWriter() {
    close(fd_);
}

// Another file may have the number of the inode of a file that was removed, but not while that one
// is open here.
bool FileWriter::is_at_path() const {
    struct stat opened{};
    struct stat named{};
    if (fstat(fd_, &opened) != 0 || lstat(path_.c_str(), &named) != 0) return false;
    return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool FileWriter::write(std::string_view line) {
    if (!is_at_path()) {
        const int fd = open_to_append(path_);
        if (fd < 0) return false;
        close(std::exchange(fd_, fd));
        is_cut_ = false;
    }
    std::string text;
    if (is_cut_) text = "\n";
    text += line;
    std::string_view rest = text;
    while (!rest.empty()) {
        const ssize_t written = ::write(fd_, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            is_cut_ = is_cut_ || rest.size() < text.size();
            return false;
        }
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
    is_cut_ = false;
    return true;
}

bool JournalWriter::write(std::string_view entry) {
    // sd_journal_sendv() reports success even if there is no journal.
    const bool is_journal_there = access("/run/systemd/journal/socket", F_OK) == 0;
    std::vector<iovec> fields;
    for (std::string_view rest = entry; !rest.empty();) {
        const std::string_view field = next_journal_field(rest);
        // sendv() only reads the bytes at iov_base.
        fields.push_back({.iov_base = const_cast<char*>(field.data()), .iov_len = field.size()});
    }
    if (is_journal_there && sd_journal_sendv(fields.data(), static_cast<int>(fields.size())) >= 0) {
        return true;
    }
    const std::string_view message = next_journal_field(entry);
    const std::string_view priority = next_journal_field(entry);
    std::string line = "<";
    line += priority.substr(priority.find('=') + 1);
    line += '>';
    line += message.substr(message.find('=') + 1);
    line += '\n';
    return fallback_.write(line);
}

bool stderr_is_journal() {
    const char* const stream = std::getenv("JOURNAL_STREAM");
    struct stat status{};
    if (stream == nullptr || fstat(STDERR_FILENO, &status) != 0) return false;
    return stream == std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

}  // namespace fopd::daemon
