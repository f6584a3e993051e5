#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "config/address.h"
#include "daemon/configuration.h"
#include "daemon/node.h"
#include "daemon/start_problem.h"
#include "fabric/address.h"

namespace fopd::daemon {

struct ProcessOptions {
    // Overrides admin.metrics: with an address, or with none.
    std::optional<std::optional<config::Address>> metrics;
    // Overrides fabric.listen.
    std::optional<std::vector<fabric::Address>> listen;
    NodeOptions::Buffers buffers = NodeOptions::Buffers::kRegistered;
    // Called once the data directory is locked, when no other daemon uses it: a failure ends the
    // start. Empty: nothing is called.
    std::function<Started<void>()> when_locked;
};

// Blocks SIGTERM, SIGINT and SIGHUP until the daemon reads them, so that a signal during the start
// is neither lost nor fatal. Called before any other thread is started.
void hold_signals();

// Runs the daemon, the real world around a Node, until it is told to stop. SIGTERM and SIGINT drain
// and stop; a second one ends the process at once, unless it repeats the first within half a
// second; SIGHUP reloads. Returns the exit code. The calling thread becomes the control thread.
// REQUIRES: hold_signals() was called.
int run_process(std::unique_ptr<Configuration> configuration, const ProcessOptions& options);

}  // namespace fopd::daemon
