// Goal: what administrators read and change of the request scheduler, alone and at once. Method:
// the real AdminApi and Node in the simulated world, asked as the server's threads ask.

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/admin_stage.h"

using namespace fopd;
using namespace fopd::sim;
using fopd::sim::testing::AdminStage;
using nlohmann::json;

namespace {

constexpr const char* kNotValid = "422 not valid; nothing was changed";
constexpr const char* kUnknownRule = "404 nothing was changed";

struct ListedRules {
    std::uint64_t version = 0;
    std::vector<std::string> texts{};

    bool operator==(const ListedRules&) const = default;
};

ListedRules listed_rules(AdminStage& stage) {
    const json listed = stage.answer("/v1/lrs/rules").json;
    ListedRules rules{.version = listed["version"]};
    for (const json& each : listed["rules"]) rules.texts.push_back(each["text"]);
    return rules;
}

std::string policy_in_force(AdminStage& stage) {
    return stage.answer("/v1/lrs").json["policy"];
}

// How often a locality has taken another policy over.
std::uint64_t policy_switches(AdminStage& stage, std::size_t locality) {
    return stage.node().node().localities()[locality]->requests()->policy_figures().switches.get();
}

const std::string kTbf = "lrs: { policy: tbf, tbf: { rules: [\"a job=a rate=1/s\"] } }\n";

}  // namespace

// -- show --

TEST_CASE("sim admin lrs: show has the settings in force and what each class was served", "[sim]") {
    AdminStage stage(
        21, {.nodes = 1, .clients = 2, .lines = 1, .client_pause_max = 1s},
        "lrs: { policy: mclock, max_foms: 9, mclock: { capacity: 1000/s, rules: [\"echoes op=echo "
        "reservation=5/s weight=3 limit=100/s\"] } }\n");
    stage.wait_ready();
    stage.run_for(20s);

    const json shown = stage.answer("/v1/lrs").json;

    CHECK(shown["policy"] == "mclock");
    CHECK(shown["queued"] == 0);
    CHECK(shown["differs"] == json::array());
    CHECK(
        shown["settings"] ==
        json(
            {{{"name", "max_foms"}, {"policy", nullptr}, {"value", 9}, {"unit", ""}},
             {{"name", "io_wait_goal"}, {"policy", nullptr}, {"value", 0.001}, {"unit", "seconds"}},
             {{"name", "capacity"}, {"policy", "mclock"}, {"value", 1000}, {"unit", "per second"}},
             {{"name", "cost_unit"}, {"policy", "mclock"}, {"value", 65536}, {"unit", "bytes"}}}));
    bool has_echoes = false;
    for (const json& each : shown["classes"]) {
        if (!each["name"].get<std::string>().starts_with("echoes")) continue;
        has_echoes = true;
        CHECK(each["served"] > 0);
        CHECK(each["queued"] == 0);
        CHECK(each["throttled"] == false);
        CHECK(each["shares"]["reservation"] == 5.0);
        CHECK(each["shares"]["weight"] == 3);
        CHECK(each["shares"]["limit"] == 100.0);
        CHECK_FALSE(each["shares"].contains("soft_limit"));
        CHECK(each["shares"]["served_reserved"].get<std::uint64_t>() +
                  each["shares"]["served_by_weight"].get<std::uint64_t>() ==
              each["served"].get<std::uint64_t>());
    }
    CHECK(has_echoes);
}

