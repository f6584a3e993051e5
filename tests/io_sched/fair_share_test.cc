// Goal: drives are divided as the table of the reference says, and change hands seldom; requests go
// in proportion to their cost.

#include "io_sched/fair_share.h"

#include <array>
#include <memory>
#include <set>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"
#include "tests/io_sched/requests.h"

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;

namespace {

using Costs = std::array<std::uint64_t, kIoTypeCount>;

DriveLimits limits(DriveCounts min, DriveCounts max = {100, 100, 100}) {
    return {.min = min, .max = max};
}
// Of three technologies, each with a third of the drives.
DriveCounts thrice(const DriveCounts& counts) {
    return {3 * counts[0], 3 * counts[1], 3 * counts[2]};
}

// A scheduler that has devices and no requests. It can do without those that are idle.
class Holder final : public IoScheduler {
public:
    void push_request(IoRequest&) override {}
    IoRequest* peek_request(Instant) override { return nullptr; }
    Result<std::optional<DeviceMedium>> get_device_medium_pair(IoRequest&, Instant) override {
        return std::nullopt;
    }
    void requeue(IoRequest&) override {}
    void remove_request(IoRequest&) override {}
    bool retry(IoRequest&, IoPart&, const IoDevice&) override { return false; }
    void add_device(IoDevice& device) override {
        devices.insert(device.number()), known.push_back(&device);
    }
    void remove_device(IoDevice& device) override {
        devices.erase(device.number());
        std::erase(known, &device);
    }
    IoDevice* reclaim_device(const Reclaim& what) override {
        if (what.kind == Reclaim::Kind::kExchange) {
            if (!what.wanted->is_idle() || !has_device(*what.wanted)) return nullptr;
            remove_device(*what.wanted);
            add_device(*what.offered);
            return what.wanted;
        }
        for (IoDevice* const device : known) {
            if (!device->is_idle() || device->technology() != what.technology) continue;
            remove_device(*device);
            return device;
        }
        return nullptr;
    }
    IoDevice* wanted_device() const override { return wanted; }
    bool has_device(const IoDevice& device) const override {
        return devices.contains(device.number());
    }
    std::size_t device_count() const override { return devices.size(); }

    std::set<std::uint8_t> devices;
    std::vector<IoDevice*> known;
    IoDevice* wanted = nullptr;
};

struct DispatchStage {
    explicit DispatchStage(std::uint8_t drive_count, FairShareOptions options = {})
        : dispatch(std::move(options)) {
        for (std::uint8_t i = 1; i <= drive_count; ++i) {
            drives.push_back(
                std::make_unique<IoDevice>(IoDevice::Drive{.number = i, .technology = "lto9"}));
            devices.push_back(drives.back().get());
        }
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            loads[type].scheduler = &holders[type];
            loads[type].serves[type] = true;
        }
    }
    void wait(const Costs& costs) {
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            loads[i].waiting_cost = costs[i];
            loads[i].waiting_count = costs[i] > 0 ? 1 : 0;
        }
    }
    // The numbers of drives after a dispatch.
    DriveCounts run() {
        dispatch.dispatch(devices, loads, now);
        DriveCounts counts{};
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            counts[i] = static_cast<std::uint32_t>(holders[i].devices.size());
        }
        return counts;
    }

    std::vector<std::unique_ptr<IoDevice>> drives;
    std::vector<IoDevice*> devices;
    std::array<Holder, kIoTypeCount> holders;
    std::array<SchedulerLoad, kIoTypeCount> loads{};
    FairShareDispatch dispatch;
    Instant now{1h};
};

}  // namespace

TEST_CASE("io_sched fair_share: drives are divided row by row as in the table", "[io_sched]") {
    const DriveLimits none;
    CHECK(divide_drives(1, {1, 1, 1}, none) == DriveCounts{1, 1, 1});
    CHECK(divide_drives(2, {5, 1, 1}, none) == DriveCounts{2, 1, 1});
    CHECK(divide_drives(4, {2, 1, 1}, none) == DriveCounts{2, 1, 1});
    CHECK(divide_drives(4, {6, 2, 0}, none) == DriveCounts{3, 1, 0});
    CHECK(divide_drives(17, {7, 19, 5}, none) == DriveCounts{4, 10, 3});
    CHECK(divide_drives(7, {1, 1, 4}, none) == DriveCounts{1, 1, 5});
    CHECK(divide_drives(8, {5, 5, 10}, none) == DriveCounts{2, 2, 4});
    CHECK(divide_drives(9, {5, 5, 10}, none) == DriveCounts{2, 2, 5});
    CHECK(divide_drives(8, {10, 5, 5}, none) == DriveCounts{4, 2, 2});
    CHECK(divide_drives(8, {5, 1, 10}, none) == DriveCounts{2, 1, 5});
    CHECK(thrice(divide_drives(8, {17, 4, 8}, none)) == DriveCounts{15, 3, 6});
    const Costs costs{20, 4, 12};
    CHECK(divide_drives(8, costs, limits({1, 1, 1}, {3, 1, 2})) == DriveCounts{3, 1, 2});
    CHECK(divide_drives(8, costs, limits({0, 2, 4})) == DriveCounts{2, 2, 4});
    CHECK(divide_drives(8, costs, limits({3, 2, 4})) == DriveCounts{3, 2, 3});
    CHECK(thrice(divide_drives(8, costs, limits({1, 1, 0}, {100, 100, 0}))) ==
          DriveCounts{18, 6, 0});
    CHECK(divide_drives(8, costs, limits({0, 0, 0}, {0, 0, 0})) == DriveCounts{0, 0, 0});
}

