// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/command_line.h"
#include "client/disk_table.h"
#include "client/exit_code.h"
#include "client/store_backup.h"
#include "client/table.h"
#include "client/verb.h"
#include "client/verbs_work.h"

namespace fopd::client {

namespace {

using nlohmann::json;

int run_devices(const Call& call) {
    return show_answer(call, call.client.get("/v1/devices"),
                       [](const json& answer) { return disk_page(answer.at("devices")); });
}

// Other text is not sent: it could change the meaning of the URL.
bool is_device_name(const std::string& device) {
    return std::ranges::all_of(
        device, [](char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

int complain_about_device(const Call& call) {
    return complain_about(call, "name a device as in the configuration", kExitUsage);
}

// Begins or ends the work on the devices that the arguments name. Returns the daemon's answer, or
// the exit code after a complaint.
std::expected<json, int> order(const Call& call, std::string path) {
    path += call.arguments.end ? "?do=end" : "?do=begin";
    if (!call.arguments.device.empty()) path += "&device=" + call.arguments.device;
    return checked(call, call.client.post(path));
}

// What the flags of a verb mean that works on devices.
struct WorkSummaries {
    const char* end;
    const char* show;
};

void declare_devices(CLI::App& app, VerbArguments& arguments, const WorkSummaries& summaries) {
    app.add_option("device", arguments.device, "The disk; by default all disks");
    app.add_flag("--end", arguments.end, summaries.end);
    app.add_flag("--show", arguments.show, summaries.show);
}

void declare_scrub(CLI::App& app, VerbArguments& arguments) {
    declare_devices(
        app, arguments,
        {.end = "End the running scrubs", .show = "Only show the progress and the damage found"});
    auto* const medium = app.add_option(
        "--medium", arguments.medium, "Scrub this cartridge of the tape library instead of disks");
    app.add_option("--pool", arguments.pool,
                   "Scrub all cartridges of this tape pool instead of disks")
        ->excludes(medium);
}

std::string scrub_table(const json& devices) {
    return table(devices, {{"DEVICE", "name"},
                           {"SCRUB", "scrub/state"},
                           {"READ", "scrub/read", size_shown},
                           {"OF", "scrub/total", size_shown},
                           {"DAMAGED", "scrub/damaged_blocks"}});
}

int run_scrub(const Call& call) {
    const std::string& device = call.arguments.device;
    if (!call.arguments.medium.empty() || !call.arguments.pool.empty()) {
        if (device.empty()) return run_medium_scrub(call);
        complain("scrub: name either a device, or --medium or --pool");
        return kExitUsage;
    }
    if (!is_device_name(device)) return complain_about_device(call);
    json problems = json::array();
    if (!call.arguments.show) {
        const auto done = order(call, "/v1/scrub");
        if (!done) return done.error();
        // A disk that is not open has no scrub to end: that is no problem.
        if (!call.arguments.end) problems = done->value("problems", problems);
    }
    const auto answer = call.client.get("/v1/devices");
    const auto body = checked(call, answer);
    if (!body) return body.error();
    // In the order of the daemon's fields.
    auto shown_body = nlohmann::ordered_json::parse(answer->body);
    auto& devices = shown_body.at("devices").get_ref<nlohmann::ordered_json::array_t&>();
    if (!device.empty()) std::erase_if(devices, [&](auto& at) { return at.at("name") != device; });
    if (!device.empty() && devices.empty()) {
        complain("scrub: there is no device " + device);
        return kExitNotFound;
    }
    const int code =
        show(call, dumped(shown_body), [&] { return scrub_table(shown_body.at("devices")); });
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
    std::string page = device + " is removed; another node may use it\n";
    if (done.at("in_file").get<bool>()) {
        page += shown(done.at("file")) + " still names it: the next start, or `fopctl device add " +
                device + "`, opens it again\n";
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
        app.add_option("device", arguments.device, "The name of the lost disk on this node");
    app.add_option("--slot", arguments.slot, "The slot of the lost disk, instead of its name")
        ->excludes(device)
        ->check(whole_between(1, 65535));
    app.add_flag("--yes", arguments.is_sure, "Confirm that all objects on it are lost for good");
}

std::string forgotten_page(const json& done) {
    const json& lost = done.at("lost");
    std::string page = "slot " + shown(lost.at("slot")) + " of pool " + shown(lost.at("pool")) +
                       " is written off: disk " + shown(lost.at("disk")) + " with at least " +
                       shown(lost.at("objects")) + " objects is forgotten\n";
    if (done.at("in_file").get<bool>()) {
        page += shown(done.at("file")) + " still names " + shown(done.at("device")) + "\n";
    }
    return page;
}

int run_device_forget(const Call& call) {
    const std::string& device = call.arguments.device;
    if (device.empty() != call.arguments.slot.has_value() || !is_device_name(device)) {
        complain("device forget: name either a device, as in the configuration, or --slot");
        return kExitUsage;
    }
    std::string path = "/v1/device/forget?";
    path += device.empty() ? "slot=" + std::to_string(*call.arguments.slot) : "device=" + device;
    if (call.arguments.is_sure) path += "&sure=yes";
    return show_answer(call, call.client.post(path), &forgotten_page);
}

// -- check --

constexpr std::size_t kFindingIndent = 6;

void declare_store_check(CLI::App& app, VerbArguments& arguments) {
    declare_devices(
        app, arguments,
        {.end = "End the running checks", .show = "Only show the progress or the result"});
}

// The fault, then its location: the values, in lines that fit the width and are not broken within a
// value, and the name in a line of its own, shortened if it is too long.
std::string finding_lines(const json& finding) {
    std::string page = folded("  " + shown(finding.at("reason")), kFindingIndent);
    std::string line;
    const auto end_line = [&page, &line] {
        if (!line.empty()) page += std::string(kFindingIndent, ' ') + line + "\n";
        line.clear();
    };
    const auto add = [&](const char* label, const char* key) {
        const json& value = finding.at(key);
        if (value.is_null() || shown(value).empty()) return;
        const std::string words = label + shown(value);
        const std::size_t width = kFindingIndent + line.size() + 2 + words.size();
        if (!are_tables_wide() && width > kPageWidth) end_line();
        line += (line.empty() ? "" : "  ") + words;
    };
    add("object ", "object");
    add("at its block ", "object_block");
    add("disk block ", "block");
    if (finding.at("blocks").get<std::uint64_t>() > 1) add("blocks ", "blocks");
    add("log entry ", "log_entry");
    end_line();
    add("name ", "name");
    if (!are_tables_wide()) line = clipped(line, kPageWidth - kFindingIndent);
    end_line();
    return page;
}

std::string check_state(const json& check) {
    const std::string state = shown(check.at("state"));
    return state == "running" ? state + " (" + shown(check.at("stage")) + ")" : state;
}

std::string check_page(const json& checks) {
    std::string page = table(checks, {{"DEVICE", "device"},
                                      {"CHECK", "", check_state},
                                      {"OBJECTS", "objects"},
                                      {"UPLOADS", "uploads", shown, Column::Kind::kWide},
                                      {"EXTENTS", "extents", shown, Column::Kind::kWide},
                                      {"BLOCKS", "blocks"},
                                      {"NAMES", "names", shown, Column::Kind::kWide},
                                      {"LOG ENTRIES", "log_entries", shown, Column::Kind::kWide},
                                      {"FINDINGS", "findings"}});
    for (const json& at : checks) {
        const std::string device = shown(at.at("device"));
        const std::string problem = shown(at.at("problem"));
        if (!problem.empty()) page += folded(device + ": " + problem, kFindingIndent);
        if (at.at("findings") == 0) continue;
        page += device + ":\n";
        for (const json& finding : at.at("found")) page += finding_lines(finding);
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
        const json report = json::parse(answer->body);
        const bool runs = std::ranges::any_of(
            report.at("checks"), [](const json& at) { return at.at("state") == "running"; });
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
    const auto report = checked(call, answer);
    if (!report) return report.error();
    const json& checks = report->at("checks");
    const int code = show(call, answer->body, [&] { return check_page(checks); });
    if (code != kExitDone) return code;
    // A check that was not finished, or whose disk is missing, does not show that all is well.
    const bool only_looks = call.arguments.show || call.arguments.end;
    const bool is_well = std::ranges::all_of(checks, [only_looks](const json& at) {
        const json& state = at.at("state");
        return at.at("findings") == 0 && (only_looks ? state != "failed" : state == "done");
    });
    return is_well ? kExitDone : kExitRefused;
}

constexpr std::array kDiskVerbs{
    Verb{"devices", "List the disks of the node", "devices", kTimeoutDefault, nullptr, run_devices},
    // No limit: the daemon reads the disk's log first, or sends pending replies.
    Verb{"device add", "Open a disk that the configuration names", "device add d2", Duration{0},
         declare_device, run_device_add},
    Verb{"device remove", "Close an empty disk, so that it can be taken away", "device remove d1",
         Duration{0}, declare_device, run_device_remove},
    // No limit: the daemon may have many names to forget.
    Verb{"device forget", "Write off a lost disk and the objects on it", "device forget d1 --yes",
         Duration{0}, declare_device_forget, run_device_forget},
    Verb{"scrub", "Read all data of disks and verify the checksums", "scrub d1", kTimeoutDefault,
         declare_scrub, run_scrub},
    Verb{"store check", "Cross-check log, index, names and space of disks", "store check d1",
         kTimeoutDefault, declare_store_check, run_store_check},
    // No limit: a backup may be large.
    Verb{"store backup", "Save the files of the data directory: the node's id, indexes and names",
         "store backup /root/fopd-backup", Duration{0}, declare_store_backup, run_store_backup},
};

}  // namespace

std::span<const Verb> disk_verbs() {
    return kDiskVerbs;
}

}  // namespace fopd::client
