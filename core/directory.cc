#include "core/directory.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace fopd::core {

std::string directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

OwnedFd open_directory(const std::string& path) {
    return OwnedFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

Result<void> sync_directory(const std::string& path, const char* context) {
    const OwnedFd directory = open_directory(path);
    if (directory.get() < 0 || ::fsync(directory.get()) != 0) {
        return std::unexpected(os_error(errno, context));
    }
    return {};
}

}  // namespace fopd::core
