#include "objects/range_locks.h"

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/virtual_world.h"
#include "tests/catch.h"
#include "tests/replay.h"

namespace fopd::objects {

namespace {

constexpr store::Fid kOne{.high = 1, .low = 1};
constexpr store::Fid kOther{.high = 1, .low = 2};

// Those who want locks, each a coroutine that notes when it has its own.
class Locking : fopd::testing::Replay {
public:
    Locking() : Replay(5), world(5), reactor(world.make_reactor()), locks(*reactor) {}
    ~Locking() {
        for (Wish& wish : wishes) wish.lock.release();
        reactor->drop_coroutines();
    }

    struct Wish {
        std::size_t number = 0;
        RangeLock lock;
        LockRequest request;
        core::WaitOptions wait;
        std::optional<Result<void>> result;
    };

    Wish& want(store::BlockRange range, LockMode mode, store::Fid fid = kOne,
               core::WaitOptions wait = {}) {
        Wish& wish = wishes.emplace_back();
        wish.number = wishes.size() - 1;
        wish.request = {.fid = fid, .range = range, .mode = mode};
        wish.wait = wait;
        reactor->spawn(gate, take(&wish));
        settle();
        return wish;
    }
    void let_go(Wish& wish) {
        wish.lock.release();
        settle();
    }
    void settle() { world.run_for(0ns); }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    core::Gate gate;
    RangeLocks locks;
    std::deque<Wish> wishes;
    std::vector<std::size_t> granted;  // Numbers of wishes, in the order in which they had locks.

private:
    Task<void> take(Wish* wish) {
        wish->result = co_await locks.acquire(wish->lock, wish->request, wish->wait);
        if (wish->lock.held()) granted.push_back(wish->number);
    }
};

constexpr store::BlockRange kFirstTen{.first = 0, .count = 10};
constexpr store::BlockRange kNextTen{.first = 10, .count = 10};
constexpr store::BlockRange kMiddle{.first = 5, .count = 10};

}  // namespace

TEST_CASE("objects range locks: readers share, writers do not", "[objects]") {
    Locking locking;
    auto& reader = locking.want(kFirstTen, LockMode::kShared);
    auto& another = locking.want(kMiddle, LockMode::kShared);
    auto& writer = locking.want(kMiddle, LockMode::kExclusive);

    CHECK(reader.lock.held());
    CHECK(another.lock.held());
    CHECK_FALSE(writer.lock.held());
    locking.let_go(reader);
    CHECK_FALSE(writer.lock.held());
    locking.let_go(another);
    CHECK(writer.lock.held());
}

TEST_CASE("objects range locks: what does not overlap, and other objects, are of no concern",
          "[objects]") {
    Locking locking;
    auto& first = locking.want(kFirstTen, LockMode::kExclusive);
    auto& next = locking.want(kNextTen, LockMode::kExclusive);
    auto& other = locking.want(kFirstTen, LockMode::kExclusive, kOther);
    auto& attributes = locking.want(kAttributes, LockMode::kShared);
    auto& whole = locking.want(kWholeObject, LockMode::kExclusive);

    CHECK(first.lock.held());
    CHECK(next.lock.held());
    CHECK(other.lock.held());
    CHECK(attributes.lock.held());
    CHECK_FALSE(whole.lock.held());
}

TEST_CASE("objects range locks: a writer that waits is not passed by readers", "[objects]") {
    Locking locking;
    auto& reader = locking.want(kFirstTen, LockMode::kShared);
    auto& writer = locking.want(kFirstTen, LockMode::kExclusive);
    auto& late = locking.want(kFirstTen, LockMode::kShared);
    auto& elsewhere = locking.want(kNextTen, LockMode::kShared);

    CHECK_FALSE(late.lock.held());
    CHECK(elsewhere.lock.held());
    locking.let_go(reader);
    CHECK(writer.lock.held());
    CHECK_FALSE(late.lock.held());
    locking.let_go(writer);
    CHECK(late.lock.held());
}

TEST_CASE("objects range locks: a waiter that gives up lets later ones pass", "[objects]") {
    Locking locking;
    core::CancelSource cancel;
    auto& reader = locking.want(kFirstTen, LockMode::kShared);
    auto& late =
        locking.want(kFirstTen, LockMode::kExclusive, kOne, {.deadline = locking.world.now() + 1s});
    auto& cancelled = locking.want(kFirstTen, LockMode::kExclusive, kOne, {.cancel = &cancel});
    auto& last = locking.want(kFirstTen, LockMode::kShared);
    REQUIRE(locking.locks.waiting_count() == 3);

    locking.world.run_for(2s);
    REQUIRE(late.result.has_value());
    CHECK(late.result->error().code == Errc::kTimedOut);
    cancel.cancel();
    locking.settle();
    REQUIRE(cancelled.result.has_value());
    CHECK(cancelled.result->error().code == Errc::kCancelled);
    CHECK(last.lock.held());
    CHECK(reader.lock.held());
    CHECK(locking.locks.waiting_count() == 0);
}

TEST_CASE("objects range locks: what may be lost is not told", "[objects]") {
    Locking locking;
    auto& first = locking.want(kFirstTen, LockMode::kExclusive);
    auto& second = locking.want(kNextTen, LockMode::kExclusive);
    CHECK_FALSE(locking.locks.durable_state(kOne).has_value());

    const ObjectState zero{.size_bytes = 0, .version = 1};
    const ObjectState one{.size_bytes = 40960, .version = 2};
    const ObjectState two{.size_bytes = 81920, .version = 3};
    locking.locks.change_begun(first.lock, zero);
    locking.locks.change_begun(second.lock, one);
    CHECK(locking.locks.durable_state(kOne) == zero);
    CHECK_FALSE(locking.locks.durable_state(kOther).has_value());
    locking.let_go(first);
    CHECK(locking.locks.durable_state(kOne) == one);
    locking.let_go(second);
    CHECK_FALSE(locking.locks.durable_state(kOne).has_value());

    auto& durable = locking.want(kFirstTen, LockMode::kExclusive);
    auto& buffered = locking.want(kNextTen, LockMode::kExclusive);
    locking.locks.change_begun(durable.lock, zero);
    locking.locks.change_begun(buffered.lock, one);
    locking.locks.change_shown(buffered.lock, two);
    CHECK(locking.locks.durable_state(kOne) == two);
}

namespace {

// How many locks are compared when one is let go that so many others wait for.
std::uint64_t compared_by_release(std::size_t waiting) {
    Locking locking;
    for (std::size_t i = 0; i <= waiting; ++i) locking.want(kWholeObject, LockMode::kExclusive);
    const std::uint64_t before = locking.locks.compared_count();
    locking.let_go(locking.wishes[0]);
    CHECK(locking.wishes[1].lock.held());
    return locking.locks.compared_count() - before;
}

}  // namespace

// A fop that waits costs others little, however many wait.
TEST_CASE("objects range locks: letting go takes time in proportion to those that wait",
          "[objects]") {
    CHECK(compared_by_release(500) <= 2 * 500);
    CHECK(compared_by_release(4000) <= 2 * 4000);
}

// Each writer waits for the reader of its block, so no release of another reader grants it.
TEST_CASE("objects range locks: letting go costs the same whatever the others wait for",
          "[objects]") {
    constexpr std::uint64_t kBlocks = 500;
    Locking locking;
    const auto want_each = [&locking](LockMode mode) {
        for (std::uint64_t block = 0; block < kBlocks; ++block) {
            locking.want({.first = block, .count = 1}, mode);
        }
    };
    want_each(LockMode::kShared);
    want_each(LockMode::kExclusive);
    const std::uint64_t before = locking.locks.compared_count();
    locking.let_go(locking.wishes[0]);
    CHECK(locking.wishes[kBlocks].lock.held());
    CHECK(locking.locks.compared_count() - before <= 2 * kBlocks);
}

namespace {

// What RangeLocks does, written as its contract is: each time, all requests are compared with all
// earlier ones.
class SlowLocks {
public:
    void want(std::size_t number, const LockRequest& request) {
        present_.push_back({.number = number, .request = request});
        grant();
    }
    // The lock is released, or its wait ends.
    void leave(std::size_t number) {
        std::erase_if(present_, [number](const Each& each) { return each.number == number; });
        grant();
    }
    // The numbers of those present that are `held`, or not.
    std::vector<std::size_t> numbers(bool held) const {
        std::vector<std::size_t> all;
        for (const Each& each : present_) {
            if (each.held == held) all.push_back(each.number);
        }
        return all;
    }
    const std::vector<std::size_t>& granted() const { return granted_; }

private:
    struct Each {
        std::size_t number = 0;
        LockRequest request;
        bool held = false;
    };
    static bool conflict(const LockRequest& one, const LockRequest& other) {
        if (one.fid != other.fid) return false;
        if (one.mode == LockMode::kShared && other.mode == LockMode::kShared) return false;
        return one.range.first < other.range.end() && other.range.first < one.range.end();
    }
    void grant() {
        for (auto each = present_.begin(); each != present_.end(); ++each) {
            const bool waits = std::any_of(present_.begin(), each, [each](const Each& earlier) {
                return conflict(earlier.request, each->request);
            });
            if (each->held || waits) continue;
            each->held = true;
            granted_.push_back(each->number);
        }
    }

