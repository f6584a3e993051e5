// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/table.h"
#include "client/verb.h"

namespace fopd::client {

namespace {

using nlohmann::json;

std::string epoch_page(const json& answer) {
    std::string page = "kind: " + shown(answer.at("kind")) + "\n" +
                       "state: " + shown(answer.at("state")) + "\n" +
                       "epoch: " + shown(answer.at("epoch")) + "\n";
    if (answer.at("kind") == "peers") {
        page += "view: " + shown(answer.at("view")) + ", kept by " +
                (answer.at("store") == "etcd" ? "etcd" : "the root") + "\n" + "root: " +
                (answer.at("root").get<std::string>().empty() ? "not known"
                                                              : shown(answer.at("root"))) +
                "\n" + "wait for an epoch: median " +
                latency_of(answer.at("median_s").get<double>()) + ", 99 % within " +
                latency_of(answer.at("p99_s").get<double>()) + "\n";
    }
    if (!answer.at("last_error").get<std::string>().empty())
        page += "last error: " + shown(answer.at("last_error")) + ", " +
                span_of(answer.at("last_error_age_s").get<double>()) + " ago\n";
    std::vector<std::vector<std::string>> rows{{"MEMBER", "STATE"}};
    for (const json& each : answer.at("members")) {
        rows.push_back({shown(each.at("name")), shown(each.at("state"))});
    }
    return page + table(rows);
}

int run_epoch_show(const Call& call) {
    return show_answer(call, call.client.get("/v1/epoch"), &epoch_page);
}

void declare_epoch_force(CLI::App& app, VerbArguments& arguments) {
    app.add_flag("--yes", arguments.is_sure,
                 "Confirm that the members that do not answer are stopped");
}

std::string forced_page(const json& done) {
    return "within " + latency_of(done.at("for_s").get<double>()) +
           ", this daemon leaves out the members that do not answer, once, however many they are; "
           "see fopctl epoch show\n";
}

int run_epoch_force(const Call& call) {
    const std::string sure = call.arguments.is_sure ? "?sure=yes" : "";
    return show_answer(call, call.client.post("/v1/epoch/force" + sure), &forced_page);
}

constexpr std::array kEpochVerbs{
    Verb{"epoch show", "Show the epoch, the root and the members", "epoch show", kTimeoutDefault,
         nullptr, run_epoch_show},
    Verb{"epoch force", "Continue the epochs once without a majority of the members",
         "epoch force --yes", kTimeoutDefault, declare_epoch_force, run_epoch_force},
};

}  // namespace

std::span<const Verb> epoch_verbs() {
    return kEpochVerbs;
}

}  // namespace fopd::client
