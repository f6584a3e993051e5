// fopd, the daemon: the command line, and nothing else.

#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "config/sample.h"
#include "config/schema.h"
#include "daemon/configuration.h"
#include "daemon/dev_setup.h"
#include "daemon/process.h"
#include "daemon/version.h"

namespace {

using namespace fopd;
using namespace fopd::daemon;

struct Arguments {
    std::string config_file = "/etc/fopd/fopd.yaml";
    bool check_config = false;
    bool print_config = false;
    bool sample_config = false;
    bool dev = false;
    std::string dev_dir = default_dev_dir();
    std::string metrics;
};

int complain(const StartProblem& problem) {
    std::fprintf(stderr, "fopd: %s\n", problem.message.c_str());
    return problem.exit_code;
}

int print(const std::string& text) {
    std::cout << text << std::flush;
    if (std::cout.good()) return kExitDone;
    return complain({.exit_code = kExitSystem, .message = "standard output cannot be written"});
}

int run(Arguments arguments) {
    if (arguments.sample_config) return print(config::annotated_sample(make_schema()));
    ProcessOptions options;
    if (!arguments.metrics.empty()) {
        const auto address = config::parse_address(arguments.metrics);
        if (!address) {
            return complain(
                {.exit_code = kExitUsage,
                 .message = "--metrics: " + address.error().wrong + ", " + address.error().right});
        }
        options.metrics = *address;
    }
    if (arguments.dev) {
        const auto setup = make_dev_setup(arguments.dev_dir);
        if (!setup) return complain(setup.error());
        arguments.config_file = setup->config_file;
        options.buffers = NodeOptions::Buffers::kAny;
    }

    if (!arguments.check_config && !arguments.print_config) hold_signals();

    const config::Schema schema = make_schema();
    auto load = [&schema, file = arguments.config_file] { return schema.load_file(file); };
    auto configuration = Configuration::open(arguments.config_file, load);
    if (!configuration) {
        for (const config::Problem& problem : configuration.error()) {
            std::fprintf(stderr, "%s\n", to_string(problem).c_str());
        }
        return kExitConfig;
    }
    if (arguments.check_config) return kExitDone;
    if (arguments.print_config) return print(config::print_effective(*(*configuration)->current()));
    return run_process(std::move(*configuration), options);
}

}  // namespace

int main(int argc, char* argv[]) {
    Arguments arguments;
    CLI::App app("fopd, a storage-server daemon.", "fopd");
    app.set_version_flag("--version", "fopd " + std::string(version()));
    auto* const config = app.add_option("--config", arguments.config_file,
                                        "The configuration file [/etc/fopd/fopd.yaml]");
    auto* const check =
        app.add_flag("--check-config", arguments.check_config,
                     "Check the configuration and end: 0, or 78 and every error on standard error");
    app.add_flag("--print-config", arguments.print_config,
                 "Print the effective configuration with every default, and end")
        ->excludes(check);
    app.add_flag("--sample-config", arguments.sample_config,
                 "Print a configuration file with every key, its default and what it is for");
    auto* const dev = app.add_option("--dev", arguments.dev_dir,
                                     "Run without a configuration, on what is kept in DIR [" +
                                         arguments.dev_dir + "]")
                          ->expected(0, 1)
                          ->type_name("DIR")
                          ->excludes(config);
    app.add_option("--metrics", arguments.metrics,
                   "Where to serve /metrics, in place of admin.metrics")
        ->type_name("ADDRESS");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? kExitDone : kExitUsage;
    }
    arguments.dev = dev->count() > 0;
    if (arguments.dev_dir.empty()) arguments.dev_dir = default_dev_dir();
    return run(std::move(arguments));
}
