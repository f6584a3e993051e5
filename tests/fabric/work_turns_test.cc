// Goal: whoever has work, principals take turns, however many connections each of them has, and
// whatever each of these costs. Method: connections that always have more work, without a machine.
#include "fabric/tcp/work_turns.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace fopd::fabric::testing::work_turns_test {

namespace {

constexpr std::size_t kQuantum = WorkTurns::kQuantum;

// The connections of one principal. Serving one costs `cost_of_each`.
struct Principal {
    Principal(WorkTurns& turns, std::string name, std::size_t connections, std::size_t service_cost)
        : cost_of_each(service_cost) {
        for (std::size_t i = 0; i < connections; ++i) {
            HasWork& place = places.emplace_back(turns);
            if (!name.empty()) place.belongs_to(name);
            place.join();
        }
    }
    bool has(const HasWork& place) const {
        for (const HasWork& each : places) {
            if (&each == &place) return true;
        }
        return false;
    }

    std::deque<HasWork> places;
    std::size_t cost_of_each;
    std::size_t cost = 0;  // Of all that was done for it.
};

// One turn of a machine, in which each connection that is served has more work afterwards.
void run_turn(WorkTurns& turns, std::vector<Principal*> principals) {
    turns.begin_turn();
    std::size_t cost = 0;
    while (HasWork* const served = turns.next()) {
        CHECK(cost < WorkTurns::kTurnCostMax);
        for (Principal* const each : principals) {
            if (!each->has(*served)) continue;
            turns.add_cost(each->cost_of_each);
            each->cost += each->cost_of_each;
            cost += each->cost_of_each;
        }
        served->join();
        turns.end_service();
    }
    CHECK(cost > 0);
}

}  // namespace

TEST_CASE("fabric turns: many connections of a principal have as much as one of another",
          "[fabric]") {
    struct Loads {
        std::size_t cost_of_many;
        std::size_t cost_of_one;
    };
    const Loads loads =
        GENERATE(Loads{kQuantum, kQuantum}, Loads{kQuantum + 512, kQuantum + 512},
                 Loads{1000, kQuantum}, Loads{kQuantum, 4 * kQuantum}, Loads{4 * kQuantum, 5000});
    CAPTURE(loads.cost_of_many, loads.cost_of_one);
    // Peers that have not authenticated are one principal, too.
    const std::string name = GENERATE(std::string("ann"), std::string());
    CAPTURE(name);
    WorkTurns turns;
    Principal many(turns, name, 40, loads.cost_of_many);
    Principal one(turns, "bob", 1, loads.cost_of_one);

    // The one connection has no more than a small part of a turn if each of its visits costs
    // little.
    const bool is_small = loads.cost_of_one < kQuantum;
    std::size_t visits = 0;
    for (int turn = 0; turn < 1000; ++turn) {
        const std::size_t before = one.cost;
        run_turn(turns, {&many, &one});
        visits += one.cost > before;
    }

    if (is_small) {
        // Others cost a whole turn, or more, before it is served again.
        CHECK(visits >= 400);
    } else {
        constexpr std::size_t kExcess = 10 * kQuantum;
        CHECK(one.cost + kExcess > many.cost);
        CHECK(many.cost + kExcess > one.cost);
    }
}

TEST_CASE("fabric turns: the connections of a principal take turns", "[fabric]") {
    WorkTurns turns;
    std::deque<Principal> connections;
    std::vector<Principal*> all;
    // Each is looked at alone, but all are of one principal.
    for (std::size_t i = 0; i < 10; ++i) {
        all.push_back(&connections.emplace_back(turns, "ann", 1, kQuantum * (1 + i % 2)));
    }
    std::vector<std::size_t> visits(all.size());
    for (int turn = 0; turn < 100; ++turn) run_turn(turns, all);

    for (std::size_t i = 0; i < all.size(); ++i) visits[i] = all[i]->cost / all[i]->cost_of_each;
    for (const std::size_t each : visits) {
        CHECK(each + 1 >= visits.front());
        CHECK(each <= visits.front() + 1);
    }
}

