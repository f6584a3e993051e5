// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/command_line.h"
#include "client/exit_code.h"
#include "client/local_file.h"
#include "client/object_page.h"
#include "client/object_run.h"
#include "client/progress_line.h"
#include "client/table.h"
#include "client/transfer.h"
#include "client/verb.h"
#include "client/verbs_tree.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

using Run = ObjectRun;

template <Run::Body Verb>
int run_verb(const Call& call) {
    return run_object_verb(call, Verb);
}

// For a verb about one object, and about a tree of them.
template <Run::Body One, int (*Tree)(const Call&)>
int run_verb_or_tree(const Call& call) {
    return call.arguments.recursive ? Tree(call) : run_object_verb(call, One);
}

// For a verb about one object, which is looked up first.
template <Task<int> (*Body)(Run*, ObjectInfo)>
Task<int> on_object(Run* run) {
    auto info = co_await run->find(run->name());
    if (!info) co_return run->complain_about(info.error());
    co_return co_await Body(run, std::move(*info));
}

// -- what verbs take --

CLI::Option* declare_pool(CLI::App& app, VerbArguments& arguments) {
    return app.add_option("--pool", arguments.pool,
                          "The pool; by default the server's default pool");
}
void declare_pool_only(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
}
CLI::Option* declare_name(CLI::App& app, VerbArguments& arguments, const char* option = "name") {
    return app.add_option_function<std::string>(
        option, [&arguments](const std::string& name) { arguments.names = {name}; },
        "The object's name");
}
CLI::Option* declare_size(CLI::App& app, const char* option, std::uint64_t& value,
                          const char* summary) {
    return app.add_option(option, value, summary)->transform(size_between(0, fop::kOffsetMax));
}
CLI::Option* declare_length(CLI::App& app, VerbArguments& arguments, const char* summary) {
    return app
        .add_option_function<std::uint64_t>(
            "--length", [&arguments](const std::uint64_t& value) { arguments.length = value; },
            summary)
        ->transform(size_between(0, fop::kOffsetMax));
}

