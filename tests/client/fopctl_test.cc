// Goal: fopctl prints what the server said and ends with the documented exit code, whatever is at
// the other end of the socket.
// Method: run the program against the real admin server with answers of the test's own.
// The file is long because the answers and the pages that they become stand beside each other.
#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <pty.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/entropy.h"
#include "core/poll_backend.h"
#include "daemon/admin_server.h"
#include "daemon/node.h"
#include "daemon/status.h"
#include "daemon/version.h"
#include "tests/catch.h"
#include "tests/client/run_program.h"
#include "tests/daemon/canned_handler.h"
#include "tests/temp_dir.h"

namespace fopctl_test {

using namespace fopd;

namespace {

class SilentManager final : public daemon::ServiceManager {
public:
    void ready() override {}
    void reloading() override {}
    void stopping() override {}
    void extend_timeout(Duration) override {}
    void status(std::string_view) override {}
    void feed_watchdog() override {}
    Duration watchdog_timeout() const override { return 10s; }
};

// What a daemon with two localities says, of which the second is pinned to no core.
nlohmann::ordered_json status_of_a_node() {
    const core::PosixClock clock;
    const auto reactor = [&clock] {
        auto backend = core::make_poll_backend(clock);
        REQUIRE(backend.has_value());
        return std::make_unique<core::Reactor>(std::move(*backend));
    };
    const auto control = reactor();
    const auto first = reactor();
    const auto second = reactor();
    const config::Schema schema = daemon::make_schema();
    auto configuration = daemon::Configuration::open("/etc/fopd/fopd.yaml", [&schema] {
        return schema.load_text("node: {name: node-a, data_dir: /srv}\n", "fopd.yaml");
    });
    REQUIRE(configuration.has_value());
    (*configuration)->set_log_level(core::Level::kDebug);
    core::NullEventSink events;
    core::SeededEntropy entropy(1);
    SilentManager manager;
    const daemon::Node node({.control = *control,
                             .localities = {first.get(), second.get()},
                             .clock = clock,
                             .entropy = entropy,
                             .events = events,
                             .manager = manager,
                             .configuration = **configuration,
                             .transport = {},
                             .load_access = {},
                             .apply_settings = {}},
                            {});
    return nlohmann::ordered_json::parse(daemon::status_json(
        node, **configuration,
        {.log_level = core::Level::kDebug,
         .watchdog_timeout = manager.watchdog_timeout(),
         .threads = {{.core = 0, .cpu_time = {}}, {.core = -1, .cpu_time = {}}}},
        daemon::NodeHealth{}));
}

// Has the test's figures in such an answer; what the daemon does not say cannot be set.
std::string status_json(double uptime_s = 100, std::uint64_t turns = 1000, int pid = 4711) {
    nlohmann::ordered_json status = status_of_a_node();
    status.at("version") = "0.1.0";
    status.at("pid") = pid;
    status.at("state") = "ready";
    status.at("uptime_s") = uptime_s;
    status.at("config").at("hash") = "ab12";
    status.at("warnings") = {"memlock is small"};
    status.at("warning_devices") = {""};
    for (auto& locality : status.at("localities")) {
        locality.at("backend") = "io_uring";
        locality.at("buffers_registered") = true;
        locality.at("since_turn_s") = 0.01;
        locality.at("busy_s") = uptime_s / 4;
        for (const char* key : {"turns", "resumed", "messages", "io_submitted", "io_completed"}) {
            locality.at(key) = turns;
        }
        locality.at("sleeps") = turns / 2;
        locality.at("timers") = 3;
        locality.at("buffers_total") = 1024;
        locality.at("buffers_free") = 1000;
    }
    return status.dump();
}

struct Fixture {
    Fixture() : socket(dir / "admin.sock") {
        auto started = daemon::AdminServer::start({.socket = socket}, handler, events);
        REQUIRE(started.has_value());
        server = std::move(*started);
    }
    ~Fixture() { handler.release(); }

    Ran run(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), FOPCTL);
        return run_program(arguments, {"FOPD_ADMIN=" + socket});
    }

    TempDir dir;
    std::string socket;
    core::NullEventSink events;
    CannedHandler handler;
    std::unique_ptr<daemon::AdminServer> server;
};

Ran run_alone(std::vector<std::string> arguments,
              const std::vector<std::string>& environment = {}) {
    arguments.insert(arguments.begin(), FOPCTL);
    return run_program(arguments, environment);
}

