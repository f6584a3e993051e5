// Goal: the count of the host with the most places is right after any sequence of takes and
// returns.

#include "fabric/host_shares.h"

#include <algorithm>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::fabric {

namespace {

struct NoHostData {};
using NumberedShares = HostShares<int, NoHostData>;

}  // namespace

TEST_CASE("fabric host shares: a host may take as many as are left", "[fabric]") {
    NumberedShares shares(8);

    for (int i = 0; i < 4; ++i) {
        REQUIRE(shares.may_take(shares.find(1)));
        shares.take(1);
    }

    REQUIRE_FALSE(shares.may_take(shares.find(1)));
    REQUIRE(shares.may_take(nullptr));
}

TEST_CASE("fabric host shares: a host that gave all back is unknown", "[fabric]") {
    NumberedShares shares(8);
    shares.take(1);

    shares.give_back(*shares.find(1));

    REQUIRE(shares.find(1) == nullptr);
    REQUIRE(shares.taken() == 0);
}

TEST_CASE("fabric host shares: the hosts with the most are known at any time", "[fabric]") {
    core::Random random(7);
    NumberedShares shares(64);
    for (int i = 0; i < 5'000; ++i) {
        const int key = static_cast<int>(random.below(12));
        NumberedShares::Host* const host = shares.find(key);
        const bool takes = random.below(2) == 0;
        if (takes && shares.may_take(host)) {
            shares.take(key);
        } else if (!takes && host != nullptr) {
            shares.give_back(*host);
        }

        std::size_t most = 0;
        std::size_t total = 0;
        shares.for_each([&](const NumberedShares::Host& each) {
            most = std::max(most, each.count());
            total += each.count();
        });
        bool all_right = total == shares.taken();
        shares.for_each([&](const NumberedShares::Host& each) {
            all_right = all_right && shares.has_most(each) == (each.count() == most);
        });
        REQUIRE(all_right);
    }
}

}  // namespace fopd::fabric