void declare_one(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    declare_name(app, arguments)->required();
}
CLI::Option* declare_recursive(CLI::App& app, VerbArguments& arguments, const char* summary) {
    return app.add_flag("-r,--recursive", arguments.recursive, summary);
}
void declare_put(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    app.add_option("file", arguments.file, "The file, or - for standard input")->required();
    declare_name(app, arguments)->required();
    app.add_option("--group", arguments.group, "The group whose members may read it");
    app.add_flag("--no-replace", arguments.no_replace, "Fail if an object of that name exists");
    declare_recursive(app, arguments, "Store all files of a directory, below the name");
    declare_explain(app, arguments);
}
void declare_get(CLI::App& app, VerbArguments& arguments) {
    declare_one(app, arguments);
    app.add_option("file", arguments.file, "The file, or - for standard output")->required();
    declare_recursive(app, arguments, "Fetch all objects below the name into a directory");
    declare_explain(app, arguments);
}
void declare_read(CLI::App& app, VerbArguments& arguments) {
    declare_one(app, arguments);
    declare_size(app, "--offset", arguments.offset, "The offset, such as 4k or 1M");
    declare_length(app, arguments, "The length; by default up to the end");
    declare_explain(app, arguments);
}
void declare_write(CLI::App& app, VerbArguments& arguments) {
    declare_one(app, arguments);
    declare_size(app, "--offset", arguments.offset, "The offset, such as 4k or 1M")->required();
    app.add_flag("--buffered", arguments.buffered, "Do not wait until it is durable");
}
CLI::Option* declare_fid(CLI::App& app, VerbArguments& arguments) {
    return app
        .add_option("--fid", arguments.fid,
                    "The fid of the object, in any pool, instead of its name")
        ->check([](const std::string& text) {
            return std::string(parse_fid(text) ? "" : "must be the 32 hexadecimal digits of a fid");
        });
}
void declare_stat(CLI::App& app, VerbArguments& arguments) {
    auto* const pool = declare_pool(app, arguments);
    auto* const name = declare_name(app, arguments);
    declare_fid(app, arguments)->excludes(pool)->excludes(name);
}
void declare_ls(CLI::App& app, VerbArguments& arguments) {
    auto* const pool = declare_pool(app, arguments);
    auto* const prefix = app.add_option("prefix", arguments.prefix, "The beginning of the names");
    declare_fid(app, arguments)->excludes(pool)->excludes(prefix);
    app.add_flag("--long", arguments.is_long, "Sizes and times, too");
}
void declare_mv(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    declare_name(app, arguments, "old")->required();
    app.add_option("new", arguments.new_name, "Its new name")->required();
    app.add_flag("--no-replace", arguments.no_replace, "Fail if an object of that name exists");
}
void declare_rm(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    auto* const names = app.add_option("name", arguments.names, "The objects' names");
    auto* const recursive = declare_recursive(app, arguments, "Remove all objects below the names");
    app.add_flag("--yes", arguments.is_sure, "Do not ask, with --recursive")->needs(recursive);
    app.add_flag("--all", arguments.all, "All objects of the pool, with --recursive")
        ->needs(recursive)
        ->excludes(names);
}
void declare_chmod(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    const auto read_mode = [&arguments](const std::string& text) {
        const char* const end = text.data() + text.size();
        const auto [at, error] = std::from_chars(text.data(), end, arguments.mode, 8);
        if (error == std::errc() && at == end && arguments.mode <= fop::kModeMax) return;
        throw CLI::ValidationError("mode", "it is nine permission bits in octal, such as 640");
    };
    app.add_option_function<std::string>("mode", read_mode, "In octal, such as 640")->required();
    declare_name(app, arguments)->required();
}
void declare_chown(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    app.add_option("owner", arguments.owner, "OWNER, OWNER:GROUP or :GROUP")
        ->check([](const std::string& text) {
            return std::string(text.empty() ? "nobody is named" : "");
        })
        ->required();
    declare_name(app, arguments)->required();
}
void declare_truncate(CLI::App& app, VerbArguments& arguments) {
    declare_one(app, arguments);
    declare_size(app, "size", arguments.offset, "Its new size, such as 4k or 1M")->required();
}
void declare_punch(CLI::App& app, VerbArguments& arguments) {
    declare_one(app, arguments);
    declare_size(app, "--offset", arguments.offset, "The offset, such as 4k or 1M")->required();
    declare_length(app, arguments, "The length")->required();
}
void declare_sync(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    declare_name(app, arguments)->description("One object; by default all objects");
}

// -- whole objects --

Task<int> put(Run* run) {
    auto source = LocalSource::open(run->local(), run->arguments.file);
    if (!source) {
        complain("put: " + source.error());
        co_return kExitUsage;
    }
    NewObject object{.name = run->name(),
                     .pool = run->arguments.pool,
                     .group = run->arguments.group,
                     .no_replace = run->arguments.no_replace};
    Put transfer(run->reactor, run->objects, **source, run->transfer());
    ProgressLine line(run->reactor, transfer, run->progress((*source)->size_bytes()));
    auto fid = co_await transfer.run(std::move(object));
    co_await line.close();
    if (!fid) co_return run->complain_about(fid.error());
    co_return run->done(
        {{"name", run->name()}, {"fid", hex_of(*fid)}, {"size", transfer.moved_bytes()}});
}

// Copies the range of the object, as far as the object reaches, into the file.
Task<int> copy_range(Run* run, ObjectInfo info, fop::Range wanted) {
    auto sink = LocalSink::open(run->local(), run->arguments.file);
    if (!sink) {
        complain(std::string(run->call.verb) + ": " + sink.error());
        co_return kExitUsage;
    }
    const fop::Range range = fop::within(wanted, info.size_bytes);
    Get transfer(run->reactor, run->objects, **sink, run->transfer());
    ProgressLine line(run->reactor, transfer, run->progress(range.length));
    auto got = co_await transfer.run(info.fid, range);
    co_await line.close();
    if (!got) co_return run->complain_about(got.error());
    const bool is_whole = run->call.verb == "get";
    if (is_whole && *got != info.size_bytes) {
        complain("get: " + core::printable(run->name()) + ": it became shorter in the meantime");
        co_return kExitTryLater;
    }
    if (auto finished = (*sink)->finish(); !finished) {
        co_return run->complain_about(finished.error());
    }
    const bool is_output = run->arguments.file == "-";
    if (is_output) co_return kExitDone;  // Standard output has the bytes alone.
    co_return run->done({{"name", run->name()}, {"fid", hex_of(info.fid)}, {"size", *got}});
}

