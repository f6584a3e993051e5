// SPDX-License-Identifier: BSD-2-Clause
#include "client/verbs_work.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/complaints.h"
#include "client/exit_code.h"
#include "client/object_run.h"
#include "client/progress_line.h"
#include "client/table.h"
#include "client/tape_calls.h"
#include "client/verbs_list.h"
#include "core/printable.h"
#include "fop/hex.h"

namespace fopd::client {

namespace {

using Kind = fop::MediumWork::Kind;
using Order = fop::MediumWork::Order;
using State = fop::MediumWorkReply::State;

constexpr Duration kBetweenLooks = 1s;

// By MediumWorkReply::State.
constexpr std::array<std::string_view, 5> kWorkStates{"none", "running", "done", "partly",
                                                      "cancelled"};

std::string_view word_of(State state) {
    const auto index = static_cast<std::size_t>(state);
    return index < kWorkStates.size() ? kWorkStates[index] : "unknown";
}

nlohmann::ordered_json work_json(const std::string& medium, const WorkInfo& info) {
    nlohmann::ordered_json failed = nlohmann::ordered_json::array();
    for (const WorkInfo::Failure& each : info.failed) {
        nlohmann::ordered_json name = each.name;
        if (each.name.empty()) name = nullptr;
        failed.push_back({{"name", name},
                          {"fid", fop::to_hex(each.fid)},
                          {"file", each.file},
                          {"reason", each.reason}});
    }
    return {{"medium", medium},
            {"state", word_of(info.state)},
            {"copies", info.copies},
            {"bytes", info.bytes},
            {"copies_done", info.copies_done},
            {"bytes_done", info.bytes_done},
            {"failures", info.failures},
            {"elapsed_s", std::chrono::duration<double>(info.elapsed).count()},
            {"reason", info.reason},
            {"failed", failed}};
}

std::string remarks_on(const nlohmann::json& work) {
    std::string page;
    const std::string reason = shown(work.at("reason"));
    if (!reason.empty()) page += folded(shown(work.at("medium")) + ": " + reason, 4);
    for (const nlohmann::json& each : work.at("failed")) {
        const nlohmann::json& name = each.at("name");
        page += folded("file " + shown(each.at("file")) + ", " +
                           shown(name.is_null() ? each.at("fid") : name) + ": " +
                           shown(each.at("reason")),
                       4);
    }
    return page;
}

// The titles of columns.
struct Titles {
    const char* work = "";
    const char* bytes = "";
};
Titles titles_of(Kind kind) {
    switch (kind) {
        case Kind::kRepack: return {.work = "REPACK", .bytes = "MOVED"};
        case Kind::kScrub: return {.work = "SCRUB", .bytes = "READ"};
        case Kind::kRescue: return {.work = "RESCUE", .bytes = "RESCUED"};
        case Kind::kFormat: break;  // It is no work of these verbs.
    }
    return {};
}

// One kind of work on several cartridges.
std::string page_of(const nlohmann::json& works, Kind kind) {
    const Titles titles = titles_of(kind);
    std::string page = table(works, {{"CARTRIDGE", "medium"},
                                     {titles.work, "state"},
                                     {"COPIES", "copies_done"},
                                     {"OF", "copies"},
                                     {titles.bytes, "bytes_done", size_shown},
                                     {"OF", "bytes", size_shown},
                                     {"FAILED", "failures"},
                                     {"TIME", "elapsed_s", span_shown}});
    for (const nlohmann::json& work : works) page += remarks_on(work);
    return page;
}

Order order_of(const VerbArguments& asked) {
    if (asked.show) return Order::kShow;
    return asked.end ? Order::kEnd : Order::kBegin;
}

// Shows the progress of the work until it is over.
Task<Outcome<WorkInfo>> follow(ObjectRun* run, TapeCalls::WorkWish wish, WorkInfo info) {
    std::optional<ProgressLine> line;
    Outcome<WorkInfo> latest = std::move(info);
    while (latest && latest->runs()) {
        // How much a cartridge has that is rescued is known at the end.
        if (!line && latest->bytes > 0 && wish.kind != Kind::kRescue) {
            const auto look = [&latest] {
                return ProgressLine::Moved{.bytes = latest ? latest->bytes_done : 0};
            };
            const ProgressLine::Options options{.label = core::printable(wish.barcode),
                                                .total_bytes = latest->bytes,
                                                .wanted = run->call.output == Output::kPage};
            line.emplace(run->reactor, look, options);
        }
        const auto slept = co_await run->reactor.sleep_for(kBetweenLooks, &run->cancel);
        if (!slept) break;
        TapeCalls::WorkWish look{.barcode = wish.barcode, .kind = wish.kind};
        auto looked = co_await run->objects.tape().work(std::move(look), run->wait());
        latest = std::move(looked);
    }
    if (line) co_await line->close();
    co_return latest;
}

// Begins, ends or shows the work on each of the cartridges; after a begin, waits for its end.
Task<Outcome<std::vector<WorkInfo>>> order_work(ObjectRun* run, Kind kind,
                                                std::vector<std::string> barcodes) {
    const Order what = order_of(run->arguments);
    std::vector<WorkInfo> works;
    for (const std::string& each : barcodes) {
        TapeCalls::WorkWish wish{.barcode = each, .kind = kind, .order = what};
        if (kind == Kind::kRescue && what == Order::kBegin) wish.pool = run->arguments.pool;
        auto found = co_await run->objects.tape().work(std::move(wish), run->wait());
        if (!found) co_return std::unexpected(found.error());
        works.push_back(std::move(*found));
    }
    for (std::size_t i = 0; i < works.size() && what == Order::kBegin; ++i) {
        TapeCalls::WorkWish wish{.barcode = barcodes[i], .kind = kind};
        WorkInfo info = std::move(works[i]);
        auto latest = co_await follow(run, std::move(wish), std::move(info));
        if (!latest) co_return std::unexpected(latest.error());
        works[i] = std::move(*latest);
    }
    co_return works;
}

// Whether the work on every cartridge is done, or goes on without the verb.
bool is_good(const ObjectRun& run, const std::vector<WorkInfo>& works) {
    if (order_of(run.arguments) != Order::kBegin) return true;
    return std::ranges::all_of(
        works, [](const WorkInfo& each) { return each.state == State::kDone || each.runs(); });
}

void say_what_goes_on(const ObjectRun& run, const std::vector<WorkInfo>& works) {
    if (order_of(run.arguments) != Order::kBegin) return;
    const bool goes_on = std::ranges::any_of(works, &WorkInfo::runs);
    if (goes_on) {
        complain(std::string(run.call.verb) +
                 ": the work goes on; --show shows its progress, --end ends it");
    }
}

Task<int> repack(ObjectRun* run) {
    const std::string& medium = run->arguments.medium;
    std::vector<std::string> barcodes{medium};
    const auto works = co_await order_work(run, Kind::kRepack, std::move(barcodes));
    if (!works) co_return run->complain_about(works.error());
    say_what_goes_on(*run, *works);
    const nlohmann::ordered_json work = work_json(medium, works->front());
    const auto page = [&work] { return page_of(nlohmann::json::array({work}), Kind::kRepack); };
    const int printed = show(run->call, dumped(work), page);
    co_return printed != kExitDone || is_good(*run, *works) ? printed : kExitRefused;
}

// Orders the work on the cartridges, and prints it as a list, in JSON with the name `list_name`.
Task<int> work_on_all(ObjectRun* run, Kind kind, const char* list_name,
                      std::vector<std::string> barcodes) {
    std::vector<std::string> copy = barcodes;
    const auto works = co_await order_work(run, kind, std::move(copy));
    if (!works) co_return run->complain_about(works.error());
    say_what_goes_on(*run, *works);
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < works->size(); ++i) {
        list.push_back(work_json(barcodes[i], (*works)[i]));
    }
    const auto page = [&list, kind] { return page_of(list, kind); };
    const int printed = show(run->call, dumped({{list_name, list}}), page);
    co_return printed != kExitDone || is_good(*run, *works) ? printed : kExitRefused;
}

// The cartridge that --medium names, or the readable cartridges of the pool. kWrongPool: there is
// no pool of that name.
Task<Outcome<std::vector<std::string>>> media_to_scrub(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    std::vector<std::string> barcodes;
    if (!asked.medium.empty()) {
        barcodes.push_back(asked.medium);
        co_return barcodes;
    }
    const auto pools = co_await find_pools(run);
    if (!pools) co_return std::unexpected(pools.error());
    const auto media = co_await run->objects.tape().media(run->wait());
    if (!media) co_return std::unexpected(media.error());
    constexpr std::array<std::string_view, 4> kReadable{"ok", "full", "read-only", "suspect"};
    for (const Medium& each : *media) {
        const bool is_readable =
            std::ranges::find(kReadable, std::string_view(each.state)) != kReadable.end();
        if (each.pool == asked.pool && is_readable) barcodes.push_back(each.barcode);
    }
    co_return barcodes;
}

Task<int> scrub_media(ObjectRun* run) {
    auto barcodes = co_await media_to_scrub(run);
    if (!barcodes) co_return run->complain_about(barcodes.error());
    if (barcodes->empty()) {
        client::remark("scrub: pool " + core::printable(run->arguments.pool) +
                       " has no cartridge to scrub");
    }
    co_return co_await work_on_all(run, Kind::kScrub, "scrubs", *std::move(barcodes));
}

// The cartridge that is named, or all whose objects this node does not know; to show or to end it,
// those that are or were rescued.
Task<Outcome<std::vector<std::string>>> media_to_rescue(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    std::vector<std::string> barcodes;
    if (!asked.medium.empty()) {
        barcodes.push_back(asked.medium);
        co_return barcodes;
    }
    const auto media = co_await run->objects.tape().media(run->wait());
    if (!media) co_return std::unexpected(media.error());
    for (const Medium& each : *media) {
        const bool is_known = each.state != "blank" && each.state != "foreign";
        if (asked.show || asked.end) {
            TapeCalls::WorkWish look{.barcode = each.barcode, .kind = Kind::kRescue};
            auto info = co_await run->objects.tape().work(std::move(look), run->wait());
            if (!info) co_return std::unexpected(info.error());
            const bool is_one = asked.show ? info->state != State::kNone : info->runs();
            if (is_one) barcodes.push_back(each.barcode);
        } else if (!is_known) {
            barcodes.push_back(each.barcode);
        }
    }
    co_return barcodes;
}

Task<int> rescue_media(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    if (asked.all == !asked.medium.empty()) {
        complain("rescue: name a cartridge, or say --all");
        co_return kExitUsage;
    }
    auto barcodes = co_await media_to_rescue(run);
    if (!barcodes) co_return run->complain_about(barcodes.error());
    co_return co_await work_on_all(run, Kind::kRescue, "rescues", *std::move(barcodes));
}

}  // namespace

