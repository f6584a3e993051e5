// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "client/object_run.h"
#include "client/object_tree.h"
#include "client/tree_failures.h"

namespace fopd::client {

// "1 object", "2 objects".
std::string counted(std::uint64_t count, std::string_view one, std::string_view many);

// Prints failures and skipped files while a tree is transferred, up to a limit, and the summary at
// the end.
class TreeReport final : public TreeWatcher {
public:
    explicit TreeReport(const ObjectRun& run);

    void on_failure(const TreeFailure& failure) override;
    void on_skipped(std::string_view shown, std::string_view what) override;
    void on_empty_directory(std::string_view shown) override;
    void on_planned(const Planned& planned) override;

    enum class Doing : std::uint8_t { kPut, kGet, kRemove };
    // Runs the transfer and shows a progress line meanwhile. May be called for several trees, one
    // after another. For kRemove in a put or get with --delete, the summary counts the objects as
    // removed; for kRemove in `rm`, as the objects of the command.
    Task<void> transfer(TreeTransfer* tree, Doing doing, std::string label);
    // Whether a failure had another reason than a full disk or quota, so that removing objects
    // would not help.
    bool has_failed_with_space_left() const { return has_failed_with_space_left_; }
    bool has_failed() const { return failures_.count() > 0; }
    // Prints a notice about the whole run, unless the output is quiet. The limit for notices about
    // skipped files does not apply, so the caller prints each such notice only once.
    void remark_once(std::string_view words) const;
    // Prints the summary. REQUIRES: called once, after the last transfer(). Returns the exit code
    // of the first failure; without a failure kExitDone, or kExitRefused if the result could not be
    // printed.
    int end();

private:
    using Cause = TreeFailure::Cause;

    nlohmann::ordered_json failed() const;
    void complain_about(const TreeFailure& failure) const;
    bool only_plans() const { return run_.arguments.dry_run; }
    std::uint64_t remarks() const { return skipped_ + empty_directories_; }
    void remark(const std::string& words) const;
    nlohmann::ordered_json summary() const;
    std::string summary_line() const;
    // Prints a part of the result, unless an earlier part could not be printed.
    void print_part(std::string_view text);

    const ObjectRun& run_;
    const std::string_view verb_;
    ProgressLine* line_ = nullptr;
    Doing doing_ = Doing::kPut;
    std::uint64_t objects_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t unchanged_ = 0;
    std::uint64_t removed_ = 0;
    std::uint64_t skipped_ = 0;
    std::uint64_t empty_directories_ = 0;
    TreeFailures failures_;
    bool has_failed_with_space_left_ = false;
    bool has_planned_ = false;
    bool is_printable_ = true;
};

}  // namespace fopd::client
