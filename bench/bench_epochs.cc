// Measures what epochs cost and bring, in virtual time with the real members and schedulers.
//
//     bench_epochs [--json [--losses]]
//
// First the cost of an epoch.
// All members of a view become ready at once; measured is the time from then until the last of them
// has the epoch, and the messages. A message takes 20 us; a member handles one at a time, 1 us for
// each that it gets or sends. Then how the time grows with the number of members.
//
// Then how much sooner applications are done when all servers serve the same one at a time (policy
// epoch_groups), compared with servers that each go by the order of arrival (fifo), and what of
// that is lost when epochs cost time, servers hear of them one after the other, requests take
// unequal times, or applications use a part of the servers only. With --json the losses are left
// out unless --losses asks for them: they take minutes. bench/epochs_page.py draws all figures.

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/coordination.h"
#include "bench/measure.h"
#include "sim/epochs/epoch_world.h"

namespace fopd::sim {
namespace {

constexpr Duration kHop = 20us;
constexpr Duration kHandling = 1us;
constexpr std::size_t kFanout = 16;

struct Cost {
    std::size_t members = 0;
    double us = 0;
    std::uint64_t messages = 0;
};

Cost measure(std::size_t members) {
    EpochWorldOptions options{.members = members};
    options.member.rules = EpochLaws::rules(5s);
    options.member.fanout = kFanout;
    options.hop = kHop;
    options.handling = kHandling;
    options.in_bytes = false;
    options.bytes_max = 64;
    options.checks_laws = false;
    EpochWorld world(options);
    world.begin_joined();
    // The beats of the beginning are over, and the next ones are far.
    world.run_until(world.now() + 100ms);
    world.stop_participants();
    const std::uint64_t before = world.messages();
    const Instant ready = world.now();
    for (std::size_t i = 0; i < members; ++i) world.run_participant(i, 1s);
    world.run_until(ready + 100ms);
    Instant last = ready;
    for (std::size_t i = 0; i < members; ++i) {
        if (world.answers(i).size() != 1 || !world.answers(i)[0]) bench::fail("no epoch");
        last = std::max(last, world.answered_at(i)[0]);
    }
    return {.members = members,
            .us = in_seconds(last - ready) * 1e6,
            .messages = world.messages() - before};
}

// How much each factor of the fanout adds, as a multiple of a hop and the handling of the children.
double growth(const Cost& few, const Cost& many) {
    const double factors =
        std::log(static_cast<double>(many.members) / static_cast<double>(few.members)) /
        std::log(static_cast<double>(kFanout));
    const double step = in_seconds(kHop + kHandling * static_cast<int>(kFanout)) * 1e6;
    return (many.us - few.us) / factors / step;
}

void print_costs(const std::vector<Cost>& costs, double grows) {
    for (const Cost& cost : costs) {
        std::printf("%6zu members: %7.1f us, %llu messages\n", cost.members, cost.us,
                    static_cast<unsigned long long>(cost.messages));
    }
    std::printf("each factor of %zu adds %.2f times a hop and the handling of %zu\n", kFanout,
                grows, kFanout);
}

// -- coordination --

using bench::Comparison;
using bench::Experiment;

struct Ideal {
    std::size_t servers;
    std::size_t apps;
    int trials;
};
constexpr std::array kIdeals{Ideal{1, 4, 50},   Ideal{4, 2, 1000}, Ideal{4, 4, 1000},
                             Ideal{4, 8, 500},  Ideal{16, 8, 150}, Ideal{16, 16, 100},
                             Ideal{64, 16, 30}, Ideal{64, 64, 10}};

struct Measured {
    const char* what;  // What takes from the gain.
    const char* way;   // How epoch_groups is set.
    Experiment experiment;
    Comparison comparison;
};

std::vector<Measured> measure_ideals() {
    std::vector<Measured> all;
    for (const Ideal& ideal : kIdeals) {
        const Experiment experiment{
            .servers = ideal.servers, .apps = ideal.apps, .trials = ideal.trials};
        all.push_back({"nothing", "serve", experiment, bench::compare(experiment)});
    }
    return all;
}

// What takes from the gain, one thing at a time; 16 servers and 8 applications.
std::vector<Measured> measure_losses() {
    std::vector<Measured> all;
    const auto add = [&all](const char* what, const char* way, Experiment experiment) {
        experiment.servers = 16;
        experiment.apps = 8;
        experiment.trials = 100;
        if (std::strcmp(way, "wait") == 0) experiment.settings = "others: wait";
        if (std::strcmp(way, "serve, 10 ms") == 0) experiment.settings = "length: 10ms";
        all.push_back({what, way, experiment, bench::compare(experiment)});
    };
    for (const char* way : {"serve", "wait", "serve, 10 ms"}) add("nothing", way, {});
    add("no epochs", "serve", {.has_epochs = false});
    for (const char* way : {"serve", "wait"}) {
        for (const double cost : {0.1, 0.5, 1.0, 2.0}) add("epoch cost", way, {.epoch_cost = cost});
        for (const double raggedness : {0.5, 1.0, 2.0})
            add("raggedness", way, {.raggedness = raggedness});
        for (const double spread : {0.25, 0.5, 0.9}) add("unequal times", way, {.spread = spread});
    }
    for (const char* way : {"serve", "wait", "serve, 10 ms"}) {
        for (const double striping : {0.75, 0.5, 0.25, 0.0625})
            add("striping", way, {.striping = striping});
    }
    return all;
}

// The parameter that this experiment varies; the others are 0, or 1 for the striping.
double amount(const Experiment& experiment) {
    return experiment.epoch_cost + experiment.raggedness + experiment.spread +
           (experiment.striping < 1 ? experiment.striping : 0);
}

void print_coordination(const std::vector<Measured>& ideals, const std::vector<Measured>& losses) {
    std::printf("\nservers apps |   fifo expected | groups expected | reduction makespan\n");
    for (const Measured& each : ideals) {
        const auto& [fifo, groups] = each.comparison;
        std::printf("%7zu %4zu | %6.2f %8.2f | %6.2f %8.2f | %7.1f %% %+6.1f %%\n",
                    each.experiment.servers, each.experiment.apps, fifo.mean,
                    bench::expected_fifo(each.experiment.servers, each.experiment.apps),
                    groups.mean, bench::expected_groups(each.experiment.apps),
                    100 * each.comparison.reduction(), 100 * (groups.makespan / fifo.makespan - 1));
    }
    std::printf(
        "\n16 servers, 8 apps                | reduction makespan |  p99 of fifo, groups | "
        "Jain of fifo, groups | epochs\n");
    for (const Measured& each : losses) {
        const auto& [fifo, groups] = each.comparison;
        std::printf(
            "%-13s %-12s %6.4g | %7.1f %% %+6.1f %% | %10.2f %8.2f | %11.3f %8.3f | %6.1f\n",
            each.what, each.way, amount(each.experiment), 100 * each.comparison.reduction(),
            100 * (groups.makespan / fifo.makespan - 1), fifo.p99, groups.p99, fifo.jain,
            groups.jain, groups.epochs);
    }
}

void print_json_outcome(const Comparison& comparison) {
    const auto& [fifo, groups] = comparison;
    std::printf(
        "\"reduction\": %.4f, \"makespan\": %.4f, \"mean_fifo\": %.4f, \"mean\": %.4f, "
        "\"p99_fifo\": %.4f, \"p99\": %.4f, \"jain_fifo\": %.4f, \"jain\": %.4f, "
        "\"epochs\": %.2f}",
        comparison.reduction(), groups.makespan / fifo.makespan, fifo.mean, groups.mean, fifo.p99,
        groups.p99, fifo.jain, groups.jain, groups.epochs);
}

void print_json_losses(const std::vector<Measured>& losses) {
    std::printf("\"losses\": [");
    for (const Measured& each : losses) {
        std::printf("%s{\"what\": \"%s\", \"way\": \"%s\", \"amount\": %.4f, ",
                    &each == &losses.front() ? "" : ", ", each.what, each.way,
                    amount(each.experiment));
        print_json_outcome(each.comparison);
    }
    std::printf("], ");
}

void print_json_latencies(const std::vector<Cost>& costs) {
    std::printf("\"latency\": [");
    for (const Cost& cost : costs) {
        std::printf("%s{\"members\": %zu, \"us\": %.1f, \"messages\": %llu}",
                    &cost == &costs.front() ? "" : ", ", cost.members, cost.us,
                    static_cast<unsigned long long>(cost.messages));
    }
    std::printf("]");
}

// Without losses there is no key for them.
void print_json(const std::vector<Cost>& costs, double grows, const std::vector<Measured>& ideals,
                const std::vector<Measured>& losses) {
    std::printf("{\"coordination\": [");
    for (const Measured& each : ideals) {
        const std::size_t servers = each.experiment.servers;
        const std::size_t apps = each.experiment.apps;
        const double fifo = bench::expected_fifo(servers, apps);
        const double groups = bench::expected_groups(apps);
        std::printf(
            "%s{\"servers\": %zu, \"apps\": %zu, \"expected\": %.4f, "
            "\"expected_mean_fifo\": %.4f, \"expected_mean\": %.4f, ",
            &each == &ideals.front() ? "" : ", ", servers, apps, 1 - groups / fifo, fifo, groups);
        print_json_outcome(each.comparison);
    }
    std::printf("], ");
    if (!losses.empty()) print_json_losses(losses);
    std::printf("\"latency_10k_us\": %.1f, \"messages_10k\": %llu, \"growth_per_factor\": %.2f, ",
                costs.back().us, static_cast<unsigned long long>(costs.back().messages), grows);
    print_json_latencies(costs);
    std::printf("}\n");
}

struct Asked {
    bool json = false;
    bool losses = false;
};

int run(const Asked& asked) {
    std::vector<Cost> costs;
    for (const std::size_t members : {10U, 100U, 1000U, 10'000U}) costs.push_back(measure(members));
    const double grows = growth(costs.front(), costs.back());
    const std::vector<Measured> ideals = measure_ideals();
    std::vector<Measured> losses;
    if (asked.losses || !asked.json) losses = measure_losses();
    if (asked.json) {
        print_json(costs, grows, ideals, losses);
        return 0;
    }
    print_costs(costs, grows);
    print_coordination(ideals, losses);
    return 0;
}

}  // namespace
}  // namespace fopd::sim

int main(int count, char** words) {
    fopd::sim::Asked asked;
    for (int i = 1; i < count; ++i) {
        if (std::strcmp(words[i], "--json") == 0) asked.json = true;
        if (std::strcmp(words[i], "--losses") == 0) asked.losses = true;
    }
    return fopd::sim::run(asked);
}
