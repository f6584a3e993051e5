#include "fabric/session/credits.h"

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::fabric {

TEST_CASE("fabric credits: a peer that uses what it has is given more, up to the limit",
          "[fabric]") {
    CreditPool pool(100);
    CreditGrant grant(pool, 2, 16);
    std::uint32_t peer = 2;

    for (int round = 0; round < 10; ++round) {
        for (; peer > 0; --peer) {
            REQUIRE(grant.use());
            grant.done();
            grant.grow();
        }
        peer += grant.next_grant();
    }

    REQUIRE(peer == 16);
    REQUIRE(pool.free() == 100 - 14);
}

TEST_CASE("fabric credits: who sends without a credit is found out", "[fabric]") {
    CreditPool pool(0);
    CreditGrant grant(pool, 1, 16);

    REQUIRE(grant.use());
    REQUIRE_FALSE(grant.use());
}

TEST_CASE("fabric credits: a reply returns the credit without saying so", "[fabric]") {
    CreditPool pool(0);
    CreditGrant grant(pool, 2, 2);
    REQUIRE(grant.use());
    REQUIRE(grant.use());

    grant.done_and_known();

    REQUIRE(grant.held() == 1);
    REQUIRE(grant.next_grant() == 0);
    REQUIRE(grant.use());
    REQUIRE_FALSE(grant.use());
}

TEST_CASE("fabric credits: an idle peer gives up what is above the floor, and no more",
          "[fabric]") {
    CreditPool pool(30);
    CreditGrant grant(pool, 2, 32);
    for (int i = 0; i < 2; ++i) {
        REQUIRE(grant.use());
        grant.done();
        grant.grow();
    }
    REQUIRE(grant.next_grant() == 4);

    REQUIRE_FALSE(grant.given_up(5));
    REQUIRE(grant.excess() == 2);
    REQUIRE(grant.given_up(2));

    REQUIRE(pool.free() == 30);
    REQUIRE(grant.held() == 2);
}

TEST_CASE("fabric credits: what a peer gives up beyond that is owed to it again", "[fabric]") {
    CreditPool pool(30);
    CreditGrant grant(pool, 2, 32);
    for (int i = 0; i < 2; ++i) {
        REQUIRE(grant.use());
        grant.done();
        grant.grow();
    }
    REQUIRE(grant.next_grant() == 4);

    REQUIRE(grant.given_up(3));

    REQUIRE(grant.held() == 1);
    REQUIRE(pool.free() == 30);
    REQUIRE(grant.next_grant() == 1);
}

TEST_CASE("fabric credits: both sides' books agree whatever happens", "[fabric]") {
    core::Random random(11);
    CreditPool pool(40);
    {
        CreditGrant grant(pool, 2, 32);
        std::uint32_t peer = 2;
        std::uint32_t running = 0;
        for (int step = 0; step < 100'000; ++step) {
            switch (random.below(5)) {
                case 0:
                    if (peer == 0) break;
                    --peer;
                    ++running;
                    REQUIRE(grant.use());
                    if (random.below(4) > 0) grant.grow();
                    break;
                case 1:
                    if (running == 0) break;
                    --running;
                    grant.done();
                    break;
                case 2:
                    if (running == 0) break;
                    --running;
                    ++peer;
                    grant.done_and_known();
                    break;
                case 3: peer += grant.next_grant(); break;
                default:
                    if (const std::uint16_t excess = grant.excess(); random.below(50) == 0) {
                        REQUIRE(grant.given_up(excess));
                        peer -= excess;
                    }
            }
            REQUIRE(grant.held() == peer);
            REQUIRE(grant.used() == running);
            REQUIRE(grant.target() >= 2);
            REQUIRE(grant.target() <= 32);
            REQUIRE(pool.free() == 40U - (grant.target() - 2U));
        }
    }
    REQUIRE(pool.free() == 40);
}

}  // namespace fopd::fabric
