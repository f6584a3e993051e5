// SPDX-License-Identifier: BSD-2-Clause
#include "client/tree_report.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "client/exit_code.h"
#include "client/table.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

constexpr std::size_t kTreeLabelMax = 40;
constexpr std::uint64_t kRemarksMax = 1000;
constexpr std::string_view kPlannedBegin = R"({"planned":[)";

// The words for an action.
struct Words {
    std::string_view does;  // In JSON.
    std::string_view would;
    std::string_view done;
};
constexpr Words words_of(TreeReport::Doing doing) {
    switch (doing) {
        case TreeReport::Doing::kPut: return {.does = "put", .would = "store", .done = "stored"};
        case TreeReport::Doing::kGet: return {.does = "get", .would = "fetch", .done = "fetched"};
        case TreeReport::Doing::kRemove: break;
    }
    return {.does = "rm", .would = "remove", .done = "removed"};
}

constexpr std::string_view words_of(TreeTransfer::End end) {
    switch (end) {
        case TreeTransfer::End::kRefused:
            return "the server does not let this client connect any more";
        case TreeTransfer::End::kQuota: return "the quota has no room for more";
        case TreeTransfer::End::kNotEarly:
        case TreeTransfer::End::kNoAnswer: break;
    }
    return "the server did not answer many times in a row";
}

constexpr TreeReport::Doing doing_of(std::string_view verb) {
    if (verb.ends_with("put")) return TreeReport::Doing::kPut;
    return verb.ends_with("get") ? TreeReport::Doing::kGet : TreeReport::Doing::kRemove;
}

}  // namespace

std::string counted(std::uint64_t count, std::string_view one, std::string_view many) {
    return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}

TreeReport::TreeReport(const ObjectRun& run)
    : run_(run),
      verb_(run.call.verb),
      failures_(run.call.output == Output::kJson ? TreeFailures::Keep::kListed
                                                 : TreeFailures::Keep::kNothing) {}

void TreeReport::on_failure(const TreeFailure& failure) {
    const fop::Status status = failure.problem.status;
    const bool lacks_space = failure.cause == Cause::kServer &&
                             (status == fop::Status::kNoSpace || status == fop::Status::kQuota);
    if (!lacks_space) has_failed_with_space_left_ = true;
    if (!failures_.add(failure)) return;
    if (line_ != nullptr) line_->clear();
    complain_about(failure);
}

void TreeReport::on_skipped(std::string_view shown, std::string_view what) {
    ++skipped_;
    remark(core::printable(shown) + ": skipped, as it is " + std::string(what));
}

void TreeReport::on_empty_directory(std::string_view shown) {
    ++empty_directories_;
    remark(core::printable(shown) + ": the directory is empty, and no object stands for it");
}

// The list is printed while it grows, so that memory does not grow with it.
void TreeReport::on_planned(const Planned& planned) {
    if (run_.call.output == Output::kQuiet) return;
    if (line_ != nullptr) line_->clear();
    if (run_.call.output == Output::kPage) {
        print_part("would " + std::string(words_of(doing_).would) + " " +
                   core::printable(planned.name) +
                   (planned.size_bytes ? ", " + size_of(*planned.size_bytes) : "") + "\n");
        return;
    }
    nlohmann::ordered_json size(nullptr);
    if (planned.size_bytes) size = *planned.size_bytes;
    const nlohmann::ordered_json entry{
        {"do", words_of(doing_).does}, {"name", planned.name}, {"size", size}};
    const std::string_view before =
        std::exchange(has_planned_, true) ? run_.call.list_separator() : kPlannedBegin;
    print_part(std::string(before) + dumped(entry));
}

void TreeReport::print_part(std::string_view text) {
    if (is_printable_) is_printable_ = print(text);
}

