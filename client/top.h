// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/verb.h"

namespace fopd::client {

// `fopctl top`: the rates between two looks at the status, again and again. In place on a terminal,
// which is given back as it was however it ends; one block for each interval elsewhere, one JSON
// object a line with --json.
void declare_top(CLI::App& app, VerbArguments& arguments);
int run_top(const Call& call);

}  // namespace fopd::client
