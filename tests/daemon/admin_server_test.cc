// Goal: whoever comes to the admin socket, with whatever bytes, the others are answered.
// Method: raw sockets against the real server, with a handler that answers what the test says.
#include "daemon/admin_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
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

using namespace fopd;
using namespace fopd::daemon;
using namespace fopd::daemon::admin_testing;
namespace fs = std::filesystem;

TEST_CASE("admin server: a request reaches the handler and its reply comes back",
          "[daemon][admin]") {
    Fixture f;
    f.handler.put("/v1/log-level", 200, R"({"level":"debug","was":"info"})");
    f.start();

    Connection connection(f.options.socket);
    connection.send(
        "POST /v1/log-level?level=de%62ug&empty HTTP/1.1\r\nHost: fopd\r\nContent-Length: "
        "4\r\n\r\nb");
    connection.send("ody");
    const std::string reply = connection.receive();

    REQUIRE(status_of(reply) == 200);
    REQUIRE(body_of(reply) == R"({"level":"debug","was":"info"})");
    REQUIRE_THAT(reply, ContainsSubstring("Content-Type: application/json\r\n"));
    const auto requests = f.handler.requests();
    REQUIRE(requests.size() == 1);
    REQUIRE(requests[0].method == "POST");
    REQUIRE(requests[0].query ==
            std::map<std::string, std::string>{{"level", "debug"}, {"empty", ""}});
    REQUIRE(requests[0].body == "body");
}

TEST_CASE("admin server: unknown paths and wrong methods are refused in JSON", "[daemon][admin]") {
    Fixture f;
    f.start();

    const std::string unknown = f.get("/v1/nothing");
    const std::string wrong_get = f.get("/v1/drain");
    const std::string wrong_post = ask(f.options.socket, "POST /v1/status");

    REQUIRE(status_of(unknown) == 404);
    REQUIRE(is_json_error(unknown));
    REQUIRE(status_of(wrong_get) == 405);
    REQUIRE(is_json_error(wrong_get));
    REQUIRE_THAT(wrong_get, ContainsSubstring("Allow: POST\r\n"));
    REQUIRE(status_of(wrong_post) == 405);
    REQUIRE_THAT(wrong_post, ContainsSubstring("Allow: GET, HEAD\r\n"));
    REQUIRE(f.handler.requests().empty());
}

TEST_CASE("admin server: HEAD has the header of GET and no body", "[daemon][admin]") {
    Fixture f;
    f.handler.put("/v1/status", 200, "{\"state\":\"ready\"}");
    f.start();

    const std::string reply = ask(f.options.socket, "HEAD /v1/status");

    REQUIRE(status_of(reply) == 200);
    REQUIRE_THAT(reply, ContainsSubstring("Content-Length: 17\r\n"));
    REQUIRE(body_of(reply).empty());
}

