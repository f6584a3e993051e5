#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace fopd {

// The kinds of failure that a caller may want to treat differently. Codes of the operating system
// are translated where they occur, and kept in Error::os_errno.
enum class Errc : std::uint8_t {
    kIo,           // The device or the kernel failed the operation.
    kNoSpace,      // A bounded resource is used up: memory, disk, a queue.
    kTimedOut,     // The deadline passed first.
    kCancelled,    // The operation was given up on request. Always passed on.
    kCorrupt,      // Bytes have changed since they were written.
    kBusy,         // In use elsewhere; a retry may succeed.
    kInvalid,      // The request is wrong, whenever it is made.
    kNotFound,     // Does not exist.
    kDenied,       // Not allowed.
    kClosed,       // The called object is stopping or stopped.
    kUnsupported,  // This kernel, provider or device does not support it.
};

// The reason for a failure: 16 trivially copyable bytes.
struct [[nodiscard]] Error {
    Errc code;
    std::int32_t os_errno = 0;  // 0 when the operating system was not involved.
    const char* context = "";   // String literal: static storage, never freed.
};
static_assert(sizeof(Error) == 16);

// A value, or the reason there is none.
template <typename T>
using Result = std::expected<T, Error>;

// "timed out", "no space", …: used in messages and metrics labels.
const char* to_string(Errc code);

// One line for users: context, kind, and the operating system's message.
std::string describe(const Error& error);

// The Error for a (positive) errno value.
Error os_error(int os_errno, const char* context);

}  // namespace fopd
