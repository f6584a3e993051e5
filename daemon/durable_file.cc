#include "daemon/durable_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/directory.h"
#include "core/owned_fd.h"

namespace fopd::daemon {

namespace {

constexpr std::size_t kBytesMax = 1UL << 20;

std::unexpected<Error> last_error(const char* context) {
    return std::unexpected(os_error(errno, context));
}

Result<void> write_whole(int fd, std::string_view text, mode_t mode) {
    if (::fchmod(fd, mode) != 0) return last_error("give a file its mode");
    while (!text.empty()) {
        const ssize_t size = ::write(fd, text.data(), text.size());
        if (size < 0) return last_error("write a file");
        text.remove_prefix(static_cast<std::size_t>(size));
    }
    if (::fsync(fd) != 0) return last_error("sync a file");
    return {};
}

}  // namespace

Result<std::string> read_small_file(const std::string& path) {
    // Non-blocking, so that a FIFO at this path does not hang the start.
    const core::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) return last_error("open a file");
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) return last_error("look at a file");
    if (!S_ISREG(info.st_mode) || static_cast<std::size_t>(info.st_size) > kBytesMax) {
        return std::unexpected(Error{.code = Errc::kInvalid, .context = "not a small file"});
    }
    std::string text(static_cast<std::size_t>(info.st_size), '\0');
    const ssize_t size = ::read(file.get(), text.data(), text.size());
    if (size < 0) return last_error("read a file");
    text.resize(static_cast<std::size_t>(size));
    return text;
}

Result<void> replace_file(const std::string& path, std::string_view text, mode_t mode) {
    const std::string draft = path + ".new";
    {
        const core::OwnedFd file(
            ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file.get() < 0) return last_error("make a file");
        const auto written = write_whole(file.get(), text, mode);
        if (!written) {
            ::unlink(draft.c_str());
            return written;
        }
    }
    if (::rename(draft.c_str(), path.c_str()) != 0) return last_error("rename a file");
    return core::sync_directory(core::directory_of(path), "sync the directory of a file");
}

}  // namespace fopd::daemon
