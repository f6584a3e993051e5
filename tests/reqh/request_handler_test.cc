// Goal: every fop is answered once, with the right word, and nothing it held is left behind.
// Method: a handler in the simulated world; fops, transfers and tokens are fakes.

#include "reqh/request_handler.h"

#include <memory>
#include <optional>
#include <utility>

#include "core/crc32c.h"
#include "lrs/mclock/mclock.h"
#include "lrs/tbf/tbf.h"
#include "tests/reqh/fake_fop.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;
using fop::Status;

namespace {

std::size_t running_transfers(const HandlerWorld& node) {
    std::size_t count = 0;
    for (const FakeFop& fop : node.fops) count += !fop.transfers.empty() && !fop.answer ? 1 : 0;
    return count;
}

}  // namespace

// -- what a fop comes to --

TEST_CASE("reqh: a ping is answered", "[reqh]") {
    HandlerWorld node;

    const FakeFop& fop = node.send(ping());
    node.settle();

    CHECK(fop.status() == Status::kDone);
    CHECK(fop.answer->id == 1);
    CHECK(std::holds_alternative<fop::PingReply>(fop.answer->body));
}

TEST_CASE("reqh: an echo brings its payload back", "[reqh]") {
    HandlerWorld node;

    const FakeFop& fop = node.send(echo("hello"));
    node.settle();

    CHECK(fop.status() == Status::kDone);
    CHECK(fop.answer->payload == bytes_of("hello"));
    CHECK(std::holds_alternative<fop::EchoReply>(fop.answer->body));
}

TEST_CASE("reqh: a bulk echo moves all its bytes, buffer by buffer", "[reqh]") {
    HandlerWorld node;

    const FakeFop& fop = node.send(bulk_echo(2 * kOneBuffer + 5));
    node.world.run_for(1s);

    REQUIRE(fop.status() == Status::kDone);
    CHECK(fop.target == fop.source);
    const auto& reply = std::get<fop::BulkEchoReply>(fop.answer->body);
    CHECK(reply.bytes == 2 * kOneBuffer + 5);
    CHECK(reply.crc == core::crc32c(fop.source));
    REQUIRE(fop.transfers.size() == 6);
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(fop.transfers[i].is_pull == (i % 2 == 0));
        CHECK(fop.transfers[i].offset == (i / 2) * kOneBuffer);
        CHECK(fop.transfers[i].size_bytes == (i < 4 ? kOneBuffer : 5));
    }
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh: a bulk echo of nothing is done", "[reqh]") {
    HandlerWorld node;
    const FakeFop& fop = node.send(bulk_echo(0));
    node.settle();
    CHECK(fop.status() == Status::kDone);
    CHECK(fop.transfers.empty());
}

TEST_CASE("reqh: a failed transfer is answered, and its buffer is back", "[reqh]") {
    // Who lost the session may try again: nothing has changed here.
    const auto [error, status] = GENERATE(std::pair(Errc::kDenied, Status::kDenied),
                                          std::pair(Errc::kClosed, Status::kTryAgain));
    const auto which = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3});
    CAPTURE(status, which);
    HandlerWorld node;
    FopSpec spec = bulk_echo(2 * kOneBuffer);
    spec.failing_transfer = which;
    spec.transfer_error = error;

    const FakeFop& fop = node.send(spec);
    node.world.run_for(1s);

    CHECK(fop.status() == status);
    CHECK(fop.transfers.size() == which + 1);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh: unknown and malformed fops are answered at once", "[reqh]") {
    HandlerWorld node;
    FopSpec unknown = ping();
    unknown.type = 999;
    unknown.body = std::monostate{};
    FopSpec malformed = echo("");
    malformed.fault = Status::kMalformed;

    const FakeFop& first = node.send(unknown);
    const FakeFop& second = node.send(malformed);

    CHECK(first.status() == Status::kUnknownFop);
    CHECK(second.status() == Status::kMalformed);
    CHECK(node.handler.metrics().counted(nullptr, Status::kUnknownFop) == 1);
}

// -- admission --

TEST_CASE("reqh: never do more foms run than are allowed", "[reqh]") {
    HandlerWorld node({.max_foms = 3});
    std::size_t most = 0;
    for (int i = 0; i < 20; ++i) node.send(bulk_echo(kOneBuffer));
    while (node.work.count() > 0) {
        node.world.run_for(100us);
        most = std::max(most, running_transfers(node));
        REQUIRE(node.handler.running_count() <= 3);
    }

    CHECK(most == 3);
    for (const FakeFop& fop : node.fops) CHECK(fop.status() == Status::kDone);
}

TEST_CASE("reqh: a changed limit holds at once", "[reqh]") {
    HandlerWorld node({.max_foms = 2, .buffer_count = 64});
    for (int i = 0; i < 20; ++i) node.send(bulk_echo(kOneBuffer, 10ms));
    node.settle();
    CHECK(node.handler.running_count() == 2);

    node.handler.set_limits({.max_foms = 5, .io_wait_goal = std::nullopt});
    CHECK(node.handler.running_count() == 5);

    node.handler.set_limits({.max_foms = 1, .io_wait_goal = std::nullopt});
    node.world.run_for(20ms);
    CHECK(node.handler.running_count() == 1);
    node.world.run_for(1s);
    for (const FakeFop& fop : node.fops) CHECK(fop.status() == Status::kDone);
}

