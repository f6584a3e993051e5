// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <array>
#include <cstddef>

#include "client/admin_client.h"
#include "client/exit_code.h"

namespace fopd::client {

// How a verb handles a failed request to the daemon.
struct AdminFailureRow {
    AdminFailure failure;
    ExitCode exit_code;
    // A later request may be answered: a daemon that ends closes the connection, and a daemon that
    // starts does not listen yet.
    bool may_come = false;
    // The daemon does not run, or hangs.
    bool is_down = false;
};
inline constexpr std::array kAdminFailures{
    AdminFailureRow{.failure = AdminFailure::kNoServer,
                    .exit_code = kExitNoServer,
                    .may_come = true,
                    .is_down = true},
    AdminFailureRow{.failure = AdminFailure::kEnded,
                    .exit_code = kExitNoServer,
                    .may_come = true,
                    .is_down = true},
    AdminFailureRow{
        .failure = AdminFailure::kBadAnswer, .exit_code = kExitNoServer, .may_come = true},
    AdminFailureRow{.failure = AdminFailure::kDenied, .exit_code = kExitNotAllowed},
    AdminFailureRow{
        .failure = AdminFailure::kTimedOut, .exit_code = kExitTryLater, .is_down = true},
    AdminFailureRow{.failure = AdminFailure::kInterrupted, .exit_code = kExitTryLater},
};
constexpr bool has_each_failure_in_order() {
    for (std::size_t i = 0; i < kAdminFailures.size(); ++i) {
        if (kAdminFailures[i].failure != static_cast<AdminFailure>(i)) return false;
    }
    return kAdminFailures.back().failure == AdminFailure::kInterrupted;
}
static_assert(has_each_failure_in_order());

constexpr const AdminFailureRow& row_of(AdminFailure failure) {
    return kAdminFailures[static_cast<std::size_t>(failure)];
}

}  // namespace fopd::client