void declare_rescue(CLI::App& app, VerbArguments& arguments) {
    auto* const medium = app.add_option("medium", arguments.medium, "The cartridge's barcode");
    app.add_flag("--all", arguments.all,
                 "Rescue all cartridges of the library that this node does not know")
        ->excludes(medium);
    app.add_option("--pool", arguments.pool,
                   "The tape pool that gets the objects; by default the one that they had");
    auto* const show_it =
        app.add_flag("--show", arguments.show, "Only show the progress or the result");
    app.add_flag("--end", arguments.end, "End the rescue; objects that were rescued stay")
        ->excludes(show_it);
}

int run_rescue(const Call& call) {
    return run_object_verb(call, &rescue_media);
}

void declare_repack(CLI::App& app, VerbArguments& arguments) {
    app.add_option("cartridge", arguments.medium, "The cartridge's barcode")->required();
    auto* const show_it =
        app.add_flag("--show", arguments.show, "Only show the progress or the result");
    app.add_flag("--end", arguments.end, "End the repack, and let the cartridge be written again")
        ->excludes(show_it);
}

int run_repack(const Call& call) {
    return run_object_verb(call, &repack);
}

int run_medium_scrub(const Call& call) {
    return run_object_verb(call, &scrub_media);
}

}  // namespace fopd::client
