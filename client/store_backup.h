// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/verb.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's.
class App;
}

namespace fopd::client {

// `fopctl store backup FILE`: the daemon makes the backup, and this process writes the file as the
// calling user, with mode 0600. The file replaces an existing one as a whole or not at all.
void declare_store_backup(CLI::App& app, VerbArguments& arguments);
int run_store_backup(const Call& call);

}  // namespace fopd::client
