// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <span>
#include <string>
#include <vector>

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
        page += "view: " + shown(answer.at("view")) + "\n" + "root: " +
                (answer.at("root").get<std::string>().empty() ? "not known"
                                                              : shown(answer.at("root"))) +
                "\n" + "wait for an epoch: median " +
                latency_of(answer.at("median_s").get<double>()) + ", 99 % within " +
                latency_of(answer.at("p99_s").get<double>()) + "\n";
    }
    if (!answer.at("last_error").get<std::string>().empty())
        page += "last error: " + shown(answer.at("last_error")) + "\n";
    std::vector<std::vector<std::string>> rows{{"MEMBER", "STATE"}};
    for (const json& each : answer.at("members")) {
        rows.push_back({shown(each.at("name")), shown(each.at("state"))});
    }
    return page + table(rows);
}

int run_epoch_show(const Call& call) {
    return show_answer(call, call.client.get("/v1/epoch"), &epoch_page);
}

constexpr std::array kEpochVerbs{
    Verb{"epoch show", "Show the epoch, and the daemons that move from epoch to epoch together",
         "epoch show", kTimeoutDefault, nullptr, run_epoch_show},
};

}  // namespace

std::span<const Verb> epoch_verbs() {
    return kEpochVerbs;
}

}  // namespace fopd::client
