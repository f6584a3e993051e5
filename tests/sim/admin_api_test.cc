// Goal: what the verbs of the admin socket answer, in every state of a node and however many ask at
// once. Method: the real AdminApi and Node in the simulated world, asked as the server's threads
// ask; HTTP is tested in tests/daemon/admin_server_test.cc.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/admin_stage.h"
#include "tests/temp_dir.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::AdminStage;
using nlohmann::json;

namespace {

json locality_states(AdminStage& stage) {
    json states = json::array();
    const AdminStage::Answer status = stage.answer("/v1/status");
    for (const json& each : status.json["localities"]) states.push_back(each["state"]);
    return states;
}

json device_named(AdminStage& stage, const std::string& name) {
    const AdminStage::Answer devices = stage.answer("/v1/devices");
    for (const json& each : devices.json["devices"]) {
        if (each["name"] == name) return each;
    }
    return nullptr;
}

// A call whose fop the node cannot finish until the network is whole again.
void begin_endless_call(AdminStage& stage) {
    const fop::FopType* const type = fop::find_fop_type("bulk_echo");
    stage.cluster().client(0).call(0, {.type = type, .bytes = 1000, .timeout = 1000s});
    const auto runs = [&stage] {
        std::uint64_t count = 0;
        for (const auto& each : stage.node().node().localities()) count += each->work().count();
        return count > 0;
    };
    while (!runs()) stage.cluster().world().step();
    stage.cluster().network().partition({.from = "client-0", .to = "node-0"});
}

}  // namespace

// -- status and what is under way --

TEST_CASE("sim admin: status tells of a node from its start to its end", "[sim]") {
    AdminStage stage(1, {.nodes = 1, .localities = 3, .disks = 1});
    auto early = stage.ask("/v1/status");
    auto early_sessions = stage.ask("/v1/sessions");
    auto early_drain = stage.ask("/v1/drain");
    for (int i = 0; i < 40 && !AdminStage::answered(early_drain); ++i) {
        stage.cluster().world().step();
    }

    const AdminStage::Answer starting = AdminStage::take(std::move(early));
    CHECK(starting.json["state"] == "starting");
    CHECK_FALSE(starting.json.contains("ready_s"));
    CHECK(AdminStage::refusal(AdminStage::take(std::move(early_sessions))) ==
          "503 the node is starting");
    CHECK(AdminStage::refusal(AdminStage::take(std::move(early_drain))) ==
          "503 not drained: the node is starting");

    stage.wait_ready();
    const json ready = stage.answer("/v1/status").json;
    CHECK(ready["name"] == "node-0");
    CHECK(ready["state"] == "ready");
    CHECK(ready["ready_s"] > 0.0);
    CHECK(ready["watchdog"] == true);
    CHECK(ready["log_level"] == "info");
    CHECK(ready["config"]["file"] == "node-0.yaml");
    CHECK(ready["config"]["hash"] == stage.node().configuration().hash());
    CHECK(ready["config"]["differs"] == json::array());
    CHECK(ready["config"]["needs_restart"] == json::array());
    REQUIRE(ready["localities"].size() == 3);
    CHECK(ready["localities"][2]["index"] == 2);
    CHECK(ready["localities"][2]["core"] == nullptr);
    CHECK(ready["localities"][2]["state"] == "turning");
    REQUIRE(ready["devices"].size() == 1);
    CHECK(ready["devices"][0]["name"] == "d0");

    stage.node().drain();
    stage.run_for(1s);
    CHECK(stage.answer("/v1/status").json["state"] == "drained");
}

