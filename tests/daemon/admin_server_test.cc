// Goal: whoever comes to the admin socket, with whatever bytes, the others are answered, and
// nothing is left when it stops.
// Method: raw sockets against the real server, with a handler that answers what the test says.
#include "daemon/admin_server.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.h"
#include "tests/daemon/canned_handler.h"
#include "tests/ipv6.h"
#include "tests/slowness.h"
#include "tests/temp_dir.h"

using namespace fopd;
using namespace fopd::daemon;
namespace fs = std::filesystem;

namespace {

constexpr int kPatienceMs = 30'000;
const config::Address kLoopback{.host = "127.0.0.1"};  // Any port.

class Connection {
public:
    explicit Connection(const std::string& path)
        : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
        is_connected_ =
            connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    // From 127.0.0.`from`.
    explicit Connection(std::uint16_t port, std::uint32_t from = 1)
        : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in own{};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + from);
        REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        is_connected_ =
            connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    }
    ~Connection() {
        if (fd_ >= 0) close(fd_);
    }
    Connection(Connection&& other) noexcept
        : fd_(std::exchange(other.fd_, -1)), is_connected_(other.is_connected_) {}

    bool is_connected() const { return is_connected_; }
    // False when the server no longer takes it.
    bool send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return false;
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    // Everything until the server closes.
    std::string receive() {
        std::string all;
        std::array<char, 65536> part{};
        pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
        while (poll(&ready, 1, kPatienceMs) > 0) {
            const ssize_t size = recv(fd_, part.data(), part.size(), 0);
            if (size <= 0) return all;
            all.append(part.data(), static_cast<std::size_t>(size));
        }
        FAIL("the server neither answers nor closes");
        return all;
    }

private:
    int fd_;
    bool is_connected_ = false;
};

template <typename Where>
std::string ask(const Where& where, const std::string& request) {
    Connection connection(where);
    if (!connection.is_connected()) return "not connected";
    connection.send(request + " HTTP/1.1\r\nHost: fopd\r\n\r\n");
    return connection.receive();
}

int status_of(const std::string& reply) {
    return reply.starts_with("HTTP/1.1 ") ? std::stoi(reply.substr(9, 3)) : 0;
}

std::string body_of(const std::string& reply) {
    const std::size_t at = reply.find("\r\n\r\n");
    return at == std::string::npos ? "" : reply.substr(at + 4);
}

bool is_json_error(const std::string& reply) {
    const auto json = nlohmann::json::parse(body_of(reply), nullptr, false);
    return json.is_object() && json.contains("error");
}

std::size_t open_fds() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) ++count;
    return count;
}

struct Fixture {
    Fixture() {
        options.socket = dir / "admin.sock";
        options.idle_timeout = 1s * testing::kSlowness;
    }
    ~Fixture() { handler.release(); }

    StartProblem problem() {
        auto started = AdminServer::start(options, handler, events);
        REQUIRE_FALSE(started.has_value());
        REQUIRE(started.error().message.find('\n') == std::string::npos);
        return started.error();
    }
    void start() {
        auto started = AdminServer::start(options, handler, events);
        if (!started) FAIL(started.error().message);
        server = std::move(*started);
    }
    std::string get(const std::string& path) const { return ask(options.socket, "GET " + path); }

    TempDir dir;
    core::NullEventSink events;
    AdminServer::Options options;
    CannedHandler handler;
    std::unique_ptr<AdminServer> server;
};

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
    REQUIRE(body_of(metrics) == "# EOF\n");
    REQUIRE_THAT(metrics, ContainsSubstring("Content-Type: application/openmetrics-text; "
                                            "version=1.0.0; charset=utf-8\r\n"));
    REQUIRE(status_of(status) == 404);
    REQUIRE(status_of(drain) == 404);
    REQUIRE(f.handler.requests().empty());
    REQUIRE(body_of(f.get("/metrics")) == "# EOF\n");
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
    REQUIRE_THAT(refused, ContainsSubstring("it may have 64KiB"));
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
    REQUIRE_THAT(refused, ContainsSubstring("it may have 1MiB"));

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
    REQUIRE_THAT(problem.message, ContainsSubstring("no socket"));
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
