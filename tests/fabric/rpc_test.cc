#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <utility>

#include "tests/fabric/rpc_calls.h"

// Goal: what calls are promised, in the simulated world: answered once, given up in time, ended in
// order when the server drains or is gone. Method: a server and a client in the simulated world,
// whose network the tests cut.

namespace fopd::fabric::testing::rpc {

TEST_CASE("fabric rpc: an echo returns its payload", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    EchoResult result;

    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "hello", &result)));

    REQUIRE(result.answer.has_value());
    REQUIRE(result.answer->status == fop::Status::kDone);
    REQUIRE(result.text == "hello");
}

TEST_CASE("fabric rpc: a client that closes its session is not counted as lost", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    const HostStatistics& figures = stage.server->host.statistics();
    stage.transport.network().lose_connections({.from = "client", .to = "server"},
                                               LossNotice::kBoth);
    stage.world.run_for(10s);
    REQUIRE(figures.lost.get() == 1);
    REQUIRE(client.open());

    REQUIRE(stage.world.run(*stage.client_reactor, client.close()));
    stage.world.run_for(1s);
    CHECK(figures.sessions.get() == 0);
    CHECK(figures.lost.get() == 1);
}

TEST_CASE("fabric rpc: hundreds of calls at once are packed, and each gets its own answer",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    std::vector<EchoResult> results(500);
    for (std::size_t i = 0; i < results.size(); ++i) {
        stage.client_reactor->spawn(
            stage.gate,
            echo(&client, std::string(i * 17 % 4096, 'a') + std::to_string(i), &results[i]));
    }

    stage.world.run_for(5s);

    for (std::size_t i = 0; i < results.size(); ++i) {
        CAPTURE(i);
        REQUIRE(results[i].done);
        REQUIRE(results[i].answer.has_value());
        REQUIRE(results[i].text == std::string(i * 17 % 4096, 'a') + std::to_string(i));
    }
    const auto& statistics = client.session().statistics();
    REQUIRE(statistics.fops == 500);
    REQUIRE(statistics.messages_out < 250);
}