TEST_CASE("sim admin: status does not wait for a locality, sessions and traces do", "[sim]") {
    AdminStage stage(2, {.nodes = 1, .localities = 2, .watchdog = 100s});
    stage.wait_ready();
    stage.stall(1, 8s);
    auto sessions = stage.ask("/v1/sessions");
    auto fops = stage.ask("/v1/trace");

    stage.run_for(7s);
    auto status = stage.ask("/v1/status");
    stage.run_for(1ms);
    const json told = AdminStage::take(std::move(status)).json;
    CHECK(told["localities"][0]["state"] == "turning");
    CHECK(told["localities"][1]["state"] == "stuck");
    CHECK(told["localities"][1]["since_turn_s"] > 6.5);
    CHECK_FALSE(AdminStage::answered(sessions));
    CHECK_FALSE(AdminStage::answered(fops));

    stage.run_for(4s);
    CHECK(AdminStage::take(std::move(sessions)).json["sessions"] == json::array());
    CHECK(AdminStage::take(std::move(fops)).json["fops"] == json::array());
    CHECK(locality_states(stage) == json({"turning", "turning"}));
}

TEST_CASE("sim admin: requests do not pile up before a locality that does not answer", "[sim]") {
    constexpr std::size_t kMore = 10;
    AdminStage stage(20, {.nodes = 1, .localities = 2, .watchdog = 100s});
    stage.wait_ready();
    stage.stall(1, 8s);
    std::vector<AdminStage::Asked> waiting;
    std::size_t refused = 0;
    for (std::size_t i = 0; i < daemon::AdminApi::kCallsOfVerbMax + kMore; ++i) {
        auto asked = stage.ask("/v1/sessions");
        stage.run_for(1ms);
        if (!AdminStage::answered(asked)) {
            waiting.push_back(std::move(asked));
            continue;
        }
        CHECK(AdminStage::refusal(AdminStage::take(std::move(asked))) ==
              "503 too many of these requests wait for the node; try again later");
        ++refused;
    }
    CHECK(refused == kMore);
    // Others are not kept from asking.
    CHECK(stage.answer("/v1/status").status == 200);

    stage.run_for(10s);
    for (AdminStage::Asked& each : waiting) {
        CHECK(AdminStage::take(std::move(each)).status == 200);
    }
    CHECK(stage.answer("/v1/sessions").status == 200);
}

TEST_CASE("sim admin: sessions are listed with the locality that serves them", "[sim]") {
    AdminStage stage(3, {.nodes = 1, .localities = 2, .clients = 4, .lines = 1});
    stage.wait_ready();
    stage.run_for(30s);

    const json sessions = stage.answer("/v1/sessions").json["sessions"];

    REQUIRE(sessions.size() == 4);
    std::set<std::string> ids;
    std::set<std::string> peers;
    std::vector<int> count(2);
    for (const json& each : sessions) {
        ids.insert(each["id"]);
        peers.insert(each["peer"]);
        ++count.at(each["locality"]);
        CHECK(each["fops"] > 0);
        CHECK(each["messages_in"] > 0);
        CHECK(each["age_s"] > 0.0);
    }
    CHECK(ids.size() == 4);
    CHECK(peers.size() == 4);
    const json localities = stage.answer("/v1/status").json["localities"];
    CHECK(localities[0]["sessions"] == count[0]);
    CHECK(localities[1]["sessions"] == count[1]);
}

TEST_CASE("sim admin: a fop is found by its name while it runs and after its end", "[sim]") {
    AdminStage stage(4, {.nodes = 1, .clients = 1, .quiet_clients = true});
    stage.wait_ready();
    begin_endless_call(stage);
    stage.run_for(2s);

    const json fops = stage.answer("/v1/trace").json["fops"];
    REQUIRE(fops.size() == 1);
    CHECK(fops[0]["op"] == "bulk_echo");
    CHECK(fops[0]["state"] == "running");
    CHECK(fops[0]["age_s"] >= 2.0);
    CHECK_FALSE(fops[0].contains("status"));
    const std::string id = fops[0]["id"];
    CHECK(stage.answer("/v1/trace", {{"id", id}}).json["id"] == id);
    CHECK(stage.answer("/v1/status").json["localities"][0]["fops_running"].get<int>() +
              stage.answer("/v1/status").json["localities"][1]["fops_running"].get<int>() ==
          1);

    stage.cluster().network().heal({.from = "client-0", .to = "node-0"});
    stage.run_for(10s);
    const AdminStage::Answer after = stage.answer("/v1/trace", {{"id", id}});
    CHECK(after.status == 200);
    CHECK(after.json["state"] == "finished");
    CHECK(after.json["status"] == "done");
    CHECK(stage.answer("/v1/trace").json["fops"] == json::array());

    CHECK(stage.refused("/v1/trace", {{"id", "ffff-1"}}) ==
          "404 no fop of this name waits, runs or is among the last ones");
    for (const char* const wrong : {"", "12", "x-1", "5f3a-", "5f3a-17-2"}) {
        CAPTURE(wrong);
        CHECK(stage.refused("/v1/trace", {{"id", wrong}}) ==
              "400 \"" + std::string(wrong) + "\" is not the name of a fop, such as 5f3a-17");
    }
}