// A listening socket whose one connection gets `reply`, and is closed.
class OneReply {
public:
    OneReply(const std::string& path, std::string reply)
        : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
        REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
        REQUIRE(listen(fd_, 1) == 0);
        thread_ = std::thread([this, bytes = std::move(reply)] {
            const int connection = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
            std::array<char, 4096> request{};
            if (recv(connection, request.data(), request.size(), 0) > 0) {
                send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            }
            close(connection);
        });
    }
    ~OneReply() {
        shutdown(fd_, SHUT_RDWR);
        thread_.join();
        close(fd_);
    }

private:
    int fd_;
    std::thread thread_;
};

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
        ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("fopctl status: a page for people, the server's JSON for scripts", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json());

    const Ran page = f.run({"status"});
    const Ran json = f.run({"status", "--json"});
    const Ran quiet = f.run({"status", "--quiet"});

    REQUIRE(page.exit_code == 0);
    REQUIRE(page.err.empty());
    REQUIRE(page.out ==
            "node-a  ready  up 1m 40s  fopd 0.1.0  pid 4711\n"
            "config    /etc/fopd/fopd.yaml  hash ab12\n"
            "          differs: log.level\n"
            "log       debug\n"
            "watchdog  on\n"
            "\n"
            "LOCALITY  CORE  STATE    BACKEND   LAST TURN   BUSY   I/O  BUFFERS FREE\n"
            "       0     0  turning  io_uring       0.0s  25.0s  1000     1000/1024\n"
            "       1     -  turning  io_uring       0.0s  25.0s  1000     1000/1024\n"
            "warning: memlock is small\n");
    REQUIRE(json.exit_code == 0);
    REQUIRE(json.out == status_json() + "\n");
    REQUIRE(quiet.exit_code == 0);
    REQUIRE(quiet.out.empty());
}

TEST_CASE("fopctl status: problems come with their state, in 80 columns", "[client]") {
    Fixture f;
    auto status = nlohmann::json::parse(status_json());
    status["warnings"] = nlohmann::json::array();
    status["warning_devices"] = nlohmann::json::array();
    status["config"]["needs_restart"] = {"fabric.listen", "localities.receive_buffers",
                                         "localities.cores", "node.data_dir"};
    status["problems"] = {
        {{"state", "critical"},
         {"text",
          "disk d1 has 3 damaged blocks: replace the objects that the log names, then "
          "scrub it"}},
        {{"state", "warning"}, {"text", "the last reload failed: x"}}};
    f.handler.put("/v1/status", 200, status.dump());

    const Ran page = f.run({"status"});

    REQUIRE(page.exit_code == 0);
    REQUIRE_THAT(page.out, ContainsSubstring("          needs restart: fabric.listen, "
                                             "localities.receive_buffers,\n"
                                             "          localities.cores, node.data_dir\n"));
    REQUIRE_THAT(page.out,
                 ContainsSubstring("CRITICAL: disk d1 has 3 damaged blocks: replace the objects "
                                   "that the log names,\n"
                                   "          then scrub it\n"
                                   "WARNING: the last reload failed: x\n"));
}

TEST_CASE("fopctl status: the reason of a disk is printed once", "[client]") {
    Fixture f;
    auto status = nlohmann::json::parse(status_json());
    const std::string reason = "cannot open the disk: No such file or directory";
    const nlohmann::json disk = {{"name", "d1"},        {"pool", "fast"},   {"path", "/srv/d1.img"},
                                 {"state", "given-up"}, {"reason", reason}, {"capacity", nullptr},
                                 {"free", nullptr},     {"slot", 2},        {"errors", 0}};
    status["devices"] = nlohmann::json::array();
    status["devices"].push_back(disk);
    status["warnings"] = {"in words of the daemon's own", "memlock is small",
                          "device d10 (/srv/d1.img) is given-up: " + reason};
    status["warning_devices"] = {"d1", "", ""};
    f.handler.put("/v1/status", 200, status.dump());
    f.handler.put("/v1/status", 200, status.dump());
    // An older daemon does not say which warnings repeat a reason.
    status.erase("warning_devices");
    f.handler.put("/v1/status", 200, status.dump());

    const Ran ran = f.run({"status"});

    REQUIRE(ran.exit_code == 0);
    REQUIRE_THAT(ran.out, ContainsSubstring("\n"
                                            "d1: cannot open the disk: No such file or directory\n"
                                            "warning: memlock is small\n"
                                            "warning: device d10 (/srv/d1.img) is given-up: "));
    const auto in_json = nlohmann::json::parse(f.run({"status", "--json"}).out);
    REQUIRE(in_json["warnings"].size() == 3);

    const Ran older = f.run({"status"});
    REQUIRE(older.exit_code == 0);
    REQUIRE_THAT(older.out, ContainsSubstring("warning: in words of the daemon's own\n"));
}

