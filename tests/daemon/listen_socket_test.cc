// What a daemon may listen at beside what it was told to.
#include "daemon/listen_socket.h"

#include <cstdint>
#include <vector>

#include "tests/catch.h"

namespace fopd::daemon::testing {

TEST_CASE("daemon listen socket: any free port is none of those that are kept", "[daemon]") {
    // Half of all ports, in pairs: the kernel prefers odd ones.
    const auto is_kept = [](std::uint32_t port) { return port / 2 % 2 == 0; };
    std::vector<std::uint16_t> kept;
    for (std::uint32_t port = 0; port <= UINT16_MAX; ++port) {
        if (is_kept(port)) kept.push_back(static_cast<std::uint16_t>(port));
    }
    for (int i = 0; i < 20; ++i) {
        const auto listener = listen_tcp({.host = "127.0.0.1", .port = 0}, kept);

        REQUIRE(listener.has_value());
        REQUIRE_FALSE(is_kept(listener->port));
    }
}

}  // namespace fopd::daemon::testing
