#include "core/timer_heap.h"

#include <map>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::core;

namespace {

struct Noted final : Timer {
    Noted() : Timer(&on_fire) {}
    static void on_fire(Timer& timer) {
        auto& self = static_cast<Noted&>(timer);
        self.log->push_back(self.id);
    }
    std::vector<std::size_t>* log = nullptr;
    std::size_t id = 0;
};

Instant at(std::uint64_t ns) {
    return Instant{Duration{static_cast<std::int64_t>(ns)}};
}

}  // namespace

// Goal: the heap does what a sorted map of (deadline, order of arming) does.
TEST_CASE("core timer heap: agrees with a sorted map under random use", "[core]") {
    constexpr std::size_t kTimers = 300;
    using Key = std::pair<Instant, std::uint64_t>;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        std::vector<std::size_t> fired;
        std::vector<std::size_t> expected;
        std::vector<Noted> timers(kTimers);
        TimerHeap heap;
        std::map<Key, std::size_t> model;
        std::vector<Key> keys(kTimers);
        std::uint64_t arms = 0;
        for (std::size_t i = 0; i < kTimers; ++i) {
            timers[i].log = &fired;
            timers[i].id = i;
        }
        std::uint64_t now = 0;
        for (int step = 0; step < 20'000; ++step) {
            const std::size_t i = random.below(kTimers);
            const std::uint64_t what = random.below(10);
            if (what < 5) {
                // Few different deadlines, so that many are equal.
                const Instant deadline = at(now + random.below(50));
                if (timers[i].armed()) model.erase(keys[i]);
                heap.arm(timers[i], deadline);
                keys[i] = {deadline, arms++};
                model[keys[i]] = i;
            } else if (what < 8) {
                if (timers[i].armed()) model.erase(keys[i]);
                timers[i].disarm();
            } else {
                now += random.below(20);
                while (heap.fire_next(at(now))) {
                }
                while (!model.empty() && model.begin()->first.first <= at(now)) {
                    expected.push_back(model.begin()->second);
                    model.erase(model.begin());
                }
            }
            const Instant next = model.empty() ? kNever : model.begin()->first.first;
            if (heap.count() != model.size() || heap.next_deadline() != next) {
                FAIL("count or next deadline differ at step " << step);
            }
        }
        REQUIRE(fired == expected);
        for (Noted& timer : timers) timer.disarm();
        REQUIRE(heap.empty());
    }
}

TEST_CASE("core timer heap: a million timers fire in order", "[core]") {
    constexpr std::size_t kTimers = 1'000'000;
    Random random(9);
    std::vector<std::size_t> fired;
    std::vector<Noted> timers(kTimers);
    std::vector<std::uint64_t> deadlines(kTimers);
    TimerHeap heap;
    for (std::size_t i = 0; i < kTimers; ++i) {
        timers[i].log = &fired;
        timers[i].id = i;
        deadlines[i] = random.below(100'000);
        heap.arm(timers[i], at(deadlines[i]));
    }
    for (std::size_t i = 0; i < kTimers; i += 2) timers[i].disarm();

    while (heap.fire_next(at(100'000))) {
    }

    REQUIRE(fired.size() == kTimers / 2);
    const bool in_order = std::ranges::is_sorted(fired, [&](std::size_t a, std::size_t b) {
        return deadlines[a] != deadlines[b] ? deadlines[a] < deadlines[b] : a < b;
    });
    REQUIRE(in_order);
}

TEST_CASE("core timer heap: timers and heap may go in either order", "[core]") {
    std::vector<std::size_t> fired;
    auto heap = std::make_unique<TimerHeap>();
    Noted outlives;
    outlives.log = &fired;
    heap->arm(outlives, at(1));
    {
        Noted gone;
        heap->arm(gone, at(0));
    }
    REQUIRE(heap->count() == 1);
    REQUIRE(!heap->fire_next(at(0)));

    heap.reset();

    REQUIRE(!outlives.armed());
    outlives.disarm();
}

TEST_CASE("core time: the end of a wait saturates at never", "[core]") {
    REQUIRE(after(at(5), 7ns) == at(12));
    REQUIRE(after(at(5), Duration::max()) == kNever);
    REQUIRE(after(kNever, 1ns) == kNever);
    REQUIRE(after(kNever - 1ns, 1ns) == kNever);
    REQUIRE(after(kNever - 2ns, 1ns) == kNever - 1ns);
    REQUIRE(after(at(5), -3ns) == at(2));
    REQUIRE(after(kNever, 0ns) == kNever);
}