TEST_CASE("fabric rpc: what a fop takes while it runs counts for its principal", "[fabric]") {
    RpcStage stage;
    stage.stop_server();
    stage.rpc_options.request_bytes_max = 64U << 10;
    stage.start_server(2);
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult first;
    EchoResult second;
    EchoResult third;
    stage.client_reactor->spawn(stage.gate, echo(&client, "first", &first));
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 1);
    const std::uint64_t before = stage.server->server.request_bytes();
    CHECK(before >= kFopBytes);
    IncomingFop& held = *stage.server->foms.held[0];

    stage.in_server([&held] {
        // The only one may take more than there is.
        CHECK(held.may_take_memory(70'000));
        held.takes_memory(60'000);
    });
    CHECK(stage.server->server.request_bytes() == before + 60'000);
    stage.client_reactor->spawn(stage.gate, echo(&client, "second", &second));
    stage.world.run_for(10ms);
    REQUIRE(second.answer.has_value());
    CHECK(second.answer->status == fop::Status::kTryAgain);

    stage.answer_held();
    stage.server->foms.hold = false;
    stage.client_reactor->spawn(stage.gate, echo(&client, "third", &third));
    stage.world.run_for(10ms);
    CHECK(first.text == "first");
    CHECK(third.text == "third");
    CHECK(stage.server->server.request_bytes() == 0);
}

TEST_CASE("fabric rpc: a fop that would take more than its principal may have is put off",
          "[fabric]") {
    RpcStage stage;
    stage.stop_server();
    stage.rpc_options.request_bytes_max = 64U << 10;
    stage.start_server(2);
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::deque<EchoResult> results(2);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, "text", &each));
    }
    stage.world.run_for(10ms);
    REQUIRE(stage.server->foms.held.size() == 2);
    const core::Counter& lacked = stage.server->server.statistics().lacked_requests;

    stage.in_server([&stage] {
        IncomingFop& first = *stage.server->foms.held[0];
        IncomingFop& second = *stage.server->foms.held[1];
        CHECK(first.may_take_memory(40'000));
        first.takes_memory(40'000);
        CHECK(second.may_take_memory(10'000));
        CHECK_FALSE(second.may_take_memory(30'000));
        first.takes_memory(20'000);
        CHECK_FALSE(second.may_take_memory(10'000));
    });

    CHECK(lacked.get() == 2);
    stage.answer_held();
    stage.world.run_for(10ms);
    CHECK(std::ranges::all_of(results, [](const EchoResult& each) { return each.text == "text"; }));
    CHECK(stage.server->server.request_bytes() == 0);
}

TEST_CASE("fabric rpc: bulk data is pulled and pushed", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    std::string from(1'000'000, 'x');
    from[999'999] = 'y';
    std::string into(1'000'000, '.');
    EchoResult result;

    REQUIRE(stage.world.run(*stage.client_reactor, bulk_echo(&client, &from, &into, &result)));

    REQUIRE(result.answer.has_value());
    REQUIRE(result.answer->status == fop::Status::kDone);
    REQUIRE(into == from);
}

TEST_CASE("fabric rpc: a wrong key and an unknown one are refused alike", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connect(credentials(key_of(2)));

    const auto open = stage.world.run(
        *stage.client_reactor,
        client.connected(after(stage.world.now(), 10s), Client::Tries::kUntilDeadline));

    REQUIRE(open.has_value());
    REQUIRE_FALSE(open->has_value());
    REQUIRE(open->error().code == Errc::kDenied);
    stage.world.run_for(1ms);
    REQUIRE(stage.server->events.count("fabric.session_refused") == 1);
    EchoResult result;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "hello", &result)));
    REQUIRE(result.answer.error().code == Errc::kDenied);
}

TEST_CASE("fabric rpc: a server that is not there is found when it comes", "[fabric]") {
    RpcStage stage;
    stage.stop_server();
    Client& client = stage.connect();
    EchoResult result;
    stage.client_reactor->spawn(stage.gate, echo(&client, "hello", &result));
    stage.world.run_for(20s);
    REQUIRE_FALSE(result.done);

    stage.start_server(2);
    stage.world.run_for(20s);

    REQUIRE(result.done);
    REQUIRE(result.text == "hello");
}

TEST_CASE("fabric rpc: what bodies refer to is kept on both sides", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::vector<EchoResult> results(20);
    for (std::size_t i = 0; i < results.size(); ++i) {
        stage.client_reactor->spawn(stage.gate,
                                    create(&client, "name " + std::to_string(i), &results[i]));
    }
    stage.world.run_for(10ms);

    const auto held = stage.server->foms.held;
    REQUIRE_FALSE(held.empty());
    for (std::size_t i = 0; i < held.size(); ++i) {
        REQUIRE(std::get<fop::Create>(held[i]->request().body).name == "name " + std::to_string(i));
        REQUIRE(std::get<fop::Create>(held[i]->request().body).group == "staff");
    }
    stage.server->foms.hold = false;
    {
        std::array<std::uint32_t, 3> checksums{1, 2, 3};
        stage.reply_to_held({.body = fop::ReadReply{.bytes = 5, .checksums = checksums}});
        checksums.fill(0);
    }
    stage.world.run_for(10ms);

    REQUIRE(results[0].answer.has_value());
    const auto& read = std::get<fop::ReadReply>(results[0].answer->body);
    REQUIRE(std::ranges::equal(read.checksums, std::array<std::uint32_t, 3>{1, 2, 3}));
}

TEST_CASE("fabric rpc: a deadline ends a call in time, and the server hears of it", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult result;
    stage.client_reactor->spawn(stage.gate,
                                echo(&client, "late", &result, after(stage.world.now(), 100ms)));

    stage.world.run_for(101ms);

    REQUIRE(result.done);
    REQUIRE(result.answer.error().code == Errc::kTimedOut);
    stage.world.run_for(1ms);
    REQUIRE(stage.server->foms.held.front()->cancel_source().cancelled());
}

TEST_CASE(
    "fabric rpc: memory of a call that is given up comes back before the reply, and no "
    "other call notices",
    "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult late;
    EchoResult other;
    stage.client_reactor->spawn(stage.gate, echo(&client, "other", &other));
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &late, after(stage.world.now(), 100ms)));

    stage.world.run_for(110ms);

    REQUIRE(late.done);
    REQUIRE(late.answer.error().code == Errc::kTimedOut);
    REQUIRE(stage.server->foms.held.size() == 2);
    REQUIRE_FALSE(other.done);
    stage.answer_held();
    stage.world.run_for(1ms);
    REQUIRE(other.text == "other");
    REQUIRE(client.reconnects() == 0);
    REQUIRE(client.calls_in_flight() == 0);
}

// Begins a transfer of a fop that is held, and notes how it ended.
Task<void> pull_into(IncomingFop* fop, core::Buffer into, Result<void>* moved) {
    const auto source = std::get<fop::BulkEcho>(fop->request().body).source;
    *moved = co_await fop->pull(&source, 0, into);
}

TEST_CASE(
    "fabric rpc: memory of a call that is given up stays lent while a transfer is under way, "
    "if the transport cannot take it back",
    "[fabric]") {
    RpcStage stage(7, GivenUp::kEndsSession);
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult result;
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &result, after(stage.world.now(), 100ms)));
    stage.world.run_for(99ms);
    // The transfer takes longer than the deadline and the message that cancels.
    stage.transport.network().set_delay({.from = "server", .to = "client"},
                                        {.min = 20ms, .max = 20ms});
    Result<void> moved;
    stage.in_server([&stage, &moved] {
        stage.server_reactor->spawn(
            stage.gate,
            pull_into(stage.server->foms.held.front(),
                      {.data = stage.server->foms.memory.data(), .size_bytes = 4}, &moved));
    });

    stage.world.run_for(10ms);
    const bool was_cancelled = stage.server->foms.held.front()->cancel_source().cancelled();
    // A message that had left before the transfer ended would be there by now.
    stage.world.run_for(25ms);
    const bool was_early = result.done;
    stage.world.run_for(12ms);

    REQUIRE(was_cancelled);
    REQUIRE_FALSE(was_early);
    REQUIRE(result.done);
    REQUIRE_FALSE(moved.has_value());
    REQUIRE(client.reconnects() == 0);
    stage.answer_held();
}

TEST_CASE("fabric rpc: a transfer that is given up ends alone, and its memory is not touched later",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult late;
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &late, after(stage.world.now(), 100ms)));
    stage.world.run_for(10ms);
    // The data arrive long after the deadline, and before the answer to any later call.
    stage.transport.network().set_delay({.from = "client", .to = "server"}, {.min = 5s, .max = 5s});
    std::vector<std::byte>& memory = stage.server->foms.memory;
    Result<void> moved;
    stage.in_server([&stage, &memory, &moved] {
        stage.server_reactor->spawn(stage.gate,
                                    pull_into(stage.server->foms.held.front(),
                                              {.data = memory.data(), .size_bytes = 4}, &moved));
    });
    stage.world.run_for(100ms);

    REQUIRE_FALSE(moved.has_value());
    REQUIRE(moved.error().code == Errc::kTimedOut);
    std::ranges::fill(memory, std::byte{'!'});
    stage.server->foms.hold = false;
    stage.answer_held();
    EchoResult next;
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "next", &next)));
    REQUIRE(next.text == "next");
    REQUIRE(std::ranges::count(memory, std::byte{'!'}) ==
            static_cast<std::ptrdiff_t>(memory.size()));
    REQUIRE(client.reconnects() == 0);
    REQUIRE(stage.server->host.statistics().bytes_pulled.get() == 0);
}

