// SPDX-License-Identifier: BSD-2-Clause
#include "client/verbs_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include "client/exit_code.h"
#include "client/object_run.h"
#include "client/object_tree.h"
#include "client/replaced_file.h"
#include "client/request_fault.h"
#include "client/table.h"
#include "client/tree_failures.h"
#include "core/printable.h"
#include "fop/name.h"

namespace fopd::client {

namespace {

// The words of a verb for what it has done, such as "stored".
constexpr std::string_view done_word(std::string_view verb) {
    if (verb == "put") return "stored";
    return verb == "get" ? "fetched" : "removed";
}

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
    return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

// Prints failures and skipped files while a tree is transferred, up to a limit, and the summary at
// the end.
class TreeReport final : public TreeWatcher {
public:
    explicit TreeReport(const ObjectRun& run)
        : run_(run),
          verb_(run.call.verb),
          failures_(run.call.output == Output::kJson ? TreeFailures::Keep::kListed
                                                     : TreeFailures::Keep::kNothing) {}

    void on_failure(const TreeFailure& failure) override {
        if (!failures_.add(failure)) return;
        if (line_ != nullptr) line_->clear();
        complain_about(failure);
    }
    void on_skipped(std::string_view shown, std::string_view what) override {
        ++skipped_;
        remark(core::printable(shown) + ": skipped, as it is " + std::string(what));
    }
    void on_empty_directory(std::string_view shown) override {
        ++empty_directories_;
        remark(core::printable(shown) + ": the directory is empty, and no object stands for it");
    }

    // Transfers with a progress line. May be called for several trees, one after another.
    Task<void> transfer(TreeTransfer* tree, std::string label) {
        ProgressLine line(
            run_.reactor,
            [tree] {
                return ProgressLine::Moved{.bytes = tree->moved_bytes(),
                                           .objects = tree->objects()};
            },
            {.label = std::string(verb_) + " " + core::printable(label).substr(0, kLabelMax),
             .wanted = run_.call.output == Output::kPage});
        line_ = &line;
        co_await tree->run();
        line_ = nullptr;
        co_await line.close();
        objects_ += tree->objects();
        bytes_ += tree->bytes();
        if (tree->gave_up()) {
            const bool is_refused = tree->early_end() == TreeTransfer::End::kRefused;
            complain(std::string(verb_) +
                     (is_refused ? ": the server does not let this client connect any more"
                                 : ": the server did not answer many times in a row") +
                     "; the rest was not tried");
        }
    }

    // Returns the exit code: that of the first failure.
    int end() const {
        const bool is_interrupted = run_.cancel.cancelled();
        if (failures_.unlisted_count() > 0) {
            complain(std::string(verb_) + ": " +
                     counted(failures_.unlisted_count(), "more failure", "more failures"));
        }
        if (remarks() > kRemarksMax && run_.call.output != Output::kQuiet) {
            client::remark(std::string(verb_) + ": " +
                           counted(remarks() - kRemarksMax, "more file or empty directory",
                                   "more files and empty directories") +
                           " left out");
        }
        nlohmann::ordered_json summary{{"objects", objects_},
                                       {"bytes", bytes_},
                                       {"skipped", skipped_},
                                       {"empty_directories", empty_directories_},
                                       {"interrupted", is_interrupted},
                                       {"failed", failed()},
                                       {"more_failed", failures_.unlisted_count()}};
        const int shown = show(run_.call, dumped(summary), [&] {
            std::string text = is_interrupted ? "interrupted: " : "";
            text += counted(objects_, "object", "objects") + " " + std::string(done_word(verb_)) +
                    ", " + size_of(bytes_);
            if (skipped_ > 0) text += "; skipped " + counted(skipped_, "file", "files");
            if (empty_directories_ > 0) {
                text += "; " + counted(empty_directories_, "empty directory", "empty directories");
            }
            if (failures_.count() > 0) text += "; " + std::to_string(failures_.count()) + " failed";
            return text + "\n";
        });
        return failures_.count() == 0 ? shown : failures_.exit_code();
    }

private:
    using Cause = TreeFailure::Cause;
    static constexpr std::size_t kLabelMax = 40;
    static constexpr std::uint64_t kRemarksMax = 1000;