Task<int> get(Run* run, ObjectInfo info) {
    const fop::Range whole{.offset = 0, .length = info.size_bytes};
    co_return co_await copy_range(run, std::move(info), whole);
}

Task<int> read(Run* run, ObjectInfo info) {
    const std::uint64_t offset = run->arguments.offset;
    const fop::Range wanted{.offset = offset,
                            .length = std::min(run->arguments.length.value_or(fop::kOffsetMax),
                                               fop::kOffsetMax - offset)};
    co_return co_await copy_range(run, std::move(info), wanted);
}

int run_read(const Call& call) {
    Call to_output = call;
    to_output.arguments.file = "-";
    return run_object_verb(to_output, &on_object<read>);
}

// -- parts of objects --

Task<int> write(Run* run, ObjectInfo info) {
    auto source = LocalSource::open(run->local(), "-");
    if (!source) {
        complain("write: " + source.error());
        co_return kExitUsage;
    }
    const auto durability =
        run->arguments.buffered ? fop::Durability::kBuffered : fop::Durability::kDurable;
    Overwrite transfer(run->reactor, run->objects, **source, run->transfer());
    ProgressLine line(run->reactor, transfer, run->progress((*source)->size_bytes()));
    auto written = co_await transfer.run(
        {.fid = info.fid, .offset = run->arguments.offset, .durability = durability});
    co_await line.close();
    if (!written) co_return run->complain_about(written.error());
    co_return run->done({{"name", run->name()},
                         {"offset", run->arguments.offset},
                         {"size", transfer.moved_bytes()}});
}

Task<int> append(Run* run, ObjectInfo info) {
    auto source = LocalSource::open(run->local(), "-");
    if (!source) {
        complain("append: " + source.error());
        co_return kExitUsage;
    }
    Appending transfer(run->reactor, run->objects, **source, run->transfer());
    ProgressLine line(run->reactor, transfer, run->progress((*source)->size_bytes()));
    auto first = co_await transfer.run(info.fid);
    co_await line.close();
    if (!first) {
        Problem problem = std::move(first.error());
        if (transfer.moved_bytes() > 0) {
            problem.words +=
                "; the first " + std::to_string(transfer.moved_bytes()) + " bytes are appended";
        }
        co_return run->complain_about(problem);
    }
    nlohmann::ordered_json object{{"name", run->name()}, {"offset", nullptr}};
    if (*first) object["offset"] = **first;
    object["size"] = transfer.moved_bytes();
    co_return run->done(object);
}

Task<int> truncate(Run* run, ObjectInfo info) {
    auto done = co_await run->objects.truncate(info.fid, run->arguments.offset, run->wait());
    co_return run->done(done, {{"name", run->name()}, {"size", run->arguments.offset}});
}

Task<int> punch(Run* run, ObjectInfo info) {
    const fop::Range range{.offset = run->arguments.offset, .length = *run->arguments.length};
    auto done = co_await run->objects.punch(info.fid, range, run->wait());
    co_return run->done(
        done, {{"name", run->name()}, {"offset", range.offset}, {"length", range.length}});
}

// -- attributes --

Task<int> change(Run* run, ObjectInfo info, ObjectClient::AttributeWish wish) {
    auto done = co_await run->objects.set_attributes(info.fid, std::move(wish), run->wait());
    co_return run->done(done, {{"name", run->name()}, {"fid", hex_of(info.fid)}});
}

Task<int> change_mode(Run* run, ObjectInfo info) {
    ObjectClient::AttributeWish wish;
    wish.mode = run->arguments.mode;
    co_return co_await change(run, std::move(info), std::move(wish));
}

// The owner stands before the colon, the group behind it.
Task<int> change_owner(Run* run, ObjectInfo info) {
    const std::string& text = run->arguments.owner;
    const std::size_t colon = text.find(':');
    ObjectClient::AttributeWish wish;
    if (colon != 0) wish.owner = text.substr(0, colon);
    if (colon != std::string::npos) wish.group = text.substr(colon + 1);
    co_return co_await change(run, std::move(info), std::move(wish));
}