TEST_CASE("fabric turns: who is alone has the whole turn, and others what they need", "[fabric]") {
    WorkTurns turns;
    HasWork first(turns);
    first.belongs_to("ann");
    first.join();
    turns.begin_turn();
    REQUIRE(turns.next() == &first);
    std::size_t cost = 0;
    for (; turns.may_go_on(first); cost += 1024) turns.add_cost(1024);
    CHECK(cost == WorkTurns::kTurnCostMax);
    turns.end_service();
    CHECK(turns.empty());
    CHECK(turns.next() == nullptr);

    std::optional<HasWork> second(turns);
    second->belongs_to("bob");
    first.join();
    second->join();
    turns.begin_turn();
    REQUIRE(turns.next() == &first);
    // Its own place among those with work does not count.
    first.join();
    cost = 0;
    for (; turns.may_go_on(first); cost += 1024) turns.add_cost(1024);
    CHECK(cost == kQuantum);
    turns.end_service();
    REQUIRE(turns.next() == &*second);
    turns.end_service();
    CHECK(turns.next() == nullptr);  // As many were served as had work.

    second->join();
    turns.begin_turn();
    second.reset();
    REQUIRE(turns.next() == &first);
    CHECK(turns.may_go_on(first));
    turns.end_service();
    CHECK(turns.empty());
}

TEST_CASE("fabric turns: a connection may be gone when it was served, and its principal with it",
          "[fabric]") {
    WorkTurns turns;
    auto place = std::make_unique<HasWork>(turns);
    place->join();
    place->belongs_to("ann");  // What it has to do stays.
    turns.begin_turn();
    REQUIRE(turns.next() == place.get());
    turns.add_cost(kQuantum);
    place.reset();
    turns.end_service();
    CHECK(turns.empty());

    HasWork other(turns);
    other.join();
    turns.begin_turn();
    REQUIRE(turns.next() == &other);
    turns.end_service();
}

TEST_CASE("fabric turns: a connection that has no work any more is neither served nor counted",
          "[fabric]") {
    WorkTurns turns;
    HasWork first(turns);
    HasWork second(turns);
    first.belongs_to("ann");
    second.belongs_to("bob");
    first.join();
    second.join();
    turns.begin_turn();

    first.withdraw();
    first.withdraw();

    REQUIRE(turns.next() == &second);
    CHECK(turns.empty());
    CHECK(turns.may_go_on(second));
    turns.end_service();
    CHECK(turns.next() == nullptr);
    first.join();
    turns.begin_turn();
    REQUIRE(turns.next() == &first);
    turns.end_service();
}

TEST_CASE("fabric turns: what is served early is part of the turn, and leaves half of it",
          "[fabric]") {
    WorkTurns turns;
    HasWork early(turns);
    HasWork other(turns);
    early.belongs_to("ann");
    other.belongs_to("bob");

    // Nobody else waits, so only the turn limits what is served early.
    std::size_t early_cost = 0;
    for (;;) {
        early.join();
        if (!turns.serve_early(early)) break;
        CHECK(turns.may_go_on(early));
        turns.add_cost(kQuantum);
        early_cost += kQuantum;
        turns.end_service();
        REQUIRE(early_cost <= WorkTurns::kTurnCostMax);
    }
    CHECK(early_cost == WorkTurns::kEarlyCostMax);

    other.join();
    std::size_t cost = early_cost;
    turns.begin_turn();
    while (HasWork* const served = turns.next()) {
        turns.add_cost(kQuantum);
        cost += kQuantum;
        served->join();
        turns.end_service();
    }
    CHECK(cost == WorkTurns::kTurnCostMax);

    // The next turn has not cost anything.
    CHECK(turns.serve_early(early));
    turns.end_service();
}

TEST_CASE("fabric turns: while others wait a principal is served early for one quantum",
          "[fabric]") {
    WorkTurns turns;
    HasWork first(turns);
    HasWork second(turns);
    HasWork other(turns);
    first.belongs_to("ann");
    second.belongs_to("ann");
    other.belongs_to("bob");
    other.join();

    std::size_t cost = 0;
    for (;;) {
        first.join();
        if (!turns.serve_early(first)) break;
        turns.add_cost(kQuantum / 16);
        cost += kQuantum / 16;
        turns.end_service();
        REQUIRE(cost <= kQuantum);
    }
    CHECK(cost == kQuantum);
    CHECK(first.linked());
    second.join();
    CHECK(!turns.serve_early(second));
    CHECK(turns.serve_early(other));
    turns.end_service();

    // It has its turn nevertheless.
    turns.begin_turn();
    REQUIRE(turns.next() == &first);
    turns.end_service();
    REQUIRE(turns.next() == &second);
    turns.end_service();
}

}  // namespace fopd::fabric::testing::work_turns_test
