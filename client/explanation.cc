// SPDX-License-Identifier: BSD-2-Clause
#include "client/explanation.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/table.h"
#include "core/stable_sort.h"
#include "fop/spent_names.h"

namespace fopd::client {

namespace {

struct PartName {
    std::string_view key;  // With --json.
    const char* words;     // For people.
};
// As CallTimes::parts().
constexpr std::array<PartName, CallTimes::kPartCount> kParts{{
    {"unsent", "waited to be sent by the client"},
    {"network", "network"},
    {"policy", "waited for a turn in the policy"},
    {"buffer", "waited for a buffer"},
    {"lock", "waited for another fop"},
    {"client", "moved bytes from or to the client"},
    {"room", "waited for space on the disk"},
    {"disk_queue", "waited for a turn at the disk"},
    {"disk", "read or wrote the disk"},
    {"log", "waited for the log to be durable"},
    {"locality", "travelled to another locality"},
    {"server", "computed by the server"},
}};

// The daemon names the parts of a slow fop so, too.
constexpr bool has_names_of_server() {
    for (std::size_t i = 1; i < fop::kSpentOnCount; ++i) {
        if (kParts[i + 1].key != fop::kSpentNames[i]) return false;
    }
    return kParts.back().key == fop::kComputedName;
}
static_assert(has_names_of_server());

struct Part {
    PartName name;
    double seconds;
};

double seconds(Duration time) {
    return std::chrono::duration<double>(time).count();
}

std::array<Part, kParts.size()> parts_of(const CallTimes& times) {
    const auto durations = times.parts();
    std::array<Part, kParts.size()> parts{};
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = {kParts[i], seconds(durations[i])};
    return parts;
}

// Empty for a part that rounds to nothing.
std::string explanation_line(const Part& part, double total) {
    if (part.seconds * 1000 < total || part.seconds <= 0) return {};
    std::array<char, 80> text{};
    std::snprintf(text.data(), text.size(), "  %-34s %10s %4.0f %%\n", part.name.words,
                  latency_of(part.seconds).c_str(), 100 * part.seconds / total);
    return text.data();
}

nlohmann::ordered_json explanation_json(const CallTimes& times) {
    nlohmann::ordered_json object{{"total", seconds(times.total)}};
    for (const Part& part : parts_of(times)) object[part.name.key] = part.seconds;
    return object;
}

// The mean and 99 % of the values, in microseconds.
double mean_us(const core::Histogram& of) {
    return of.count() == 0 ? 0
                           : static_cast<double>(of.sum()) / static_cast<double>(of.count()) / 1000;
}
double p99_us(const core::Histogram& of) {
    return static_cast<double>(of.percentile(0.99)) / 1000;
}

std::string load_line(const char* words, const core::Histogram& of) {
    std::array<char, 80> text{};
    std::snprintf(text.data(), text.size(), "  %-34s %10s %10s\n", words,
                  latency_of(mean_us(of) / 1e6).c_str(), latency_of(p99_us(of) / 1e6).c_str());
    return text.data();
}

}  // namespace

std::string explanation(const TimeLedger::Figures& figures) {
    if (figures.calls == 0) return {};
    const double total = seconds(figures.sum.total);
    std::string text = "where the time went: " + std::to_string(figures.calls) +
                       (figures.calls == 1 ? " fop, " : " fops, ") + latency_of(total) +
                       " in all\n";
    for (const Part& part : parts_of(figures.sum)) text += explanation_line(part, total);
    if (figures.calls == 1) return text;
    const auto parts = parts_of(figures.slowest);
    std::vector<Part> slowest(parts.begin(), parts.end());
    core::stable_sort(slowest, std::greater{}, &Part::seconds);
    text += "  the slowest fop took " + latency_of(seconds(figures.slowest.total)) + ": " +
            latency_of(slowest[0].seconds) + " " + slowest[0].name.words + ", " +
            latency_of(slowest[1].seconds) + " " + slowest[1].name.words + "\n";
    return text;
}

nlohmann::ordered_json explanation_json(const TimeLedger::Figures& figures) {
    return {{"fops", figures.calls},
            {"seconds", explanation_json(figures.sum)},
            {"slowest", explanation_json(figures.slowest)}};
}

std::string parts_page(const nlohmann::json& seconds_by_part) {
    std::string text;
    const double total = seconds_by_part.at("total").get<double>();
    for (const PartName& name : kParts) {
        const auto found = seconds_by_part.find(name.key);
        if (found != seconds_by_part.end())
            text += explanation_line({name, found->get<double>()}, total);
    }
    return text;
}

std::string load_explanation(const LoadTimes& times) {
    if (times.total().count() == 0) return {};
    std::array<char, 80> title{};
    std::snprintf(title.data(), title.size(), "  %-34s %10s %10s\n", "", "mean", "p99");
    std::string text = "where the time of " + std::to_string(times.total().count()) +
                       " fops went:\n" + title.data();
    for (std::size_t i = 0; i < kParts.size(); ++i) {
        if (times.part(i).max() > 0) text += load_line(kParts[i].words, times.part(i));
    }
    return text + load_line("in all", times.total());
}

nlohmann::ordered_json load_explanation_json(const LoadTimes& times) {
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    const auto add = [&parts](std::string_view name, const core::Histogram& of) {
        parts.push_back({{"name", name}, {"mean_us", mean_us(of)}, {"p99_us", p99_us(of)}});
    };
    add("total", times.total());
    for (std::size_t i = 0; i < kParts.size(); ++i) add(kParts[i].key, times.part(i));
    return {{"fops", times.total().count()}, {"parts", std::move(parts)}};
}

}  // namespace fopd::client
