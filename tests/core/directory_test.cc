#include "core/directory.h"

#include <cerrno>
#include <string_view>

#include "tests/catch.h"

namespace fopd::core {

TEST_CASE("core directory: the directory of a path is what stands before its last slash",
          "[core]") {
    REQUIRE(directory_of("name") == ".");
    REQUIRE(directory_of("/name") == "/");
    REQUIRE(directory_of("a/name") == "a");
    REQUIRE(directory_of("/a/b/name") == "/a/b");
}

TEST_CASE("core directory: what cannot be synced is said with its context and errno", "[core]") {
    const auto missing = sync_directory("/nonexistent", "sync the directory of a test");
    const auto file = sync_directory("/proc/self/exe", "sync the directory of a test");

    REQUIRE_FALSE(missing.has_value());
    REQUIRE(missing.error().os_errno == ENOENT);
    REQUIRE(missing.error().context == std::string_view("sync the directory of a test"));
    REQUIRE_FALSE(file.has_value());
    REQUIRE(file.error().os_errno == ENOTDIR);
}

}  // namespace fopd::core
