#pragma once

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>

namespace fopd::daemon {

// The exit codes of fopd. Any other end is by a signal.
enum ExitCode : std::uint8_t {
    kExitDone = 0,
    kExitFindings = 1,  // --check-store found something wrong with the disks.
    kExitUsage = 2,
    kExitInternal = 70,  // A defect in fopd.
    kExitSystem = 71,    // The operating system refuses a needed resource.
    kExitDataDir = 73,   // The data directory or the socket's path cannot be used.
    kExitInUse = 75,     // In use by another process; a later start may succeed.
    kExitKeyFile = 77,   // A key file is unreadable, or readable by others.
    kExitConfig = 78,
};

// The reason why the daemon cannot start, in one line that says how to correct it, with the exit
// code.
struct StartProblem {
    int exit_code = kExitInternal;
    std::string message;
};

// The exit code for a failed system call. A shortage of resources is kExitSystem and not the code
// for the file or socket in question: service managers do not restart after some of those codes.
constexpr int exit_code_for(int os_errno, ExitCode otherwise) {
    const bool is_shortage =
        os_errno == EMFILE || os_errno == ENFILE || os_errno == ENOMEM || os_errno == ENOBUFS;
    return is_shortage ? kExitSystem : otherwise;
}

// Ends a message about threads that cannot be started.
inline constexpr const char* kThreadAdvice = "; raise TasksMax= or ulimit -u";

template <typename T>
using Started = std::expected<T, StartProblem>;

inline std::unexpected<StartProblem> refuse_file(const std::string& path, const std::string& why) {
    return std::unexpected(StartProblem{.exit_code = kExitDataDir, .message = path + ": " + why});
}

}  // namespace fopd::daemon
