#pragma once

#include <cerrno>
#include <cstdint>
#include <expected>
#include <string>

namespace fopd::daemon {

// How fopd ends. What is not here is a signal's doing.
enum ExitCode : std::uint8_t {
    kExitDone = 0,
    kExitFindings = 1,  // Of --check-store: something is wrong with the disks.
    kExitUsage = 2,
    kExitInternal = 70,  // A defect of ours.
    kExitSystem = 71,    // The operating system refuses something needed.
    kExitDataDir = 73,   // The data directory or the socket's place cannot be used.
    kExitInUse = 75,     // Somebody else holds it; it may work later.
    kExitKeyFile = 77,   // A key file that cannot be read, or that too many can.
    kExitConfig = 78,
};

// Why the daemon cannot start, in one line that says what to do, and the exit code that goes with
// it.
struct StartProblem {
    int exit_code = kExitInternal;
    std::string message;
};

// The exit code for a failed system call. What the machine has too little of for now is no fault of
// the thing that was to be used; service managers do not try again after some of the others.
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
