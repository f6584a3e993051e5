// SPDX-License-Identifier: BSD-2-Clause
#include "client/verbs_work.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/complaints.h"
#include "client/exit_code.h"
#include "client/object_run.h"
#include "client/progress_line.h"
#include "client/table.h"
#include "client/tape_calls.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

using Order = fop::MediumWork::Order;
using State = fop::MediumWorkReply::State;

constexpr Duration kBetweenLooks = 1s;

// By MediumWorkReply::State.
constexpr std::array<std::string_view, 5> kStates{"none", "running", "done", "partly", "cancelled"};

std::string_view word_of(State state) {
    const auto index = static_cast<std::size_t>(state);
    return index < kStates.size() ? kStates[index] : "unknown";
}

nlohmann::ordered_json json_of(const std::string& medium, const WorkInfo& info) {
    nlohmann::ordered_json failed = nlohmann::ordered_json::array();
    for (const WorkInfo::Failure& each : info.failed) {
        nlohmann::ordered_json name = each.name;
        if (each.name.empty()) name = nullptr;
        failed.push_back({{"name", name},
                          {"fid", hex_of(each.fid)},
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

std::string page_of(const nlohmann::json& work) {
    std::string page = table(nlohmann::json::array({work}), {{"MEDIUM", "medium"},
                                                             {"REPACK", "state"},
                                                             {"COPIES", "copies_done"},
                                                             {"OF", "copies"},
                                                             {"MOVED", "bytes_done", size_shown},
                                                             {"OF", "bytes", size_shown},
                                                             {"FAILED", "failures"},
                                                             {"TIME", "elapsed_s", span_shown}});
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

// Looks at the work until it is over.
Task<Outcome<WorkInfo>> follow(ObjectRun* run, WorkInfo info) {
    std::optional<ProgressLine> line;
    Outcome<WorkInfo> latest = std::move(info);
    while (latest && latest->runs()) {
        if (!line && latest->bytes > 0) {
            const auto look = [&latest] {
                return ProgressLine::Moved{.bytes = latest ? latest->bytes_done : 0};
            };
            line.emplace(run->reactor, look, run->progress(latest->bytes));
        }
        const auto slept = co_await run->reactor.sleep_for(kBetweenLooks, &run->cancel);
        if (!slept) break;
        TapeCalls::WorkWish wish{.barcode = run->arguments.medium};
        auto looked = co_await run->objects.tape().work(std::move(wish), run->wait());
        latest = std::move(looked);
    }
    if (line) co_await line->close();
    co_return latest;
}

Task<int> repack(ObjectRun* run) {
    const VerbArguments& asked = run->arguments;
    const Order order = asked.show ? Order::kShow : asked.end ? Order::kEnd : Order::kBegin;
    TapeCalls::WorkWish wish{.barcode = asked.medium, .order = order};
    auto found = co_await run->objects.tape().work(std::move(wish), run->wait());
    if (!found) co_return run->complain_about(asked.medium, found.error());
    if (order == Order::kBegin) {
        auto latest = co_await follow(run, *std::move(found));
        found = std::move(latest);
        if (!found) co_return run->complain_about(asked.medium, found.error());
        if (found->runs()) {
            complain("repack: " + asked.medium + " goes on; --show shows it, --end ends it");
        }
    }
    const nlohmann::ordered_json work = json_of(asked.medium, *found);
    const int printed = show(run->call, dumped(work), [&work] { return page_of(work); });
    const bool is_done = order != Order::kBegin || found->state == State::kDone || found->runs();
    co_return printed != kExitDone || is_done ? printed : kExitRefused;
}

}  // namespace

void declare_repack(CLI::App& app, VerbArguments& arguments) {
    app.add_option("medium", arguments.medium, "The cartridge's barcode")->required();
    auto* const show_it =
        app.add_flag("--show", arguments.show, "Only show the progress or the result");
    app.add_flag("--end", arguments.end, "End it; the cartridge is written again")
        ->excludes(show_it);
}

int run_repack(const Call& call) {
    return run_object_verb(call, &repack);
}

}  // namespace fopd::client
