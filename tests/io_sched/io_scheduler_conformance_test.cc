// Goal: what every I/O scheduler keeps to, and that its order is the one it promises.
// Method: each row of the table, for each type it serves, gets the same drawn pushes, peeks,
// requeues and removals, on devices that fill up and empty. A model that looks through all that
// waits, without any structure, says what has to come next.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random.h"
#include "io_sched/settings.h"
#include "tests/catch.h"
#include "tests/io_sched/requests.h"

using namespace fopd;
using namespace fopd::io_sched;
using namespace fopd::io_sched::testing;

namespace {

constexpr Duration kMaxWait = 50ms;
constexpr std::size_t kDevices = 3;

// Knows which of the requests that wait for one device is next.
class OrderModel {
public:
    virtual ~OrderModel() = default;
    virtual void push(const NumberedRequest& request) { waiting_.push_back(&request); }
    virtual const NumberedRequest* next(Instant now) const = 0;
    virtual void take(const NumberedRequest& request) { remove(request); }
    void remove(const NumberedRequest& request) { std::erase(waiting_, &request); }
    bool empty() const { return waiting_.empty(); }

protected:
    static std::uint64_t offset_of(const NumberedRequest* request) {
        return request->parts[0].offset;
    }
    const NumberedRequest* oldest() const {
        const auto at = std::ranges::min_element(waiting_, {}, &NumberedRequest::arrival);
        return at == waiting_.end() ? nullptr : *at;
    }

    std::vector<const NumberedRequest*> waiting_;
};

class FifoModel final : public OrderModel {
public:
    const NumberedRequest* next(Instant) const override { return oldest(); }
};

class ElevatorModel final : public OrderModel {
public:
    void push(const NumberedRequest& request) override {
        OrderModel::push(request);
        if (offset_of(&request) < position_)
            passed_.insert(&request);
        else
            passed_.erase(&request);
    }
    const NumberedRequest* next(Instant now) const override {
        const NumberedRequest* const first = oldest();
        if (first == nullptr) return nullptr;
        const bool overdue = now - first->arrived_at() > kMaxWait;
        return overdue && since_aged_ >= 16 ? first : next_of_sweep();
    }
    void take(const NumberedRequest& request) override {
        const bool in_sweep = next_of_sweep() == &request;
        if (in_sweep && passed_.contains(&request)) passed_.clear();
        remove(request);
        since_aged_ = in_sweep ? since_aged_ + 1 : 0;
        if (in_sweep) position_ = offset_of(&request) + request.parts[0].size_bytes;
    }

private:
    const NumberedRequest* next_of_sweep() const {
        const auto rank = [this](const NumberedRequest* request) {
            return std::tuple(passed_.contains(request), offset_of(request), request->arrival());
        };
        return *std::ranges::min_element(waiting_, {}, rank);
    }

    std::set<const NumberedRequest*> passed_;  // By the sweep that goes on.
    std::uint64_t position_ = 0;
    std::uint64_t since_aged_ = 16;
};

std::unique_ptr<OrderModel> make_model(std::string_view algorithm) {
    if (algorithm == "elevator") return std::make_unique<ElevatorModel>();
    REQUIRE(algorithm == "fifo");  // A new one needs its model here.
    return std::make_unique<FifoModel>();
}

// What waits for one device, by priority.
struct QueueModel {
    std::unique_ptr<OrderModel> foreground;
    std::unique_ptr<OrderModel> background;
    int run = 0;

    OrderModel& of(const NumberedRequest& request) const {
        return request.priority == IoPriority::kForeground ? *foreground : *background;
    }
    const NumberedRequest* next(Instant now) const {
        if (foreground->empty()) return background->next(now);
        if (background->empty()) return foreground->next(now);
        const NumberedRequest* const first = foreground->next(now);
        const NumberedRequest* const other = background->next(now);
        return run >= 8 && other->arrival() < first->arrival() ? other : first;
    }
    void take(const NumberedRequest& request) {
        of(request).take(request);
        const bool passed_by = request.priority == IoPriority::kForeground && !background->empty();
        run = passed_by ? run + 1 : 0;
    }
};

// One scheduler, its model, and devices that do what they are given when the test says so.
class Stage {
public:
    Stage(const Algorithm& algorithm, IoType type, std::uint64_t seed)
        : random_(seed), type_(type), scheduler_(algorithm.make({.elevator_max_wait = kMaxWait})) {
        for (std::size_t i = 0; i < kDevices; ++i) {
            devices_.push_back(std::make_unique<IoDevice>(MediumId{static_cast<std::uint32_t>(i)},
                                                          DepthOptions{.min = 2, .max = 2}));
            scheduler_->add_device(*devices_.back());
            auto foreground = make_model(algorithm.name);
            auto background = make_model(algorithm.name);
            models_.push_back({std::move(foreground), std::move(background)});
        }
    }