TEST_CASE("fopctl status: what the server says cannot command the terminal", "[client]") {
    Fixture f;
    auto status = nlohmann::json::parse(status_json());
    status["name"] = "evil\x1b]0;title\x07\n\xc2\x9b";
    status["warnings"] = {"\x1b[2Jwiped"};
    status["localities"][0]["state"] = "\r\x7f";
    f.handler.put("/v1/status", 200, status.dump());

    const Ran ran = f.run({"status"});

    REQUIRE(ran.exit_code == 0);
    REQUIRE_THAT(ran.out, ContainsSubstring(R"(evil\x1b]0;title\x07\n\xc2\x9b  ready)"));
    REQUIRE_THAT(ran.out, ContainsSubstring(R"(\x1b[2Jwiped)"));
    REQUIRE(ran.out.find_first_of("\x1b\x07\r\x7f") == std::string::npos);
}

TEST_CASE("fopctl options: before the verb, after it, or from the environment", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json());

    REQUIRE(run_alone({"--admin", f.socket, "--json", "status"}).out == status_json() + "\n");
    REQUIRE(run_alone({"status", "--json", "--admin", f.socket}).out == status_json() + "\n");
    REQUIRE(run_alone({"--json", "status", "--admin=" + f.socket, "--timeout", "5"}).out ==
            status_json() + "\n");
    REQUIRE(run_alone({"status", "--json"}, {"FOPD_ADMIN=" + f.socket}).out ==
            status_json() + "\n");
    REQUIRE(run_alone({"status", "--json", "--admin", f.socket}, {"FOPD_ADMIN=/nowhere"}).out ==
            status_json() + "\n");
}

TEST_CASE("fopctl options: proxies in the environment are ignored", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json());

    const Ran ran = run_alone({"status", "--json"},
                              {"FOPD_ADMIN=" + f.socket, "http_proxy=http://127.0.0.1:1"});

    REQUIRE(ran.exit_code == 0);
}

TEST_CASE("fopctl usage: unknown words end with 2 and a message", "[client]") {
    const auto arguments = GENERATE(
        std::vector<std::string>{}, std::vector<std::string>{"frobnicate"},
        std::vector<std::string>{"status", "--servers", "tcp://x"},
        std::vector<std::string>{"ping", "--count", "-1"},
        std::vector<std::string>{"bench", "--op", "frob"},
        std::vector<std::string>{"bench", "--size", "4q"},
        std::vector<std::string>{"bench", "--depth", "0"},
        std::vector<std::string>{"bench", "--seconds", "nan"},
        std::vector<std::string>{"bench", "--op", "bulk_echo", "--size", "0"},
        std::vector<std::string>{"ping", "--server", "nonsense"},
        std::vector<std::string>{"trace", "a&b"}, std::vector<std::string>{"key"},
        std::vector<std::string>{"key", "frob"}, std::vector<std::string>{"key", "create"},
        std::vector<std::string>{"key", "create", "a\nb"},
        std::vector<std::string>{"key", "create", "a", "--rights", "fly"},
        std::vector<std::string>{"key", "create", "a", "--groups", "a,,b"},
        std::vector<std::string>{"token", "create", "--rights", "read"},
        std::vector<std::string>{"token", "create", "--issuer", "k", "--rights", "none"},
        std::vector<std::string>{"token", "create", "--issuer", "k", "--rights", "read",
                                 "--expires", "1y"},
        std::vector<std::string>{"token", "create", "--issuer", "k", "--rights", "read", "--fid",
                                 "12"},
        std::vector<std::string>{"token", "create", "--issuer", "k", "--rights", "read", "--fid",
                                 std::string(32, '1'), "--object", "name"},
        std::vector<std::string>{"token", "create", "--issuer", "k", "--rights", "read", "--object",
                                 "a\nb"},
        std::vector<std::string>{"ping", "--token", "nonsense"},
        std::vector<std::string>{"ls", "--token", "nonsense"},
        std::vector<std::string>{"token", "revoke", "nonsense"}, std::vector<std::string>{"keygen"},
        std::vector<std::string>{"log-level"}, std::vector<std::string>{"log-level", "loud"},
        std::vector<std::string>{"top", "--interval", "0"},
        std::vector<std::string>{"top", "--interval", "nan"},
        std::vector<std::string>{"top", "--count", "-1"},
        std::vector<std::string>{"status", "--timeout", "-1"},
        std::vector<std::string>{"status", "--timeout", "nan"},
        std::vector<std::string>{"status", "extra"});

    const Ran ran = run_alone(arguments);

    REQUIRE(ran.exit_code == 2);
    REQUIRE(ran.out.empty());
    REQUIRE_FALSE(ran.err.empty());
}

