// Goal: objects and devices take turns by offset, and requests without an offset pass.
// Method: each promise by hand; then what is drawn, beside the plainest model.

#include "lrs/sorted_turns.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "core/random.h"
#include "lrs/orr.h"
#include "lrs/trr.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

struct Aim {
    std::uint32_t device = 0;
    std::uint64_t object = 1;
    std::uint64_t offset = 0;
    Direction direction = Direction::kRead;
};

std::vector<std::uint64_t> order_of(Policy& policy, const std::vector<Aim>& aims) {
    RequestMaker requests(1);
    for (const Aim& aim : aims) {
        NumberedRequest& request = requests.make();
        request.attributes.device = aim.device;
        request.attributes.object = {.high = std::uint64_t{aim.device} << 48, .low = aim.object};
        request.attributes.offset = aim.offset;
        request.attributes.direction = aim.direction;
        policy.push(request, Instant{});
    }
    std::vector<std::uint64_t> numbers;
    while (Request* const request = policy.pop(Instant{}).request) {
        numbers.push_back(static_cast<NumberedRequest*>(request)->number);
        policy.complete(*request, Instant{});
    }
    return numbers;
}

using Numbers = std::vector<std::uint64_t>;

// The queue of a request, and its sort key there.
using QueueName = std::array<std::uint64_t, 2>;
using SortKey = std::array<std::uint64_t, 3>;

struct SortedTurnsKind {
    std::unique_ptr<Policy> (*make)(const SortedTurnsSettings& settings, std::uint64_t seed);
    QueueName (*queue)(const RequestAttributes& about);
    SortKey (*sort_key)(const RequestAttributes& about);
};
const std::array kSortedTurnsKinds{
    SortedTurnsKind{
        .make = &make_orr,
        .queue = [](const RequestAttributes& about) -> QueueName {
            return {about.object.high, about.object.low};
        },
        .sort_key = [](const RequestAttributes& about) -> SortKey { return {about.offset}; }},
    SortedTurnsKind{
        .make = &make_trr,
        .queue = [](const RequestAttributes& about) -> QueueName { return {about.device}; },
        .sort_key = [](const RequestAttributes& about) -> SortKey {
            return {about.object.high, about.object.low, about.offset};
        }},
};

// What the policies are to do, in the plainest way: all that waits in one vector, by arrival, which
// is looked through for each request, and the turn put in order anew.
class SortedTurnsModel {
public:
    SortedTurnsModel(const SortedTurnsKind& kind, const SortedTurnsSettings& settings)
        : kind_(kind), settings_(settings) {}

    void push(NumberedRequest& request) {
        const bool passes = does_pass(request.attributes);
        const QueueName queue = passes ? QueueName{} : kind_.queue(request.attributes);
        const auto is_of_queue = [&](const Waiting& each) {
            return !each.passes && each.queue == queue;
        };
        if (!passes && std::ranges::none_of(waiting_, is_of_queue)) last_turn_[queue] = ++clock_;
        waiting_.push_back({.request = &request, .queue = queue, .passes = passes});
    }

    NumberedRequest* pop() {
        const auto passing = std::ranges::find(waiting_, true, &Waiting::passes);
        const bool has_passing = passing != waiting_.end();
        const bool has_ordered = !std::ranges::all_of(waiting_, &Waiting::passes);
        const bool takes_passing = !has_ordered || (passing_next_ && has_passing);
        passing_next_ = !takes_passing;
        if (takes_passing) return has_passing ? take(*passing) : nullptr;
        return take(first_by_key());
    }

    // Null: it waits no more.
    NumberedRequest* remove(NumberedRequest& request) {
        const auto it = std::ranges::find(waiting_, &request, &Waiting::request);
        return it == waiting_.end() ? nullptr : take(*it);
    }

private:
    struct Waiting {
        NumberedRequest* request;
        QueueName queue;
        bool passes;
        bool has_turn = false;
    };

    bool does_pass(const RequestAttributes& about) const {
        if (about.object == fop::Fid{}) return true;
        switch (about.direction) {
            case Direction::kRead: return settings_.ops == OrderedOps::kWrites;
            case Direction::kWrite: return settings_.ops == OrderedOps::kReads;
            case Direction::kNone: break;
        }
        return true;
    }

    Waiting first_by_key() {
        if (std::ranges::none_of(waiting_, &Waiting::has_turn)) begin_turn();
        std::vector<Waiting> turn;
        std::ranges::copy_if(waiting_, std::back_inserter(turn), &Waiting::has_turn);
        // The oldest of several with one sort key.
        return *std::ranges::min_element(turn, {}, [&](const Waiting& each) {
            return kind_.sort_key(each.request->attributes);
        });
    }
    // Of the queue that has waited for it the longest: its oldest ones.
    void begin_turn() {
        const auto waits_since = [&](const Waiting& each) {
            return each.passes ? clock_ + 1 : last_turn_[each.queue];
        };
        const QueueName queue = std::ranges::min_element(waiting_, {}, waits_since)->queue;
        std::size_t left = settings_.quantum;
        for (Waiting& each : waiting_) {
            each.has_turn = !each.passes && each.queue == queue && left > 0;
            if (each.has_turn) --left;
        }
    }
    NumberedRequest* take(const Waiting taken) {
        std::erase_if(waiting_, [&](const Waiting& each) { return each.request == taken.request; });
        if (taken.has_turn && std::ranges::none_of(waiting_, &Waiting::has_turn))
            last_turn_[taken.queue] = ++clock_;
        return taken.request;
    }