// -- devices --

TEST_CASE("sim admin: a device goes and comes again, and each refusal says why", "[sim]") {
    AdminStage stage(5, {.nodes = 1, .disks = 2});
    stage.wait_ready();
    const json before = device_named(stage, "d1");
    CHECK(before["pool"] == "fast");
    CHECK(before["path"] == "/sim/d1");
    CHECK(before["used"].get<std::uint64_t>() + before["free"].get<std::uint64_t>() ==
          before["capacity"].get<std::uint64_t>());

    const AdminStage::Answer gone = stage.answer("/v1/device/remove", {{"device", "d1"}});
    CHECK(gone.status == 200);
    CHECK(gone.json["device"] == "d1");
    CHECK(gone.json["result"] == "removed");
    CHECK(gone.json["file"] == "node-0.yaml");
    CHECK(gone.json["in_file"] == true);
    CHECK(gone.json["now"] == device_named(stage, "d1"));
    CHECK(device_named(stage, "d1")["capacity"] == nullptr);
    CHECK(stage.refused("/v1/device/remove", {{"device", "d1"}}) ==
          "409 device d1 is not removed: it was removed already");

    const AdminStage::Answer there = stage.answer("/v1/device/add", {{"device", "d1"}});
    CHECK(there.status == 200);
    CHECK(there.json["result"] == "added");
    CHECK(there.json["now"]["state"] == before["state"]);
    CHECK(stage.refused("/v1/device/add", {{"device", "d1"}}) ==
          "409 device d1 is not added: it is open already");
    CHECK(stage.refused("/v1/device/add", {{"device", "d9"}}) ==
          "404 device d9 is not added: node-0.yaml has no device of that name");
    CHECK(stage.refused("/v1/device/remove", {{"device", "d9"}}) ==
          "404 device d9 is not removed: the node has no device of that name");
    CHECK(stage.refused("/v1/device/add") == "400 the parameter device is missing");
    CHECK(stage.refused("/v1/device/remove") == "400 the parameter device is missing");

    stage.node().set_configuration("devices: []\nnoed: 1\n");
    const AdminStage::Answer bad = stage.answer("/v1/device/add", {{"device", "d1"}});
    CHECK(AdminStage::refusal(bad) == "422 the configuration is not valid; nothing was changed");
    CHECK(bad.json["problems"].size() == 1);
}

TEST_CASE("sim admin: a lost disk is named by exactly one of device and slot", "[sim]") {
    AdminStage stage(6, {.nodes = 1, .disks = 1});
    stage.wait_ready();
    const std::string which = "400 name the lost disk by either device or slot";
    CHECK(stage.refused("/v1/device/forget") == which);
    CHECK(stage.refused("/v1/device/forget", {{"device", "d0"}, {"slot", "1"}}) == which);
    for (const char* const wrong : {"one", "-1", "0", "65536", "1x", "18446744073709551616"}) {
        CAPTURE(wrong);
        CHECK(stage.refused("/v1/device/forget", {{"slot", wrong}}) ==
              "400 the parameter slot must be a number from 1 to 65535");
    }
    CHECK(stage.refused("/v1/device/forget", {{"slot", "65535"}}) ==
          "404 the device is not forgotten: no disk ever had slot 65535");
    CHECK(stage.refused("/v1/device/forget", {{"device", "d9"}}) ==
          "404 device d9 is not forgotten: the node has no device of that name");
    CHECK(stage.refused("/v1/device/forget", {{"device", "d0"}, {"sure", "yes"}}) ==
          "409 device d0 is not forgotten: the disk of slot 1 is not missing: it is open as d0");
    CHECK(device_named(stage, "d0")["capacity"] != nullptr);
}

