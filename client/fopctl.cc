// SPDX-License-Identifier: BSD-2-Clause
// fopctl: look at and steer a running fopd.
#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <exception>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "client/admin_client.h"
#include "client/colours.h"
#include "client/command_line.h"
#include "client/exit_code.h"
#include "client/table.h"
#include "client/verb.h"
#include "client/version.h"
#include "core/core_dumps.h"
#include "core/ensure.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

struct Settings {
    Remote remote;
    std::string admin = "/run/fopd/admin.sock";
    bool json = false;
    bool quiet = false;
    bool wide = false;
    std::string color = "auto";
    double timeout_s = 0;  // 0: as the verb says.
};

void declare_settings(CLI::App& app, Settings& settings) {
    app.set_version_flag("--version", "fopctl " + std::string(version()));
    app.add_option("--admin", settings.admin,
                   "The daemon's admin socket, for the verbs about the node")
        ->envname("FOPD_ADMIN")
        ->capture_default_str();
    app.add_option("--server", settings.remote.server,
                   "The server's address, for the verbs about objects")
        ->envname("FOPD_SERVER")
        ->capture_default_str();
    app.add_option("--key", settings.remote.key_file, "The file with the key of your principal")
        ->envname("FOPD_KEY");
    app.add_option("--token", settings.remote.token,
                   "The file of a token, which lends rights; or the token itself, but other users "
                   "can see it")
        ->envname("FOPD_TOKEN");
    app.add_option("--protect", settings.remote.protect,
                   "How the session is protected; must be the same as fabric.protect of the daemon")
        ->envname("FOPD_PROTECT")
        ->check(one_of({"seal", "encrypt"}))
        ->capture_default_str();
    app.add_option("--job", settings.remote.job,
                   "The name of your job, for the rules of the request scheduler")
        ->envname("FOPD_JOB");
    app.add_flag("--json", settings.json, "Print JSON, for scripts");
    app.add_flag("--quiet", settings.quiet, "Print errors only; with --json, JSON too");
    app.add_flag("--wide", settings.wide, "Print tables with all columns, as wide as needed");
    app.add_option("--color", settings.color, "Colours: auto (on terminals), always or never")
        ->check(one_of({"auto", "always", "never"}))
        ->capture_default_str();
    app.add_option("--timeout", settings.timeout_s,
                   "Give up after this many seconds; the default of a verb is in its help")
        ->check(seconds_between(0.001, 1e9));
}

const char* about_group(std::string_view about) {
    if (about == "device") return "Add, remove or write off a disk";
    if (about == "drive") return "Take a tape drive out of use, or use it again";
    if (about == "epoch") return "Show the epochs, which the daemons of a cluster begin together";
    if (about == "io-sched") return "Show and change the I/O schedulers of disks and drives";
    if (about == "key") return "Manage the principals and their keys";
    if (about == "mirror") return "Make a directory and objects equal by transferring what differs";
    if (about == "lrs") return "Show and change the policy of the request scheduler";
    if (about == "rule") return "Show and change the rules of the policy";
    if (about == "store") return "Check the disks, or save the files of the data directory";
    ENSURE(about == "token");
    return "Create and revoke tokens, which lend rights";
}

// The heading below a group of verbs.
constexpr const char* kVerbs = "Verbs";

CLI::App* group_named(CLI::App& above, const std::string& about, const char* heading) {
    const auto groups =
        above.get_subcommands([&about](const CLI::App* each) { return each->get_name() == about; });
    if (!groups.empty()) return groups.front();
    CLI::App* const group = above.add_subcommand(about, about_group(about));
    group->require_subcommand(1);
    group->fallthrough();
    group->group(above.get_parent() == nullptr ? heading : kVerbs);
    return group;
}

// "Example: fopctl ls", with each further example in a line below.
std::string examples(std::string_view all) {
    std::string text = "Example: fopctl ";
    for (const char each : all) text += each == '\n' ? "\n         fopctl " : std::string(1, each);
    return text;
}

// "Default of --timeout: 30 seconds".
std::string default_limit(const Verb& verb) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(verb.timeout).count();
    return "Default of --timeout: " +
           (seconds == 0 ? std::string("no limit") : std::to_string(seconds) + " seconds");
}

// A verb of several words stands below the first of them.
CLI::App* declare_verb(CLI::App& app, const Verb& verb, const char* heading) {
    CLI::App* above = &app;
    std::string_view name = verb.name;
    for (std::size_t blank = name.find(' '); blank != std::string_view::npos;
         blank = name.find(' ')) {
        above = group_named(*above, std::string(name.substr(0, blank)), heading);
        name.remove_prefix(blank + 1);
    }
    CLI::App* const sub = above->add_subcommand(std::string(name), std::string(verb.summary));
    sub->footer(examples(verb.example) + "\n" + default_limit(verb));
    sub->group(above == &app ? heading : kVerbs);
    return sub;
}

// The command line of the program, or the command lines that a verb reads.
class CommandLine final : public CommandLines {
public:
    // `source` is null for the program's own; only that reads the environment.
    CommandLine(const Settings& defaults, const LineSource* source) : defaults_(defaults) {
        if (source != nullptr) source_ = *source;
        settings_ = defaults_;
        app_.formatter(std::make_shared<config::HelpPage>());
        app_.fallthrough();  // Global options may stand after the verb, too.
        app_.require_subcommand(0, 1);
        declare_settings(app_, settings_);
        if (source != nullptr) {
            for (CLI::Option* const each : app_.get_options()) each->envname("");
        }
        declare_verbs();
        fresh_ = arguments_;
    }

