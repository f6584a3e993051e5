// SPDX-License-Identifier: BSD-2-Clause
#include "client/top_figures.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>
#include <tuple>

#include "client/table.h"

namespace fopd::client {

namespace {

using nlohmann::json;

// How many classes of the request scheduler are shown.
constexpr std::size_t kClassesMax = 20;

std::vector<LoadSample> loads_of(const json& list) {
    std::vector<LoadSample> loads;
    for (const json& at : list) {
        LoadSample& load =
            loads.emplace_back(LoadSample{.name = shown(at.at("name")),
                                          .count = at.at("count").get<std::uint64_t>(),
                                          .bytes = at.at("bytes").get<std::uint64_t>(),
                                          .latency = {}});
        for (const json& bucket : at.at("latencies")) {
            load.latency[bucket.at("up_to_ns").get<std::uint64_t>()] =
                bucket.at("count").get<std::uint64_t>();
        }
    }
    return loads;
}

using Latency = std::map<std::uint64_t, std::uint64_t>;

// 0 if there is nothing.
double percentile_us(const Latency& latency, double share) {
    std::uint64_t count = 0;
    for (const auto& [limit, ended] : latency) count += ended;
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count)));
    std::uint64_t seen = 0;
    for (const auto& [limit, ended] : latency) {
        seen += ended;
        if (ended > 0 && seen >= wanted) return static_cast<double>(limit) / 1000;
    }
    return 0;
}

LoadRates load_between(const LoadSample& before, const LoadSample& now, double interval_s) {
    // A name that lost its counters, and got new ones, began at 0 again.
    const LoadSample none;
    if (now.count < before.count) return load_between(none, now, interval_s);
    Latency latency = now.latency;
    for (const auto& [limit, ended] : before.latency) {
        const auto same = latency.find(limit);
        if (same != latency.end()) same->second -= std::min(same->second, ended);
    }
    const auto rate = [interval_s](std::uint64_t from, std::uint64_t to) {
        return to > from ? static_cast<double>(to - from) / interval_s : 0;
    };
    return {.name = now.name,
            .ops = rate(before.count, now.count),
            .bytes = rate(before.bytes, now.bytes),
            .p50_us = percentile_us(latency, 0.5),
            .p99_us = percentile_us(latency, 0.99)};
}

// The counters of a name that was not there before began at 0.
LoadRates load_between(const std::vector<LoadSample>& before, const LoadSample& now,
                       double interval_s) {
    const auto known = std::ranges::find(before, now.name, &LoadSample::name);
    if (known != before.end()) return load_between(*known, now, interval_s);
    return load_between(LoadSample{}, now, interval_s);
}

std::vector<LoadRates> loads_between(const std::vector<LoadSample>& before,
                                     const std::vector<LoadSample>& now, double interval_s) {
    std::vector<LoadRates> rates;
    for (const LoadSample& each : now) rates.push_back(load_between(before, each, interval_s));
    std::ranges::sort(rates, [](const LoadRates& one, const LoadRates& other) {
        return std::tuple(-one.ops, std::string_view(one.name)) <
               std::tuple(-other.ops, std::string_view(other.name));
    });
    return rates;
}

LocalityLoad<double> locality_between(const LocalityLoad<std::uint64_t>& before,
                                      const LocalityLoad<std::uint64_t>& now, double interval_s) {
    const auto rate = [interval_s](std::uint64_t from, std::uint64_t to) {
        return to > from ? static_cast<double>(to - from) / interval_s : 0;
    };
    return {.index = now.index,
            .core = now.core,
            .busy = std::clamp((now.busy - before.busy) / interval_s, 0.0, 1.0),
            .turns = rate(before.turns, now.turns),
            .sleeps = rate(before.sleeps, now.sleeps),
            .resumed = rate(before.resumed, now.resumed),
            .io = rate(before.io, now.io),
            .messages = rate(before.messages, now.messages),
            .buffers_free = now.buffers_free};
}

