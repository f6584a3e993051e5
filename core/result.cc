#include "core/result.h"

#include <cerrno>
#include <system_error>

namespace fopd {

const char* to_string(Errc code) {
    switch (code) {
        case Errc::kIo: return "I/O error";
        case Errc::kNoSpace: return "no space";
        case Errc::kTimedOut: return "timed out";
        case Errc::kCancelled: return "cancelled";
        case Errc::kCorrupt: return "corrupt";
        case Errc::kBusy: return "busy";
        case Errc::kInvalid: return "invalid";
        case Errc::kNotFound: return "not found";
        case Errc::kDenied: return "denied";
        case Errc::kClosed: return "closed";
        case Errc::kUnsupported: return "unsupported";
    }
    return "unknown error";
}

std::string describe(const Error& error) {
    std::string text(error.context);
    const bool has_context = !text.empty();
    if (error.os_errno != 0) {
        text.append(has_context ? ": " : "");
        return text.append(std::generic_category().message(error.os_errno));
    }
    // The context of kBusy names the resource that is busy.
    if (error.code == Errc::kBusy && has_context) return text;
    return text.append(has_context ? ": " : "").append(to_string(error.code));
}

Error os_error(int os_errno, const char* context) {
    const auto code = [os_errno] {
        switch (os_errno) {
            case ENOSPC:
            case EDQUOT:
            case ENOMEM:
            case EMFILE:
            case ENFILE:
            case ENOBUFS: return Errc::kNoSpace;
            case ETIMEDOUT:
            case ETIME: return Errc::kTimedOut;
            case ECANCELED: return Errc::kCancelled;
            case EILSEQ:
            case EBADMSG: return Errc::kCorrupt;
            case EBUSY:
            case EAGAIN:
            case EADDRINUSE:
            case ETXTBSY: return Errc::kBusy;
            case EINVAL:
            case EBADF:
            case EFAULT:
            case ENOTDIR:
            case EISDIR:
            case ENAMETOOLONG: return Errc::kInvalid;
            case ENOENT:
            case ENODEV:
            case ENXIO: return Errc::kNotFound;
            case EPERM:
            case EACCES:
            case EROFS: return Errc::kDenied;
            case EPIPE:
            case ECONNRESET:
            case ENOTCONN:
            case ESHUTDOWN: return Errc::kClosed;
            case ENOSYS:
            case EOPNOTSUPP: return Errc::kUnsupported;
            default: return Errc::kIo;
        }
    }();
    return Error{.code = code, .os_errno = os_errno, .context = context};
}

}  // namespace fopd
