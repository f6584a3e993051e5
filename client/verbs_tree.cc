// SPDX-License-Identifier: BSD-2-Clause
#include "client/verbs_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "client/exit_code.h"
#include "client/object_run.h"
#include "client/object_tree.h"
#include "client/put_journal.h"
#include "client/replaced_file.h"
#include "client/request_fault.h"
#include "client/table.h"
#include "client/tree_quota.h"
#include "client/tree_report.h"
#include "core/printable.h"
#include "fop/name.h"

namespace fopd::client {

namespace {

// The prefix of the names of all objects in a tree; empty: the tree is all objects.
std::string prefix_of(const std::string& name) {
    return name.empty() || name.ends_with('/') ? name : name + "/";
}

// Runs the verb, unless no server would take its arguments: each object would fail.
int run_checked(const Call& call, ObjectRun::Body body) {
    const VerbArguments& arguments = call.arguments;
    std::string fault = fault_of_name("pool", arguments.pool);
    if (fault.empty()) fault = fault_of_name("group", arguments.group);
    if (fault.empty()) fault = fault_of_name("collection", arguments.collection);
    if (fault.empty()) fault = fault_of_name("job", call.remote.job);
    if (fault.empty() && !arguments.prefix.empty()) {
        const auto good = fop::check_object_name(arguments.prefix);
        if (!good) fault = core::printable(arguments.prefix) + ": " + good.error().context;
    }
    if (!fault.empty()) return complain_about(call, fault, kExitUsage);
    return run_object_verb(call, body);
}

TreeTransfer::Options transfer_options(ObjectRun* run) {
    using Skip = TreeTransfer::Options::Skip;
    return {.patience = run->call.timeout,
            .only_plans = run->arguments.dry_run,
            .skip = run->arguments.no_skip     ? Skip::kNothing
                    : run->arguments.size_only ? Skip::kSameSize
                                               : Skip::kEqual,
            .cancel = run->cancel};
}

ObjectWalk::Options walk_options(ObjectRun* run, std::string prefix) {
    return {.pool = run->arguments.pool,
            .prefix = std::move(prefix),
            .patience = run->call.timeout,
            .cancel = &run->cancel};
}

TreeFailure nothing_found(const std::string& prefix) {
    return {.name = prefix,
            .problem = {.status = fop::Status::kNotFound,
                        .words = prefix.empty() ? "there are no objects"
                                                : "no object name begins with this prefix"}};
}

// Null: there is none, and each file is stored.
std::unique_ptr<PutJournal> open_journal(const ObjectRun& run, TreeReport& report) {
    if (run.arguments.no_replace) return nullptr;
    auto directory = whole_path(run.arguments.file);
    if (!directory) return nullptr;
    const std::string path = journal_path({.server = run.call.remote.server,
                                           .pool = run.arguments.pool,
                                           .prefix = run.arguments.prefix,
                                           .directory = std::move(*directory)});
    if (path.empty()) return nullptr;
    const bool writes = !run.arguments.dry_run;
    std::string words;
    if (const int os_errno = writes ? make_journal_directory(path) : 0; os_errno != 0) {
        words = file_words(path, os_errno);
    } else {
        auto journal =
            PutJournal::open(path, writes ? PutJournal::Access::kWrite : PutJournal::Access::kRead);
        if (journal) return std::move(*journal);
        words = std::move(journal.error());
    }
    report.remark_once(words + "; so all files are stored");
    return nullptr;
}

// Counts the objects that would be removed. It reports failures itself, because after a failure
// nothing is removed and no transfer follows.
class PlannedCount final : public TreeWatcher {
public:
    explicit PlannedCount(TreeReport& report) : report_(report) {}