TEST_CASE("sim admin lrs: fops that a rule holds back are shown as queued and throttled", "[sim]") {
    AdminStage stage(22, {.nodes = 1, .clients = 1, .quiet_clients = true},
                     "lrs: { policy: tbf, tbf: { rules: [\"held op=bulk_echo rate=0\"] } }\n");
    stage.wait_ready();
    const fop::FopType* const type = fop::find_fop_type("bulk_echo");
    for (int i = 0; i < 3; ++i) {
        stage.cluster().client(0).call(0, {.type = type, .bytes = 1000, .timeout = 100s});
    }
    stage.run_for(5s);

    const json held = stage.answer("/v1/lrs").json;
    CHECK(held["queued"] == 3);
    REQUIRE(held["classes"].size() == 1);
    CHECK(held["classes"][0]["name"] == "held{op=bulk_echo}");
    CHECK(held["classes"][0]["queued"] == 3);
    CHECK(held["classes"][0]["served"] == 0);
    CHECK(held["classes"][0]["throttled"] == true);
    CHECK(held["classes"][0]["oldest_s"] > 3.0);

    CHECK(stage.answer("/v1/lrs/rule/change", {{"rule", "held rate=unlimited"}}).status == 200);
    stage.run_for(2s);
    const json served = stage.answer("/v1/lrs").json;
    CHECK(served["queued"] == 0);
    CHECK(served["classes"][0]["served"] == 3);
    CHECK(served["classes"][0]["throttled"] == false);
}

TEST_CASE("sim admin lrs: answers depend on whether the node starts, serves or has drained",
          "[sim]") {
    AdminStage stage(23, {.nodes = 1, .disks = 1});
    auto early_show = stage.ask("/v1/lrs");
    auto early_which = stage.ask("/v1/lrs/which", {{"request", "op=read"}});
    auto early_set = stage.ask("/v1/lrs/set", {{"policy", "crr"}});
    for (int i = 0; i < 40 && !AdminStage::answered(early_set); ++i) stage.cluster().world().step();
    CHECK(AdminStage::refusal(AdminStage::take(std::move(early_show))) ==
          "503 the node is starting");
    CHECK(AdminStage::refusal(AdminStage::take(std::move(early_which))) ==
          "503 the node is starting");
    CHECK(AdminStage::refusal(AdminStage::take(std::move(early_set))) ==
          "503 not changed: the node is starting");

    stage.wait_ready();
    stage.node().drain();
    stage.run_for(1s);
    CHECK(stage.answer("/v1/lrs").status == 200);
    CHECK(stage.refused("/v1/lrs/set", {{"policy", "crr"}}) ==
          "503 not changed: the node is drained");
    CHECK(stage.refused("/v1/lrs/rule/add", {{"rule", "b job=b rate=1/s"}}) ==
          "503 not changed: the node is drained");
    CHECK(listed_rules(stage).texts.size() == 1);
}

// -- set --

TEST_CASE("sim admin lrs: set changes what it names, on every locality, until the next reload",
          "[sim]") {
    AdminStage stage(24, {.nodes = 1, .clients = 1, .quiet_clients = true},
                     "lrs: { policy: fifo }\n");
    stage.wait_ready();

    const json set = stage.answer("/v1/lrs/set", {{"policy", "crr"}, {"crr.quantum", "16"}}).json;
    stage.run_for(1ms);
    CHECK(set["policy"] == "crr");
    CHECK(set["uses_rules"] == false);
    CHECK(set["rules_of"] == "tbf");
    CHECK(set["changed"] == json({"lrs.policy", "lrs.crr.quantum"}));
    CHECK(set["differs"] == json({"lrs.policy", "lrs.crr.quantum"}));
    CHECK(policy_switches(stage, 0) == 1);
    CHECK(policy_switches(stage, 1) == 1);
    CHECK(stage.node().events().count("daemon.config_changed") == 2);
    CHECK(stage.answer("/v1/status").json["config"]["differs"] ==
          json({"lrs.policy", "lrs.crr.quantum"}));

    // Without a policy's name, a setting belongs to the policy in force or to the section.
    CHECK(stage.answer("/v1/lrs/set", {{".quantum", "17"}, {".max_foms", "3"}}).json["changed"] ==
          json({"lrs.max_foms", "lrs.crr.quantum"}));
    const json again = stage.answer("/v1/lrs/set", {{"policy", "crr"}}).json;
    CHECK(again["changed"] == json::array());
    CHECK(again["differs"] == json({"lrs.policy", "lrs.max_foms", "lrs.crr.quantum"}));

    CHECK(stage.answer("/v1/reload").json["changed"] ==
          json({"lrs.policy", "lrs.max_foms", "lrs.crr.quantum"}));
    CHECK(policy_in_force(stage) == "fifo");
}

