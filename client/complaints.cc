// SPDX-License-Identifier: BSD-2-Clause
#include "client/complaints.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/colours.h"
#include "client/exit_code.h"
#include "client/table.h"

namespace fopd::client {

namespace {

// Process-wide state, because all threads share standard error.
struct Kept {
    std::mutex guard;  // Threads of bench complain, too.
    bool in_json = false;
    std::uint64_t line_number = 0;
    std::string code;
    std::vector<std::string> lines;
    std::vector<std::string> remarks;
};
Kept& kept() {
    static Kept all;
    return all;
}

// With --json, stores the line (after 1000 lines, a note that lines are missing). Returns false
// without --json: the caller prints it.
bool keep(std::vector<std::string> Kept::* list, std::string_view line) {
    constexpr std::size_t kLinesMax = 1000;
    Kept& all = kept();
    const std::lock_guard lock(all.guard);
    if (!all.in_json) return false;
    std::vector<std::string>& lines = all.*list;
    if (lines.size() < kLinesMax) lines.emplace_back(line);
    if (lines.size() == kLinesMax) lines.back() = "there were more";
    return true;
}

void print_complaint(std::string_view text, Tint tint) {
    const std::uint64_t number = kept().line_number;
    const std::string where = number == 0 ? "" : "line " + std::to_string(number) + ": ";
    const std::string line = tinted("fopctl: " + where + std::string(text), tint, STDERR_FILENO);
    std::fprintf(stderr, "%s\n", line.c_str());
}

struct CodeName {
    int exit_code;
    const char* name;
};
constexpr std::array kCodeNames{
    CodeName{kExitDone, "warning"},       CodeName{kExitUsage, "usage"},
    CodeName{kExitNotFound, "not_found"}, CodeName{kExitNoServer, "no_server"},
    CodeName{kExitInternal, "internal"},  CodeName{kExitBadData, "bad_data"},
    CodeName{kExitTryLater, "try_later"}, CodeName{kExitNotAllowed, "not_allowed"},
    CodeName{kExitConfig, "bad_config"},
};

const char* code_name(int exit_code) {
    const auto* const found = std::ranges::find(kCodeNames, exit_code, &CodeName::exit_code);
    return found == kCodeNames.end() ? "refused" : found->name;
}

}  // namespace

void complain(std::string_view text) {
    if (!keep(&Kept::lines, text)) print_complaint(text, Tint::kBad);
}

void remark(std::string_view text) {
    if (!keep(&Kept::remarks, text)) print_complaint(text, Tint::kWarning);
}

void complain_further(std::string_view line) {
    if (!keep(&Kept::lines, line))
        std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

void note_error_code(std::string_view code) {
    const std::lock_guard lock(kept().guard);
    if (kept().code.empty()) kept().code = code;
}

void complain_as(Complaints form) {
    kept().in_json = form == Complaints::kJson;
}

void complain_about_line(std::uint64_t number) {
    kept().line_number = number;
}

int end_complaints(int exit_code) {
    Kept& all = kept();
    const std::lock_guard lock(all.guard);
    all.lines.insert(all.lines.end(), all.remarks.begin(), all.remarks.end());
    const std::string code = std::exchange(all.code, {});
    if (!all.in_json || all.lines.empty()) return exit_code;
    nlohmann::ordered_json object;
    object["error"] = all.lines.front();
    object["code"] = code.empty() ? code_name(exit_code) : code;
    object["exit_code"] = exit_code;
    if (all.line_number != 0) object["line"] = all.line_number;
    object["details"] = std::vector<std::string>(all.lines.begin() + 1, all.lines.end());
    std::fprintf(stderr, "%s\n", dumped(object).c_str());
    all.lines.clear();
    all.remarks.clear();
    return exit_code;
}

}  // namespace fopd::client