    void on_failure(const TreeFailure& failure) override {
        has_failed_ = true;
        report_.on_failure(failure);
    }
    void on_skipped(std::string_view /*shown*/, std::string_view /*what*/) override {}
    void on_empty_directory(std::string_view /*shown*/) override {}
    void on_planned(const Planned& /*planned*/) override { ++count_; }
    bool has_failed() const { return has_failed_; }
    std::uint64_t count() const { return count_; }

private:
    TreeReport& report_;
    std::uint64_t count_ = 0;
    bool has_failed_ = false;
};

TreeTransfer::Options count_options(ObjectRun* run) {
    return {.patience = run->call.timeout, .only_plans = true, .cancel = run->cancel};
}

TreeTransfer::Options removal_options(ObjectRun* run) {
    return {.patience = run->call.timeout,
            .only_plans = run->arguments.dry_run,
            .items_max = run->arguments.remove_max,
            .cancel = run->cancel};
}

// Four times as many as of other transfers share each flush of the disk: a removal is all waiting.
TreeTransfer::Options object_removal_options(ObjectRun* run) {
    TreeTransfer::Options options = removal_options(run);
    options.more_in_flight = 3 * options.objects_in_flight;
    return options;
}

// Whether --max-delete allows it; otherwise that is a failure of the verb.
bool may_remove(const ObjectRun& run, TreeReport& report, const PlannedCount& count) {
    if (run.cancel.cancelled() || count.has_failed()) return false;
    const std::uint64_t most = *run.arguments.remove_max;
    if (count.count() <= most) return true;
    report.on_failure({.name = run.arguments.prefix,
                       .cause = TreeFailure::Cause::kTooMany,
                       .problem = {.status = fop::Status::kInternal,
                                   .words = "nothing is removed: --delete would remove " +
                                            std::to_string(count.count()) +
                                            ", and --max-delete allows " + std::to_string(most)}});
    return false;
}

// Removes the objects for which there is no file.
Task<void> remove_other_objects(ObjectRun* run, TreeReport* report,
                                std::vector<std::string>* names) {
    if (names->empty()) {
        const TreeFailure failure{
            .name = run->arguments.prefix,
            .cause = TreeFailure::Cause::kFile,
            .problem = {.status = fop::Status::kInternal,
                        .words = core::printable(run->arguments.file) +
                                 ": no file is in it, so nothing is removed"}};
        report->on_failure(failure);
        co_return;
    }
    std::ranges::sort(*names);
    if (run->arguments.remove_max) {
        PlannedCount count(*report);
        ObjectWalk walk(run->reactor, run->objects, walk_options(run, run->arguments.prefix));
        TreeRemove counted(run->reactor, run->objects, walk, count, count_options(run));
        counted.keep(*names);
        co_await counted.run();
        if (!may_remove(*run, *report, count)) co_return;
    }
    ObjectWalk walk(run->reactor, run->objects, walk_options(run, run->arguments.prefix));
    TreeRemove transfer(run->reactor, run->objects, walk, *report, object_removal_options(run));
    transfer.keep(*names);
    std::string label = run->arguments.prefix;
    co_await report->transfer(&transfer, TreeReport::Doing::kRemove, std::move(label));
}

// Removes the files for which there is no object.
Task<void> remove_other_files(ObjectRun* run, TreeReport* report, LocalTree* tree,
                              std::vector<std::string>* paths) {
    std::ranges::sort(*paths);
    if (run->arguments.remove_max) {
        PlannedCount count(*report);
        TreePrune counted(run->local(), *tree, *paths, count, count_options(run));
        co_await counted.run();
        if (!may_remove(*run, *report, count)) co_return;
    }
    TreePrune prune(run->local(), *tree, *paths, *report, removal_options(run));
    co_await report->transfer(&prune, TreeReport::Doing::kRemove, run->arguments.file);
}

std::string_view words_if_not_begun(const VerbArguments& arguments) {
    if (arguments.dry_run) return "; nothing would be stored, because the directory does not fit";
    if (!arguments.remove_others) return "; nothing is stored, because the directory does not fit";
    return "; nothing is stored or removed, because the directory does not fit";
}

Task<int> put_tree_in(ObjectRun* run) {
    const std::string& directory = run->arguments.file;
    auto tree = LocalTree::open(directory, LocalTree::Missing::kProblem);
    if (!tree) co_return complain_about(run->call, tree.error(), kExitUsage);
    TreeReport report(*run);
    NewObject example{.name = run->arguments.prefix,
                      .pool = run->arguments.pool,
                      .group = run->arguments.group,
                      .no_replace = run->arguments.no_replace,
                      .collection = run->arguments.collection};
    const auto journal = open_journal(*run, report);
    TreeTransfer::Options options = transfer_options(run);
    const ObjectWalk::Options below = walk_options(run, run->arguments.prefix);
    auto verdict = co_await compare_tree_with_quota(run, tree->get(), journal.get(), &below);
    if (verdict.fault) {
        verdict.fault->words += words_if_not_begun(run->arguments);
        report.on_failure({.name = run->arguments.prefix, .problem = *std::move(verdict.fault)});
        co_return report.end();
    }
    // Removing others may make room, and needs the names of all files.
    options.stops_at_quota = !run->arguments.remove_others;
    options.waits_for_quota = options.stops_at_quota && verdict.counts_on_replaced;
    TreePut transfer(run->local(), run->objects, **tree, std::move(example), report,
                     std::move(options));
    if (journal != nullptr) transfer.use(*journal);
    std::vector<std::string> names;
    if (run->arguments.remove_others) transfer.collect(names);
    co_await report.transfer(&transfer, TreeReport::Doing::kPut, directory);
    const bool is_whole =
        transfer.has_found_all() && !transfer.gave_up() && !run->cancel.cancelled();
    if (is_whole && journal != nullptr && !run->arguments.no_skip) journal->forget_others();
    if (run->arguments.remove_others && is_whole) {
        // A file that was renamed and cannot be stored under its new name keeps its old object.
        if (report.has_failed_with_space_left()) {
            report.remark_once("nothing is removed, because not all files could be stored");
        } else {
            co_await remove_other_objects(run, &report, &names);
        }
    } else if (run->arguments.remove_others && !run->cancel.cancelled()) {
        report.remark_once("nothing is removed, because not all files could be found");
    }
    co_return report.end();
}

Task<int> get_tree_in(ObjectRun* run) {
    TreeReport report(*run);
    ObjectWalk walk(run->reactor, run->objects, walk_options(run, run->arguments.prefix));
    // The directory is not made for nothing.
    const auto first = co_await walk.peek();
    if (!first || *first == nullptr) {
        const TreeFailure failure =
            first ? nothing_found(run->arguments.prefix)
                  : TreeFailure{.name = run->arguments.prefix, .problem = first.error()};
        if (!run->cancel.cancelled()) report.on_failure(failure);
        co_return report.end();
    }
    auto tree =
        LocalTree::open(run->arguments.file, run->arguments.dry_run ? LocalTree::Missing::kEmpty
                                                                    : LocalTree::Missing::kMake);
    if (!tree) co_return complain_about(run->call, tree.error(), kExitUsage);
    const bool removes = run->arguments.remove_others && (*tree)->is_there();
    TreeGet transfer(run->local(), run->objects, walk, **tree, report, transfer_options(run));
    std::vector<std::string> paths;
    std::set<std::string> blocked;
    if (removes) {
        transfer.collect(paths);
        transfer.set_aside(blocked);
    }
    co_await report.transfer(&transfer, TreeReport::Doing::kGet, run->arguments.prefix);
    if (!removes || run->cancel.cancelled()) co_return report.end();
    // Files are removed only after all objects are fetched: until then a file may be the only copy.
    if (!transfer.has_found_all() || transfer.gave_up()) {
        report.remark_once("nothing is removed, because not all objects could be listed");
    } else if (report.has_failed()) {
        report.remark_once("nothing is removed, because not all objects could be fetched");
    } else {
        co_await remove_other_files(run, &report, tree->get(), &paths);
    }
    if (blocked.empty() || run->cancel.cancelled()) co_return report.end();
    // These objects waited for the removal of the file or directory at their path, and fail if it
    // is still there.
    ObjectWalk again(run->reactor, run->objects, walk_options(run, run->arguments.prefix));
    TreeGet rest(run->local(), run->objects, again, **tree, report, transfer_options(run));
    rest.fetch_only(blocked);
    co_await report.transfer(&rest, TreeReport::Doing::kGet, run->arguments.prefix);
    co_return report.end();
}

// -- removing --

struct FoundObjects {
    std::uint64_t objects = 0;
    std::uint64_t bytes = 0;
};

Task<Outcome<FoundObjects>> count_below(ObjectRun* run, std::string prefix) {
    ObjectWalk walk(run->reactor, run->objects, walk_options(run, std::move(prefix)));
    FoundObjects found;
    for (;;) {
        const auto next = co_await walk.peek();
        if (!next) co_return std::unexpected(next.error());
        if (*next == nullptr) co_return found;
        const ObjectWalk::Entry entry = walk.take();
        ++found.objects;
        if (entry.size_bytes != fop::kSizeUnknown) found.bytes += entry.size_bytes;
    }
}

// A line that is typed at the terminal; nothing if it has ended, or a signal arrived.
Task<std::string> read_answer(ObjectRun* run) {
    // No deadline: a person answers.
    const auto ready = co_await run->reactor.poll(STDIN_FILENO, POLLIN, {.cancel = &run->cancel});
    std::array<char, 256> text{};
    const ssize_t size = ready ? ::read(STDIN_FILENO, text.data(), text.size()) : 0;
    co_return std::string(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
}

std::string what_is_removed(const ObjectRun* run, const std::vector<std::string>& prefixes,
                            const FoundObjects& found) {
    std::string words = counted(found.objects, "object", "objects") + ", " + size_of(found.bytes);
    const std::string& pool = run->arguments.pool;
    if (run->arguments.all) {
        return words + ", all of " +
               (pool.empty() ? "the default pool" : "pool " + core::printable(pool));
    }
    for (const std::string& prefix : prefixes) {
        words += (&prefix == &prefixes.front() ? ", below " : " and ") + core::printable(prefix);
    }
    return words;
}

// Whether the user is sure: by --yes, or by an answer. Otherwise an exit code; nothing is done.
Task<std::optional<int>> ask_if_sure(ObjectRun* run, const std::vector<std::string>* prefixes) {
    if (run->arguments.is_sure || run->arguments.dry_run) co_return std::nullopt;
    FoundObjects all;
    for (std::size_t i = 0; i < prefixes->size(); ++i) {
        std::string prefix = (*prefixes)[i];
        auto found = co_await count_below(run, std::move(prefix));
        if (!found) co_return run->complain_about((*prefixes)[i], found.error());
        all.objects += found->objects;
        all.bytes += found->bytes;
    }
    if (all.objects == 0) {
        const TreeFailure failure = nothing_found(prefixes->front());
        co_return run->complain_about(failure.name, failure.problem);
    }
    const std::string what = what_is_removed(run, *prefixes, all);
    const bool is_asked = run->call.output == Output::kPage && ::isatty(STDIN_FILENO) == 1 &&
                          ::isatty(STDERR_FILENO) == 1;
    if (!is_asked) {
        co_return complain_about(run->call, "nothing is removed: confirm with --yes: " + what,
                                 kExitRefused);
    }
    // Discards pending input: bytes typed before the question must not count as the answer.
    if (::tcflush(STDIN_FILENO, TCIFLUSH) != 0) {
        co_return complain_about(run->call, file_words("standard input", errno), kExitRefused);
    }
    std::fprintf(stderr, "fopctl: rm: remove %s? [y/N] ", what.c_str());
    std::fflush(stderr);
    const std::string answer = co_await read_answer(run);
    if (answer == "y\n" || answer == "Y\n" || answer == "yes\n") co_return std::nullopt;
    if (run->cancel.cancelled()) co_return kExitRefused;
    co_return complain_about(run->call, "nothing is removed", kExitRefused);
}

// Drops duplicates and each prefix that extends another one: removing the shorter prefix removes
// these objects, too.
std::vector<std::string> outermost(std::vector<std::string> prefixes) {
    std::set<std::string> wanted;
    std::vector<std::string> sorted = prefixes;
    std::ranges::sort(sorted);
    // In the sorted order, prefixes that extend `outer` follow it directly.
    std::string_view outer;
    for (const std::string& each : sorted) {
        if (!outer.empty() && each.starts_with(outer)) continue;
        outer = each;
        wanted.insert(each);
    }
    std::erase_if(prefixes, [&wanted](const auto& each) { return wanted.erase(each) == 0; });
    return prefixes;
}

Task<int> remove_tree_in(ObjectRun* run) {
    std::vector<std::string> prefixes = outermost(run->arguments.names);
    if (run->arguments.all) prefixes.emplace_back();
    const auto refused = co_await ask_if_sure(run, &prefixes);
    if (refused) co_return *refused;
    TreeReport report(*run);
    for (const std::string& prefix : prefixes) {
        if (run->cancel.cancelled()) break;
        ObjectWalk walk(run->reactor, run->objects, walk_options(run, prefix));
        const auto first = co_await walk.peek();
        if (first && *first == nullptr) report.on_failure(nothing_found(prefix));
        if (!first && !run->cancel.cancelled()) {
            report.on_failure({.name = prefix, .problem = first.error()});
        }
        if (!first || *first == nullptr) continue;
        TreeRemove transfer(run->reactor, run->objects, walk, report, object_removal_options(run));
        co_await report.transfer(&transfer, TreeReport::Doing::kRemove, prefix);
        if (transfer.gave_up()) break;
    }
    co_return report.end();
}

// Returns the call with its first name used as the prefix.
Call with_prefix(const Call& call) {
    Call changed = call;
    changed.arguments.prefix = prefix_of(call.arguments.names.front());
    changed.arguments.names.clear();
    return changed;
}

int run_in_tree(const Call& call, ObjectRun::Body body) {
    if (call.arguments.file == "-") {
        return complain_about(call, "- is not a directory: --recursive needs one", kExitUsage);
    }
    return run_checked(with_prefix(call), body);
}

}  // namespace

CLI::Option* declare_recursive(CLI::App& app, VerbArguments& arguments, const char* summary) {
    auto* const recursive = app.add_flag("-r,--recursive", arguments.recursive, summary);
    app.add_flag("--dry-run", arguments.dry_run, "With --recursive: only print what would be done")
        ->needs(recursive);
    return recursive;
}
void declare_skipping(CLI::App& app, VerbArguments& arguments, CLI::Option* recursive) {
    auto* const size_only = app.add_flag("--size-only", arguments.size_only,
                                         "Skip files and objects that have the same size");
    auto* const no_skip = app.add_flag("--no-skip", arguments.no_skip,
                                       "Transfer all files and objects, also equal ones");
    size_only->excludes(no_skip);
    if (recursive == nullptr) return;
    size_only->needs(recursive);
    no_skip->needs(recursive);
}

int put_tree(const Call& call) {
    if (call.arguments.remove_others && call.arguments.names.front().empty()) {
        return complain_about(
            call, "all names begin with \"\", and --delete would remove their objects", kExitUsage);
    }
    return run_in_tree(call, &put_tree_in);
}

int get_tree(const Call& call) {
    return run_in_tree(call, &get_tree_in);
}

int remove_tree(const Call& call) {
    Call changed = call;
    for (std::string& name : changed.arguments.names) {
        if (name.empty()) {
            return complain_about(call, "\"\" selects all objects: use --all for that", kExitUsage);
        }
        name = prefix_of(name);
    }
    return run_checked(changed, &remove_tree_in);
}

}  // namespace fopd::client