TEST_CASE("sim admin lrs: an invalid setting changes nothing, and has a reason", "[sim]") {
    AdminStage stage(25, {.nodes = 1, .clients = 1, .quiet_clients = true},
                     "lrs: { policy: fifo }\n");
    stage.wait_ready();
    const std::string hash = stage.node().configuration().hash();
    CHECK(stage.refused("/v1/lrs/set") == "400 nothing to set is given");
    CHECK(stage.refused("/v1/lrs/set", {{"policy", "crr"}, {"quantum", "1"}}) ==
          "400 quantum: a key to set is called crr.KEY");
    CHECK(stage.refused("/v1/lrs/set", {{"policy", "crr"}, {"tbf.rules", ""}}) ==
          "400 tbf.rules: a key to set is called crr.KEY");
    CHECK(stage.refused("/v1/lrs/set", {{"quantum", "1"}}) ==
          "400 quantum: a key to set is called .KEY");

    struct Row {
        AdminStage::Query query;
        std::vector<std::string> said;  // One for each problem.
    };
    for (const Row& row :
         {Row{{{"policy", "fairest"}}, {"lrs.policy: "}}, Row{{{"policy", ""}}, {"lrs.policy: "}},
          Row{{{".quantum", "1"}}, {"lrs.fifo.quantum: "}},
          Row{{{"policy", "crr"}, {"crr.quantum", "0"}, {"crr.max_foms", "0"}},
              {"lrs.max_foms: ", "lrs.crr.quantum: "}},
          Row{{{"policy", "crr"}, {"crr.quantun", "1"}}, {"lrs.crr.quantun: "}},
          Row{{{"policy", "deadline"}, {"deadline.policy", "deadline"}}, {"lrs.deadline.policy: "}},
          Row{{{"policy", "tbf"}, {"tbf.rules", "[a job=a rate=-1/s, b job=b]"}},
              {"lrs.tbf.rules[0]: ", "lrs.tbf.rules[1]: "}}}) {
        CAPTURE(row.query);
        const AdminStage::Answer answer = stage.answer("/v1/lrs/set", row.query);
        CHECK(AdminStage::refusal(answer) == kNotValid);
        CAPTURE(answer.json.dump());
        REQUIRE(answer.json["problems"].size() == row.said.size());
        for (std::size_t i = 0; i < row.said.size(); ++i) {
            CHECK(answer.json["problems"][i].get<std::string>().starts_with(row.said[i]));
        }
    }
    CHECK(stage.node().configuration().hash() == hash);
    CHECK(policy_in_force(stage) == "fifo");
    CHECK(policy_switches(stage, 0) == 0);
}

TEST_CASE("sim admin lrs: a policy and its rules are set at once or not at all", "[sim]") {
    AdminStage stage(26, {.nodes = 1}, "lrs: { policy: fifo }\n");
    stage.wait_ready();
    const ListedRules before = listed_rules(stage);
    const AdminStage::Query query{{"policy", "mclock"}, {"rules", ""}};

    const AdminStage::Answer bad =
        stage.answer("/v1/lrs/set", query, "a job=a weight=1\n\nb job=b weight=0\nc jbo=c\n");
    CHECK(AdminStage::refusal(bad) == kNotValid);
    REQUIRE(bad.json["problems"].size() == 2);
    CHECK(bad.json["problems"][0].get<std::string>().starts_with("line 3, column "));
    CHECK(bad.json["problems"][1].get<std::string>().starts_with("line 4, column "));
    CHECK(policy_in_force(stage) == "fifo");
    CHECK(listed_rules(stage) == before);
    CHECK(stage.refused("/v1/lrs/set", {{"policy", "crr"}, {"rules", ""}}, "a * rate=1/s\n") ==
          kNotValid);

    const json good = stage.answer("/v1/lrs/set", query, "# Of jobs.\na job=a weight=2\n").json;
    CHECK(good["policy"] == "mclock");
    CHECK(good["uses_rules"] == true);
    CHECK(good["rules_of"] == "mclock");
    CHECK(good["rules"] == 2);
    CHECK(good["changed"] == json({"lrs.policy", "lrs.mclock.rules"}));
    CHECK(listed_rules(stage).texts.front() == "a job=a weight=2");
}

