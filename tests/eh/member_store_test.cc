// Goal: what a member does with what it reads in the view store, when somebody has changed that by
// hand, or when the store is busy or fails at the wrong moment. Method: a single member, whose
// store answers what the test says.

#include <utility>
#include <variant>
#include <vector>

#include "tests/catch.h"
#include "tests/eh/member_stage.h"

namespace member_store_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using namespace fopd::eh::peers::testing;

TEST_CASE("eh member: in a store without members a daemon looks for those that run", "[eh]") {
    MemberOptions options;
    options.others = {kRoot, kOther, kThird};
    // All members have left; or somebody has emptied the view, or deleted it.
    const bool is_empty = GENERATE(true, false);
    const bool has_member = GENERATE(true, false);
    CAPTURE(is_empty, has_member);
    ViewHandle stored;
    if (is_empty) stored = committed({.number = 7, .epoch_low = 1, .epoch_high = 1000});
    Member member = joining(options, kRoot);
    (void)member.take_effects();
    member.on_view_read(stored, kNow);
    const Seen asked(member);
    CHECK(asked.find<SwapStore>() == nullptr);
    CHECK(asked.sent<Join>(kOther.name) != nullptr);
    CHECK(asked.sent<Join>(kThird.name) != nullptr);

    // The root has the request to join, or the other is in no view either.
    member.on_message(kOther, as_member(0, 5, has_member ? Body(Beat{}) : Body(Redirect{})),
                      kNow + 1ms);
    const Instant later = kNow + options.grace;
    member.on_time(later);
    if (Seen(member).find<ReadStore>() != nullptr) member.on_view_read(stored, later);
    const Seen seen(member);
    CHECK((seen.find<SwapStore>() == nullptr) == has_member);
    if (seen.find<SwapStore>() != nullptr)
        CHECK(seen.find<SwapStore>()->expected == (is_empty ? 7U : 0U));
}

}  // namespace member_store_test
