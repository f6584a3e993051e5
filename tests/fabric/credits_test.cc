#include "fabric/session/credits.h"

#include <deque>
#include <string>

#include "core/random.h"
#include "fabric/session/credit_loans.h"
#include "tests/catch.h"

namespace fopd::fabric {

TEST_CASE("fabric credits: a peer that uses what it has is given more, up to the limit",
          "[fabric]") {
    CreditPool pool(100);
    CreditPool::Share share;
    CreditGrant grant(pool, 2, 16);
    grant.belongs_to(share);
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

TEST_CASE("fabric credits: a message without a credit is detected", "[fabric]") {
    CreditPool pool(0);
    CreditPool::Share share;
    CreditGrant grant(pool, 1, 16);
    grant.belongs_to(share);

    REQUIRE(grant.use());
    REQUIRE_FALSE(grant.use());
}

TEST_CASE("fabric credits: a reply returns the credit without saying so", "[fabric]") {
    CreditPool pool(0);
    CreditPool::Share share;
    CreditGrant grant(pool, 2, 2);
    grant.belongs_to(share);
    REQUIRE(grant.use());
    REQUIRE(grant.use());

    grant.done_and_known();

    REQUIRE(grant.held() == 1);
    REQUIRE(grant.next_grant() == 0);
    REQUIRE(grant.use());
    REQUIRE_FALSE(grant.use());
}

TEST_CASE("fabric credits: an idle peer gives up the credits above the floor, and no more",
          "[fabric]") {
    CreditPool pool(30);
    CreditPool::Share share;
    CreditGrant grant(pool, 2, 32);
    grant.belongs_to(share);
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
    CreditPool::Share share;
    CreditGrant grant(pool, 2, 32);
    grant.belongs_to(share);
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
    CreditPool::Share share;
    {
        CreditGrant grant(pool, 2, 32);
        grant.belongs_to(share);
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

TEST_CASE("fabric credits: however many sessions one principal has, others find some", "[fabric]") {
    CreditPool pool(1023);
    std::deque<CreditPool::Share> shares;
    std::deque<CreditGrant> grants;
    const auto add_principal = [&] { shares.emplace_back(); };
    // A session that uses all that it is given. Returns what it has in the end.
    const auto add_session = [&] {
        CreditGrant& grant = grants.emplace_back(pool, 3, 32);
        grant.belongs_to(shares.back());
        for (int i = 0; i < 50; ++i) {
            grant.next_grant();
            if (!grant.use()) FAIL("no credit");
            grant.done();
            grant.grow();
        }
        return grant.target();
    };

    add_principal();
    for (int i = 0; i < 10'000; ++i) add_session();
    REQUIRE(shares.back().taken > 1023 / 2);
    add_principal();
    REQUIRE(add_session() == 32);
    for (int i = 0; i < 10'000; ++i) add_session();
    add_principal();
    REQUIRE(add_session() > 16);
    for (int i = 0; i < 10'000; ++i) REQUIRE(add_session() >= 3);

    grants.clear();
    REQUIRE(pool.free() == 1023);
    for (const CreditPool::Share& each : shares) REQUIRE(each.taken == 0);
}

TEST_CASE("fabric credits: for what waits there are loans, which an idle peer gives up first",
          "[fabric]") {
    CreditPool pool(0);
    CreditPool::Share share;
    CreditGrant grant(pool, 2, 2);
    grant.belongs_to(share);
    for (int i = 0; i < 2; ++i) {
        REQUIRE(grant.use());
        grant.began_to_wait();
        REQUIRE(grant.lacks_loan());
        grant.lend();
        REQUIRE_FALSE(grant.lacks_loan());
    }
    REQUIRE(grant.urgent());
    REQUIRE(grant.next_grant() == 2);
    REQUIRE(grant.held() == 2);

    // Those that waited run: their loans serve the next that wait.
    grant.ended_waiting();
    grant.ended_waiting();
    REQUIRE(grant.spare_loans() == 2);
    REQUIRE(grant.use());
    grant.began_to_wait();
    REQUIRE_FALSE(grant.lacks_loan());
    REQUIRE(grant.spare_loans() == 1);

    grant.done_and_known();
    grant.done_and_known();
    REQUIRE(grant.held() == 3);
    REQUIRE(grant.excess() == 1);
    grant.ended_waiting();
    grant.done_and_known();
    REQUIRE(grant.excess() == 2);
    REQUIRE(grant.given_up(2));
    REQUIRE(grant.lent() == 0);
    REQUIRE(grant.held() == 2);
    REQUIRE(grant.next_grant() == 0);
}

TEST_CASE("fabric credits: loans are bounded, and never all of one principal or one session",
          "[fabric]") {
    CreditLoans loans({.total = 1024, .of_session = 64, .bytes = 0});
    const auto take_all = [&loans](const std::string& principal) {
        std::uint32_t has = 0;
        while (loans.take(principal, has, 0)) ++has;
        return has;
    };
    REQUIRE(take_all("one") == 64);
    std::uint32_t of_one = 64;
    for (int i = 0; i < 1000; ++i) of_one += take_all("one");
    REQUIRE(of_one <= 1024 / 2);
    REQUIRE(take_all("two") == 64);
    for (int i = 0; i < 1000; ++i) {
        const std::string name = "principal " + std::to_string(i);
        take_all(name);
    }
    REQUIRE(loans.taken() < 1024);

    const std::uint32_t before = loans.taken();
    loans.give_back("one", of_one);
    REQUIRE(loans.taken() == before - of_one);
    REQUIRE(take_all("one") > 0);
}

TEST_CASE("fabric credits: what comes on loans brings bounded bytes, never all of one principal",
          "[fabric]") {
    CreditLoans loans({.total = 0, .of_session = 0, .bytes = 1000});
    REQUIRE(loans.take_bytes("one", 0));
    REQUIRE_FALSE(loans.take_bytes("one", 1001));
    REQUIRE(loans.take_bytes("one", 300));
    REQUIRE(loans.take_bytes("one", 200));
    REQUIRE_FALSE(loans.take_bytes("one", 1));
    REQUIRE(loans.take_bytes("two", 250));
    REQUIRE_FALSE(loans.take_bytes("two", 1));
    REQUIRE(loans.take_bytes("three", 250));
    REQUIRE_FALSE(loans.take_bytes("four", 1));
    REQUIRE(loans.taken_bytes() == 1000);

    loans.give_bytes_back("one", 500);
    loans.give_bytes_back("two", 250);
    loans.give_bytes_back("three", 250);
    REQUIRE(loans.taken_bytes() == 0);
    REQUIRE(loans.take_bytes("four", 1000));

    CreditLoans both({.total = 100, .of_session = 100, .bytes = 1000});
    std::uint32_t has = 0;
    while (both.take("one", has, 100)) ++has;
    REQUIRE(has == 5);
    REQUIRE(both.take("one", has, 0));
}

}  // namespace fopd::fabric