TEST_CASE("reqh: a lowered limit also applies to waiting getters", "[reqh]") {
    HandlerWorld node({.max_foms = 2});
    node.send(bulk_echo(kOneBuffer, 10ms));
    node.handler.set_limits({.max_foms = 1, .io_wait_goal = std::nullopt});

    node.send(bulk_echo(kOneBuffer, 10ms));
    node.settle();

    CHECK(node.handler.running_count() == 1);
}

TEST_CASE("reqh: control fops overtake data that waits", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kOneBuffer, 10ms));
    const FakeFop& data = node.send(bulk_echo(kOneBuffer, 10ms));
    const FakeFop& control = node.send(ping());

    node.world.run_for(20ms);

    CHECK(control.answer.has_value());
    CHECK_FALSE(data.answer.has_value());
}

TEST_CASE("reqh: a fop without a buffer waits until its deadline", "[reqh]") {
    HandlerWorld node({.buffer_count = 1});
    node.send(bulk_echo(kOneBuffer, 10s));
    FopSpec hurried = bulk_echo(kOneBuffer);
    hurried.deadline = Instant(1s);
    const FakeFop& first = node.send(hurried);
    const FakeFop& second = node.send(bulk_echo(kOneBuffer));

    node.world.run_for(100s);

    CHECK(first.status() == Status::kTimedOut);
    CHECK(first.answer->at == Instant(1s));
    CHECK(second.status() == Status::kDone);
    CHECK(second.answer->at >= Instant(10s));
    CHECK(node.all_buffers_are_back());
}

// -- deadlines and those who give up --

TEST_CASE("reqh: a fop whose deadline passed in the queue does nothing", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kOneBuffer, 10ms));
    FopSpec late = bulk_echo(kOneBuffer);
    late.deadline = Instant(5ms);
    const FakeFop& fop = node.send(late);

    node.world.run_for(1s);

    CHECK(fop.status() == Status::kTimedOut);
    CHECK(fop.answer->words == "the deadline passed before it could run");
    CHECK(fop.transfers.empty());
    CHECK(node.handler.metrics().seconds(node.type("bulk_echo"), Phase::kExecute).count() == 1);
}

// Those behind them have the tokens.
TEST_CASE("reqh: who is late or gone while it waits takes nothing of its class", "[reqh]") {
    const bool is_mclock = GENERATE(false, true);
    const bool is_gone = GENERATE(false, true);
    CAPTURE(is_mclock, is_gone);
    HandlerWorld node;
    const lrs::TbfSettings rates{.rules = {"shared * rate=1/s burst=1 by=none"}};
    const lrs::MclockSettings shares{.cost_unit = {}, .rules = {"shared * limit=1/s by=none"}};
    node.requests.use(is_mclock ? lrs::make_mclock(shares, {}, 1) : lrs::make_tbf(rates, {}, 1));
    node.send(echo("first"));
    std::vector<FakeFop*> waiting;
    for (int i = 0; i < 10; ++i) {
        FopSpec spec = echo("late");
        if (!is_gone) spec.deadline = Instant(500ms);
        waiting.push_back(&node.send(std::move(spec)));
    }
    const FakeFop& last = node.send(echo("last"));

    node.world.run_for(500ms);
    if (is_gone) {
        for (FakeFop* const each : waiting) each->cancel_source().cancel();
    }
    for (const FakeFop* const each : waiting) {
        CHECK(each->status() == (is_gone ? Status::kCancelled : Status::kTimedOut));
        CHECK_FALSE(each->has_started);
        const std::string_view words = each->answer->words;
        if (!is_gone)
            CHECK(words ==
                  "over its limit: a rule of the server held the fop back until its deadline");
    }
    node.world.run_for(501ms);

    CHECK(last.status() == Status::kDone);
    const lrs::LaneFigures& figures = node.requests.figures(lrs::Lane::kData);
    CHECK(figures.delivered.get() == 2);
    CHECK(figures.removed.get() == 10);
    std::uint64_t served = 0;
    for (const lrs::ClassFigures& each : node.requests.class_figures()) served += each.served;
    CHECK(served == 2);
}

TEST_CASE("reqh: a deadline ends a transfer, and the buffer is back", "[reqh]") {
    HandlerWorld node;
    FopSpec spec = bulk_echo(kOneBuffer, 10ms);
    spec.deadline = Instant(15ms);
    const FakeFop& fop = node.send(spec);
    node.world.run_for(1s);
    CHECK(fop.status() == Status::kTimedOut);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh: a fop given up in the queue is answered at once", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(kOneBuffer, 10ms));
    FakeFop& fop = node.send(bulk_echo(kOneBuffer));
    node.settle();

    fop.cancel_source().cancel();

    CHECK(fop.status() == Status::kCancelled);
    CHECK(node.requests.figures(lrs::Lane::kData).removed.get() == 1);
    CHECK(node.requests.figures(lrs::Lane::kData).queued.get() == 0);
}

