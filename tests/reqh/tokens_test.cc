#include "reqh/tokens.h"

#include "tests/reqh/fake_fop.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

TEST_CASE("reqh tokens: a token is checked once", "[reqh]") {
    FakeVerdicts verdicts;
    TokenCache cache(verdicts);
    const Bytes token = bytes_of("read");
    for (int i = 0; i < 3; ++i) {
        const auto grant = cache.check(token, Instant{});
        REQUIRE(grant.has_value());
        CHECK((*grant)->rights == fop::kRead);
    }
    CHECK(verdicts.checks == 1);
}

TEST_CASE("reqh tokens: one that has expired is checked again", "[reqh]") {
    FakeVerdicts verdicts;
    TokenCache cache(verdicts);
    const Bytes token = bytes_of("for a second");
    REQUIRE(cache.check(token, Instant{}).has_value());
    REQUIRE(cache.check(token, Instant(1s - 1ns)).has_value());
    CHECK(verdicts.checks == 1);

    REQUIRE(cache.check(token, Instant(1s)).has_value());

    CHECK(verdicts.checks == 2);
}

TEST_CASE("reqh tokens: a new version makes old verdicts void", "[reqh]") {
    FakeVerdicts verdicts;
    TokenCache cache(verdicts);
    const Bytes token = bytes_of("read");
    REQUIRE(cache.check(token, Instant{}).has_value());
    ++verdicts.version_now;

    REQUIRE(cache.check(token, Instant{}).has_value());

    CHECK(verdicts.checks == 2);
}

TEST_CASE("reqh tokens: an invalid token is refused, and displaces none", "[reqh]") {
    FakeVerdicts verdicts;
    TokenCache cache(verdicts);
    const Bytes good = bytes_of("read");
    REQUIRE(cache.check(good, Instant{}).has_value());
    for (int i = 0; i < 2000; ++i) {
        const auto refused = cache.check(bytes_of("bad " + std::to_string(i)), Instant{});
        REQUIRE_FALSE(refused.has_value());
        REQUIRE(refused.error().code == Errc::kDenied);
    }
    const std::uint64_t checks = verdicts.checks;

    REQUIRE(cache.check(good, Instant{}).has_value());

    CHECK(verdicts.checks == checks);
}

TEST_CASE("reqh tokens: more tokens than places are all told apart", "[reqh]") {
    FakeVerdicts verdicts;
    TokenCache cache(verdicts);
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 1000; ++i) {
            REQUIRE(cache.check(bytes_of("any " + std::to_string(i)), Instant{}).has_value());
        }
        const auto read = cache.check(bytes_of("read"), Instant{});
        REQUIRE(read.has_value());
        REQUIRE((*read)->rights == fop::kRead);
    }
}
