// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/verb.h"

// Verbs about long work on everything that is on a cartridge.
namespace fopd::client {

void declare_repack(CLI::App& app, VerbArguments& arguments);
int run_repack(const Call& call);
void declare_rescue(CLI::App& app, VerbArguments& arguments);
int run_rescue(const Call& call);
// Of cartridges: --medium or --pool.
int run_medium_scrub(const Call& call);

}  // namespace fopd::client
