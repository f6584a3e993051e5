#include "eh/posix_small_file.h"

#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

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

Result<std::vector<std::byte>> read_small_file(const std::string& path) {
    const core::OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0 && errno == ENOENT)
        return std::unexpected(Error{.code = Errc::kNotFound, .context = "no such file yet"});
    if (fd.get() < 0) return std::unexpected(os_error(errno, "open a file of epochs"));
    std::vector<std::byte> bytes;
    for (;;) {
        const std::size_t at = bytes.size();
        if (at > kBytesMax)
            return std::unexpected(Error{.code = Errc::kCorrupt, .context = "too long a file"});
        bytes.resize(at + 65'536);
        const ssize_t got = ::read(fd.get(), bytes.data() + at, bytes.size() - at);
        if (got < 0 && errno != EINTR)
            return std::unexpected(os_error(errno, "read a file of epochs"));
        bytes.resize(at + static_cast<std::size_t>(got < 0 ? 0 : got));
        if (got == 0) return bytes;
    }
}

namespace {

// All but the rename. After an error the file has its old bytes.
Result<void> write_beside(const std::string& beside, std::span<const std::byte> bytes) {
    const core::OwnedFd fd(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (fd.get() < 0) return std::unexpected(os_error(errno, "create a file of epochs"));
    for (std::size_t at = 0; at < bytes.size();) {
        const ssize_t put = ::write(fd.get(), bytes.data() + at, bytes.size() - at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return std::unexpected(os_error(errno, "write a file of epochs"));
        at += static_cast<std::size_t>(put);
    }
    if (::fsync(fd.get()) != 0) return std::unexpected(os_error(errno, "sync a file of epochs"));
    return {};
}

std::unexpected<NotReplaced> not_replaced(const Error& error, bool has_old_bytes) {
    return std::unexpected(NotReplaced{.error = error, .has_old_bytes = has_old_bytes});
}

}  // namespace

Replaced replace_small_file(const std::string& path, std::span<const std::byte> bytes) {
    const std::string beside = path + ".new";
    if (const auto written = write_beside(beside, bytes); !written)
        return not_replaced(written.error(), true);
    if (::rename(beside.c_str(), path.c_str()) != 0)
        return not_replaced(os_error(errno, "rename a file of epochs"), true);
    const auto synced =
        core::sync_directory(core::directory_of(path), "sync the directory of a file of epochs");
    if (!synced) return not_replaced(synced.error(), false);
    return {};
}

void PosixSmallFile::read(SmallFileUser& user) {
    if (!work_.closed()) reactor_.spawn(work_, read_for(&user));
}

void PosixSmallFile::replace(std::vector<std::byte> bytes, SmallFileUser& user) {
    if (!work_.closed()) reactor_.spawn(work_, replace_for(&user, std::move(bytes)));
}

Task<bool> PosixSmallFile::close(Instant deadline) {
    const auto closed = co_await work_.close_by(reactor_, deadline);
    co_return closed.has_value();
}

Task<void> PosixSmallFile::read_for(SmallFileUser* user) {
    auto call = [this] { return read_small_file(path_); };
    auto outcome = co_await offload_.run(reactor_, call);
    if (!outcome) {
        user->on_file_read(std::unexpected(outcome.error()));
    } else {
        user->on_file_read(*std::move(outcome));
    }
}

Task<void> PosixSmallFile::replace_for(SmallFileUser* user, std::vector<std::byte> bytes) {
    auto call = [this, &bytes] { return replace_small_file(path_, bytes); };
    auto outcome = co_await offload_.run(reactor_, call);
    if (!outcome) {
        user->on_file_replaced(not_replaced(outcome.error(), true));
    } else {
        user->on_file_replaced(*outcome);
    }
}

}  // namespace fopd::eh
