// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <array>

#include "client/fopd.hpp"
#include "client/object_session.h"
#include "fop/status.h"

namespace fopd::client {

// The exit codes of fopctl.
enum ExitCode : int {
    kExitDone = 0,
    kExitRefused = 1,  // The server refused; the message says what and why.
    kExitUsage = 2,
    kExitNotFound = 66,  // The object, disk or other thing that the command names does not exist.
    kExitNoServer = 69,  // No answer, or no fopd that knows the request.
    kExitInternal = 70,  // A defect of this program, or no memory.
    kExitBadData = 74,
    kExitTryLater = 75,
    kExitNotAllowed = 77,
    kExitConfig = 78,
};

struct StatusExit {
    int http_status;
    ExitCode exit_code;
};
inline constexpr std::array kStatusExits{
    StatusExit{200, kExitDone},     StatusExit{400, kExitUsage},  StatusExit{403, kExitNotAllowed},
    StatusExit{404, kExitNotFound}, StatusExit{422, kExitConfig}, StatusExit{503, kExitTryLater},
    StatusExit{504, kExitTryLater},
};

// The exit code for an HTTP status; a status that is not in the table is a refusal.
constexpr ExitCode exit_code_of(int http_status) {
    const auto* const row = std::ranges::find(kStatusExits, http_status, &StatusExit::http_status);
    return row == kStatusExits.end() ? kExitRefused : row->exit_code;
}

// The exit code for the outcome of a call of libfopd; an outcome that is not in the table is a
// refusal by the server.
constexpr ExitCode exit_code_of(libfopd::Status status) {
    switch (status) {
        case libfopd::Status::kOk: return kExitDone;
        case libfopd::Status::kUnreachable:
        case libfopd::Status::kUnsupported: return kExitNoServer;
        case libfopd::Status::kDenied: return kExitNotAllowed;
        case libfopd::Status::kNotFound: return kExitNotFound;
        case libfopd::Status::kTryAgain:
        case libfopd::Status::kTimedOut: return kExitTryLater;
        case libfopd::Status::kCorrupt: return kExitBadData;
        default: return kExitRefused;
    }
}

// The exit code for the status of a fop, from a reply or from the client itself.
constexpr ExitCode exit_code_of(fop::Status status) {
    switch (status) {
        case fop::Status::kDone: return kExitDone;
        case fop::Status::kUnknownFop:
        case fop::Status::kVersion: return kExitNoServer;
        case fop::Status::kDenied: return kExitNotAllowed;
        case fop::Status::kNotFound:
        case fop::Status::kWrongPool: return kExitNotFound;
        case fop::Status::kTryAgain:
        case fop::Status::kBusy:
        case fop::Status::kStaging:
        case fop::Status::kStagingFull:
        case fop::Status::kTimedOut: return kExitTryLater;
        case fop::Status::kCorrupt: return kExitBadData;
        default: return kExitRefused;
    }
}

// The client refused the request as malformed, and sent nothing.
inline bool is_misuse(const Problem& problem) {
    return problem.status == fop::Status::kMalformed && !problem.answered;
}
inline ExitCode exit_code_of(const Problem& problem) {
    if (is_misuse(problem)) return kExitUsage;
    return problem.is_unreachable ? kExitNoServer : exit_code_of(problem.status);
}

// The exit code when a session could not be opened.
constexpr ExitCode exit_code_of(ObjectSession::Failure::Kind kind) {
    using Kind = ObjectSession::Failure::Kind;
    switch (kind) {
        case Kind::kUsage: return kExitUsage;
        case Kind::kUnreachable: return kExitNoServer;
        case Kind::kDenied: return kExitNotAllowed;
        case Kind::kNotFound: return kExitNotFound;
        case Kind::kTryAgain: return kExitTryLater;
        case Kind::kFailed: return kExitRefused;
    }
    return kExitRefused;
}

}  // namespace fopd::client
