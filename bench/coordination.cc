#include "bench/coordination.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "bench/measure.h"
#include "config/schema.h"
#include "core/random.h"
#include "lrs/settings.h"
#include "sim/schedulers/scheduled_servers.h"

namespace fopd::bench {

namespace {

constexpr Duration kUnit = 10ms;

Duration units(double count) {
    return Duration(std::llround(count * static_cast<double>(kUnit.count())));
}

lrs::LrsSettings settings_of(std::string_view policy, const std::string& values) {
    config::Schema schema;
    schema.add(lrs::lrs_section());
    const auto loaded = schema.load_text(
        "lrs: { policy: " + std::string(policy) + ", epoch_groups: { " + values + " } }", "bench");
    if (!loaded) fail("the settings of epoch_groups are wrong: " + values);
    return (*loaded)->get<lrs::LrsSettings>();
}

// The same for both policies.
struct Arrivals {
    Arrivals(const Experiment& experiment, std::uint64_t seed) {
        core::Random random(seed);
        const auto striped = static_cast<std::size_t>(std::max(
            1.0, std::round(experiment.striping * static_cast<double>(experiment.servers))));
        at_server.resize(experiment.servers);
        for (std::size_t app = 0; app < experiment.apps; ++app) {
            const std::size_t first = random.below(experiment.servers);
            for (std::size_t i = 0; i < striped; ++i) {
                const auto part = static_cast<double>(random.between(-1000, 1000)) / 1000;
                const std::size_t server = (first + i) % experiment.servers;
                at_server[server].push_back(
                    {.server = server, .job = app, .takes = units(1 + part * experiment.spread)});
            }
        }
        for (auto& order : at_server) {
            for (std::size_t left = order.size(); left > 1; --left)
                std::swap(order[left - 1], order[random.below(left)]);
        }
    }

    std::vector<std::vector<sim::ScheduledServers::Work>> at_server;
};

class Trials {
public:
    explicit Trials(const Experiment& experiment) : experiment_(experiment) {}

    void run(const lrs::PolicyChoice& policy, std::uint64_t seed) {
        const Arrivals arrivals(experiment_, seed);
        sim::ScheduledServers servers({.servers = experiment_.servers,
                                       .policy = policy,
                                       .epochs = {.cost = units(experiment_.epoch_cost),
                                                  .raggedness = units(experiment_.raggedness),
                                                  .seed = seed},
                                       .seed = seed});
        begin(servers, seed);
        for (std::size_t i = 0; i < experiment_.servers; ++i)
            servers.submit({.server = i, .job = experiment_.apps + i, .takes = kUnit});
        for (const auto& order : arrivals.at_server) {
            for (const auto& work : order) servers.submit(work);
        }
        const Instant begun = after(servers.now(), kUnit);
        const eh::EpochNumber before = servers.epochs().epoch();
        std::vector<double> done(experiment_.apps);
        servers.on_done([&](const sim::ScheduledServers::Work& work) {
            if (work.job >= experiment_.apps) return;
            const Duration span = servers.now() - begun;
            done[work.job] = static_cast<double>(span.count()) / static_cast<double>(kUnit.count());
        });
        servers.run_dry();
        add(done);
        outcome_.epochs += static_cast<double>(servers.epochs().epoch() - before);
    }

    Outcome outcome() {
        const auto count = static_cast<double>(experiment_.trials);
        outcome_.mean /= count;
        outcome_.makespan /= count;
        outcome_.jain /= count;
        outcome_.epochs /= count;
        std::ranges::sort(all_);
        outcome_.p99 = all_[all_.size() * 99 / 100];
        return outcome_;
    }

private:
    // Epochs are under way, and each server has served others than the others have.
    void begin(sim::ScheduledServers& servers, std::uint64_t seed) {
        if (!experiment_.has_epochs) {
            for (std::size_t i = 0; i < experiment_.servers; ++i) servers.cut_off(i, true);
        }
        core::Random random(seed);
        for (std::size_t i = 0; i < experiment_.servers; ++i) {
            for (std::uint64_t left = random.below(8); left > 0; --left) {
                const std::size_t job = experiment_.apps + random.below(100);
                servers.submit({.server = i, .job = job, .takes = kUnit});
            }
        }
        servers.run_dry();
        servers.run_for(1s);
    }

    void add(const std::vector<double>& done) {
        double sum = 0;
        double speeds = 0;
        double squares = 0;
        for (const double each : done) {
            sum += each;
            speeds += 1 / each;
            squares += 1 / (each * each);
        }
        const auto apps = static_cast<double>(done.size());
        outcome_.mean += sum / apps;
        outcome_.makespan += std::ranges::max(done);
        outcome_.jain += speeds * speeds / (apps * squares);
        all_.insert(all_.end(), done.begin(), done.end());
    }

    const Experiment& experiment_;
    Outcome outcome_;
    std::vector<double> all_;
};

}  // namespace

Comparison compare(const Experiment& experiment) {
    const lrs::PolicyChoice fifo = settings_of("fifo", "");
    const lrs::PolicyChoice groups = settings_of("epoch_groups", experiment.settings);
    Trials of_fifo(experiment);
    Trials of_groups(experiment);
    for (int trial = 1; trial <= experiment.trials; ++trial) {
        const auto seed = static_cast<std::uint64_t>(trial);
        of_fifo.run(fifo, seed);
        of_groups.run(groups, seed);
    }
    return {.fifo = of_fifo.outcome(), .groups = of_groups.outcome()};
}

double expected_fifo(std::size_t servers, std::size_t apps) {
    const auto all = static_cast<double>(apps);
    double sum = all;
    for (std::size_t k = 1; k < apps; ++k)
        sum -= std::pow(static_cast<double>(k) / all, static_cast<double>(servers));
    return sum;
}

double expected_groups(std::size_t apps) {
    return (static_cast<double>(apps) + 1) / 2;
}

}  // namespace fopd::bench