TEST_CASE("fopctl usage: --help and --version end well", "[client]") {
    const Ran help = run_alone({"--help"});
    const Ran version = run_alone({"--version"});

    REQUIRE(help.exit_code == 0);
    for (const char* verb : {"status", "top", "reload", "drain", "log-level", "sessions", "devices",
                             "trace", "ping", "bench", "keygen", "key", "token"}) {
        REQUIRE_THAT(help.out, ContainsSubstring(verb));
    }
    REQUIRE(version.exit_code == 0);
    REQUIRE(version.out == "fopctl " + std::string(daemon::version()) + "\n");
    REQUIRE(run_alone({"top", "--help"}).exit_code == 0);
}

TEST_CASE("fopctl verbs: reload, drain and log-level report what they did", "[client]") {
    Fixture f;
    f.handler.put(
        "/v1/reload", 200,
        R"({"changed":["log.level"],"needs_restart":["admin.socket"],"devices":[],"hash":"x"})");
    f.handler.put("/v1/reload", 200,
                  R"({"changed":[],"needs_restart":[],"devices":[],"hash":"x"})");
    f.handler.put("/v1/drain", 200, R"({"state":"drained","seconds":2.04})");
    f.handler.put("/v1/log-level", 200, R"({"level":"debug","was":"info"})");

    REQUIRE(f.run({"reload"}).out == "changed: log.level\nneeds a restart: admin.socket\n");
    REQUIRE(f.run({"reload"}).out == "nothing changed\n");
    REQUIRE(f.run({"drain"}).out == "drained after 2.0s; fopd serves again after a restart\n");
    REQUIRE(f.run({"log-level", "debug"}).out == "log level debug, was info\n");
    const auto requests = f.handler.requests();
    REQUIRE(requests.size() == 4);
    REQUIRE(requests[3].method == "POST");
    REQUIRE(requests[3].query.at("level") == "debug");
}

TEST_CASE("fopctl refused: each status of the server has its exit code", "[client]") {
    struct Row {
        int status;
        int exit_code;
        const char* code;
    };
    const Row row =
        GENERATE(Row{400, 2, "usage"}, Row{403, 77, "not_allowed"}, Row{404, 66, "not_found"},
                 Row{500, 1, "refused"}, Row{503, 75, "try_later"}, Row{504, 75, "try_later"});
    Fixture f;
    f.handler.put("/v1/drain", row.status, "{\"error\":\"the reason\\u001b why\"}");

    const Ran ran = f.run({"drain"});
    const Ran for_script = f.run({"drain", "--json"});

    REQUIRE(ran.exit_code == row.exit_code);
    REQUIRE(ran.out.empty());
    REQUIRE(ran.err == "fopctl: drain: the reason\\x1b why\n");
    REQUIRE(for_script.exit_code == row.exit_code);
    REQUIRE(for_script.err ==
            "{\"error\":\"drain: the reason\\\\x1b why\",\"code\":\"" + std::string(row.code) +
                "\",\"exit_code\":" + std::to_string(row.exit_code) + ",\"details\":[]}\n");
}

TEST_CASE("fopctl reload: the problems of a bad file stand one a line", "[client]") {
    Fixture f;
    f.handler.put(
        "/v1/reload", 422,
        R"({"error":"the configuration is bad","problems":["f:1:2: a: b","f:3:4: c: d"]})");

    const Ran ran = f.run({"reload"});

    REQUIRE(ran.exit_code == 78);
    REQUIRE(ran.err == "fopctl: reload: the configuration is bad\nf:1:2: a: b\nf:3:4: c: d\n");
}

