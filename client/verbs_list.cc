// SPDX-License-Identifier: BSD-2-Clause
#include "client/verbs_list.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "client/exit_code.h"
#include "client/object_page.h"
#include "client/table.h"

namespace fopd::client {

Task<Outcome<ObjectInfo>> find_by_fid(ObjectRun* run) {
    const auto fid = parse_fid(run->arguments.fid);
    if (!fid) co_return failed(fop::Status::kNotFound, "that is not the fid of an object");
    co_return co_await run->objects.stat(*fid, run->wait());
}

Task<Outcome<std::vector<PoolSpace>>> find_pools(ObjectRun* run) {
    auto pools = co_await run->objects.statfs(run->wait());
    const std::string& wanted = run->arguments.pool;
    if (!pools || wanted.empty()) co_return std::move(pools);
    std::erase_if(*pools, [&](const PoolSpace& each) { return each.pool != wanted; });
    if (pools->empty()) {
        co_return std::unexpected(Problem{.status = fop::Status::kWrongPool,
                                          .answered = true,
                                          .words = "there is no pool of that name"});
    }
    co_return std::move(pools);
}

namespace {

using Run = ObjectRun;

using Entries = std::vector<ObjectPage::Entry>;

// Those of the entries whose disk is missing. Only these, and objects that the key may not read,
// have no size.
Task<Outcome<Entries>> keep_missing(Run* run, Entries entries) {
    Entries left;
    for (ObjectPage::Entry& each : entries) {
        if (each.size_bytes != fop::kSizeUnknown) continue;
        const auto missing = co_await run->objects.is_on_missing_disk(each.fid, run->wait());
        if (!missing) co_return std::unexpected(missing.error());
        if (*missing) left.push_back(std::move(each));
    }
    co_return left;
}

constexpr std::string_view kListBegin = R"({"objects":[)";
constexpr std::string_view kListEnd = "]}\n";

// Closes the list after a failure. If nothing of it was printed, prints an empty list if the list
// is whole, and nothing otherwise. False: the end could not be printed.
bool end_list(const Run& run, bool is_first, bool is_whole) {
    if (run.call.output != Output::kJson || (is_first && !is_whole)) return true;
    return print(std::string(is_first ? kListBegin : "") + std::string(kListEnd));
}

// Prints page by page, so that memory does not grow with the number of names.
Task<int> list(Run* run) {
    const Output output = run->call.output;
    ObjectClient::ListWish wish{.pool = run->arguments.pool, .prefix = run->arguments.prefix};
    bool is_first = true;      // The page.
    bool needs_comma = false;  // Before the next object.
    for (;;) {
        ObjectClient::ListWish next = wish;
        auto page = co_await run->objects.list(std::move(next), run->wait());
        if (!page) {
            // With a disk missing, the names on the other disks were all listed before.
            const bool is_whole = page.error().status == fop::Status::kMediumMissing;
            if (!end_list(*run, is_first, is_whole)) co_return kExitRefused;
            if (is_whole && run->arguments.missing) {
                client::remark("ls: " + page.error().words);
                co_return kExitDone;
            }
            if (is_misuse(page.error())) co_return run->complain_about(page.error());
            co_return run->complain_about(run->arguments.prefix, page.error());
        }
        if (run->arguments.missing) {
            auto left = co_await keep_missing(run, std::move(page->entries));
            if (!left) {
                if (!end_list(*run, is_first, false)) co_return kExitRefused;
                co_return run->complain_about(run->arguments.prefix, left.error());
            }
            page->entries = std::move(*left);
        }
        std::string text;
        if (is_first && output == Output::kJson) text = kListBegin;
        for (const ObjectPage::Entry& entry : page->entries) {
            if (output == Output::kPage) text += line_of(entry, run->arguments.is_long);
            if (output == Output::kJson)
                text += std::string(needs_comma ? run->call.list_separator() : "") +
                        dumped(json_of(entry));
            needs_comma = true;
        }
        if (page->end && output == Output::kJson) text += kListEnd;
        if (!print(text)) co_return kExitRefused;
        is_first = false;
        if (page->end) co_return kExitDone;
        wish.cursor = page->cursor;
    }
}

// Prints the object as the list of all objects has it, and nothing if it has no name.
Task<int> list_by_fid(Run* run) {
    const auto info = co_await find_by_fid(run);
    if (!info) co_return run->complain_about(run->arguments.fid, info.error());
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    std::string page;
    if (!info->name.empty()) {
        const ObjectPage::Entry entry{.fid = info->fid,
                                      .size_bytes = info->size_bytes,
                                      .changed_ns = info->changed_ns,
                                      .name = info->name};
        list.push_back(json_of(entry));
        page = line_of(entry, run->arguments.is_long);
    }
    co_return show(run->call, dumped({{"objects", list}}), [&] { return page; });
}

std::string space_page(const nlohmann::json& pools) {
    std::string page = table(pools, {{"POOL", "pool"},
                                     {"CAPACITY", "capacity", size_shown},
                                     {"USED", "used", size_shown},
                                     {"FREE", "free", size_shown},
                                     {"OBJECTS", "objects"}});
    for (const nlohmann::json& each : pools) {
        const auto missing = each.at("missing_disks").get<std::uint32_t>();
        if (missing == 0) continue;
        page += shown(each.at("pool")) + ": " + std::to_string(missing) +
                (missing == 1 ? " disk is missing; it is" : " disks are missing; they are") +
                " not in these figures\n";
    }
    return page;
}

Task<int> free_space(Run* run) {
    const auto pools = co_await find_pools(run);
    if (!pools) co_return run->complain_about(pools.error());
    const auto missing = co_await run->objects.missing_disks(run->wait());
    if (!missing) co_return run->complain_about(missing.error());
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const PoolSpace& each : *pools) {
        const auto of_pool = missing->find(each.pool);
        all.push_back({{"pool", each.pool},
                       {"capacity", each.total_bytes},
                       {"used", each.used_bytes},
                       {"free", each.free_bytes},
                       {"objects", each.objects},
                       {"missing_disks", of_pool == missing->end() ? 0 : of_pool->second}});
    }
    co_return show(run->call, dumped({{"pools", all}}), [&] { return space_page(all); });
}

nlohmann::ordered_json limit_json(std::uint64_t limit) {
    return limit == QuotaUse::kNoLimit ? nlohmann::ordered_json(nullptr)
                                       : nlohmann::ordered_json(limit);
}

std::string quota_table(const nlohmann::json& uses) {
    return table(uses, {{"POOL", "pool"},
                        {"OWNER", "owner",
                         [](const nlohmann::json& owner) {
                             return owner.is_null() ? std::string("(all)") : shown(owner);
                         }},
                        {"USED", "used", size_shown},
                        {"QUOTA", "quota",
                         [](const nlohmann::json& limit) {
                             return limit.is_null() ? std::string("none") : size_shown(limit);
                         }},
                        {"OBJECTS", "objects"},
                        {"OBJECT QUOTA", "objects_quota", [](const nlohmann::json& limit) {
                             return limit.is_null() ? std::string("none") : shown(limit);
                         }}});
}

Task<int> show_quota(Run* run) {
    const auto uses = co_await run->objects.quota(run->arguments.pool, run->wait());
    if (!uses) co_return run->complain_about(uses.error());
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const QuotaUse& each : *uses) {
        const nlohmann::ordered_json owner =
            each.owner ? nlohmann::ordered_json(*each.owner) : nlohmann::ordered_json(nullptr);
        all.push_back({{"pool", each.pool},
                       {"owner", owner},
                       {"used", each.used_bytes},
                       {"quota", limit_json(each.limit_bytes)},
                       {"objects", each.used_objects},
                       {"objects_quota", limit_json(each.limit_objects)}});
    }
    co_return show(run->call, dumped({{"quotas", all}}), [&] { return quota_table(all); });
}

}  // namespace

int run_list(const Call& call) {
    return run_object_verb(call, call.arguments.fid.empty() ? &list : &list_by_fid);
}

int run_free_space(const Call& call) {
    return run_object_verb(call, &free_space);
}

int run_quota(const Call& call) {
    return run_object_verb(call, &show_quota);
}

}  // namespace fopd::client
