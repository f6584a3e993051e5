// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fopd::client {

// The counters of a locality; with double, their rates per second.
template <typename Count>
struct LocalityLoad {
    std::uint64_t index = 0;
    nlohmann::json core;
    double busy = 0;  // In seconds; in rates, as a share of the time.
    Count turns = 0;
    Count sleeps = 0;
    Count resumed = 0;
    Count io = 0;
    Count messages = 0;
    std::uint64_t buffers_free = 0;
};

struct ClassSample {
    std::string name;
    std::uint64_t queued = 0;
    std::uint64_t served = 0;
    std::uint64_t bytes = 0;
    double throttled_s = 0;
    double oldest_s = 0;
};

// The load of fops of one kind, or of a device, since the start of the daemon.
struct LoadSample {
    std::string name;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
    std::map<std::uint64_t, std::uint64_t> latency;  // Counts of buckets, by upper bound in ns.
};

// The figures of the daemon at one time.
struct TopSample {
    std::string name;
    std::string state;
    std::int64_t pid = 0;
    double uptime_s = 0;
    std::vector<LocalityLoad<std::uint64_t>> localities;
    std::vector<ClassSample> classes;
    bool has_load = false;  // Whether the members below are set.
    // Fops by operation, by class and by principal; reads and writes of devices.
    std::vector<LoadSample> ops;
    std::vector<LoadSample> class_loads;
    std::vector<LoadSample> principals;
    std::vector<LoadSample> devices;
};
// These read the answers to /v1/status, /v1/lrs and /v1/load.
TopSample sample_of(const nlohmann::json& status);
void add_classes(TopSample& sample, const nlohmann::json& lrs);
void add_load(TopSample& sample, const nlohmann::json& load);

struct LoadRates {
    std::string name;
    double ops = 0;
    double bytes = 0;
    double p50_us = 0;  // 0: nothing ended.
    double p99_us = 0;
};

struct ClassRates {
    std::uint64_t queued = 0;
    double throttled = 0;  // Share of the time, in all localities together.
    double oldest_s = 0;
    LoadRates load;
};

struct TopRates {
    double interval_s = 0;
    std::vector<LocalityLoad<double>> localities;
    std::vector<ClassRates> classes;  // Those with the most requests queued first.
    std::vector<LoadRates> ops;       // Those with the most operations first; likewise below.
    std::vector<LoadRates> principals;
    std::vector<LoadRates> devices;
};

// Whether rates can be computed from the two samples. False after a restart of the daemon.
bool are_comparable(const TopSample& before, const TopSample& now);
TopRates rates_between(const TopSample& before, const TopSample& now);

}  // namespace fopd::client
