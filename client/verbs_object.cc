// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
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
#include "client/verbs_list.h"
#include "client/verbs_tree.h"
#include "client/watched_call.h"
#include "core/printable.h"
#include "fop/hex.h"

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

// -- options of verbs --

void declare_pool_only(CLI::App& app, VerbArguments& arguments) {
    app.add_option("--pool", arguments.pool, "Only this pool; by default all pools");
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
void declare_put(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    app.add_option("file", arguments.file, "The file, or - for standard input")->required();
    declare_name(app, arguments)->required();
    app.add_option("--group", arguments.group, "The group whose members may read the object");
    declare_collection(app, arguments);
    app.add_flag("--no-replace", arguments.no_replace, "Fail if an object of that name exists");
    declare_skipping(
        app, arguments,
        declare_recursive(app, arguments, "Store all files of a directory, below the name"));
    declare_explain(app, arguments);
}
void declare_get(CLI::App& app, VerbArguments& arguments) {
    declare_one(app, arguments);
    app.add_option("file", arguments.file, "The file, or - for standard output")->required();
    declare_skipping(
        app, arguments,
        declare_recursive(app, arguments, "Fetch all objects below the name into a directory"));
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
    app.add_flag("--buffered", arguments.buffered, "Do not wait until the data are durable");
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
    auto* const missing =
        app.add_flag("--missing", arguments.missing,
                     "List only objects whose disk is missing; their data cannot be read");
    declare_fid(app, arguments)->excludes(pool)->excludes(prefix)->excludes(missing);
    app.add_flag("--long", arguments.is_long, "Also show sizes and times");
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
    app.add_flag("--yes", arguments.is_sure, "With --recursive: do not ask")->needs(recursive);
    app.add_flag("--all", arguments.all, "With --recursive: remove all objects of the pool")
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
    app.add_option_function<std::string>("mode", read_mode, "The permissions in octal, such as 640")
        ->required();
    declare_name(app, arguments)->required();
}
void declare_chown(CLI::App& app, VerbArguments& arguments) {
    declare_pool(app, arguments);
    app.add_option("owner", arguments.owner,
                   "The new owner or group, as OWNER, OWNER:GROUP or :GROUP")
        ->check([](const std::string& text) {
            return std::string(text.empty() ? "must name an owner or a group" : "");
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
        std::error_code failed;
        const bool is_directory = std::filesystem::is_directory(run->arguments.file, failed);
        complain("put: " + source.error() +
                 (is_directory ? "; use put -r, which stores its files under a prefix" : ""));
        co_return kExitUsage;
    }
    NewObject object{.name = run->name(),
                     .pool = run->arguments.pool,
                     .group = run->arguments.group,
                     .no_replace = run->arguments.no_replace,
                     .collection = run->arguments.collection};
    Put transfer(run->reactor, run->objects, **source, run->transfer());
    ProgressLine line(run->reactor, transfer, run->progress((*source)->size_bytes()));
    auto fid = co_await transfer.run(std::move(object));
    co_await line.close();
    if (!fid) co_return run->complain_about(fid.error());
    const auto checked = co_await (*source)->check_unchanged(transfer.size_bytes());
    if (!checked) {
        note_error_code("file");
        co_return complain_about(run->call, checked.error().words, kExitRefused);
    }
    co_return run->done(
        {{"name", run->name()}, {"fid", fop::to_hex(*fid)}, {"size", transfer.moved_bytes()}});
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
    co_return run->done({{"name", run->name()}, {"fid", fop::to_hex(info.fid)}, {"size", *got}});
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

Task<int> change_object(Run* run, ObjectInfo info, ObjectClient::AttributeWish wish) {
    auto done = co_await run->objects.set_attributes(info.fid, std::move(wish), run->wait());
    co_return run->done(done, {{"name", run->name()}, {"fid", fop::to_hex(info.fid)}});
}

Task<int> change_mode(Run* run, ObjectInfo info) {
    ObjectClient::AttributeWish wish;
    wish.mode = run->arguments.mode;
    co_return co_await change_object(run, std::move(info), std::move(wish));
}

// The owner stands before the colon, the group behind it.
Task<int> change_owner(Run* run, ObjectInfo info) {
    const std::string& text = run->arguments.owner;
    const std::size_t colon = text.find(':');
    ObjectClient::AttributeWish wish;
    if (colon != 0) wish.owner = text.substr(0, colon);
    if (colon != std::string::npos) wish.group = text.substr(colon + 1);
    co_return co_await change_object(run, std::move(info), std::move(wish));
}

// -- all of it --

Task<int> sync_object(Run* run, ObjectInfo info) {
    const fop::Fid fid = info.fid;
    auto done = co_await run->objects.sync_object(std::move(info), run->wait());
    co_return run->done(done, {{"name", run->name()}, {"fid", fop::to_hex(fid)}});
}

// With the name of a tape pool, until all of it is on tape.
Task<Outcome<void>> sync_tape(Run* run) {
    std::string pool = run->arguments.pool;
    if (pool.empty()) co_return {};
    const auto known = co_await run->objects.known_pool(pool, run->wait());
    if (!known) co_return std::unexpected(known.error());
    if (!known->is_staged) co_return {};
    auto call = run->objects.tape().sync(pool, run->wait());
    co_return co_await watched(run, std::move(pool), std::move(call));
}

Task<int> sync(Run* run) {
    if (run->arguments.names.empty()) {
        const auto pools = co_await find_pools(run);
        if (!pools) co_return run->complain_about(pools.error());
        auto done = co_await run->objects.sync_node(run->wait());
        if (done) done = co_await sync_tape(run);
        co_return run->done(done, nlohmann::ordered_json::object());
    }
    co_return co_await on_object<&sync_object>(run);
}

// -- names --

Task<int> stat(Run* run, ObjectInfo info) {
    const auto copies = co_await run->objects.tape().copies(info.fid, run->wait());
    if (!copies) co_return run->complain_about(copies.error());
    const auto page = [&] { return page_of(info, *copies); };
    co_return show(run->call, dumped(json_of(info, *copies)), page);
}

Task<int> stat_by_fid(Run* run) {
    auto info = co_await find_by_fid(run);
    if (!info) co_return run->complain_about(run->arguments.fid, info.error());
    co_return co_await stat(run, std::move(*info));
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
    co_return run->done({{"name", run->arguments.new_name}, {"fid", fop::to_hex(info.fid)}});
}

// Finds the object to remove. A user may be allowed to remove an object but not to read it: a
// lookup is refused then, but a list has the id of the object.
Task<Outcome<fop::Fid>> find_to_remove(Run* run, std::string name) {
    std::string looked_up = name;
    auto info = co_await run->find(std::move(looked_up));
    if (info) co_return info->fid;
    if (info.error().status != fop::Status::kDenied) co_return std::unexpected(info.error());
    ObjectClient::ListWish wish{.pool = run->arguments.pool, .prefix = name};
    const auto page = co_await run->objects.list(std::move(wish), run->wait());
    // No name that begins so comes before the name itself.
    const bool is_there = page && !page->entries.empty() && page->entries.front().name == name;
    if (!is_there) co_return std::unexpected(info.error());
    co_return page->entries.front().fid;
}

// Goes on after a failure; the exit code is that of the first failure.
Task<int> remove(Run* run) {
    int exit_code = kExitDone;
    nlohmann::ordered_json removed = nlohmann::ordered_json::array();
    for (const std::string& name : run->arguments.names) {
        std::string wanted = name;
        const auto fid = co_await find_to_remove(run, std::move(wanted));
        std::string from = name;
        Outcome<void> done;
        if (fid) {
            done = co_await run->objects.remove(*fid, std::move(from), run->wait());
        } else {
            done = std::unexpected(fid.error());
        }
        if (done) {
            removed.push_back({{"name", name}, {"fid", fop::to_hex(*fid)}});
            continue;
        }
        const int failed = run->complain_about(name, done.error());
        if (exit_code == kExitDone) exit_code = failed;
        if (run->cancel.cancelled()) break;
    }
    const int printed = run->done({{"removed", removed}});
    co_return exit_code == kExitDone ? printed : exit_code;
}

int run_stat(const Call& call) {
    const bool has_name = !call.arguments.names.empty();
    if (!has_name && call.arguments.fid.empty()) {
        return complain_about(call, "name is required; see fopctl stat --help", kExitUsage);
    }
    return run_object_verb(call, has_name ? &on_object<stat> : &stat_by_fid);
}

int run_remove(const Call& call) {
    if (call.arguments.names.empty() && !call.arguments.all) {
        return complain_about(call, "name is required; see fopctl rm --help", kExitUsage);
    }
    return run_verb_or_tree<remove, remove_tree>(call);
}

constexpr std::array kObjectVerbs{
    Verb{"put", "Store a file as an object, durably",
         "put results.tar 2026/results.tar\nput -r results 2026/\nput -r --dry-run results 2026/",
         kTimeoutDefault, declare_put, run_verb_or_tree<put, put_tree>},
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
    Verb{"ls", "List objects by name",
         "ls 2026/ --long\nls --missing\nls --fid 0001000000000002247c070000000001",
         kTimeoutDefault, declare_ls, run_list},
    Verb{"stat", "Show size, owner, mode and times of an object",
         "stat 2026/results.tar\nstat --fid 0001000000000002247c070000000001", kTimeoutDefault,
         declare_stat, run_stat},
    Verb{"mv", "Rename an object", "mv draft final", kTimeoutDefault, declare_mv,
         run_verb<on_object<move>>},
    Verb{"rm", "Remove objects", "rm old-1 old-2\nrm -r 2025/\nrm -r --dry-run 2025/",
         kTimeoutDefault, declare_rm, run_remove},
    Verb{"truncate", "Set the size of an object", "truncate log 0", kTimeoutDefault,
         declare_truncate, run_verb<on_object<truncate>>},
    Verb{"punch", "Make a hole in an object", "punch table --offset 1M --length 64k",
         kTimeoutDefault, declare_punch, run_verb<on_object<punch>>},
    Verb{"chmod", "Change the permissions of an object", "chmod 640 results", kTimeoutDefault,
         declare_chmod, run_verb<on_object<change_mode>>},
    Verb{"chown", "Change the owner or group of an object", "chown ann:staff results",
         kTimeoutDefault, declare_chown, run_verb<on_object<change_owner>>},
    Verb{"sync", "Wait until acknowledged writes are durable", "sync", kTimeoutDefault,
         declare_sync, run_verb<sync>},
    Verb{"df", "Show the free and used space of the pools", "df --pool fast", kTimeoutDefault,
         declare_pool_only, run_free_space},
    Verb{"quota", "Show what you use of your quota in each pool", "quota", kTimeoutDefault,
         declare_pool_only, run_quota},
};

}  // namespace

std::span<const Verb> object_verbs() {
    return kObjectVerbs;
}

}  // namespace fopd::client
