// SPDX-License-Identifier: BSD-2-Clause
#include "client/tree_failures.h"

namespace fopd::client {

std::string_view code_of(const TreeFailure& failure) {
    switch (failure.cause) {
        case TreeFailure::Cause::kFile: return "file";
        case TreeFailure::Cause::kName: return "bad_name";
        case TreeFailure::Cause::kTooMany: return "too_many";
        case TreeFailure::Cause::kServer: break;
    }
    return is_misuse(failure.problem) ? "usage" : fop::to_string(failure.problem.status);
}

ExitCode exit_code_of(const TreeFailure& failure) {
    if (failure.cause != TreeFailure::Cause::kServer) return kExitRefused;
    return exit_code_of(failure.problem);
}

bool TreeFailures::add(const TreeFailure& failure) {
    if (count_ == 0) exit_code_ = exit_code_of(failure);
    if (++count_ > kListedMax) return false;
    if (keep_ == Keep::kListed) {
        listed_.push_back({.name = failure.name,
                           .words = failure.problem.words,
                           .code = code_of(failure),
                           .exit_code = exit_code_of(failure)});
    }
    return true;
}

}  // namespace fopd::client
