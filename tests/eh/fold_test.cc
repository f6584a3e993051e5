// Goal: the localities of a node take part in epochs as one: each call is answered once, all that
// are in an epoch get the same data, and one that hangs or leaves stops no other.
// Method: localities in the simulated world, in the epochs of a node without peers.

#include "eh/fold.h"

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/virtual_world.h"
#include "eh/local.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::eh;

namespace {

using Sum = std::uint64_t;

Sum sum_of(std::span<const std::byte> data) {
    Sum sum = 0;
    if (data.size() == sizeof(sum)) std::memcpy(&sum, data.data(), sizeof(sum));
    return sum;
}

void add(std::span<std::byte> into, std::span<const std::byte> one,
         std::span<const std::byte> other) {
    const Sum sum = sum_of(one) + sum_of(other);
    std::memcpy(into.data(), &sum, std::min(into.size(), sizeof(sum)));
}

constexpr EpochRules kRules{.timeout = 4s, .combine = &add, .granule = sizeof(Sum)};

// What each epoch began with, as the first of its participants was told.
using Begun = std::map<EpochNumber, Sum>;

class Locality final : Participant, core::Timer {
public:
    Locality(core::VirtualWorld& world, core::Reactor& reactor, LocalityFold& fold, Begun& begun)
        : Timer(&on_time), world_(world), reactor_(reactor), end_(reactor, fold), begun_(begun) {}

    Result<void> ask(Sum data) {
        const auto asked = end_.next_epoch(epoch_, std::as_bytes(std::span(&data, 1)), *this);
        if (asked) ++unanswered_;
        return asked;
    }
    void leave() {
        disarm();
        end_.last_epoch(epoch_);
        epoch_ = kFirstEpoch;
    }
    void close() {
        leave();
        REQUIRE(world_.run(reactor_, end_.close()));
    }
    // Is ready again so long after each epoch.
    void go_on(Duration after_epoch, Sum data) {
        after_epoch_ = after_epoch;
        next_ = data;
    }

    EpochNumber epoch() const { return epoch_; }
    std::uint64_t unanswered() const { return unanswered_; }
    Errc refused(EpochNumber current, std::span<const std::byte> data) {
        const auto asked = end_.next_epoch(current, data, *this);
        REQUIRE_FALSE(asked.has_value());
        return asked.error().code;
    }

    std::vector<EpochNumber> epochs;
    std::vector<Errc> errors;

private:
    static void on_time(Timer& timer) {
        auto& self = static_cast<Locality&>(timer);
        REQUIRE(self.ask(self.next_));
    }
    void on_epoch(Result<EpochNumber> epoch, std::span<const std::byte> data) override {
        REQUIRE(unanswered_ > 0);
        --unanswered_;
        if (!epoch) {
            errors.push_back(epoch.error().code);
            epoch_ = kFirstEpoch;
            return;
        }
        REQUIRE((epochs.empty() || *epoch > epochs.back()));
        epochs.push_back(*epoch);
        epoch_ = *epoch;
        REQUIRE(begun_.try_emplace(*epoch, sum_of(data)).first->second == sum_of(data));
        if (!after_epoch_) return;
        if (*after_epoch_ == Duration{0}) {
            REQUIRE(ask(next_));
        } else {
            reactor_.arm(*this, after(reactor_.now(), *after_epoch_));
        }
    }

    core::VirtualWorld& world_;
    core::Reactor& reactor_;
    LocalityFold::End end_;
    Begun& begun_;
    EpochNumber epoch_ = kFirstEpoch;
    std::uint64_t unanswered_ = 0;
    std::optional<Duration> after_epoch_;
    Sum next_ = 0;
};

class FoldedNode {
public:
    explicit FoldedNode(std::uint32_t count, std::uint64_t seed = 1)
        : world(seed), handler(kRules) {
        for (std::uint32_t i = 0; i < count; ++i) reactors_.push_back(world.make_reactor());
        fold_.emplace(*reactors_.front(), handler);
        for (const auto& each : reactors_) {
            localities_.push_back(std::make_unique<Locality>(world, *each, *fold_, begun));
        }
    }

    Locality& operator[](std::size_t index) { return *localities_[index]; }
    std::size_t count() const { return localities_.size(); }
    void close() {
        for (const auto& each : localities_) each->close();
    }

    core::VirtualWorld world;
    LocalEpochHandler handler;
    Begun begun;

private:
    std::vector<std::unique_ptr<core::Reactor>> reactors_;
    std::optional<LocalityFold> fold_;
    std::vector<std::unique_ptr<Locality>> localities_;
};

}  // namespace

