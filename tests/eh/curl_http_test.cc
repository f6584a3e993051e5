// Goal: a call over HTTP ends in time and within its limits, whatever the server does, and tells
// whether the request may have arrived. Method: a server of the test on loopback. Times are
// compared with limits far above what is needed.

#include "eh/etcd/curl_http.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/catch.h"
#include "tests/eh/scripted_server.h"

using namespace fopd;
using namespace fopd::eh::etcd;
using namespace fopd::eh::testing;

namespace {

constexpr Duration kLong = 60s;
constexpr Duration kShort = 100ms;
constexpr int kForEver = 600'000;  // ms

std::unique_ptr<Http> make_http(std::size_t answer_max = 3U << 20U) {
    auto http = make_curl_http({.answer_max = answer_max});
    REQUIRE(http);
    return std::move(*http);
}

std::string answer_of(std::string_view body) {
    return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
}

Duration time_of(const auto& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::steady_clock::now() - start;
}

}  // namespace

TEST_CASE("eh http: a request and its answer arrive as they are", "[eh][real]") {
    std::string seen;
    const ScriptedServer server([&seen](Connection& connection) {
        seen = connection.read_request();
        connection.write(answer_of(std::string_view("a\0b", 3)));
    });
    const auto http = make_http();
    // Longer than what curl would first ask leave for.
    const std::string body(2'000'000, 'x');
    const auto answer = http->post(
        {.url = server.url() + "/v3/kv/range", .body = body, .token = "abc.1", .time = kLong});
    REQUIRE(answer);
    CHECK(answer->status == 200);
    CHECK(answer->body == std::string_view("a\0b", 3));
    CHECK(seen.starts_with("POST /v3/kv/range HTTP/1.1\r\n"));
    CHECK(seen.find("\r\nAuthorization: abc.1\r\n") != std::string::npos);
    CHECK(seen.find("\r\nContent-Type: application/json\r\n") != std::string::npos);
    CHECK(seen.find("Expect") == std::string::npos);
    CHECK(seen.ends_with("\r\n\r\n" + body));
}