    std::vector<Each> present_;  // The oldest first.
    std::vector<std::size_t> granted_;
};

}  // namespace

TEST_CASE("objects range locks: locks are granted to whom and when a slow model grants them",
          "[objects]") {
    core::Random random(GENERATE(range(1U, 21U)));
    Locking locking;
    SlowLocks model;
    for (int step = 0; step < 400; ++step) {
        const std::size_t present = model.numbers(true).size() + model.numbers(false).size();
        if (present == 0 || random.below(60) >= present) {
            // The second id is in the bucket of the first one.
            const store::Fid fid{.high = 1, .low = random.below(3) == 0 ? 257U : 1U};
            const bool is_whole = random.below(8) == 0;
            const store::BlockRange some{.first = random.below(20), .count = 1 + random.below(6)};
            const LockMode mode = random.below(2) == 0 ? LockMode::kShared : LockMode::kExclusive;
            const auto& wish = locking.want(is_whole ? kWholeObject : some, mode, fid);
            model.want(wish.number, wish.request);
        } else {
            std::vector<std::size_t> some = model.numbers(random.below(4) > 0);
            if (some.empty()) continue;
            const std::size_t number = some[random.below(some.size())];
            locking.let_go(locking.wishes[number]);
            model.leave(number);
        }
        REQUIRE(locking.granted == model.granted());
        REQUIRE(locking.locks.waiting_count() == model.numbers(false).size());
    }
}

}  // namespace fopd::objects