TEST_CASE("eh fold: an epoch begins when all localities are ready, with their combined data",
          "[eh]") {
    FoldedNode node(3);
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(node[i].ask(1));
    node.world.run_for(10s);
    // The first one that asked was alone.
    const EpochNumber first = node[2].epoch();
    for (std::size_t i = 0; i < 3; ++i) {
        if (node[i].epoch() != first) REQUIRE(node[i].ask(1));
    }
    node.world.run_for(10s);

    for (std::size_t i = 0; i < 3; ++i) {
        if (node[i].epoch() == node.begun.rbegin()->first) continue;
        REQUIRE(node[i].ask(1));
    }
    node.world.run_for(10s);
    for (std::size_t i = 0; i < 3; ++i) {
        const auto asked = node[i].ask(Sum{1} << (8 * i));
        REQUIRE(asked);
        // One that waits cannot ask.
        CHECK(node[i].ask(1).error().code == Errc::kBusy);
    }
    node.world.run_for(1s);
    for (std::size_t i = 0; i < 3; ++i) CHECK(node[i].epoch() == node.begun.rbegin()->first);
    CHECK(node.begun.rbegin()->second == 0x010101);
    node.close();
}

TEST_CASE("eh fold: calls that cannot be are refused at once", "[eh]") {
    FoldedNode node(1);
    std::vector<std::byte> data(kEpochBytesMax + 1);
    REQUIRE(node[0].ask(1));
    node.world.run_for(1s);
    REQUIRE(node[0].epoch() == 1);
    CHECK(node[0].refused(7, {}) == Errc::kInvalid);
    CHECK(node[0].refused(1, data) == Errc::kInvalid);
    node.close();
}

TEST_CASE("eh fold: localities that are ready again at once go through epochs together", "[eh]") {
    FoldedNode node(4);
    for (std::size_t i = 0; i < 4; ++i) {
        node[i].go_on(Duration{0}, 1);
        REQUIRE(node[i].ask(1));
    }
    for (int steps = 0; steps < 20'000; ++steps) node.world.step(after(node.world.now(), 1s));
    CHECK(node.begun.size() > 100);
    std::size_t full = 0;
    for (const auto& [epoch, sum] : node.begun) full += sum == 4 ? 1 : 0;
    CHECK(full + 4 > node.begun.size());
    node.close();
}

TEST_CASE("eh fold: one that is not ready in time is left out, and comes back", "[eh]") {
    FoldedNode node(2);
    for (std::size_t i = 0; i < 2; ++i) {
        node[i].go_on(2s, Sum{1} << i);
        REQUIRE(node[i].ask(Sum{1} << i));
    }
    node.world.run_for(20s);
    REQUIRE(node.begun.rbegin()->second == 3);
    const EpochNumber last = node[1].epoch();
    // It hangs after its epoch has begun.
    node[1].go_on(60s, 2);
    node.world.run_for(30s);
    CHECK(node[0].epoch() > last + 5);
    CHECK(node[1].epoch() <= last + 1);
    CHECK(node.begun.rbegin()->second == 1);
    // The others waited for it no longer than agreed, so the node was ready in time.
    node[1].go_on(2s, 2);
    node.world.run_for(60s);
    CHECK(node[1].epoch() == node[0].epoch());
    CHECK(node.begun.rbegin()->second == 3);
    node.close();
}

TEST_CASE("eh fold: who leaves is told so at once, and stops no other", "[eh]") {
    FoldedNode node(3);
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(node[i].ask(1));
    node[1].leave();
    CHECK(node[1].errors == std::vector{Errc::kCancelled});
    CHECK(node[1].unanswered() == 0);
    // It may return before the fold has heard of it.
    REQUIRE(node[1].ask(5));
    node[1].leave();
    REQUIRE(node[1].ask(7));
    node.world.run_for(20s);
    CHECK(node[1].unanswered() == 0);
    CHECK(node[1].errors.size() == 2);
    CHECK(node[1].epochs.size() == 1);
    node[0].leave();
    node[2].leave();
    REQUIRE(node[1].ask(9));
    node.world.run_for(10ms);
    CHECK(node.begun.rbegin()->second == 9);
    node.close();
    // Numbers never come again.
    const EpochNumber last = node.begun.rbegin()->first;
    REQUIRE(node[0].ask(1));
    node.world.run_for(1s);
    CHECK(node[0].epoch() > last);
    node.close();
}

TEST_CASE("eh fold: whatever localities do, each call is answered, and all get the same", "[eh]") {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        FoldedNode node(static_cast<std::uint32_t>(1 + random.below(5)), seed);
        for (int i = 0; i < 200; ++i) {
            Locality& one = node[random.below(node.count())];
            switch (random.below(4)) {
                case 0: one.leave(); break;
                case 1:
                    node.world.run_for(Duration{random.between(0, Duration(3s).count())});
                    break;
                default:
                    if (one.unanswered() == 0) REQUIRE(one.ask(random.below(1000)));
            }
            for (std::uint64_t steps = random.below(4); steps > 0; --steps) {
                node.world.step(after(node.world.now(), 1s));
            }
        }
        node.world.run_for(20s);
        for (std::size_t i = 0; i < node.count(); ++i) CHECK(node[i].unanswered() == 0);
        node.close();
    }
}
