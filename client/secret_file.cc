// SPDX-License-Identifier: BSD-2-Clause
#include "client/secret_file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace fopd::client {

namespace {

std::unexpected<std::string> cannot_read(const std::string& path, int os_errno) {
    return std::unexpected(path + ": " + std::system_category().message(os_errno));
}

}  // namespace

std::expected<std::size_t, std::string> read_secret_file(const std::string& path,
                                                         std::span<char> into) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return cannot_read(path, errno);
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