    int run(std::vector<std::string> words) override {
        settings_ = defaults_;
        arguments_ = fresh_;
        chosen_ = nullptr;
        complain_as(defaults_.json ? Complaints::kJson : Complaints::kLines);
        const auto parsed = parse(words);
        if (!parsed) return parsed.error();
        choose_colours(settings_.color);
        choose_table_width(settings_.wide ? TableWidth::kWhole : TableWidth::kPage);
        complain_as(settings_.json ? Complaints::kJson : Complaints::kLines);
        if (chosen_ == nullptr) {
            complain("no verb; fopctl --help lists them");
            return kExitUsage;
        }
        if (!std::isfinite(settings_.timeout_s) || !std::isfinite(arguments_.interval_s) ||
            !std::isfinite(arguments_.seconds)) {
            complain("a time must be a finite number of seconds");
            return kExitUsage;
        }
        return run_chosen();
    }

private:
    void declare_verbs();
    // An exit code: nothing is to be run.
    std::expected<void, int> parse(const std::vector<std::string>& words);
    int run_chosen();

    const Settings defaults_;
    LineSource source_{};
    CLI::App app_{"Store and fetch objects, and administer a running fopd.", "fopctl"};
    Settings settings_;
    VerbArguments arguments_;
    VerbArguments fresh_;  // Of no line yet.
    const Verb* chosen_ = nullptr;
};

void CommandLine::declare_verbs() {
    struct Section {
        const char* heading;
        std::span<const Verb> verbs;
    };
    const std::array sections{Section{"Objects", object_verbs()},
                              Section{"Objects", mirror_verbs()},
                              Section{"Tape", tape_verbs()},
                              Section{"Many verbs in one session", session_verbs()},
                              Section{"Network", fabric_verbs()},
                              Section{"Node", node_verbs()},
                              Section{"Disks", disk_verbs()},
                              Section{"Request scheduler (LRS)", lrs_verbs()},
                              Section{"Request scheduler (LRS)", epoch_verbs()},
                              Section{"I/O schedulers", io_sched_verbs()},
                              Section{"Principals, keys and tokens", key_verbs()}};
    for (const auto& [heading, verbs] : sections) {
        for (const Verb& verb : verbs) {
            CLI::App* const sub = declare_verb(app_, verb, heading);
            if (verb.declare != nullptr) verb.declare(*sub, arguments_);
            sub->callback([this, &verb] { chosen_ = &verb; });
        }
    }
    name_values(app_);
}

std::expected<void, int> CommandLine::parse(const std::vector<std::string>& words) {
    // Parsing may fail before it reaches them.
    const bool wants_json = std::ranges::find(words, "--json") != words.end();
    const bool wants_quiet = std::ranges::find(words, "--quiet") != words.end();
    try {
        // The library takes the words from the last to the first.
        app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
        return {};
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return std::unexpected(app_.exit(error));
        if (wants_json) complain_as(Complaints::kJson);
        const std::string why = refusal(app_, error, words);
        complain(why);
        note_error_code("usage");
        if (!app_.got_subcommand("health")) return std::unexpected(kExitUsage);
        const Output output = wants_json    ? Output::kJson
                              : wants_quiet ? Output::kQuiet
                                            : Output::kPage;
        return std::unexpected(print_unknown_health(output, why));
    }
}

int CommandLine::run_chosen() {
    const Verb& verb = *chosen_;
    const Duration timeout = settings_.timeout_s > 0
                                 ? std::chrono::duration_cast<Duration>(
                                       std::chrono::duration<double>(settings_.timeout_s))
                                 : verb.timeout;
    const AdminClient client(settings_.admin, timeout);
    const Output output = settings_.json    ? Output::kJson
                          : settings_.quiet ? Output::kQuiet
                                            : Output::kPage;
    Call call{.verb = verb.name,
              .client = client,
              .remote = settings_.remote,
              .timeout = timeout,
              .output = output,
              .arguments = arguments_,
              .open_lines = {},
              .source = source_};
    if (source_.shared == nullptr) {
        call.open_lines = [this](const LineSource& source) {
            return std::make_unique<CommandLine>(settings_, &source);
        };
    }
    try {
        return verb.run(call);
    } catch (const nlohmann::json::exception&) {
        complain("the program at " + client.name() +
                 " is not fopd, or has another version: this fopctl does not know the form of its "
                 "reply");
        return kExitNoServer;
    }
}

int main(int argc, char** argv) {
    // The parent process may have set it to be ignored, but a closed standard output must end
    // fopctl.
    std::signal(SIGPIPE, SIG_DFL);
    CommandLine line({}, nullptr);
    choose_colours("auto");
    const std::span<char*> given(argv, static_cast<std::size_t>(argc));
    std::vector<std::string> words(given.begin() + (given.empty() ? 0 : 1), given.end());
    return line.run(with_help_option(std::move(words)));
}

}  // namespace

}  // namespace fopd::client

int main(int argc, char** argv) try {
    using namespace fopd::client;
    if (const auto forbidden = fopd::core::forbid_core_dumps(); !forbidden) {
        complain(describe(forbidden.error()));
        return end_complaints(kExitInternal);
    }
    return end_complaints(fopd::client::main(argc, argv));
} catch (const std::exception& problem) {
    fopd::client::complain(problem.what());
    return fopd::client::end_complaints(fopd::client::kExitInternal);
}