    void push() {
        const auto medium = static_cast<std::uint32_t>(random_.below(kDevices));
        NumberedRequest& request = requests_.make(type_, {MediumId{medium}}, now_,
                                                  random_.below(64) * devices::kBlockBytes);
        request.own_parts[0].size_bytes = (1 + random_.below(4)) * devices::kBlockBytes;
        if (random_.below(4) == 0) request.priority = IoPriority::kBackground;
        scheduler_->push_request(request);
        model_of(request).of(request).push(request);
        waiting_.insert(&request);
    }

    // The next one, as the model has it, and whatever happens before it is scheduled.
    NumberedRequest* peek() {
        auto* const peeked = static_cast<NumberedRequest*>(scheduler_->peek_request(now_));
        CHECK(peeked == expected());
        if (peeked == nullptr) return nullptr;
        CHECK(scheduler_->peek_request(now_) == peeked);
        if (random_.below(4) == 0) push();
        if (random_.below(4) == 0) end_one();
        CHECK(scheduler_->peek_request(now_) == peeked);
        return peeked;
    }
    void dispatch() {
        NumberedRequest* const request = peek();
        if (request == nullptr) return;
        const auto pair = scheduler_->get_device_medium_pair(*request, now_);
        REQUIRE(pair.has_value());
        REQUIRE(pair->has_value());
        CHECK((*pair)->device == &device_of(*request));
        CHECK((*pair)->part == 0);
        scheduler_->remove_request(*request);
        (*pair)->device->begin(type_);
        running_.push_back((*pair)->device);
        model_of(*request).take(*request);
        waiting_.erase(request);
        dispatched_.push_back(request->number);
    }
    void requeue() {
        NumberedRequest* const request = peek();
        if (request == nullptr) return;
        scheduler_->requeue(*request);
        OrderModel& model = model_of(*request).of(*request);
        model.remove(*request);
        model.push(*request);
    }
    // One that is given up, peeked or not.
    void remove() {
        if (waiting_.empty()) return;
        auto at = waiting_.begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random_.below(waiting_.size())));
        NumberedRequest* const request = *at;
        scheduler_->remove_request(*request);
        model_of(*request).of(*request).remove(*request);
        waiting_.erase(at);
        removed_.push_back(request->number);
    }
    void end_one() {
        if (running_.empty()) return;
        const std::size_t index = random_.below(running_.size());
        running_[index]->end(type_);
        running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    }

    void step() {
        const std::uint64_t what = random_.below(100);
        if (what < 40)
            push();
        else if (what < 60)
            dispatch();
        else if (what < 68)
            requeue();
        else if (what < 72)
            remove();
        else if (what < 92)
            end_one();
        else
            now_ += Duration(random_.below(20'000'000));
    }
    void finish() {
        while (!waiting_.empty()) {
            dispatch();
            end_one();
        }
        CHECK(scheduler_->peek_request(now_) == nullptr);
        std::vector<std::uint64_t> all = dispatched_;
        all.insert(all.end(), removed_.begin(), removed_.end());
        std::ranges::sort(all);
        REQUIRE(all.size() == requests_.count());
        for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(all[i] == i);
    }

