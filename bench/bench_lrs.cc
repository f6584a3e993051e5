// Measures what a request pays for its turn: to be put into a policy and taken out again.
//
//     bench_lrs [--json]
//
// A million requests wait, in ten thousand classes (clients, objects); each one that is taken out
// is put back. The requests lie in memory as they came, as new foms do; or scattered, as foms do
// that were used often. The same with a plain list, in the same run, is what there is to compare
// with.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
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

class Requests {
public:
    Requests() : requests_(std::make_unique<Request[]>(kRequests)), order_(kRequests) {}

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
        }
    }
    // In the order in which they come.
    void for_each(const std::function<void(Request&)>& visit) {
        for (const std::size_t index : order_) visit(requests_[index]);
    }

private:
    std::unique_ptr<Request[]> requests_;
    std::vector<std::size_t> order_;
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

std::vector<Subject> subjects() {
    Subject tbf{.name = "tbf", .policy = "tbf"};
    tbf.settings.tbf.rules = {"each * rate=unlimited by=client"};
    Subject mclock{.name = "mclock", .policy = "mclock"};
    mclock.settings.mclock.rules = {"each * by=client"};
    // Each reaches its limit with each request, and is below it again at the next.
    Subject limits{.name = "mclock_limits", .policy = "mclock", .step = 1us};
    limits.settings.mclock.rules = {"each * limit=100000000/s by=client"};
    return {{.name = "fifo", .policy = "fifo"},
            {.name = "crr", .policy = "crr"},
            {.name = "orr", .policy = "orr"},
            tbf,
            mclock,
            limits};
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

// For each request, when another policy takes over.
double switch_ns(Requests& requests) {
    auto backend = core::make_poll_backend(kClock);
    if (!backend) fail(describe(backend.error()));
    core::Reactor reactor(*std::move(backend));
    Scheduler scheduler(reactor, make_fifo());
    requests.for_each([&](Request& request) { scheduler.incoming(request); });
    const auto crr = std::ranges::find(policies(), "crr", &PolicyEntry::name);
    const Instant start = kClock.now();
    scheduler.use(crr->make(PolicySettings{}, {.seed = 1}));
    const double ns = ns_since(start, kRequests);
    requests.for_each([&](Request& request) { scheduler.remove(request); });
    return ns;
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
    all.push_back({"switch", &switch_ns});
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
