// fopd, the daemon: only the command line.

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "config/command_line.h"
#include "config/sample.h"
#include "config/schema.h"
#include "core/core_dumps.h"
#include "core/printable.h"
#include "daemon/configuration.h"
#include "daemon/dev_setup.h"
#include "daemon/local_library_bay.h"
#include "daemon/offline_check.h"
#include "daemon/process.h"
#include "daemon/settings.h"
#include "daemon/store_restore.h"
#include "daemon/version.h"
#include "fabric/settings.h"

namespace {

using namespace fopd;
using namespace fopd::daemon;

struct Arguments {
    std::string config_file = "/etc/fopd/fopd.yaml";
    bool check_config = false;
    bool print_config = false;
    bool sample_config = false;
    bool dev = false;
    std::string dev_dir;  // Empty: the default directory.
    std::string metrics;
    std::string listen;
    std::string restore_file;
    bool check_store = false;
};

// A problem may contain a file's name, which must not send control characters to the terminal.
void print_problem(const std::string& problem) {
    std::string line;
    core::append_printable(line, problem);
    std::fprintf(stderr, "%s\n", line.c_str());
}

int complain(const StartProblem& problem) {
    print_problem("fopd: " + problem.message);
    return problem.exit_code;
}

// If a standard descriptor is closed, the next opened file would get its number, and the log would
// be written into that file. A log may go to /dev/null; but printing must fail rather than be lost,
// so standard output is opened without write access.
bool fill_standard_descriptors() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) >= 0) continue;
        if (::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
    }
    return true;
}

// The exit code after printing: failure if the output could not be written.
int exit_printed() {
    errno = 0;
    if (std::cout.flush().good()) return kExitDone;
    return complain({.exit_code = kExitSystem,
                     .message = std::string("standard output: ") +
                                (errno == 0 ? "it cannot be written to" : std::strerror(errno))});
}

// The address at which a client on this machine reaches the daemon.
std::string dev_server(const ProcessOptions& options, const fabric::FabricSettings& settings) {
    const std::vector<fabric::Address>& listen = options.listen ? *options.listen : settings.listen;
    if (listen.empty() || listen.front().port == 0) return {};
    fabric::Address address = listen.front();
    if (address.host == "0.0.0.0") address.host = "127.0.0.1";
    if (address.host == "::") address.host = "::1";
    return format_address(address);
}

// Restores missing parts of the data directory.
int restore(const config::Snapshot& settings, const std::string& file) {
    const auto restored = restore_store(settings.get<NodeSettings>().data_dir, file);
    if (!restored) return complain(restored.error());
    for (const std::string& line : restored->lines) std::cout << line << '\n';
    return exit_printed();
}

int check_store(const config::Snapshot& settings) {
    const auto checked = check_offline(settings);
    if (!checked) return complain(checked.error());
    std::cout << checked->json << '\n';
    const int exit_code = exit_printed();
    return exit_code == kExitDone && !checked->is_well ? kExitFindings : exit_code;
}

// Returns the option --dev, whose value may be left out.
const CLI::Option* declare_options(CLI::App& app, Arguments& arguments) {
    app.set_version_flag("--version", "fopd " + std::string(version()));
    auto* const config = app.add_option("--config", arguments.config_file, "The configuration file")
                             ->type_name("FILE")
                             ->capture_default_str();
    auto* const check = app.add_flag(
        "--check-config", arguments.check_config,
        "Check the configuration and exit: 0, or 78 with every error on standard error");
    auto* const print =
        app.add_flag("--print-config", arguments.print_config,
                     "Print the configuration in effect, with every default, and exit")
            ->excludes(check);
    app.add_flag("--sample-config", arguments.sample_config,
                 "Print a sample configuration file: every key, its default and a comment");
    auto* const check_store = app.add_flag("--check-store", arguments.check_store,
                                           "Check the disks while no daemon runs, print the "
                                           "report, and exit: 0, or 1 with findings")
                                  ->excludes(check)
                                  ->excludes(print);
    auto* const restore_store =
        app.add_option("--restore-store", arguments.restore_file,
                       "Restore the missing files of the data directory from a backup, and exit")
            ->type_name("FILE")
            ->excludes(check)
            ->excludes(print)
            ->excludes(check_store);
    app.add_option(
           "--listen", arguments.listen,
           "Where clients connect, such as tcp://127.0.0.1:31470, in place of fabric.listen")
        ->type_name("ADDRESS");
    app.add_option("--metrics", arguments.metrics,
                   "Where to serve /metrics, in place of admin.metrics; or none")
        ->type_name("ADDRESS");
    return app
        .add_option("--dev", arguments.dev_dir,
                    "Run without a configuration file, with all data in this directory (default " +
                        default_dev_dir() + ")")
        ->expected(0, 1)
        ->type_name("DIR")
        ->excludes(config)
        ->excludes(check)
        ->excludes(print)
        ->excludes(restore_store)
        ->excludes(check_store);
}

