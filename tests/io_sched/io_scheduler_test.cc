// What single algorithms promise beyond the conformance suite, requests for several media, and the
// two algorithms between the schedulers.

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "io_sched/elevator.h"
#include "io_sched/fifo.h"
#include "io_sched/io_schedulers.h"
#include "io_sched/settings.h"
#include "tests/catch.h"
#include "tests/io_sched/requests.h"

namespace io_scheduler_test {

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;

namespace {

constexpr MediumId kA{1};
constexpr MediumId kB{2};
constexpr MediumId kC{3};
constexpr std::uint64_t kBlock = devices::kBlockBytes;

// Gives the next request all the parts it can have; their devices are busy with it from then on.
// The parts it got.
std::vector<std::size_t> schedule(IoScheduler& scheduler, IoRequest& request, Instant now = {}) {
    std::vector<std::size_t> got;
    REQUIRE(scheduler.peek_request(now) == &request);
    while (request.missing_count() > 0) {
        const auto pair = scheduler.get_device_medium_pair(request, now);
        REQUIRE(pair.has_value());
        if (!pair->has_value()) {
            scheduler.requeue(request);
            return got;
        }
        CHECK((*pair)->device->medium() == request.parts[(*pair)->part].medium);
        (*pair)->device->begin(request.type);
        got.push_back((*pair)->part);
    }
    scheduler.remove_request(request);
    return got;
}

// The numbers of all that wait, in the order in which they go; each ends at once.
std::vector<std::uint64_t> drain(IoScheduler& scheduler, IoDevice& device, Instant now = {}) {
    std::vector<std::uint64_t> numbers;
    while (IoRequest* const request = scheduler.peek_request(now)) {
        schedule(scheduler, *request, now);
        device.end(request->type);
        numbers.push_back(static_cast<NumberedRequest*>(request)->number);
    }
    return numbers;
}

// One after the other: the test runs once with each.
const Algorithm& each_algorithm() {
    const Algorithm& algorithm = algorithms()[GENERATE(range(std::size_t{0}, algorithms().size()))];
    UNSCOPED_INFO(algorithm.name);
    return algorithm;
}

struct TwoDevices {
    TwoDevices() {
        scheduler->add_device(a);
        scheduler->add_device(b);
    }
    std::unique_ptr<IoScheduler> scheduler = each_algorithm().make(IoSchedSettings{});
    IoDevice a{kA, {.min = 1, .max = 1}};
    IoDevice b{kB, {.min = 1, .max = 1}};
    RequestMaker requests;
};

}  // namespace

TEST_CASE("io_sched elevator: upwards, and again from the lowest", "[io_sched]") {
    const auto scheduler = make_elevator({});
    IoDevice device(kA, {.min = 1, .max = 1});
    scheduler->add_device(device);
    RequestMaker requests;
    for (const std::uint64_t block : {50U, 20U, 90U}) {
        scheduler->push_request(requests.make(IoType::kRead, {kA}, {}, block * kBlock));
    }
    schedule(*scheduler, requests[1]);
    device.end(IoType::kRead);

    // Passed already; just where the disk is; and the same block twice.
    for (const std::uint64_t block : {10U, 21U, 90U}) {
        scheduler->push_request(requests.make(IoType::kRead, {kA}, {}, block * kBlock));
    }

    CHECK(drain(*scheduler, device) == std::vector<std::uint64_t>{4, 0, 2, 5, 3});
}

TEST_CASE("io_sched elevator: the overdue goes first, then a batch in order", "[io_sched]") {
    const auto scheduler = make_elevator({.elevator_max_wait = 100ms});
    IoDevice device(kA, {.min = 1, .max = 1});
    scheduler->add_device(device);
    RequestMaker requests;
    scheduler->push_request(requests.make(IoType::kRead, {kA}, {}, 900 * kBlock));
    scheduler->push_request(requests.make(IoType::kRead, {kA}, {}, 800 * kBlock));
    for (std::uint64_t i = 0; i < 40; ++i) {
        scheduler->push_request(requests.make(IoType::kRead, {kA}, Instant(1s), i * kBlock));
    }

    const auto order = drain(*scheduler, device, Instant(1s));

    REQUIRE(order.size() == 42);
    CHECK(order[0] == 0);
    for (std::uint64_t i = 0; i < 16; ++i) CHECK(order[1 + i] == 2 + i);
    CHECK(order[17] == 1);
    CHECK(order[18] == 18);
}

TEST_CASE("io_sched elevator: a stream ahead of the position starves nobody", "[io_sched]") {
    const auto scheduler = make_elevator({.elevator_max_wait = 100ms});
    IoDevice device(kA, {.min = 1, .max = 1});
    scheduler->add_device(device);
    RequestMaker requests;
    Instant now{};
    std::uint64_t block = 100;
    scheduler->push_request(requests.make(IoType::kRead, {kA}, now, block++ * kBlock));
    schedule(*scheduler, requests[0], now);
    device.end(IoType::kRead);
    NumberedRequest& behind = requests.make(IoType::kRead, {kA}, now, 0);
    scheduler->push_request(behind);

    int passed = 0;
    for (bool served = false; !served; ++passed) {
        scheduler->push_request(requests.make(IoType::kRead, {kA}, now, block++ * kBlock));
        now += 1ms;
        IoRequest* const next = scheduler->peek_request(now);
        served = next == &behind;
        schedule(*scheduler, *next, now);
        device.end(IoType::kRead);
    }

    CHECK(passed == 101);
}

TEST_CASE("io_sched priority: the background has its turn after every eight", "[io_sched]") {
    for (const Algorithm& algorithm : algorithms()) {
        CAPTURE(algorithm.name);
        const auto scheduler = algorithm.make(IoSchedSettings{});
        IoDevice device(kA, {.min = 1, .max = 1});
        scheduler->add_device(device);
        RequestMaker requests;
        for (std::uint64_t i = 0; i < 20; ++i) {
            NumberedRequest& request = requests.make(IoType::kRead, {kA}, {}, i * kBlock);
            if (i < 4) request.priority = IoPriority::kBackground;
            scheduler->push_request(request);
        }

        const auto order = drain(*scheduler, device);

        CHECK(order == std::vector<std::uint64_t>{4,  5,  6,  7,  8,  9,  10, 11, 0, 12,
                                                  13, 14, 15, 16, 17, 18, 19, 1,  2, 3});
    }
}

TEST_CASE("io_sched priority: the background passes nothing that is older", "[io_sched]") {
    for (const Algorithm& algorithm : algorithms()) {
        CAPTURE(algorithm.name);
        const auto scheduler = algorithm.make(IoSchedSettings{});
        IoDevice device(kA, {.min = 1, .max = 1});
        scheduler->add_device(device);
        RequestMaker requests;
        for (std::uint64_t i = 0; i < 20; ++i) {
            NumberedRequest& request = requests.make(IoType::kWrite, {kA}, {}, i * kBlock);
            if (i == 12) request.priority = IoPriority::kBackground;
            scheduler->push_request(request);
        }

        const auto order = drain(*scheduler, device);

        CHECK(order == std::vector<std::uint64_t>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
                                                  10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
    }
}

TEST_CASE("io_sched media: a write goes to each of its media once", "[io_sched]") {
    TwoDevices stage;
    NumberedRequest& request = stage.requests.make(IoType::kWrite, {kB, kA});
    stage.scheduler->push_request(request);

    CHECK(schedule(*stage.scheduler, request).size() == 2);
    CHECK(request.parts[0].state == IoPart::State::kTaken);
    CHECK(request.parts[1].state == IoPart::State::kTaken);
    CHECK(stage.scheduler->peek_request({}) == nullptr);
}

TEST_CASE("io_sched media: a request without room goes later, before younger ones", "[io_sched]") {
    TwoDevices stage;
    stage.b.begin(IoType::kWrite);
    NumberedRequest& request = stage.requests.make(IoType::kWrite, {kA, kB});
    NumberedRequest& younger = stage.requests.make(IoType::kWrite, {kB});
    stage.scheduler->push_request(request);
    stage.scheduler->push_request(younger);

    CHECK(schedule(*stage.scheduler, request) == std::vector<std::size_t>{0});
    CHECK(stage.scheduler->peek_request({}) == nullptr);
    stage.b.end(IoType::kWrite);
    CHECK(schedule(*stage.scheduler, request) == std::vector<std::size_t>{1});
    stage.b.end(IoType::kWrite);
    CHECK(schedule(*stage.scheduler, younger) == std::vector<std::size_t>{0});
}

TEST_CASE("io_sched media: a read takes the copy whose device has room", "[io_sched]") {
    TwoDevices stage;
    stage.a.begin(IoType::kRead);
    NumberedRequest& request = stage.requests.make(IoType::kRead, {kA, kB});
    stage.scheduler->push_request(request);

    CHECK(schedule(*stage.scheduler, request) == std::vector<std::size_t>{1});
    CHECK(request.parts[0].state == IoPart::State::kWaiting);
}

TEST_CASE("io_sched media: a read takes the copy on the device with the least to do",
          "[io_sched]") {
    TwoDevices stage;
    stage.scheduler->push_request(stage.requests.make(IoType::kRead, {kA}));
    NumberedRequest& request = stage.requests.make(IoType::kRead, {kA, kB});
    stage.scheduler->push_request(request);

    schedule(*stage.scheduler, stage.requests[0]);
    CHECK(schedule(*stage.scheduler, request) == std::vector<std::size_t>{1});
}

TEST_CASE("io_sched media: a read runs on as many devices as it asks for", "[io_sched]") {
    TwoDevices stage;
    IoDevice c(kC, {.min = 1, .max = 1});
    stage.scheduler->add_device(c);
    NumberedRequest& request = stage.requests.make(IoType::kRead, {kA, kB, kC});
    request.required_count = 2;
    request.stamp(1, {});
    stage.scheduler->push_request(request);

    CHECK(schedule(*stage.scheduler, request).size() == 2);
    CHECK(stage.scheduler->peek_request({}) == nullptr);
}

TEST_CASE("io_sched media: a read whose device is removed goes to the other copy", "[io_sched]") {
    TwoDevices stage;
    stage.a.begin(IoType::kRead);
    stage.b.begin(IoType::kRead);
    NumberedRequest& request = stage.requests.make(IoType::kRead, {kA, kB});
    stage.scheduler->push_request(request);

    stage.scheduler->remove_device(stage.a);
    CHECK(stage.scheduler->peek_request({}) == nullptr);
    stage.b.end(IoType::kRead);

    CHECK(schedule(*stage.scheduler, request) == std::vector<std::size_t>{1});
}

TEST_CASE("io_sched dispatch: every scheduler has every device, also those that come later",
          "[io_sched]") {
    const auto schedulers = IoSchedulers::load_from_config({});
    IoDevice a(kA, {.min = 8, .max = 8});
    IoDevice b(kB, {.min = 8, .max = 8});
    RequestMaker requests;
    schedulers->add_device(a);
    schedulers->dispatch_devices({});
    schedulers->add_device(b);
    schedulers->dispatch_devices({});

    for (const IoType type : {IoType::kFormat, IoType::kRead, IoType::kWrite}) {
        for (const MediumId medium : {kA, kB}) {
            NumberedRequest& request = requests.make(type, {medium});
            schedulers->push_request(request);
            REQUIRE(schedulers->peek_request({}) == &request);
            const auto pair = schedulers->get_device_medium_pair(request, {});
            REQUIRE(pair.has_value());
            REQUIRE(pair->has_value());
            CHECK((*pair)->device->medium() == medium);
            schedulers->remove_request(request);
        }
    }
}

TEST_CASE("io_sched dispatch: the oldest of the types' next requests is next", "[io_sched]") {
    const auto schedulers = IoSchedulers::load_from_config({});
    IoDevice device(kA, {.min = 8, .max = 8});
    schedulers->add_device(device);
    schedulers->dispatch_devices({});
    RequestMaker requests;
    const std::vector<IoType> types{IoType::kWrite, IoType::kFormat, IoType::kRead,
                                    IoType::kRead,  IoType::kWrite,  IoType::kFormat};
    for (const IoType type : types) schedulers->push_request(requests.make(type, {kA}));
    CHECK(schedulers->waiting_count(IoType::kRead) == 2);

    for (std::size_t i = 0; i < types.size(); ++i) {
        REQUIRE(schedulers->peek_request({}) == &requests[i]);
        REQUIRE(schedulers->get_device_medium_pair(requests[i], {}).has_value());
        schedulers->remove_request(requests[i]);
    }
    CHECK(schedulers->peek_request({}) == nullptr);
    CHECK(schedulers->waiting_count(IoType::kRead) == 0);
}

TEST_CASE("io_sched dispatch: a type whose device has no room does not hold up the others",
          "[io_sched]") {
    const auto schedulers = IoSchedulers::load_from_config({});
    IoDevice device(kA, {.min = 1, .max = 1});
    schedulers->add_device(device);
    schedulers->dispatch_devices({});
    RequestMaker requests;
    device.begin(IoType::kWrite);
    NumberedRequest& read = requests.make(IoType::kRead, {kA});
    NumberedRequest& format = requests.make(IoType::kFormat, {kA});
    schedulers->push_request(read);
    schedulers->push_request(format);

    CHECK(schedulers->peek_request({}) == &format);
    schedulers->remove_request(format);
    CHECK(schedulers->peek_request({}) == nullptr);
    schedulers->remove_request(read);
}

TEST_CASE("io_sched dispatch: one scheduler may serve several types", "[io_sched]") {
    std::vector<IoSchedulers::Served> served;
    served.emplace_back(make_fifo({}), std::array{true, true, false});
    served.emplace_back(make_fifo({}), std::array{false, false, true});
    IoSchedulers schedulers(std::move(served), std::make_unique<ShareAllDevices>(),
                            std::make_unique<OldestRequest>());
    IoDevice device(kA, {.min = 8, .max = 8});
    schedulers.add_device(device);
    schedulers.dispatch_devices({});
    RequestMaker requests;
    const std::vector<IoType> types{IoType::kWrite, IoType::kFormat, IoType::kRead};
    for (const IoType type : types) schedulers.push_request(requests.make(type, {kA}));

    for (std::size_t i = 0; i < types.size(); ++i) {
        REQUIRE(schedulers.peek_request({}) == &requests[i]);
        REQUIRE(schedulers.get_device_medium_pair(requests[i], {}).has_value());
        schedulers.remove_taken(requests[i]);
        CHECK(schedulers.waiting_count(types[i]) == 0);
    }
    CHECK_FALSE(schedulers.has_waiting());
}

}  // namespace io_scheduler_test
