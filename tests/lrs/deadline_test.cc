// Goal: nothing waits for longer than it may while something else runs, and the order is the other
// policy's as long as nothing has waited for too long.

#include "lrs/deadline.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/random.h"
#include "lrs/crr.h"
#include "lrs/fifo.h"
#include "tests/catch.h"
#include "tests/lrs/requests.h"
#include "tests/lrs/turns_model.h"

using namespace fopd;
using namespace fopd::lrs;
using namespace fopd::lrs::testing;

namespace {

constexpr Instant kOpening = Instant{} + 1h;
constexpr Duration kWaitMax = 20ms;

// Gives nothing, and counts what it is told.
class Closed final : public Policy {
public:
    explicit Closed(Instant again = kNever) : again_(again) {}

    void push(Request& request, Instant /*now*/) override { waiting_.push_back(request); }
    Next pop(Instant /*now*/) override { return {.again = again_}; }
    void remove(Request& request) override { request.PolicyPlace::unlink(); }
    void complete(Request& /*request*/, Instant /*now*/) override { FAIL("it gave out none"); }

private:
    core::IntrusiveList<PolicyPlace> waiting_;
    const Instant again_;
};

NumberedRequest& bring_at(Policy& policy, RequestMaker& requests, Instant now) {
    NumberedRequest& request = requests.make();
    request.attributes.arrived_at = now;
    policy.push(request, now);
    return request;
}

QueueKey key_of(const Request& request) {
    return {.low = static_cast<std::uint64_t>(request.attributes.client[0])};
}

}  // namespace

TEST_CASE("lrs deadline: a throttled request is delivered at its deadline", "[lrs]") {
    const auto policy = make_deadline(std::make_unique<Closed>(), kWaitMax);
    RequestMaker requests(1);
    NumberedRequest& first = bring_at(*policy, requests, kOpening);
    NumberedRequest& second = bring_at(*policy, requests, kOpening + 5ms);

    const Policy::Next early = policy->pop(kOpening + 6ms);
    CHECK(early.request == nullptr);
    CHECK(early.again == kOpening + kWaitMax);
    CHECK(policy->pop(kOpening + kWaitMax).request == &first);
    CHECK(policy->pop(kOpening + kWaitMax).again == kOpening + 5ms + kWaitMax);
    CHECK(policy->pop(kOpening + 1h).request == &second);
    // The other policy hears nothing of what it did not give out.
    policy->complete(first, kOpening + 1h);
    policy->complete(second, kOpening + 1h);
    CHECK(policy->pop(kOpening + 2h).request == nullptr);
}

TEST_CASE("lrs deadline: it asks again when the other policy wants to be asked", "[lrs]") {
    const auto policy = make_deadline(std::make_unique<Closed>(kOpening + 3ms), kWaitMax);
    RequestMaker requests(1);
    bring_at(*policy, requests, kOpening);

    CHECK(policy->pop(kOpening).again == kOpening + 3ms);
}

TEST_CASE("lrs deadline: it delivers what a plain model delivers", "[lrs]") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        const auto policy = make_deadline(make_crr({.quantum = 3}, seed), kWaitMax);
        TurnsModel others(3, nullptr);
        RequestMaker requests(seed);
        std::vector<NumberedRequest*> waiting;  // The oldest first.
        std::map<ClientId, std::uint64_t> last;
        Instant now = kOpening;
        for (int step = 0; step < 2000; ++step) {
            now += Duration(random.between(0, 2'000'000));
            const std::uint64_t what = random.below(10);
            if (what < 5) {
                NumberedRequest& request = bring_at(*policy, requests, now);
                others.push(request, key_of(request));
                waiting.push_back(&request);
            } else if (what < 9) {
                const Request* expected = nullptr;
                if (!waiting.empty() && waiting.front()->arrived_at() + kWaitMax <= now) {
                    expected = waiting.front();
                    others.remove(*waiting.front());
                } else {
                    expected = others.pop();
                }
                Request* const popped = policy->pop(now).request;
                REQUIRE(popped == expected);
                if (popped == nullptr) continue;
                policy->complete(*popped, now);
                auto* const request = static_cast<NumberedRequest*>(popped);
                std::erase(waiting, request);
                // As the other one keeps each client's order, so does it.
                const auto [seen, is_new] =
                    last.try_emplace(request->attributes.client, request->number);
                REQUIRE((is_new || seen->second < request->number));
                seen->second = request->number;
            } else if (!waiting.empty()) {
                NumberedRequest* const request = waiting[random.below(waiting.size())];
                policy->remove(*request);
                others.remove(*request);
                std::erase(waiting, request);
            }
        }
    }
}
