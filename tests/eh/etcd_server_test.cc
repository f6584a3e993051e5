// Goal: the store of etcd works with Debian's etcd, and keeps its word while servers are killed,
// stopped, full or locked. Method: etcd as a process of the test, one or three. What must happen is
// waited for: in etcd's log, or by calls that end in time.

#include "tests/eh/etcd_server.h"

#include <array>
#include <fstream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "eh/etcd/curl_http.h"
#include "eh/etcd/etcd_view_store.h"
#include "tests/catch.h"
#include "tests/client/run_program.h"
#include "tests/eh/fake_etcd.h"
#include "tests/eh/scripted_server.h"
#include "tests/eh/view_store_suite.h"
#include "tests/slowness.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::etcd;
using namespace fopd::eh::testing;
using fopd::testing::kSlowness;
using Json = nlohmann::json;

namespace {

constexpr Duration kTimeout = 12s * kSlowness;  // Where an answer must come; at most a minute.

// A node's way to etcd.
class Life {
public:
    Life(core::testing::Harness& harness, core::Offload& offload, EtcdStoreOptions options)
        : harness_(harness),
          http(*make_curl_http({.ca = options.ca, .cert = options.cert, .key = options.key})),
          store_(std::move(options), *http, clock_, events, harness.reactor(), offload),
          user(store_, [&harness](StoreUser& of) { harness.run(of.answer(&harness.reactor())); }) {}
    ~Life() { CHECK(harness_.run(store_.stop(kNever))); }

    HttpAnswer ask(const std::string& url, const std::string& body, const std::string& token = {}) {
        const auto answer =
            http->post({.url = url, .body = body, .token = token, .time = kTimeout});
        if (!answer) FAIL(url << ": " << answer.error().reason);
        return *answer;
    }

private:
    core::testing::Harness& harness_;
    core::PosixClock clock_;

public:
    EventLines events;
    std::unique_ptr<Http> http;

private:
    EtcdViewStore store_;

public:
    StoreUser user;
};

class EtcdStage final : public StoreStage {
public:
    explicit EtcdStage(EtcdStoreOptions options) : options_(std::move(options)) {
        auto made = core::make_thread_offload({.name = "etcd"});
        REQUIRE(made);
        offload_ = std::move(*made);
        EtcdStage::restart();
    }
    std::vector<StoreUser*> users() override { return {&lives_[0]->user, &lives_[1]->user}; }
    void restart() override {
        for (auto& life : lives_) life.emplace(harness_, *offload_, options_);
    }
    Life& operator*() { return *lives_[0]; }
    Life* operator->() { return &*lives_[0]; }
    StoreUser& user() { return lives_[0]->user; }

private:
    const EtcdStoreOptions options_;
    core::testing::Harness harness_{core::testing::Kind::kPoll};
    std::unique_ptr<core::Offload> offload_;
    std::array<std::optional<Life>, 2> lives_;
};

EtcdStoreOptions options_for(const std::vector<std::string>& endpoints,
                             Duration timeout = kTimeout) {
    return {.endpoints = endpoints, .timeout = timeout};
}

class Cluster {
public:
    Cluster() {
        for (const char* const name : {"one", "two", "three"}) {
            // Quick, and patient enough for a busy machine.
            servers_.push_back(std::make_unique<EtcdServer>(EtcdServer::Options{
                .name = name, .arguments = {"--heartbeat-interval=50", "--election-timeout=500"}}));
            names_ += (names_.empty() ? "" : ",") + servers_.back()->peer();
        }
        for (const auto& server : servers_) server->start(names_);
        for (const auto& server : servers_) server->wait_until_ready();
    }
    std::vector<std::string> urls() const {
        std::vector<std::string> all;
        for (const auto& server : servers_) all.push_back(server->url());
        return all;
    }
    EtcdServer& operator[](std::size_t index) { return *servers_[index]; }
    void restart(std::size_t index) { servers_[index]->start(names_); }

private:
    std::vector<std::unique_ptr<EtcdServer>> servers_;
    std::string names_;
};

// The line of the log in which `reason` is; empty: there is none.
std::string event_with(Life& life, std::string_view reason) {
    for (const std::string& line : life.events.take()) {
        if (line.find(reason) != std::string::npos) return line;
    }
    return {};
}

std::string output_of(const std::vector<std::string>& command) {
    const Ran ran = run_program(command, {});
    if (ran.exit_code != 0) FAIL(command[0] << " " << command[1] << ": " << ran.err);
    return ran.out;
}

// Certificates by one authority: of servers that may also be clients, as etcd's gateway needs it,
// of those that may not, and of a client.
class Certificates {
public:
    Certificates() {
        output_of({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                   "ec_paramgen_curve:P-256", "-nodes", "-keyout", file("ca.key"), "-out",
                   file("ca.pem"), "-days", "2", "-subj", "/CN=ca"});
        make("server", "serverAuth,clientAuth");
        make("server_only", "serverAuth");
        make("client", "clientAuth");
    }
    std::string file(const std::string& name) const { return directory_ / name; }

private:
    void make(const std::string& name, const std::string& uses) {
        output_of({"/usr/bin/openssl", "req", "-newkey", "ec", "-pkeyopt",
                   "ec_paramgen_curve:P-256", "-nodes", "-keyout", file(name + ".key"), "-out",
                   file(name + ".csr"), "-subj", "/CN=" + name});
        std::ofstream(file(name + ".ext"))
            << "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=" << uses << "\n";
        output_of({"/usr/bin/openssl", "x509", "-req", "-in", file(name + ".csr"), "-CA",
                   file("ca.pem"), "-CAkey", file("ca.key"), "-CAcreateserial", "-days", "2",
                   "-extfile", file(name + ".ext"), "-out", file(name + ".pem")});
    }

