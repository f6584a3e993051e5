#include "core/result.h"

#include <cerrno>

#include "tests/catch.h"

using namespace fopd;

TEST_CASE("core result: describe names the context, and errno or else the kind", "[core]") {
    const Error error = os_error(ENOSPC, "write log");

    REQUIRE(error.code == Errc::kNoSpace);
    REQUIRE(describe(error) == "write log: No space left on device");
    REQUIRE(describe({.code = Errc::kClosed, .context = "the node"}) == "the node: closed");
    REQUIRE(describe({.code = Errc::kClosed}) == "closed");
}

TEST_CASE("core result: what is busy is not said twice", "[core]") {
    REQUIRE(describe({.code = Errc::kBusy, .context = "the server drains"}) == "the server drains");
    REQUIRE(describe({.code = Errc::kBusy}) == "busy");
    REQUIRE(describe({.code = Errc::kBusy, .os_errno = EADDRINUSE, .context = "bind"}) ==
            "bind: Address already in use");
}

TEST_CASE("core result: an unknown errno is an I/O error and keeps its number", "[core]") {
    const Error error = os_error(EUCLEAN, "read");

    REQUIRE(error.code == Errc::kIo);
    REQUIRE(error.os_errno == EUCLEAN);
}

TEST_CASE("core result: errno values fall into the kinds a caller tells apart", "[core]") {
    struct Row {
        int os_errno;
        Errc code;
    };
    const auto row = GENERATE(
        Row{ENOSPC, Errc::kNoSpace}, Row{ENOMEM, Errc::kNoSpace}, Row{EMFILE, Errc::kNoSpace},
        Row{ETIMEDOUT, Errc::kTimedOut}, Row{ECANCELED, Errc::kCancelled},
        Row{EBADMSG, Errc::kCorrupt}, Row{EAGAIN, Errc::kBusy}, Row{EBUSY, Errc::kBusy},
        Row{EINVAL, Errc::kInvalid}, Row{EBADF, Errc::kInvalid}, Row{ENOENT, Errc::kNotFound},
        Row{EPERM, Errc::kDenied}, Row{EACCES, Errc::kDenied}, Row{EROFS, Errc::kDenied},
        Row{EPIPE, Errc::kClosed}, Row{ECONNRESET, Errc::kClosed}, Row{ENOSYS, Errc::kUnsupported},
        Row{EOPNOTSUPP, Errc::kUnsupported}, Row{EIO, Errc::kIo}, Row{0x7fff, Errc::kIo});
    const Error error = os_error(row.os_errno, "x");

    REQUIRE(error.code == row.code);
    REQUIRE(error.os_errno == row.os_errno);
    REQUIRE(std::string(to_string(error.code)) != "unknown error");
}
