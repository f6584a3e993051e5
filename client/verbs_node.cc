// SPDX-License-Identifier: BSD-2-Clause
#include "client/verbs_node.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/exit_code.h"
#include "client/table.h"
#include "client/top.h"

namespace fopd::client {

namespace {

using nlohmann::json;

constexpr Duration kTimeout = 30s;

int printed(bool is_done) {
    return is_done ? kExitDone : kExitRefused;
}

// The server's JSON as it came, or what `page` makes of it, or nothing.
template <typename Page>
int show(const Call& call, const std::string& raw, Page&& page) {
    if (call.output == Output::kQuiet) return kExitDone;
    if (call.output == Output::kPage) return printed(print(page()));
    return printed(print(raw.substr(0, raw.find_last_not_of("\r\n") + 1) + "\n"));
}

void append_list(std::string& line, const char* label, const json& list) {
    if (!list.empty()) line += std::string("  ") + label + " " + shown(list);
}

std::string locality_table(const json& localities) {
    std::vector<std::vector<std::string>> rows{{"LOCALITY", "CORE", "STATE", "BACKEND", "LAST TURN",
                                                "TURNS", "BUSY", "TIMERS", "I/O", "MESSAGES",
                                                "BUFFERS FREE"}};
    for (const json& at : localities) {
        std::string buffers = shown(at.at("buffers_free")) + "/" + shown(at.at("buffers_total"));
        if (!at.at("buffers_registered").get<bool>()) buffers += " unregistered";
        rows.push_back({shown(at.at("index")), shown(at.value("core", json())),
                        shown(at.at("state")), shown(at.at("backend")),
                        span_of(at.at("since_turn_s").get<double>()), shown(at.at("turns")),
                        span_of(at.at("busy_s").get<double>()), shown(at.at("timers")),
                        shown(at.at("io_completed")), shown(at.at("messages")), buffers});
    }
    return table(rows);
}

std::string status_page(const json& status) {
    const json& config = status.at("config");
    std::string page = shown(status.at("name")) + "  " + shown(status.at("state")) + "  up " +
                       span_of(status.at("uptime_s").get<double>()) + "  fopd " +
                       shown(status.at("version")) + "  pid " + shown(status.at("pid")) + "\n";
    std::string line =
        "config    " + shown(config.at("file")) + "  hash " + shown(config.at("hash"));
    append_list(line, "differs:", config.at("differs"));
    append_list(line, "needs restart:", config.at("needs_restart"));
    page += line + "\n";
    page += "log       " + shown(status.at("log_level")) + "\n";
    page += std::string("watchdog  ") + (status.at("watchdog").get<bool>() ? "on" : "off") + "\n";
    page += "\n" + locality_table(status.at("localities"));
    for (const json& warning : status.at("warnings")) page += "warning: " + shown(warning) + "\n";
    return page;
}

int run_status(const Call& call) {
    const auto answer = call.client.get("/v1/status");
    const auto status = checked(call, answer);
    if (!status) return status.error();
    return show(call, answer->body, [&] { return status_page(*status); });
}

int run_reload(const Call& call) {
    const auto answer = call.client.post("/v1/reload");
    const auto done = checked(call, answer);
    if (!done) return done.error();
    return show(call, answer->body, [&] {
        const json& changed = done->at("changed");
        const json& restart = done->at("needs_restart");
        std::string page = changed.empty() ? "nothing changed" : "changed: " + shown(changed);
        page += "\n";
        if (!restart.empty()) page += "needs a restart: " + shown(restart) + "\n";
        return page;
    });
}

int run_drain(const Call& call) {
    const auto answer = call.client.post("/v1/drain");
    const auto done = checked(call, answer);
    if (!done) return done.error();
    return show(call, answer->body, [&] {
        return shown(done->at("state")) + " after " + span_of(done->at("seconds").get<double>()) +
               "\n";
    });
}

void declare_log_level(CLI::App& app, VerbArguments& arguments) {
    app.add_option("level", arguments.level, "Log events of this level and above")
        ->required()
        ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}));
}

int run_log_level(const Call& call) {
    const auto answer = call.client.post("/v1/log-level?level=" + call.arguments.level);
    const auto done = checked(call, answer);
    if (!done) return done.error();
    return show(call, answer->body, [&] {
        return "log level " + shown(done->at("level")) + ", was " + shown(done->at("was")) + "\n";
    });
}

constexpr std::array kVerbs{
    Verb{"status", "Show the daemon's state and its localities", kTimeout, nullptr, run_status},
    Verb{"top", "Show the localities' rates again and again", kTimeout, declare_top, run_top},
    Verb{"reload", "Read the configuration again", kTimeout, nullptr, run_reload},
    // As long as the daemon's own drain_timeout says.
    Verb{"drain", "Take nothing new and wait until the daemon is idle", Duration{0}, nullptr,
         run_drain},
    Verb{"log-level", "Change what is logged, until the next reload", kTimeout, declare_log_level,
         run_log_level},
};

}  // namespace

std::span<const Verb> node_verbs() {
    return kVerbs;
}

}  // namespace fopd::client
