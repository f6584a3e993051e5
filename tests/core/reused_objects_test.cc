// Goal: objects that a burst has needed are destroyed soon afterwards, a few at a time, and those
// that are needed again and again are not.
#include "core/reused_objects.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/virtual_world.h"
#include "tests/catch.h"

namespace fopd::core {

namespace {

class CountedObject final : public ReusedObject {
public:
    explicit CountedObject(std::size_t& count) : count_(count) { ++count_; }
    ~CountedObject() { --count_; }

private:
    std::size_t& count_;
};

using CountedObjects = ReusedObjects<CountedObject>;

// How often memory was returned.
std::size_t& returns() {
    static std::size_t count = 0;
    return count;
}
void count_return() {
    ++returns();
}

class ReuseStage {
public:
    // Has so many objects in use at a time.
    void burst(std::size_t size) {
        take(size);
        give_back(size);
    }
    void take(std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) taken_.push_back(&objects.take(count));
    }
    void give_back(std::size_t size) {
        for (std::size_t i = 0; i < size; ++i) {
            objects.give_back(*taken_.back());
            taken_.pop_back();
        }
    }

    std::size_t count = 0;  // Of the objects that exist.
    VirtualWorld world{5};
    std::unique_ptr<Reactor> reactor = world.make_reactor();
    CountedObjects objects{*reactor};

private:
    std::vector<CountedObject*> taken_;
};

}  // namespace

TEST_CASE("core reused objects: what a burst has needed is destroyed within half a minute",
          "[core]") {
    constexpr std::size_t kBurst = 20'000;
    ReuseStage stage;
    stage.take(10);
    stage.burst(kBurst);
    REQUIRE(stage.count == kBurst + 10);

    // While objects are destroyed, no turn of the reactor destroys many.
    std::size_t most = 0;
    const Instant end = after(stage.world.now(), 30s);
    for (std::size_t before = stage.count; stage.world.step(end); before = stage.count) {
        REQUIRE(stage.count <= before);
        most = std::max(most, before - stage.count);
    }
    CHECK(most == CountedObjects::kDestroyedPerStep);
    CHECK(stage.count == CountedObjects::kKept + 10);
    CHECK(stage.objects.all().size() == stage.count);
    CHECK(stage.objects.free_count() == CountedObjects::kKept);

    // The others are whole: all of them can be used, and destroyed.
    stage.give_back(10);
    stage.take(kBurst);
    CHECK(stage.count == kBurst);
    stage.give_back(kBurst);
    stage.world.run_for(30s);
    CHECK(stage.count == CountedObjects::kKept);
}

TEST_CASE("core reused objects: memory of a burst is returned in parts", "[core]") {
    using Objects = ReusedObjects<CountedObject, &count_return>;
    constexpr std::size_t kBurst = 20'000;
    std::size_t count = 0;
    VirtualWorld world(5);
    const std::unique_ptr<Reactor> reactor = world.make_reactor();
    Objects objects(*reactor);
    std::vector<CountedObject*> taken;
    for (std::size_t i = 0; i < kBurst; ++i) taken.push_back(&objects.take(count));
    for (CountedObject* const each : taken) objects.give_back(*each);
    const std::size_t returns_before = returns();

    std::size_t at_last_return = count;
    std::size_t most = 0;
    const Instant end = after(world.now(), 30s);
    for (std::size_t seen = returns_before; world.step(end);) {
        if (seen == returns()) continue;
        seen = returns();
        most = std::max(most, at_last_return - count);
        at_last_return = count;
    }
    CHECK(count == Objects::kKept);
    CHECK(at_last_return == count);
    CHECK(most >= Objects::kWorthReturning);
    CHECK(most < Objects::kWorthReturning + Objects::kDestroyedPerStep);

    // Few that are destroyed are not worth it.
    const std::size_t returns_of_burst = returns() - returns_before;
    taken.clear();
    for (std::size_t i = 0; i < Objects::kKept + 2000; ++i) taken.push_back(&objects.take(count));
    for (CountedObject* const each : taken) objects.give_back(*each);
    world.run_for(30s);
    CHECK(count == Objects::kKept);
    CHECK(returns() - returns_before == returns_of_burst);
}

TEST_CASE("core reused objects: what is needed in each period is kept", "[core]") {
    constexpr std::size_t kNeeded = 5000;
    ReuseStage stage;
    stage.burst(kNeeded);
    for (int i = 0; i < 20; ++i) {
        stage.world.run_for(CountedObjects::kPeriod * 2 / 3);
        stage.burst(kNeeded);
        REQUIRE(stage.count == kNeeded);
    }
    // Nothing is left to do for few.
    stage.world.run_for(60s);
    REQUIRE(stage.count == CountedObjects::kKept);
    CHECK_FALSE(stage.world.step());
}

}  // namespace fopd::core
