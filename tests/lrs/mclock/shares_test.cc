// Goal: reservations, weights and limits are what was promised, from the first second on.
// Method: a server that does so many requests a second, for jobs that always want more.

#include "tests/catch.h"
#include "tests/lrs/mclock/mclock_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

TEST_CASE("lrs mclock shares: weights 1, 2 and 4 are kept within 2 %", "[lrs]") {
    MclockStage stage({"a job=a weight=1", "b job=b weight=2", "c job=c weight=4"});
    MclockServer server(stage, 7000);
    for (const char* job : {"a", "b", "c"}) server.come(job);
    // From the first second on, and in each.
    for (int second = 0; second < 5; ++second) {
        auto served = server.run(1s);
        CAPTURE(second, served["a"], served["b"], served["c"]);
        CHECK(within(served["a"], 1000, 0.02));
        CHECK(within(served["b"], 2000, 0.02));
        CHECK(within(served["c"], 4000, 0.02));
    }
}

TEST_CASE("lrs mclock shares: large weights and small ones side by side", "[lrs]") {
    MclockStage stage({"a job=a weight=1", "b job=b weight=999", "c job=c weight=1000"});
    MclockServer server(stage, 20'000);
    for (const char* job : {"a", "b", "c"}) server.come(job);
    auto served = server.run(5s);
    CHECK(within(served["a"], 50, 0.05));
    CHECK(within(served["b"], 49'950, 0.001));
    CHECK(within(served["c"], 50'000, 0.001));
}

TEST_CASE("lrs mclock shares: requests with more bytes cost more", "[lrs]") {
    // One and sixteen: 1 MiB is sixteen units of 64 KiB.
    MclockStage stage({"a job=a weight=1", "b job=b weight=1"});
    MclockServer server(stage, 1800);
    server.come("a", "0");
    server.come("b", "1MiB");
    auto served = server.run(10s);
    CHECK(within(served["a"], 17'000, 0.02));
    CHECK(within(served["b"], 1000, 0.02));
}

TEST_CASE("lrs mclock shares: a new class gets its share at once, and no more", "[lrs]") {
    MclockStage stage({"jobs job=*"});
    MclockServer server(stage, 1000);
    server.come("a");
    server.come("b");
    server.run(100s);
    server.come("c");
    auto served = server.run(300ms);
    CHECK(within(served["a"], 100, 0.02));
    CHECK(within(served["b"], 100, 0.02));
    CHECK(within(served["c"], 100, 0.02));
}

TEST_CASE("lrs mclock shares: a class that arrives between others' requests gets its share",
          "[lrs]") {
    MclockStage stage({"jobs job=*"});
    MclockServer server(stage, 1000);
    server.come("a", "0", 1);
    server.run(100s);
    // Its only request is being served.
    REQUIRE(stage.policy().pop(server.now()).request != nullptr);
    server.come("b");
    server.come("a");
    auto served = server.run(1s);
    CHECK(within(served["a"], 500, 0.02));
    CHECK(within(served["b"], 500, 0.02));
}

TEST_CASE("lrs mclock shares: idleness earns nothing", "[lrs]") {
    MclockStage stage({"a job=a reservation=100/s weight=1 limit=600/s", "b job=b weight=1"});
    MclockServer server(stage, 1000);
    server.come("a");
    server.come("b");
    server.run(1s);
    server.go("a");
    server.run(100s);
    server.come("a");
    for (const Duration span : {20ms, 80ms, 900ms}) {
        auto served = server.run(span);
        CHECK(served["a"] <= 500 * in_seconds(span) + 2);
        CHECK(served["a"] >= 500 * in_seconds(span) - 2);
    }
}

TEST_CASE("lrs mclock shares: reservations are met when they fit, whatever weights others have",
          "[lrs]") {
    for (const int capacity : {1000, 1100, 1500}) {
        CAPTURE(capacity);
        MclockStage stage({"a job=a reservation=600/s", "b job=b reservation=300/s",
                           "c job=c reservation=100/s", "d job=d weight=1000"});
        MclockServer server(stage, capacity);
        server.come("d");
        server.run(10s);
        for (const char* job : {"a", "b", "c"}) server.come(job);
        for (int second = 0; second < 5; ++second) {
            auto served = server.run(1s);
            CHECK(served["a"] >= 600 - 1);
            CHECK(served["b"] >= 300 - 1);
            CHECK(served["c"] >= 100 - 1);
            CHECK(served["a"] + served["b"] + served["c"] + served["d"] >= capacity);
        }
    }
}

TEST_CASE("lrs mclock shares: of requests of all sizes as much is reserved", "[lrs]") {
    // 1 + 4 and 1 + 16; both reserve a thousand, which is 200 and 58.8 of them.
    MclockStage stage(
        {"a job=a reservation=1000/s", "b job=b reservation=1000/s", "c job=c weight=1000"});
    MclockServer server(stage, 300);
    server.come("a", "256KiB");
    server.come("b", "1MiB");
    server.come("c");
    auto served = server.run(10s);
    CHECK(within(served["a"], 2000, 0.01));
    CHECK(within(served["b"], 588, 0.01));
}

TEST_CASE("lrs mclock shares: a reservation is part of the share, not added to it", "[lrs]") {
    MclockStage stage({"a job=a reservation=300/s", "b job=b"});
    MclockServer server(stage, 1000);
    server.come("a");
    server.come("b");
    auto served = server.run(10s);
    CHECK(within(served["a"], 5000, 0.01));
    CHECK(within(served["b"], 5000, 0.01));
    const auto figures = class_figures(stage.policy(), server.now());
    CHECK(within(static_cast<double>(figures[0].as_reserved), 3000, 0.01));
}

TEST_CASE("lrs mclock shares: a reservation above the share leaves no debt", "[lrs]") {
    MclockStage stage({"a job=a reservation=900/s", "b job=b"});
    MclockServer server(stage, 1000);
    server.come("a");
    server.come("b");
    auto served = server.run(100s);
    CHECK(within(served["a"], 90'000, 0.01));
    // Now there is more than enough: both have the same, and soon.
    server.set_rate(4000);
    server.run(200ms);
    served = server.run(1s);
    CHECK(within(served["a"], 2000, 0.02));
    CHECK(within(served["b"], 2000, 0.02));
}

TEST_CASE("lrs mclock shares: a stall is made up for, a long one in part", "[lrs]") {
    MclockStage stage({"a job=a reservation=500/s", "b job=b weight=1000"});
    MclockServer server(stage, 1000);
    server.come("a", "0", 8);
    server.come("b", "0", 8);
    server.run(1s);
    server.set_rate(1);
    server.run(10s);
    server.set_rate(1000);
    auto served = server.run(5s);
    CHECK(served["a"] >= 5 * 500);
    CHECK(served["a"] <= 5 * 500 + 500 + 2);
}

TEST_CASE("lrs mclock shares: a limit holds from the first interval on", "[lrs]") {
    // Of 54 a second and then 30 again and again others have heard.
    MclockStage stage({"a job=a reservation=20/s limit=30/s", "b job=b limit=60/s", "c job=c"});
    MclockServer server(stage, 1000);
    for (const char* job : {"a", "b", "c"}) server.come(job);
    for (int interval = 0; interval < 20; ++interval) {
        auto served = server.run(500ms);
        CAPTURE(interval);
        CHECK(served["a"] >= 14);
        CHECK(served["a"] <= 16);
        CHECK(served["b"] >= 29);
        CHECK(served["b"] <= 31);
    }
}

TEST_CASE("lrs mclock shares: a hard limit holds also without other requests", "[lrs]") {
    MclockStage stage({"a job=a limit=100/s"});
    MclockServer server(stage, 1000);
    server.come("a");
    auto served = server.run(10s);
    CHECK(served["a"] >= 1000);
    CHECK(served["a"] <= 1001);
    CHECK(server.idle_count >= 8999);
}

TEST_CASE("lrs mclock shares: a soft limit holds while others wait, and then only", "[lrs]") {
    MclockStage stage({"a job=a soft_limit=100/s", "b job=b"});
    MclockServer server(stage, 1000);
    server.come("a");
    CHECK(server.run(10s)["a"] == 10'000);
    CHECK(server.idle_count == 0);

    // What was over the limit is neither paid for nor kept.
    server.come("b");
    for (int interval = 0; interval < 10; ++interval) {
        auto served = server.run(200ms);
        CAPTURE(interval);
        CHECK(served["a"] >= 19);
        CHECK(served["a"] <= 21);
    }
    server.go("b");
    CHECK(server.run(1s)["a"] == 1000);
    CHECK(server.idle_count == 0);
}

TEST_CASE("lrs mclock shares: those over their soft limits share by their weights", "[lrs]") {
    MclockStage stage({"a job=a weight=1 soft_limit=10/s", "b job=b weight=3 soft_limit=10/s",
                       "c job=c limit=100/s"});
    MclockServer server(stage, 1000);
    for (const char* job : {"a", "b", "c"}) server.come(job);
    auto served = server.run(10s);
    CHECK(within(served["a"], 2250, 0.02));
    CHECK(within(served["b"], 6750, 0.02));
    CHECK(within(served["c"], 1000, 0.02));
    CHECK(server.idle_count == 0);
}

TEST_CASE("lrs mclock shares: a soft limit takes nothing from a reservation", "[lrs]") {
    MclockStage stage({"a job=a reservation=100/s soft_limit=100/s", "b job=b weight=1000"});
    MclockServer server(stage, 1000);
    server.come("a");
    server.run(5s);
    server.come("b");
    auto served = server.run(5s);
    CHECK(within(served["a"], 500, 0.01));
}

TEST_CASE("lrs mclock shares: a class that was limited for long gets only its share later",
          "[lrs]") {
    MclockStage stage({"a job=a limit=900/s", "b job=b"}, 2);
    // Another locality has all there is for it, for ten seconds.
    for (Instant now = kMclockStart; now < kMclockStart + 10s; now += Duration(1s) / 900) {
        stage.push("job=a", now, 1);
        static_cast<void>(stage.policies[1]->pop(now));
    }
    MclockServer server(stage, 1000);
    server.come("a");
    server.come("b");
    CHECK(server.run(10s)["a"] <= 20);
    auto served = server.run(1s);
    CHECK(within(served["a"], 500, 0.02));
    CHECK(within(served["b"], 500, 0.02));
}
