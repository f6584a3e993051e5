// SPDX-License-Identifier: BSD-2-Clause
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/command_line.h"
#include "client/complaints.h"
#include "client/exit_code.h"
#include "client/object_run.h"
#include "client/table.h"
#include "client/verb.h"
#include "client/verbs_work.h"
#include "client/watched_call.h"
#include "core/printable.h"
#include "fop/hex.h"

namespace fopd::client {

namespace {

template <ObjectRun::Body Body>
int run_tape_verb(const Call& call) {
    return run_object_verb(call, Body);
}

// Does the same to each of the named objects, goes on after a failure, and prints the results as a
// list. The exit code is that of the first failure.
template <typename One>
Task<int> for_each_name(ObjectRun* run, const char* list_name, One* one) {
    int exit_code = kExitDone;
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    ProgressLine::Look look = [&all] { return ProgressLine::Moved{.objects = all.size()}; };
    ProgressLine line(run->reactor, std::move(look), watch_of(*run, ""));
    for (const std::string& name : run->arguments.names) {
        std::string wanted = name;
        auto result = co_await (*one)(std::move(wanted));
        if (result) {
            all.push_back(std::move(*result));
            continue;
        }
        line.clear();
        const int failed = run->complain_about(name, result.error());
        if (exit_code == kExitDone) exit_code = failed;
        if (run->cancel.cancelled()) break;
    }
    co_await line.close();
    const int printed = run->done({{list_name, all}});
    co_return exit_code == kExitDone ? printed : exit_code;
}

// Nothing: it is no time span. 0: the pin ends.
std::optional<std::int64_t> pin_seconds(const std::string& text) {
    if (text == "0s") return 0;
    return seconds_in(text);
}

Task<Outcome<nlohmann::ordered_json>> stage_one(ObjectRun* run, std::string name,
                                                std::string* why_they_wait) {
    auto info = co_await run->find(name);
    if (!info) co_return std::unexpected(std::move(info.error()));
    TapeCalls::StageWish wish{.fid = info->fid, .priority = run->arguments.priority};
    if (!run->arguments.pin.empty()) {
        wish.pin = std::chrono::seconds(*pin_seconds(run->arguments.pin));
        wish.unpins = wish.pin == Duration{0};
    }
    const bool unpins = wish.unpins;
    const auto staged = co_await run->objects.tape().stage(wish, run->wait());
    if (!staged) co_return std::unexpected(staged.error());
    nlohmann::ordered_json shown{{"name", name},
                                 {"ticket", fop::to_hex(info->fid)},
                                 {"state", staged->waits ? "waiting"
                                           : unpins      ? "unpinned"
                                                         : "on_disk"}};
    if (staged->reason.empty()) co_return shown;
    shown["reason"] = staged->reason;
    *why_they_wait = staged->reason;
    co_return shown;
}

Task<int> stage_all(ObjectRun* run) {
    std::string why_they_wait;
    auto one = [run, &why_they_wait](std::string name) {
        return stage_one(run, std::move(name), &why_they_wait);
    };
    const int exit_code = co_await for_each_name(run, "staged", &one);
    // Once, however many objects wait for it.
    if (!why_they_wait.empty() && run->call.output != Output::kQuiet) {
        client::remark("stage: nothing is brought back now: " + why_they_wait);
    }
    co_return exit_code;
}

Task<Outcome<nlohmann::ordered_json>> release_one(ObjectRun* run, std::string name) {
    auto info = co_await run->find(name);
    if (!info) co_return std::unexpected(std::move(info.error()));
    const auto released = co_await run->objects.tape().release(info->fid, run->wait());
    if (!released) co_return std::unexpected(released.error());
    co_return nlohmann::ordered_json{{"name", name}, {"fid", fop::to_hex(info->fid)}};
}

Task<int> release_all(ObjectRun* run) {
    auto one = [run](std::string name) { return release_one(run, std::move(name)); };
    co_return co_await for_each_name(run, "released", &one);
}

nlohmann::ordered_json tape_json(const RecallInfo& info) {
    nlohmann::ordered_json name = info.name;
    if (info.name.empty()) name = nullptr;
    nlohmann::ordered_json requester = info.requester;
    if (info.requester.empty()) requester = nullptr;
    nlohmann::ordered_json expected;
    if (info.expected_in) expected = in_seconds(*info.expected_in);
    return {{"name", name},
            {"ticket", fop::to_hex(info.fid)},
            {"size", info.size_bytes},
            {"state", info.is_reading ? "reading" : "waiting"},
            {"place", info.place},
            {"priority", info.priority},
            {"requester", requester},
            {"medium", info.cartridge},
            {"age_s", in_seconds(info.age)},
            {"expected_s", expected}};
}

// The tickets of formats; no object has such a number.
constexpr std::string_view kFormatTicket = "format:";

nlohmann::ordered_json tape_json(const FormatInfo& info) {
    return {{"ticket", std::string(kFormatTicket) + info.cartridge},
            {"medium", info.cartridge},
            {"pool", info.pool},
            {"state", info.is_running ? "running" : "waiting"},
            {"age_s", in_seconds(info.age)}};
}

// What the table of recalls does not show; empty: it shows all of them.
std::string rest_of(const RecallQueue& queue) {
    const std::size_t shown_count = queue.recalls.size();
    if (shown_count == queue.total) return {};
    std::string line = "first " + std::to_string(shown_count) + " of " +
                       std::to_string(queue.total) +
                       " recalls, without those of objects that you may not read";
    if (queue.oldest) {
        line += "; the oldest of all has waited for " + span_of(in_seconds(*queue.oldest));
    }
    return folded(line, 0);
}

Task<int> show_queue(ObjectRun* run) {
    const auto found = co_await run->objects.tape().recalls(run->wait());
    if (!found) co_return run->complain_about(found.error());
    const auto formats = co_await run->objects.tape().formats(run->wait());
    if (!formats) co_return run->complain_about(formats.error());
    nlohmann::ordered_json labelled = nlohmann::ordered_json::array();
    for (const FormatInfo& each : *formats) labelled.push_back(tape_json(each));
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const RecallInfo& each : found->recalls) list.push_back(tape_json(each));
    nlohmann::ordered_json oldest;
    if (found->oldest) oldest = in_seconds(*found->oldest);
    nlohmann::ordered_json all{
        {"total", found->total}, {"oldest_s", oldest}, {"recalls", list}, {"formats", labelled}};
    if (!found->reason.empty()) all["reason"] = found->reason;
    const auto page_of_formats = [&] {
        return table(labelled, {{"FORMAT OF", "medium"},
                                {"POOL", "pool"},
                                {"STATE", "state"},
                                {"AGE", "age_s", span_shown},
                                {"TICKET", "ticket"}});
    };
    const auto page_of_recalls = [&] {
        return table(list, {{"PLACE", "place"},
                            {"NAME", "name"},
                            {"SIZE", "size", size_shown},
                            {"STATE", "state"},
                            {"CARTRIDGE", "medium"},
                            {"FOR", "requester"},
                            {"AGE", "age_s", span_shown},
                            {"EXPECTED IN", "expected_s",
                             [](const nlohmann::json& span) {
                                 return span.is_null() ? std::string("-") : span_shown(span);
                             }},
                            {"TICKET", "ticket", &shown, Column::Kind::kWide}});
    };
    const auto page = [&] {
        std::string head =
            found->reason.empty() ? "" : "nothing is brought back now: " + found->reason + "\n\n";
        head += rest_of(*found);
        if (labelled.empty()) return head + page_of_recalls();
        if (found->total == 0) return head + page_of_formats();
        return head + page_of_recalls() + "\n" + page_of_formats();
    };
    co_return show(run->call, dumped(all), page);
}

// Cancels the recall of an object, which is given by its name or by the ticket of the recall, or a
// format, which is given by its ticket.
Task<Outcome<nlohmann::ordered_json>> cancel_one(ObjectRun* run, std::string word) {
    if (word.starts_with(kFormatTicket)) {
        std::string barcode = word.substr(kFormatTicket.size());
        const auto given_up =
            co_await run->objects.tape().cancel_format(std::move(barcode), run->wait());
        if (!given_up) co_return std::unexpected(given_up.error());
        co_return nlohmann::ordered_json{{"name", word}, {"ticket", word}};
    }
    auto ticket = parse_fid(word);
    if (!ticket) {
        std::string name = word;
        auto info = co_await run->find(std::move(name));
        if (!info) co_return std::unexpected(std::move(info.error()));
        ticket = info->fid;
    }
    const auto done = co_await run->objects.tape().cancel(*ticket, run->wait());
    if (!done) co_return std::unexpected(done.error());
    co_return nlohmann::ordered_json{{"name", word}, {"ticket", fop::to_hex(*ticket)}};
}

Task<int> cancel_all(ObjectRun* run) {
    auto one = [run](std::string word) { return cancel_one(run, std::move(word)); };
    co_return co_await for_each_name(run, "cancelled", &one);
}

// -- the library --

nlohmann::ordered_json tape_json(const Medium& medium) {
    nlohmann::ordered_json drive = medium.drive;
    if (medium.drive.empty()) drive = nullptr;
    nlohmann::ordered_json scrubbed;
    if (medium.scrubbed_s != 0) scrubbed = medium.scrubbed_s;
    return {{"name", medium.barcode},
            {"family", "tape"},
            {"pool", medium.pool},
            {"technology", medium.technology},
            {"state", medium.state},
            {"reason", medium.reason},
            {"capacity", medium.capacity_bytes},
            {"used", medium.used_bytes},
            {"live", medium.live_bytes},
            {"dead", medium.dead_bytes},
            {"files", medium.files},
            {"mounts", medium.mounts},
            {"generation", medium.generation},
            {"scrubbed", scrubbed},
            {"damaged", medium.damaged_copies},
            {"failures", medium.failures},
            {"drive", drive}};
}

// Nobody knows it until a drive has loaded the cartridge.
std::string capacity_shown(const nlohmann::json& size) {
    return size == 0 ? std::string("-") : size_shown(size);
}

std::string media_page(const nlohmann::json& media) {
    if (media.empty()) return "no cartridge\n";
    std::string page = table(media, {{"CARTRIDGE", "name", shown, Column::Kind::kWhole},
                                     {"POOL", "pool"},
                                     {"STATE", "state", shown, Column::Kind::kWhole},
                                     {"CAPACITY", "capacity", capacity_shown},
                                     {"USED", "used", size_shown},
                                     {"LIVE", "live", size_shown, Column::Kind::kWide},
                                     {"DEAD", "dead", size_shown},
                                     {"FILES", "files"},
                                     {"MOUNTS", "mounts", shown, Column::Kind::kWide},
                                     {"DRIVE", "drive", shown, Column::Kind::kWhole},
                                     {"DAMAGED", "damaged", shown, Column::Kind::kWide},
                                     {"FAILURES", "failures", shown, Column::Kind::kWide}});
    for (const nlohmann::json& each : media) {
        const std::string reason = shown(each.at("reason"));
        if (!reason.empty()) page += folded(shown(each.at("name")) + ": " + reason, 4);
    }
    return page;
}

Task<int> show_media(ObjectRun* run) {
    const auto found = co_await run->objects.tape().media(run->wait());
    if (!found) co_return run->complain_about(found.error());
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Medium& each : *found) list.push_back(tape_json(each));
    co_return show(run->call, dumped({{"media", list}}), [&] { return media_page(list); });
}

