// SPDX-License-Identifier: BSD-2-Clause
// fopctl: look at and steer a running fopd.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <exception>
#include <initializer_list>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/admin_client.h"
#include "client/exit_code.h"
#include "client/verb.h"
#include "core/core_dumps.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

struct Settings {
    Remote remote;
    std::string admin = "/run/fopd/admin.sock";
    bool json = false;
    bool quiet = false;
    double timeout_s = 0;  // 0: as the verb says.
};

void declare_settings(CLI::App& app, Settings& settings) {
    app.set_version_flag("--version", "fopctl " FOPD_VERSION);
    app.add_option("--admin", settings.admin, "The daemon's admin socket")
        ->envname("FOPD_ADMIN")
        ->capture_default_str();
    app.add_option("--server", settings.remote.server, "The server's address")
        ->envname("FOPD_SERVER")
        ->capture_default_str();
    app.add_option("--key", settings.remote.key_file, "A file with the key to prove who asks")
        ->envname("FOPD_KEY");
    app.add_option("--token", settings.remote.token,
                   "A token that lends rights, or better the file it is in")
        ->envname("FOPD_TOKEN");
    app.add_option("--protect", settings.remote.protect,
                   "seal, or encrypt: as the daemon's fabric.protect")
        ->envname("FOPD_PROTECT")
        ->check(CLI::IsMember({"seal", "encrypt"}))
        ->capture_default_str();
    app.add_option("--job", settings.remote.job, "By which the server's rules know the work")
        ->envname("FOPD_JOB");
    app.add_flag("--json", settings.json, "Print JSON, for scripts");
    app.add_flag("--quiet", settings.quiet, "Print errors only; with --json, JSON too");
    app.add_option("--timeout", settings.timeout_s, "Give up waiting after so many seconds")
        ->check(CLI::Range(0.001, 1e9));
}

const char* about_group(std::string_view about) {
    if (about == "device") return "Disks that come and go";
    if (about == "key") return "Principals and their keys";
    if (about == "lrs") return "Which fop is next";
    if (about == "rule") return "Who may have how much";
    if (about == "token") return "Tokens, which lend rights";
    return "What the disks of a node hold";
}

CLI::App* group_named(CLI::App& above, const std::string& about) {
    const auto groups =
        above.get_subcommands([&about](const CLI::App* each) { return each->get_name() == about; });
    if (!groups.empty()) return groups.front();
    CLI::App* const group = above.add_subcommand(about, about_group(about));
    group->require_subcommand(1);
    group->fallthrough();
    return group;
}

// A verb of several words stands below the first of them.
CLI::App* declare_verb(CLI::App& app, const Verb& verb) {
    CLI::App* above = &app;
    std::string_view name = verb.name;
    for (std::size_t blank = name.find(' '); blank != std::string_view::npos;
         blank = name.find(' ')) {
        above = group_named(*above, std::string(name.substr(0, blank)));
        name.remove_prefix(blank + 1);
    }
    return above->add_subcommand(std::string(name), std::string(verb.summary));
}

// The group whose verb is not known; null when that is not what is wrong.
const CLI::App* group_without_verb(const CLI::App& app) {
    const CLI::App* group = &app;
    while (!group->get_subcommands().empty()) group = group->get_subcommands().front();
    return group->get_require_subcommand_min() == 0 ? nullptr : group;
}

// The verbs of a group, and the word that is none of them.
std::string words_about_verb(const CLI::App& app, const CLI::App& group) {
    std::string words;
    for (const CLI::App* each = &group; each != &app; each = each->get_parent()) {
        words = words.empty() ? each->get_name() : each->get_name() + " " + words;
    }
    std::string known;
    for (const CLI::App* each : group.get_subcommands(nullptr)) {
        known += (known.empty() ? "" : ", ") + each->get_name();
    }
    const std::vector<std::string> rest = app.remaining(true);
    const auto unknown =
        std::ranges::find_if(rest, [](const std::string& word) { return !word.starts_with('-'); });
    const std::string wrong = unknown == rest.end()
                                  ? "a verb is missing"
                                  : "there is no verb " + core::printable(*unknown);
    return words + ": " + wrong + "; known here: " + known;
}

int run(const Verb& verb, const Settings& settings, const VerbArguments& arguments) {
    const Duration timeout = settings.timeout_s > 0
                                 ? std::chrono::duration_cast<Duration>(
                                       std::chrono::duration<double>(settings.timeout_s))
                                 : verb.timeout;
    const AdminClient client(settings.admin, timeout);
    const Output output = settings.json    ? Output::kJson
                          : settings.quiet ? Output::kQuiet
                                           : Output::kPage;
    try {
        return verb.run({.verb = verb.name,
                         .client = client,
                         .remote = settings.remote,
                         .timeout = timeout,
                         .output = output,
                         .arguments = arguments});
    } catch (const nlohmann::json::exception&) {
        complain("what answers at " + client.name() +
                 " is no fopd this fopctl knows: its reply has another form");
        return kExitNoServer;
    }
}

int main(int argc, char** argv) {
    // Whoever started us may ignore it; a closed standard output must end us all the same.
    std::signal(SIGPIPE, SIG_DFL);
    CLI::App app("Look at and steer a running fopd.", "fopctl");
    app.fallthrough();  // Global options may stand after the verb, too.
    app.require_subcommand(0, 1);
    Settings settings;
    VerbArguments arguments;
    declare_settings(app, settings);
    const Verb* chosen = nullptr;
    for (const auto verbs :
         {object_verbs(), fabric_verbs(), node_verbs(), lrs_verbs(), key_verbs()}) {
        for (const Verb& verb : verbs) {
            CLI::App* const sub = declare_verb(app, verb);
            if (verb.declare != nullptr) verb.declare(*sub, arguments);
            sub->callback([&chosen, &verb] { chosen = &verb; });
        }
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::RequiredError& error) {
        const CLI::App* const group = group_without_verb(app);
        if (group == nullptr) return app.exit(error) == 0 ? kExitDone : kExitUsage;
        complain(words_about_verb(app, *group));
        return kExitUsage;
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kExitDone : kExitUsage;
    }
    if (chosen == nullptr) {
        complain("no verb; fopctl --help lists them");
        return kExitUsage;
    }
    if (!std::isfinite(settings.timeout_s) || !std::isfinite(arguments.interval_s) ||
        !std::isfinite(arguments.seconds)) {
        complain("a time is a number of seconds");
        return kExitUsage;
    }
    return run(*chosen, settings, arguments);
}

}  // namespace

}  // namespace fopd::client

int main(int argc, char** argv) try {
    if (const auto forbidden = fopd::core::forbid_core_dumps(); !forbidden) {
        fopd::client::complain(describe(forbidden.error()));
        return fopd::client::kExitInternal;
    }
    return fopd::client::main(argc, argv);
} catch (const std::exception& problem) {
    fopd::client::complain(problem.what());
    return fopd::client::kExitInternal;
}