// Writes what a fop that is held asked for, and notes how it ended.
Task<void> push_from(IncomingFop* fop, core::Buffer from, Result<void>* moved) {
    const auto target = std::get<fop::BulkEcho>(fop->request().body).target;
    *moved = co_await fop->push(&target, 0, from);
}

TEST_CASE(
    "fabric rpc: a call that is given up ends alone, and what the server still transfers has no "
    "effect",
    "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult late;
    EchoResult other;
    stage.client_reactor->spawn(stage.gate, echo(&client, "other", &other));
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &late, after(stage.world.now(), 100ms)));
    stage.world.run_for(10ms);
    // The server hears late that the call was given up.
    stage.transport.network().set_delay({.from = "client", .to = "server"}, {.min = 1s, .max = 1s});
    stage.world.run_for(91ms);
    const bool was_done = late.done;
    IncomingFop* const held = stage.server->foms.held.back();
    std::ranges::fill(stage.server->foms.memory, std::byte{'!'});
    Result<void> pulled;
    Result<void> pushed;
    const core::Buffer buffer{.data = stage.server->foms.memory.data(), .size_bytes = 4};
    stage.in_server([&] {
        stage.server_reactor->spawn(stage.gate, push_from(held, buffer, &pushed));
        stage.server_reactor->spawn(stage.gate, pull_into(held, buffer, &pulled));
    });
    stage.world.run_for(10s);

    REQUIRE(was_done);
    REQUIRE(late.answer.error().code == Errc::kTimedOut);
    REQUIRE(into == "....");
    stage.answer_held();
    stage.world.run_for(10s);
    REQUIRE(other.text == "other");
    REQUIRE(client.reconnects() == 0);
    REQUIRE(client.calls_in_flight() == 0);
    REQUIRE(into == "....");
}