std::string drives_page(const nlohmann::json& drives) {
    if (drives.empty()) return "no drive\n";
    std::string page = table(drives, {{"DRIVE", "name", shown, Column::Kind::kWhole},
                                      {"TECHNOLOGY", "technology"},
                                      {"STATE", "state", shown, Column::Kind::kWhole},
                                      {"CARTRIDGE", "medium"},
                                      {"MOUNTS", "mounts"},
                                      {"SERIAL", "serial", shown, Column::Kind::kWide}});
    for (const nlohmann::json& each : drives) {
        const std::string reason = shown(each.at("reason"));
        if (!reason.empty()) page += folded(shown(each.at("name")) + ": " + reason, 4);
    }
    return page;
}

int run_drives(const Call& call) {
    return show_answer(call, call.client.get("/v1/drives"), [](const nlohmann::json& answer) {
        return drives_page(answer.at("drives"));
    });
}

Task<int> format_medium(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    TapeCalls::FormatWish wish{.barcode = asked.medium, .pool = asked.pool};
    using Force = TapeCalls::Force;
    if (asked.force) wish.force = asked.is_sure ? Force::kLoseObjects : Force::kForgetData;
    auto call = run->objects.tape().format(std::move(wish), run->wait());
    const auto done = co_await watched(run, asked.medium, std::move(call));
    if (!done) co_return run->complain_about(done.error());
    co_return run->done({{"name", asked.medium}, {"pool", asked.pool}});
}

