#include "config/file.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/text_check.h"
#include "core/owned_fd.h"

namespace fopd::config {
namespace {

std::unexpected<Mistake> failed(const char* what, int os_errno) {
    return std::unexpected(
        Mistake{std::string(what) + ": " + std::generic_category().message(os_errno),
                "name a file that can be read"});
}

}  // namespace

std::expected<std::string, Mistake> read_file(const std::string& file_name) {
    if (file_name.find('\0') != std::string::npos) return failed("cannot be opened", EINVAL);
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    const core::OwnedFd file(
        ::open(file_name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.get() < 0) return failed("cannot be opened", errno);
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return failed("cannot be examined", errno);
    if (!S_ISREG(status.st_mode)) {
        return std::unexpected(
            Mistake{S_ISDIR(status.st_mode) ? "a directory" : "not a regular file",
                    "name a file that can be read"});
    }

    // One byte more than allowed detects a larger file, also one that grows meanwhile.
    std::string text(kFileSizeMax + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return failed("cannot be read", errno);
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
    }
    text.resize(size);
    return text;
}

}  // namespace fopd::config
