// Goal: objects and devices take turns by offset, and what has no place passes.
// Method: each promise by hand; turns_test.cc compares the turns themselves with a model.

#include "lrs/by_place.h"

#include <vector>

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

}  // namespace

TEST_CASE("lrs orr: an object's reads come by offset, objects take turns", "[lrs]") {
    const auto policy = make_orr({.quantum = 2}, 1);

    CHECK(order_of(*policy, {{.object = 1, .offset = 9},
                             {.object = 1, .offset = 7},
                             {.object = 1, .offset = 1},
                             {.object = 2, .offset = 5},
                             {.object = 2, .offset = 3}}) == Numbers{1, 0, 4, 3, 2});
}

TEST_CASE("lrs orr: what is at the end comes behind", "[lrs]") {
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

TEST_CASE("lrs orr: what is about no object passes", "[lrs]") {
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