// -- rules --

TEST_CASE("sim admin lrs: rules come, change and go, and each change is a version", "[sim]") {
    AdminStage stage(27, {.nodes = 1}, kTbf);
    stage.wait_ready();
    const ListedRules before = listed_rules(stage);
    CHECK(before.texts == std::vector<std::string>{"a job=a rate=1/s", "default * rate=unlimited"});

    const json added =
        stage.answer("/v1/lrs/rule/add", {{"rule", "b  job=b rate=2/s rank=5"}}).json;
    CHECK(added["version"] == before.version + 1);
    CHECK(added["rules"] == 3);
    CHECK(added["uses_rules"] == true);
    CHECK(added["changed"] == json({"lrs.tbf.rules"}));
    CHECK(stage.answer("/v1/lrs/rule/change", {{"rule", "a rate=9/s"}}).json["version"] ==
          before.version + 2);
    CHECK(listed_rules(stage).texts == std::vector<std::string>{"b job=b rate=2/s rank=5",
                                                                "a job=a rate=9/s",
                                                                "default * rate=unlimited"});
    CHECK(stage.answer("/v1/lrs/rule/del", {{"name", "b"}}).json["rules"] == 2);

    const json loaded =
        stage.answer("/v1/lrs/rule/load", {}, "# Jobs.\r\nx job=x rate=1/s\r\ny job=y rate=0\r\n")
            .json;
    CHECK(loaded["rules"] == 3);
    CHECK(loaded["version"] == before.version + 4);
    CHECK(loaded["differs"] == json({"lrs.tbf.rules"}));
    CHECK(listed_rules(stage).texts == std::vector<std::string>{"x job=x rate=1/s",
                                                                "y job=y rate=block",
                                                                "default * rate=unlimited"});
}

TEST_CASE("sim admin lrs: all mistakes of a rules file are reported, and nothing changes",
          "[sim]") {
    AdminStage stage(28, {.nodes = 1}, kTbf);
    stage.wait_ready();
    const ListedRules before = listed_rules(stage);

    const AdminStage::Answer answer = stage.answer("/v1/lrs/rule/load", {},
                                                   "b job=b rate=1/s\n"
                                                   "\n"
                                                   "# c is next\n"
                                                   "c job=c rate=-1/s\n"
                                                   "b job=c rate=1/s\n"
                                                   "d jbo=d rate=1/s\n"
                                                   "e job=e\n");
    CHECK(AdminStage::refusal(answer) == kNotValid);
    const json problems = answer.json["problems"];
    CAPTURE(problems.dump());
    REQUIRE(problems.size() == 4);
    CHECK(problems[0].get<std::string>().starts_with("line 4, column 14: "));
    CHECK(problems[1].get<std::string>().starts_with("line 5, column 1: "));
    CHECK(problems[2].get<std::string>().starts_with("line 6, column 3: "));
    CHECK(problems[3].get<std::string>().starts_with("line 7, column 8: "));

    struct Row {
        const char* path;
        AdminStage::Query query;
        std::string said;
        const char* refusal = kNotValid;
    };
    for (const Row& row :
         {Row{"/v1/lrs/rule/add", {{"rule", "a job=b rate=1/s"}}, "already"},
          Row{"/v1/lrs/rule/add", {{"rule", ""}}, "column 1"},
          Row{"/v1/lrs/rule/add", {}, "column 1"},
          Row{"/v1/lrs/rule/change", {{"rule", "b rate=1/s"}}, "no rule", kUnknownRule},
          Row{"/v1/lrs/rule/del", {{"name", "b"}}, "no rule", kUnknownRule},
          Row{"/v1/lrs/rule/del", {}, "no rule", kUnknownRule},
          Row{"/v1/lrs/rule/del", {{"name", "default"}}, "default"}}) {
        CAPTURE(row.path, row.query);
        const AdminStage::Answer refused = stage.answer(row.path, row.query);
        CHECK(AdminStage::refusal(refused) == row.refusal);
        CAPTURE(refused.json.dump());
        REQUIRE(refused.json["problems"].size() == 1);
        CHECK(refused.json["problems"][0].get<std::string>().find(row.said) != std::string::npos);
    }
    CHECK(listed_rules(stage) == before);
    CHECK(stage.answer("/v1/status").json["config"]["differs"] == json::array());
}

