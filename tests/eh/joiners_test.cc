// Goal: a root asks its requests to join at each message when the next one may be admitted: the
// answer is right after any changes, and comes as quickly when there are many of them. Method: a
// model that looks at each request; a root with as many invented names as a view has room for.

#include "eh/peers/joiners.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/random.h"
#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace joiners_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;

namespace {

std::string name_of(std::uint64_t index) {
    return "m" + std::to_string(index);
}

// The first time of those that replace a member, or of the others, one by one.
Instant first_of(const Joiners& joiners, bool replaces) {
    Instant first = kNever;
    for (const auto& [name, joiner] : joiners.all()) {
        if (joiner.replaces == replaces) first = std::min(first, joiner.not_before);
    }
    return first;
}

// Of the members that the bits name, with the incarnation 5 each.
ViewHandle view_of(std::uint64_t bits, ViewNumber number) {
    View view{.number = number, .epoch_low = 1, .epoch_high = 1000};
    for (std::uint64_t i = 0; i < 8; ++i) {
        if ((bits >> i & 1) == 0) continue;
        view.roster.push_back({.name = name_of(i), .incarnation = 5, .address = "a", .joined = 1});
    }
    return committed(std::move(view));
}

// The least time of some tries, in which a root handles a message that changes nothing.
Duration time_of_message(std::size_t requests) {
    const MemberOptions options;
    Member root = seated(options, kRoot, view_of_three(1));
    for (std::size_t i = 0; i < requests; ++i) {
        const Peer from{.name = name_of(i), .address = "x"};
        root.on_message(from, as_member(0, 6, Join{.address = from.address}), kNow);
    }
    root.on_time(kNow);
    (void)root.take_effects();
    const core::PosixClock clock;
    Duration least = Duration::max();
    for (int i = 0; i < 50; ++i) {
        const Instant begin = clock.now();
        root.on_message(kOther, as_member(1, 5, Ask{}), kNow);
        const Instant due = root.next_deadline();
        least = std::min(least, clock.now() - begin);
        REQUIRE(due > kNow);
        (void)root.take_effects();
    }
    return least;
}

}  // namespace

TEST_CASE("eh joiners: the first times are those of the requests, after any changes", "[eh]") {
    core::Random random(GENERATE(1U, 2U, 3U, 4U));
    Joiners joiners;
    ViewHandle view = view_of(random.next(), 1);
    for (int step = 0; step < 2000; ++step) {
        const std::string name = name_of(random.below(12));
        switch (random.below(5)) {
            case 0:
            case 1:
                joiners.put(name, {.incarnation = 1 + random.below(10),
                                   .not_before = kNow + Duration(random.between(0, 50)),
                                   .replaces = view->find(name).has_value()});
                break;
            case 2: joiners.erase(name); break;
            case 3:
                if (joiners.find(name) != nullptr) {
                    joiners.may_enter_now(name);
                    CHECK(joiners.find(name)->not_before == Instant{});
                }
                break;
            default:
                view = view_of(random.next(), view->number() + 1);
                joiners.follow(*view);
                for (const auto& [each, joiner] : joiners.all()) {
                    const auto position = view->find(each);
                    CHECK(joiner.replaces == position.has_value());
                    if (position) CHECK(joiner.incarnation > 5);
                }
        }
        REQUIRE(joiners.first_replacing() == first_of(joiners, true));
        REQUIRE(joiners.first_new() == first_of(joiners, false));
        REQUIRE(joiners.empty() == (joiners.size() == 0));
    }
}

TEST_CASE("eh joiners: a message costs a root as much with many requests as with a few", "[eh]") {
    const Duration few = time_of_message(8);
    const Duration many = time_of_message(kRosterMax - 3);
    INFO(few.count() << " ns and " << many.count() << " ns");
    CHECK(many < 50 * std::max(few, Duration(1us)));
}

}  // namespace joiners_test
