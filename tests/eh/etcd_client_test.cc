// Goal: the store of etcd asks for what it needs, never claims what etcd has not done, and says in
// words why something fails. Method: pure functions; and the client over an etcd in memory, whose
// answers get lost, come late or make no sense. Time passes only while a request hangs.

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/random.h"
#include "eh/etcd/client.h"
#include "tests/catch.h"
#include "tests/eh/fake_etcd.h"
#include "tests/eh/view_store_suite.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::etcd;
using namespace fopd::eh::testing;

namespace {

std::vector<std::byte> bytes_in(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

struct ClientStage {
    explicit ClientStage(EtcdStoreOptions options = {.endpoints = {"http://one:2379"}})
        : client(std::move(options), etcd, clock, events) {}

    Swapped swap(ViewNumber expected, std::uint64_t attempt) {
        return client.swap(expected, make_view(expected + 1, attempt));
    }
    ViewNumber stored_number() const { return stored().number; }
    std::uint64_t stored_attempt() const { return stored().writer.attempt; }
    View stored() const {
        const auto found = etcd.keys().find("/fopd/view");
        if (found == etcd.keys().end()) return {};
        return decode_view(found->second.value).value();
    }

    ManualClock clock;
    EventLines events;
    FakeEtcd etcd{clock};
    EtcdClient client;
};

EtcdStoreOptions three_endpoints() {
    return {.endpoints = {"http://one:2379", "http://two:2379", "http://three:2379"}};
}

EtcdStoreOptions with_user() {
    return {.endpoints = {"http://one:2379"}, .user = "fopd", .password = "secret"};
}

}  // namespace

TEST_CASE("eh etcd: requests are as the gateway wants them", "[eh]") {
    CHECK(read_body("/fopd/view") == R"({"key":"L2ZvcGQvdmlldw=="})");
    CHECK(swap_body("k", 12, bytes_in("v")) ==
          R"({"compare":[{"key":"aw==","mod_revision":"12","result":"EQUAL","target":"MOD"}],)"
          R"("failure":[{"request_range":{"key":"aw=="}}],)"
          R"("success":[{"request_put":{"key":"aw==","value":"dg=="}}]})");
    CHECK(compact_body(7) == R"({"revision":"7"})");
    CHECK(authenticate_body("a\"", "b\n") == R"({"name":"a\"","password":"b\n"})");
}

TEST_CASE("eh etcd: answers are understood as etcd 3.4 words them", "[eh]") {
    constexpr std::string_view kHeader = R"("header":{"cluster_id":"81","revision":"3"})";
    const auto with = [&](std::string_view rest) {
        return "{" + std::string(kHeader) + std::string(rest) + "}";
    };
    const std::string record =
        R"("kvs":[{"key":"aw==","create_revision":"2","mod_revision":"3","version":"2","value":"dg=="}])";

    CHECK_FALSE(parse_read(with("")).value());
    const auto read = parse_read(with("," + record + R"(,"count":"1")"));
    CHECK((*read)->value == bytes_in("v"));
    CHECK((*read)->revision == 3);
    CHECK((*parse_read(with(R"(,"kvs":[{"mod_revision":"3"}])")))->value.empty());

    const auto put = parse_swap(
        with(R"(,"succeeded":true,"responses":[{"response_put":{"header":{"revision":"3"}}}])"));
    CHECK(put->is_put);
    CHECK(put->revision == 3);
    const auto other = parse_swap(with(R"(,"responses":[{"response_range":{)" + record + "}}]"));
    CHECK_FALSE(other->is_put);
    CHECK(other->found->value == bytes_in("v"));
    const auto none = parse_swap(with(R"(,"responses":[{"response_range":{}}])"));
    CHECK_FALSE(none->is_put);
    CHECK_FALSE(none->found);

    CHECK(parse_token(with(R"(,"token":"WkciUsio.19")")).value() == "WkciUsio.19");
    CHECK(parse_refusal(R"({"error":"etcdserver: invalid auth token","code":16})").wants_token);
    CHECK(parse_refusal(R"({"code":8,"message":"etcdserver: mvcc: database space exceeded"})")
              .is_full);
    CHECK(parse_refusal("Not Found").message.empty());
}

