// Goal: fops that wait for their clients, and clients that hold what they may, keep nobody else
// waiting. Method: transfers that take their time, in virtual time.
#include "tests/reqh/fake_fop.h"

using namespace fopd;
using namespace fopd::reqh;
using namespace fopd::reqh::testing;

namespace {

FopSpec of_client(FopSpec spec, std::uint8_t client, std::string principal = "alice") {
    spec.client[0] = static_cast<std::byte>(client);
    spec.principal = std::move(principal);
    return spec;
}

std::size_t under_way(const HandlerWorld& node) {
    std::size_t count = 0;
    for (const FakeFop& fop : node.fops) count += !fop.answer && !fop.transfers.empty() ? 1 : 0;
    return count;
}

}  // namespace

TEST_CASE("reqh client wait: 128 foms that wait for their clients keep no other fop waiting",
          "[reqh]") {
    HandlerWorld node({.max_foms = 8, .buffer_count = 256});
    for (int i = 0; i < 128; ++i) {
        node.send(of_client(bulk_echo(8 * kOneBuffer, 1h), static_cast<std::uint8_t>(i % 4)));
    }
    const FakeFop& control = node.send(ping());
    node.settle();
    CHECK(control.answer.has_value());
    node.world.run_for(1s);
    CHECK(under_way(node) > 100);

    for (int i = 0; i < 20; ++i) {
        const FakeFop& other = node.send(of_client(bulk_echo(kOneBuffer, 1ms), 9));
        const FakeFop& again = node.send(ping());
        node.settle();
        CHECK(again.answer.has_value());
        node.world.run_for(3ms);
        CHECK(other.answer.has_value());
    }
}

TEST_CASE("reqh client wait: what is executed counts more memory than what waits", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    // The first one runs, and is not slow yet when the second one comes.
    const FakeFop& running = node.send(of_client(bulk_echo(kOneBuffer, 15ms), 1));
    const FakeFop& waiting = node.send(of_client(bulk_echo(kOneBuffer, 15ms), 1));
    node.world.run_for(5ms);
    CHECK(running.memory_taken > sizeof(Operation));
    CHECK(waiting.memory_taken == 0);

    node.world.run_for(1s);
    CHECK(waiting.memory_taken == running.memory_taken);
}

TEST_CASE("reqh client wait: without memory in its principal's share no fop is executed",
          "[reqh]") {
    HandlerWorld node;
    FopSpec spec = of_client(bulk_echo(kOneBuffer), 1);
    spec.has_memory = false;
    const FakeFop& refused = node.send(spec);
    const FakeFop& other = node.send(of_client(bulk_echo(kOneBuffer), 2));
    node.world.run_for(1s);

    CHECK(refused.status() == fop::Status::kTryAgain);
    CHECK_FALSE(refused.has_started);
    CHECK(refused.transfers.empty());
    CHECK(refused.memory_taken == 0);
    CHECK(other.status() == fop::Status::kDone);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh client wait: each wait for a recall counts memory", "[reqh]") {
    HandlerWorld node;
    const std::array<fop::Fid, 64> fids{};
    const auto wait_for = [&](std::size_t count) {
        FopSpec spec;
        spec.type = fop::find_fop_type("recall_wait")->number;
        spec.body = fop::RecallWait{.fids = {fids.data(), count}};
        const FakeFop& fop = node.send(spec);
        node.world.run_for(1s);
        REQUIRE(fop.answer.has_value());
        return fop.memory_taken;
    };

    CHECK(wait_for(64) >= wait_for(1) + 63 * 1024UL);
}

TEST_CASE("reqh client wait: a fom whose client is back counts again", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    const FakeFop& slow = node.send(of_client(bulk_echo(kOneBuffer, 100ms), 1));
    const FakeFop& first = node.send(of_client(bulk_echo(2 * kOneBuffer, 15ms), 2));
    const FakeFop& second = node.send(of_client(bulk_echo(kOneBuffer, 15ms), 2));
    node.world.run_for(30ms);
    CHECK_FALSE(first.transfers.empty());
    CHECK(second.transfers.empty());
    node.world.run_for(1s);
    CHECK(slow.status() == fop::Status::kDone);
    CHECK(second.status() == fop::Status::kDone);
}

