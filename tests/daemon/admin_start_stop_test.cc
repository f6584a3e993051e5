// Goal: the admin server takes only addresses that are free, and leaves nothing when it stops.
// Method: raw sockets against the real server, with a handler that answers what the test says.
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/daemon/admin_connection.h"
#include "tests/ipv6.h"

using namespace fopd;
using namespace fopd::daemon;
using namespace fopd::daemon::admin_testing;
namespace fs = std::filesystem;

namespace {

// Listens at a path and leaves the file behind, as a process does that is killed.
void leave_stale_socket(const std::string& path) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(listen(fd, 1) == 0);
    close(fd);
}

}  // namespace

TEST_CASE("admin server: stopping leaves neither file nor descriptor", "[daemon][admin]") {
    Fixture f;
    f.options.metrics = kLoopback;
    const std::size_t before = open_fds();
    f.start();
    REQUIRE(status_of(f.get("/v1/status")) == 200);
    const std::uint16_t port = f.server->metrics_port();
    {
        const Connection idle(f.options.socket);

        f.server->stop();
    }

    REQUIRE_FALSE(fs::exists(f.options.socket));
    REQUIRE(ask(port, "GET /metrics") == "not connected");
    REQUIRE(open_fds() == before);
    f.server->stop();
}

TEST_CASE("admin server: stopping lets a reply under way finish", "[daemon][admin]") {
    Fixture f;
    f.options.stop_wait = 30s;
    f.handler.put("/v1/drain", 200, R"({"state":"drained"})");
    f.handler.hold("/v1/drain");
    f.start();
    Connection connection(f.options.socket);
    connection.send("POST /v1/drain HTTP/1.1\r\nHost: fopd\r\n\r\n");
    f.handler.wait_requests(1);

    std::thread stopping([&] { f.server->stop(); });
    while (fs::exists(f.options.socket)) std::this_thread::yield();
    f.handler.release();
    const std::string reply = connection.receive();
    stopping.join();

    REQUIRE(body_of(reply) == R"({"state":"drained"})");
}

TEST_CASE("admin server: stopping leaves a file alone that is not its own", "[daemon][admin]") {
    Fixture f;
    f.start();
    fs::remove(f.options.socket);
    std::ofstream(f.options.socket) << "mine";

    f.server->stop();

    REQUIRE(fs::file_size(f.options.socket) == 4);
}

TEST_CASE("admin server: a stale socket is replaced", "[daemon][admin]") {
    Fixture f;
    leave_stale_socket(f.options.socket);

    f.start();

    REQUIRE(status_of(f.get("/v1/status")) == 200);
}

TEST_CASE("admin server: a socket in use is left alone, and its process named", "[daemon][admin]") {
    Fixture f;
    f.start();

    const StartProblem problem = f.problem();

    REQUIRE(problem.exit_code == 75);
    REQUIRE(problem.message == "admin socket " + f.options.socket + " is in use by process " +
                                   std::to_string(getpid()));
    REQUIRE(status_of(f.get("/v1/status")) == 200);
}

TEST_CASE("admin server: a place where no socket can be is named", "[daemon][admin]") {
    Fixture f;

    f.options.socket = f.dir / "missing/admin.sock";
    REQUIRE(f.problem().exit_code == 73);
    REQUIRE_THAT(f.problem().message, ContainsSubstring("directory " + (f.dir / "missing") +
                                                        ": No such file or directory"));

    f.options.socket = f.dir / std::string(108, 'x');
    REQUIRE(f.problem().exit_code == 73);
    REQUIRE_THAT(f.problem().message, ContainsSubstring("1 to 107 bytes"));

    f.options.socket = "";
    REQUIRE(f.problem().exit_code == 73);
}

TEST_CASE("admin server: a path of 107 bytes is taken", "[daemon][admin]") {
    Fixture f;
    f.options.socket = f.dir / std::string(107 - f.dir.path().size() - 1, 'x');
    REQUIRE(f.options.socket.size() == 107);

    f.start();

    REQUIRE(status_of(f.get("/v1/status")) == 200);
}

TEST_CASE("admin server: a file that is no socket is never removed", "[daemon][admin]") {
    Fixture f;
    std::ofstream(f.options.socket) << "precious";

    const StartProblem problem = f.problem();

    REQUIRE(problem.exit_code == 73);
    REQUIRE_THAT(problem.message, ContainsSubstring("not a socket"));
    REQUIRE(fs::file_size(f.options.socket) == 8);
}

TEST_CASE("admin server: a metrics address in use, or of another host, is named",
          "[daemon][admin]") {
    Fixture f;
    f.options.metrics = kLoopback;
    f.start();
    Fixture g;
    g.options.metrics = config::Address{.host = "127.0.0.1", .port = f.server->metrics_port()};
    const StartProblem in_use = g.problem();
    REQUIRE(in_use.exit_code == 75);
    REQUIRE(in_use.message == "metrics address " + f.server->metrics_address() + " is in use");
    REQUIRE_FALSE(fs::exists(g.options.socket));

    const std::string bad = GENERATE("no.such.host.invalid", "192.0.2.1");
    g.options.metrics = config::Address{.host = bad, .port = 9420};
    REQUIRE(g.problem().exit_code == 78);
    REQUIRE_THAT(g.problem().message, ContainsSubstring(bad + ":9420"));
}

TEST_CASE("admin server: IPv6 addresses stand in brackets", "[daemon][admin]") {
    if (!fopd::testing::has_ipv6()) {
        WARN("skipped: no IPv6 here");
        return;
    }
    Fixture f;
    f.options.metrics = config::Address{.host = "::1"};

    f.start();

    REQUIRE(f.server->metrics_address() == "[::1]:" + std::to_string(f.server->metrics_port()));
}

TEST_CASE("admin server: two that start at one path at once, one of them serves",
          "[daemon][admin]") {
    for (int round = 0; round < 20; ++round) {
        Fixture f;
        leave_stale_socket(f.options.socket);
        std::array<Started<std::unique_ptr<AdminServer>>, 4> started;
        {
            std::vector<std::thread> threads;
            for (auto& result : started) {
                threads.emplace_back(
                    [&f, &result] { result = AdminServer::start(f.options, f.handler, f.events); });
            }
            for (std::thread& thread : threads) thread.join();
        }

        const auto serving = std::count_if(started.begin(), started.end(),
                                           [](const auto& result) { return result.has_value(); });
        REQUIRE(serving == 1);
        REQUIRE(status_of(f.get("/v1/status")) == 200);
    }
}
