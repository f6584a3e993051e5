#include "daemon/secret_file.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fopd::daemon {

namespace {

std::unexpected<StartProblem> refuse(const std::string& path, const std::string& why) {
    return std::unexpected(
        StartProblem{.exit_code = kExitKeyFile, .message = "key file " + path + ": " + why});
}

// More than any file of keys needs.
constexpr std::size_t kSecretBytesMax = 4UL << 20;

}  // namespace

Started<std::string> read_secret_file(const std::string& path) {
    // Non-blocking, so that a FIFO at this path does not hang the start.
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return std::unexpected(
            StartProblem{.exit_code = exit_code_for(errno, kExitKeyFile),
                         .message = "key file " + path + ": " + std::strerror(errno)});
    }
    struct stat info{};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(fd);
        return refuse(path, "not a regular file");
    }
    const mode_t forbidden = info.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
    if ((info.st_mode & forbidden) != 0) {
        ::close(fd);
        std::array<char, 8> mode{};
        std::snprintf(mode.data(), mode.size(), "%04o",
                      static_cast<unsigned>(info.st_mode & 07777U));
        return refuse(path, std::string("its mode ") + mode.data() +
                                " lets others at it; chmod 0600 it, and replace the key");
    }
    if (static_cast<std::size_t>(info.st_size) > kSecretBytesMax) {
        ::close(fd);
        return refuse(path, "too large");
    }
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    const ssize_t size = ::read(fd, text.data(), text.size());
    const int os_errno = errno;
    ::close(fd);
    if (size < 0) return refuse(path, std::strerror(os_errno));
    text.resize(static_cast<std::size_t>(size));
    return text;
}

Started<fop::Key> read_key_file(const std::string& path) {
    auto text = read_secret_file(path);
    if (!text) return std::unexpected(text.error());
    auto key = fop::parse_key(*text);
    ::explicit_bzero(text->data(), text->size());
    if (!key) return refuse(path, "64 hexadecimal digits are expected");
    return *key;
}

}  // namespace fopd::daemon