    const TempDir directory_;
};

EtcdServer::Options with_certificate(const Certificates& certificates, const std::string& name) {
    return {.arguments = {"--cert-file=" + certificates.file(name + ".pem"),
                          "--key-file=" + certificates.file(name + ".key"),
                          "--trusted-ca-file=" + certificates.file("ca.pem"), "--client-cert-auth"},
            .has_tls = true};
}

}  // namespace

TEST_CASE("eh etcd server: the store keeps the newest of views that follow each other",
          "[eh][real]") {
    if (etcd_program().empty()) return;
    EtcdServer server({});
    server.start();
    server.wait_until_ready();
    {
        EtcdStage stage(options_for({server.url()}));
        check_view_store(stage, true);
    }
    // Its neighbours' endpoints are dead, or no etcd.
    const ScriptedServer other([](Connection& connection) {
        (void)connection.read_request();
        connection.write("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    EtcdStoreOptions options =
        options_for({"http://127.0.0.1:1", other.url(), server.url(), "http://nowhere.invalid:1"});
    options.prefix = "/another";
    EtcdStage stage(options);
    check_view_store(stage, true);
}

TEST_CASE("eh etcd server: the longest view that is sent fits, old ones are compacted",
          "[eh][real]") {
    if (etcd_program().empty()) return;
    EtcdServer server({});
    server.start();
    server.wait_until_ready();
    EtcdStage stage(options_for({server.url()}));
    // As many members as fit into what the client sends.
    View view = make_view(1, 1)->view();
    while (encode_view(view).size() < 1536 * 1024 - 4096 - 256) {
        RosterEntry entry = view.roster[0];
        const std::size_t room = 1536 * 1024 - 4096 - 100 - encode_view(view).size();
        for (std::size_t i = 0; i <= room / 256 && view.roster.size() < kRosterMax; ++i) {
            entry.name = std::to_string(view.roster.size());
            entry.address = std::string(200, 'x');
            view.roster.push_back(entry);
        }
    }
    CHECK(stage.user().swap(std::make_shared<const CommittedView>(view)) == Swapped::kYes);
    CHECK((*stage.user().read())->view() == view);

    for (ViewNumber number = 1; number < 32; ++number)
        REQUIRE(stage.user().swap(number, 1) == Swapped::kYes);
    const HttpAnswer old = stage->ask(server.url() + std::string(kRangePath),
                                      R"({"key":"L2ZvcGQvdmlldw==","revision":"3"})");
    CHECK(parse_refusal(old.body).is_compacted);
    CHECK(stage.user().read().value()->number() == 32);
    CHECK(stage->events.take().empty());
}

TEST_CASE("eh etcd server: three of them, then two, then one, then two", "[eh][real]") {
    if (etcd_program().empty()) return;
    Cluster cluster;
    {
        EtcdStage stage(options_for(cluster.urls()));
        check_view_store(stage, true);
    }
    EtcdStage stage(options_for(cluster.urls()));
    // The leader is killed; who is asked first is the leader, too, if it is the first one.
    const Json status =
        Json::parse(stage->ask(cluster[0].url() + "/v3/maintenance/status", "{}").body);
    std::size_t leader = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        const Json own =
            Json::parse(stage->ask(cluster[i].url() + "/v3/maintenance/status", "{}").body);
        if (own.at("header").at("member_id") == status.at("leader")) leader = i;
    }
    const std::size_t left = (leader + 1) % 3;
    const std::size_t away = (leader + 2) % 3;
    cluster[leader].kill();
    Swapped swapped = stage.user().swap(5, 9);
    // An endpoint that waits for a new leader may give up, and leave it open.
    for (int i = 0; i < 20 && swapped != Swapped::kYes; ++i) swapped = stage.user().swap(5, 9);
    CHECK(swapped == Swapped::kYes);

    // No quorum any more: no yes, and each call ends.
    cluster[away].kill();
    {
        EtcdStage hasty(options_for({cluster[left].url()}, 300ms));
        CHECK(hasty.user().read().error().code == Errc::kTimedOut);
        CHECK(hasty.user().swap(6, 10) == Swapped::kNo);
    }
    cluster.restart(away);
    cluster[away].wait_until_ready();
    CHECK(stage.user().read().value()->view().writer.attempt == 9);
    CHECK(stage.user().swap(6, 11) == Swapped::kYes);
}

TEST_CASE("eh etcd server: one that is stopped in a swap leaves it unknown", "[eh][real]") {
    if (etcd_program().empty()) return;
    EtcdServer server({});
    server.start();
    server.wait_until_ready();
    EtcdStage hasty(options_for({server.url()}, 300ms * kSlowness));
    EtcdStage patient(options_for({server.url()}));
    REQUIRE(patient.user().swap(0, 1) == Swapped::kYes);
    REQUIRE(hasty.user().read());
    server.pause();
    CHECK(hasty.user().swap(1, 2) == Swapped::kUnknown);
    CHECK_FALSE(hasty.user().read());
    CHECK(event_with(*hasty, "no answer in time") ==
          "eh.etcd_failed endpoint=" + server.url() + " reason=no answer in time");
    server.go_on();
    // It does what it was sent, sooner or later; writing the same again settles it.
    CHECK(patient.user().swap(make_view(2, 2)) == Swapped::kYes);
    CHECK(patient.user().read().value()->view().writer.attempt == 2);
    CHECK(patient.user().swap(2, 3) == Swapped::kYes);
}

TEST_CASE("eh etcd server: an answer that was lost after the write is settled", "[eh][real]") {
    if (etcd_program().empty()) return;
    EtcdServer server({});
    server.start();
    server.wait_until_ready();
    const auto port =
        static_cast<std::uint16_t>(std::stoi(server.url().substr(server.url().rfind(':') + 1)));
    std::atomic<bool> cuts = false;
    const ScriptedServer proxy([&](Connection& connection) {
        const std::string request = connection.read_request();
        if (request.empty()) return;
        Connection etcd = Connection::to(port);
        etcd.write(request);
        std::string answer = etcd.read_some();
        if (cuts && request.find(kTxnPath) != std::string::npos) return;
        for (; !answer.empty(); answer = etcd.read_some()) {
            connection.write(answer);
            if (connection.is_closed_within(0)) return;
            if (answer.ends_with("}\n") || answer.ends_with('}')) return;
        }
    });
    EtcdStage stage(options_for({proxy.url()}));
    REQUIRE(stage.user().swap(0, 1) == Swapped::kYes);
    cuts = true;
    CHECK(stage.user().swap(1, 2) == Swapped::kUnknown);
    CHECK(stage.user().read().value()->view().writer.attempt == 2);
    CHECK(stage.user().swap(1, 2) == Swapped::kYes);
    {
        // The other way there settles it at once.
        EtcdStage both(options_for({proxy.url(), server.url()}));
        CHECK(both.user().swap(2, 3) == Swapped::kYes);
    }
    cuts = false;
    CHECK(stage.user().read().value()->view().writer.attempt == 3);
}

TEST_CASE("eh etcd server: users, passwords, and tokens that end", "[eh][real]") {
    if (etcd_program().empty()) return;
    EtcdServer server(
        {.arguments = {"--auth-token-ttl=1", "--bcrypt-cost=4", "--log-level=debug"}});
    server.start();
    server.wait_until_ready();
    EtcdStage nobody(options_for({server.url()}));
    const std::string auth = server.url() + "/v3/auth/";
    const std::pair<const char*, const char*> steps[] = {
        {"user/add", R"({"name":"root","password":"top"})"},
        {"role/add", R"({"name":"root"})"},
        {"user/grant", R"({"user":"root","role":"root"})"},
        {"user/add", R"({"name":"fopd","password":"secret"})"},
        {"user/add", R"({"name":"guest","password":"guest"})"},
        {"role/add", R"({"name":"epochs"})"},
        // "/fopd/" to "/fopd0": all keys below the prefix.
        {"role/grant",
         R"({"name":"epochs","perm":{"permType":"READWRITE","key":"L2ZvcGQv","range_end":"L2ZvcGQw"}})"},
        {"user/grant", R"({"user":"fopd","role":"epochs"})"},
        {"enable", "{}"},
    };
    for (const auto& [path, body] : steps) REQUIRE(nobody->ask(auth + path, body).status == 200);

    EtcdStoreOptions options = options_for({server.url()});
    options.user = "fopd";
    options.password = "secret";
    EtcdStage stage(options);
    CHECK(stage.user().swap(0, 1) == Swapped::kYes);
    server.wait_for_log("deleted a simple token");
    CHECK(stage.user().swap(1, 2) == Swapped::kYes);
    CHECK(stage->events.take().empty());

    CHECK(nobody.user().read().error().code == Errc::kDenied);
    CHECK_FALSE(event_with(*nobody, "etcd wants a user and a password").empty());
    options.password = "wrong";
    EtcdStage wrong(options);
    CHECK(wrong.user().swap(2, 3) == Swapped::kNo);
    CHECK_FALSE(event_with(*wrong, "authentication failed").empty());
    options.user = "guest";
    options.password = "guest";
    EtcdStage guest(options);
    CHECK(guest.user().read().error().code == Errc::kDenied);
    CHECK_FALSE(event_with(*guest, "permission denied").empty());

    // The user of the store may also compact.
    for (ViewNumber number = 2; number < 32; ++number)
        REQUIRE(stage.user().swap(number, 1) == Swapped::kYes);
    CHECK(stage->events.take().empty());
}

TEST_CASE("eh etcd server: a full one writes nothing, until it has room again", "[eh][real]") {
    if (etcd_program().empty()) return;
    EtcdServer server({.arguments = {"--quota-backend-bytes=4194304"}});
    server.start();
    server.wait_until_ready();
    EtcdStage stage(options_for({server.url()}));
    // The request that reaches the quota is refused, and done or not, as the version of etcd has
    // it.
    ViewNumber newest = 0;
    while (newest < 31 && stage.user().swap(make_view(newest + 1, 1, 15'000)) == Swapped::kYes)
        ++newest;
    CHECK_FALSE(event_with(*stage, "etcd is full").empty());
    CHECK(stage.user().read().value()->number() == newest);
    CHECK(stage.user().swap(newest, 2) == Swapped::kNo);

    // As docs/running.md says: compact, defragment, end the alarm.
    const Json status = Json::parse(stage->ask(server.url() + "/v3/maintenance/status", "{}").body);
    const std::string revision = status.at("header").at("revision");
    const std::string member = status.at("header").at("member_id");
    const std::pair<std::string, std::string> steps[] = {
        {std::string(kCompactPath), R"({"revision":")" + revision + R"(","physical":true})"},
        {"/v3/maintenance/defragment", "{}"},
        {"/v3/maintenance/alarm",
         R"({"action":"DEACTIVATE","alarm":"NOSPACE","memberID":")" + member + R"("})"},
    };
    for (const auto& [path, body] : steps) {
        CAPTURE(path);
        REQUIRE(stage->ask(server.url() + path, body).status == 200);
    }
    CHECK(stage.user().swap(newest, 3) == Swapped::kYes);
}

TEST_CASE("eh etcd server: certificates on both sides", "[eh][real]") {
    if (etcd_program().empty()) return;
    const Certificates certificates;
    EtcdStoreOptions options;
    options.ca = certificates.file("ca.pem");
    options.cert = certificates.file("client.pem");
    options.key = certificates.file("client.key");
    options.timeout = kTimeout;
    {
        EtcdServer server(with_certificate(certificates, "server"));
        server.start();
        server.wait_until_ready();
        options.endpoints = {server.url()};
        EtcdStage stage(options);
        CHECK(stage.user().swap(0, 1) == Swapped::kYes);
        CHECK(stage.user().read().value()->number() == 1);

        EtcdStoreOptions bare = options;
        bare.cert.clear();
        bare.key.clear();
        EtcdStage without(bare);
        CHECK_FALSE(without.user().read());
        CHECK_FALSE(without->events.take().empty());
        EtcdStoreOptions distrustful = options;
        distrustful.ca.clear();
        EtcdStage stranger(distrustful);
        CHECK_FALSE(stranger.user().read());
        CHECK(stranger.user().swap(1, 9) == Swapped::kNo);
        CHECK_FALSE(event_with(*stranger, "certificate").empty());
    }
    EtcdServer server(with_certificate(certificates, "server_only"));
    server.start();
    server.wait_until_ready();
    options.endpoints = {server.url()};
    EtcdStage stage(options);
    CHECK_FALSE(stage.user().read());
    CHECK_FALSE(event_with(*stage, "must allow clientAuth").empty());
}