int run(Arguments arguments) {
    if (arguments.sample_config) {
        std::cout << config::annotated_sample(make_schema());
        return exit_printed();
    }
    ProcessOptions options;
    std::optional<DevSetup> dev;
    if (arguments.metrics == "none") {
        options.metrics.emplace(std::nullopt);
    } else if (!arguments.metrics.empty()) {
        const auto address = config::parse_address(arguments.metrics);
        if (!address) {
            return complain(
                {.exit_code = kExitUsage,
                 .message = "--metrics: " + address.error().wrong + ", " + address.error().right});
        }
        options.metrics = *address;
    }
    if (!arguments.listen.empty()) {
        const auto address = fabric::parse_address(arguments.listen);
        if (!address || address->locality) {
            return complain({.exit_code = kExitUsage,
                             .message = "--listen: " + arguments.listen + ": " +
                                        (address ? "clients name localities, a listener does not"
                                                 : address.error().context)});
        }
        options.listen = {*address};
    }
    if (arguments.dev) {
        auto made =
            make_dev_setup(arguments.dev_dir.empty() ? default_dev_dir() : arguments.dev_dir);
        if (!made) return complain(made.error());
        dev = *std::move(made);
        arguments.config_file = dev->config_file;
        options.buffers = NodeOptions::Buffers::kAny;
    }

    if (!arguments.check_config && !arguments.print_config) hold_signals();

    const config::Schema schema = make_schema();
    auto load = [&schema, file = arguments.config_file] { return schema.load_file(file); };
    auto configuration = Configuration::open(arguments.config_file, load);
    if (!configuration) {
        for (const config::Problem& problem : configuration.error()) {
            print_problem(to_string(problem));
        }
        return kExitConfig;
    }
    const std::string wrong_device = wrong_library_device(
        (*configuration)->current()->get<std::vector<library::LibrarySettings>>());
    if (!wrong_device.empty() && !arguments.print_config) {
        print_problem(arguments.config_file + ": " + wrong_device);
        return kExitConfig;
    }
    if (arguments.check_config) return kExitDone;
    if (arguments.print_config) {
        std::cout << config::print_effective(*(*configuration)->current());
        return exit_printed();
    }
    if (arguments.check_store) return check_store(*(*configuration)->current());
    if (!arguments.restore_file.empty()) {
        return restore(*(*configuration)->current(), arguments.restore_file);
    }
    if (dev) {
        // With the lock: a daemon that runs in this directory keeps its env.sh.
        options.when_locked =
            [setup = *dev,
             server =
                 dev_server(options, (*configuration)->current()->get<fabric::FabricSettings>())] {
                return write_dev_environment(setup, server);
            };
    }
    return run_process(std::move(*configuration), options);
}

}  // namespace

int main(int argc, char* argv[]) try {
    if (const auto forbidden = core::forbid_core_dumps(); !forbidden) {
        return complain({.exit_code = kExitSystem, .message = describe(forbidden.error())});
    }
    if (!fill_standard_descriptors()) {
        return complain({.exit_code = kExitSystem,
                         .message = std::string("a standard descriptor is closed, and cannot be "
                                                "opened as /dev/null: ") +
                                    std::strerror(errno)});
    }
    Arguments arguments;
    CLI::App app("fopd, a storage-server daemon.", "fopd");
    app.formatter(std::make_shared<config::HelpPage>());
    const CLI::Option* const dev = declare_options(app, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {
            app.exit(error);
            return exit_printed();
        }
        return complain({.exit_code = kExitUsage, .message = config::refusal(app, error)});
    }
    arguments.dev = dev->count() > 0;
    return run(std::move(arguments));
} catch (const std::exception& problem) {
    return complain({.exit_code = kExitInternal, .message = problem.what()});
}