private:
    std::size_t index_of(const NumberedRequest& request) const {
        return static_cast<std::size_t>(request.parts[0].medium);
    }
    IoDevice& device_of(const NumberedRequest& request) { return *devices_[index_of(request)]; }
    QueueModel& model_of(const NumberedRequest& request) { return models_[index_of(request)]; }

    const NumberedRequest* expected() const {
        const NumberedRequest* first = nullptr;
        for (std::size_t i = 0; i < kDevices; ++i) {
            if (!devices_[i]->has_room(type_)) continue;
            const NumberedRequest* const next = models_[i].next(now_);
            if (next == nullptr) continue;
            if (first == nullptr || next->arrival() < first->arrival()) first = next;
        }
        return first;
    }

    struct ByNumber {
        bool operator()(const NumberedRequest* a, const NumberedRequest* b) const {
            return a->number < b->number;
        }
    };

    core::Random random_;
    const IoType type_;
    Instant now_{};
    RequestMaker requests_;
    const std::unique_ptr<IoScheduler> scheduler_;
    std::vector<std::unique_ptr<IoDevice>> devices_;
    std::vector<QueueModel> models_;
    std::vector<IoDevice*> running_;
    std::set<NumberedRequest*, ByNumber> waiting_;
    std::vector<std::uint64_t> dispatched_;
    std::vector<std::uint64_t> removed_;
};

}  // namespace

TEST_CASE("io_sched algorithm: its order is the model's, and nothing is lost or doubled",
          "[io_sched]") {
    for (const Algorithm& algorithm : algorithms()) {
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            if (!algorithm.serves[type]) continue;
            for (std::uint64_t seed = 1; seed <= 40; ++seed) {
                CAPTURE(algorithm.name, kIoTypeNames[type], seed);
                Stage stage(algorithm, static_cast<IoType>(type), seed);
                for (int step = 0; step < 400; ++step) stage.step();
                stage.finish();
            }
        }
    }
}

namespace {

// Each row, with the types it serves, and two devices of depth 1.
template <typename Check>
void for_each_algorithm(Check check) {
    for (const Algorithm& algorithm : algorithms()) {
        for (std::size_t type = 0; type < kIoTypeCount; ++type) {
            if (!algorithm.serves[type]) continue;
            CAPTURE(algorithm.name, kIoTypeNames[type]);
            const auto scheduler = algorithm.make(IoSchedSettings{});
            IoDevice first(MediumId{1}, {.min = 1, .max = 1});
            IoDevice second(MediumId{2}, {.min = 1, .max = 1});
            check(*scheduler, first, second, static_cast<IoType>(type));
        }
    }
}

}  // namespace

TEST_CASE("io_sched algorithm: each has a name, a summary, and serves something", "[io_sched]") {
    for (const Algorithm& algorithm : algorithms()) {
        CAPTURE(algorithm.name);
        CHECK_FALSE(algorithm.name.empty());
        CHECK(algorithm.summary.ends_with('.'));
        CHECK(std::ranges::count(algorithm.serves, true) > 0);
    }
}

TEST_CASE("io_sched algorithm: a medium without a device is not found", "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice&, IoType type) {
        scheduler.add_device(first);
        RequestMaker requests;
        NumberedRequest& request = requests.make(type, {MediumId{2}});
        scheduler.push_request(request);

        REQUIRE(scheduler.peek_request({}) == &request);
        const auto pair = scheduler.get_device_medium_pair(request, {});

        REQUIRE_FALSE(pair.has_value());
        CHECK(pair.error().code == Errc::kNotFound);
        scheduler.remove_request(request);
        CHECK(scheduler.peek_request({}) == nullptr);
    });
}

TEST_CASE("io_sched algorithm: a request finds the device that comes after it", "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice& second, IoType type) {
        RequestMaker requests;
        NumberedRequest& request = requests.make(type, {MediumId{2}});
        scheduler.push_request(request);
        REQUIRE(scheduler.peek_request({}) == &request);
        scheduler.add_device(first);
        scheduler.add_device(second);

        REQUIRE(scheduler.peek_request({}) == &request);
        const auto pair = scheduler.get_device_medium_pair(request, {});

        REQUIRE(pair.has_value());
        REQUIRE(pair->has_value());
        CHECK((*pair)->device == &second);
        scheduler.remove_request(request);
    });
}

TEST_CASE("io_sched algorithm: a device is added once, and removed when it is there",
          "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice& second, IoType) {
        scheduler.add_device(first);
        scheduler.add_device(first);
        CHECK(scheduler.device_count() == 1);
        scheduler.remove_device(second);
        CHECK(scheduler.device_count() == 1);
        scheduler.remove_device(first);
        scheduler.remove_device(first);
        CHECK(scheduler.device_count() == 0);
    });
}

