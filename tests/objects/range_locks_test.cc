#include "objects/range_locks.h"

#include <deque>
#include <string>

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
        RangeLock lock;
        LockRequest request;
        core::WaitOptions wait;
        std::optional<Result<void>> result;
    };

    Wish& want(store::BlockRange range, LockMode mode, store::Fid fid = kOne,
               core::WaitOptions wait = {}) {
        Wish& wish = wishes.emplace_back();
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

private:
    Task<void> take(Wish* wish) {
        wish->result = co_await locks.acquire(wish->lock, wish->request, wish->wait);
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

}  // namespace fopd::objects