TEST_CASE("fopctl no server: the message names the path and what to do", "[client]") {
    const TempDir dir;
    const std::string path = dir / "admin.sock";

    const Ran missing = run_alone({"status", "--admin", path});
    {
        const OneReply stale(path, "");
    }
    const Ran refused = run_alone({"status", "--admin", path});
    const Ran too_long = run_alone({"status", "--admin", dir / std::string(200, 'x')});

    REQUIRE(missing.exit_code == 69);
    REQUIRE_THAT(missing.err, ContainsSubstring(path + ": No such file or directory"));
    REQUIRE_THAT(missing.err, ContainsSubstring("--admin"));
    REQUIRE(refused.exit_code == 69);
    REQUIRE_THAT(refused.err, ContainsSubstring("Connection refused"));
    REQUIRE(too_long.exit_code == 69);
}

TEST_CASE("fopctl not allowed: a socket one may not open ends with 77", "[client]") {
    if (geteuid() != 0) {
        WARN("skipped: only root can become somebody else");
        return;
    }
    Fixture f;
    chmod(f.dir.path().c_str(), 0755);
    const Ran as_nobody = run_program(
        {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", FOPCTL, "status"},
        {"FOPD_ADMIN=" + f.socket});
    if (as_nobody.exit_code == 127 || as_nobody.exit_code == 126) {
        WARN("skipped: nobody cannot run the program where it was built");
        return;
    }

    REQUIRE(as_nobody.exit_code == 77);
    REQUIRE_THAT(as_nobody.err, ContainsSubstring(f.socket + ": not allowed"));
}

TEST_CASE("fopctl foreign server: an answer that is not fopd's ends with 69", "[client]") {
    const std::string ok = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    const std::string reply = GENERATE_COPY(
        ok + "{\"name\":", ok + "[]", ok + "{}", ok, ok + "{\"name\":1,\"state\":[]}",
        std::string("garbage\r\n\r\n"), std::string(""),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"), ok + "\"\xff\"");
    const TempDir dir;
    const OneReply server(dir / "admin.sock", reply);

    const Ran ran = run_alone({"status", "--admin", dir / "admin.sock"});

    REQUIRE(ran.exit_code == 69);
    REQUIRE(ran.out.empty());
    REQUIRE(count_of(ran.err, "\n") == 1);
    CHECK(reply.empty() == ran.err.contains("ended before it answered; see its log"));
}

TEST_CASE("fopctl: a word that is no verb of its group is named, with those there are",
          "[client]") {
    const auto said = [](std::vector<std::string> words) {
        const Ran ran = run_alone(std::move(words));
        CHECK(ran.exit_code == 2);
        CHECK(ran.out.empty());
        return ran.err;
    };
    CHECK(said({"lrs", "bogus"}) ==
          "fopctl: lrs: there is no verb bogus; known here: show, set, which, save, rule\n");
    CHECK(said({"lrs", "rule", "ad", "a job=a"}) ==
          "fopctl: lrs rule: there is no verb ad; did you mean add?\n");
    CHECK(said({"lrs", "rule"}) ==
          "fopctl: lrs rule: a verb is missing; known here: list, add, change, del, load\n");
    CHECK(said({"lrs", "b\x1b[2J"}).find('\x1b') == std::string::npos);
}

TEST_CASE("fopctl sessions: lists the connected clients", "[client]") {
    Fixture f;
    const std::string sessions =
        R"({"sessions":[{"id":"5f3a","locality":1,"peer":"tcp://10.0.0.9:4","client":"0a1b",)"
        R"("principal":"backup","user":"anna","age_s":61.5,"idle_s":0.25,"fops":12,"fops_held":3,"fops_waiting":2,)"
        R"("fop_credits":8,"fop_loans":2,)"
        R"("messages_in":3,"messages_out":4,"bytes_in":500,"bytes_out":600,)"
        R"("bytes_transferred":7}]})";
    f.handler.put("/v1/sessions", 200, sessions);

    REQUIRE(f.run({"sessions", "--json"}).out == sessions + "\n");
    REQUIRE(f.run({"sessions"}).out ==
            "SESSION  PEER              PRINCIPAL  IDLE  FOPS  WAITING\n"
            "   5f3a  tcp://10.0.0.9:4  backup     0.2s    12        2\n");
    REQUIRE(
        f.run({"sessions", "--wide"}).out ==
        "SESSION  LOCALITY  PEER              CLIENT  PRINCIPAL  USER    AGE  IDLE  FOPS  HELD  "
        "WAITING  CREDITS  BYTES IN  BYTES OUT  TRANSFERRED\n"
        "   5f3a         1  tcp://10.0.0.9:4    0a1b  backup     anna  1m 1s  0.2s    12     3  "
        "      2        8       500        600            7\n");
}

TEST_CASE("fopctl trace: without a fop, all that run", "[client]") {
    Fixture f;
    const std::string fops =
        R"({"fops":[{"id":"5f3a-17","op":"bulk_echo","peer":"tcp://10.0.0.9:4",)"
        R"("principal":"backup","state":"running","phase":"execute","age_s":180,"phases":{}}]})";
    f.handler.put("/v1/trace", 200, fops);
    f.handler.put("/v1/trace", 200, fops);

    const Ran json = f.run({"trace", "--json"});
    const Ran page = f.run({"trace"});
    f.handler.put("/v1/trace", 200, fops);
    const Ran wide = f.run({"trace", "--wide"});

    REQUIRE(json.out == fops + "\n");
    REQUIRE(page.out ==
            "    FOP  OP         STATE    PHASE      AGE  PRINCIPAL  WAITS FOR\n"
            "5f3a-17  bulk_echo  running  execute  3m 0s  backup     -\n");
    REQUIRE(wide.out ==
            "    FOP  OP         STATE    PHASE      AGE  PEER              PRINCIPAL  WAITS FOR\n"
            "5f3a-17  bulk_echo  running  execute  3m 0s  tcp://10.0.0.9:4  backup     -\n");
    REQUIRE(f.handler.requests()[0].query.empty());
}

TEST_CASE("fopctl trace: what a fop waits for is whole in 80 columns", "[client]") {
    Fixture f;
    const auto fop = [](const std::string& state, const std::string& phase) {
        return R"({"id":"8c3f00a1b2c3d4e5-123456","op":"set_attributes","peer":"tcp://10.0.0.9:40000",)"
               R"("principal":"backup-of-the-second-floor","state":")" +
               state + R"(","phase":")" + phase +
               R"(","waits_for":"the limit of its class","age_s":3599,"phases":{}})";
    };
    const std::string queued = fop("queued", "queued");
    f.handler.put("/v1/trace", 200, R"({"fops":[)" + queued + "]}");
    f.handler.put("/v1/trace", 200,
                  R"({"fops":[)" + queued + "," + fop("running", "distributed_resources") + "]}");

    const Ran only_queued = f.run({"trace"});
    const Ran both = f.run({"trace"});

    REQUIRE(only_queued.out ==
            "                FOP  OP        STATE       AGE  PRINCIP…  WAITS FOR\n"
            "8c3f00a1b2c3d4e5-1…  set_att…  queued  59m 59s  backup-…  the limit of its class\n");
    for (const Ran& each : {only_queued, both}) {
        REQUIRE(each.out.find("the limit of its class\n") != std::string::npos);
    }
    REQUIRE(both.out.find("PHASE") != std::string::npos);
}