    const SortedTurnsKind& kind_;
    const SortedTurnsSettings settings_;
    std::vector<Waiting> waiting_;  // The oldest first.
    bool passing_next_ = false;
    std::uint64_t clock_ = 0;
    std::map<QueueName, std::uint64_t> last_turn_;  // When it ended, or when the queue came.
};

void compare_with_model(const SortedTurnsKind& kind, const SortedTurnsSettings& settings,
                        std::uint64_t seed) {
    core::Random random(seed);
    RequestMaker requests(seed);
    const auto policy = kind.make(settings, seed);
    SortedTurnsModel model(kind, settings);
    for (int step = 0; step < 1500; ++step) {
        // Now more come than go, now fewer.
        const std::uint64_t coming = step / 300 % 2 == 0 ? 6 : 3;
        const std::uint64_t what = random.below(10);
        if (what < coming) {
            NumberedRequest& request = requests.make();
            if (random.below(8) == 0) request.attributes.object = {};
            if (random.below(8) == 0) request.attributes.offset = kAtEnd;
            policy->push(request, Instant{});
            model.push(request);
        } else if (what < 9) {
            NumberedRequest* const expected = model.pop();
            Request* const popped = policy->pop(Instant{}).request;
            REQUIRE(popped == expected);
            if (popped != nullptr) policy->complete(*popped, Instant{});
        } else if (requests.count() > 0) {
            NumberedRequest* const removed = model.remove(requests[random.below(requests.count())]);
            if (removed != nullptr) policy->remove(*removed);
        }
    }
    while (NumberedRequest* const expected = model.pop())
        REQUIRE(policy->pop(Instant{}).request == expected);
    CHECK(policy->pop(Instant{}).request == nullptr);
}

}  // namespace

TEST_CASE("lrs orr: an object's reads come by offset, objects take turns", "[lrs]") {
    const auto policy = make_orr({.quantum = 2}, 1);

    CHECK(order_of(*policy, {{.object = 1, .offset = 9},
                             {.object = 1, .offset = 7},
                             {.object = 1, .offset = 1},
                             {.object = 2, .offset = 5},
                             {.object = 2, .offset = 3}}) == Numbers{1, 0, 4, 3, 2});
}

TEST_CASE("lrs orr: an append comes after writes with an offset", "[lrs]") {
    const auto policy = make_orr({.ops = OrderedOps::kWrites}, 1);

    CHECK(order_of(*policy, {{.offset = kAtEnd, .direction = Direction::kWrite},
                             {.offset = 1U << 30, .direction = Direction::kWrite},
                             {.offset = 0, .direction = Direction::kWrite}}) == Numbers{2, 1, 0});
}

TEST_CASE("lrs orr: others pass in the order of arrival, one by one", "[lrs]") {
    const std::vector<Aim> aims{{.offset = 9, .direction = Direction::kRead},
                                {.offset = 8, .direction = Direction::kWrite},
                                {.offset = 7, .direction = Direction::kRead},
                                {.offset = 6, .direction = Direction::kWrite},
                                {.offset = 5, .direction = Direction::kNone}};

    CHECK(order_of(*make_orr({.ops = OrderedOps::kReads}, 1), aims) == Numbers{2, 1, 0, 3, 4});
    CHECK(order_of(*make_orr({.ops = OrderedOps::kWrites}, 1), aims) == Numbers{3, 0, 1, 2, 4});
    CHECK(order_of(*make_orr({.ops = OrderedOps::kBoth}, 1), aims) == Numbers{3, 4, 2, 1, 0});
}

TEST_CASE("lrs orr: requests without an object pass", "[lrs]") {
    const auto policy = make_orr({}, 1);

    CHECK(order_of(*policy, {{.object = 0, .offset = 9}, {.object = 0, .offset = 1}}) ==
          Numbers{0, 1});
}

TEST_CASE("lrs trr: devices take turns, each by object and offset", "[lrs]") {
    const auto policy = make_trr({.quantum = 3}, 1);

    CHECK(order_of(*policy, {{.device = 1, .object = 2, .offset = 4},
                             {.device = 1, .object = 1, .offset = 8},
                             {.device = 1, .object = 2, .offset = 1},
                             {.device = 1, .object = 1, .offset = 3},
                             {.device = 2, .object = 9, .offset = 6},
                             {.device = 2, .object = 9, .offset = 2}}) ==
          Numbers{1, 2, 0, 5, 4, 3});
}

TEST_CASE("lrs orr and trr: they deliver what a plain model delivers", "[lrs]") {
    for (const SortedTurnsKind& kind : kSortedTurnsKinds) {
        for (const OrderedOps ops : {OrderedOps::kReads, OrderedOps::kWrites, OrderedOps::kBoth}) {
            for (const std::uint32_t quantum : {1U, 2U, 5U, 256U}) {
                for (std::uint64_t seed = 1; seed <= 5; ++seed) {
                    CAPTURE(kind.make == &make_orr, static_cast<int>(ops), quantum, seed);
                    compare_with_model(kind, {.quantum = quantum, .ops = ops}, seed);
                }
            }
        }
    }
}