TEST_CASE("sim admin lrs: one of two concurrent edits of the same rules is refused", "[sim]") {
    AdminStage stage(29, {.nodes = 1}, kTbf);
    stage.wait_ready();
    const std::uint64_t seen = listed_rules(stage).version;
    const std::string version = std::to_string(seen);

    auto first =
        stage.ask("/v1/lrs/rule/add", {{"rule", "b job=b rate=1/s"}, {"if_version", version}});
    auto second = stage.ask("/v1/lrs/rule/load", {{"if_version", version}}, "c job=c rate=1/s\n");

    CHECK(stage.wait_for(std::move(first)).json["version"] == seen + 1);
    CHECK(AdminStage::refusal(stage.wait_for(std::move(second))) ==
          "409 not changed: the rules have version " + std::to_string(seen + 1) +
              " meanwhile, not " + version + "; look at them again");
    for (const char* const wrong : {"", "-1", "1.5", "newest"}) {
        CAPTURE(wrong);
        CHECK(stage.refused("/v1/lrs/rule/del", {{"name", "a"}, {"if_version", wrong}}) ==
              "400 the parameter if_version must be a number");
    }
    CHECK(listed_rules(stage) == ListedRules{.version = seen + 1,
                                             .texts = {"a job=a rate=1/s", "b job=b rate=1/s",
                                                       "default * rate=unlimited"}});
}

TEST_CASE("sim admin lrs: rules change while a locality does not answer, which has the last then",
          "[sim]") {
    AdminStage stage(30, {.nodes = 1, .watchdog = 100s, .clients = 1, .quiet_clients = true},
                     "lrs: { policy: fifo }\n");
    stage.wait_ready();
    stage.stall(1, 5s);
    auto shown = stage.ask("/v1/lrs");
    auto crr = stage.ask("/v1/lrs/set", {{"policy", "crr"}});
    auto tbf = stage.ask("/v1/lrs/set", {{"policy", "tbf"}});
    auto rule = stage.ask("/v1/lrs/rule/add", {{"rule", "b job=b rate=1/s"}});
    stage.run_for(1s);

    CHECK(AdminStage::take(std::move(crr)).json["policy"] == "crr");
    CHECK(AdminStage::take(std::move(tbf)).json["changed"] == json({"lrs.policy"}));
    CHECK(AdminStage::take(std::move(rule)).json["rules"] == 2);
    CHECK(stage.answer("/v1/lrs/rules").json["uses_rules"] == true);
    CHECK_FALSE(AdminStage::answered(shown));
    CHECK(policy_switches(stage, 0) >= 1);
    CHECK(policy_switches(stage, 1) == 0);

    stage.run_for(5s);
    // What was asked first is told as it is at the time of the answer.
    CHECK(AdminStage::take(std::move(shown)).json["policy"] == "tbf");
    // The change that was under way to it, and the newest.
    CHECK(policy_switches(stage, 1) == 2);
}

