// Goal: queues take turns as described, whatever comes, goes and is given up.
// Method: the same drawn operations on the plainest model; then each promise by hand.

#include "lrs/turns.h"

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "lrs/crr.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/lrs/turns_model.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

Turns::SortKey offset_in(const Request& request) {
    return {request.attributes.offset};
}

QueueKey client_key(const Request& request) {
    return {.low = static_cast<std::uint64_t>(request.attributes.client[0])};
}

std::vector<std::uint64_t> numbers_from(Turns& turns) {
    std::vector<std::uint64_t> numbers;
    while (Request* const request = turns.pop())
        numbers.push_back(static_cast<NumberedRequest*>(request)->number);
    return numbers;
}

// Of so many groups.
std::optional<QueueKey> group_key(std::uint64_t groups, const Request& request) {
    if (groups == 0) return std::nullopt;
    return QueueKey{.low = client_key(request).low % groups};
}

void compare_with_model(std::uint64_t seed, Turns::SortKey (*sort_key)(const Request& request)) {
    core::Random random(seed);
    const auto quantum = static_cast<std::uint32_t>(1 + random.below(6));
    Turns turns({.quantum = quantum, .sort_key = sort_key, .seed = seed});
    TurnsModel model(quantum, sort_key);
    RequestMaker requests(seed);
    std::vector<NumberedRequest*> waiting;
    const std::uint64_t pushes = 3 + random.below(4);  // Of ten operations.
    const std::uint64_t groups = random.below(4);
    for (int step = 0; step < 3000; ++step) {
        const std::uint64_t what = random.below(10);
        if (what < pushes) {
            NumberedRequest& request = requests.make();
            const auto group = group_key(groups, request);
            turns.push(request, client_key(request), group ? &*group : nullptr);
            model.push(request, client_key(request), group ? &*group : nullptr);
            waiting.push_back(&request);
        } else if (what < 9) {
            Request* const popped = turns.pop();
            REQUIRE(popped == model.pop());
            if (popped != nullptr) std::erase(waiting, static_cast<NumberedRequest*>(popped));
        } else if (!waiting.empty()) {
            NumberedRequest& request = *waiting[random.below(waiting.size())];
            turns.remove(request);
            model.remove(request);
            std::erase(waiting, &request);
        }
        REQUIRE(turns.empty() == waiting.empty());
    }
    for (std::size_t left = waiting.size() + 1; left > 0; --left)
        REQUIRE(turns.pop() == model.pop());
}

}  // namespace

TEST_CASE("lrs turns: turns by arrival match the model", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        CAPTURE(seed);
        compare_with_model(seed, nullptr);
    }
}

TEST_CASE("lrs turns: sorted turns match the model", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        CAPTURE(seed);
        compare_with_model(seed, &offset_in);
    }
}

TEST_CASE("lrs turns: each queue gives out a quantum in the order of arrival", "[lrs]") {
    Turns turns({.quantum = 2});
    RequestMaker requests(1);
    for (int i = 0; i < 5; ++i) turns.push(requests.make(), {.low = 1});
    for (int i = 0; i < 3; ++i) turns.push(requests.make(), {.low = 2});

    CHECK(numbers_from(turns) == std::vector<std::uint64_t>{0, 1, 5, 6, 2, 3, 7, 4});
}

// With equal keys in a heap they came in any order.
TEST_CASE("lrs turns: those with one sort key stay in the order of arrival", "[lrs]") {
    Turns turns({.quantum = 64, .sort_key = &offset_in});
    RequestMaker requests(1);
    for (int i = 0; i < 60; ++i) {
        NumberedRequest& request = requests.make();
        request.attributes.offset = 4096;
        turns.push(request, {});
    }
    const auto numbers = numbers_from(turns);

    CHECK(numbers.size() == 60);
    CHECK(std::ranges::is_sorted(numbers));
}

TEST_CASE("lrs turns: a sorted turn leaves later arrivals to the next turn", "[lrs]") {
    Turns turns({.quantum = 3, .sort_key = &offset_in});
    RequestMaker requests(1);
    const auto push = [&](std::uint64_t offset) {
        NumberedRequest& request = requests.make();
        request.attributes.offset = offset;
        turns.push(request, {});
    };
    for (const std::uint64_t offset : {30U, 10U, 20U, 5U}) push(offset);
    const auto* const first = static_cast<NumberedRequest*>(turns.pop());
    push(11);

    CHECK(first->number == 1);
    CHECK(numbers_from(turns) == std::vector<std::uint64_t>{2, 0, 3, 4});
}