// A limit of 0 is no drives, and not no limit.
TEST_CASE("io_sched fair_share: a maximum of 0 is none, with any number of drives", "[io_sched]") {
    for (const std::uint32_t drives : {1U, 2U, 3U, 20U}) {
        const DriveCounts counts = divide_drives(drives, {1, 9, 9}, limits({}, {100, 0, 100}));
        CHECK(counts[1] == 0);
        CHECK(counts[2] > 0);
    }
}

TEST_CASE(
    "io_sched fair_share: no division exceeds drives or limits, or leaves a drive that could "
    "be used",
    "[io_sched]") {
    core::Random random(1);
    for (int round = 0; round < 20'000; ++round) {
        const auto drives = static_cast<std::uint32_t>(3 + random.below(30));
        Costs costs{};
        DriveLimits bound;
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            costs[i] = random.below(3) == 0 ? 0 : 1 + (random.next() >> random.below(64));
            bound.min[i] = static_cast<std::uint32_t>(random.below(4));
            bound.max[i] = bound.min[i] + static_cast<std::uint32_t>(random.below(12));
        }
        const DriveCounts counts = divide_drives(drives, costs, bound);
        CAPTURE(round, drives, costs, bound.min, bound.max, counts);
        REQUIRE(counts[0] + counts[1] + counts[2] <= drives);
        bool could = false;
        std::uint32_t least = 0;
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            if (costs[i] > 0) least += std::min(bound.min[i], bound.max[i]);
        }
        for (std::size_t i = 0; i < kIoTypeCount; ++i) {
            REQUIRE(counts[i] <= (costs[i] > 0 ? bound.max[i] : 0));
            if (costs[i] > 0 && counts[i] < bound.max[i]) could = true;
        }
        if (least <= drives && could) REQUIRE(counts[0] + counts[1] + counts[2] == drives);
    }
}

TEST_CASE("io_sched fair_share: drives that nobody has go at once to those that need them",
          "[io_sched]") {
    DispatchStage stage(8);
    stage.wait({10, 5, 5});
    CHECK(stage.run() == DriveCounts{4, 2, 2});
    CHECK(stage.run() == DriveCounts{4, 2, 2});
}

TEST_CASE("io_sched fair_share: a technology without limits has its drives used", "[io_sched]") {
    FairShareOptions options;
    options.limits["lto8"] = limits({1, 1, 1});
    DispatchStage stage(4, std::move(options));
    stage.wait({2, 1, 1});
    CHECK(stage.run() == DriveCounts{2, 1, 1});
}

TEST_CASE("io_sched fair_share: a drive that is down counts for nobody", "[io_sched]") {
    DispatchStage stage(5);
    stage.drives[4]->set_state(DeviceState::kDown);
    stage.wait({2, 1, 1});
    CHECK(stage.run() == DriveCounts{2, 1, 1});
}

TEST_CASE("io_sched fair_share: a request that comes and goes moves no drive", "[io_sched]") {
    DispatchStage stage(4);
    stage.wait({10, 0, 0});
    REQUIRE(stage.run() == DriveCounts{4, 0, 0});

    for (int i = 0; i < 100; ++i) {
        stage.wait({10, 10, 0});
        stage.now += 5s;
        CHECK(stage.run() == DriveCounts{4, 0, 0});
        stage.wait({10, 0, 0});
        stage.now += 5s;
        CHECK(stage.run() == DriveCounts{4, 0, 0});
    }
    stage.wait({10, 10, 0});
    stage.run();
    CHECK(stage.dispatch.next_time(stage.now) == stage.now + FairShareDispatch::kSettle);
    stage.now += FairShareDispatch::kSettle;
    CHECK(stage.run() == DriveCounts{2, 2, 0});
}

TEST_CASE("io_sched fair_share: a drive in use does not change hands", "[io_sched]") {
    DispatchStage stage(4);
    stage.wait({10, 0, 0});
    stage.run();
    for (const auto& drive : stage.drives) drive->begin(IoType::kRead);
    stage.wait({10, 10, 0});
    stage.run();
    stage.now += 1h;
    CHECK(stage.run() == DriveCounts{4, 0, 0});
    stage.drives[2]->end(IoType::kRead);
    CHECK(stage.run() == DriveCounts{3, 1, 0});
    CHECK(stage.holders[1].devices == std::set<std::uint8_t>{3});
}