TEST_CASE("fopctl trace: where a fop spent its time", "[client]") {
    Fixture f;
    const std::string fop =
        R"({"id":"5f3a-17","op":"echo","peer":"tcp://10.0.0.9:4","principal":"backup",)"
        R"("state":"finished","status":"done","phase":"reply","age_s":2,)"
        R"("phases":{"queue":0.0000125,"execute":0.000001}})";
    f.handler.put("/v1/trace", 200, fop);
    f.handler.put("/v1/trace", 200, fop);
    f.handler.put("/v1/trace", 404, R"({"error":"no such fop"})");

    const Ran json = f.run({"trace", "5f3a-17", "--json"});
    const Ran page = f.run({"trace", "5f3a-17"});
    const Ran missing = f.run({"trace", "5f3a-18"});

    REQUIRE(json.out == fop + "\n");
    REQUIRE(page.out ==
            "fop 5f3a-17  echo  finished  done\n"
            "peer tcp://10.0.0.9:4  principal backup  arrived 2.0s ago\n"
            "\n"
            "PHASE    MICROSECONDS\n"
            "queue            12.5\n"
            "execute           1.0\n");
    REQUIRE(missing.exit_code == 66);
    REQUIRE(f.handler.requests()[2].query.at("id") == "5f3a-18");
}

TEST_CASE("fopctl --timeout: a server that says nothing is given up", "[client]") {
    Fixture f;
    f.handler.hold("/v1/drain");

    const Ran ran = f.run({"drain", "--timeout", "0.2"});

    REQUIRE(ran.exit_code == 75);
    REQUIRE_THAT(ran.err, ContainsSubstring("--timeout"));
}