TEST_CASE("reqh client wait: control fops have room beside data that runs", "[reqh]") {
    HandlerWorld node({.max_foms = 1});
    node.send(bulk_echo(4 * kOneBuffer, 10ms));
    node.send(bulk_echo(4 * kOneBuffer, 10ms));
    for (int i = 0; i < 50; ++i) {
        const FakeFop& control = node.send(ping());
        node.settle();
        REQUIRE(control.answer.has_value());
    }
}

TEST_CASE(
    "reqh client wait: no client has more than its share of the buffers, and none all of them",
    "[reqh]") {
    HandlerWorld node({.max_foms = 128, .buffer_count = 64});
    for (int i = 0; i < 64; ++i) node.send(of_client(bulk_echo(kOneBuffer, 1h), 1));
    node.settle();
    CHECK(under_way(node) == 48);
    node.world.run_for(25ms);
    for (std::uint8_t client = 2; client < 34; ++client) {
        for (int i = 0; i < 64; ++i) node.send(of_client(bulk_echo(kOneBuffer, 1h), client));
    }
    node.world.run_for(25ms);
    CHECK(node.buffers.free_count() >= 8);

    const FakeFop& other = node.send(of_client(bulk_echo(kOneBuffer, 1ms), 1, "bob"));
    node.world.run_for(3ms);
    CHECK(other.answer.has_value());
}

TEST_CASE("reqh client wait: a client at its share delays no other", "[reqh]") {
    HandlerWorld node({.max_foms = 128, .buffer_count = 16});
    for (int i = 0; i < 10; ++i) node.send(of_client(bulk_echo(kOneBuffer, 10ms), 1));
    const FakeFop& other = node.send(of_client(bulk_echo(kOneBuffer, 1ms), 2));
    node.world.run_for(3ms);
    CHECK(other.answer.has_value());
    node.world.run_for(1s);
    // In the order in which they came.
    for (int i = 0; i < 10; ++i) {
        REQUIRE(node.fops[static_cast<std::size_t>(i)].status() == fop::Status::kDone);
        if (i == 0) continue;
        CHECK(node.fops[static_cast<std::size_t>(i)].answer->at >=
              node.fops[static_cast<std::size_t>(i - 1)].answer->at);
    }
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh client wait: a client that is too slow loses its buffer when others want it",
          "[reqh]") {
    HandlerWorld node({.max_foms = 128, .buffer_count = 1});
    const FakeFop& slow = node.send(of_client(bulk_echo(kOneBuffer, 1h), 1));
    node.world.run_for(10s);
    CHECK_FALSE(slow.answer.has_value());
    const FakeFop& other = node.send(of_client(bulk_echo(kOneBuffer, 1ms), 2));
    node.world.run_for(2s);
    REQUIRE(slow.answer.has_value());
    CHECK(slow.status() == fop::Status::kTryAgain);
    CHECK(slow.answer->words == "the client transferred no bytes for too long");
    CHECK(other.status() == fop::Status::kDone);
}

TEST_CASE("reqh client wait: no fop waits for its client for ever", "[reqh]") {
    HandlerWorld node;
    const FakeFop& slow = node.send(bulk_echo(kOneBuffer, 1h));
    node.world.run_for(29s);
    CHECK_FALSE(slow.answer.has_value());
    node.world.run_for(2s);
    CHECK(slow.status() == fop::Status::kTryAgain);
    CHECK(node.all_buffers_are_back());
}

TEST_CASE("reqh client wait: a fop that waits for its share can be cancelled and drained",
          "[reqh]") {
    HandlerWorld node({.max_foms = 128, .buffer_count = 1});
    node.send(bulk_echo(kOneBuffer, 1s));
    FakeFop& given_up = node.send(bulk_echo(kOneBuffer));
    const FakeFop& drained = node.send(bulk_echo(kOneBuffer));
    node.settle();
    given_up.cancel_source().cancel();
    CHECK(given_up.status() == fop::Status::kCancelled);
    CHECK_FALSE(drained.answer.has_value());
    node.handler.drain();
    node.settle();
    CHECK(drained.status() == fop::Status::kTryAgain);
    node.world.run_for(10s);
    CHECK(node.all_buffers_are_back());
}
