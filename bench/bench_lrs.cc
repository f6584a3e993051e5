// Measures the cost of a turn to a request: it is put into a policy and taken out again.
//
//     bench_lrs [--json]
//
// A million requests wait, in ten thousand classes (clients, objects); each one that is taken out
// is put back. The requests lie in memory as they came, as new foms do; or scattered, as foms do
// that were used often. The same run measures a plain list for comparison.
//
// tbf is also measured with 1024 rules, among which it has to find the rule of each request: names
// of jobs, and patterns such as "*x*".
//
// It also measures a change of rules or policy while all these requests wait: the time for each
// request, and the longest turn of the reactor.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/measure.h"
#include "core/poll_backend.h"
#include "core/random.h"
#include "core/reactor.h"
#include "lrs/fifo.h"
#include "lrs/policies.h"
#include "lrs/scheduler.h"

namespace fopd::lrs {
namespace {

using bench::fail;
using bench::kClock;

constexpr std::size_t kRequests = 1'000'000;
constexpr std::size_t kRounds = 1'000'000;
constexpr std::size_t kClasses = 10'000;

enum class Layout : std::uint8_t { kAsTheyCame, kScattered };

// As many as there may be.
constexpr std::size_t kRules = 1024;

class Requests {
public:
    Requests() : requests_(std::make_unique<Request[]>(kRequests)), order_(kRequests) {
        for (std::size_t i = 0; i < kRules; ++i) jobs_.push_back("job" + std::to_string(i) + ".0");
    }

