#include "daemon/secret_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/owned_fd.h"
#include "core/secret_mode.h"

namespace fopd::daemon {

namespace {

std::unexpected<StartProblem> refuse_secret(const std::string& path, const std::string& why) {
    return std::unexpected(
        StartProblem{.exit_code = kExitKeyFile, .message = "key file " + path + ": " + why});
}

// More than any file of keys needs.
constexpr std::size_t kSecretBytesMax = 4UL << 20;

}  // namespace

Started<std::string> read_secret_file(const std::string& path) {
    // Non-blocking, so that a FIFO at this path does not hang the start.
    const core::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
        return std::unexpected(
            StartProblem{.exit_code = exit_code_for(errno, kExitKeyFile),
                         .message = "key file " + path + ": " + std::strerror(errno)});
    }
    struct stat info{};
    if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return refuse_secret(path, "not a regular file");
    }
    const mode_t forbidden = info.st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
    const std::string problem = core::secret_mode_problem(info.st_mode, forbidden);
    if (!problem.empty()) return refuse_secret(path, problem);
    if (static_cast<std::size_t>(info.st_size) > kSecretBytesMax)
        return refuse_secret(path, "too large");
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    const ssize_t size = ::read(file.get(), text.data(), text.size());
    if (size < 0) return refuse_secret(path, std::strerror(errno));
    text.resize(static_cast<std::size_t>(size));
    return text;
}

Started<fop::Key> read_key_file(const std::string& path) {
    auto text = read_secret_file(path);
    if (!text) return std::unexpected(text.error());
    auto key = fop::parse_key(*text);
    ::explicit_bzero(text->data(), text->size());
    if (!key) return refuse_secret(path, "64 hexadecimal digits are expected");
    return *key;
}

}  // namespace fopd::daemon
