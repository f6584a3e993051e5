// SPDX-License-Identifier: BSD-2-Clause
#include <array>

#include <CLI/CLI.hpp>

#include "client/verb.h"
#include "client/verbs_tree.h"

namespace fopd::client {

namespace {

void declare_mirror_file(CLI::App& app, VerbArguments& arguments, const char* summary) {
    app.add_option("directory", arguments.file, summary)->required();
}
void declare_mirror_prefix(CLI::App& app, VerbArguments& arguments) {
    app.add_option_function<std::string>(
           "name", [&arguments](const std::string& name) { arguments.names = {name}; },
           "The beginning of the names of the objects")
        ->required();
}
void declare_mirror_options(CLI::App& app, VerbArguments& arguments, const char* others) {
    declare_pool(app, arguments);
    auto* const removes = app.add_flag("--delete", arguments.remove_others, others);
    app.add_option("--max-delete", arguments.remove_max,
                   "Remove nothing if --delete would remove more than this number")
        ->needs(removes);
    app.add_flag("--dry-run", arguments.dry_run, "Only print what would be done");
    declare_skipping(app, arguments, nullptr);
}
void declare_mirror_put(CLI::App& app, VerbArguments& arguments) {
    declare_mirror_file(app, arguments, "The directory");
    declare_mirror_prefix(app, arguments);
    app.add_option("--group", arguments.group, "The group whose members may read new objects");
    declare_collection(app, arguments);
    declare_mirror_options(app, arguments, "Remove objects for which there is no file");
}
void declare_mirror_get(CLI::App& app, VerbArguments& arguments) {
    declare_mirror_prefix(app, arguments);
    declare_mirror_file(app, arguments, "The directory; it is made if it is missing");
    declare_mirror_options(app, arguments, "Remove files for which there is no object");
}

constexpr std::array kMirrorVerbs{
    Verb{"mirror put", "Make the objects below a name equal to a directory",
         "mirror put results 2026/\nmirror put --delete --dry-run results 2026/", kTimeoutDefault,
         declare_mirror_put, put_tree},
    Verb{"mirror get", "Make a directory equal to the objects below a name",
         "mirror get 2026/ results\nmirror get --delete --max-delete 100 2026/ results",
         kTimeoutDefault, declare_mirror_get, get_tree},
};

}  // namespace

std::span<const Verb> mirror_verbs() {
    return kMirrorVerbs;
}

}  // namespace fopd::client