TEST_CASE("sim admin: a check is ordered by disk, and its report has what was counted", "[sim]") {
    AdminStage stage(7, {.nodes = 1, .disks = 2});
    stage.wait_ready();
    CHECK(stage.refused("/v1/store/check", {{"do", "stop"}}) ==
          "400 the parameter do must be begin or end");
    CHECK(stage.refused("/v1/store/check", {{"device", "d7"}}) == "404 there is no device d7");
    CHECK(stage.refused("/v1/store/check-report", {{"device", "d7"}}) ==
          "404 there is no device d7");

    for (const char* const disk : {"d0", "d1"}) {
        stage.node().disks().set_faults(disk, {.delay_min = 40ms, .delay_max = 40ms});
    }
    CHECK(stage.answer("/v1/store/check").json ==
          json({{"devices", 2}, {"problems", json::array()}}));
    CHECK(stage.answer("/v1/store/check-report", {{"device", "d1"}}).json["checks"][0]["state"] ==
          "running");
    const json reports = stage.answer("/v1/store/check-report", {{"wait", "yes"}}).json["checks"];
    REQUIRE(reports.size() == 2);
    for (const json& each : reports) {
        CHECK(each["state"] == "done");
        CHECK(each["findings"] == 0);
        CHECK(each["problem"] == "");
    }
    CHECK(reports[1]["device"] == "d1");

    CHECK(stage.answer("/v1/scrub", {{"device", "d0"}}).json["devices"] == 1);
    CHECK(stage.answer("/v1/scrub", {{"do", "end"}}).json["devices"] == 2);
    REQUIRE(stage.answer("/v1/device/remove", {{"device", "d1"}}).status == 200);
    CHECK(stage.answer("/v1/store/check").json["devices"] == 1);
    CHECK(stage.refused("/v1/scrub", {{"device", "d1"}}) == "409 device d1 is removed");

    AdminStage without(8, {.nodes = 1});
    without.wait_ready();
    CHECK(without.refused("/v1/scrub") == "409 the node has no devices");
    CHECK(without.answer("/v1/store/check-report").json == json({{"checks", json::array()}}));
}

TEST_CASE("sim admin: a backup is read in parts until the next one or its end", "[sim]") {
    const TempDir directory;
    AdminStage stage(17, {.nodes = 1, .disks = 2}, "", directory.path());
    stage.wait_ready();
    auto first = stage.ask("/v1/store/backup");
    auto second = stage.ask("/v1/store/backup");

    const json made = stage.wait_for(std::move(first)).json;
    CHECK(AdminStage::refusal(stage.wait_for(std::move(second))) ==
          "503 another backup is being made");
    CHECK(made["backup"] == 1);
    const std::size_t size_bytes = made["bytes"];
    CHECK(stage.node().events().count("daemon.backup_made") == 1);
    const auto part = [&stage](const std::string& backup, std::size_t at) {
        auto asked =
            stage.ask("/v1/store/backup-part", {{"backup", backup}, {"at", std::to_string(at)}});
        stage.run_for(1ms);
        REQUIRE(AdminStage::answered(asked));
        return asked.get();
    };
    const daemon::AdminReply whole = part("1", 0);
    CHECK(whole.status == 200);
    CHECK(whole.content_type == "application/octet-stream");
    CHECK(whole.body.size() == size_bytes);
    CHECK(part("1", 10).body == whole.body.substr(10));
    CHECK(part("1", size_bytes).body.empty());
    CHECK(part("1", size_bytes + 1).status == 409);
    CHECK(part("one", 0).status == 400);
    CHECK(stage.refused("/v1/store/backup-part", {{"backup", "1"}}) ==
          "400 the parameters backup and at must be numbers");

    CHECK(stage.answer("/v1/store/backup").json["backup"] == 2);
    CHECK(part("1", 0).status == 404);
    // Whoever ends the older one does not take the newer one away.
    CHECK(stage.answer("/v1/store/backup-end", {{"backup", "1"}}).status == 200);
    CHECK(part("2", 0).status == 200);
    CHECK(stage.answer("/v1/store/backup-end", {{"backup", "2"}}).status == 200);
    CHECK(part("2", 0).status == 404);
    CHECK(stage.refused("/v1/store/backup-end") == "400 the parameter backup must be a number");
}