TEST_CASE(
    "fabric rpc: a server that does not answer loses the session within 100 ms if the transport "
    "cannot take memory back, and other calls go on over the next one",
    "[fabric]") {
    RpcStage stage(7, GivenUp::kEndsSession);
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::string from = "data";
    std::string into = "....";
    EchoResult late;
    EchoResult other;
    stage.client_reactor->spawn(stage.gate, echo(&client, "other", &other));
    stage.client_reactor->spawn(
        stage.gate, bulk_echo(&client, &from, &into, &late, after(stage.world.now(), 100ms)));
    stage.world.run_for(10ms);
    stage.transport.network().block({.from = "client", .to = "server"});

    stage.world.run_for(190ms);

    REQUIRE(late.done);
    REQUIRE(late.answer.error().code == Errc::kTimedOut);
    REQUIRE_FALSE(other.done);
    stage.transport.network().unblock({.from = "client", .to = "server"});
    stage.server->foms.hold = false;
    stage.answer_held();
    stage.world.run_for(10s);
    REQUIRE(other.text == "other");
}

TEST_CASE("fabric rpc: a silent server is given up after the lease, an idle one is not",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.world.run_for(300s);
    REQUIRE(client.open());
    REQUIRE(client.reconnects() == 0);

    stage.transport.network().partition({.from = "client", .to = "server"});
    stage.world.run_for(31s);
    const bool lost = !client.open();
    stage.transport.network().heal({.from = "client", .to = "server"});
    stage.world.run_for(10s);

    REQUIRE(lost);
    REQUIRE(client.open());
    REQUIRE(stage.server->host.session_count() == 1);
}

TEST_CASE("fabric rpc: a client that accepts only small messages is told so, and affects no other",
          "[fabric]") {
    RpcStage stage;
    stage.client_options.machine.receive_buffer_bytes = 2048;
    Client& client = stage.connected();
    EchoResult large;
    EchoResult small;

    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, std::string(8000, 'x'), &large)));
    REQUIRE(stage.world.run(*stage.client_reactor, echo(&client, "small", &small)));

    REQUIRE(large.answer.has_value());
    REQUIRE(large.answer->status == fop::Status::kTooLarge);
    REQUIRE(small.text == "small");
}

