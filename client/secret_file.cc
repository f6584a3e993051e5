// SPDX-License-Identifier: BSD-2-Clause
#include "client/secret_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fopd::client {

namespace {

std::unexpected<std::string> cannot_read(const std::string& path, int os_errno) {
    return std::unexpected(path + ": " + std::system_category().message(os_errno));
}

// Why the file is not its reader's alone; empty when it is. The key is to be replaced because
// nobody knows who has read it.
std::string why_open_to_others(const std::string& path, int fd) {
    struct stat info{};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return {};
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
        return path + ": it belongs to another user (uid " + std::to_string(info.st_uid) +
               "); make a copy of your own with mode 0600";
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(info.st_mode & 07777U));
    return path + ": its mode " + mode.data() +
           " lets others at it; chmod 0600 it, and replace the key";
}

}  // namespace

std::expected<std::size_t, std::string> read_secret_file(const std::string& path,
                                                         std::span<char> into, Guard guard) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return cannot_read(path, errno);
    if (guard == Guard::kOwnerAlone) {
        if (std::string why = why_open_to_others(path, fd); !why.empty()) {
            ::close(fd);
            return std::unexpected(std::move(why));
        }
    }
    std::size_t length = 0;
    ssize_t got = 0;
    do {
        got = ::read(fd, into.data() + length, into.size() - length);
        if (got > 0) length += static_cast<std::size_t>(got);
    } while (got > 0 || (got < 0 && errno == EINTR));
    const int os_errno = got < 0 ? errno : 0;
    ::close(fd);
    if (os_errno != 0) return cannot_read(path, os_errno);
    return length;
}

}  // namespace fopd::client
