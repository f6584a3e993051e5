// Goal: the verbs that use the network say what came of it, in the form and with the exit code that
// scripts rely on.
// Method: run the program against a server of this process.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "fop/key.h"
#include "tests/catch.h"
#include "tests/client/rpc_server.h"
#include "tests/client/run_program.h"
#include "tests/slowness.h"
#include "tests/temp_dir.h"

namespace fopd::client::testing {

namespace {

const fop::Key kKey = fabric::testing::key_of(7);
// Of a bench whose calls are never answered; its sessions must open within it.
constexpr int kTimeoutSeconds = fopd::testing::kSlowness;

struct Fixture {
    Fixture() { write_key(key_file, fop::to_text(kKey), 0600); }
    static void write_key(const std::string& path, const std::string& text, unsigned mode) {
        std::ofstream(path) << text;
        std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
    }

    // "other" and "missing" are files of the test's directory.
    Ran run(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), FOPCTL);
        for (std::string& each : arguments) {
            if (each == "other" || each == "missing") each = dir / each;
        }
        return run_program(arguments, {"FOPD_SERVER=" + server.address(), "FOPD_KEY=" + key_file});
    }
    // A bench for a short time, or for longer if no call is completed in that.
    Ran bench(const std::vector<std::string>& arguments) const {
        Ran ran;
        for (const char* seconds : {"0.2", "2", "20"}) {
            std::vector<std::string> all = {"bench", "--json", "--seconds", seconds};
            all.insert(all.end(), arguments.begin(), arguments.end());
            ran = run(std::move(all));
            if (nlohmann::json::parse(ran.out).at("ops") > 0) break;
        }
        return ran;
    }

    TempDir dir;
    std::string key_file = dir / "key";
    RpcServer server{
        {.keys = fabric::testing::ring_of({fabric::testing::principal("tester", {kKey})}),
         .unauthenticated = {}}};
};

}  // namespace

TEST_CASE("fopctl ping: a line for each answer, and the figures at the end", "[client]") {
    const Fixture f;

    const Ran page = f.run({"ping", "--count", "3", "--interval", "0"});
    const Ran json = f.run({"ping", "--count", "2", "--interval", "0", "--json"});
    const Ran quiet = f.run({"ping", "--count", "1", "--quiet"});

    REQUIRE(page.exit_code == 0);
    REQUIRE(page.err.empty());
    REQUIRE_THAT(page.out, ContainsSubstring("pong from " + f.server.address() + ": seq=3 time="));
    REQUIRE_THAT(page.out, ContainsSubstring("3 sent, 3 answered, min/avg/p99 "));
    const auto object = nlohmann::json::parse(json.out);
    REQUIRE(object.at("sent") == 2);
    REQUIRE(object.at("answered") == 2);
    REQUIRE(object.at("min_us").get<double>() > 0);
    REQUIRE(object.at("min_us").get<double>() <= object.at("avg_us").get<double>());
    REQUIRE(object.at("avg_us").get<double>() <= object.at("max_us").get<double>());
    REQUIRE(quiet.exit_code == 0);
    REQUIRE(quiet.out.empty());
}

TEST_CASE("fopctl bench: exactly the keys that scripts rely on", "[client]") {
    const Fixture f;
    const std::string op = GENERATE(as<std::string>{}, "echo", "bulk_echo", "ping");
    // The server of these tests has one place for what it pulls.
    const std::string depth = op == "bulk_echo" ? "1" : "3";
    const std::string jobs = op == "bulk_echo" ? "1" : "2";

    const Ran ran = f.bench({"--op", op, "--size", "2k", "--depth", depth, "--jobs", jobs});

    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 0);
    const auto object = nlohmann::ordered_json::parse(ran.out);
    std::string keys;
    for (const auto& [key, value] : object.items()) keys += key + " ";
    REQUIRE(keys ==
            "op size depth jobs seconds ops ops_per_s bytes_per_s p50_us p99_us p999_us errors "
            "interrupted ");
    REQUIRE(object.at("op") == op);
    REQUIRE(object.at("size") == (op == "ping" ? 0 : 2048));
    REQUIRE(object.at("depth") == std::stoi(depth));
    REQUIRE(object.at("jobs") == std::stoi(jobs));
    const double seconds = object.at("seconds").get<double>();
    REQUIRE((seconds == 0.2 || seconds == 2 || seconds == 20));
    REQUIRE(object.at("ops").get<double>() > 0);
    REQUIRE(object.at("errors") == 0);
    REQUIRE(object.at("p50_us").get<double>() <= object.at("p99_us").get<double>());
}