Task<void> TreeReport::transfer(TreeTransfer* tree, Doing doing, std::string label) {
    doing_ = doing;
    ProgressLine line(
        run_.reactor,
        [tree] {
            return ProgressLine::Moved{.bytes = tree->moved_bytes(), .objects = tree->objects()};
        },
        {.label = std::string(verb_) + " " + core::printable(label).substr(0, kTreeLabelMax),
         .wanted = run_.call.output == Output::kPage});
    line_ = &line;
    co_await tree->run();
    line_ = nullptr;
    co_await line.close();
    const bool is_aside = doing == Doing::kRemove && doing_of(verb_) != Doing::kRemove;
    (is_aside ? removed_ : objects_) += tree->objects();
    if (!is_aside) bytes_ += tree->bytes();
    unchanged_ += tree->unchanged();
    if (tree->gave_up()) {
        complain(std::string(verb_) + ": " + std::string(words_of(tree->early_end())) +
                 "; the rest was not tried");
    }
}

void TreeReport::remark_once(std::string_view words) const {
    if (run_.call.output != Output::kQuiet) {
        client::remark(std::string(verb_) + ": " + std::string(words));
    }
}

int TreeReport::end() {
    if (failures_.unlisted_count() > 0) {
        complain(std::string(verb_) + ": " +
                 counted(failures_.unlisted_count(), "more failure", "more failures"));
    }
    if (remarks() > kRemarksMax) {
        remark_once(counted(remarks() - kRemarksMax, "more file or empty directory",
                            "more files and empty directories") +
                    " left out");
    }
    if (run_.call.output == Output::kPage) print_part(summary_line());
    if (run_.call.output == Output::kJson) {
        std::string text = dumped(summary());
        // The list of planned actions is the first field.
        if (only_plans()) {
            text = std::string(has_planned_ ? "" : kPlannedBegin) + "]" +
                   std::string(run_.call.list_separator()) + text.substr(1);
        }
        print_part(text + "\n");
    }
    if (failures_.count() > 0) return failures_.exit_code();
    return is_printable_ ? kExitDone : kExitRefused;
}

nlohmann::ordered_json TreeReport::summary() const {
    return {{"objects", objects_},
            {"bytes", bytes_},
            {"unchanged", unchanged_},
            {"removed", removed_},
            {"skipped", skipped_},
            {"empty_directories", empty_directories_},
            {"interrupted", run_.cancel.cancelled()},
            {"failed", failed()},
            {"more_failed", failures_.unlisted_count()}};
}

std::string TreeReport::summary_line() const {
    std::string text = run_.cancel.cancelled() ? "interrupted: " : "";
    text += counted(objects_, "object", "objects") + (only_plans() ? " would be " : " ") +
            std::string(words_of(doing_of(verb_)).done) + ", " + size_of(bytes_);
    if (unchanged_ > 0) text += "; " + std::to_string(unchanged_) + " unchanged";
    if (removed_ > 0) {
        text += "; " + std::to_string(removed_) + (only_plans() ? " would be removed" : " removed");
    }
    if (skipped_ > 0) text += "; skipped " + counted(skipped_, "file", "files");
    if (empty_directories_ > 0) {
        text += "; " + counted(empty_directories_, "empty directory", "empty directories");
    }
    if (failures_.count() > 0) text += "; " + std::to_string(failures_.count()) + " failed";
    return text + "\n";
}

nlohmann::ordered_json TreeReport::failed() const {
    auto list = nlohmann::ordered_json::array();
    for (const TreeFailures::Listed& each : failures_.listed()) {
        list.push_back({{"name", each.name},
                        {"error", each.words},
                        {"code", each.code},
                        {"exit_code", static_cast<int>(each.exit_code)}});
    }
    return list;
}

void TreeReport::complain_about(const TreeFailure& failure) const {
    if (failure.cause == Cause::kServer) {
        run_.complain_about(failure.name, failure.problem);
        return;
    }
    note_error_code(code_of(failure));
    const bool is_named = failure.cause == Cause::kName;
    client::complain_about(
        run_.call, (is_named ? core::printable(failure.name) + ": " : "") + failure.problem.words,
        kExitRefused);
}

// --quiet suppresses notices; only errors are printed.
void TreeReport::remark(const std::string& words) const {
    if (remarks() > kRemarksMax) return;
    if (line_ != nullptr) line_->clear();
    remark_once(words);
}

}  // namespace fopd::client