    nlohmann::ordered_json failed() const {
        auto list = nlohmann::ordered_json::array();
        for (const TreeFailures::Listed& each : failures_.listed()) {
            list.push_back({{"name", each.name},
                            {"error", each.words},
                            {"code", each.code},
                            {"exit_code", static_cast<int>(each.exit_code)}});
        }
        return list;
    }
    void complain_about(const TreeFailure& failure) const {
        if (failure.cause == Cause::kServer) {
            run_.complain_about(failure.name, failure.problem);
            return;
        }
        note_error_code(code_of(failure));
        const bool is_named = failure.cause == Cause::kName;
        client::complain_about(
            run_.call,
            (is_named ? core::printable(failure.name) + ": " : "") + failure.problem.words,
            kExitRefused);
    }
    std::uint64_t remarks() const { return skipped_ + empty_directories_; }
    // --quiet suppresses notices; only errors are printed.
    void remark(const std::string& words) const {
        if (run_.call.output == Output::kQuiet || remarks() > kRemarksMax) return;
        if (line_ != nullptr) line_->clear();
        client::remark(std::string(verb_) + ": " + words);
    }

    const ObjectRun& run_;
    const std::string_view verb_;
    ProgressLine* line_ = nullptr;
    std::uint64_t objects_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t skipped_ = 0;
    std::uint64_t empty_directories_ = 0;
    TreeFailures failures_;
};

// The names of objects in a tree begin so; empty: all names do.
std::string prefix_of(const std::string& name) {
    return name.empty() || name.ends_with('/') ? name : name + "/";
}

// Runs the verb, unless no server would take its arguments: each object would fail.
int run_checked(const Call& call, ObjectRun::Body body) {
    const VerbArguments& arguments = call.arguments;
    std::string fault = fault_of_name("pool", arguments.pool);
    if (fault.empty()) fault = fault_of_name("group", arguments.group);
    if (fault.empty()) fault = fault_of_name("job", call.remote.job);
    if (fault.empty() && !arguments.prefix.empty()) {
        const auto good = fop::check_object_name(arguments.prefix);
        if (!good) fault = core::printable(arguments.prefix) + ": " + good.error().context;
    }
    if (!fault.empty()) return complain_about(call, fault, kExitUsage);
    return run_object_verb(call, body);
}

TreeTransfer::Options transfer_options(ObjectRun* run) {
    return {.patience = run->call.timeout, .cancel = run->cancel};
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

Task<int> put_tree_in(ObjectRun* run) {
    const std::string& directory = run->arguments.file;
    auto tree = LocalTree::open(directory, LocalTree::Missing::kProblem);
    if (!tree) co_return complain_about(run->call, tree.error(), kExitUsage);
    TreeReport report(*run);
    NewObject example{.name = run->arguments.prefix,
                      .pool = run->arguments.pool,
                      .group = run->arguments.group,
                      .no_replace = run->arguments.no_replace};
    TreePut transfer(run->local(), run->objects, **tree, std::move(example), report,
                     transfer_options(run));
    co_await report.transfer(&transfer, directory);
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
    auto tree = LocalTree::open(run->arguments.file, LocalTree::Missing::kMake);
    if (!tree) co_return complain_about(run->call, tree.error(), kExitUsage);
    TreeGet transfer(run->local(), run->objects, walk, **tree, report, transfer_options(run));
    co_await report.transfer(&transfer, run->arguments.prefix);
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
    // No deadline: somebody thinks about it.
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
    if (run->arguments.is_sure) co_return std::nullopt;
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
        TreeRemove transfer(run->reactor, run->objects, walk, report, transfer_options(run));
        co_await report.transfer(&transfer, prefix);
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

int put_tree(const Call& call) {
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
