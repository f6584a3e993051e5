// Goal: foms run as long as their devices keep up, and how many do is never more than is allowed.
#include "reqh/admission.h"

#include <algorithm>
#include <deque>

#include "tests/catch.h"

using namespace fopd;
using namespace fopd::reqh;

namespace {

std::uint64_t fill(Admission& admission, std::uint64_t size_bytes) {
    while (admission.has_room()) admission.began({.size_bytes = size_bytes});
    return admission.running();
}

void end_all(Admission& admission, std::uint64_t size_bytes, Duration io_wait) {
    while (admission.running() > 0) admission.ended({.size_bytes = size_bytes}, io_wait);
}

}  // namespace

TEST_CASE("reqh admission: without a goal the number of foms is all there is", "[reqh]") {
    Admission admission({.max_foms = 40, .io_wait_goal = std::nullopt});
    for (int round = 0; round < 20; ++round) {
        CHECK(fill(admission, 1UL << 20) == 40);
        end_all(admission, 1UL << 20, 1s);
    }
}

TEST_CASE("reqh admission: with one it is as many as the devices keep up with", "[reqh]") {
    Admission admission({.max_foms = 128, .io_wait_goal = 1ms});
    CHECK(fill(admission, 4096) == 128);
    end_all(admission, 4096, 500us);

    for (int round = 0; round < 50; ++round) {
        fill(admission, 4096);
        end_all(admission, 4096, 3ms);
    }
    CHECK(fill(admission, 4096) == 16);
    CHECK(admission.allowed() == 16);
    end_all(admission, 4096, 3ms);

    for (int round = 0; round < 200; ++round) {
        fill(admission, 4096);
        end_all(admission, 4096, 500us);
    }
    CHECK(fill(admission, 4096) == 128);
}

TEST_CASE("reqh admission: what moves much counts as several", "[reqh]") {
    Admission admission({.max_foms = 128, .io_wait_goal = 1ms});
    // 17 each, of four times 128.
    CHECK(fill(admission, 1UL << 20) == 31);
    end_all(admission, 1UL << 20, 1s);
    for (int round = 0; round < 50; ++round) {
        fill(admission, 1UL << 20);
        end_all(admission, 1UL << 20, 1s);
    }
    CHECK(fill(admission, 1UL << 20) == 1);
}

TEST_CASE("reqh admission: what waits for its client leaves room for others", "[reqh]") {
    Admission admission({.max_foms = 20, .io_wait_goal = 1ms});
    for (int round = 0; round < 50; ++round) {
        fill(admission, 1UL << 20);
        end_all(admission, 1UL << 20, 1s);
    }
    CHECK(fill(admission, 1UL << 20) == 1);
    for (std::uint64_t running = 1; running < 20; ++running) {
        CHECK_FALSE(admission.has_room());
        admission.leave({.size_bytes = 1UL << 20});
        REQUIRE(admission.has_room());
        admission.began({.size_bytes = 1UL << 20});
    }
    // Those that come back count again, and nobody else has room then.
    for (std::uint64_t running = 1; running < 20; ++running)
        admission.come_back({.size_bytes = 1UL << 20});
    CHECK(admission.running() == 20);
    CHECK_FALSE(admission.has_room());
    CHECK(admission.has_control_room());
    end_all(admission, 1UL << 20, 1s);
    CHECK(fill(admission, 1UL << 20) == 1);
}

TEST_CASE("reqh admission: control fops take no room from data, nor data from them", "[reqh]") {
    constexpr Admission::Load kControl{.lane = lrs::Lane::kControl};
    const bool data_first = GENERATE(true, false);
    Admission admission({.max_foms = 40, .io_wait_goal = 1ms});
    if (data_first) CHECK(fill(admission, 0) == 40);
    int control_count = 0;
    for (; admission.has_control_room(); ++control_count) admission.began(kControl);
    CHECK(control_count == 64);
    CHECK(fill(admission, 0) == 40);
    admission.leave(kControl);
    CHECK(admission.has_control_room());
    admission.come_back(kControl);
    CHECK_FALSE(admission.has_control_room());

    // Data that ends leaves its room to data, and control fops teach nothing about the devices.
    for (int i = 0; i < control_count; ++i) admission.ended(kControl, 1s);
    CHECK(admission.running() == 40);
    end_all(admission, 0, 500us);
    CHECK(fill(admission, 0) == 40);
}

TEST_CASE("reqh admission: another rule is in force at once, and the same one changes nothing",
          "[reqh]") {
    Admission admission({.max_foms = 128, .io_wait_goal = 1ms});
    for (int round = 0; round < 50; ++round) {
        fill(admission, 0);
        end_all(admission, 0, 1s);
    }
    admission.set({.max_foms = 128, .io_wait_goal = 1ms});
    CHECK(fill(admission, 0) == 16);

    admission.set({.max_foms = 5, .io_wait_goal = 1ms});
    CHECK_FALSE(admission.has_room());
    for (int i = 0; i < 12; ++i) admission.ended({.size_bytes = 0}, 0ms);
    CHECK(fill(admission, 0) == 5);
}

// A device that does one after the other: those that run wait for it together.
TEST_CASE("reqh admission: fops beyond a device's speed wait in the scheduler", "[reqh]") {
    constexpr Duration kService = 100us;
    Admission admission({.max_foms = 128, .io_wait_goal = 1ms});
    std::deque<Instant> running;
    Instant now{};
    Duration longest_late{};
    for (int done = 0; done < 20'000; ++done) {
        while (admission.has_room()) {
            admission.began({.size_bytes = 4096});
            running.push_back(now);
        }
        const Duration waited = now - running.front();
        if (done > 10'000) longest_late = std::max(longest_late, waited);
        now += kService;
        running.pop_front();
        admission.ended({.size_bytes = 4096}, waited);
    }
    CHECK(longest_late <= 2ms);
    CHECK(running.size() >= 5);
}
