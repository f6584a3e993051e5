// Goal: limits and reservations are the node's, and exact, whoever is late.
// Method: localities that always have something waiting ask in a time of their own, each time late
// by a drawn span; each service is written down and all windows are looked at. Then real threads.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/lrs/mclock/mclock_stage.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

struct LateLoad {
    std::uint64_t limit = 1;
    std::size_t locality_count = 1;
    Duration late_max{};
    Duration span = 10s;
};

// When each was served, while each locality always has two requests waiting.
std::vector<Instant> served_late(MclockStage& stage, const LateLoad& load) {
    core::Random random(load.limit);
    std::vector<Instant> asks(load.locality_count, kMclockStart);
    for (std::size_t i = 0; i < load.locality_count; ++i) {
        stage.push_many(2, "job=a", kMclockStart, i);
    }
    std::vector<Instant> all;
    for (;;) {
        const auto next = std::ranges::min_element(asks);
        const Instant now = *next;
        if (now > kMclockStart + load.span) return all;
        Mclock& policy = *stage.policies[static_cast<std::size_t>(next - asks.begin())];
        Policy::Next popped = policy.pop(now);
        for (; popped.request != nullptr; popped = policy.pop(now)) {
            all.push_back(now);
            policy.push(*popped.request, now);
        }
        if (popped.again <= now) FAIL("it asks to be asked again at once");
        const auto late = load.late_max.count() > 0 ? random.between(0, load.late_max.count()) : 0;
        *next = popped.again + Duration(late);
    }
}

// The most by which a window of t has more than limit * t: a queue that drains at the limit.
double most_in_window(const std::vector<Instant>& all, std::uint64_t limit) {
    double level = 0;
    double most = 0;
    Instant last = kMclockStart;
    for (const Instant at : all) {
        level = std::max(0.0, level - static_cast<double>(limit) * in_seconds(at - last)) + 1;
        most = std::max(most, level);
        last = at;
    }
    return most;
}

void check_limit(const LateLoad& load) {
    CAPTURE(load.limit, load.locality_count, load.late_max.count());
    MclockStage stage({"a job=a limit=" + std::to_string(load.limit) + "/s"}, load.locality_count);

    const auto all = served_late(stage, load);

    const auto limit = static_cast<double>(load.limit);
    const double wanted = limit * in_seconds(load.span);
    CHECK(static_cast<double>(all.size()) >= wanted * 0.99 - 1);
    CHECK(static_cast<double>(all.size()) <= wanted + 1);
    // Never more than the limit says, from the first request on.
    bool is_ever_more = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double most = limit * in_seconds(all[i] - kMclockStart) + 1;
        is_ever_more = is_ever_more || static_cast<double>(i + 1) > most * 1.000001;
    }
    CHECK_FALSE(is_ever_more);
    const double late = in_seconds(std::min<Duration>(load.late_max, 10ms));
    CHECK(most_in_window(all, load.limit) <= (1 + limit * late) * 1.0001 + 0.001);
}

Duration limit_span(std::uint64_t limit) {
    return std::min<Duration>(10s, Duration(1s) * 100'000 / static_cast<int>(limit));
}

}  // namespace

TEST_CASE("lrs mclock limits: from one a second to a million, late by up to 100 us", "[lrs]") {
    for (const std::uint64_t limit :
         {1U, 7U, 100U, 1000U, 10'000U, 33'333U, 100'000U, 1'000'000U}) {
        for (const Duration late : {Duration{0ns}, Duration{10us}, Duration{100us}}) {
            check_limit({.limit = limit, .late_max = late, .span = limit_span(limit)});
        }
    }
}

TEST_CASE("lrs mclock limits: from one a second to a million, for ten seconds", "[.long]") {
    for (std::uint64_t limit = 1; limit <= 1'000'000; limit *= 10) {
        for (const Duration late : {Duration{0ns}, Duration{10us}, Duration{100us}}) {
            for (const std::uint64_t each : {limit, limit / 3 + 1}) {
                check_limit({.limit = each, .late_max = late, .span = 10s});
            }
        }
    }
}

TEST_CASE("lrs mclock limits: one, two or eight localities have the same in all", "[lrs]") {
    for (const std::uint64_t limit : {1U, 50U, 1000U, 100'000U}) {
        for (const std::size_t count : {1U, 2U, 8U}) {
            check_limit({.limit = limit,
                         .locality_count = count,
                         .late_max = 100us,
                         .span = limit_span(limit)});
        }
    }
}

TEST_CASE("lrs mclock limits: a class that is late does not catch up", "[lrs]") {
    MclockStage stage({"a job=a limit=100/s"});
    stage.push_many(1000, "job=a", kMclockStart);
    CHECK(stage.pop_all(kMclockStart).size() == 1);
    // 10 ms, which are one more.
    CHECK(stage.pop_all(kMclockStart + 5s).size() == 2);
    CHECK(stage.pop_all(kMclockStart + 5s + 9ms).empty());
}

TEST_CASE("lrs mclock limits: a reservation holds once in the node", "[lrs]") {
    MclockStage stage({"a job=a reservation=400/s", "b job=b weight=1000"}, 2);
    MclockServer first(stage, 1000);
    first.come("a");
    first.come("b");
    stage.push_many(4, "job=a", kMclockStart, 1);
    stage.push_many(4, "job=b", kMclockStart, 1);
    // Both localities do a thousand a second, in turns.
    double served = 0;
    for (int step = 0; step < 5000; ++step) {
        const Instant now = first.now();
        Request& request = *stage.policies[1]->pop(now).request;
        served += request.attributes.job == "a" ? 1 : 0;
        stage.policies[1]->push(request, now);
        served += first.run(1ms)["a"];
    }
    // Their shares are a thousandth.
    CHECK(served >= 5 * 400 - 2);
    CHECK(served <= 5 * 400 * 1.02);
}

TEST_CASE("lrs mclock limits: real threads share a class's limit", "[lrs]") {
    constexpr std::size_t kThreadCount = 4;
    constexpr std::size_t kStepCount = 2000;
    constexpr Duration kStep = 50us;
    MclockStage stage({"a job=a reservation=100000/s limit=1000000/s"}, kThreadCount);
    for (std::size_t i = 0; i < kThreadCount; ++i) stage.push_many(2, "job=a", kMclockStart, i);
    // All are at one time, and race for what there is at it.
    std::vector<std::atomic<std::uint64_t>> served(kStepCount);
    std::barrier next_step(static_cast<std::ptrdiff_t>(kThreadCount));
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < kThreadCount; ++index) {
        threads.emplace_back([&, index] {
            Mclock& policy = *stage.policies[index];
            for (std::size_t step = 0; step < kStepCount; ++step) {
                const Instant now = kMclockStart + static_cast<int>(step) * kStep;
                while (Request* const request = policy.pop(now).request) {
                    served[step].fetch_add(1, std::memory_order_relaxed);
                    policy.push(*request, now);
                }
                next_step.arrive_and_wait();
            }
        });
    }
    for (auto& thread : threads) thread.join();

    std::vector<Instant> all;
    for (std::size_t step = 0; step < kStepCount; ++step) {
        all.insert(all.end(), served[step].load(), kMclockStart + static_cast<int>(step) * kStep);
    }
    const double wanted = 1'000'000 * in_seconds(kStep * (static_cast<int>(kStepCount) - 1));
    CHECK(static_cast<double>(all.size()) >= wanted * 0.99);
    CHECK(static_cast<double>(all.size()) <= wanted + 1);
    CHECK(most_in_window(all, 1'000'000) <= 50 + 1.01);
}