TEST_CASE("io_sched fair_share: a drive moves once a minute at most, in any mix", "[io_sched]") {
    core::Random random(3);
    DispatchStage stage(6);
    std::array<std::optional<Instant>, 7> moved{};
    std::array<std::size_t, 7> owner{};
    owner.fill(kIoTypeCount);
    int moves = 0;
    for (int step = 0; step < 20'000; ++step) {
        stage.now += 1s;
        if (step % 40 == 0) stage.wait({random.below(20), random.below(20), random.below(20)});
        stage.run();
        for (std::uint8_t drive = 1; drive <= 6; ++drive) {
            for (std::size_t i = 0; i < kIoTypeCount; ++i) {
                if (!stage.holders[i].devices.contains(drive) || owner[drive] == i) continue;
                if (owner[drive] != kIoTypeCount) {
                    ++moves;
                    if (moved[drive]) CHECK(stage.now - *moved[drive] >= 1min);
                    moved[drive] = stage.now;
                }
                owner[drive] = i;
            }
        }
    }
    CHECK(moves > 100);
}

TEST_CASE("io_sched fair_share: fixed weights do not follow what waits", "[io_sched]") {
    DispatchStage stage(10, {.weights = DriveCounts{40, 40, 20}});
    stage.wait({1000, 1, 1});
    CHECK(stage.run() == DriveCounts{4, 4, 2});
}

TEST_CASE("io_sched fair_share: a drive goes to who waits for its cartridge, for another drive",
          "[io_sched]") {
    DispatchStage stage(4);
    stage.wait({10, 10, 0});
    REQUIRE(stage.run() == DriveCounts{2, 2, 0});
    IoDevice& wanted = *stage.holders[1].known.front();
    stage.holders[0].wanted = &wanted;
    wanted.begin(IoType::kWrite);
    stage.run();
    CHECK(stage.holders[1].has_device(wanted));
    wanted.end(IoType::kWrite);

    CHECK(stage.run() == DriveCounts{2, 2, 0});
    CHECK(stage.holders[0].has_device(wanted));
}

TEST_CASE("io_sched fair_share: two drives are shared, and the heaviest has both", "[io_sched]") {
    DispatchStage stage(2);
    stage.wait({5, 1, 1});
    CHECK(stage.run() == DriveCounts{2, 1, 1});
    stage.wait({1, 5, 1});
    CHECK(stage.run() == DriveCounts{1, 2, 1});
}

TEST_CASE("io_sched fair_share: requests go by their cost, not by their number", "[io_sched]") {
    FairShareRequests dispatch({40, 50, 10});
    RequestMaker requests;
    const std::array costs{std::uint64_t{1}, std::uint64_t{64}, std::uint64_t{7}};
    std::array<IoRequest*, 3> peeked{};
    for (IoRequest*& each : peeked) each = &requests.make(IoType::kRead, {MediumId{1}});
    std::array<std::uint64_t, 3> served{};
    for (int i = 0; i < 30'000; ++i) {
        IoRequest* const next = dispatch.next(peeked);
        REQUIRE(dispatch.next(peeked) == next);
        const auto which =
            static_cast<std::size_t>(std::ranges::find(peeked, next) - peeked.begin());
        dispatch.taken(which, costs[which]);
        served[which] += costs[which];
    }
    const double all = static_cast<double>(served[0] + served[1] + served[2]);
    CHECK(static_cast<double>(served[0]) / all == Approx(0.4).margin(0.01));
    CHECK(static_cast<double>(served[1]) / all == Approx(0.5).margin(0.01));
    CHECK(static_cast<double>(served[2]) / all == Approx(0.1).margin(0.01));
}

TEST_CASE("io_sched fair_share: who had nothing to do has saved nothing, and one alone always goes",
          "[io_sched]") {
    FairShareRequests dispatch({1, 1, 1});
    RequestMaker requests;
    IoRequest* const read = &requests.make(IoType::kRead, {MediumId{1}});
    IoRequest* const write = &requests.make(IoType::kWrite, {MediumId{1}});
    CHECK(dispatch.next(std::array<IoRequest*, 3>{}) == nullptr);
    for (int i = 0; i < 1000; ++i) {
        REQUIRE(dispatch.next(std::array<IoRequest*, 3>{read, nullptr, nullptr}) == read);
        dispatch.taken(0, 10);
    }
    int writes = 0;
    for (int i = 0; i < 100; ++i) {
        const bool is_write =
            dispatch.next(std::array<IoRequest*, 3>{read, write, nullptr}) == write;
        writes += is_write ? 1 : 0;
        dispatch.taken(is_write ? 1 : 0, 10);
    }
    CHECK(writes >= 49);
    CHECK(writes <= 51);
}