TEST_CASE("fopctl top: rates are differences of two looks", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json(100, 1000));
    f.handler.put("/v1/status", 200, status_json(102, 1500));
    f.handler.put("/v1/status", 200, status_json(104, 1500));

    const Ran ran = f.run({"top", "--count", "2", "--interval", "0.01"});

    REQUIRE(ran.exit_code == 0);
    REQUIRE(ran.out ==
            "node-a  ready  up 1m 42s\n"
            "LOCALITY  CORE  BUSY %  TURNS/S  SLEEPS/S  RESUMED/S  I/O/S  MESSAGES/S  BUFFERS\n"
            "       0     0    25.0      250       125        250    250         250     1000\n"
            "       1     -    25.0      250       125        250    250         250     1000\n"
            "node-a  ready  up 1m 44s\n"
            "LOCALITY  CORE  BUSY %  TURNS/S  SLEEPS/S  RESUMED/S  I/O/S  MESSAGES/S  BUFFERS\n"
            "       0     0    25.0        0         0          0      0           0     1000\n"
            "       1     -    25.0        0         0          0      0           0     1000\n");
}

TEST_CASE("fopctl top: --json prints one object for each interval", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json(100, 1000));
    f.handler.put("/v1/status", 200, status_json(102, 1500));

    const Ran ran = f.run({"top", "--json", "--count", "1", "--interval", "0.01"});

    REQUIRE(ran.exit_code == 0);
    const auto object = nlohmann::json::parse(ran.out);
    REQUIRE(object["interval_s"] == 2.0);
    REQUIRE(object["localities"].size() == 2);
    REQUIRE(object["localities"][1]["turns_per_s"] == 250.0);
    REQUIRE(object["localities"][1]["busy"] == 0.25);
}

TEST_CASE("fopctl top: a daemon that was restarted is not compared with its past", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json(100, 1000, 1));
    f.handler.put("/v1/status", 200, status_json(101, 10, 2));
    f.handler.put("/v1/status", 200, status_json(102, 20, 2));

    const Ran ran = f.run({"top", "--json", "--count", "1", "--interval", "0.01"});

    REQUIRE(nlohmann::json::parse(ran.out)["localities"][0]["turns_per_s"] == 10.0);
}

TEST_CASE("fopctl top: a reader that leaves ends it", "[client]") {
    Fixture f;
    for (int i = 0; i < 20; ++i) f.handler.put("/v1/status", 200, status_json(100 + i, 1000));
    // 141: ended by SIGPIPE; 0: saw at once that nobody reads.
    const std::string script =
        std::string(FOPCTL) + " top --interval 0.01 | head -n 1; echo ${PIPESTATUS[0]}";

    const Ran ran = run_program({"/bin/bash", "-c", script}, {"FOPD_ADMIN=" + f.socket});

    REQUIRE(ran.signal == 0);
    REQUIRE((ran.out.ends_with("\n141\n") || ran.out.ends_with("\n0\n")));
}

TEST_CASE("fopctl output: a full disk is reported", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json());

    const Ran ran =
        run_program({"/bin/bash", "-c", std::string(FOPCTL) + " status --json > /dev/full"},
                    {"FOPD_ADMIN=" + f.socket});

    REQUIRE(ran.exit_code == 1);
    REQUIRE_THAT(ran.err, ContainsSubstring("standard output: No space left on device"));
}