TEST_CASE("eh etcd: what etcd would not answer is refused", "[eh]") {
    const std::string deep(200'000, '[');
    for (const std::string& text : std::vector<std::string>{
             "", "{", "null", "[]", "3", "\xff", "{}", deep, R"({"header":)" + deep,
             R"({"header":{"revision":"3"},"kvs":{}})", R"({"header":{"revision":"3"},"kvs":[]})",
             R"({"header":{"revision":"3"},"kvs":[{"mod_revision":"3"},{"mod_revision":"3"}]})",
             R"({"header":{"revision":"3"},"kvs":[3]})",
             R"({"header":{"revision":"3"},"kvs":[{"value":"dg=="}]})",
             R"({"header":{"revision":"3"},"kvs":[{"mod_revision":3}]})",
             R"({"header":{"revision":"3"},"kvs":[{"mod_revision":"-3"}]})",
             R"({"header":{"revision":"3"},"kvs":[{"mod_revision":"99999999999999999999"}]})",
             R"({"header":{"revision":"3"},"kvs":[{"mod_revision":"3","value":"dg"}]})"}) {
        CAPTURE(text.substr(0, 100));
        CHECK_FALSE(parse_read(text));
        CHECK_FALSE(parse_swap(text));
    }
    for (const char* const text :
         {R"({"succeeded":true})", R"({"header":{},"succeeded":true})",
          R"({"header":{"revision":"3"},"succeeded":"true"})",
          R"({"header":{"revision":"3"},"succeeded":false})",
          R"({"header":{"revision":"3"},"responses":[]})",
          R"({"header":{"revision":"3"},"responses":[{"response_put":{}}]})"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_swap(text));
    }
    for (const char* const text :
         {R"({"token":""})", R"({"token":3})", R"({"token":"a\r\nX: b"})", R"({"token":"a b"})"}) {
        CHECK_FALSE(parse_token(text));
    }
    CHECK(parse_token(R"({"token":")" + std::string(9000, 'a') + "\"}").error().code ==
          Errc::kCorrupt);
    // Goes into the log.
    CHECK(parse_refusal(R"({"message":"a\nb"})").message == "a\\nb");
    CHECK(parse_refusal(R"({"message":")" + std::string(9000, 'a') + "\"}").message.size() == 200);
}

