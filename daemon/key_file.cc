#include "daemon/key_file.h"

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

int digit_value(char digit) {
    if (digit >= '0' && digit <= '9') return digit - '0';
    if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
    return -1;
}

Started<Key> parse(const std::string& path, const char* text, std::size_t size) {
    constexpr std::size_t kDigits = 2 * Key::kSizeBytes;
    if (size == kDigits + 1 && text[kDigits] == '\n') --size;
    if (size != kDigits) return refuse(path, "64 hexadecimal digits are expected");
    Key key;
    for (std::size_t i = 0; i < Key::kSizeBytes; ++i) {
        const int high = digit_value(text[2 * i]);
        const int low = digit_value(text[2 * i + 1]);
        if (high < 0 || low < 0) return refuse(path, "64 hexadecimal digits are expected");
        key.bytes()[i] = static_cast<std::byte>(high * 16 + low);
    }
    return key;
}

}  // namespace

Key::~Key() {
    ::explicit_bzero(bytes_.data(), bytes_.size());
}

Key::Key(Key&& other) noexcept : bytes_(other.bytes_) {
    ::explicit_bzero(other.bytes_.data(), other.bytes_.size());
}

Started<Key> read_key_file(const std::string& path) {
    // Non-blocking, so that a FIFO in its place does not hang the start.
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
    std::array<char, 128> text{};
    const ssize_t size = ::read(fd, text.data(), text.size());
    const int os_errno = errno;
    ::close(fd);
    if (size < 0) return refuse(path, std::strerror(os_errno));
    auto key = parse(path, text.data(), static_cast<std::size_t>(size));
    ::explicit_bzero(text.data(), text.size());
    return key;
}

}  // namespace fopd::daemon