// -- all of it --

// The pool that the arguments name, or all pools.
Task<Outcome<std::vector<PoolSpace>>> find_pools(Run* run) {
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

Task<int> sync_object(Run* run, ObjectInfo info) {
    const fop::Fid fid = info.fid;
    auto done = co_await run->objects.sync_object(std::move(info), run->wait());
    co_return run->done(done, {{"name", run->name()}, {"fid", hex_of(fid)}});
}

Task<int> sync(Run* run) {
    if (run->arguments.names.empty()) {
        const auto pools = co_await find_pools(run);
        if (!pools) co_return run->complain_about(pools.error());
        auto done = co_await run->objects.sync_node(run->wait());
        co_return run->done(done, nlohmann::ordered_json::object());
    }
    co_return co_await on_object<&sync_object>(run);
}

// -- names --

// Prints page by page, so that memory does not grow with the number of names.
Task<int> list(Run* run) {
    const Output output = run->call.output;
    ObjectClient::ListWish wish{.pool = run->arguments.pool, .prefix = run->arguments.prefix};
    bool is_first = true;
    for (;;) {
        ObjectClient::ListWish next = wish;
        auto page = co_await run->objects.list(std::move(next), run->wait());
        if (!page) {
            // With a disk missing, the names on the other disks were all listed before.
            const bool is_whole = page.error().status == fop::Status::kMediumMissing;
            const bool is_open = is_whole && output == Output::kJson;
            if (is_open && !print(is_first ? "[]\n" : "]\n")) co_return kExitRefused;
            if (is_misuse(page.error())) co_return run->complain_about(page.error());
            co_return run->complain_about(run->arguments.prefix, page.error());
        }
        std::string text;
        for (const ObjectPage::Entry& entry : page->entries) {
            if (output == Output::kPage) text += line_of(entry, run->arguments.is_long);
            if (output == Output::kJson) text += (is_first ? "[" : ",\n") + dumped(json_of(entry));
            is_first = false;
        }
        if (page->end && output == Output::kJson) text += is_first ? "[]\n" : "]\n";
        if (!print(text)) co_return kExitRefused;
        if (page->end) co_return kExitDone;
        wish.cursor = page->cursor;
    }
}

// The object that has the fid of --fid.
Task<Outcome<ObjectInfo>> find_by_fid(Run* run) {
    const auto fid = parse_fid(run->arguments.fid);
    if (!fid) co_return failed(fop::Status::kNotFound, "that is not the fid of an object");
    co_return co_await run->objects.stat(*fid, run->wait());
}

int show_object(const Call& call, const ObjectInfo& info) {
    return show(call, dumped(json_of(info)), [&] { return page_of(info); });
}

Task<int> stat(Run* run, ObjectInfo info) {
    co_return show_object(run->call, info);
}

Task<int> stat_by_fid(Run* run) {
    const auto info = co_await find_by_fid(run);
    if (!info) co_return run->complain_about(run->arguments.fid, info.error());
    co_return show_object(run->call, *info);
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
    co_return show(run->call, dumped(list), [&] { return page; });
}

Task<int> move(Run* run, ObjectInfo info) {
    ObjectClient::RenameWish wish{.fid = info.fid,
                                  .pool = run->arguments.pool,
                                  .from = run->name(),
                                  .name = run->arguments.new_name,
                                  .no_replace = run->arguments.no_replace};
    auto done = co_await run->objects.rename(std::move(wish), run->wait());
    if (!done) {
        const bool is_taken = done.error().status == fop::Status::kExists;
        const std::string& what = is_taken ? run->arguments.new_name : run->name();
        co_return run->complain_about(what, done.error());
    }
    co_return run->done({{"name", run->arguments.new_name}, {"fid", hex_of(info.fid)}});
}

// Goes on after a failure; the exit code is that of the first failure.
Task<int> remove(Run* run) {
    int exit_code = kExitDone;
    nlohmann::ordered_json removed = nlohmann::ordered_json::array();
    for (const std::string& name : run->arguments.names) {
        std::string from = name;
        auto info = co_await run->find(name);
        Outcome<void> done;
        if (info) {
            done = co_await run->objects.remove(info->fid, std::move(from), run->wait());
        } else {
            done = std::unexpected(std::move(info.error()));
        }
        if (done) {
            removed.push_back({{"name", name}, {"fid", hex_of(info->fid)}});
            continue;
        }
        const int failed = run->complain_about(name, done.error());
        if (exit_code == kExitDone) exit_code = failed;
        if (run->cancel.cancelled()) break;
    }
    const int printed = run->done(removed);
    co_return exit_code == kExitDone ? printed : exit_code;
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
    co_return show(run->call, dumped(all), [&] { return space_page(all); });
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
                        {"QUOTA", "objects_quota", [](const nlohmann::json& limit) {
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
    co_return show(run->call, dumped(all), [&] { return quota_table(all); });
}

int run_stat(const Call& call) {
    const bool has_name = !call.arguments.names.empty();
    if (!has_name && call.arguments.fid.empty()) {
        return complain_about(call, "name is required; see fopctl stat --help", kExitUsage);
    }
    return run_object_verb(call, has_name ? &on_object<stat> : &stat_by_fid);
}

int run_list(const Call& call) {
    return run_object_verb(call, call.arguments.fid.empty() ? &list : &list_by_fid);
}

int run_remove(const Call& call) {
    if (call.arguments.names.empty() && !call.arguments.all) {
        return complain_about(call, "name is required; see fopctl rm --help", kExitUsage);
    }
    return run_verb_or_tree<remove, remove_tree>(call);
}

constexpr std::array kObjectVerbs{
    Verb{"put", "Store a file as an object, durably",
         "put results.tar 2026/results.tar\nput -r results 2026/", kTimeoutDefault, declare_put,
         run_verb_or_tree<put, put_tree>},
    Verb{"get", "Fetch an object into a file",
         "get 2026/results.tar results.tar\nget -r 2026/ results", kTimeoutDefault, declare_get,
         run_verb_or_tree<on_object<get>, get_tree>},
    Verb{"read", "Print a range of an object", "read log --offset 1M --length 4k", kTimeoutDefault,
         declare_read, run_read},
    Verb{"write", "Write standard input into an object, at an offset",
         "write table --offset 1M <page", kTimeoutDefault, declare_write,
         run_verb<on_object<write>>},
    Verb{"append", "Append standard input to an object", "append log <lines", kTimeoutDefault,
         declare_one, run_verb<on_object<append>>},
    Verb{"ls", "List objects by name", "ls 2026/ --long\nls --fid 0001000000000002247c070000000001",
         kTimeoutDefault, declare_ls, run_list},
    Verb{"stat", "Show size, owner, mode and times of an object",
         "stat 2026/results.tar\nstat --fid 0001000000000002247c070000000001", kTimeoutDefault,
         declare_stat, run_stat},
    Verb{"mv", "Rename an object", "mv draft final", kTimeoutDefault, declare_mv,
         run_verb<on_object<move>>},
    Verb{"rm", "Remove objects", "rm old-1 old-2\nrm -r 2025/", kTimeoutDefault, declare_rm,
         run_remove},
    Verb{"truncate", "Set the size of an object", "truncate log 0", kTimeoutDefault,
         declare_truncate, run_verb<on_object<truncate>>},
    Verb{"punch", "Make a hole in an object", "punch table --offset 1M --length 64k",
         kTimeoutDefault, declare_punch, run_verb<on_object<punch>>},
    Verb{"chmod", "Change the permissions of an object", "chmod 640 results", kTimeoutDefault,
         declare_chmod, run_verb<on_object<change_mode>>},
    Verb{"chown", "Change the owner or group of an object", "chown ann:staff results",
         kTimeoutDefault, declare_chown, run_verb<on_object<change_owner>>},
    Verb{"sync", "Wait until buffered writes are durable", "sync", kTimeoutDefault, declare_sync,
         run_verb<sync>},
    Verb{"df", "Show the free and used space of the pools", "df --pool fast", kTimeoutDefault,
         declare_pool_only, run_verb<free_space>},
    Verb{"quota", "Show what you use of your quota in each pool", "quota", kTimeoutDefault,
         declare_pool_only, run_verb<show_quota>},
};

}  // namespace

std::span<const Verb> object_verbs() {
    return kObjectVerbs;
}

}  // namespace fopd::client