TEST_CASE("fopctl bench: calls that time out are counted as errors", "[client]") {
    Fixture f;
    f.server.hold();

    const Ran ran = f.run({"bench", "--op", "echo", "--depth", "2", "--seconds",
                           std::to_string(3 * kTimeoutSeconds), "--timeout",
                           std::to_string(kTimeoutSeconds), "--json"});

    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 1);
    const auto object = nlohmann::json::parse(ran.out);
    REQUIRE(object.at("ops") == 0);
    REQUIRE(object.at("errors").get<int>() > 0);
}

TEST_CASE("fopctl bench: calls that wait in vain for longer than is measured are counted",
          "[client]") {
    Fixture f;
    f.server.hold();

    const Ran ran = f.run({"bench", "--op", "echo", "--depth", "2", "--seconds", "0.1", "--timeout",
                           std::to_string(kTimeoutSeconds), "--json"});

    CAPTURE(ran.err);
    REQUIRE(ran.exit_code == 1);
    const auto object = nlohmann::json::parse(ran.out);
    REQUIRE(object.at("errors").get<int>() == 2);
}

TEST_CASE("fopctl network: each failure has its exit code, and a word about what to do",
          "[client]") {
    const Fixture f;
    Fixture::write_key(f.dir / "other", std::string(64, 'a'), 0600);
    struct Row {
        std::vector<std::string> arguments;
        int exit_code;
        const char* words;
    };
    const Row row = GENERATE(Row{{"ping", "--server", "tcp://127.0.0.1:1"}, 69, "FOPD_SERVER"},
                             Row{{"bench", "--server", "tcp://127.0.0.1:1"}, 69, "FOPD_SERVER"},
                             Row{{"ping", "--key", "other"}, 77, "not authenticated"},
                             Row{{"ping", "--key", "other"}, 77, "; the key is that of /"},
                             Row{{"ping", "--key", ""}, 77, "FOPD_KEY"},
                             Row{{"ping", "--key", "missing"}, 2, "ping: key file /"},
                             Row{{"bench", "--op", "echo", "--size", "1M", "--seconds", "1"},
                                 2,
                                 "larger than a message"});

    const Ran ran = f.run(row.arguments);

    CAPTURE(row.arguments, ran.err);
    REQUIRE(ran.exit_code == row.exit_code);
    REQUIRE(ran.out.empty());
    REQUIRE_THAT(ran.err, ContainsSubstring(row.words));
}

TEST_CASE("fopctl network: a key file that others can read is refused, with what to do",
          "[client]") {
    const Fixture f;
    const unsigned mode = GENERATE(0640U, 0604U, 0660U, 0601U);
    Fixture::write_key(f.dir / "other", fop::to_text(kKey), mode);

    const Ran refused = f.run({"ping", "--key", "other", "--count", "1"});
    Fixture::write_key(f.dir / "other", fop::to_text(kKey), 0400);
    const Ran taken = f.run({"ping", "--key", "other", "--count", "1"});

    CAPTURE(mode, refused.err, taken.err);
    REQUIRE(refused.exit_code == 2);
    REQUIRE(refused.err.find("chmod 0600") != std::string::npos);
    REQUIRE(refused.err.find(fop::to_text(kKey).substr(0, 16)) == std::string::npos);
    REQUIRE(taken.exit_code == 0);
}

TEST_CASE("fopctl bench: a bulk echo above the limit is a usage error", "[client]") {
    const Fixture f;
    REQUIRE(f.run({"bench", "--op", "bulk_echo", "--size", "17M"}).exit_code == 2);
}

}  // namespace fopd::client::testing
