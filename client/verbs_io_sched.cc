// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <set>
#include <span>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/command_line.h"
#include "client/exit_code.h"
#include "client/table.h"
#include "client/verb.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

using nlohmann::json;

std::string by_hand_line(const json& differs) {
    if (differs.empty()) return {};
    return "differs from the file, until the next reload or restart: " + shown(differs) + "\n";
}

// In the form that `io-sched set` takes.
std::string settings_page(const json& answer) {
    std::string page;
    for (const json& each : answer.at("settings")) {
        page += shown(each.at("name")) + "=" + setting_text(each) + "\n";
    }
    return page + by_hand_line(answer.at("differs"));
}

int run_io_sched_show(const Call& call) {
    return show_answer(call, call.client.get("/v1/io_sched"), &settings_page);
}

void declare_io_sched_set(CLI::App& app, VerbArguments& arguments) {
    app.add_option("setting", arguments.words,
                   "KEY=VALUE for settings of the section io_sched, such as "
                   "tape.read_algo=grouped_read; other settings stay as they are")
        ->required();
}

std::string changed_page(const json& done) {
    std::string page = done.at("changed").empty() ? std::string("nothing changed\n")
                                                  : "changed: " + shown(done.at("changed")) + "\n";
    return page + by_hand_line(done.at("differs"));
}

int run_io_sched_set(const Call& call) {
    std::string target = "/v1/io_sched/set";
    std::set<std::string> seen;
    for (const std::string& word : call.arguments.words) {
        const std::size_t end = word.find('=');
        if (end == 0 || end == std::string::npos) {
            return complain_about(call, core::printable(word) + " is not KEY=VALUE", kExitUsage);
        }
        const std::string key = word.substr(0, end);
        if (!seen.insert(key).second) {
            return complain_about(call, core::printable(key) + " is given twice; write it once",
                                  kExitUsage);
        }
        target += seen.size() == 1 ? '?' : '&';
        target += in_url(key) + "=" + in_url(word.substr(end + 1));
    }
    return show_answer(call, call.client.post(target), &changed_page);
}

constexpr std::array kIoSchedVerbs{
    Verb{"io-sched show", "Show the algorithms of disks and of tape drives, and their settings",
         "io-sched show", kTimeoutDefault, nullptr, run_io_sched_show},
    Verb{"io-sched set", "Choose algorithms and settings, until the next reload or restart",
         "io-sched set tape.read_algo=grouped_read", kTimeoutDefault, declare_io_sched_set,
         run_io_sched_set},
};

}  // namespace

std::span<const Verb> io_sched_verbs() {
    return kIoSchedVerbs;
}

}  // namespace fopd::client
