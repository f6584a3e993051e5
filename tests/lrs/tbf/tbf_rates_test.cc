// Goal: a rate is what was promised, for the node, whoever is late.
// Method: localities that always have something waiting ask in a time of their own, each time late
// by a drawn span; each service is written down and all windows are looked at. Then real threads.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/lrs/tbf/tbf_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr Instant kRatesStart{100s};

// One service: when, and how much.
struct Served {
    Instant at;
    std::uint64_t amount;
};

struct Load {
    std::string request = "job=a";
    std::size_t locality_count = 1;
    Duration late_max{};
    Duration span = 10s;
    std::uint64_t seed = 1;
};

// What is served while each locality always has two requests waiting.
std::vector<Served> serve(TbfStage& stage, const Load& load) {
    core::Random random(load.seed);
    std::vector<Instant> asks(load.locality_count);
    for (std::size_t i = 0; i < load.locality_count; ++i) {
        stage.push(load.request, kRatesStart, i);
        stage.push(load.request, kRatesStart, i);
        asks[i] = kRatesStart;
    }
    std::vector<Served> all;
    for (;;) {
        const auto next = std::ranges::min_element(asks);
        const Instant now = *next;
        if (now > kRatesStart + load.span) return all;
        const auto locality = static_cast<std::size_t>(next - asks.begin());
        Tbf& policy = *stage.policies[locality];
        for (;;) {
            const Policy::Next popped = policy.pop(now);
            if (popped.request == nullptr) {
                if (popped.again <= now) FAIL("it asks to be asked again at once");
                const auto late =
                    load.late_max.count() > 0 ? random.between(0, load.late_max.count()) : 0;
                *next = popped.again + Duration(late);
                break;
            }
            all.push_back({.at = now, .amount = popped.request->attributes.size_bytes});
            policy.push(*popped.request, now);
        }
    }
}

// The most by which a window has more than burst + rate * t: a slow queue that drains at the rate
// and never holds more than that above the burst.
long double most_above(const std::vector<Served>& all, const Limit& limit, bool is_bytes) {
    const auto rate = static_cast<long double>(limit.per_second);
    long double level = 0;
    long double most = 0;
    Instant last = kRatesStart;
    for (const Served& each : all) {
        level = std::max(0.0L,
                         level - rate * static_cast<long double>((each.at - last).count()) / 1e9L);
        last = each.at;
        level += is_bytes ? static_cast<long double>(each.amount) : 1.0L;
        most = std::max(most, level);
    }
    return most - static_cast<long double>(limit.burst);
}

// Ten seconds, or less where a hundred thousand say as much.
Duration span_for(std::uint64_t rate) {
    return std::min<Duration>(
        10s, Duration(static_cast<Duration::rep>(std::uint64_t{100'000'000'000'000} / rate)));
}

void check_rate(std::uint64_t rate, std::uint64_t burst, const Load& load) {
    CAPTURE(rate, burst, load.late_max.count(), load.locality_count);
    TbfStage stage({"a job=a rate=" + std::to_string(rate) + "/s burst=" + std::to_string(burst)},
                   {}, load.locality_count);

    const auto all = serve(stage, load);

    const auto wanted =
        static_cast<double>(burst) + static_cast<double>(rate) * in_seconds(load.span);
    CHECK(static_cast<double>(all.size()) >= wanted * 0.99 - 1);
    CHECK(static_cast<double>(all.size()) <= wanted * 1.01 + 1);
    // A thousandth for what the sum above rounds.
    CHECK(most_above(all, {.per_second = rate, .burst = burst}, false) <= 1.001L);
}

}  // namespace