// -- which --

TEST_CASE("sim admin lrs: a request is told its class, by the policy and by the rules", "[sim]") {
    AdminStage stage(31, {.nodes = 1, .disks = 1}, kTbf);
    stage.wait_ready();
    const AdminStage::Query query{{"request", "op=read job=a"}};

    CHECK(
        stage.answer("/v1/lrs/which", query).json ==
        json({{"policy", "tbf"},
              {"class", "a{job=a}"},
              {"uses_rules", true},
              {"rules_of", "tbf"},
              {"by_rules", {{"rule", "a"}, {"text", "a job=a rate=1/s"}, {"class", "a{job=a}"}}}}));
    REQUIRE(stage.answer("/v1/lrs/set", {{"policy", "crr"}, {"crr.by", "job"}}).status == 200);
    const json by_job = stage.answer("/v1/lrs/which", query).json;
    CHECK(by_job["class"] == "job=a");
    CHECK(by_job["uses_rules"] == false);
    CHECK(by_job["by_rules"]["rule"] == "a");
    CHECK(stage.answer("/v1/lrs/which", {{"request", "job=b"}}).json["by_rules"]["rule"] ==
          "default");

    CHECK(stage.refused("/v1/lrs/which", {{"request", "op=read pool=slow"}}) ==
          "404 no fop can have these properties: there is no pool slow");
    CHECK(stage.refused("/v1/lrs/which", {{"request", "jbo=a"}})
              .starts_with("400 the request: column 1: "));
}

TEST_CASE("sim admin lrs: a node without devices tells the class of a request, too", "[sim]") {
    AdminStage stage(32, {.nodes = 1}, kTbf);
    stage.wait_ready();

    CHECK(stage.answer("/v1/lrs/which", {{"request", "op=echo job=a"}}).json["class"] ==
          "a{job=a}");
    CHECK(stage.refused("/v1/lrs/which", {{"request", "op=read pool=fast"}}) ==
          "404 no fop can have these properties: there is no pool fast");
}

// -- save --

TEST_CASE("sim admin lrs: saved succeeds only if the file has the settings in force", "[sim]") {
    AdminStage stage(33, {.nodes = 1}, "lrs: { policy: fifo }\n");
    stage.wait_ready();
    CHECK(stage.answer("/v1/lrs/saved").json["differs"] == json::array());
    REQUIRE(stage.answer("/v1/lrs/set", {{"policy", "crr"}, {"crr.quantum", "4"}}).status == 200);
    const std::string refused =
        "409 the file does not have the request scheduler's settings that are in force";
    CHECK(stage.refused("/v1/lrs/saved") == refused);
    stage.node().set_configuration(stage.node().good_configuration() + "lrs: { policy: crr }\n");
    CHECK(stage.refused("/v1/lrs/saved") == refused);
    stage.node().set_configuration("lrs: [\n");
    CHECK(stage.refused("/v1/lrs/saved") == refused);
    CHECK(stage.answer("/v1/lrs").json["differs"] == json({"lrs.policy", "lrs.crr.quantum"}));

    stage.node().set_configuration(stage.node().good_configuration() +
                                   "lrs: { policy: crr, crr: { quantum: 4 } }\n");
    CHECK(stage.answer("/v1/lrs/saved").json ==
          json({{"file", "node-0.yaml"}, {"differs", json::array()}}));
    CHECK(stage.answer("/v1/status").json["config"]["differs"] == json::array());
    CHECK(stage.answer("/v1/reload").json["changed"] == json::array());
}

TEST_CASE("sim admin lrs: a draft of a file that is not there is refused", "[sim]") {
    AdminStage stage(34, {.nodes = 1});
    stage.wait_ready();

    CHECK(stage.refused("/v1/lrs/draft").starts_with("409 not saved: node-0.yaml: "));
}
