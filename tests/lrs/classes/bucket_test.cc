// Goal: a bucket gives burst + rate * t, never more than one above, and late comers lose nothing.
// Method: against a slow bucket in exact fractions; drawn limits, times and costs.

#include "lrs/classes/bucket.h"

#include <cmath>
#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::lrs;

namespace {

// Tokens as a fraction, filled up to the burst, in the plainest way.
class PlainBucket {
public:
    explicit PlainBucket(const Limit& limit)
        : rate_(static_cast<long double>(limit.per_second)),
          burst_(static_cast<long double>(limit.burst)),
          tokens_(burst_) {}

    // How many tokens there are beyond those that are needed; taken when there are enough.
    long double take(std::uint64_t amount, Instant now) {
        tokens_ = std::min(burst_, tokens_ + rate_ * in_seconds(now - filled_at_));
        filled_at_ = now;
        const auto cost = static_cast<long double>(amount);
        const long double beyond = tokens_ - std::min(cost, burst_);
        return beyond;
    }
    void spend(std::uint64_t amount) { tokens_ -= static_cast<long double>(amount); }

private:
    const long double rate_;
    const long double burst_;
    long double tokens_;
    Instant filled_at_{};
};

bool take_one(Meter& meter, const Pace& pace, Instant now, Instant since) {
    return meter.take(ticks_at(now), ticks_at(since), pace.cost_of(1), pace.depth());
}

}  // namespace

