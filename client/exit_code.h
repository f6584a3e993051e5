// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <array>

namespace fopd::client {

// How fopctl ends.
enum ExitCode : int {
    kExitDone = 0,
    kExitRefused = 1,  // The server said no; the message names what and why.
    kExitUsage = 2,
    kExitNoServer = 69,  // Nobody answers, or somebody who is no fopd.
    kExitInternal = 70,  // A defect of ours, or no memory.
    kExitTryLater = 75,
    kExitNotAllowed = 77,
    kExitConfig = 78,
};

struct StatusExit {
    int http_status;
    ExitCode exit_code;
};
inline constexpr std::array kStatusExits{
    StatusExit{200, kExitDone},     StatusExit{403, kExitNotAllowed}, StatusExit{422, kExitConfig},
    StatusExit{503, kExitTryLater}, StatusExit{504, kExitTryLater},
};

// The exit code for an HTTP status; what the table does not know is a no.
constexpr ExitCode exit_code_of(int http_status) {
    const auto* const row = std::ranges::find(kStatusExits, http_status, &StatusExit::http_status);
    return row == kStatusExits.end() ? kExitRefused : row->exit_code;
}

}  // namespace fopd::client
