// Goal: messages and calls between reactors arrive once, in order, and wake the receiver up.
// Method: the same coroutines run on all kinds; what needs real descriptors or threads on the real
// ones. Nothing depends on how long anything takes: long deadlines stand for "never".

#include <thread>

#include "core/remote.h"
#include "tests/core/reactor_log.h"
#include "tests/core/remote_reactor.h"

using namespace fopd;
using namespace fopd::core;
using namespace fopd::core::testing;

namespace {
struct NotedMessage final : Message {
    NotedMessage() : Message(&on_deliver) {}
    static void on_deliver(Message& message) {
        auto& self = static_cast<NotedMessage&>(message);
        self.log->push_back(self.value);
        if (self.then != nullptr) self.reactor->post(*std::exchange(self.then, nullptr));
    }
    std::vector<int>* log = nullptr;
    int value = 0;
    Reactor* reactor = nullptr;
    Message* then = nullptr;
};
}  // namespace

TEST_CASE("core reactor: messages come in order, and one may post another", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);
    std::vector<int> log;
    std::array<NotedMessage, 5> messages;
    for (int i = 0; i < 5; ++i) {
        messages[static_cast<std::size_t>(i)].log = &log;
        messages[static_cast<std::size_t>(i)].value = i;
        messages[static_cast<std::size_t>(i)].reactor = &harness.reactor();
    }
    messages[0].then = &messages[4];
    for (std::size_t i = 0; i < 4; ++i) harness->post(messages[i]);
    Log ignored;

    harness.run(yield_and_note(&harness.reactor(), &ignored, "x", 4));

    REQUIRE(log == std::vector<int>{0, 1, 2, 3, 4});
}

namespace {

Task<std::uint64_t> ping_pong(Reactor* here, Reactor* there, int rounds) {
    std::uint64_t sum = 0;
    auto job = [&sum] { return ++sum; };
    std::uint64_t last = 0;
    for (int i = 0; i < rounds; ++i) last = co_await run_on(*here, *there, job);
    co_return last;
}
}  // namespace

TEST_CASE("core reactor: no wake-up is lost in many round trips between threads", "[core]") {
    const Kind here_kind = real_kind();
    const Kind there_kind = real_kind();
    const Duration spin = GENERATE(Duration(0us), Duration(20us));
    CAPTURE(here_kind, there_kind, spin.count());
    const auto here = make_real_reactor(here_kind, {.spin = spin});
    RemoteReactor there(there_kind, {.spin = spin});

    const auto last = here->run_until_done(ping_pong(here.get(), &there.reactor(), 25'000));

    REQUIRE(last == 25'000);
    there.stop();
}

namespace {
struct NumberedMessage final : Message {
    NumberedMessage() : Message(&on_deliver) {}
    static void on_deliver(Message& message) {
        auto& self = static_cast<NumberedMessage&>(message);
        auto& seen = (*self.seen)[self.sender];
        ENSURE(seen == self.number);
        ++seen;
        if (--*self.left == 0) self.reactor->stop();
    }
    std::array<int, 4>* seen = nullptr;
    int* left = nullptr;
    Reactor* reactor = nullptr;
    std::size_t sender = 0;
    int number = 0;
};
}  // namespace

TEST_CASE("core reactor: four senders, one receiver: all arrive, in each sender's order",
          "[core]") {
    constexpr int kEach = 50'000;
    const Kind kind = real_kind();
    CAPTURE(kind);
    const auto reactor = make_real_reactor(kind);
    std::array<int, 4> seen{};
    int left = 4 * kEach;
    std::array<std::vector<NumberedMessage>, 4> messages;
    for (std::size_t sender = 0; sender < 4; ++sender) {
        messages[sender] = std::vector<NumberedMessage>(kEach);
        for (int i = 0; i < kEach; ++i) {
            NumberedMessage& message = messages[sender][static_cast<std::size_t>(i)];
            message.seen = &seen;
            message.left = &left;
            message.reactor = reactor.get();
            message.sender = sender;
            message.number = i;
        }
    }

    std::vector<std::thread> senders;
    for (auto& mine : messages) {
        senders.emplace_back([&mine, &reactor] {
            for (NumberedMessage& message : mine) reactor->post(message);
        });
    }
    reactor->run();
    for (std::thread& sender : senders) sender.join();

    REQUIRE(left == 0);
    REQUIRE(seen == std::array<int, 4>{kEach, kEach, kEach, kEach});
}

TEST_CASE("core run_on: void, move-only and Result come back", "[core]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Harness harness(kind);

    REQUIRE(harness.run(remote_results(&harness.reactor(), &harness.reactor())) == 233);
}

TEST_CASE("core run_on: between threads", "[core]") {
    const Kind kind = real_kind();
    CAPTURE(kind);
    const auto here = make_real_reactor(kind);
    RemoteReactor there(kind);

    REQUIRE(here->run_until_done(remote_results(here.get(), &there.reactor())) == 233);
    there.stop();
}