TEST_CASE("lrs turns: many queues come and go", "[lrs]") {
    Turns turns({.quantum = 1, .seed = 7});
    RequestMaker requests(1);
    for (std::uint64_t round = 0; round < 3; ++round) {
        for (std::uint64_t key = 0; key < 5000; ++key)
            turns.push(requests.make(), {.high = key << 40, .low = round});
        const auto numbers = numbers_from(turns);
        CHECK(numbers.size() == 5000);
        CHECK(std::ranges::is_sorted(numbers));
    }
}

TEST_CASE("lrs crr: a principal with many clients gets no more than its turn", "[lrs]") {
    const auto policy = make_crr({}, 1);
    RequestMaker requests(1);
    const auto push = [&](std::string_view principal, std::uint8_t client) {
        NumberedRequest& request = requests.make();
        request.attributes.principal = principal;
        request.attributes.share = principal;
        request.attributes.client = client_of(client);
        policy->push(request, Instant{});
    };
    for (std::uint8_t client = 0; client < 250; ++client) push("many", client);
    // The second takes the id of a client of the first.
    for (int i = 0; i < 100; ++i) push("one", 7);
    std::uint64_t of_one = 0;
    for (int i = 0; i < 100; ++i) {
        const Request* const request = policy->pop(Instant{}).request;
        if (request->attributes.principal == "one") ++of_one;
    }
    CHECK(of_one == 50);
}

// Nothing proves their names.
TEST_CASE("lrs crr: clients without a key get one turn, whatever they call themselves", "[lrs]") {
    const Key by = GENERATE(Key::kClient, Key::kPrincipal);
    const auto policy = make_crr({.by = by}, 1);
    RequestMaker requests(1);
    std::deque<std::string> names;
    const auto push = [&](std::string_view share, std::string name, std::uint8_t client) {
        NumberedRequest& request = requests.make();
        request.attributes.principal = names.emplace_back(std::move(name));
        request.attributes.share = share;
        request.attributes.client = client_of(client);
        policy->push(request, Instant{});
    };
    for (std::uint8_t client = 0; client < 250; ++client) {
        push("unauthenticated", "p" + std::to_string(client), client);
    }
    for (int i = 0; i < 100; ++i) push("principal p7", "p7", 7);
    std::uint64_t of_one = 0;
    for (int i = 0; i < 100; ++i) {
        const Request* const request = policy->pop(Instant{}).request;
        if (request->attributes.share == "principal p7") ++of_one;
    }
    CHECK(of_one == 50);
}

TEST_CASE("lrs crr: the classes of those without a name of their own are called by their share",
          "[lrs]") {
    CHECK(crr_class_name({.principal = "ann", .share = "principal ann"}, Key::kPrincipal) ==
          "principal=ann");
    CHECK(crr_class_name({.principal = "ann", .share = "unauthenticated"}, Key::kPrincipal) ==
          "unauthenticated");
    CHECK(crr_class_name({.principal = "ann", .share = "peers"}, Key::kPrincipal) == "peers");
}

TEST_CASE("lrs crr: the class of a client has the name of its principal, too", "[lrs]") {
    RequestAttributes attributes{.principal = "ann", .share = "principal ann"};
    // A described request without a client.
    CHECK(crr_class_name(attributes, Key::kClient) == "principal=ann");
    attributes.client[0] = std::byte{0xab};
    const std::string client = "client=ab" + std::string(30, '0');
    CHECK(crr_class_name(attributes, Key::kClient) == "principal=ann " + client);
    attributes.share = "unauthenticated";
    CHECK(crr_class_name(attributes, Key::kClient) == "unauthenticated " + client);
}

TEST_CASE("lrs crr: a client with much gets no more than its turn", "[lrs]") {
    const auto policy = make_crr({.quantum = 4}, 1);
    RequestMaker requests(1);
    for (int i = 0; i < 1000; ++i) {
        NumberedRequest& request = requests.make();
        request.attributes.client = client_of(1);
        policy->push(request, Instant{});
    }
    NumberedRequest& late = requests.make();
    late.attributes.client = client_of(2);
    policy->push(late, Instant{});

    std::uint64_t before = 0;
    while (policy->pop(Instant{}).request != &late) ++before;

    CHECK(before == 4);
}