    // Each request belongs to one of so many clients, and to as many objects.
    void arrange(std::size_t classes, Layout layout) {
        core::Random random(1);
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        for (std::size_t i = kRequests; layout == Layout::kScattered && i > 1; --i)
            std::swap(order_[i - 1], order_[random.below(i)]);
        for (std::size_t i = 0; i < kRequests; ++i) {
            RequestAttributes& about = requests_[order_[i]].attributes;
            const std::uint64_t number = 1 + i % classes;
            std::memcpy(about.client.data(), &number, sizeof(number));
            about.object = {.high = std::uint64_t{1} << 48, .low = number};
            about.device = 1;
            about.offset = random.below(1U << 20) * 4096;
            about.size_bytes = 4096;
            about.direction = Direction::kRead;
            about.job = jobs_[i % kRules];
        }
    }
    // In the order in which they come.
    void for_each(const std::function<void(Request&)>& visit) {
        for (const std::size_t index : order_) visit(requests_[index]);
    }

private:
    std::unique_ptr<Request[]> requests_;
    std::vector<std::size_t> order_;
    std::vector<std::string> jobs_;
};

double ns_since(Instant start, std::size_t count) {
    return in_seconds(kClock.now() - start) * 1e9 / static_cast<double>(count);
}

double list_ns(Requests& requests) {
    core::IntrusiveList<PolicyPlace> list;
    requests.for_each([&](Request& request) { list.push_back(request); });
    const Instant start = kClock.now();
    for (std::size_t i = 0; i < kRounds; ++i) list.push_back(*list.pop_front());
    const double ns = ns_since(start, kRounds);
    while (list.pop_front() != nullptr) {
    }
    return ns;
}

// A policy, and how it is set: those with classes have one for each client.
struct Subject {
    std::string name;
    std::string_view policy;
    PolicySettings settings{};
    Duration step{};  // From one request to the next.
};

// One for each job; its number stands where '#' does.
Subject with_rules(std::string name, std::string_view job) {
    Subject subject{.name = std::move(name), .policy = "tbf"};
    for (std::size_t i = 0; i < kRules; ++i) {
        std::string rule = "r" + std::to_string(i) + " job=";
        for (const char c : job) rule += c == '#' ? std::to_string(i) : std::string(1, c);
        subject.settings.tbf.rules.push_back(rule + " rate=unlimited by=client");
    }
    return subject;
}

std::vector<Subject> subjects() {
    Subject tbf{.name = "tbf", .policy = "tbf"};
    tbf.settings.tbf.rules = {"each * rate=unlimited by=client"};
    // Each has no token left after each request, and one again at the next.
    Subject tbf_limits{.name = "tbf_limits", .policy = "tbf", .step = 1us};
    tbf_limits.settings.tbf.rules = {"each * rate=100000000/s burst=1 by=client"};
    // The same, with the node's share of a limit of a cluster.
    Subject tbf_cluster = tbf_limits;
    tbf_cluster.name = "tbf_cluster";
    tbf_cluster.settings.tbf.rules = {"each * rate=100000000/s burst=1 by=client scope=cluster"};
    Subject mclock{.name = "mclock", .policy = "mclock"};
    mclock.settings.mclock.rules = {"each * by=client"};
    // Each reaches its limit with each request, and is below it again at the next.
    Subject limits{.name = "mclock_limits", .policy = "mclock", .step = 1us};
    limits.settings.mclock.rules = {"each * limit=100000000/s by=client"};
    // Alone, each turn is of one request.
    Subject groups{.name = "epoch_groups", .policy = "epoch_groups", .step = 1ms};
    groups.settings.epoch_groups.rules = {"each * by=client"};
    groups.settings.epoch_groups.length = 1ms;
    return {{.name = "fifo", .policy = "fifo"},
            {.name = "crr", .policy = "crr"},
            {.name = "orr", .policy = "orr"},
            tbf,
            tbf_limits,
            tbf_cluster,
            with_rules("tbf_1024_rules", "job#.0"),
            with_rules("tbf_1024_patterns", "*b#.*"),
            mclock,
            limits,
            groups};
}

double policy_ns(Requests& requests, const Subject& subject) {
    const auto entry = std::ranges::find(policies(), subject.policy, &PolicyEntry::name);
    const auto policy = entry->make(subject.settings, {.seed = 1});
    Instant now{1s};
    requests.for_each([&](Request& request) { policy->push(request, now); });
    const Instant start = kClock.now();
    for (std::size_t i = 0; i < kRounds; ++i) {
        Request* const request = policy->pop(now).request;
        if (request == nullptr) fail("a request is missing");
        policy->push(*request, now);
        now += subject.step;
    }
    const double ns = ns_since(start, kRounds);
    requests.for_each([&](Request& request) { policy->remove(request); });
    return ns;
}

core::Reactor make_reactor() {
    auto backend = core::make_poll_backend(kClock);
    if (!backend) fail(describe(backend.error()));
    return core::Reactor(*std::move(backend));
}

// Of all turns together, and the longest.
struct HandOver {
    double ns = 0;
    double longest_ns = 0;
};

HandOver time_hand_over(core::Reactor& reactor, const Scheduler& scheduler, const auto& begin) {
    HandOver times;
    const auto add = [&times](Instant start) {
        const double ns = ns_since(start, 1);
        times.ns += ns;
        times.longest_ns = std::max(times.longest_ns, ns);
    };
    const Instant start = kClock.now();
    begin();
    add(start);
    while (scheduler.is_handing_over()) {
        const Instant turn = kClock.now();
        reactor.turn(turn);
        add(turn);
    }
    return times;
}

// When another policy takes over.
HandOver switch_over(Requests& requests) {
    core::Reactor reactor = make_reactor();
    Scheduler scheduler(reactor, make_fifo());
    requests.for_each([&](Request& request) { scheduler.incoming(request); });
    const auto crr = std::ranges::find(policies(), "crr", &PolicyEntry::name);
    const HandOver times = time_hand_over(
        reactor, scheduler, [&] { scheduler.use(crr->make(PolicySettings{}, {.seed = 1})); });
    requests.for_each([&](Request& request) { scheduler.remove(request); });
    return times;
}

// When rules change that divide the first so many into other classes.
HandOver change_rules(Requests& requests, std::size_t count, std::string_view policy) {
    core::Reactor reactor = make_reactor();
    PolicyNode node(1);
    PolicyChoice choice;
    choice.policy = &*std::ranges::find(policies(), policy, &PolicyEntry::name);
    choice.tbf.rules = {"few op=read&size>1M rate=100/s", "each * rate=block by=client"};
    choice.mclock.rules = {"few op=read&size>1M weight=2", "each * by=client"};
    const auto parts = [&] {
        return PolicyParts{.seed = 1, .share = choice.share(node, reactor.now())};
    };
    Scheduler scheduler(reactor, choice.make(parts()));
    std::size_t left = count;
    requests.for_each([&](Request& request) {
        if (left > 0) scheduler.incoming(request);
        left -= left > 0 ? 1 : 0;
    });
    // GCC 12 warns without cause if a temporary is inserted.
    const std::string added = "new op=write rate=100/s rank=1";
    choice.tbf.rules.insert(choice.tbf.rules.begin(), added);
    choice.tbf.rules.back() = "every * rate=block by=object";
    choice.mclock.rules.back() = "every * by=object";
    const HandOver times = time_hand_over(reactor, scheduler, [&] {
        const PolicyParts changed = parts();
        if (!scheduler.adapt(choice, changed)) scheduler.use(choice.make(changed));
    });
    requests.for_each([&](Request& request) {
        if (request.queued()) scheduler.remove(request);
    });
    return times;
}

// Other rules for so many that wait, in milliseconds.
std::vector<std::pair<std::string, double>> measure_changes(Requests& requests) {
    constexpr std::size_t kFew = 20'000;
    std::vector<std::pair<std::string, double>> figures;
    for (const std::string_view policy : {"tbf", "mclock"}) {
        for (const std::size_t classes : {std::size_t{100}, kClasses}) {
            requests.arrange(classes, Layout::kAsTheyCame);
            for (const std::size_t count : {kFew, kRequests}) {
                const HandOver times = change_rules(requests, count, policy);
                const std::string name = std::string(policy) + "_rules_" +
                                         (count == kFew ? "20k_" : "1m_") +
                                         std::to_string(classes) + "_classes";
                figures.emplace_back(name + "_ms", times.ns * 1e-6);
                figures.emplace_back(name + "_longest_turn_ms", times.longest_ns * 1e-6);
            }
        }
    }
    return figures;
}

// How the requests lie, and how many classes they are of.
struct Setting {
    const char* suffix;
    std::size_t classes;
    Layout layout;
    std::size_t tries;  // The slow ones have no limit to hold.
};
constexpr std::array kSettings{
    Setting{"_ns", kClasses, Layout::kAsTheyCame, 3},
    Setting{"_100_classes_ns", 100, Layout::kAsTheyCame, 3},
    Setting{"_1m_classes_ns", kRequests, Layout::kAsTheyCame, 1},
    Setting{"_scattered_ns", kClasses, Layout::kScattered, 1},
};

struct Figure {
    std::string name;
    double ns;
};

std::vector<Figure> measure(Requests& requests, const Setting& setting) {
    struct Measured {
        std::string name;
        std::function<double(Requests&)> measure;
        std::vector<double> values{};
    };
    std::vector<Measured> all{{"list", &list_ns}};
    for (const Subject& subject : subjects()) {
        all.push_back({subject.name, [subject](Requests& requests_of) {
                           return policy_ns(requests_of, subject);
                       }});
    }
    all.push_back({"switch", [](Requests& all_of) {
                       return switch_over(all_of).ns / static_cast<double>(kRequests);
                   }});
    requests.arrange(setting.classes, setting.layout);
    for (std::size_t i = 0; i < setting.tries; ++i) {
        for (Measured& each : all) each.values.push_back(each.measure(requests));
    }
    std::vector<Figure> figures;
    for (const Measured& each : all)
        figures.push_back({each.name + setting.suffix, bench::median(each.values)});
    return figures;
}

void run(bool as_json) {
    bench::pin_to(0);
    Requests requests;
    std::string json;
    for (const Setting& setting : kSettings) {
        for (const Figure& figure : measure(requests, setting)) {
            if (!as_json) std::printf("%-24s %8.1f ns\n", figure.name.c_str(), figure.ns);
            json += (json.empty() ? "{" : ",") + bench::quoted(figure.name) + ":" +
                    std::to_string(figure.ns);
        }
    }
    for (const auto& [name, ms] : measure_changes(requests)) {
        if (!as_json) std::printf("%-44s %8.2f ms\n", name.c_str(), ms);
        json += "," + bench::quoted(name) + ":" + std::to_string(ms);
    }
    if (as_json) std::printf("%s}\n", json.c_str());
}

}  // namespace
}  // namespace fopd::lrs

int main(int argument_count, char** arguments) {
    const bool as_json = argument_count == 2 && std::string_view(arguments[1]) == "--json";
    if (argument_count > 1 && !as_json) fopd::bench::fail("usage: bench_lrs [--json]");
    fopd::lrs::run(as_json);
    return 0;
}