TEST_CASE("reqh: a fop given up while it runs ends, and its buffer is back", "[reqh]") {
    HandlerWorld node;
    FakeFop& fop = node.send(bulk_echo(kOneBuffer, 10ms));
    node.world.run_for(5ms);
    REQUIRE(node.handler.running_count() == 1);

    fop.cancel_source().cancel();
    node.settle();

    CHECK(fop.status() == Status::kCancelled);
    CHECK(node.handler.running_count() == 0);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh: a fop given up while it waits for a buffer ends", "[reqh]") {
    HandlerWorld node({.buffer_count = 1});
    node.send(bulk_echo(kOneBuffer, 10ms));
    FakeFop& fop = node.send(bulk_echo(kOneBuffer));
    node.settle();

    fop.cancel_source().cancel();
    node.settle();

    CHECK(fop.status() == Status::kCancelled);
    node.world.run_for(1s);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh: a fop given up between its turn and its first step does nothing", "[reqh]") {
    HandlerWorld node;
    FakeFop& fop = node.send(bulk_echo(kOneBuffer));

    fop.cancel_source().cancel();
    node.settle();

    CHECK(fop.status() == Status::kCancelled);
    CHECK(fop.transfers.empty());
}

// -- the drain --

TEST_CASE("reqh: a drain answers what waits and lets end what runs", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    const FakeFop& running = node.send(bulk_echo(kOneBuffer, 10ms));
    const FakeFop& queued = node.send(bulk_echo(kOneBuffer));
    const FakeFop& control = node.send(ping());
    node.settle();

    node.handler.drain();
    node.handler.drain();

    CHECK(queued.status() == Status::kTryAgain);
    CHECK(control.status() == Status::kDone);
    CHECK(node.send(ping()).status() == Status::kTryAgain);
    CHECK_FALSE(running.answer.has_value());
    const bool closed = node.world.run(*node.reactor, [](HandlerWorld* of) -> Task<void> {
        co_await of->work.close(*of->reactor);
    }(&node));
    CHECK(closed);
    CHECK(running.status() == Status::kDone);
}

TEST_CASE("reqh: a fop that is cut off reports whether it may have run", "[reqh]") {
    HandlerWorld node({.buffer_count = 1});
    const FakeFop& begun = node.send(bulk_echo(kOneBuffer, 10ms));
    const FakeFop& waiting = node.send(bulk_echo(kOneBuffer, 10ms));
    node.settle();
    node.handler.drain();

    node.handler.cut_off();
    node.settle();

    CHECK(begun.status() == Status::kOutcomeUnknown);
    CHECK(waiting.status() == Status::kTryAgain);
    CHECK(node.handler.running_count() == 0);
    CHECK(node.all_buffers_are_back());
}

// -- all of it --

TEST_CASE("reqh: whatever happens, each fop is answered once and all buffers come back", "[reqh]") {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        CAPTURE(seed);
        HandlerWorld node({.max_foms = 4, .buffer_count = 2, .seed = seed});
        core::Random& random = node.world.random();
        for (int step = 0; step < 300; ++step) {
            FopSpec spec = ping();
            if (random.below(3) == 0) spec = echo("payload");
            if (random.below(2) == 0) {
                spec = bulk_echo(random.below(3 * kOneBuffer), Duration(random.below(3'000'000)));
                if (random.below(5) == 0) spec.failing_transfer = random.below(3);
            }
            if (random.below(4) == 0)
                spec.deadline = node.world.now() + Duration(random.below(20'000'000));
            if (random.below(10) == 0) spec.rights = fop::kRead;
            if (random.below(10) == 0) spec.token = "read";
            if (random.below(20) == 0) spec.type = 77;
            node.send(spec);
            if (random.below(5) == 0)
                node.fops[random.below(node.fops.size())].cancel_source().cancel();
            if (random.below(20) == 0)
                node.handler.set_limits(
                    {.max_foms = static_cast<std::uint32_t>(1 + random.below(8))});
            node.world.run_for(Duration(random.below(2'000'000)));
        }
        node.handler.drain();
        if (seed % 2 == 0) node.handler.cut_off();
        const bool closed = node.world.run(*node.reactor, [](HandlerWorld* of) -> Task<void> {
            co_await of->work.close(*of->reactor);
        }(&node));

        CHECK(closed);
        for (const FakeFop& fop : node.fops) REQUIRE(fop.answer.has_value());
        CHECK(node.all_buffers_are_back());
        CHECK(node.handler.running_count() == 0);
    }
}

TEST_CASE("reqh: a killed process leaves nothing behind", "[reqh]") {
    HandlerWorld node({.max_foms = 4, .buffer_count = 2});
    for (int i = 0; i < 20; ++i) node.send(bulk_echo(kOneBuffer, 10ms));
    node.world.run_for(15ms);
    CHECK(node.handler.running_count() > 0);
}
