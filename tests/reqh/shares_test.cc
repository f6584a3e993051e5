// Goal: whatever clients hold and never give back, there is something left for the next.
#include "reqh/shares.h"

#include <deque>

#include "core/random.h"
#include "tests/catch.h"

namespace fopd::reqh {

namespace {

constexpr std::uint64_t kTotal = 256;

Shares::ClientId number(std::uint32_t client) {
    Shares::ClientId id{};
    id[0] = static_cast<std::byte>(client);
    id[1] = static_cast<std::byte>(client >> 8U);
    return id;
}

// A slow client takes as much as it may have; how much that is.
std::uint64_t fill(Shares& shares, std::string_view principal, std::uint32_t client) {
    Shares::Client* holder = &shares.client_of(principal, number(client));
    if (!holder->is_slow()) shares.begin_slow(*holder);
    while (shares.may_take(*holder, kTotal)) shares.take(*holder);
    return holder->held();
}

// Slow clients take one each by turns, until none of them may have more; how many that are.
std::uint64_t fill_by_turns(Shares& shares, std::uint32_t clients, bool same_principal) {
    std::uint64_t sum = 0;
    bool any = true;
    while (any) {
        any = false;
        for (std::uint32_t client = 0; client < clients; ++client) {
            const std::string principal = same_principal ? "alice" : "a" + std::to_string(client);
            Shares::Client& holder = shares.client_of(principal, number(client));
            if (!holder.is_slow()) shares.begin_slow(holder);
            if (!shares.may_take(holder, kTotal)) continue;
            shares.take(holder);
            ++sum;
            any = true;
        }
    }
    return sum;
}

}  // namespace

TEST_CASE("reqh shares: one client has a quarter, and its principal three quarters alone",
          "[reqh]") {
    Shares shares;
    CHECK(fill(shares, "alice", 0) == 64);
    std::uint64_t sum = 64;
    for (std::uint32_t client = 1; client < 100; ++client) sum += fill(shares, "alice", client);
    CHECK(sum <= kTotal * 3 / 4);
    CHECK(sum >= kTotal / 2);
    // Another principal finds room, and so does the next.
    CHECK(fill(shares, "bob", 0) >= 8);
    CHECK(fill(shares, "carol", 0) >= 4);
    CHECK(fill(shares, "dave", 0) >= 2);
}

TEST_CASE("reqh shares: no principal has more than half while others have some", "[reqh]") {
    Shares shares;
    REQUIRE(fill(shares, "bob", 0) == 64);
    std::uint64_t sum = 0;
    for (std::uint32_t client = 0; client < 200; ++client) sum += fill(shares, "alice", client);
    CHECK(sum <= kTotal / 2);
}

TEST_CASE("reqh shares: behind many clients that keep what they have others find some", "[reqh]") {
    const bool same_principal = GENERATE(true, false);
    Shares shares;
    CHECK(fill_by_turns(shares, 32, same_principal) < kTotal - 16);
    for (std::uint32_t client = 32; client < 36; ++client) {
        CHECK(fill(shares, same_principal ? "alice" : "b", client) >= 1);
    }
    CHECK(fill(shares, "carol", 0) >= 2);
}

TEST_CASE("reqh shares: of the only buffer everybody has a turn", "[reqh]") {
    Shares shares;
    Shares::Client& alice = shares.client_of("alice", number(1));
    CHECK(shares.may_take(alice, 1));
    shares.take(alice);
    shares.begin_slow(alice);
    Shares::Client& bob = shares.client_of("bob", number(2));
    CHECK_FALSE(shares.may_take(bob, 1));
    Shares::Place place;
    shares.wait(bob, place);
    CHECK(shares.next(1) == nullptr);
    CHECK(shares.others_wait(alice));
    CHECK_FALSE(shares.others_wait(bob));
    shares.end_slow(alice);
    shares.give_back(alice);
    CHECK(shares.next(1) == &place);
    CHECK_FALSE(shares.anybody_waits());
}

TEST_CASE("reqh shares: a client that is not slow may have more, until slow ones hold half of all",
          "[reqh]") {
    Shares shares;
    Shares::Client& quick = shares.client_of("alice", number(1));
    while (shares.may_take(quick, kTotal)) shares.take(quick);
    CHECK(quick.held() == kTotal * 3 / 4);
    CHECK_FALSE(shares.is_limited(quick, kTotal));
    shares.begin_slow(quick);
    Shares::Client& other = shares.client_of("bob", number(2));
    CHECK(shares.is_limited(other, kTotal));
    while (shares.may_take(other, kTotal)) shares.take(other);
    CHECK(other.held() <= 16);
    shares.end_slow(quick);
    CHECK(shares.may_take(other, kTotal));
}

TEST_CASE("reqh shares: some buffers are for fops that wait for no client", "[reqh]") {
    const std::uint64_t total = GENERATE(2U, 8U, 256U);
    Shares shares;
    std::uint64_t sum = 0;
    for (std::uint32_t client = 0; client < 100; ++client) {
        Shares::Client& quick = shares.client_of("alice", number(client));
        for (; shares.may_take(quick, total); ++sum) shares.take(quick);
    }
    CHECK(sum < total);
    CHECK(sum >= total / 2);
}

TEST_CASE("reqh shares: slow clients leave a buffer for a quick one of their principal", "[reqh]") {
    const bool is_alone = GENERATE(true, false);
    Shares shares;
    if (!is_alone) REQUIRE(fill(shares, "bob", 0) == 64);
    for (std::uint32_t client = 1; client < 200; ++client) fill(shares, "alice", client);
    Shares::Client& slow = shares.client_of("alice", number(1));
    CHECK_FALSE(shares.may_take(slow, kTotal));
    Shares::Client& quick = shares.client_of("alice", number(1000));
    CHECK(shares.may_take(quick, kTotal));
    shares.take(quick);
    CHECK_FALSE(shares.may_take(quick, kTotal));
    // Others have room still, whatever more of these come before it shows that they are slow.
    for (std::uint32_t client = 1001; client < 1200; ++client) {
        Shares::Client& next = shares.client_of("alice", number(client));
        if (shares.may_take(next, kTotal)) shares.take(next);
    }
    CHECK(fill(shares, "carol", 0) >= 2);
}

TEST_CASE("reqh shares: a client's waiters are served in order, and clients take turns", "[reqh]") {
    Shares shares;
    Shares::Client& first = shares.client_of("alice", number(1));
    Shares::Client& second = shares.client_of("alice", number(2));
    Shares::Client& holder = shares.client_of("bob", number(3));
    shares.take(holder);
    std::deque<Shares::Place> places(5);
    for (std::size_t i = 0; i < 3; ++i) shares.wait(first, places[i]);
    for (std::size_t i = 3; i < 5; ++i) shares.wait(second, places[i]);
    // Nobody overtakes those of its own client.
    CHECK_FALSE(shares.may_take(first, kTotal));
    shares.leave(first, places[1]);
    CHECK(shares.next(kTotal) == &places[0]);
    CHECK(shares.next(kTotal) == &places[3]);
    CHECK(shares.next(kTotal) == &places[2]);
    CHECK(shares.next(kTotal) == &places[4]);
    CHECK(shares.next(kTotal) == nullptr);
}

TEST_CASE("reqh shares: a principal with many clients has no more turns than one with few",
          "[reqh]") {
    Shares shares;
    std::deque<Shares::Place> places(4);
    for (std::uint32_t i = 0; i < 3; ++i) {
        shares.wait(shares.client_of("alice", number(i)), places[i]);
    }
    shares.wait(shares.client_of("bob", number(3)), places[3]);
    CHECK(shares.next(kTotal) == &places[0]);
    CHECK(shares.next(kTotal) == &places[3]);
    CHECK(shares.next(kTotal) == &places[1]);
    CHECK(shares.next(kTotal) == &places[2]);
    CHECK(shares.next(kTotal) == nullptr);
}

TEST_CASE("reqh shares: a client that waits keeps its turn when it gets or gives a buffer",
          "[reqh]") {
    Shares shares;
    std::deque<Shares::Place> places(3);
    std::deque<Shares::Client*> clients;
    for (std::uint32_t i = 0; i < 3; ++i) {
        clients.push_back(&shares.client_of("alice", number(i)));
    }
    shares.take(*clients[0]);
    for (std::size_t i = 0; i < 3; ++i) shares.wait(*clients[i], places[i]);
    shares.take(*clients[1]);
    shares.give_back(*clients[0]);
    for (Shares::Place& place : places) CHECK(shares.next(kTotal) == &place);
    CHECK_FALSE(shares.anybody_waits());
}

TEST_CASE("reqh shares: a turn looks at no more waiting clients than there are buffers", "[reqh]") {
    Shares shares;
    fill(shares, "bob", 0);
    for (std::uint32_t client = 0; client < 200; ++client) fill(shares, "alice", client);
    std::deque<Shares::Place> places(5000);
    for (std::uint32_t i = 0; i < places.size(); ++i) {
        Shares::Client& client = shares.client_of("alice", number(1000 + i));
        while (shares.may_take(client, kTotal)) shares.take(client);
        shares.wait(client, places[i]);
    }
    Shares::Place other;
    shares.wait(shares.client_of("carol", number(1)), other);
    const std::uint64_t before = shares.looked_at_count();
    CHECK(shares.next(kTotal) == &other);
    CHECK(shares.next(kTotal) == nullptr);
    CHECK(shares.looked_at_count() - before <= 2 * kTotal);
}

TEST_CASE("reqh shares: nobody waits who has a share", "[reqh]") {
    constexpr std::uint64_t kFew = 24;
    struct Known {
        std::string principal;
        Shares::ClientId id{};
        std::uint64_t held = 0;
        std::uint64_t slow = 0;
        std::deque<Shares::Place> waiting;  // Those at the front may have had their turn.
        Shares::Client* client = nullptr;   // Null: it holds nothing, and does not wait.
    };
    core::Random random(GENERATE(range(1U, 31U)));
    Shares shares;
    std::deque<Known> all(15);
    for (std::uint32_t i = 0; i < all.size(); ++i) {
        all[i].principal = "a" + std::to_string(i % 3);
        all[i].id = number(i);
    }
    const auto serve = [&] {
        while (Shares::Place* const place = shares.next(kFew)) {
            for (Known& known : all) {
                if (known.waiting.empty() || &known.waiting.front() != place) continue;
                known.waiting.pop_front();
                shares.take(*known.client);
                ++known.held;
                break;
            }
        }
    };
    for (int step = 0; step < 300; ++step) {
        Known& known = all[random.below(all.size())];
        switch (random.below(4)) {
            case 0:
            case 1:
                known.client = &shares.client_of(known.principal, known.id);
                if (shares.may_take(*known.client, kFew)) {
                    shares.take(*known.client);
                    ++known.held;
                } else {
                    shares.wait(*known.client, known.waiting.emplace_back());
                }
                break;
            case 2:
                if (known.held <= known.slow) continue;
                --known.held;
                shares.give_back(*known.client);
                break;
            default:
                if (known.slow > 0 && random.below(2) == 0) {
                    --known.slow;
                    shares.end_slow(*known.client);
                } else if (known.slow < known.held) {
                    ++known.slow;
                    shares.begin_slow(*known.client);
                }
        }
        serve();
    }
    // Each that waits gives up, and would find nothing, either.
    for (Known& known : all) {
        while (!known.waiting.empty()) {
            shares.leave(*known.client, known.waiting.back());
            known.waiting.pop_back();
            if (!known.waiting.empty()) continue;
            known.client = &shares.client_of(known.principal, known.id);
            CHECK_FALSE(shares.may_take(*known.client, kFew));
            Shares::Place place;
            shares.wait(*known.client, place);
            shares.leave(*known.client, place);
        }
    }
}

}  // namespace fopd::reqh
