// Goal: short times have one form, JSON is safe for a terminal, and an explanation of a load has
// the mean and the 99th percentile of each part of its fops' time.
#include "client/explanation.h"

#include <nlohmann/json.hpp>

#include "client/load_times.h"
#include "client/table.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::client;
using fop::SpentOn;

namespace {

// Stands where it is put.
class StandingClock final : public core::Clock {
public:
    Instant now() const override { return at; }
    WallTime wall() const override { return {}; }
    Instant at{1h};
};

fop::TimeSpent at_server(Duration policy, Duration log, Duration computed) {
    fop::TimeSpent spent;
    spent.set(SpentOn::kTotal, policy + log + computed);
    spent.set(SpentOn::kPolicy, policy);
    spent.set(SpentOn::kLog, log);
    return spent;
}

nlohmann::json part_of(const LoadTimes& times, const std::string& name) {
    const nlohmann::json explained = load_explanation_json(times);
    for (const auto& each : explained.at("parts")) {
        if (each.at("name") == name) return each;
    }
    return nullptr;
}

}  // namespace

TEST_CASE("fopctl: a short time is shown in the unit that suits it", "[client]") {
    CHECK(latency_of(0) == "0us");
    CHECK(latency_of(602e-6) == "602us");
    CHECK(latency_of(999.4e-6) == "999us");
    CHECK(latency_of(999.6e-6) == "1.0ms");
    CHECK(latency_of(0.0123) == "12.3ms");
    CHECK(latency_of(0.99996) == "1.0s");
    CHECK(latency_of(3.21) == "3.2s");
    CHECK(latency_of(67) == "1m 7s");
    CHECK(latency_of(-1) == "-");
}

TEST_CASE("fopctl: JSON has no character that controls a terminal", "[client]") {
    const std::string name = "a\x1b\x7f\xc2\x80\xc2\x9f\xc2\xa0\xc3\x80";
    const std::string text = dumped({{"name", name}});
    CHECK(text == "{\"name\":\"a\\u001b\\u007f\\u0080\\u009f\xc2\xa0\xc3\x80\"}");
    CHECK(nlohmann::json::parse(text).at("name") == name);
}

TEST_CASE("fopctl: JSON has no character that changes the direction of text", "[client]") {
    // U+061C, U+202A, U+202E, U+2066, U+2069, and U+202F and U+1F600, which change nothing.
    const std::string name =
        "a\xd8\x9c\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9\xe2\x80\xaf\xf0\x9f\x98\x80";
    const std::string text = dumped({{"name", name}});
    CHECK(text ==
          "{\"name\":\"a\\u061c\\u202a\\u202e\\u2066\\u2069\xe2\x80\xaf\xf0\x9f\x98\x80\"}");
    CHECK(nlohmann::json::parse(text).at("name") == name);
}

TEST_CASE("fopctl: a load is explained by the mean and the 99th percentile of each part",
          "[client]") {
    StandingClock clock;
    LoadTimes times(clock);
    const auto tell = [&](Duration log) {
        times.on_times(at_server(200us, log, 100us), 50us, log + 400us);
    };
    tell(1ms);  // Before the measurement.
    times.count_from(clock.at - 1s, clock.at + 1s);
    for (int i = 0; i < 98; ++i) tell(1ms);
    tell(101ms);
    tell(101ms);
    tell(2s);  // It began before.
    clock.at += 2s;
    tell(1ms);  // It ended afterwards.

    CHECK(times.total().count() == 100);
    CHECK(part_of(times, "total").at("mean_us").get<double>() == Approx(3400).epsilon(0.01));
    CHECK(part_of(times, "log").at("mean_us").get<double>() == Approx(3000).epsilon(0.01));
    CHECK(part_of(times, "log").at("p99_us").get<double>() == Approx(101'000).epsilon(0.07));
    CHECK(part_of(times, "policy").at("p99_us").get<double>() == Approx(200).epsilon(0.07));
    CHECK(part_of(times, "unsent").at("mean_us").get<double>() == Approx(50).epsilon(0.01));
    CHECK(part_of(times, "network").at("mean_us").get<double>() == Approx(50).epsilon(0.01));
    CHECK(part_of(times, "server").at("mean_us").get<double>() == Approx(100).epsilon(0.01));
    CHECK(part_of(times, "disk").at("p99_us") == 0);

    const std::string page = load_explanation(times);
    CHECK_THAT(page, ContainsSubstring("where the time of 100 fops went:\n"));
    CHECK_THAT(page, ContainsSubstring("  waited for the log to be durable        3.0ms"));
    CHECK(page.find("read or wrote the disk") == std::string::npos);
    CHECK(load_explanation(LoadTimes(clock)).empty());
}

TEST_CASE("fopctl: the parts of one fop are shown with their share", "[client]") {
    const nlohmann::json spent{{"total", 0.5}, {"policy", 0}, {"disk", 0.4}, {"server", 0.1}};
    CHECK(parts_page(spent) ==
          "  read or wrote the disk                400.0ms   80 %\n"
          "  computed by the server                100.0ms   20 %\n");
}