namespace {

// `fopctl top` on a terminal of its own, which gets a Ctrl-C when `is_time(screen)`.
struct Interrupted {
    std::string screen;
    int status = 0;
};
template <typename IsTime>
Interrupted interrupt_top(const std::string& socket_path, IsTime&& is_time) {
    int terminal = -1;
    const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
    REQUIRE(child >= 0);
    if (child == 0) {
        execl(FOPCTL, FOPCTL, "--admin", socket_path.c_str(), "top", "--interval", "0.05",
              static_cast<char*>(nullptr));
        _exit(126);
    }

    Interrupted ran;
    bool is_interrupted = false;
    std::array<char, 4096> part{};
    pollfd ready{.fd = terminal, .events = POLLIN, .revents = 0};
    while (poll(&ready, 1, 15'000) > 0) {
        const ssize_t size = read(terminal, part.data(), part.size());
        if (size <= 0) break;
        ran.screen.append(part.data(), static_cast<std::size_t>(size));
        if (!is_interrupted && is_time(ran.screen)) {
            is_interrupted = write(terminal, "\x03", 1) == 1;
        }
    }
    close(terminal);
    REQUIRE(waitpid(child, &ran.status, 0) == child);
    return ran;
}

void require_given_back(const Interrupted& ran) {
    REQUIRE(WIFSIGNALED(ran.status));
    REQUIRE(WTERMSIG(ran.status) == SIGINT);
    REQUIRE(ran.screen.starts_with("\x1b[?1049h"));
    REQUIRE(ran.screen.ends_with("\x1b[?1049l"));
}

}  // namespace

TEST_CASE("fopctl top: Ctrl-C gives the terminal back", "[client]") {
    Fixture f;
    f.handler.put("/v1/status", 200, status_json(100, 1000));
    f.handler.put("/v1/status", 200, status_json(101, 2000));
    f.handler.put("/v1/status", 200, status_json(102, 3000));

    const Interrupted ran = interrupt_top(f.socket, [](const std::string& screen) {
        return screen.find("node-a  ready") != std::string::npos;
    });

    require_given_back(ran);
}

TEST_CASE("fopctl top: Ctrl-C ends it while the daemon is silent", "[client]") {
    Fixture f;
    f.handler.hold("/v1/status");

    const Interrupted ran = interrupt_top(f.socket, [&f](const std::string&) {
        f.handler.wait_requests(1);
        return true;
    });

    require_given_back(ran);
}

TEST_CASE("fopctl device forget: a device or a slot, and it says what is lost", "[client]") {
    Fixture f;
    const std::string done =
        R"({"device":"d1","result":"forgotten","file":"/etc/fopd.yaml","in_file":true,)"
        R"("lost":{"slot":2,"disk":"00ff","pool":"fast","objects":17},"now":null})";
    f.handler.put("/v1/device/forget", 200, done);
    for (const auto& arguments :
         std::vector<std::vector<std::string>>{{"device", "forget"},
                                               {"device", "forget", "d1", "--slot", "2"},
                                               {"device", "forget", "a b"},
                                               {"device", "forget", "--slot", "65536"}}) {
        REQUIRE(f.run(arguments).exit_code == 2);
    }

    const Ran page = f.run({"device", "forget", "d1", "--yes"});

    REQUIRE(page.exit_code == 0);
    REQUIRE(page.out ==
            "slot 2 of pool fast is written off: disk 00ff with at least 17 objects is forgotten\n"
            "/etc/fopd.yaml still names d1\n");
    REQUIRE(f.run({"device", "forget", "--slot", "2", "--yes", "--json"}).out == done + "\n");
}

TEST_CASE("fopctl devices: a line for each disk, and why one is not used", "[client]") {
    Fixture f;
    const std::string list =
        R"({"devices":[{"name":"d0","family":"disk","pool":"fast","path":"/a",)"
        R"("state":"good","read_only":false,"reason":"",)"
        R"("capacity":8588886016,"used":1048576,"free":8587837440,)"
        R"("slot":1,"disk":"00","locality":0,"errors":0,)"
        R"("scrub":{"damaged_blocks":3},"damaged_blocks":2,)"
        R"("used_percent":97,"nearly_full":true},)"
        R"({"name":"d1","family":"disk","pool":"fast","path":"/b",)"
        R"("state":"given-up","read_only":false,"reason":"is \u001b[2J",)"
        R"("capacity":null,"used":null,"free":null,)"
        R"("slot":null,"disk":null,"locality":1,"errors":3}]})";
    f.handler.put("/v1/devices", 200, list);

    const Ran page = f.run({"devices"});

    REQUIRE(page.exit_code == 0);
    REQUIRE(page.out ==
            "DEVICE  POOL  STATE     CAPACITY     FREE  USED  SLOT  ERRORS  DAMAGED\n"
            "d0      fast  good       8.0 GiB  8.0 GiB   97%     1       0        3\n"
            "d1      fast  given-up         -        -     -     -       3        0\n"
            "d0: 3 damaged blocks: replace the objects that the log names, then scrub it\n"
            "d0: it is nearly full: 97% are in use\n"
            "d1: is \\x1b[2J\n"
            "\n"
            "DEVICE  LOCALITY  PATH\n"
            "d0             0  /a\n"
            "d1             1  /b\n");
    REQUIRE(f.run({"devices", "--json"}).out == list + "\n");
}

}  // namespace fopctl_test