TEST_CASE("lrs bucket: a second of a rate costs a second, rounded up", "[lrs]") {
    for (const std::uint64_t rate :
         {1U, 3U, 7U, 1000U, 333'333U, 999'999U, 1'000'000U, 123'456'789U}) {
        const Limit limit{.per_second = rate, .burst = 1};
        CAPTURE(rate);
        const Pace bytes(limit, Pace::Unit::kBytes);
        CHECK(bytes.cost_of(rate) >= kTicksPerSecond);
        CHECK(bytes.cost_of(rate) <= kTicksPerSecond + kTicksPerSecond / 1'000'000'000);
        const Pace operations(limit, Pace::Unit::kOperations);
        CHECK(operations.cost_of(1) * static_cast<Ticks>(rate) >= kTicksPerSecond);
        CHECK((operations.cost_of(1) - 1) * static_cast<Ticks>(rate) < kTicksPerSecond);
        CHECK(operations.cost_of(7) == 7 * operations.cost_of(1));
    }
    CHECK(Pace({.per_second = 1, .burst = 1}, Pace::Unit::kBytes).cost_of(~std::uint64_t{0}) ==
          kTicksMax);
}

TEST_CASE("lrs bucket: the default burst is 10 ms of the rate, and at least one", "[lrs]") {
    CHECK(default_burst(1) == 1);
    CHECK(default_burst(199) == 1);
    CHECK(default_burst(200) == 2);
    CHECK(default_burst(1'000'000) == 10'000);
}

TEST_CASE("lrs bucket: at most the burst is available at once", "[lrs]") {
    for (const std::uint64_t burst : {1U, 2U, 64U, 10'000U}) {
        const Pace pace({.per_second = 333'333, .burst = burst}, Pace::Unit::kOperations);
        Meter meter;
        std::uint64_t count = 0;
        const Instant now{5s};
        while (take_one(meter, pace, now, now)) ++count;
        CHECK(count == burst);
        CHECK_FALSE(take_one(meter, pace, now + 3000ns, now));
        CHECK(take_one(meter, pace, now + 3001ns, now));
    }
}

TEST_CASE("lrs bucket: a waiting request that is late by less than the burst loses nothing",
          "[lrs]") {
    const Limit limit{.per_second = 10'000, .burst = 1};
    const Pace pace(limit, Pace::Unit::kOperations);
    core::Random random(7);
    Meter meter;
    Instant now{1s};
    Instant since = now;
    std::uint64_t count = 0;
    while (now < Instant{11s}) {
        if (take_one(meter, pace, now, since)) {
            ++count;
            since = now;
            continue;
        }
        const Instant ready = instant_at(meter.ready_at(pace.cost_of(1), pace.depth()));
        now = ready + Duration(random.between(0, 99'999));
    }
    CHECK(count >= 99'998);
    CHECK(count <= 100'002);
}

TEST_CASE("lrs bucket: a request that did not wait finds at most the burst", "[lrs]") {
    const Pace pace({.per_second = 1000, .burst = 1}, Pace::Unit::kOperations);
    Meter meter;
    for (int second = 1; second < 10; ++second) {
        const Instant now{std::chrono::seconds(second)};
        CHECK(take_one(meter, pace, now, now));
        CHECK_FALSE(take_one(meter, pace, now, now));
    }
}

TEST_CASE("lrs bucket: it gives the same answers as a plain model", "[lrs]") {
    core::Random random(11);
    for (int round = 0; round < 200; ++round) {
        const Limit limit{.per_second = 1 + random.below(std::uint64_t{1} << random.between(1, 30)),
                          .burst = 1 + random.below(std::uint64_t{1} << random.between(1, 20))};
        if (limit.burst > limit.per_second * 1000) continue;
        CAPTURE(limit.per_second, limit.burst);
        const Pace pace(limit, Pace::Unit::kBytes);
        Meter meter;
        PlainBucket plain(limit);
        Instant now{};
        const auto span_max = std::max<std::int64_t>(
            2, static_cast<std::int64_t>(3e9 * static_cast<double>(limit.burst) /
                                         static_cast<double>(limit.per_second)));
        // Each request costs a tick more at most, and what a full bucket cannot hold is forgotten.
        long double drift = 0;
        for (int step = 0; step < 300; ++step) {
            now += Duration(random.between(0, span_max) >> random.between(0, 8));
            const std::uint64_t amount = 1 + random.below(2 * limit.burst);
            const long double beyond = plain.take(amount, now);
            const bool taken =
                meter.take(ticks_at(now), ticks_at(now), pace.cost_of(amount), pace.depth());
            drift += static_cast<long double>(limit.per_second) * 2 / kTicksPerSecond +
                     static_cast<long double>(amount) * 1e-6L;
            if (taken) {
                REQUIRE(beyond > -1e-6L * static_cast<long double>(limit.burst) - 1e-6L);
                plain.spend(amount);
            } else {
                REQUIRE(beyond < drift + 1e-6L * static_cast<long double>(limit.burst) + 1e-6L);
            }
        }
    }
}

TEST_CASE("lrs bucket: operations and bytes both hold, and neither pays for the other", "[lrs]") {
    Limits limits;
    limits.operations = Limit{.per_second = 1000, .burst = 10};
    limits.bytes = Limit{.per_second = 1'000'000, .burst = 4096};
    const Paces paces(limits);
    const Charge charge{.operation = paces.operations.cost_of(1),
                        .bytes = paces.bytes.cost_of(2048)};
    Bucket bucket;
    const Ticks now = ticks_at(Instant{1s});
    CHECK(bucket.take(now, now, charge, paces));
    CHECK(bucket.take(now, now, charge, paces));
    for (int i = 0; i < 100; ++i) CHECK_FALSE(bucket.take(now, now, charge, paces));

    // The refused ones have cost no operations: eight of them are left.
    const Charge small{.operation = paces.operations.cost_of(1), .bytes = 0};
    for (int i = 0; i < 8; ++i) CHECK(bucket.take(now, now, small, paces));
    CHECK_FALSE(bucket.take(now, now, small, paces));
}

TEST_CASE("lrs bucket: a request above the burst goes when the bucket is full, into debt",
          "[lrs]") {
    const Pace pace({.per_second = 1000, .burst = 100}, Pace::Unit::kBytes);
    Meter meter;
    const Ticks start = ticks_at(Instant{1s});
    CHECK(meter.take(start, start, pace.cost_of(1100), pace.depth()));
    const Ticks ready = meter.ready_at(pace.cost_of(1100), pace.depth());
    CHECK(instant_at(ready) == Instant{1s} + 1100ms);
    CHECK(instant_at(meter.ready_at(pace.cost_of(1), pace.depth())) == Instant{1s} + 1001ms);
    CHECK_FALSE(
        meter.take(start + 1000 * kTicksPerSecond / 1000, start, pace.cost_of(1), pace.depth()));
}

TEST_CASE("lrs bucket: another limit gives and takes no tokens", "[lrs]") {
    const auto limits_of = [](std::uint64_t rate, std::uint64_t burst) {
        Limits limits;
        limits.operations = Limit{.per_second = rate, .burst = burst};
        return limits;
    };
    const auto left_after = [&](std::uint64_t taken, const Limits& before, const Limits& after) {
        const Ticks now = ticks_at(Instant{100s});
        const Paces old_paces(before);
        Bucket old;
        const Charge one{.operation = old_paces.operations.cost_of(1), .bytes = 0};
        for (std::uint64_t i = 0; i < taken; ++i) REQUIRE(old.take(now, now, one, old_paces));
        const Paces paces(after);
        Bucket next;
        next.start(carried_over(old, before, after, now));
        std::uint64_t left = 0;
        const Charge other{.operation = paces.operations.cost_of(1), .bytes = 0};
        while (next.take(now, now, other, paces)) ++left;
        return left;
    };

    CHECK(left_after(0, limits_of(100, 50), limits_of(10, 50)) == 50);
    CHECK(left_after(20, limits_of(100, 50), limits_of(1'000'000, 10'000)) == 30);
    CHECK(left_after(20, limits_of(1'000'000, 10'000), limits_of(1, 1)) == 1);
    CHECK(left_after(50, limits_of(100, 50), limits_of(100, 80)) == 0);
    CHECK(left_after(5, Limits{}, limits_of(100, 80)) == 80);
}

TEST_CASE("lrs bucket: another share makes no tokens, and forgives no debt", "[lrs]") {
    core::Random random(9);
    const Pace pace({.per_second = 1000, .burst = 50}, Pace::Unit::kOperations);
    for (int i = 0; i < 2000; ++i) {
        const Ticks now = ticks_at(Instant{1000s});
        const auto from = static_cast<Share>(1 + random.below(kWholeShare));
        const auto to = static_cast<Share>(1 + random.below(kWholeShare));
        Meter meter;
        // From full, or fuller, to empty and to debts.
        const Ticks paid_at =
            now - pace.depth() +
            static_cast<Ticks>(random.below(4 * static_cast<std::uint64_t>(pace.depth())));
        meter.set_paid_at(paid_at);
        meter.change_share(from, to, now, pace.depth());
        const auto tokens = [&](Ticks paid, Share share) {
            const Ticks left = now + pace.depth() - std::max(paid, now);
            return static_cast<long double>(left) * share;
        };
        const long double before = tokens(paid_at, from);
        const long double after = tokens(meter.paid_at(), to);
        CAPTURE(from, to, before, after);
        CHECK(after <= before + to);
        // All that the smaller share has room for remains, but for what shrank with it.
        if (to >= from || before < 0) CHECK(after >= before - 2.0L * to);
    }
}

TEST_CASE("lrs bucket: without a share it grows no debt that no share could pay", "[lrs]") {
    const Pace pace({.per_second = 1, .burst = 1}, Pace::Unit::kOperations);
    const Ticks now = ticks_at(Instant{1000s});
    Meter meter;
    meter.set_paid_at(now + 2 * pace.depth());
    meter.change_share(kWholeShare, 0, now, pace.depth());
    CHECK(meter.paid_at() > now + pace.depth());
    // Time does not pay it.
    const Ticks later = now + 3600 * kTicksPerSecond;
    meter.change_share(0, kWholeShare, later, pace.depth());
    CHECK(meter.paid_at() - later > 2 * pace.depth() - pace.depth() / 100);
    CHECK(meter.paid_at() - later <= 2 * pace.depth());
}

TEST_CASE("lrs bucket: a share makes a request cost more", "[lrs]") {
    CHECK(cost_by(1000, kWholeShare) == 1000);
    CHECK(cost_by(1000, kWholeShare / 2) >= 2000);
    CHECK(cost_by(1000, kWholeShare / 2) <= 2001);
    CHECK(cost_by(kTicksMax, 1) == kTicksMax);
}

TEST_CASE("lrs bucket: shares are one number, and one who was late sees that", "[lrs]") {
    ShareCell cell;
    EpochShares seen = cell.get();
    CHECK(seen == EpochShares{});
    const EpochShares first{.tag = epoch_tag(7), .before = 5, .now = kWholeShare};
    CHECK(cell.replace(seen, first));
    CHECK(cell.get() == first);
    CHECK(first.usable() == 5);
    CHECK_FALSE(cell.replace(seen, {.tag = 1}));
    CHECK(seen == first);
    for (eh::EpochNumber epoch = 1; epoch < 100'000; ++epoch)
        REQUIRE(epoch_tag(epoch) != epoch_tag(epoch + 1));
}
