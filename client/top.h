// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/verb.h"

namespace fopd::client {

// `fopctl top`: the rates between two readings of the status, repeatedly. On a terminal it updates
// in place, and restores the terminal when it ends; otherwise it prints a block for each interval,
// or with --json one JSON object a line.
void declare_top(CLI::App& app, VerbArguments& arguments);
int run_top(const Call& call);

}  // namespace fopd::client