TEST_CASE("eh etcd: an answer takes time by its length only", "[eh]") {
    const auto answer_of = [](std::string_view value) {
        std::string text = R"({"header":{"revision":"3"},"kvs":[)";
        for (int i = 0; i < 50'000; ++i) text += std::string(value) + ",";
        return text + std::string(value) + "]}";
    };
    const auto time_of = [](const std::string& text) {
        auto best = std::chrono::steady_clock::duration::max();
        for (int i = 0; i < 3; ++i) {
            const auto start = std::chrono::steady_clock::now();
            CHECK_FALSE(parse_read(text));
            best = std::min(best, std::chrono::steady_clock::now() - start);
        }
        return best;
    };
    CHECK(time_of(answer_of("{}")) < 50 * time_of(answer_of(R"("")")));
}

TEST_CASE("eh etcd: options that cannot work are named", "[eh]") {
    const EtcdStoreOptions good{.endpoints = {"http://10.0.0.1:2379", "http://[::1]:2379"}};
    CHECK(problem_of(good).empty());
    const auto problem = [&good](const auto& change) {
        EtcdStoreOptions options = good;
        change(options);
        return problem_of(options);
    };
    CHECK(problem([](auto& options) { options.endpoints.clear(); }) == "etcd needs an endpoint");
    CHECK(problem([](auto& options) { options.endpoints = {"10.0.0.1:2379"}; }) ==
          "an endpoint must begin with http:// or https://");
    CHECK(problem([](auto& options) { options.endpoints = {"http://:2379"}; }) ==
          "an endpoint needs a host");
    CHECK(problem([](auto& options) { options.endpoints = {"http://a:b@c:2379"}; }) ==
          "an endpoint must not have a user or password");
    CHECK(problem([](auto& options) { options.endpoints = {"http://a:2379/v3"}; }) ==
          "an endpoint must end with its host and port, such as https://10.0.1.1:2379");
    CHECK(problem([](auto& options) { options.endpoints.resize(17, options.endpoints[0]); }) ==
          "etcd has at most 16 endpoints");
    CHECK(problem([](auto& options) { options.ca = "ca.pem"; }) ==
          "with certificates, all endpoints must begin with https://");
    CHECK(problem([](auto& options) {
              options.endpoints = {"https://a"};
              options.cert = "a.pem";
          }) == "a client certificate needs its key, and a key its certificate");
    CHECK(problem([](auto& options) { options.user = "fopd"; }) ==
          "a user needs a password, and a password a user");
    CHECK(problem([](auto& options) { options.prefix = "/"; }) ==
          "the prefix must not be empty or end with /");
    CHECK(problem([](auto& options) { options.timeout = 0s; }) ==
          "the timeout must be 50 ms to 60 s");
}

TEST_CASE("eh etcd: a call takes no longer than the timeout, whatever the endpoints do", "[eh]") {
    const Fate fate = GENERATE(Fate::kHangs, Fate::kAnswerLate, Fate::kDoneLater);
    ClientStage stage(three_endpoints());
    for (const std::string& endpoint : three_endpoints().endpoints)
        stage.etcd.endpoints[endpoint] = fate;
    const Instant start = stage.clock.now();
    CHECK(stage.client.read().error().code == Errc::kTimedOut);
    CHECK(stage.clock.now() <= start + 2s);
    CHECK(stage.etcd.requests.size() == 3);
    // It does not even get to know what is there.
    const Instant second = stage.clock.now();
    CHECK(stage.swap(0, 1) == Swapped::kNo);
    CHECK(stage.clock.now() <= second + 2s);
    CHECK(stage.etcd.count(kTxnPath) == 0);
}

TEST_CASE("eh etcd: endpoints are tried in turn, and the one that answers stays first", "[eh]") {
    ClientStage stage(three_endpoints());
    stage.etcd.endpoints = {{"http://one:2379", Fate::kNoConnection},
                            {"http://two:2379", Fate::kHangs}};
    CHECK(stage.client.read().value() == nullptr);
    CHECK(stage.events.take() ==
          std::vector<std::string>{
              "eh.etcd_failed endpoint=http://one:2379 reason=Connection refused",
              "eh.etcd_failed endpoint=http://two:2379 reason=no answer in time"});

    stage.etcd.requests.clear();
    CHECK(stage.swap(0, 1) == Swapped::kYes);
    CHECK(stage.etcd.requests.size() == 1);
    CHECK(stage.etcd.requests[0].url == "http://three:2379/v3/kv/txn");

    // The first one is asked again when the others fail, and has its reason once.
    stage.etcd.endpoints = {{"http://three:2379", Fate::kNoConnection}};
    CHECK(stage.client.read().value()->number() == 1);
    CHECK(stage.client.read().value()->number() == 1);
    CHECK(stage.events.take() ==
          std::vector<std::string>{
              "eh.etcd_failed endpoint=http://three:2379 reason=Connection refused",
              "eh.etcd_answers endpoint=http://one:2379"});
}

TEST_CASE("eh etcd: a swap whose answer was lost is unknown, and found when it is asked for again",
          "[eh]") {
    const Fate fate = GENERATE(Fate::kAnswerLost, Fate::kAnswerLate, Fate::kGarbled);
    ClientStage stage;
    REQUIRE(stage.swap(0, 1) == Swapped::kYes);
    stage.etcd.fates = {fate};
    CHECK(stage.swap(1, 2) == Swapped::kUnknown);
    CHECK(stage.stored_attempt() == 2);
    CHECK(stage.client.read().value()->view().writer.attempt == 2);
    CHECK(stage.swap(1, 2) == Swapped::kYes);
    CHECK(stage.stored_number() == 2);
}

TEST_CASE("eh etcd: a swap that etcd may do is unknown, one that cannot come there is not",
          "[eh]") {
    ClientStage stage;
    REQUIRE(stage.swap(0, 1) == Swapped::kYes);
    for (const Fate fate : {Fate::kNoConnection, Fate::kForeign}) {
        stage.etcd.fates = {fate};
        CHECK(stage.swap(1, 2) == Swapped::kNo);
        REQUIRE(stage.client.read());
    }
    for (const Fate fate : {Fate::kHangs, Fate::kUnavailable}) {
        stage.etcd.fates = {fate};
        CHECK(stage.swap(1, 2) == Swapped::kUnknown);
        REQUIRE(stage.client.read());
    }
    CHECK(stage.stored_number() == 1);
}

TEST_CASE("eh etcd: as long as a request may be under way, a refusal of the next settles nothing",
          "[eh]") {
    ClientStage stage;
    REQUIRE(stage.swap(0, 1) == Swapped::kYes);
    stage.etcd.fates = {Fate::kDoneLater};
    REQUIRE(stage.swap(1, 2) == Swapped::kUnknown);
    for (const Fate fate : {Fate::kNoConnection, Fate::kForeign, Fate::kFull}) {
        REQUIRE(stage.client.read().value()->number() == 1);
        stage.etcd.fates = {fate};
        CHECK(stage.swap(1, 2) == Swapped::kUnknown);
    }
    stage.etcd.finish_late();
    CHECK(stage.stored_attempt() == 2);
    CHECK(stage.swap(1, 2) == Swapped::kYes);
}

TEST_CASE("eh etcd: another endpoint tells what became of a swap", "[eh]") {
    ClientStage stage(three_endpoints());
    REQUIRE(stage.swap(0, 1) == Swapped::kYes);
    stage.etcd.fates = {Fate::kAnswerLost};
    CHECK(stage.swap(1, 2) == Swapped::kYes);
    CHECK(stage.stored_attempt() == 2);
    CHECK(stage.etcd.count(kTxnPath) == 3);

    // The first request comes late, and does nothing.
    stage.etcd.fates = {Fate::kDoneLater};
    CHECK(stage.swap(2, 3) == Swapped::kYes);
    stage.etcd.finish_late();
    CHECK(stage.stored_number() == 3);
    CHECK(stage.swap(3, 4) == Swapped::kYes);

    // All endpoints but one are down, and that one is slow.
    stage.etcd.fates = {Fate::kDoneLater, Fate::kNoConnection, Fate::kNoConnection};
    CHECK(stage.swap(4, 5) == Swapped::kUnknown);
    stage.etcd.finish_late();
    CHECK(stage.stored_attempt() == 5);
}

TEST_CASE("eh etcd: a view by somebody else is never taken for the own one", "[eh]") {
    ClientStage stage(three_endpoints());
    REQUIRE(stage.swap(0, 1) == Swapped::kYes);
    const auto put = [&stage](ViewNumber number, std::uint64_t attempt) {
        const auto bytes = make_view(number, attempt)->bytes();
        stage.etcd.put("/fopd/view", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    put(2, 77);
    CHECK(stage.swap(1, 2) == Swapped::kNo);
    // The first endpoint may have written view 3 before the other one; it did not.
    put(3, 78);
    stage.etcd.fates = {Fate::kAnswerLost};
    CHECK(stage.swap(2, 3) == Swapped::kNo);
    CHECK(stage.stored_attempt() == 78);
    REQUIRE(stage.client.read());
    // Here it may have, and view 5 may have followed.
    put(5, 79);
    stage.etcd.fates = {Fate::kAnswerLost};
    CHECK(stage.swap(3, 4) == Swapped::kUnknown);
    CHECK(stage.stored_attempt() == 79);
}

TEST_CASE("eh etcd: a token is fetched again when etcd has forgotten it", "[eh]") {
    ClientStage stage(with_user());
    stage.etcd.user = "fopd";
    stage.etcd.password = "secret";
    CHECK(stage.client.read().value() == nullptr);
    CHECK(stage.swap(0, 1) == Swapped::kYes);
    CHECK(stage.etcd.count(kAuthenticatePath) == 1);
    stage.etcd.forget_tokens();
    CHECK(stage.swap(1, 2) == Swapped::kYes);
    CHECK(stage.etcd.count(kAuthenticatePath) == 2);
    CHECK(stage.etcd.requests.back().token == "token.2");
    CHECK(stage.events.take().empty());

    // Off, and on again.
    stage.etcd.user.clear();
    stage.etcd.forget_tokens();
    CHECK(stage.swap(2, 3) == Swapped::kYes);
    stage.etcd.user = "fopd";
    CHECK(stage.swap(3, 4) == Swapped::kYes);
}

TEST_CASE("eh etcd: who is refused reads why", "[eh]") {
    SECTION("a wrong password") {
        ClientStage stage(with_user());
        stage.etcd.user = "fopd";
        stage.etcd.password = "another";
        CHECK(stage.client.read().error().code == Errc::kDenied);
        CHECK(stage.swap(0, 1) == Swapped::kNo);
        CHECK(stage.events.take() ==
              std::vector<std::string>{
                  "eh.etcd_failed endpoint=http://one:2379 reason=etcd refuses the user "
                  "(etcdserver: authentication failed, invalid user ID or password)"});
    }
    SECTION("no password") {
        ClientStage stage;
        stage.etcd.user = "fopd";
        CHECK(stage.client.read().error().code == Errc::kDenied);
        CHECK(stage.events.take().at(0) ==
              "eh.etcd_failed endpoint=http://one:2379 reason=etcd wants a user and a password "
              "(etcdserver: user name is empty)");
    }
    SECTION("authentication is off in etcd") {
        ClientStage stage(with_user());
        CHECK(stage.client.read().value() == nullptr);
        CHECK(stage.events.take().empty());
    }
    SECTION("not etcd") {
        ClientStage stage;
        stage.etcd.endpoints["http://one:2379"] = Fate::kForeign;
        CHECK(stage.client.read().error().code == Errc::kCorrupt);
        CHECK(stage.events.take().at(0) ==
              "eh.etcd_failed endpoint=http://one:2379 reason=HTTP status 404 without a message of "
              "etcd: is this address etcd's, of version 3.4 or later?");
    }
    SECTION("something else at the key") {
        ClientStage stage;
        stage.etcd.put("/fopd/view", "hello");
        CHECK(stage.client.read().error().code == Errc::kCorrupt);
        CHECK(stage.swap(0, 1) == Swapped::kNo);
        CHECK(stage.events.take() ==
              std::vector<std::string>{"eh.etcd_failed endpoint=http://one:2379 reason=the key "
                                       "PREFIX/view does not hold a view"});
    }
    SECTION("the gateway cannot reach its server") {
        ClientStage stage({.endpoints = {"https://one:2379"}, .cert = "a", .key = "b"});
        stage.etcd.refusals = {std::string(kRangePath)};
        stage.etcd.refusal = {.status = 503, .body = R"({"message":"connection closed"})"};
        CHECK_FALSE(stage.client.read());
        CHECK(stage.events.take().at(0).find("must allow clientAuth") != std::string::npos);
    }
}

TEST_CASE("eh etcd: without space nothing is written, and that is known", "[eh]") {
    ClientStage stage;
    REQUIRE(stage.swap(0, 1) == Swapped::kYes);
    stage.etcd.refusals = {std::string(kTxnPath)};
    stage.etcd.refusal = {.status = 429,
                          .body = R"({"message":"etcdserver: mvcc: database space exceeded"})"};
    CHECK(stage.swap(1, 2) == Swapped::kNo);
    CHECK(stage.client.read().value()->number() == 1);
    CHECK(stage.events.take().at(0) ==
          "eh.etcd_failed endpoint=http://one:2379 reason=etcd is full, its quota is used up "
          "(etcdserver: mvcc: database space exceeded)");
    stage.etcd.refusals.clear();
    CHECK(stage.swap(1, 2) == Swapped::kYes);

    // The request that uses up the space is done, although etcd refuses it.
    stage.etcd.fates = {Fate::kFullNow};
    CHECK(stage.swap(2, 3) == Swapped::kYes);
    stage.etcd.fates = {Fate::kFullNow, Fate::kHangs};
    CHECK(stage.swap(3, 4) == Swapped::kUnknown);
    CHECK(stage.stored_number() == 4);
}

TEST_CASE("eh etcd: a view that is too large is not sent", "[eh]") {
    ClientStage stage;
    CHECK(stage.client.swap(0, make_view(1, 1, 16'000)) == Swapped::kYes);
    View view = make_view(2, 1, 16'000)->view();
    for (RosterEntry& entry : view.roster) entry.address += std::string(100, 'x');
    stage.etcd.requests.clear();
    CHECK(stage.client.swap(1, std::make_shared<const CommittedView>(view)) == Swapped::kNo);
    CHECK(stage.etcd.requests.empty());
    const std::string event = stage.events.take().at(0);
    CHECK(event.starts_with("eh.etcd_view_too_large members=16000 bytes="));
}

TEST_CASE("eh etcd: old views are compacted now and then", "[eh]") {
    ClientStage stage;
    for (ViewNumber number = 0; number < 31; ++number)
        REQUIRE(stage.swap(number, number) == Swapped::kYes);
    CHECK(stage.etcd.count(kCompactPath) == 0);
    REQUIRE(stage.swap(31, 31) == Swapped::kYes);
    CHECK(stage.etcd.count(kCompactPath) == 1);
    CHECK(stage.etcd.compacted == stage.etcd.keys().at("/fopd/view").revision);

    // A failure changes nothing, and is told once.
    stage.etcd.refusals = {std::string(kCompactPath)};
    stage.etcd.refusal = {.status = 403, .body = R"({"message":"etcdserver: permission denied"})"};
    for (ViewNumber number = 32; number < 96; ++number)
        REQUIRE(stage.swap(number, number) == Swapped::kYes);
    CHECK(stage.etcd.count(kCompactPath) == 3);
    CHECK(stage.events.take() ==
          std::vector<std::string>{"eh.etcd_not_compacted endpoint=http://one:2379 reason=etcd "
                                   "refuses the user (etcdserver: permission denied)"});
    // Somebody else has done it.
    stage.etcd.refusal = {
        .status = 400,
        .body = R"({"message":"etcdserver: mvcc: required revision has been compacted"})"};
    for (ViewNumber number = 96; number < 128; ++number)
        REQUIRE(stage.swap(number, number) == Swapped::kYes);
    CHECK(stage.events.take().empty());
    // One that hangs delays the outcome only a little.
    for (ViewNumber number = 128; number < 159; ++number)
        REQUIRE(stage.swap(number, number) == Swapped::kYes);
    stage.etcd.fates = {Fate::kServed, Fate::kHangs};
    const Instant start = stage.clock.now();
    CHECK(stage.swap(159, 159) == Swapped::kYes);
    CHECK(stage.clock.now() - start <= 510ms);
}

TEST_CASE("eh etcd: a call that is given up says so to nobody", "[eh]") {
    ClientStage stage(three_endpoints());
    stage.etcd.cancel();
    CHECK(stage.client.read().error().code == Errc::kCancelled);
    CHECK(stage.etcd.requests.size() == 1);
    CHECK(stage.events.take().empty());
}

TEST_CASE("eh etcd: whatever happens to requests, a yes is a yes and a no is a no", "[eh]") {
    constexpr std::array kFates{Fate::kServed,    Fate::kServed,      Fate::kNoConnection,
                                Fate::kHangs,     Fate::kAnswerLost,  Fate::kAnswerLate,
                                Fate::kDoneLater, Fate::kUnavailable, Fate::kGarbled,
                                Fate::kFull,      Fate::kFullNow};
    std::array<std::uint64_t, 3> outcomes{};
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        ManualClock clock;
        core::NullEventSink events;
        FakeEtcd etcd(clock);
        EtcdClient one(three_endpoints(), etcd, clock, events);
        EtcdClient other({.endpoints = {"http://one:2379"}}, etcd, clock, events);
        // The numbers and attempts of all views that were ever there.
        std::vector<std::pair<ViewNumber, std::uint64_t>> history;
        const auto look = [&] {
            const auto found = etcd.keys().find("/fopd/view");
            if (found == etcd.keys().end()) return;
            const View view = decode_view(found->second.value).value();
            const std::pair entry(view.number, view.writer.attempt);
            if (history.empty() || history.back() != entry) history.push_back(entry);
        };
        struct Told {
            ViewNumber number;
            Swapped outcome;
        };
        std::vector<Told> told;
        ViewNumber number = 0;
        for (std::uint64_t attempt = 0; attempt < 30; ++attempt) {
            etcd.fates.clear();
            for (int i = 0; i < 4; ++i) etcd.fates.push_back(kFates[random.below(kFates.size())]);
            EtcdClient& client = random.below(2) == 0 ? one : other;
            if (random.below(2) == 0) {
                const auto read = client.read();
                if (read) number = *read == nullptr ? 0 : (*read)->number();
            }
            const ViewHandle next = make_view(number + 1, attempt);
            Told now{.number = number + 1, .outcome = client.swap(number, next)};
            ++outcomes[static_cast<std::size_t>(now.outcome)];
            look();
            // It is tried once more, as whoever wants certainty does.
            if (now.outcome == Swapped::kUnknown && random.below(2) == 0) {
                now.outcome = client.swap(number, next);
                look();
            }
            told.push_back(now);
            if (random.below(4) == 0) {
                etcd.finish_late();
                look();
            }
        }
        etcd.finish_late();
        look();
        for (std::size_t i = 0; i < history.size(); ++i) CHECK(history[i].first == i + 1);
        for (std::size_t i = 0; i < told.size(); ++i) {
            CAPTURE(i);
            const bool is_there =
                std::ranges::find(history, std::pair(told[i].number, std::uint64_t{i})) !=
                history.end();
            if (told[i].outcome == Swapped::kYes) CHECK(is_there);
            if (told[i].outcome == Swapped::kNo) CHECK_FALSE(is_there);
        }
    }
    for (const std::uint64_t outcome : outcomes) CHECK(outcome > 500);
}
