#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/time.h"

namespace fopd::bench {

// Measures the gain of servers that all serve the same application at a time. The real request
// schedulers of `servers` servers run in virtual time. While each server is busy, `apps`
// applications send a request to each of them; the requests arrive at each server in an order of
// its own. An application is done when all its requests are.
struct Experiment {
    std::size_t servers = 1;
    std::size_t apps = 1;
    double striping = 1;  // The part of the servers that an application uses, at least one.
    // How much longer or shorter than a unit a request takes, at most, drawn for each.
    double spread = 0;
    // How long an epoch takes after the last server is ready, in units of the time of a request.
    double epoch_cost = 0;
    // How much later than the first server another one learns of the epoch, at most; same unit.
    double raggedness = 0;
    bool has_epochs = true;
    std::string settings{};  // The settings of epoch_groups, as in the configuration.
    int trials = 100;
};

// Times are in units of the time of a request; means over all trials.
struct Outcome {
    double mean = 0;      // When an application is done.
    double p99 = 0;       // The same, of all applications of all trials.
    double makespan = 0;  // When all are done.
    double jain = 0;      // Jain's index of the applications' speeds, 1 / the time when it is done.
    double epochs = 0;
};
struct Comparison {
    Outcome fifo;
    Outcome groups;

    double reduction() const { return 1 - groups.mean / fifo.mean; }
};
Comparison compare(const Experiment& experiment);

// The mean time that theory predicts when requests take equally long and epochs cost nothing. With
// fifo each server has a random order of its own; with groups all servers have one order.
double expected_fifo(std::size_t servers, std::size_t apps);
double expected_groups(std::size_t apps);

}  // namespace fopd::bench
