#include "eh/posix_view_file.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/directory.h"
#include "core/owned_fd.h"

namespace fopd::eh {

namespace {

// A view of kRosterMax members is smaller.
constexpr std::size_t kBytesMax = 8U << 20U;

}  // namespace

Result<std::vector<std::byte>> read_view_file(const std::string& path) {
    const core::OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0 && errno == ENOENT)
        return std::unexpected(Error{.code = Errc::kNotFound, .context = "no view yet"});
    if (fd.get() < 0) return std::unexpected(os_error(errno, "open the view"));
    std::vector<std::byte> bytes;
    for (;;) {
        const std::size_t at = bytes.size();
        if (at > kBytesMax)
            return std::unexpected(Error{.code = Errc::kCorrupt, .context = "not a view"});
        bytes.resize(at + 65'536);
        const ssize_t got = ::read(fd.get(), bytes.data() + at, bytes.size() - at);
        if (got < 0 && errno != EINTR) return std::unexpected(os_error(errno, "read the view"));
        bytes.resize(at + static_cast<std::size_t>(got < 0 ? 0 : got));
        if (got == 0) return bytes;
    }
}

Result<void> replace_view_file(const std::string& path, std::span<const std::byte> bytes) {
    const std::string beside = path + ".new";
    const core::OwnedFd fd(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (fd.get() < 0) return std::unexpected(os_error(errno, "create the view"));
    for (std::size_t at = 0; at < bytes.size();) {
        const ssize_t put = ::write(fd.get(), bytes.data() + at, bytes.size() - at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return std::unexpected(os_error(errno, "write the view"));
        at += static_cast<std::size_t>(put);
    }
    if (::fsync(fd.get()) != 0) return std::unexpected(os_error(errno, "sync the view"));
    if (::rename(beside.c_str(), path.c_str()) != 0)
        return std::unexpected(os_error(errno, "rename the view"));
    return core::sync_directory(core::directory_of(path), "sync the directory of the view");
}

}  // namespace fopd::eh