TEST_CASE("lrs tbf rates: from one a second to a million, late by up to 100 us", "[lrs]") {
    for (const std::uint64_t rate : {1U, 7U, 100U, 1000U, 10'000U, 33'333U, 100'000U, 1'000'000U}) {
        for (const Duration late : {Duration{0ns}, Duration{10us}, Duration{100us}}) {
            check_rate(rate, default_burst(rate), {.late_max = late, .span = span_for(rate)});
        }
    }
}

TEST_CASE("lrs tbf rates: from one a second to a million, for ten seconds", "[.long]") {
    for (std::uint64_t rate = 1; rate <= 1'000'000; rate *= 10) {
        for (const Duration late : {Duration{0ns}, Duration{10us}, Duration{100us}}) {
            for (const std::uint64_t each : {rate, rate / 3 + 1}) {
                check_rate(each, default_burst(each), {.late_max = late, .span = 10s});
            }
        }
    }
}

TEST_CASE("lrs tbf rates: the smallest burst that allows for the lateness is enough", "[lrs]") {
    for (const std::uint64_t rate : {10'000U, 20'000U, 100'000U, 333'333U}) {
        const std::uint64_t burst = (rate + 9999) / 10'000;
        check_rate(rate, burst, {.late_max = 100us, .span = span_for(rate)});
    }
}

TEST_CASE("lrs tbf rates: one, two or eight localities have the same in all", "[lrs]") {
    for (const std::uint64_t rate : {1U, 50U, 1000U, 100'000U}) {
        for (const std::size_t count : {1U, 2U, 8U}) {
            check_rate(
                rate, default_burst(rate),
                {.locality_count = count, .late_max = 100us, .span = rate >= 100'000 ? 3s : 10s});
        }
    }
}

TEST_CASE("lrs tbf rates: no locality goes without", "[lrs]") {
    constexpr std::size_t kCount = 4;
    TbfStage stage({"a job=a rate=1000/s"}, {}, kCount);
    serve(stage, {.locality_count = kCount, .late_max = 100us, .span = 10s});
    for (const auto& policy : stage.policies) {
        const auto figures = class_figures(*policy, kRatesStart + 10s);
        REQUIRE(figures.size() == 1);
        CHECK(figures.front().served > 1000);
    }
}

TEST_CASE("lrs tbf rates: bytes are as exact", "[lrs]") {
    struct Case {
        std::uint64_t rate;
        std::uint64_t size;
    };
    for (const Case& each : {Case{1000, 1}, Case{50'000'000, 4096}, Case{50'000'000, 1U << 20},
                             Case{1'000'000'000, 65536}, Case{10'000'000'000, 1U << 20}}) {
        CAPTURE(each.rate, each.size);
        const Limit limit{.per_second = each.rate, .burst = default_burst(each.rate)};
        for (const std::size_t count : {1U, 8U}) {
            TbfStage stage({"a job=a rate=" + std::to_string(each.rate) + "B/s"}, {}, count);
            const auto all = serve(stage, {.request = "job=a size=" + std::to_string(each.size),
                                           .locality_count = count,
                                           .late_max = 100us,
                                           .span = 1s});
            const auto served = static_cast<double>(all.size() * each.size);
            const auto wanted = static_cast<double>(limit.burst) + static_cast<double>(each.rate);
            CHECK(served >= wanted * 0.99 - static_cast<double>(each.size));
            CHECK(served <= wanted * 1.01 + static_cast<double>(each.size));
            // One request above it.
            CHECK(most_above(all, limit, true) <= static_cast<long double>(each.size) * 1.001L);
        }
    }
}

TEST_CASE("lrs tbf rates: low rates do not starve beside high ones", "[lrs]") {
    TbfStage stage(
        {"low job=low rate=10/s", "high job=high rate=1000000/s", "free user=x rate=unlimited"});
    for (int i = 0; i < 200; ++i) stage.push("job=low", kRatesStart);
    for (int i = 0; i < 3; ++i) stage.push("job=high", kRatesStart);
    for (int i = 0; i < 3; ++i) stage.push("user=x", kRatesStart);
    // A server that is far too slow for them: one request each 100 us.
    std::uint64_t low_count = 0;
    for (Instant now = kRatesStart; now < kRatesStart + 10s; now += 100us) {
        const Policy::Next next = stage.policy().pop(now);
        REQUIRE(next.request != nullptr);
        if (next.request->attributes.job == "low") {
            ++low_count;
        } else {
            stage.policy().push(*next.request, now);
        }
    }
    CHECK(low_count >= 99);
    CHECK(low_count <= 102);
}

TEST_CASE("lrs tbf rates: real threads share a class's rate", "[lrs]") {
    constexpr std::size_t kThreadCount = 4;
    constexpr std::size_t kStepCount = 2000;
    constexpr Duration kStep = 50us;
    const Limit limit{.per_second = 1'000'000, .burst = 500};
    TbfStage stage({"a job=a rate=1000000/s burst=500"}, {}, kThreadCount);
    for (std::size_t i = 0; i < kThreadCount; ++i) {
        stage.push("job=a", kRatesStart, i);
        stage.push("job=a", kRatesStart, i);
    }
    // All are at one time, and race for what there is at it.
    std::vector<std::atomic<std::uint64_t>> served(kStepCount);
    std::barrier next_step(static_cast<std::ptrdiff_t>(kThreadCount));
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < kThreadCount; ++index) {
        threads.emplace_back([&, index] {
            Tbf& policy = *stage.policies[index];
            for (std::size_t step = 0; step < kStepCount; ++step) {
                const Instant now = kRatesStart + static_cast<int>(step) * kStep;
                while (Request* const request = policy.pop(now).request) {
                    served[step].fetch_add(1, std::memory_order_relaxed);
                    policy.push(*request, now);
                }
                next_step.arrive_and_wait();
            }
        });
    }
    for (auto& thread : threads) thread.join();

    std::vector<Served> all;
    for (std::size_t step = 0; step < kStepCount; ++step) {
        const Served one{.at = kRatesStart + static_cast<int>(step) * kStep, .amount = 1};
        all.insert(all.end(), served[step].load(), one);
    }
    const auto wanted = 500 + 1'000'000 * in_seconds(kStep * (static_cast<int>(kStepCount) - 1));
    CHECK(static_cast<double>(all.size()) >= wanted * 0.99);
    CHECK(static_cast<double>(all.size()) <= wanted + 1);
    CHECK(most_above(all, limit, false) <= 1.001L);
}
