// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/verb.h"

// The verbs for repacks and scrubs of cartridges.
namespace fopd::client {

void declare_repack(CLI::App& app, VerbArguments& arguments);
int run_repack(const Call& call);
void declare_rescue(CLI::App& app, VerbArguments& arguments);
int run_rescue(const Call& call);
// `scrub` with --medium or --pool, which name cartridges.
int run_medium_scrub(const Call& call);

}  // namespace fopd::client