TEST_CASE("admin server: TCP serves the metrics and nothing else", "[daemon][admin]") {
    Fixture f;
    const std::string host = GENERATE("127.0.0.1", "localhost");
    f.options.metrics = config::Address{.host = host};
    f.start();
    REQUIRE(f.server->metrics_port() != 0);
    if (f.server->metrics_address().starts_with("[")) return;  // localhost is ::1 here.

    const std::string metrics = ask(f.server->metrics_port(), "GET /metrics");
    const std::string status = ask(f.server->metrics_port(), "GET /v1/status");
    const std::string drain = ask(f.server->metrics_port(), "POST /v1/drain");

    REQUIRE(status_of(metrics) == 200);
    REQUIRE(body_of(metrics) == "# text\n");
    REQUIRE_THAT(metrics,
                 ContainsSubstring("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    REQUIRE(status_of(status) == 404);
    REQUIRE(status_of(drain) == 404);
    REQUIRE(f.handler.requests().empty());
    REQUIRE(body_of(f.get("/metrics")) == "# text\n");
}

TEST_CASE("admin server: the socket is for its owner and group alone", "[daemon][admin]") {
    Fixture f;
    f.start();

    struct stat status{};
    REQUIRE(lstat(f.options.socket.c_str(), &status) == 0);
    REQUIRE((status.st_mode & 07777) == 0660);
    const group* const fopd = getgrnam("fopd");
    if (fopd != nullptr && geteuid() == 0) REQUIRE(status.st_gid == fopd->gr_gid);
}

TEST_CASE("admin server: garbage costs only its own connection", "[daemon][admin]") {
    Fixture f;
    f.start();
    std::string every_byte;
    for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
    const std::string garbage = GENERATE_COPY(
        every_byte + "\r\n\r\n", std::string("\r\n\r\n\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("GET /v1/status\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
        std::string("POST /v1/drain HTTP/1.1\r\nHost: f\r\nContent-Length: -5\r\n\r\n"),
        std::string("POST /v1/drain HTTP/1.1\r\nHost: f\r\nTransfer-Encoding: "
                    "chunked\r\n\r\nZZ\r\n"));

    Connection connection(f.options.socket);
    connection.send(garbage);
    connection.receive();

    REQUIRE(status_of(f.get("/v1/status")) == 200);
}

TEST_CASE("admin server: half a request and then silence is given up", "[daemon][admin]") {
    Fixture f;
    f.start();
    Connection connection(f.options.socket);
    connection.send("GET /v1/sta");

    REQUIRE(status_of(f.get("/v1/status")) == 200);
    REQUIRE(connection.receive().find("200") == std::string::npos);
}

TEST_CASE("admin server: a huge header is refused", "[daemon][admin]") {
    Fixture f;
    f.start();
    Connection connection(f.options.socket);
    connection.send("GET /v1/status HTTP/1.1\r\nHost: fopd\r\nX-Long: " +
                    std::string(1 << 20, 'x') + "\r\n\r\n");

    const int status = status_of(connection.receive());

    REQUIRE((status == 0 || (status >= 400 && status < 500)));
    REQUIRE(f.handler.requests().empty());
    REQUIRE(status_of(f.get("/v1/status")) == 200);
}

TEST_CASE("admin server: a body of 64 KiB passes, a larger one is refused", "[daemon][admin]") {
    Fixture f;
    f.start();
    const auto post = [&](std::size_t size) {
        Connection connection(f.options.socket);
        connection.send("POST /v1/reload HTTP/1.1\r\nHost: fopd\r\nContent-Length: " +
                        std::to_string(size) + "\r\n\r\n");
        connection.send(std::string(size, 'x'));
        return connection.receive();
    };

    REQUIRE(status_of(post(AdminServer::kBodyMax)) == 200);
    REQUIRE(f.handler.requests().at(0).body.size() == AdminServer::kBodyMax);
    const std::string refused = post(AdminServer::kBodyMax + 1);
    REQUIRE(status_of(refused) == 413);
    REQUIRE(is_json_error(refused));
    REQUIRE_THAT(refused, ContainsSubstring("larger than 64KiB"));
    REQUIRE(status_of(post(100 << 20)) == 413);
    REQUIRE(f.handler.requests().size() == 1);
}

TEST_CASE("admin server: a few large bodies at a time are taken where a path takes them",
          "[daemon][admin]") {
    Fixture f;
    f.start();
    const auto send = [](Connection& connection, std::size_t size) {
        connection.send("POST /v1/lrs/rule/load HTTP/1.1\r\nHost: fopd\r\nContent-Length: " +
                        std::to_string(size) + "\r\n\r\n");
        connection.send(std::string(size, 'x'));
    };
    const auto post = [&](std::size_t size) {
        Connection connection(f.options.socket);
        send(connection, size);
        return connection.receive();
    };
    constexpr std::size_t kMax = 1UL << 20;

    REQUIRE(status_of(post(kMax)) == 200);
    REQUIRE(f.handler.requests().at(0).body.size() == kMax);
    const std::string refused = post(kMax + 1);
    REQUIRE(status_of(refused) == 413);
    REQUIRE_THAT(refused, ContainsSubstring("larger than 1MiB"));

    f.handler.hold("/v1/lrs/rule/load");
    std::vector<std::unique_ptr<Connection>> held;
    for (int i = 0; i < 4; ++i) {
        send(*held.emplace_back(std::make_unique<Connection>(f.options.socket)), kMax);
    }
    f.handler.wait_requests(5);
    REQUIRE(status_of(post(kMax)) == 503);
    f.handler.release();
    for (const auto& each : held) REQUIRE(status_of(each->receive()) == 200);
    held.clear();
    REQUIRE(f.handler.requests().size() == 5);
}

TEST_CASE("admin server: large bodies that come too slowly keep no other out", "[daemon][admin]") {
    Fixture f;
    f.options.idle_timeout = 60s * fopd::testing::kSlowness;
    f.options.large_body_timeout = 0s;
    f.start();
    const std::string begun =
        "POST /v1/lrs/rule/load HTTP/1.1\r\nHost: fopd\r\nContent-Length: 1000000\r\n\r\n";
    std::vector<Connection> slow;
    for (int i = 0; i < 4; ++i) {
        slow.emplace_back(f.options.socket);
        slow.back().send(begun + std::string(100'000, 'x'));
    }

    const auto post = [&] {
        Connection connection(f.options.socket);
        connection.send(begun + std::string(1'000'000, 'x'));
        return connection.receive();
    };

    // Until the server has read what the slow ones have sent, there are free places.
    const auto patience = std::chrono::steady_clock::now() + 30s * fopd::testing::kSlowness;
    const auto has_given_way = [&] { return std::ranges::any_of(slow, &Connection::is_ended); };
    while (!has_given_way() && std::chrono::steady_clock::now() < patience) post();
    CHECK(has_given_way());
    CHECK(status_of(post()) == 200);
}

TEST_CASE("admin server: a chunked body without end is cut", "[daemon][admin]") {
    Fixture f;
    f.start();
    Connection connection(f.options.socket);
    connection.send("POST /v1/reload HTTP/1.1\r\nHost: fopd\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";

    int chunks = 0;
    while (chunks < 4096 && connection.send(chunk)) ++chunks;

    REQUIRE(chunks < 4096);
    REQUIRE(f.handler.requests().empty());
}

TEST_CASE("admin server: a slow answer holds up no other, and is not idleness", "[daemon][admin]") {
    Fixture f;
    f.handler.put("/v1/drain", 200, R"({"state":"drained"})");
    f.handler.hold("/v1/drain");
    f.start();
    Connection slow(f.options.socket);
    slow.send("POST /v1/drain HTTP/1.1\r\nHost: fopd\r\n\r\n");
    f.handler.wait_requests(1);
    // Closed when the idle time is over; the slow answer outlasts two of these.
    for (int i = 0; i < 2; ++i) Connection(f.options.socket).receive();

    REQUIRE(status_of(f.get("/v1/status")) == 200);
    f.handler.release();
    REQUIRE(body_of(slow.receive()) == R"({"state":"drained"})");
}

TEST_CASE("admin server: clients that are slow to send keep nobody out", "[daemon][admin]") {
    Fixture f;
    f.options.idle_timeout = 60s;
    f.options.metrics = kLoopback;
    f.start();
    const std::uint16_t port = f.server->metrics_port();
    std::vector<Connection> slow;
    for (std::uint32_t i = 0; i < AdminServer::kConnectionsMax + 32; ++i) {
        slow.emplace_back(f.options.socket);
        slow.back().send("GET /v1/status HTTP/1.1\r\nHost:");
        // From many addresses.
        slow.emplace_back(port, 2 + i);
        slow.back().send("GET /metrics HTTP/1.1\r\nHost:");
    }

    Connection over_tcp(port);
    over_tcp.send("GET /metrics HTTP/1.1\r\nHost: fopd\r\n\r\n");
    CHECK(status_of(over_tcp.receive()) == 200);
    CHECK(status_of(ask(f.options.socket, "GET /metrics")) == 200);
}

// Each asks for more than the kernel keeps for it, so that its thread waits in the middle of the
// answer.
TEST_CASE("admin server: clients that take nothing of their answer keep nobody out",
          "[daemon][admin]") {
    Fixture f;
    f.options.idle_timeout = 60s;
    f.options.metrics = kLoopback;
    const std::string large(4UL << 20, 'x');
    f.handler.put_metrics(large);
    f.start();
    const std::uint16_t port = f.server->metrics_port();
    // More than libmicrohttpd takes.
    constexpr std::uint32_t kDeaf = 700;
    std::vector<Connection> deaf;
    for (std::uint32_t i = 0; i < kDeaf; ++i) {
        deaf.emplace_back(port, 2 + i, Connection::Segments::kSmall);
        deaf.back().send("GET /metrics HTTP/1.1\r\nHost: fopd\r\n\r\n");
        REQUIRE(f.handler.wait_metrics_asked(i + 1));
    }

    const std::string answer = ask(port, "GET /metrics");
    CHECK(status_of(answer) == 200);
    CHECK(body_of(answer).size() == large.size());
    CHECK(status_of(ask(f.options.socket, "GET /metrics")) == 200);
    // The oldest were cut off.
    const std::string cut = deaf.front().receive();
    CHECK(status_of(cut) == 200);
    CHECK(body_of(cut).size() < large.size());
}

TEST_CASE("admin server: of too many connections of one address the oldest give way",
          "[daemon][admin]") {
    Fixture f;
    f.options.idle_timeout = 60s;
    f.options.metrics = kLoopback;
    f.start();
    const std::uint16_t port = f.server->metrics_port();
    Connection other(port, 2);
    other.send("GET /metrics HTTP/1.1\r\n");
    std::vector<Connection> slow;
    for (std::uint32_t i = 0; i < 1500; ++i) {
        slow.emplace_back(port);
        slow.back().send("GET /metrics HTTP/1.1\r\nHost:");
    }

    Connection one_more(port);
    one_more.send("GET /metrics HTTP/1.1\r\nHost: fopd\r\n\r\n");
    CHECK(status_of(one_more.receive()) == 200);
    CHECK(slow.front().receive().empty());
    other.send("Host: fopd\r\n\r\n");
    CHECK(status_of(other.receive()) == 200);
}

TEST_CASE("admin server: a hundred connections at once are all answered", "[daemon][admin]") {
    Fixture f;
    f.start();
    std::vector<Connection> connections;
    for (int i = 0; i < 100; ++i) {
        connections.emplace_back(f.options.socket);
        REQUIRE(connections.back().is_connected());
        connections.back().send("GET /v1/status HTTP/1.1\r\nHost: fopd\r\n\r\n");
    }

    for (Connection& connection : connections) {
        const int status = status_of(connection.receive());
        REQUIRE((status == 200 || status == 503));
    }
}

TEST_CASE("admin server: requests above the limit are answered 503", "[daemon][admin]") {
    Fixture f;
    f.options.requests_max = 2;
    f.handler.hold("/v1/reload");
    f.start();
    std::vector<Connection> waiting;
    for (int i = 0; i < 2; ++i) {
        waiting.emplace_back(f.options.socket);
        waiting.back().send("POST /v1/reload HTTP/1.1\r\nHost: fopd\r\n\r\n");
    }
    f.handler.wait_requests(2);

    const std::string refused = f.get("/v1/status");

    REQUIRE(status_of(refused) == 503);
    REQUIRE(is_json_error(refused));
    f.handler.release();
    for (Connection& connection : waiting) REQUIRE(status_of(connection.receive()) == 200);
    REQUIRE(status_of(f.get("/v1/status")) == 200);
}

TEST_CASE("admin server: requests that wait keep no others out", "[daemon][admin]") {
    Fixture f;
    f.options.requests_max = 1;
    f.options.late_requests_max = 2;
    f.handler.hold("/v1/drain");
    f.start();
    std::vector<Connection> waiting;
    for (std::uint32_t i = 0; i < f.options.late_requests_max; ++i) {
        waiting.emplace_back(f.options.socket);
        waiting.back().send("POST /v1/drain HTTP/1.1\r\nHost: fopd\r\n\r\n");
    }
    f.handler.wait_requests(f.options.late_requests_max);

    REQUIRE(status_of(ask(f.options.socket, "POST /v1/drain")) == 503);
    REQUIRE(status_of(f.get("/v1/status")) == 200);
    REQUIRE(status_of(f.get("/metrics")) == 200);
    REQUIRE(status_of(ask(f.options.socket, "POST /v1/reload")) == 200);
    f.handler.release();
    for (Connection& connection : waiting) REQUIRE(status_of(connection.receive()) == 200);
}

TEST_CASE("admin server: a client that leaves before its reply ends nothing", "[daemon][admin]") {
    Fixture f;
    f.handler.put("/v1/drain", 200, std::string(1 << 20, ' '));
    f.handler.hold("/v1/drain");
    f.start();
    {
        Connection connection(f.options.socket);
        connection.send("POST /v1/drain HTTP/1.1\r\nHost: fopd\r\n\r\n");
        f.handler.wait_requests(1);
    }
    f.handler.release();

    REQUIRE(status_of(f.get("/v1/status")) == 200);
}