TEST_CASE("sim admin: a backup whose client has gone away does not stay", "[sim]") {
    const TempDir directory;
    AdminStage stage(19, {.nodes = 1, .disks = 1}, "", directory.path());
    stage.wait_ready();
    REQUIRE(stage.answer("/v1/store/backup").json["backup"] == 1);
    const auto status_of_part = [&stage] {
        auto asked = stage.ask("/v1/store/backup-part", {{"backup", "1"}, {"at", "0"}});
        stage.run_for(1ms);
        REQUIRE(AdminStage::answered(asked));
        return asked.get().status;
    };

    // A slow client is one that comes back.
    for (int i = 0; i < 3; ++i) {
        stage.run_for(9min);
        CHECK(status_of_part() == 200);
    }
    stage.run_for(11min);
    CHECK(status_of_part() == 404);
}

TEST_CASE("sim admin: a backup that cannot be written fails", "[sim]") {
    const TempDir directory;
    AdminStage stage(18, {.nodes = 1, .disks = 1}, "", directory / "gone");
    stage.wait_ready();

    CHECK(stage.refused("/v1/store/backup").starts_with("409 no backup: "));
    // It is not under way any more, either.
    CHECK(stage.refused("/v1/store/backup").starts_with("409 no backup: "));
}

// -- configuration --

TEST_CASE("sim admin: a reload lists applied keys and those that need a restart", "[sim]") {
    AdminStage stage(9, {.nodes = 1, .disks = 2});
    stage.wait_ready();
    const std::string good = stage.node().good_configuration();
    const std::string hash = stage.answer("/v1/status").json["config"]["hash"];

    CHECK(stage.answer("/v1/reload").json == json({{"changed", json::array()},
                                                   {"needs_restart", json::array()},
                                                   {"hash", hash},
                                                   {"devices", json::array()}}));

    std::string other = good;
    other.replace(other.find("cores: 2"), 8, "cores: 4");
    stage.node().set_configuration(other + "lrs: { policy: fifo, max_foms: 7 }\n");
    const json reloaded = stage.answer("/v1/reload").json;
    CHECK(reloaded["changed"] == json({"lrs.policy", "lrs.max_foms"}));
    CHECK(reloaded["needs_restart"] == json({"localities.cores"}));
    CHECK(reloaded["hash"] != hash);
    CHECK(stage.answer("/v1/status").json["config"]["needs_restart"] == json({"localities.cores"}));

    stage.node().set_configuration("node: { nmae: x }\nlog: { level: loud }\n");
    const AdminStage::Answer bad = stage.answer("/v1/reload");
    CHECK(AdminStage::refusal(bad) == "422 the configuration is not valid; nothing was changed");
    REQUIRE(bad.json["problems"].size() == 2);
    CHECK(bad.json["problems"][0].get<std::string>().find("nmae") != std::string::npos);
    CHECK(bad.json["problems"][1].get<std::string>().find("loud") != std::string::npos);
    CHECK(stage.answer("/v1/status").json["config"]["hash"] == reloaded["hash"]);

    stage.node().drain();
    stage.run_for(1s);
    CHECK(stage.refused("/v1/reload") == "503 not reloaded: the node is drained");
}