TEST_CASE("fabric rpc: a server that drains is left, and what it has is answered", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    EchoResult held;
    EchoResult later;
    EchoResult last;
    stage.client_reactor->spawn(stage.gate, echo(&client, "held", &held));
    stage.world.run_for(1ms);

    stage.in_server([&stage] { stage.server->server.drain(); });
    stage.world.run_for(1ms);
    stage.client_reactor->spawn(stage.gate, echo(&client, "later", &later));
    stage.world.run_for(1ms);
    REQUIRE(stage.server->foms.arrived == 1);
    REQUIRE(later.done);
    REQUIRE(later.answer->status == fop::Status::kTryAgain);
    REQUIRE(later.answer->words == "the node is draining and takes no new requests");
    stage.answer_held();
    stage.world.run_for(10ms);
    REQUIRE(held.text == "held");
    REQUIRE_FALSE(client.open());
    // Long after the session, and while it tries to have another one.
    stage.world.run_for(20s);
    stage.client_reactor->spawn(stage.gate, echo(&client, "last", &last));
    stage.world.run_for(1ms);

    REQUIRE(last.done);
    REQUIRE(last.answer->status == fop::Status::kTryAgain);
}

TEST_CASE("fabric rpc: what waits to be sent when the server drains is answered", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    stage.server->foms.hold = true;
    std::vector<EchoResult> results(500);
    for (EchoResult& each : results) {
        stage.client_reactor->spawn(stage.gate, echo(&client, "one of many", &each));
    }
    stage.world.run_for(1ms);
    const auto sent = static_cast<std::ptrdiff_t>(stage.server->foms.arrived);
    REQUIRE(sent < 500);

    stage.in_server([&stage] { stage.server->server.drain(); });
    stage.world.run_for(1ms);

    REQUIRE(std::ranges::count_if(results, &EchoResult::done) == 500 - sent);
    for (const EchoResult& each : results) {
        if (each.done) REQUIRE(each.answer->status == fop::Status::kTryAgain);
    }
    stage.answer_held();
    stage.world.run_for(10ms);
    REQUIRE(std::ranges::count(results, "one of many", &EchoResult::text) == sent);
}

TEST_CASE("fabric rpc: a call that waits for a server is served by its next life", "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    EchoResult waiting;
    stage.in_server([&stage] { stage.server->server.drain(); });
    stage.world.run_for(1ms);

    stage.stop_server();
    stage.world.run_for(10s);
    stage.client_reactor->spawn(stage.gate, echo(&client, "waiting", &waiting));
    stage.world.run_for(10s);
    REQUIRE_FALSE(waiting.done);
    stage.start_server(2);
    stage.world.run_for(10s);

    REQUIRE(waiting.text == "waiting");
}

TEST_CASE("fabric rpc: what has not left is given up at once, with memory lent or not",
          "[fabric]") {
    RpcStage stage;
    Client& client = stage.connected();
    // Two fill each of the messages there are credits for; the last has come as far as lending.
    stage.transport.network().block({.from = "client", .to = "server"});
    std::array<EchoResult, 4> filling;
    EchoResult last;
    std::string from(1000, 'f');
    std::string into(1000, 'i');
    const Instant deadline = after(stage.world.now(), 100ms);
    for (std::size_t i = 0; i < filling.size(); ++i) {
        stage.client_reactor->spawn(
            stage.gate, echo(&client, std::string(i % 2 == 0 ? 12'000 : 3'760, 'x'), &filling[i]));
    }
    stage.client_reactor->spawn(stage.gate, bulk_echo(&client, &from, &into, &last, deadline));

    stage.world.run_for(101ms);

    REQUIRE(last.done);
    REQUIRE(last.answer.error().code == Errc::kTimedOut);
    stage.transport.network().unblock({.from = "client", .to = "server"});
    stage.world.run_for(1s);
    for (const EchoResult& each : filling) REQUIRE(each.answer.has_value());
    REQUIRE(stage.server->foms.bulk_runs == 0);
}

}  // namespace fopd::fabric::testing::rpc
