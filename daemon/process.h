#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "config/address.h"
#include "daemon/configuration.h"
#include "daemon/node.h"
#include "fabric/address.h"

namespace fopd::daemon {

struct ProcessOptions {
    // Wins over admin.metrics.
    std::optional<config::Address> metrics;
    // Wins over fabric.listen.
    std::optional<std::vector<fabric::Address>> listen;
    NodeOptions::Buffers buffers = NodeOptions::Buffers::kRegistered;
};

// From here on SIGTERM, SIGINT and SIGHUP wait until the daemon reads them, so that one that comes
// during the start is not lost and does not kill. Before any other thread is started.
void hold_signals();

// Runs the daemon until it has been told to stop: the real world around a Node. SIGTERM and SIGINT
// drain and stop, a second one ends at once unless it only repeats the first within half a second,
// SIGHUP reloads. Returns the exit code. The calling
// thread becomes the control thread. Requires: hold_signals().
int run_process(std::unique_ptr<Configuration> configuration, const ProcessOptions& options);

}  // namespace fopd::daemon
