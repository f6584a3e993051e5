#include "core/buffer_pool.h"

#include "core/virtual_world.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::core;

namespace {

Task<Result<std::size_t>> borrow_all(BufferPool* pool, std::size_t count, Instant deadline) {
    std::vector<BufferPool::Loan> loans;
    for (std::size_t i = 0; i < count; ++i) {
        const WaitOptions options{.deadline = deadline};
        auto loan = co_await pool->borrow(options);
        if (!loan) co_return std::unexpected(loan.error());
        loans.push_back(std::move(*loan));
    }
    co_return loans.size();
}

Task<void> hold_one(BufferPool* pool, Reactor* reactor, Duration span) {
    auto loan = co_await pool->borrow({});
    ENSURE(loan.has_value());
    const auto slept = co_await reactor->sleep_for(span);
    ENSURE(slept.has_value());
}

}  // namespace

TEST_CASE("core buffer pool: hands out whole buffers and takes them back", "[core]") {
    VirtualWorld world(1);
    const auto reactor = world.make_reactor();
    BufferPool pool(*reactor);
    REQUIRE(pool.open(4 * kBufferBytes + 17).has_value());
    REQUIRE(pool.total_count() == 4);

    const auto borrowed = world.run(*reactor, borrow_all(&pool, 4, kNever));

    REQUIRE(borrowed.has_value());
    REQUIRE(**borrowed == 4);
    REQUIRE(pool.free_count() == 4);
}

TEST_CASE("core buffer pool: borrowing from an empty pool waits until the deadline", "[core]") {
    VirtualWorld world(2);
    const auto reactor = world.make_reactor();
    BufferPool pool(*reactor);
    REQUIRE(pool.open(2 * kBufferBytes).has_value());

    const auto borrowed = world.run(*reactor, borrow_all(&pool, 3, after(world.now(), 5s)));

    REQUIRE(borrowed.has_value());
    REQUIRE(borrowed->error().code == Errc::kTimedOut);
    REQUIRE(world.now() >= Instant{5s});
    REQUIRE(pool.free_count() == 2);
}

TEST_CASE("core buffer pool: a returned buffer goes to a waiter", "[core]") {
    VirtualWorld world(3);
    const auto reactor = world.make_reactor();
    BufferPool pool(*reactor);
    REQUIRE(pool.open(kBufferBytes).has_value());
    Gate gate;
    reactor->spawn(gate, hold_one(&pool, reactor.get(), 3s));
    world.run_for(1s);
    REQUIRE(pool.free_count() == 0);

    const auto borrowed = world.run(*reactor, borrow_all(&pool, 1, after(world.now(), 60s)));

    REQUIRE(borrowed.has_value());
    REQUIRE(borrowed->has_value());
    REQUIRE(world.now() < Instant{4s});
}

TEST_CASE("core buffer pool: more than the kernel takes in one region is several", "[core]") {
    VirtualWorld world(4);
    const auto reactor = world.make_reactor();
    BufferPool pool(*reactor);
    constexpr std::size_t kCount = (3UL << 30) / kBufferBytes + 1;

    // Mapped, never touched.
    REQUIRE(pool.open(kCount * kBufferBytes).has_value());

    REQUIRE(pool.registered());
    REQUIRE(pool.total_count() == kCount);
}

namespace {

Task<void> borrow_and_note(BufferPool* pool, std::vector<int>* order, int number) {
    const auto loan = co_await pool->borrow({});
    ENSURE(loan.has_value());
    order->push_back(number);
}

// Asks in the turn in which it gives its buffer back.
Task<void> give_back_and_ask(BufferPool* pool, Reactor* reactor, std::vector<int>* order) {
    {
        const auto loan = co_await pool->borrow({});
        ENSURE(loan.has_value());
        const auto slept = co_await reactor->sleep_for(1s);
        ENSURE(slept.has_value());
    }
    co_await borrow_and_note(pool, order, 0);
}

}  // namespace

TEST_CASE("core buffer pool: a later caller does not overtake waiters", "[core]") {
    VirtualWorld world(5);
    const auto reactor = world.make_reactor();
    BufferPool pool(*reactor);
    REQUIRE(pool.open(kBufferBytes).has_value());
    Gate gate;
    std::vector<int> order;
    reactor->spawn(gate, give_back_and_ask(&pool, reactor.get(), &order));
    world.run_for(500ms);
    for (int number = 1; number <= 3; ++number) {
        reactor->spawn(gate, borrow_and_note(&pool, &order, number));
    }
    world.run_for(10s);

    REQUIRE(order == std::vector<int>{1, 2, 3, 0});
    REQUIRE(pool.free_count() == 1);
}
