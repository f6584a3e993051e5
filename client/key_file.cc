// SPDX-License-Identifier: BSD-2-Clause
#include "client/key_file.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "fop/secret.h"

namespace fopd::client {

namespace {

std::string why(int os_errno) {
    return std::system_category().message(os_errno);
}

// More than a key and the white space around it.
constexpr std::size_t kFileMax = 512;

}  // namespace

std::expected<fop::Key, std::string> read_key_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return std::unexpected(path + ": " + why(errno));
    std::array<char, kFileMax> text{};
    std::size_t length = 0;
    ssize_t got = 0;
    do {
        got = ::read(fd, text.data() + length, text.size() - length);
        if (got > 0) length += static_cast<std::size_t>(got);
    } while (got > 0 || (got < 0 && errno == EINTR));
    const int os_errno = got < 0 ? errno : 0;
    ::close(fd);
    auto key = fop::parse_key(std::string_view(text.data(), length));
    fop::wipe(std::as_writable_bytes(std::span(text)));
    if (os_errno != 0) return std::unexpected(path + ": " + why(os_errno));
    if (!key) return std::unexpected(path + ": " + key.error().context);
    return *key;
}

}  // namespace fopd::client