TEST_CASE("sim admin: a log level that was set by hand is there until the next reload", "[sim]") {
    AdminStage stage(10, {.nodes = 1});
    stage.wait_ready();
    CHECK(stage.refused("/v1/log-level") ==
          "400 the parameter level must be one of trace, debug, info, warn, error");
    CHECK(stage.refused("/v1/log-level", {{"level", "loud"}}) ==
          "400 the parameter level must be one of trace, debug, info, warn, error");
    CHECK(stage.levels().empty());

    CHECK(stage.answer("/v1/log-level", {{"level", "debug"}}).json ==
          json({{"level", "debug"}, {"was", "info"}}));
    CHECK(stage.levels() == std::vector{core::Level::kDebug});
    CHECK(stage.node().events().count("daemon.log_level") == 1);
    CHECK(stage.answer("/v1/status").json["config"]["differs"] == json({"log.level"}));

    CHECK(stage.answer("/v1/reload").json["changed"] == json({"log.level"}));
    CHECK(stage.answer("/v1/status").json["log_level"] == "info");
    CHECK(stage.answer("/v1/status").json["config"]["differs"] == json::array());
}

TEST_CASE("sim admin: reloading keys keeps what was set by hand, whatever the file is", "[sim]") {
    AdminStage stage(40, {.nodes = 1});
    stage.wait_ready();
    stage.answer("/v1/log-level", {{"level", "debug"}});
    stage.node().set_configuration("not: [valid");

    CHECK(stage.answer("/v1/keys/reload").json == json({{"changed", json::array()}}));
    CHECK(stage.answer("/v1/status").json["config"]["differs"] == json({"log.level"}));
    CHECK(stage.node().events().count("daemon.keys_reloaded") == 1);

    stage.node().drain();
    stage.run_for(1s);
    CHECK(stage.answer("/v1/keys/reload").status == 200);
}

TEST_CASE("sim admin: health says what a node is like", "[sim]") {
    AdminStage stage(41, {.nodes = 1, .disks = 2});
    CHECK(stage.answer("/v1/health").json["text"] == "the node is starting");
    stage.wait_ready();
    CHECK(stage.answer("/v1/health").json == json({{"state", "ok"},
                                                   {"text", "2 disks, 0 objects"},
                                                   {"open_disks", 2},
                                                   {"objects", 0},
                                                   {"problems", json::array()}}));

    stage.node().drain();
    stage.run_for(1s);
    const json drained = stage.answer("/v1/health").json;
    CHECK(drained["state"] == "warning");
    CHECK(drained["text"] == "the node is drained, and serves again after a restart");
}

// -- drain --

TEST_CASE("sim admin: whoever asks for a drain is answered at its end", "[sim]") {
    AdminStage stage(11, {.nodes = 1, .drain_timeout = 30s});
    stage.wait_ready();
    stage.begin_work(1, 12s);

    auto first = stage.ask("/v1/drain");
    stage.run_for(5s);
    auto second = stage.ask("/v1/drain");
    stage.run_for(5s);
    CHECK_FALSE(AdminStage::answered(first));
    CHECK_FALSE(AdminStage::answered(second));
    CHECK(stage.answer("/v1/status").json["state"] == "draining");
    CHECK(stage.answer("/v1/sessions").status == 200);

    stage.run_for(3s);
    const json drained = AdminStage::take(std::move(first)).json;
    CHECK(drained["state"] == "drained");
    CHECK(drained["seconds"].get<double>() >= 11.9);
    CHECK(drained["seconds"].get<double>() < 13.0);
    CHECK(AdminStage::take(std::move(second)).json["seconds"].get<double>() < 8.0);
    CHECK(stage.node().events().count("daemon.drained") == 1);
    CHECK(stage.answer("/v1/drain").json["state"] == "drained");
}

