// Goal: the page of `fopctl store check` fits a terminal, whatever a check has found.
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "daemon/admin_server.h"
#include "tests/catch.h"
#include "tests/client/run_program.h"
#include "tests/daemon/canned_handler.h"
#include "tests/temp_dir.h"

using namespace fopd;

namespace {

nlohmann::json finding(const std::string& name) {
    return {{"reason",
             "an extent of the object lies on blocks that the free list has, too, and that the "
             "log has freed"},
            {"object", "0001000000000000fedcba9876543210"},
            {"name", name},
            {"object_block", 123456789012},
            {"block", 987654321098},
            {"blocks", 1048576},
            {"log_entry", 12345678901234}};
}

std::string report(const std::string& name) {
    const std::uint64_t many = 123456789012;
    nlohmann::json check{{"device", "d0"},
                         {"state", "done"},
                         {"stage", ""},
                         {"problem", ""},
                         {"seconds", 1.0},
                         {"objects", many},
                         {"uploads", many},
                         {"extents", many},
                         {"blocks", many},
                         {"names", many},
                         {"log_entries", many},
                         {"findings", 3},
                         {"found", {finding(name), finding("a")}}};
    nlohmann::json failed = check;
    failed["device"] = "d1";
    failed["state"] = "failed";
    failed["problem"] =
        "the log cannot be read at its entry 12345678901234, which lies at the block 987654321098 "
        "of the disk: Input/output error";
    failed["findings"] = 0;
    failed["found"] = nlohmann::json::array();
    return nlohmann::json{{"checks", {check, failed}}}.dump();
}

std::size_t longest_line(const std::string& text) {
    std::istringstream lines(text);
    std::size_t longest = 0;
    for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
    return longest;
}

}  // namespace

TEST_CASE("fopctl store check: lines fit 80 columns, and --wide has all of it", "[client]") {
    const TempDir dir;
    core::NullEventSink events;
    CannedHandler handler;
    const std::string socket = dir / "admin.sock";
    const auto server = daemon::AdminServer::start({.socket = socket}, handler, events);
    REQUIRE(server.has_value());
    const std::string name(480, 'n');
    handler.put("/v1/store/check-report", 200, report(name));
    const auto run = [&socket](std::vector<std::string> words) {
        words.insert(words.begin(), {FOPCTL, "store", "check"});
        return run_program(words, {"FOPD_ADMIN=" + socket});
    };

    const Ran page = run({});
    const Ran wide = run({"--wide"});

    REQUIRE(page.exit_code == 1);
    CHECK(longest_line(page.out) <= 80 + std::string("…").size() - 1);
    REQUIRE_THAT(
        page.out,
        Catch::Matchers::StartsWith(
            "DEVICE  CHECK        OBJECTS        BLOCKS  FINDINGS\n"
            "d0      done    123456789012  123456789012         3\n"
            "d1      failed  123456789012  123456789012         0\n"
            "d0:\n"
            "  an extent of the object lies on blocks that the free list has, too, and that\n"
            "      the log has freed\n"
            "      object 0001000000000000fedcba9876543210  at its block 123456789012\n"
            "      disk block 987654321098  blocks 1048576  log entry 12345678901234\n"
            "      name nnnn"));
    REQUIRE_THAT(page.out, Catch::Matchers::Contains("n…\n"));
    REQUIRE_THAT(page.out, Catch::Matchers::Contains("      name a\n  and 1 more\nd1: the log"));
    REQUIRE_THAT(wide.out, Catch::Matchers::Contains("LOG ENTRIES"));
    REQUIRE_THAT(wide.out, Catch::Matchers::Contains("name " + name + "\n"));
}