Task<int> load_medium(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    TapeCalls::LoadWish wish{.barcode = asked.medium, .drive = asked.drive};
    auto call = run->objects.tape().load(std::move(wish), run->wait());
    const auto done = co_await watched(run, asked.medium, std::move(call));
    if (!done) co_return run->complain_about(done.error());
    co_return run->done({{"name", asked.medium}, {"drive", asked.drive}});
}

Task<int> unload_drive(ObjectRun* run) {
    std::string drive = run->arguments.drive;
    auto call = run->objects.tape().unload(std::move(drive), run->wait());
    const auto done = co_await watched(run, run->arguments.drive, std::move(call));
    if (!done) co_return run->complain_about(done.error());
    co_return run->done({{"drive", run->arguments.drive}});
}

std::string objects_text(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " object" : " objects");
}

Task<int> export_medium(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    TapeCalls::ExportWish wish{.barcode = asked.medium, .hides_objects = asked.is_sure};
    auto call = run->objects.tape().export_medium(std::move(wish), run->wait());
    const auto done = co_await watched(run, asked.medium, std::move(call));
    if (!done) co_return run->complain_about(done.error());
    const nlohmann::ordered_json all{{"name", asked.medium},
                                     {"mail_slot", done->in_exchange},
                                     {"objects", done->objects},
                                     {"only_here", done->only_here}};
    const auto page = [&] {
        std::string text = asked.medium;
        text += done->in_exchange ? " is in an import/export element"
                                  : " is where it was: the library has no import/export elements";
        if (done->objects > 0) text += "; " + objects_text(done->objects) + " on it";
        if (done->only_here > 0) text += ", " + std::to_string(done->only_here) + " only there";
        return text + "\n";
    };
    co_return show(run->call, dumped(all), page);
}