TEST_CASE("io_sched algorithm: requests for a removed device are not found", "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice& second, IoType type) {
        scheduler.add_device(first);
        scheduler.add_device(second);
        RequestMaker requests;
        NumberedRequest& lost = requests.make(type, {MediumId{1}});
        NumberedRequest& kept = requests.make(type, {MediumId{2}});
        scheduler.push_request(lost);
        scheduler.push_request(kept);
        REQUIRE(scheduler.peek_request({}) == &lost);

        scheduler.remove_device(first);

        REQUIRE(scheduler.peek_request({}) == &lost);
        CHECK_FALSE(scheduler.get_device_medium_pair(lost, {}).has_value());
        scheduler.remove_request(lost);
        CHECK(scheduler.peek_request({}) == &kept);
        scheduler.remove_request(kept);
    });
}

TEST_CASE("io_sched algorithm: a device it needs is not reclaimed", "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice& second, IoType type) {
        scheduler.add_device(first);
        scheduler.add_device(second);
        RequestMaker requests;
        NumberedRequest& request = requests.make(type, {MediumId{1}});
        scheduler.push_request(request);

        CHECK(scheduler.reclaim_device(Reclaim::take(kDiskTechnology)) == &second);
        CHECK(scheduler.reclaim_device(Reclaim::take(kDiskTechnology)) == nullptr);
        CHECK(scheduler.device_count() == 1);
        scheduler.remove_request(request);
        CHECK(scheduler.reclaim_device(Reclaim::take(kDiskTechnology)) == &first);
        CHECK(scheduler.device_count() == 0);
    });
}

TEST_CASE(
    "io_sched algorithm: a reclaimed device is of the wanted technology, and none is exchanged",
    "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice& second, IoType) {
        scheduler.add_device(first);

        CHECK(scheduler.reclaim_device(Reclaim::take("lto9")) == nullptr);
        CHECK(scheduler.reclaim_device(Reclaim::exchange(first, second)) == nullptr);
        CHECK(scheduler.has_device(first));
        CHECK_FALSE(scheduler.has_device(second));
    });
}

TEST_CASE("io_sched algorithm: a device that is down delays no request for another", "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice& second, IoType type) {
        scheduler.add_device(first);
        scheduler.add_device(second);
        first.set_state(DeviceState::kDown);
        RequestMaker requests;
        NumberedRequest& blocked = requests.make(type, {MediumId{1}});
        NumberedRequest& free = requests.make(type, {MediumId{2}});
        scheduler.push_request(blocked);
        scheduler.push_request(free);

        CHECK(scheduler.peek_request({}) == &free);
        scheduler.remove_request(free);
        CHECK(scheduler.peek_request({}) == nullptr);
        first.set_state(DeviceState::kReady);
        CHECK(scheduler.peek_request({}) == &blocked);
        scheduler.remove_request(blocked);
    });
}

TEST_CASE("io_sched algorithm: a full device delays no request for another", "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice& second, IoType type) {
        scheduler.add_device(first);
        scheduler.add_device(second);
        first.begin(type);
        RequestMaker requests;
        NumberedRequest& blocked = requests.make(type, {MediumId{1}});
        NumberedRequest& free = requests.make(type, {MediumId{2}});
        scheduler.push_request(blocked);
        scheduler.push_request(free);

        CHECK(scheduler.peek_request({}) == &free);
        scheduler.remove_request(free);
        CHECK(scheduler.peek_request({}) == nullptr);
        first.end(type);
        CHECK(scheduler.peek_request({}) == &blocked);
        scheduler.remove_request(blocked);
    });
}

TEST_CASE("io_sched algorithm: room that somebody else took is no failure", "[io_sched]") {
    for_each_algorithm([](IoScheduler& scheduler, IoDevice& first, IoDevice&, IoType type) {
        scheduler.add_device(first);
        RequestMaker requests;
        NumberedRequest& request = requests.make(type, {MediumId{1}});
        scheduler.push_request(request);
        REQUIRE(scheduler.peek_request({}) == &request);
        first.begin(type);

        const auto pair = scheduler.get_device_medium_pair(request, {});

        REQUIRE(pair.has_value());
        CHECK_FALSE(pair->has_value());
        scheduler.requeue(request);
        CHECK(scheduler.peek_request({}) == nullptr);
        first.end(type);
        CHECK(scheduler.peek_request({}) == &request);
        scheduler.remove_request(request);
    });
}
