// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/command_line.h"
#include "client/exit_code.h"
#include "client/interrupts.h"
#include "client/store_backup.h"
#include "client/table.h"
#include "client/top.h"
#include "client/verb.h"
#include "core/clock.h"

namespace fopd::client {

namespace {

using nlohmann::json;

void append_list(std::string& line, const char* label, const json& list) {
    if (!list.empty()) line += std::string("  ") + label + " " + shown(list);
}

std::string buffers_shown(const json& locality) {
    const std::string text =
        shown(locality.at("buffers_free")) + "/" + shown(locality.at("buffers_total"));
    return locality.at("buffers_registered").get<bool>() ? text : text + " unregistered";
}

std::string locality_table(const json& localities) {
    return table(localities,
                 {{"LOCALITY", "index"},
                  {"CORE", "", [](const json& at) { return shown(at.value("core", json())); }},
                  {"STATE", "state"},
                  {"BACKEND", "backend"},
                  {"LAST TURN", "since_turn_s", span_shown},
                  {"TURNS", "turns"},
                  {"BUSY", "busy_s", span_shown},
                  {"TIMERS", "timers"},
                  {"I/O", "io_completed"},
                  {"MESSAGES", "messages"},
                  {"BUFFERS FREE", "", buffers_shown}});
}

std::string device_table(const json& devices) {
    std::string page = table(devices, {{"DEVICE", "name"},
                                       {"POOL", "pool"},
                                       {"STATE", "state"},
                                       {"CAPACITY", "capacity", size_shown},
                                       {"USED", "used", size_shown},
                                       {"FREE", "free", size_shown},
                                       {"SLOT", "slot"},
                                       {"LOCALITY", "locality"},
                                       {"ERRORS", "errors"},
                                       {"PATH", "path"}});
    for (const json& at : devices) {
        if (at.at("reason").get<std::string>().empty()) continue;
        page += shown(at.at("name")) + ": " + shown(at.at("reason")) + "\n";
    }
    return page;
}

int run_devices(const Call& call) {
    return show_answer(call, call.client.get("/v1/devices"), &device_table);
}

// Other text is not sent: it could change the meaning of the URL.
bool is_device_name(const std::string& device) {
    return std::ranges::all_of(
        device, [](char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

int complain_about_device(const Call& call) {
    return complain_about(call, "a device is named as in the configuration", kExitUsage);
}

// Begins or ends the work on the devices that the arguments name. Returns the daemon's answer, or
// the exit code after a complaint.
std::expected<json, int> order(const Call& call, std::string path) {
    path += call.arguments.end ? "?do=end" : "?do=begin";
    if (!call.arguments.device.empty()) path += "&device=" + call.arguments.device;
    return checked(call, call.client.post(path));
}

void declare_devices(CLI::App& app, VerbArguments& arguments, const char* show_summary) {
    app.add_option("device", arguments.device, "One of the devices; none: all of them");
    app.add_flag("--end", arguments.end, "End what is under way");
    app.add_flag("--show", arguments.show, show_summary);
}

void declare_scrub(CLI::App& app, VerbArguments& arguments) {
    declare_devices(app, arguments, "Only show how far they are");
}

std::string scrub_table(json devices, const std::string& wanted) {
    const auto is_other = [&](const json& at) { return at.at("name") != wanted; };
    if (!wanted.empty()) std::erase_if(devices.get_ref<json::array_t&>(), is_other);
    return table(devices, {{"DEVICE", "name"},
                           {"SCRUB", "scrub/state"},
                           {"READ", "scrub/read", size_shown},
                           {"OF", "scrub/total", size_shown},
                           {"DAMAGED", "scrub/damaged_blocks"}});
}

int run_scrub(const Call& call) {
    const std::string& device = call.arguments.device;
    if (!is_device_name(device)) return complain_about_device(call);
    json problems = json::array();
    if (!call.arguments.show) {
        const auto done = order(call, "/v1/scrub");
        if (!done) return done.error();
        // A disk that is not open has no scrub to end: that is no problem.
        if (!call.arguments.end) problems = done->value("problems", problems);
    }
    const auto answer = call.client.get("/v1/devices");
    const auto devices = checked(call, answer);
    if (!devices) return devices.error();
    const auto is_wanted = [&device](const json& at) { return at.at("name") == device; };
    if (!device.empty() && std::ranges::none_of(*devices, is_wanted)) {
        complain("scrub: there is no device " + device);
        return kExitNotFound;
    }
    const int code = show(call, answer->body, [&] { return scrub_table(*devices, device); });
    for (const json& problem : problems) complain("scrub: " + shown(problem));
    return code == kExitDone && !problems.empty() ? kExitRefused : code;
}

// -- disks that come and go --

void declare_device(CLI::App& app, VerbArguments& arguments) {
    app.add_option("device", arguments.device, "The device, as the configuration names it")
        ->required();
}

std::string device_page(const json& done) {
    const std::string device = shown(done.at("device"));
    if (done.at("result") == "added") {
        const json& now = done.at("now");
        return device + " is open: slot " + shown(now.at("slot")) + ", pool " +
               shown(now.at("pool")) + ", " + size_shown(now.at("free")) + " of " +
               size_shown(now.at("capacity")) + " free\n";
    }
    std::string page = device + " is out, and may be used elsewhere\n";
    if (done.at("in_file").get<bool>()) {
        page += "it still stands in " + shown(done.at("file")) +
                ": the next start opens it again, and so does `fopctl device add " + device + "`\n";
    }
    return page;
}

int change_device(const Call& call, const std::string& path) {
    const std::string& device = call.arguments.device;
    if (device.empty() || !is_device_name(device)) return complain_about_device(call);
    return show_answer(call, call.client.post(path + "?device=" + device), &device_page);
}

int run_device_add(const Call& call) {
    return change_device(call, "/v1/device/add");
}

int run_device_remove(const Call& call) {
    return change_device(call, "/v1/device/remove");
}

void declare_device_forget(CLI::App& app, VerbArguments& arguments) {
    auto* const device =
        app.add_option("device", arguments.device, "The device that is lost, as the node calls it");
    app.add_option("--slot", arguments.slot, "Or the slot it had")
        ->excludes(device)
        ->check(whole_between(1, 65535));
    app.add_flag("--yes", arguments.is_sure, "What was on it is lost for good, and that is known");
}

std::string forgotten_page(const json& done) {
    const json& lost = done.at("lost");
    std::string page = "slot " + shown(lost.at("slot")) + " of pool " + shown(lost.at("pool")) +
                       " is written off: disk " + shown(lost.at("disk")) + " with " +
                       shown(lost.at("objects")) + " known objects is forgotten\n";
    if (done.at("in_file").get<bool>()) {
        page += shown(done.at("device")) + " still stands in " + shown(done.at("file")) + "\n";
    }
    return page;
}

int run_device_forget(const Call& call) {
    const std::string& device = call.arguments.device;
    if (device.empty() != call.arguments.slot.has_value() || !is_device_name(device)) {
        complain("device forget: either a device, named as in the configuration, or --slot");
        return kExitUsage;
    }
    std::string path = "/v1/device/forget?";
    path += device.empty() ? "slot=" + std::to_string(*call.arguments.slot) : "device=" + device;
    if (call.arguments.is_sure) path += "&sure=yes";
    return show_answer(call, call.client.post(path), &forgotten_page);
}

// -- check --

void declare_store_check(CLI::App& app, VerbArguments& arguments) {
    declare_devices(app, arguments, "Only show how far they are, or what came of it");
}

std::string finding_line(const json& finding) {
    std::string line = "  " + shown(finding.at("reason"));
    const auto add = [&line, &finding](const char* label, const char* key) {
        const json& value = finding.at(key);
        if (!value.is_null() && !shown(value).empty())
            line += std::string("  ") + label + shown(value);
    };
    add("object ", "object");
    add("name ", "name");
    add("at its block ", "object_block");
    add("disk block ", "block");
    if (finding.at("blocks").get<std::uint64_t>() > 1) add("blocks ", "blocks");
    add("log entry ", "log_entry");
    return line + "\n";
}

std::string check_state(const json& check) {
    const std::string state = shown(check.at("state"));
    return state == "running" ? state + " (" + shown(check.at("stage")) + ")" : state;
}

std::string check_page(const json& checks) {
    std::string page = table(checks, {{"DEVICE", "device"},
                                      {"CHECK", "", check_state},
                                      {"OBJECTS", "objects"},
                                      {"UPLOADS", "uploads"},
                                      {"EXTENTS", "extents"},
                                      {"BLOCKS", "blocks"},
                                      {"NAMES", "names"},
                                      {"LOG ENTRIES", "log_entries"},
                                      {"FINDINGS", "findings"}});
    for (const json& at : checks) {
        const std::string device = shown(at.at("device"));
        if (!shown(at.at("problem")).empty())
            page += device + ": " + shown(at.at("problem")) + "\n";
        if (at.at("findings") == 0) continue;
        page += device + ":\n";
        for (const json& finding : at.at("found")) page += finding_line(finding);
        const std::uint64_t left = at.at("findings").get<std::uint64_t>() - at.at("found").size();
        if (left > 0) page += "  and " + std::to_string(left) + " more\n";
    }
    return page;
}

// Gets the report of the checks; without --show, waits until none is running.
std::expected<HttpAnswer, AdminProblem> wait_for_checks(const Call& call,
                                                        const std::string& query) {
    for (;;) {
        // The daemon answers when no check is running, or after a moment.
        auto answer = call.client.get("/v1/store/check-report?wait=" +
                                      std::string(call.arguments.show ? "no" : "yes") + query);
        if (!answer || exit_code_of(answer->status) != kExitDone || call.arguments.show) {
            return answer;
        }
        const json checks = json::parse(answer->body);
        const bool runs =
            std::ranges::any_of(checks, [](const json& at) { return at.at("state") == "running"; });
        if (!runs) return answer;
    }
}

int run_store_check(const Call& call) {
    const std::string& device = call.arguments.device;
    if (!is_device_name(device)) return complain_about_device(call);
    if (!call.arguments.show) {
        const auto done = order(call, "/v1/store/check");
        if (!done) return done.error();
    }
    const auto answer = wait_for_checks(call, device.empty() ? "" : "&device=" + device);
    const auto checks = checked(call, answer);
    if (!checks) return checks.error();
    const int code = show(call, answer->body, [&] { return check_page(*checks); });
    if (code != kExitDone) return code;
    // A check that was not finished, or whose disk is missing, does not show that all is well.
    const bool only_looks = call.arguments.show || call.arguments.end;
    const bool is_well = std::ranges::all_of(*checks, [only_looks](const json& at) {
        const json& state = at.at("state");
        return at.at("findings") == 0 && (only_looks ? state != "failed" : state == "done");
    });
    return is_well ? kExitDone : kExitRefused;
}

std::string missing_shown(const json& missing) {
    std::string text =
        "slot " + shown(missing.at("slot")) + " of pool " + shown(missing.at("pool"));
    if (!missing.at("device").get<std::string>().empty())
        text += ", device " + shown(missing.at("device"));
    text += ", disk " + shown(missing.at("disk"));
    if (!missing.at("objects").is_null())
        text += ": " + shown(missing.at("objects")) + " objects with a name cannot be read";
    return text;
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
    const json devices = status.value("devices", json::array());
    if (!devices.empty()) page += "\n" + device_table(devices);
    for (const json& at : status.value("missing_slots", json::array())) {
        page += "missing: " + missing_shown(at) + "\n";
    }
    for (const json& warning : status.at("warnings")) page += "warning: " + shown(warning) + "\n";
    return page;
}

void declare_status(CLI::App& app, VerbArguments& arguments) {
    app.add_option("--wait", arguments.state,
                   "Wait for this state, ready, for as long as --timeout says")
        ->check(one_of({"ready"}));
}

// The answer when the node has the state, or the last one before the time is over. A daemon that
// starts has no socket at first.
std::expected<HttpAnswer, AdminProblem> wait_for_state(const Call& call, Interrupts& interrupts) {
    constexpr Duration kBetween = 50ms;
    const core::PosixClock clock;
    const bool is_limited = call.timeout != Duration{};
    const Instant end = after(clock.now(), call.timeout);
    for (;;) {
        const Duration left = is_limited ? std::max(end - clock.now(), Duration{1ms}) : Duration{};
        auto answer = call.client.with_timeout(left).get("/v1/status", interrupts.fd());
        const bool is_known = answer && answer->status == 200;
        if (is_known && json::parse(answer->body).at("state") == call.arguments.state)
            return answer;
        // One that ends cuts the connection, one that begins is not there yet.
        using Failure = AdminFailure;
        const bool may_come = answer || answer.error().kind == Failure::kNoServer ||
                              answer.error().kind == Failure::kBadAnswer;
        const bool has_time = !is_limited || clock.now() < end;
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

int run_drain(const Call& call) {
    return show_answer(call, call.client.post("/v1/drain"), [](const json& done) {
        return shown(done.at("state")) + " after " + span_shown(done.at("seconds")) + "\n";
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
    return table(answer.at("sessions"), {{"SESSION", "id"},
                                         {"LOCALITY", "locality"},
                                         {"PEER", "peer"},
                                         {"CLIENT", "client"},
                                         {"PRINCIPAL", "principal"},
                                         {"USER", "user"},
                                         {"AGE", "age_s", span_shown},
                                         {"IDLE", "idle_s", span_shown},
                                         {"FOPS", "fops"},
                                         {"HELD", "fops_held"},
                                         {"WAITING", "fops_waiting"},
                                         {"CREDITS", "fop_credits"},
                                         {"BYTES IN", "bytes_in"},
                                         {"BYTES OUT", "bytes_out"},
                                         {"TRANSFERRED", "bytes_transferred"}});
}

int run_sessions(const Call& call) {
    return show_answer(call, call.client.get("/v1/sessions"), &session_table);
}

void declare_trace(CLI::App& app, VerbArguments& arguments) {
    app.add_option("fop", arguments.id, "The fop, as the log names it; none: all that run");
}

// `fop` keeps the order in which the fop went through its phases.
std::string trace_page(const nlohmann::ordered_json& fop) {
    std::string page =
        "fop " + shown(fop.at("id")) + "  " + shown(fop.at("op")) + "  " + shown(fop.at("state"));
    if (fop.contains("status")) page += "  " + shown(fop["status"]);
    page += "\npeer " + shown(fop.at("peer")) + "  principal " + shown(fop.at("principal")) +
            "  arrived " + span_of(fop.at("age_s").get<double>()) + " ago\n";
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
    return page + table(rows);
}

// The daemon gives the oldest fop first, which may hang.
std::string running_table(const json& answer) {
    return table(
        answer.at("fops"),
        {{"FOP", "id"},
         {"OP", "op"},
         {"PHASE", "phase"},
         {"AGE", "age_s", span_shown},
         {"PEER", "peer"},
         {"PRINCIPAL", "principal"},
         {"WAITS FOR", "", [](const json& at) { return shown(at.value("waits_for", json())); }}});
}

int run_trace(const Call& call) {
    const std::string& id = call.arguments.id;
    if (id.empty()) return show_answer(call, call.client.get("/v1/trace"), &running_table);
    // Other text is not sent: it could change the meaning of the URL.
    if (id.find_first_not_of("0123456789abcdefABCDEF-") != std::string::npos) {
        complain("trace: a fop is named by a session and a request, such as 5f3a-17");
        return kExitUsage;
    }
    const auto answer = call.client.get("/v1/trace?id=" + id);
    const auto done = checked(call, answer);
    if (!done) return done.error();
    return show(call, answer->body,
                [&] { return trace_page(nlohmann::ordered_json::parse(answer->body)); });
}

// -- health --

// As monitoring systems understand them.
constexpr std::array<std::string_view, 4> kHealthStates{"ok", "warning", "critical", "unknown"};

int show_health(const Call& call, const std::string& json_text, const std::string& state,
                const std::string& text) {
    const auto* const found = std::ranges::find(kHealthStates, state);
    std::string name = state;
    std::ranges::transform(name, name.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    const int done = show(call, json_text, [&] { return name + ": " + text + "\n"; });
    return done == kExitDone && found != kHealthStates.end()
               ? static_cast<int>(found - kHealthStates.begin())
               : kExitHealthUnknown;
}

// What is known without an answer of the daemon.
int show_health_without_daemon(const Call& call, const std::string& state, const std::string& why) {
    const nlohmann::ordered_json object{
        {"state", state}, {"text", why}, {"problems", json::array()}};
    return show_health(call, dumped(object), state, why);
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
        // A daemon that does not run, or hangs, serves nobody.
        const AdminFailure kind = answer.error().kind;
        const bool is_down = kind == AdminFailure::kNoServer || kind == AdminFailure::kTimedOut;
        return show_health_without_daemon(call, is_down ? "critical" : "unknown",
                                          answer.error().message);
    }
    try {
        if (answer->status == 200) return show_health(call, *answer);
        return show_unknown_health(call, shown(json::parse(answer->body).at("error")));
    } catch (const json::exception&) {
        return show_unknown_health(
            call, "what answers at " + call.client.name() + " is no fopd that knows of health");
    }
}

constexpr std::array kNodeVerbs{
    Verb{"status", "Show the state of the daemon and of its localities", "status --wait ready",
         kTimeoutDefault, declare_status, run_status},
    Verb{"health", "Check the node: one line, and an exit code for monitoring", "health",
         Duration{10s}, nullptr, run_health},
    Verb{"top", "Show the load of the localities, again and again", "top --interval 5",
         kTimeoutDefault, declare_top, run_top},
    Verb{"sessions", "List the connected clients", "sessions", kTimeoutDefault, nullptr,
         run_sessions},
    Verb{"devices", "List the disks of the node", "devices", kTimeoutDefault, nullptr, run_devices},
    // No limit: the daemon reads the disk's log first, or sends pending replies.
    Verb{"device add", "Open a disk that the configuration names", "device add d2", Duration{0},
         declare_device, run_device_add},
    Verb{"device remove", "Close a disk that has no data, and let it go", "device remove d1",
         Duration{0}, declare_device, run_device_remove},
    // No limit: the daemon may have many names to forget.
    Verb{"device forget", "Write off a lost disk and the objects on it", "device forget d1 --yes",
         Duration{0}, declare_device_forget, run_device_forget},
    Verb{"scrub", "Read all data of disks and verify the checksums", "scrub d1", kTimeoutDefault,
         declare_scrub, run_scrub},
    Verb{"store check", "Cross-check log, index, names and space of disks", "store check d1",
         kTimeoutDefault, declare_store_check, run_store_check},
    // No limit: a backup may be large.
    Verb{"store backup", "Save the node's identity, indexes and names",
         "store backup /root/fopd-backup", Duration{0}, declare_store_backup, run_store_backup},
    Verb{"trace", "List the running fops, or where one of them spent its time", "trace 5f3a-17",
         kTimeoutDefault, declare_trace, run_trace},
    // No limit: disks may be added or removed.
    Verb{"reload", "Read the configuration file again", "reload", Duration{0}, nullptr, run_reload},
    // No limit here: the daemon has its own drain_timeout.
    Verb{"drain", "Refuse new work and wait until the daemon is idle", "drain", Duration{0},
         nullptr, run_drain},
    Verb{"log-level", "Change the log level until the next reload", "log-level debug",
         kTimeoutDefault, declare_log_level, run_log_level},
};

}  // namespace

std::span<const Verb> node_verbs() {
    return kNodeVerbs;
}

}  // namespace fopd::client