ClassRates class_between(const TopSample& before, const TopSample& now, const ClassSample& of,
                         double interval_s) {
    const auto known = std::ranges::find(before.classes, of.name, &ClassSample::name);
    // The counters of a class may have begun again at 0.
    const bool is_same = known != before.classes.end() && known->served <= of.served;
    ClassRates rates{
        .queued = of.queued, .throttled = 0, .oldest_s = of.oldest_s, .load = {.name = of.name}};
    const auto load = std::ranges::find(now.class_loads, of.name, &LoadSample::name);
    if (load != now.class_loads.end()) {
        const TopSample& past = before.has_load ? before : now;
        rates.load = load_between(past.class_loads, *load, interval_s);
    }
    rates.load.ops = rates.load.bytes = 0;
    if (!is_same) return rates;
    rates.throttled = std::max(0.0, (of.throttled_s - known->throttled_s) / interval_s);
    rates.load.ops = static_cast<double>(of.served - known->served) / interval_s;
    rates.load.bytes =
        static_cast<double>(of.bytes - std::min(of.bytes, known->bytes)) / interval_s;
    return rates;
}

}  // namespace

TopSample sample_of(const json& status) {
    TopSample sample{.name = shown(status.at("name")),
                     .state = shown(status.at("state")),
                     .pid = status.at("pid").get<std::int64_t>(),
                     .uptime_s = status.at("uptime_s").get<double>(),
                     .localities = {},
                     .classes = {},
                     .has_load = false,
                     .ops = {},
                     .class_loads = {},
                     .principals = {},
                     .devices = {}};
    for (const json& at : status.at("localities")) {
        sample.localities.push_back({.index = at.at("index").get<std::uint64_t>(),
                                     .core = at.value("core", json()),
                                     .busy = at.at("busy_s").get<double>(),
                                     .turns = at.at("turns").get<std::uint64_t>(),
                                     .sleeps = at.at("sleeps").get<std::uint64_t>(),
                                     .resumed = at.at("resumed").get<std::uint64_t>(),
                                     .io = at.at("io_completed").get<std::uint64_t>(),
                                     .messages = at.at("messages").get<std::uint64_t>(),
                                     .buffers_free = at.at("buffers_free").get<std::uint64_t>()});
    }
    return sample;
}

void add_classes(TopSample& sample, const json& lrs) {
    for (const json& at : lrs.at("classes")) {
        sample.classes.push_back({.name = shown(at.at("name")),
                                  .queued = at.at("queued").get<std::uint64_t>(),
                                  .served = at.at("served").get<std::uint64_t>(),
                                  .bytes = at.at("bytes").get<std::uint64_t>(),
                                  .throttled_s = at.at("throttled_s").get<double>(),
                                  .oldest_s = at.at("oldest_s").get<double>()});
    }
}

void add_load(TopSample& sample, const json& load) {
    sample.has_load = true;
    sample.ops = loads_of(load.at("ops"));
    sample.class_loads = loads_of(load.at("classes"));
    sample.principals = loads_of(load.at("principals"));
    sample.devices = loads_of(load.at("devices"));
}

bool are_comparable(const TopSample& before, const TopSample& now) {
    return before.pid == now.pid && now.uptime_s > before.uptime_s &&
           before.localities.size() == now.localities.size();
}

TopRates rates_between(const TopSample& before, const TopSample& now) {
    const double interval_s = now.uptime_s - before.uptime_s;
    // Without a past there are no differences, but names.
    const TopSample& past = before.has_load ? before : now;
    TopRates rates{.interval_s = interval_s,
                   .localities = {},
                   .classes = {},
                   .ops = loads_between(past.ops, now.ops, interval_s),
                   .principals = loads_between(past.principals, now.principals, interval_s),
                   .devices = loads_between(past.devices, now.devices, interval_s)};
    for (std::size_t i = 0; i < now.localities.size(); ++i) {
        rates.localities.push_back(
            locality_between(before.localities[i], now.localities[i], interval_s));
    }
    for (const ClassSample& of : now.classes) {
        rates.classes.push_back(class_between(before, now, of, interval_s));
    }
    std::ranges::sort(rates.classes, std::ranges::greater(), [](const ClassRates& of) {
        return std::tuple(of.queued, of.throttled, of.load.ops, std::string_view(of.load.name));
    });
    if (rates.classes.size() > kClassesMax) rates.classes.resize(kClassesMax);
    return rates;
}

}  // namespace fopd::client
