// Goal: as many are late as was said, as late as was said, and the seed decides which.

#include "lrs/delay.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr Instant kArrival = Instant{} + 1h;

NumberedRequest& bring(Policy& policy, RequestMaker& requests, Instant now = kArrival) {
    NumberedRequest& request = requests.make();
    request.attributes.arrived_at = now;
    policy.push(request, now);
    return request;
}

struct Popped {
    std::uint64_t number;
    Instant at;
    friend bool operator==(const Popped&, const Popped&) = default;
};

// Asks when it is told to.
std::vector<Popped> pop_timed(Policy& policy, Instant now = kArrival) {
    std::vector<Popped> popped;
    for (;;) {
        const Policy::Next next = policy.pop(now);
        if (next.request != nullptr) {
            popped.push_back({static_cast<NumberedRequest*>(next.request)->number, now});
        } else if (next.again != kNever) {
            REQUIRE(next.again > now);
            now = next.again;
        } else {
            return popped;
        }
    }
}

std::size_t delayed_of(std::uint32_t percent, std::size_t count) {
    const auto policy = make_delay({.min = 1ms, .max = 1ms, .percent = percent}, 3);
    RequestMaker requests(1);
    for (std::size_t i = 0; i < count; ++i) bring(*policy, requests);
    return static_cast<std::size_t>(std::ranges::count_if(
        pop_timed(*policy), [](const Popped& each) { return each.at > kArrival; }));
}

}  // namespace

TEST_CASE("lrs delay: exactly as many of a hundred as was said", "[lrs]") {
    CHECK(delayed_of(0, 10'000) == 0);
    CHECK(delayed_of(100, 10'000) == 10'000);
    // Five standard deviations of 100 000 draws; one percent more would be far beyond.
    for (const std::uint32_t percent : {1U, 25U, 50U, 99U}) {
        CAPTURE(percent);
        const double share = percent / 100.0;
        const double deviation = std::sqrt(100'000 * share * (1 - share));
        const auto delayed = static_cast<double>(delayed_of(percent, 100'000));
        CHECK(std::abs(delayed - share * 100'000) < 5 * deviation);
    }
}

TEST_CASE("lrs delay: below a second, and within the limits", "[lrs]") {
    const auto policy = make_delay({.min = 2500us, .max = 4500us}, 5);
    RequestMaker requests(1);
    for (int i = 0; i < 1000; ++i) bring(*policy, requests);

    const auto popped = pop_timed(*policy);

    REQUIRE(popped.size() == 1000);
    CHECK(popped.front().at >= kArrival + 2500us);
    CHECK(popped.front().at < kArrival + 2600us);
    CHECK(popped.back().at > kArrival + 4400us);
    CHECK(popped.back().at <= kArrival + 4500us);
}

TEST_CASE("lrs delay: it delivers what a plain model delivers with the same draws", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        const DelaySettings settings{.min = 1ms, .max = 30ms, .percent = 60};
        const auto policy = make_delay(settings, seed);
        core::Random draws(seed);
        RequestMaker requests(seed);
        struct Row {
            Instant due;
            std::uint64_t number;
        };
        std::vector<Row> model;
        Instant now = kArrival;
        for (int i = 0; i < 500; ++i) {
            const bool delayed = draws.below(100) < 60;
            const auto span =
                delayed ? Duration(draws.between(1'000'000, 30'000'000)) : Duration::zero();
            model.push_back({now + span, bring(*policy, requests, now).number});
            if (i % 7 == 0) {
                const Row gone = model[model.size() / 2];
                policy->remove(requests[gone.number]);
                std::erase_if(model, [&](const Row& row) { return row.number == gone.number; });
            }
            now += 1ms;
            std::ranges::sort(model, {},
                              [](const Row& row) { return std::pair(row.due, row.number); });
            while (!model.empty() && model.front().due <= now) {
                const Request* const popped = policy->pop(now).request;
                REQUIRE(popped == &requests[model.front().number]);
                model.erase(model.begin());
            }
            const Policy::Next next = policy->pop(now);
            REQUIRE(next.request == nullptr);
            REQUIRE(next.again == (model.empty() ? kNever : model.front().due));
        }
    }
}

TEST_CASE("lrs delay: one seed, one outcome", "[lrs]") {
    const auto run = [](std::uint64_t seed) {
        const auto policy = make_delay({.percent = 30}, seed);
        RequestMaker requests(1);
        for (int i = 0; i < 200; ++i) bring(*policy, requests);
        return pop_timed(*policy);
    };

    CHECK(run(1) == run(1));
    CHECK(run(1) != run(2));
}
