// Goal: what administrators read of epochs, and how they let a minority go on. Method: the real
// AdminApi and Nodes in the simulated world, asked as the server's threads ask.

#include <map>
#include <string>

#include "tests/catch.h"
#include "tests/sim/admin_stage.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::AdminStage;
using nlohmann::json;

namespace {

const ClusterOptions kThreeDaemons{.nodes = 3, .peers = true};

std::map<std::string, std::string> members(const json& shown) {
    std::map<std::string, std::string> states;
    for (const json& each : shown["members"])
        states[each["name"].get<std::string>()] = each["state"].get<std::string>();
    return states;
}

void wait_together(AdminStage& stage) {
    stage.run_for(5s);
    REQUIRE(stage.cluster().move_together(5s));
}

}  // namespace

TEST_CASE("sim admin epoch: a node without peers has epochs of its own, and nothing to force",
          "[sim]") {
    AdminStage stage(61, {.nodes = 1});
    CHECK(stage.refused("/v1/epoch/force", {{"sure", "yes"}}) == "503 the node is starting");
    stage.wait_ready();

    const json shown = stage.answer("/v1/epoch").json;
    CHECK(shown["kind"] == "local");
    CHECK(shown["store"] == "");
    CHECK(shown["view"] == 0);
    CHECK(shown["root"] == "");
    CHECK(shown["members"] == json::array());
    CHECK(shown["last_error"] == "");
    CHECK(shown["last_error_age_s"] == nullptr);
    CHECK(stage.refused("/v1/epoch/force", {{"sure", "yes"}}) == "409 this daemon has no network");
}

TEST_CASE("sim admin epoch: show has the members, the epoch, and how long epochs take", "[sim]") {
    AdminStage stage(62, kThreeDaemons);
    CHECK(stage.refused("/v1/epoch") == "503 the node is starting");
    wait_together(stage);

    const json shown = stage.answer("/v1/epoch").json;
    CHECK(shown["kind"] == "peers");
    CHECK(shown["store"] == "static");
    CHECK(shown["root"] == "node-0");
    CHECK(shown["view"] == stage.cluster().epochs().views().size());
    CHECK(members(shown).size() == 3);
    for (const auto& [name, state] : members(shown)) {
        CAPTURE(name);
        CHECK((state == "member" || state == "ready"));
    }
    CHECK(shown["median_s"] > 0.0);
    CHECK(shown["p99_s"].get<double>() >= shown["median_s"].get<double>());
    CHECK(shown["last_error"] == "");

    stage.run_for(5s);
    const json later = stage.answer("/v1/epoch").json;
    CHECK(later["epoch"] > shown["epoch"]);
    CHECK(later["view"] == shown["view"]);

    stage.cluster().node(2).crash();
    stage.run_for(5s);
    const json without = stage.answer("/v1/epoch").json;
    CHECK(members(without)["node-2"] == "lost");
    CHECK(members(without)["node-1"] != "lost");
    CHECK(without["view"] > shown["view"]);
}

TEST_CASE("sim admin epoch: a minority goes on when an administrator is sure", "[sim]") {
    AdminStage stage(63, kThreeDaemons);
    wait_together(stage);
    stage.cluster().node(1).crash();
    stage.cluster().node(2).crash();
    stage.run_for(20s);
    const json stopped = stage.answer("/v1/epoch").json;
    CHECK(stopped["last_error"] != "");
    CHECK(stopped["last_error_age_s"] >= 0.0);
    stage.run_for(5s);
    CHECK(stage.answer("/v1/epoch").json["epoch"] == stopped["epoch"]);

    CHECK(stage.refused("/v1/epoch/force").starts_with("409 nothing is done: --yes confirms"));
    CHECK(stage.node().events().count("eh.majority_waived") == 0);
    const AdminStage::Answer forced = stage.answer("/v1/epoch/force", {{"sure", "yes"}});
    CHECK(forced.status == 200);
    CHECK(forced.json["for_s"] > 0.0);
    CHECK(stage.node().events().count("eh.majority_waived") == 1);

    stage.run_for(20s);
    const json alone = stage.answer("/v1/epoch").json;
    CHECK(alone["epoch"] > stopped["epoch"]);
    CHECK(members(alone)["node-0"] != "lost");
    CHECK(members(alone)["node-1"] == "lost");
    CHECK(members(alone)["node-2"] == "lost");
}
