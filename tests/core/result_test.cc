#include "core/result.h"

#include <cerrno>

#include "tests/catch.h"

using namespace fopd;

TEST_CASE("core result: describe names context, kind and errno", "[core]") {
    const Error error = os_error(ENOSPC, "write log");

    REQUIRE(error.code == Errc::kNoSpace);
    REQUIRE(describe(error) == "write log: no space (No space left on device)");
}

TEST_CASE("core result: an unknown errno is an I/O error and keeps its number", "[core]") {
    const Error error = os_error(EUCLEAN, "read");

    REQUIRE(error.code == Errc::kIo);
    REQUIRE(error.os_errno == EUCLEAN);
}