Task<int> import_media(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    std::string barcode = asked.medium;
    auto call = run->objects.tape().import_media(std::move(barcode), run->wait());
    const auto done = co_await watched(run, asked.medium, std::move(call));
    if (!done) co_return run->complain_about(done.error());
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const Medium& each : done->media) {
        list.push_back({{"name", each.barcode}, {"state", each.state}, {"reason", each.reason}});
    }
    const nlohmann::ordered_json all{{"total", done->total}, {"media", list}};
    const auto page = [&] {
        if (list.empty()) return std::string("no cartridge to import\n");
        return table(list, {{"CARTRIDGE", "name", shown, Column::Kind::kWhole},
                            {"STATE", "state", shown, Column::Kind::kWhole},
                            {"REASON", "reason"}});
    };
    co_return show(run->call, dumped(all), page);
}

Task<int> set_drive(ObjectRun* run, TapeCalls::DriveUse use) {
    std::string drive = run->arguments.drive;
    auto call = run->objects.tape().set_drive(std::move(drive), use, run->wait());
    const auto done = co_await watched(run, run->arguments.drive, std::move(call));
    if (!done) co_return run->complain_about(done.error());
    const char* const state = use == TapeCalls::DriveUse::kDown ? "down" : "up";
    co_return run->done({{"drive", run->arguments.drive}, {"state", state}});
}
Task<int> take_drive_down(ObjectRun* run) {
    return set_drive(run, TapeCalls::DriveUse::kDown);
}
Task<int> bring_drive_up(ObjectRun* run) {
    return set_drive(run, TapeCalls::DriveUse::kUp);
}

// -- options of verbs --

