#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace fopd {

// The kinds of failure a caller may want to treat differently. Codes of the operating system are
// translated at the edge and kept in Error::os_errno.
enum class Errc : std::uint8_t {
    kIo,           // The device or the kernel failed the operation.
    kNoSpace,      // A bounded resource is used up: memory, disk, a queue.
    kTimedOut,     // The deadline passed first.
    kCancelled,    // The caller, or whoever stops it, asked to give up. Always passed on.
    kCorrupt,      // Bytes are not what they were when they were written.
    kBusy,         // Somebody else holds it; trying again may help.
    kInvalid,      // The request makes no sense, whenever it is made.
    kNotFound,     // There is no such thing.
    kDenied,       // Not allowed.
    kClosed,       // What was asked is stopping or stopped.
    kUnsupported,  // This kernel, provider or device cannot do it.
};

// Why there is no value: 16 trivially copyable bytes.
struct [[nodiscard]] Error {
    Errc code;
    std::int32_t os_errno = 0;  // 0 when the operating system was not involved.
    const char* context = "";   // String literal: static storage, never freed.
};
static_assert(sizeof(Error) == 16);

// A value, or the reason there is none.
template <typename T>
using Result = std::expected<T, Error>;

// "timed out", "no space", …: the word for messages and metrics labels.
const char* to_string(Errc code);

// One line for people: context, kind and the operating system's own words.
std::string describe(const Error& error);

// The Error for a (positive) errno value.
Error os_error(int os_errno, const char* context);

}  // namespace fopd
