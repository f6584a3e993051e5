// Goal: what administrators read and change of the I/O schedulers. Method: the real AdminApi and
// Node in the simulated world, asked as the server's threads ask.

#include <map>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/admin_stage.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::AdminStage;
using nlohmann::json;

namespace {

const std::string kConfigured =
    "io_sched: { read_algo: elevator, elevator_max_wait: 250ms,"
    " tape: { read_algo: grouped_read, grouped_read_mount_bytes: 2GiB } }\n";

std::map<std::string, json> settings(AdminStage& stage) {
    std::map<std::string, json> by_name;
    const json settings_listed = stage.answer("/v1/io_sched").json;
    for (const json& each : settings_listed["settings"]) {
        by_name[each["name"].get<std::string>()] = each;
    }
    return by_name;
}

// By which algorithm each locality orders reads of tapes.
std::vector<std::string> tape_read_algorithms(AdminStage& stage) {
    std::vector<std::string> names;
    for (const auto& locality : stage.node().node().localities()) {
        names.emplace_back(locality->io().tape_settings().read_algo->name);
    }
    return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("sim admin io_sched: show has every setting in force, with its unit", "[sim]") {
    AdminStage stage(51, {.nodes = 1, .disks = 1}, kConfigured);
    // It needs no locality, so it is answered while the node starts.
    const json early = stage.answer("/v1/io_sched").json;
    stage.wait_ready();

    CHECK(stage.answer("/v1/io_sched").json == early);
    CHECK(early["differs"] == json::array());
    auto shown = settings(stage);
    CHECK(shown["read_algo"] == json({{"name", "read_algo"}, {"value", "elevator"}, {"unit", ""}}));
    CHECK(shown["write_algo"]["value"] == "fifo");
    CHECK(shown["elevator_max_wait"] ==
          json({{"name", "elevator_max_wait"}, {"value", 0.25}, {"unit", "seconds"}}));
    CHECK(shown["depth_max"]["value"] == 128);
    CHECK(shown["tape.read_algo"]["value"] == "grouped_read");
    CHECK(shown["tape.grouped_read_mount_bytes"] == json({{"name", "tape.grouped_read_mount_bytes"},
                                                          {"value", 2ULL << 30},
                                                          {"unit", "bytes"}}));
    CHECK(tape_read_algorithms(stage) == Names{"grouped_read", "grouped_read"});
}

TEST_CASE("sim admin io_sched: set is in force on every locality until the next reload", "[sim]") {
    AdminStage stage(52, {.nodes = 1, .disks = 1}, kConfigured);
    stage.wait_ready();

    const AdminStage::Answer set =
        stage.answer("/v1/io_sched/set", {{"tape.read_algo", "fifo"}, {"elevator_max_wait", "1s"}});
    stage.run_for(1ms);
    CHECK(set.status == 200);
    const json both = json({"io_sched.elevator_max_wait", "io_sched.tape.read_algo"});
    CHECK(set.json == json({{"changed", both}, {"differs", both}}));
    CHECK(tape_read_algorithms(stage) == Names{"fifo", "fifo"});
    CHECK(settings(stage)["elevator_max_wait"]["value"] == 1.0);
    CHECK(stage.node().events().count("daemon.config_changed") == 2);
    CHECK(stage.answer("/v1/status").json["config"]["differs"] == both);

    // The same again changes nothing; what the file says differs no more.
    const json again = stage
                           .answer("/v1/io_sched/set",
                                   {{"tape.read_algo", "fifo"}, {"elevator_max_wait", "250ms"}})
                           .json;
    CHECK(again["changed"] == json({"io_sched.elevator_max_wait"}));
    CHECK(again["differs"] == json({"io_sched.tape.read_algo"}));

    CHECK(stage.answer("/v1/reload").json["changed"] == json({"io_sched.tape.read_algo"}));
    stage.run_for(1ms);
    CHECK(tape_read_algorithms(stage) == Names{"grouped_read", "grouped_read"});
    CHECK(stage.answer("/v1/io_sched").json["differs"] == json::array());
}

TEST_CASE("sim admin io_sched: an invalid setting changes nothing, and has a reason", "[sim]") {
    AdminStage stage(53, {.nodes = 1, .disks = 1}, kConfigured);
    stage.wait_ready();
    const std::string hash = stage.node().configuration().hash();
    CHECK(stage.refused("/v1/io_sched/set") == "400 nothing to set is given");

    struct Row {
        AdminStage::Query query;
        std::string refusal;
        std::string problem;  // How it begins.
    };
    const std::string not_valid = "422 not valid; nothing was changed";
    for (const Row& row :
         {Row{{{"read_algo", "fairest"}}, not_valid, "io_sched.read_algo: "},
          Row{{{"read_algo", "fifo"}, {"elevator_max_wait", "-1s"}},
              not_valid,
              "io_sched.elevator_max_wait: "},
          Row{{{"tape.request_fair_share_weights", "1,2"}},
              not_valid,
              "io_sched.tape.request_fair_share_weights: "},
          Row{{{"depth_max", "64"}},
              not_valid,
              "io_sched.depth_max: it cannot change without a restart"},
          Row{{{"read_algo", "[fifo"}}, not_valid, "io_sched.read_algo: not a value"},
          Row{{{"read_algo", "fifo"}, {"raed_algo", "fifo"}},
              not_valid,
              "io_sched.raed_algo: there is no such key; the keys are "},
          Row{{{"tape", "fifo"}}, not_valid, "io_sched.tape: there is no such key"}}) {
        CAPTURE(row.query);
        const AdminStage::Answer answer = stage.answer("/v1/io_sched/set", row.query);
        CHECK(AdminStage::refusal(answer) == row.refusal);
        CAPTURE(answer.json.dump());
        REQUIRE(answer.json["problems"].size() == 1);
        CHECK(answer.json["problems"][0].get<std::string>().starts_with(row.problem));
    }
    // The message has the keys that there are, in the form in which they are set.
    const json unknown = stage.answer("/v1/io_sched/set", {{"raed_algo", "fifo"}}).json;
    const auto words = unknown["problems"][0].get<std::string>();
    CHECK(words.find(" read_algo, ") != std::string::npos);
    CHECK(words.find("tape.read_algo") != std::string::npos);
    CHECK(stage.node().configuration().hash() == hash);
    CHECK(settings(stage)["read_algo"]["value"] == "elevator");
    CHECK(stage.node().events().count("daemon.config_changed") == 0);
}

TEST_CASE("sim admin io_sched: nothing is set before the node is ready, or when it has drained",
          "[sim]") {
    AdminStage stage(54, {.nodes = 1, .disks = 1}, kConfigured);
    const AdminStage::Query query{{"tape.read_algo", "fifo"}};
    auto early = stage.ask("/v1/io_sched/set", query);
    for (int i = 0; i < 40 && !AdminStage::answered(early); ++i) stage.cluster().world().step();
    CHECK(AdminStage::refusal(AdminStage::take(std::move(early))) ==
          "503 not changed: the node is starting");
    stage.wait_ready();
    CHECK(tape_read_algorithms(stage) == Names{"grouped_read", "grouped_read"});

    stage.node().drain();
    stage.run_for(1s);
    CHECK(stage.refused("/v1/io_sched/set", query) == "503 not changed: the node is drained");
    CHECK(stage.answer("/v1/io_sched").status == 200);
}
