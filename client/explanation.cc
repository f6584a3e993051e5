// SPDX-License-Identifier: BSD-2-Clause
#include "client/explanation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/stable_sort.h"

namespace fopd::client {

namespace {

using fop::SpentOn;

struct Part {
    const char* key;    // With --json.
    const char* words;  // For people.
    Duration time;
};

// In the order in which a fop passes them.
std::vector<Part> parts_of(const CallTimes& times) {
    return {
        {"unsent", "waited to be sent by the client", times.unsent},
        {"network", "network", times.network()},
        {"policy", "waited for a turn in the policy", times.of(SpentOn::kPolicy)},
        {"buffer", "waited for a buffer", times.of(SpentOn::kBuffer)},
        {"lock", "waited for another fop", times.of(SpentOn::kLock)},
        {"client", "moved bytes from or to the client", times.of(SpentOn::kClient)},
        {"room", "waited for space on the disk", times.of(SpentOn::kRoom)},
        {"disk_queue", "waited for a turn at the disk", times.of(SpentOn::kDiskQueue)},
        {"disk", "read or wrote the disk", times.of(SpentOn::kDisk)},
        {"log", "waited for the log to be durable", times.of(SpentOn::kLog)},
        {"locality", "travelled to another locality", times.of(SpentOn::kLocality)},
        {"server", "computed by the server", times.computed()},
    };
}

double seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

std::string time_text(Duration time) {
    std::array<char, 32> text{};
    const double value = seconds(time);
    if (value >= 1) {
        std::snprintf(text.data(), text.size(), "%.2f s", value);
    } else if (value >= 0.001) {
        std::snprintf(text.data(), text.size(), "%.1f ms", value * 1e3);
    } else {
        std::snprintf(text.data(), text.size(), "%.0f us", value * 1e6);
    }
    return text.data();
}

std::string line_of(const Part& part, Duration total) {
    std::array<char, 80> text{};
    const double share = total > Duration::zero() ? 100 * seconds(part.time) / seconds(total) : 0;
    std::snprintf(text.data(), text.size(), "  %-34s %10s %4.0f %%\n", part.words,
                  time_text(part.time).c_str(), share);
    return text.data();
}

nlohmann::ordered_json json_of(const CallTimes& times) {
    nlohmann::ordered_json object{{"total", seconds(times.total)}};
    for (const Part& part : parts_of(times)) object[part.key] = seconds(part.time);
    return object;
}

}  // namespace

std::string explanation(const TimeLedger::Figures& figures) {
    if (figures.calls == 0) return {};
    const CallTimes& sum = figures.sum;
    std::string text = "where the time went: " + std::to_string(figures.calls) +
                       (figures.calls == 1 ? " fop, " : " fops, ") + time_text(sum.total) +
                       " in all\n";
    for (const Part& part : parts_of(sum)) {
        // What rounds to nothing is left out.
        if (part.time * 1000 >= sum.total) text += line_of(part, sum.total);
    }
    if (figures.calls == 1) return text;
    auto slowest = parts_of(figures.slowest);
    core::stable_sort(slowest, std::greater{}, &Part::time);
    text += "  the slowest fop took " + time_text(figures.slowest.total) + ": " +
            time_text(slowest[0].time) + " " + slowest[0].words + ", " +
            time_text(slowest[1].time) + " " + slowest[1].words + "\n";
    return text;
}

nlohmann::ordered_json explanation_json(const TimeLedger::Figures& figures) {
    return {{"fops", figures.calls},
            {"seconds", json_of(figures.sum)},
            {"slowest", json_of(figures.slowest)}};
}

}  // namespace fopd::client
