// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "client/verb.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's.
class Option;
}

namespace fopd::client {

// Adds --recursive, which it returns, and the options that need it.
CLI::Option* declare_recursive(CLI::App& app, VerbArguments& arguments, const char* summary);

// Adds the options that select the files and objects to skip. They need `recursive`, unless it is
// null.
void declare_skipping(CLI::App& app, VerbArguments& arguments, CLI::Option* recursive);

// put, get and rm with --recursive. They return the exit code.
int put_tree(const Call& call);
int get_tree(const Call& call);
int remove_tree(const Call& call);

}  // namespace fopd::client