TEST_CASE("eh http: the status is told, and no redirection is followed", "[eh][real]") {
    const ScriptedServer server([](Connection& connection) {
        (void)connection.read_request();
        connection.write(
            "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
    });
    const auto answer = make_http()->post({.url = server.url(), .body = "{}", .time = kLong});
    REQUIRE(answer);
    CHECK(answer->status == 307);
}

TEST_CASE("eh http: a server that does not answer in time is not waited for", "[eh][real]") {
    struct Sample {
        const char* name;
        std::function<void(Connection&)> serve;
    };
    const std::vector<Sample> samples = {
        {"silent", [](Connection& connection) { connection.is_closed_within(kForEver); }},
        {"half an answer",
         [](Connection& connection) {
             (void)connection.read_request();
             connection.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
             connection.is_closed_within(kForEver);
         }},
        {"a byte now and then",
         [](Connection& connection) {
             (void)connection.read_request();
             connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
             while (!connection.is_closed_within(5) && connection.write("x")) {
             }
         }},
        {"a header now and then",
         [](Connection& connection) {
             (void)connection.read_request();
             connection.write("HTTP/1.1 200 OK\r\n");
             while (!connection.is_closed_within(5) && connection.write("X: y\r\n")) {
             }
         }},
        {"only ever to continue",
         [](Connection& connection) {
             (void)connection.read_request();
             while (!connection.is_closed_within(5) &&
                    connection.write("HTTP/1.1 100 Continue\r\n\r\n")) {
             }
         }},
    };
    for (const auto& [name, serve] : samples) {
        CAPTURE(name);
        const ScriptedServer server(serve);
        const auto http = make_http();
        const Duration time = time_of([&] {
            const auto answer = http->post({.url = server.url(), .body = "{}", .time = kShort});
            REQUIRE_FALSE(answer);
            CHECK(answer.error().code == Errc::kTimedOut);
            CHECK(answer.error().may_have_arrived);
            CHECK(answer.error().reason == "no answer in time");
        });
        CHECK(time >= kShort * 9 / 10);
        CHECK(time < kLong / 2);
    }
}

TEST_CASE("eh http: an answer that is too long is not read to its end", "[eh][real]") {
    const std::string block(10'000, 'x');
    const bool is_header = GENERATE(false, true);
    const ScriptedServer server([&](Connection& connection) {
        (void)connection.read_request();
        connection.write("HTTP/1.1 200 OK\r\n");
        if (!is_header) connection.write("Transfer-Encoding: chunked\r\n\r\n");
        const std::string part =
            is_header ? "X: " + block + "\r\n" : "2710\r\n" + block + "\r\n";  // 2710 is 10 000.
        while (connection.write(part)) {
        }
    });
    const auto answer =
        make_http(100'000)->post({.url = server.url(), .body = "{}", .time = kLong});
    REQUIRE_FALSE(answer);
    CHECK(answer.error().may_have_arrived);
    CHECK(answer.error().reason == "the answer is longer than any that etcd gives");
}

TEST_CASE("eh http: a connection that is lost tells whether the request was sent", "[eh][real]") {
    const auto http = make_http();
    std::uint16_t port = 0;
    {
        const ScriptedServer server(
            [](Connection& connection) { (void)connection.read_request(); });
        const auto answer = http->post({.url = server.url(), .body = "{}", .time = kLong});
        REQUIRE_FALSE(answer);
        CHECK(answer.error().may_have_arrived);
        CHECK(answer.error().code == Errc::kIo);
        CHECK_FALSE(answer.error().reason.empty());
        port = server.port();
    }
    const auto answer = http->post(
        {.url = "http://127.0.0.1:" + std::to_string(port), .body = "{}", .time = kLong});
    REQUIRE_FALSE(answer);
    CHECK_FALSE(answer.error().may_have_arrived);
    CHECK_THAT(answer.error().reason, ContainsSubstring("127.0.0.1 port " + std::to_string(port)));
    const auto nowhere =
        http->post({.url = "http://nowhere.invalid:2379", .body = "{}", .time = kLong});
    REQUIRE_FALSE(nowhere);
    CHECK_FALSE(nowhere.error().may_have_arrived);
    CHECK_THAT(nowhere.error().reason, ContainsSubstring("nowhere.invalid"));
}

TEST_CASE("eh http: a request is sent once, also where a connection is closed at once",
          "[eh][real]") {
    std::atomic<int> requests = 0;
    const ScriptedServer server([&requests](Connection& connection) {
        if (connection.read_request().empty()) return;
        if (requests.fetch_add(1) == 0) connection.write(answer_of("{}"));
    });
    const auto http = make_http();
    CHECK(http->post({.url = server.url(), .body = "{}", .time = kLong}));
    CHECK_FALSE(http->post({.url = server.url(), .body = "{}", .time = kLong}));
    CHECK(requests == 2);
}

TEST_CASE("eh http: nonsense is an error", "[eh][real]") {
    for (const std::string_view text :
         {"\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 abc\r\n\r\n", "\x16\x03\x01\x02",
          "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}) {
        CAPTURE(text);
        const ScriptedServer server([text](Connection& connection) {
            (void)connection.read_request();
            connection.write(text);
        });
        const auto answer = make_http()->post({.url = server.url(), .body = "{}", .time = kLong});
        REQUIRE_FALSE(answer);
        CHECK(answer.error().may_have_arrived);
    }
}

TEST_CASE("eh http: another thread ends a call and all later ones", "[eh][real]") {
    std::atomic<bool> is_there = false;
    const ScriptedServer server([&is_there](Connection& connection) {
        (void)connection.read_request();
        is_there = true;
        is_there.notify_all();
        connection.is_closed_within(kForEver);
    });
    const auto http = make_http();
    std::thread canceller([&] {
        is_there.wait(false);
        http->cancel();
    });
    const Duration time = time_of([&] {
        for (int i = 0; i < 2; ++i) {
            const auto answer = http->post({.url = server.url(), .body = "{}", .time = kLong});
            REQUIRE_FALSE(answer);
            CHECK(answer.error().code == Errc::kCancelled);
        }
    });
    canceller.join();
    CHECK(time < kLong / 2);
}
