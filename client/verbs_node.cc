// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/admin_failure.h"
#include "client/colours.h"
#include "client/command_line.h"
#include "client/disk_table.h"
#include "client/exit_code.h"
#include "client/explanation.h"
#include "client/interrupts.h"
#include "client/table.h"
#include "client/top.h"
#include "client/verb.h"
#include "config/problem.h"
#include "core/clock.h"

namespace fopd::client {

namespace {

using nlohmann::json;

// The indentation of the folded lines of `status`.
constexpr std::size_t kStatusIndent = 10;

std::string buffers_shown(const json& locality) {
    const std::string text =
        shown(locality.at("buffers_free")) + "/" + shown(locality.at("buffers_total"));
    return locality.at("buffers_registered").get<bool>() ? text : text + " unregistered";
}

std::string locality_table(const json& localities) {
    return table(localities,
                 {{"LOCALITY", "index"},
                  {"CORE", "", [](const json& at) { return shown(at.value("core", json())); }},
                  {"STATE", "state", state_shown, Column::Kind::kWhole},
                  {"BACKEND", "backend"},
                  {"LAST TURN", "since_turn_s", span_shown},
                  {"BUSY", "busy_s", span_shown},
                  {"I/O", "io_completed"},
                  {"BUFFERS FREE", "", buffers_shown}});
}

std::string missing_shown(const json& missing) {
    std::string text =
        "slot " + shown(missing.at("slot")) + " of pool " + shown(missing.at("pool"));
    if (!missing.at("device").get<std::string>().empty())
        text += ", device " + shown(missing.at("device"));
    text += ", disk " + shown(missing.at("disk"));
    if (!missing.at("objects").is_null())
        text += ": " + shown(missing.at("objects")) +
                " objects with a name cannot be read; fopctl ls --missing lists them";
    return text;
}

std::string in_capitals(std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

std::string config_lines(const json& config) {
    std::string page =
        folded("config    " + shown(config.at("file")) + "  hash " + shown(config.at("hash")),
               kStatusIndent);
    const auto add = [&page, &config](const std::string& label, const char* key) {
        if (config.at(key).empty()) return;
        page += folded(std::string(kStatusIndent, ' ') + label + " " + shown(config.at(key)),
                       kStatusIndent);
    };
    add("differs:", "differs");
    add("needs restart:", "needs_restart");
    return page;
}

// The warnings but those that repeat the reason of a disk, which is below the table of the disks.
// An older daemon does not say which those are.
std::string warning_lines(const json& status) {
    const json& warnings = status.at("warnings");
    const json devices = status.value("warning_devices", json::array());
    std::string lines;
    for (std::size_t i = 0; i < warnings.size(); ++i) {
        if (i < devices.size() && devices[i] != "") continue;
        lines +=
            folded(tinted("warning:", Tint::kWarning) + " " + shown(warnings[i]), kStatusIndent);
    }
    return lines;
}

std::string status_page(const json& status) {
    std::string page =
        folded(shown(status.at("name")) + "  " + state_shown(status.at("state")) + "  up " +
                   span_of(status.at("uptime_s").get<double>()) + "  fopd " +
                   shown(status.at("version")) + "  pid " + shown(status.at("pid")),
               kStatusIndent);
    page += config_lines(status.at("config"));
    page += "log       " + shown(status.at("log_level")) + "\n";
    page += std::string("watchdog  ") + (status.at("watchdog").get<bool>() ? "on" : "off") + "\n";
    if (const json epochs = status.value("epochs", json::object());
        epochs.value("expected", 0) > 0) {
        page += "epochs    " + shown(epochs.at("members")) + " of " + shown(epochs.at("expected")) +
                " daemons\n";
    }
    page += "\n" + locality_table(status.at("localities"));
    const json devices = status.value("devices", json::array());
    if (!devices.empty()) page += "\n" + disk_table(devices);
    for (const json& each : status.value("problems", json::array())) {
        const std::string state = shown(each.at("state"));
        page += folded(
            tinted(in_capitals(state) + ":", tint_of_state(state)) + " " + shown(each.at("text")),
            kStatusIndent);
    }
    for (const json& at : status.value("missing_slots", json::array())) {
        page += folded(tinted("missing:", Tint::kBad) + " " + missing_shown(at), kStatusIndent);
    }
    return page + warning_lines(status);
}

void declare_status(CLI::App& app, VerbArguments& arguments) {
    app.add_option("--wait", arguments.state, "Wait until the node is ready, at most for --timeout")
        ->check(one_of({"ready"}));
}

// The answer when the node has the state, or the last one before the time is over. A daemon that
// starts has no socket at first.
std::expected<HttpAnswer, AdminProblem> wait_for_state(const Call& call, Interrupts& interrupts) {
    constexpr Duration kBetween = 50ms;
    const core::PosixClock clock;
    const bool is_limited = call.timeout != Duration{};
    const Instant end = after(clock.now(), call.timeout);
    std::expected<HttpAnswer, AdminProblem> last;
    for (;;) {
        const Duration left = is_limited ? std::max(end - clock.now(), Duration{1ms}) : Duration{};
        auto answer = call.client.with_timeout(left).get("/v1/status", interrupts.fd());
        const bool is_known = answer && answer->status == 200;
        if (is_known && json::parse(answer->body).at("state") == call.arguments.state)
            return answer;
        const bool may_come = answer || row_of(answer.error().kind).may_come;
        const bool has_time = !is_limited || clock.now() < end;
        // The last question may have had too little time for an answer.
        const bool has_last = last && last->status == 200;
        if (!answer && answer.error().kind == AdminFailure::kTimedOut && has_last) return last;
        last = answer;
        if (!may_come || !has_time || !interrupts.wait(-1, kBetween)) return answer;
    }
}

int run_status(const Call& call) {
    const std::string& wanted = call.arguments.state;
    if (wanted.empty()) return show_answer(call, call.client.get("/v1/status"), &status_page);
    Interrupts interrupts(Interrupts::Usual::kNothing);
    const auto answer = wait_for_state(call, interrupts);
    const auto status = checked(call, answer);
    if (!status) return status.error();
    const int shown_code = show(call, answer->body, [&] { return status_page(*status); });
    if (status->at("state") == wanted) return shown_code;
    return complain_about(call, "the node is " + shown(status->at("state")) + ", not " + wanted,
                          kExitTryLater);
}

std::string device_line(const json& outcome) {
    const std::string device = "device " + shown(outcome.at("device"));
    const json& result = outcome.at("result");
    if (result == "added") return device + ": added\n";
    if (result == "removed") return device + ": removed\n";
    if (result == "not-added") return device + ": not added: " + shown(outcome.at("reason")) + "\n";
    return device + ": not removed, and goes on to serve: " + shown(outcome.at("reason")) + "\n";
}

std::string reload_page(const json& done) {
    const json& changed = done.at("changed");
    const json& restart = done.at("needs_restart");
    std::string page = changed.empty() ? "nothing changed" : "changed: " + shown(changed);
    page += "\n";
    if (!restart.empty()) page += "needs a restart: " + shown(restart) + "\n";
    for (const json& at : done.at("devices")) page += device_line(at);
    return page;
}

int run_reload(const Call& call) {
    const auto answer = call.client.post("/v1/reload");
    const auto done = checked(call, answer);
    if (!done) return done.error();
    const int code = show(call, answer->body, [&done] { return reload_page(*done); });
    bool is_refused = false;
    for (const json& each : done->at("devices")) {
        if (each.at("result") != "not-added" && each.at("result") != "not-removed") continue;
        is_refused = true;
        std::string line = device_line(each);
        line.pop_back();
        complain("reload: the new settings are in force, but " + line);
    }
    return is_refused ? kExitRefused : code;
}

void declare_drain(CLI::App& app, VerbArguments& arguments) {
    app.add_flag("--unload", arguments.unload,
                 "Then take the cartridges of the tape drives back to their storage elements");
}

int run_drain(const Call& call) {
    const char* const path = call.arguments.unload ? "/v1/drain?unload=yes" : "/v1/drain";
    return show_answer(call, call.client.post(path), [](const json& done) {
        const bool is_drained = done.at("state") == "drained";
        return shown(done.at("state")) + " after " + span_shown(done.at("seconds")) +
               (is_drained ? "; fopd serves again after a restart\n" : "\n");
    });
}

void declare_log_level(CLI::App& app, VerbArguments& arguments) {
    app.add_option("level", arguments.level, "Log events of this level and above")
        ->required()
        ->check(one_of({"trace", "debug", "info", "warn", "error"}));
}

int run_log_level(const Call& call) {
    const std::string path = "/v1/log-level?level=" + call.arguments.level;
    return show_answer(call, call.client.post(path), [](const json& done) {
        return "log level " + shown(done.at("level")) + ", was " + shown(done.at("was")) + "\n";
    });
}

std::string session_table(const json& answer) {
    return table(answer.at("sessions"),
                 {{"SESSION", "id", shown, Column::Kind::kWhole},
                  {"LOCALITY", "locality", shown, Column::Kind::kWide},
                  {"PEER", "peer"},
                  {"CLIENT", "client", shown, Column::Kind::kWide},
                  {"PRINCIPAL", "principal"},
                  {"USER", "user", shown, Column::Kind::kWide},
                  {"AGE", "age_s", span_shown, Column::Kind::kWide},
                  {"IDLE", "idle_s", span_shown},
                  {"FOPS", "fops"},
                  {"HELD", "fops_held", shown, Column::Kind::kWide},
                  {"WAITING", "fops_waiting"},
                  {"CREDITS", "fop_credits", shown, Column::Kind::kWide},
                  {"BYTES IN", "bytes_in", shown, Column::Kind::kWide},
                  {"BYTES OUT", "bytes_out", shown, Column::Kind::kWide},
                  {"TRANSFERRED", "bytes_transferred", shown, Column::Kind::kWide}});
}

int run_sessions(const Call& call) {
    return show_answer(call, call.client.get("/v1/sessions"), &session_table);
}

void declare_trace(CLI::App& app, VerbArguments& arguments) {
    auto* const fop = app.add_option(
        "fop", arguments.id, "The fop, as the log names it; by default all that wait or run");
    app.add_flag("--slow", arguments.slow,
                 "Show the last fops that took longer than log.slow_fop, and what their time was "
                 "spent on")
        ->excludes(fop);
}

// `fop` keeps the order in which the fop went through its phases.
std::string trace_page(const nlohmann::ordered_json& fop) {
    std::string page =
        "fop " + shown(fop.at("id")) + "  " + shown(fop.at("op")) + "  " + shown(fop.at("state"));
    if (fop.contains("status")) page += "  " + shown(fop["status"]);
    page += "\npeer " + shown(fop.at("peer")) + "  principal " + shown(fop.at("principal")) +
            "  arrived " + span_of(fop.at("age_s").get<double>()) + " ago\n";
    const std::string of_class = fop.value("class", "");
    const std::string rule = fop.value("rule", "");
    if (!of_class.empty()) page += "class " + shown(json(of_class));
    if (!rule.empty()) page += "  rule " + shown(json(rule));
    if (!of_class.empty()) page += "\n";
    if (fop.contains("waits_for")) page += "waits for " + shown(fop["waits_for"]) + "\n";
    if (fop.contains("waited_for")) {
        page += "waited longest for " + shown(fop["waited_for"]) + ": " +
                span_of(fop.at("waited_s").get<double>()) + "\n";
    }
    page += "\n";
    std::vector<std::vector<std::string>> rows{{"PHASE", "MICROSECONDS"}};
    for (const auto& [phase, seconds] : fop.at("phases").items()) {
        rows.push_back({shown(json(phase)), fixed(seconds.get<double>() * 1e6, 1)});
    }
    page += table(rows);
    if (fop.contains("spent")) page += "\nwhere the time went:\n" + parts_page(fop["spent"]);
    return page;
}

// "policy 97 % (rule bob), disk 3 %": the parts that are at least a hundredth of the time, the
// longest first.
std::string where_shown(const json& fop) {
    const json& spent = fop.at("spent");
    const double total = spent.at("total").get<double>();
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [name, seconds] : spent.items()) {
        const double share = total > 0 ? seconds.get<double>() / total : 0;
        if (name != "total" && share >= 0.01) parts.emplace_back(share, name);
    }
    std::ranges::sort(parts, std::ranges::greater());
    std::string text;
    for (const auto& [share, name] : parts) {
        text += (text.empty() ? "" : ", ") + shown(json(name)) + " " + fixed(share * 100, 0) + " %";
        const std::string rule = name == "policy" ? fop.value("rule", "") : "";
        if (!rule.empty()) text += " (rule " + shown(json(rule)) + ")";
    }
    return text;
}

std::string slow_table(const json& answer) {
    return table(answer.at("fops"), {{"FOP", "id", shown, Column::Kind::kWhole},
                                     {"OP", "op"},
                                     {"PEER", "peer", shown, Column::Kind::kWide},
                                     {"PRINCIPAL", "principal"},
                                     {"CLASS", "class", shown, Column::Kind::kWide},
                                     {"STATUS", "status", shown, Column::Kind::kWide},
                                     {"ARRIVED", "age_s", span_shown, Column::Kind::kWide},
                                     {"TOOK", "spent/total", latency_shown},
                                     {"WHERE THE TIME WENT", "", where_shown}});
}

// The daemon gives the oldest fop first, which may hang.
std::string fop_table(const json& answer) {
    const json& fops = answer.at("fops");
    const bool has_phases =
        std::ranges::any_of(fops, [](const json& at) { return at.at("phase") != at.at("state"); });
    std::string page = table(
        fops,
        {{"FOP", "id", shown, Column::Kind::kLate},
         {"OP", "op"},
         {"STATE", "state"},
         {"PHASE", "phase", shown, has_phases ? Column::Kind::kUsual : Column::Kind::kWide},
         {"AGE", "age_s", span_shown},
         {"PEER", "peer", shown, Column::Kind::kWide},
         {"PRINCIPAL", "principal"},
         {"WAITS FOR", "", [](const json& at) { return shown(at.value("waits_for", json())); },
          Column::Kind::kText}});
    const auto left_out = answer.value("left_out", std::uint64_t{0});
    if (left_out > 0) page += "and " + std::to_string(left_out) + " more that are queued\n";
    return page;
}

int run_trace(const Call& call) {
    const std::string& id = call.arguments.id;
    if (call.arguments.slow) {
        return show_answer(call, call.client.get("/v1/trace?slow=yes"), &slow_table);
    }
    if (id.empty()) return show_answer(call, call.client.get("/v1/trace"), &fop_table);
    // Other text is not sent: it could change the meaning of the URL.
    if (id.find_first_not_of("0123456789abcdefABCDEF-") != std::string::npos) {
        complain("trace: " + config::in_quotes(id) + " is not the name of a fop, such as 5f3a-17");
        return kExitUsage;
    }
    const auto answer = call.client.get("/v1/trace?id=" + id);
    const auto done = checked(call, answer);
    if (!done) return done.error();
    return show(call, answer->body,
                [&] { return trace_page(nlohmann::ordered_json::parse(answer->body)); });
}

// -- health --

// The index is the exit code, as monitoring systems expect it.
constexpr std::array<std::string_view, 4> kHealthStates{"ok", "warning", "critical", "unknown"};

int show_health(const Call& call, const std::string& json_text, const std::string& state,
                const std::string& text) {
    const auto* const found = std::ranges::find(kHealthStates, state);
    const int done = show(call, json_text, [&] {
        return tinted(in_capitals(state) + ":", tint_of_state(state)) + " " + text + "\n";
    });
    return done == kExitDone && found != kHealthStates.end()
               ? static_cast<int>(found - kHealthStates.begin())
               : kExitHealthUnknown;
}

nlohmann::ordered_json health_without_daemon(const std::string& state, const std::string& why) {
    return {{"state", state}, {"text", why}, {"problems", json::array()}};
}

// Prints the health that follows from having no answer: the daemon does not run, or hangs.
int show_health_without_daemon(const Call& call, const std::string& state, const std::string& why) {
    return show_health(call, dumped(health_without_daemon(state, why)), state, why);
}
int show_unknown_health(const Call& call, const std::string& why) {
    return show_health_without_daemon(call, "unknown", why);
}

int show_health(const Call& call, const HttpAnswer& answer) {
    const json health = json::parse(answer.body);
    const auto state = health.at("state").get<std::string>();
    if (std::ranges::find(kHealthStates, state) == kHealthStates.end()) {
        return show_unknown_health(call, "state " + shown(health.at("state")));
    }
    return show_health(call, answer.body, state, shown(health.at("text")));
}

int run_health(const Call& call) {
    const auto answer = call.client.get("/v1/health");
    if (!answer) {
        const bool is_down = row_of(answer.error().kind).is_down;
        return show_health_without_daemon(call, is_down ? "critical" : "unknown",
                                          answer.error().message);
    }
    try {
        if (answer->status == 200) return show_health(call, *answer);
        return show_unknown_health(call, shown(json::parse(answer->body).at("error")));
    } catch (const json::exception&) {
        return show_unknown_health(
            call, "the program at " + call.client.name() +
                      " is not fopd, or is an older version, which does not report its health");
    }
}

constexpr std::array kNodeVerbs{
    Verb{"status", "Show the state of the daemon and of its localities", "status --wait ready",
         kTimeoutDefault, declare_status, run_status},
    Verb{"health", "Check the node: one line, and an exit code for monitoring", "health",
         Duration{10s}, nullptr, run_health},
    Verb{"top", "Show the load of the node by operation, class, principal and device",
         "top --interval 5", kTimeoutDefault, declare_top, run_top},
    Verb{"sessions", "List the connected clients", "sessions", kTimeoutDefault, nullptr,
         run_sessions},
    Verb{"trace", "List the fops that wait or run, or show what the time of one was spent on",
         "trace 5f3a-17", kTimeoutDefault, declare_trace, run_trace},
    // No limit: disks may be added or removed.
    Verb{"reload", "Read the configuration file again", "reload", Duration{0}, nullptr, run_reload},
    // No limit here: the daemon has its own drain_timeout.
    Verb{"drain", "Refuse new fops, and wait until the running ones have ended",
         "drain\ndrain --unload", Duration{0}, declare_drain, run_drain},
    Verb{"log-level", "Change the log level until the next reload or restart", "log-level debug",
         kTimeoutDefault, declare_log_level, run_log_level},
};

}  // namespace

int print_unknown_health(Output output, const std::string& why) {
    const std::string state(kHealthStates[kExitHealthUnknown]);
    if (output == Output::kJson) {
        print(dumped(health_without_daemon(state, why)) + "\n");
    } else if (output == Output::kPage) {
        print(in_capitals(state) + ": " + why + "\n");
    }
    return kExitHealthUnknown;
}

std::span<const Verb> node_verbs() {
    return kNodeVerbs;
}

}  // namespace fopd::client