void declare_tape_names(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    app.add_option("name", arguments.names, "The objects' names")->required();
}
void declare_stage(CLI::App& app, VerbArguments& arguments) {
    declare_tape_names(app, arguments);
    app.add_option("--pin", arguments.pin,
                   "Keep the objects on a disk for this time, such as 12h or 3d; 0s ends the pin")
        ->check([](const std::string& text) {
            const auto span = pin_seconds(text);
            const bool fits = span && static_cast<std::uint64_t>(*span) <= fop::kPinSecondsMax;
            return std::string(fits ? "" : "must be a number with s, min, h or d, up to 3660d");
        });
    app.add_option("--priority", arguments.priority,
                   "Recalls with a higher priority go first; reads have 128")
        ->check(whole_between(0, 255))
        ->default_str(std::to_string(arguments.priority));
}
void declare_cancel(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    app.add_option("name", arguments.names, "The objects' names, or tickets, as queue shows them")
        ->required();
}
void declare_medium(CLI::App& app, VerbArguments& arguments) {
    app.add_option("cartridge", arguments.medium, "The cartridge's barcode")->required();
}
void declare_drive(CLI::App& app, VerbArguments& arguments) {
    app.add_option("drive", arguments.drive, "The drive's name")->required();
}
void declare_format(CLI::App& app, VerbArguments& arguments) {
    declare_medium(app, arguments);
    app.add_option("--pool", arguments.pool, "The tape pool whose objects the cartridge is for")
        ->required();
    auto* const force =
        app.add_flag("--force", arguments.force, "Discard the data on the cartridge");
    app.add_flag("--yes", arguments.is_sure,
                 "With --force: also lose objects that have no other copy")
        ->needs(force);
}
void declare_load(CLI::App& app, VerbArguments& arguments) {
    declare_medium(app, arguments);
    declare_drive(app, arguments);
}

void declare_export(CLI::App& app, VerbArguments& arguments) {
    declare_medium(app, arguments);
    app.add_flag(
        "--yes", arguments.is_sure,
        "Confirm that objects with no other copy cannot be read until the cartridge is back");
}
void declare_import(CLI::App& app, VerbArguments& arguments) {
    app.add_option("cartridge", arguments.medium, "Import only the cartridge with this barcode");
}

constexpr std::array kTapeVerbs{
    Verb{"stage", "Bring objects back from tape to a disk",
         "stage 2026/results.tar\nstage run-1 run-2 --pin 3d", kTimeoutDefault, declare_stage,
         run_tape_verb<&stage_all>},
    Verb{"release", "Free the disk space of objects that are on tape", "release 2026/results.tar",
         kTimeoutDefault, declare_tape_names, run_tape_verb<&release_all>},
    Verb{"queue", "List the recalls from tape, and the formats of cartridges", "queue",
         kTimeoutDefault, nullptr, run_tape_verb<&show_queue>},
    Verb{"cancel", "Cancel recalls from tape, and formats that wait for a drive",
         "cancel 2026/results.tar", kTimeoutDefault, declare_cancel, run_tape_verb<&cancel_all>},
    Verb{"media", "List the cartridges of the tape library", "media", kTimeoutDefault, nullptr,
         run_tape_verb<&show_media>},
    Verb{"drives", "List the drives of the tape library", "drives", kTimeoutDefault, nullptr,
         run_drives},
    Verb{"format", "Label a cartridge for a pool", "format V00001L9 --pool cold", kTimeoutDefault,
         declare_format, run_tape_verb<&format_medium>},
    Verb{"load", "Load a cartridge into a drive", "load V00001L9 vtl0-drive0", kTimeoutDefault,
         declare_load, run_tape_verb<&load_medium>},
    Verb{"unload", "Take the cartridge of a drive back to its storage element",
         "unload vtl0-drive0", kTimeoutDefault, declare_drive, run_tape_verb<&unload_drive>},
    Verb{"export", "Take a cartridge out of use, so that it may leave the library",
         "export V00001L9", kTimeoutDefault, declare_export, run_tape_verb<&export_medium>},
    Verb{"import", "Bring cartridges into the library, or back into use", "import\nimport V00001L9",
         kTimeoutDefault, declare_import, run_tape_verb<&import_media>},
    Verb{"drive down", "Take a drive out of use", "drive down vtl0-drive0", kTimeoutDefault,
         declare_drive, run_tape_verb<&take_drive_down>},
    Verb{"drive up", "Use a drive again", "drive up vtl0-drive0", kTimeoutDefault, declare_drive,
         run_tape_verb<&bring_drive_up>},
    Verb{"repack", "Move the live copies on a cartridge to other cartridges",
         "repack V00001L9\nrepack V00001L9 --show", kTimeoutDefault, declare_repack, run_repack},
    Verb{"rescue", "Make objects of what is on cartridges of a lost node",
         "rescue V00001L9\nrescue --all --pool cold", kTimeoutDefault, declare_rescue, run_rescue},
};

}  // namespace

std::span<const Verb> tape_verbs() {
    return kTapeVerbs;
}

}  // namespace fopd::client
