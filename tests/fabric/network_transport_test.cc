// What an address that is listened at, now or a moment ago, means for the next daemon.
#include "fabric/network_transport.h"

#include <cerrno>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/gate.h"
#include "fabric/socket_address.h"
#include "tests/core/reactor_kinds.h"
#include "tests/killed_process.h"

namespace fopd::fabric::testing {

namespace {

using core::testing::Harness;

constexpr Duration kUntilSubmitted = 1ms;

Address free_address() {
    Address address{.scheme = "tcp", .host = "127.0.0.1", .port = 0, .locality = {}};
    const auto listening = listening_socket(address, "tcp", 1);
    REQUIRE(listening.has_value());
    SocketAddress real;
    REQUIRE(::getsockname(listening->get(), real.get(), &real.size) == 0);
    address.port = address_of("tcp", real.get(), real.size).port;
    return address;
}

Task<void> wait_for_connection(core::Reactor* reactor, int fd) {
    [[maybe_unused]] const auto ready = co_await reactor->poll(fd, POLLIN, {});
}

Task<void> sleep_on(core::Reactor* reactor) {
    [[maybe_unused]] const auto slept = co_await reactor->sleep_for(kUntilSubmitted);
}

}  // namespace

TEST_CASE(
    "fabric network transport: an address of a killed process is free when its ring has ended",
    "[fabric]") {
    const Address address = free_address();
    kill_process_that([&address](const auto& ready) {
        Harness killed(core::testing::Kind::kUring);
        core::Gate gate;
        const auto listening = listening_socket(address, "tcp", 1);
        if (!listening) return;
        killed->spawn(gate, wait_for_connection(&killed.reactor(), listening->get()));
        killed.run(sleep_on(&killed.reactor()));
        ready();
    });

    const auto tried = try_address(address);

    REQUIRE(tried.has_value());
}

TEST_CASE("fabric network transport: an address that a living process listens at is refused",
          "[fabric]") {
    const Address address = free_address();
    const auto listening = listening_socket(address, "tcp", 1);
    REQUIRE(listening.has_value());

    const auto tried = try_address(address);

    REQUIRE_FALSE(tried.has_value());
    REQUIRE(tried.error().os_errno == EADDRINUSE);
}

}  // namespace fopd::fabric::testing
