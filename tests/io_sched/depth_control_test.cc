#include "io_sched/depth_control.h"

#include <algorithm>
#include <deque>

#include "io_sched/io_device.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::io_sched;

namespace {

// A round in which all that may run does, and each takes `latency`.
void round_of(DepthControl& control, Duration latency) {
    const std::uint32_t depth = control.depth();
    for (std::uint32_t i = 1; i <= depth; ++i) control.began(i);
    for (std::uint32_t i = 0; i < depth; ++i) control.ended(latency);
}

}  // namespace

TEST_CASE("io_sched depth: it doubles until the goal is missed, then grows by one", "[io_sched]") {
    DepthControl control({.latency_goal = 2ms, .min = 4, .max = 1000});

    CHECK(control.depth() == 4);
    round_of(control, 1ms);
    round_of(control, 2ms);
    CHECK(control.depth() == 16);
    round_of(control, 3ms);
    CHECK(control.depth() == 12);
    round_of(control, 2ms);
    CHECK(control.depth() == 13);
}

TEST_CASE("io_sched depth: it stays between its bounds", "[io_sched]") {
    DepthControl control({.latency_goal = 2ms, .min = 3, .max = 20});

    for (int i = 0; i < 100; ++i) round_of(control, 1ms);
    CHECK(control.depth() == 20);
    for (int i = 0; i < 100; ++i) round_of(control, 1s);
    CHECK(control.depth() == 3);
}

TEST_CASE("io_sched depth: one that is not used up does not grow", "[io_sched]") {
    DepthControl control({.latency_goal = 2ms, .min = 16, .max = 128});

    for (int i = 0; i < 1000; ++i) {
        control.began(1);
        control.ended(1ms);
    }

    CHECK(control.depth() == 16);
}

TEST_CASE("io_sched depth: one slow operation among fast ones is not missing the goal",
          "[io_sched]") {
    DepthControl control({.latency_goal = 2ms, .min = 16, .max = 128});
    for (std::uint32_t i = 1; i <= 16; ++i) control.began(i);
    for (std::uint32_t i = 0; i < 15; ++i) control.ended(1ms);

    control.ended(10ms);

    CHECK(control.depth() == 32);
}

// A disk does one operation after the other: what is given to it waits there.
TEST_CASE("io_sched depth: a busy disk gets the requests that it completes within the goal",
          "[io_sched]") {
    constexpr Duration kService = 100us;
    DepthControl control(depth_options(false, Duration::zero(), 128));
    std::deque<Instant> running;
    Instant now{};
    for (int done = 0; done < 20'000; ++done) {
        while (running.size() < control.depth()) {
            running.push_back(now);
            control.began(running.size());
        }
        now += kService;
        control.ended(now - running.front());
        running.pop_front();
    }

    // 2 ms hold 20 of them. It goes on trying for more, and back.
    CHECK(control.depth() >= 15);
    CHECK(control.depth() <= 22);
}

TEST_CASE("io_sched depth: a disk that turns has a goal and a bound of its own", "[io_sched]") {
    const DepthOptions rotational = depth_options(true, Duration::zero(), 128);
    const DepthOptions solid = depth_options(false, Duration::zero(), 128);
    CHECK(rotational.latency_goal == 20ms);
    CHECK(rotational.min == 4);
    CHECK(solid.latency_goal == 2ms);
    CHECK(solid.min == 16);
    CHECK(depth_options(true, 7ms, 128).latency_goal == 7ms);
    CHECK(depth_options(false, 7ms, 2).min == 2);
}

TEST_CASE("io_sched depth: a round is as much as may run, however many operations that are",
          "[io_sched]") {
    DepthControl control({.latency_goal = 2ms, .min = 16, .max = 1000});
    control.began(17);
    control.ended(3ms, 17);
    control.began(17);
    control.ended(1ms, 17);
    CHECK(control.depth() == 17);

    // Long ones and short ones count alike in the mean.
    control.began(17);
    control.ended(1ms, 16);
    control.ended(4ms, 1);
    CHECK(control.depth() == 16);
}

TEST_CASE("io_sched device: long operations leave room for two, and count for many", "[io_sched]") {
    constexpr std::uint64_t kLong = 1UL << 20;
    IoDevice device(MediumId{1}, {.min = 16, .max = 16});

    device.begin(IoType::kWrite, kLong);
    CHECK(device.has_room(IoType::kRead));
    device.begin(IoType::kWrite, kLong);
    CHECK_FALSE(device.has_room(IoType::kRead));
    device.end(IoType::kWrite, kLong);
    CHECK(device.has_room(IoType::kRead));
    device.end(IoType::kWrite, kLong);

    for (int i = 0; i < 16; ++i) {
        REQUIRE(device.has_room(IoType::kRead));
        device.begin(IoType::kRead, 4096);
    }
    CHECK_FALSE(device.has_room(IoType::kRead));
    for (int i = 0; i < 16; ++i) device.end(IoType::kRead, 4096);

    device.begin(IoType::kWrite, 4096);
    device.grow(4096, kLong);
    device.begin(IoType::kRead, 4096);
    CHECK_FALSE(device.has_room(IoType::kRead));
    device.end(IoType::kWrite, 4096 + kLong);
    for (int i = 0; i < 15; ++i) {
        REQUIRE(device.has_room(IoType::kRead));
        device.begin(IoType::kRead, 4096);
    }
    CHECK_FALSE(device.has_room(IoType::kRead));
}

TEST_CASE("io_sched device: one that is down has no room", "[io_sched]") {
    IoDevice device(MediumId{1}, {.min = 2, .max = 2});
    device.set_state(DeviceState::kDown);

    CHECK_FALSE(device.has_room(IoType::kRead));
    CHECK_FALSE(device.has_room(IoType::kFormat));
    device.set_state(DeviceState::kReady);
    CHECK(device.has_room(IoType::kRead));
}

TEST_CASE("io_sched device: a drive has one operation at a time, and a medium or none",
          "[io_sched]") {
    IoDevice drive(IoDevice::Drive{.number = 1, .technology = "lto9"});
    CHECK_FALSE(drive.medium().has_value());
    drive.set_medium(MediumId{7}, 100);
    CHECK(drive.medium() == MediumId{7});
    CHECK(drive.position() == 100);

    for (const IoType running : {IoType::kRead, IoType::kFormat}) {
        drive.begin(running, 1UL << 30);
        for (const IoType type : {IoType::kRead, IoType::kWrite, IoType::kFormat}) {
            CHECK_FALSE(drive.has_room(type));
        }
        drive.end(running, 1UL << 30);
        CHECK(drive.has_room(IoType::kWrite));
    }
}

TEST_CASE("io_sched device: a format runs besides reads and writes, and alone of its kind",
          "[io_sched]") {
    IoDevice device(MediumId{1}, {.min = 2, .max = 2});

    device.begin(IoType::kFormat);
    CHECK_FALSE(device.has_room(IoType::kFormat));
    device.begin(IoType::kRead);
    CHECK(device.has_room(IoType::kWrite));
    device.begin(IoType::kWrite);
    CHECK_FALSE(device.has_room(IoType::kRead));
    CHECK(device.in_flight() == 2);
    CHECK(device.depth() == 2);

    device.end(IoType::kFormat);
    CHECK(device.has_room(IoType::kFormat));
    CHECK_FALSE(device.has_room(IoType::kWrite));
    device.end(IoType::kRead);
    CHECK(device.has_room(IoType::kWrite));
}