TEST_CASE("sim admin: a drain reports fops that did not end in time", "[sim]") {
    AdminStage stage(12, {.nodes = 1, .watchdog = 100s, .drain_timeout = 5s});
    stage.wait_ready();
    stage.begin_work(0, 100s);
    stage.begin_work(0, 100s);
    stage.stall(1, 20s);

    CHECK(stage.refused("/v1/drain") ==
          "503 2 operations and 1 localities did not end within the drain timeout");
}

// -- several at once, and those who have gone --

TEST_CASE("sim admin: one of two concurrent adds of a device succeeds", "[sim]") {
    AdminStage stage(13, {.nodes = 1, .disks = 2});
    stage.wait_ready();
    REQUIRE(stage.answer("/v1/device/remove", {{"device", "d1"}}).status == 200);

    auto first = stage.ask("/v1/device/add", {{"device", "d1"}});
    auto second = stage.ask("/v1/device/add", {{"device", "d1"}});
    auto reload = stage.ask("/v1/reload");

    CHECK(stage.wait_for(std::move(first)).json["result"] == "added");
    CHECK(AdminStage::refusal(stage.wait_for(std::move(second))) ==
          "409 device d1 is not added: it is open already");
    CHECK(stage.wait_for(std::move(reload)).json["devices"] == json::array());
}

TEST_CASE("sim admin: a request is carried out although its client is gone", "[sim]") {
    AdminStage stage(14, {.nodes = 1, .disks = 2});
    stage.wait_ready();
    stage.stall(0, 2s);
    stage.stall(1, 2s);
    {
        const auto forgotten = stage.ask("/v1/device/remove", {{"device", "d1"}});
        const auto sessions = stage.ask("/v1/sessions");
        stage.run_for(1s);
        REQUIRE_FALSE(AdminStage::answered(forgotten));
        REQUIRE_FALSE(AdminStage::answered(sessions));
    }
    stage.run_for(3s);

    CHECK(device_named(stage, "d1")["state"] == "removed");
    CHECK(stage.answer("/v1/sessions").status == 200);
}

TEST_CASE("sim admin: closing refuses new requests and waits for those in flight", "[sim]") {
    AdminStage stage(15, {.nodes = 1});
    stage.wait_ready();
    stage.stall(1, 3s);
    const Instant began = stage.cluster().world().now();
    auto under_way = stage.ask("/v1/sessions");
    stage.run_for(1ms);
    REQUIRE(stage.cluster().world().run(stage.node().control(), stage.api().close()));

    CHECK(stage.cluster().world().now() - began >= 3s);
    CHECK(AdminStage::take(std::move(under_way)).status == 200);
    auto late = stage.ask("/v1/drain");
    stage.run_for(1ms);
    CHECK(AdminStage::refusal(AdminStage::take(std::move(late))) ==
          "503 the node is stopping; try again later");
    CHECK(stage.node().node().state() == daemon::NodeState::kReady);
}

TEST_CASE("sim admin: requests during a stop are answered that the node stops", "[sim]") {
    AdminStage stage(16, {.nodes = 1, .disks = 1, .watchdog = 100s, .drain_timeout = 5s});
    stage.wait_ready();
    stage.stall(1, 60s);
    stage.node().terminate();
    stage.run_for(1s);
    CHECK(stage.answer("/v1/status").json["state"] == "draining");
    CHECK(stage.refused("/v1/reload") == "503 not reloaded: the node is draining");
    CHECK(stage.refused("/v1/device/add", {{"device", "d0"}}) == "503 the node is draining");

    for (int i = 0; i < 1000 && stage.node().node().life().serving(); ++i) stage.run_for(10ms);
    CHECK(stage.answer("/v1/status").json["state"] == "stopping");
    for (const char* const path : {"/v1/sessions", "/v1/trace", "/v1/scrub", "/v1/store/check",
                                   "/v1/store/check-report", "/v1/store/backup", "/v1/lrs"}) {
        CAPTURE(path);
        CHECK(stage.refused(path) == "503 the node is stopping");
    }
    CHECK(stage.refused("/v1/drain") == "503 not drained: the node is stopping");
    CHECK(stage.refused("/v1/reload") == "503 not reloaded: the node is stopping");
}
