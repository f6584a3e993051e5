// Goal: every transport keeps the contract of fabric/transport.h.
// Method: a server and a client on reactors of their own, in each world a transport runs in. A test
// waits for what must come; that something does not come is looked at where it would have come by
// then, in the order of one connection. FOPD_TEST_VERBS is the address of an RDMA adapter of this
// host: with it, this adapter alone is tested. The file is long because the contract is.

#include <array>
#include <string>

#include "tests/fabric/transport_kinds.h"

namespace transport_conformance_test {

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

Kind any_kind() {
    return GENERATE(from_range(kinds_to_test()));
}

// Bytes in which every place looks different from its neighbours.
std::string pattern(std::size_t size, unsigned salt) {
    std::string bytes(size, '\0');
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251 + salt);
    return bytes;
}

std::string numbered(std::string_view who, int number) {
    return std::string(who) + ' ' + std::to_string(number);
}

}  // namespace

// -- making connections --

TEST_CASE("fabric transport: connect and accept hand their data over", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const std::string hello = pattern(kHelloBytesMax, 1);
    const std::string answer = pattern(kHelloBytesMax, 2);

    End& client = stage.client().connect(stage.address(), hello);
    End& server = stage.server().accept(stage.server().request(), answer);

    REQUIRE(stage.client().wait([&] { return client.connected; }));
    REQUIRE(stage.server().wait([&] { return server.connected; }));
    REQUIRE(stage.server().hellos == std::vector{hello});
    REQUIRE(client.answer == answer);
    REQUIRE(server.answer.empty());
}

TEST_CASE("fabric transport: both ends know the address of their peer", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);

    const Pair pair = stage.connect();

    REQUIRE_FALSE(pair.server.connection->peer().empty());
    REQUIRE_THAT(pair.client.connection->peer(),
                 ContainsSubstring(std::to_string(stage.address().port)));
}

TEST_CASE("fabric transport: a refusal carries its words", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    End& client = stage.client().connect(stage.address());
    auto request = stage.server().request();

    stage.server().run([&] {
        request->refuse("no place left");
        request.reset();
    });

    REQUIRE(stage.client().wait([&] { return client.closed.has_value(); }));
    REQUIRE(client.closed == Errc::kDenied);
    REQUIRE(client.words == "no place left");
    REQUIRE_FALSE(client.connected);
}

TEST_CASE("fabric transport: a request that is dropped is refused", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    End& client = stage.client().connect(stage.address());
    auto request = stage.server().request();

    stage.server().run([&] { request.reset(); });

    REQUIRE(stage.client().wait([&] { return client.closed.has_value(); }));
    REQUIRE(client.closed == Errc::kDenied);
}

TEST_CASE("fabric transport: a connect without a listener is not found", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const auto nobody = parse_address(kind.nobody_at);
    REQUIRE(nobody.has_value());

    End& client = stage.client().connect(*nobody);

    REQUIRE(stage.client().wait([&] { return client.closed.has_value(); }));
    REQUIRE(client.closed == Errc::kNotFound);
}

TEST_CASE("fabric transport: an address is taken until its acceptor stops", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const std::string place = format_address(stage.address());

    const auto taken = stage.client().listen(place);
    REQUIRE_FALSE(taken.has_value());
    REQUIRE(taken.error().code == Errc::kBusy);

    stage.server().stop_listening();
    REQUIRE(stage.server().listen(place) == stage.address());
    stage.connect();
}

TEST_CASE("fabric transport: closing while connecting ends it at both sides", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    End& client = stage.client().connect(stage.address());
    auto request = stage.server().request();

    client.close();
    End& server = stage.server().accept(std::move(request));

    REQUIRE(stage.server().wait([&] { return server.closed.has_value(); }));
    REQUIRE(server.closed == Errc::kClosed);
    REQUIRE(client.calls == 0);
}

TEST_CASE("fabric transport: a request is accepted on another reactor", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    Process& locality = stage.add_locality();
    End& client = stage.client().connect(stage.address());

    End& server = locality.accept(stage.server().request());
    REQUIRE(stage.client().wait([&] { return client.connected; }));
    client.send("to the locality");

    REQUIRE(locality.wait([&] { return locality.messages.size() == 1; }));
    REQUIRE(server.connected);
    REQUIRE(stage.server().messages.empty());
}

TEST_CASE("fabric transport: one machine has many connections", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    std::vector<std::string> expected;

    for (int i = 0; i < 64; ++i) {
        const Pair pair = stage.connect();
        expected.push_back(numbered("from", i));
        pair.client.send(expected.back());
    }

    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 64; }));
    std::vector<std::string> received = stage.server().messages;
    std::ranges::sort(received);
    std::ranges::sort(expected);
    REQUIRE(received == expected);
}

// -- messages --

TEST_CASE("fabric transport: a message comes with the connection that has delivered it",
          "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair first = stage.connect();
    const Pair second = stage.connect();

    second.client.send("one");
    second.client.send("two");
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 2; }));
    first.client.send("three");
    first.server.send("answer");
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 3; }));
    REQUIRE(stage.client().wait([&] { return stage.client().messages.size() == 1; }));

    const auto told = [&](const End& end) {
        return end.process.seen([&] { return end.messages; });
    };
    const std::size_t times = kind.tells_connection ? 1 : 0;
    REQUIRE(told(second.server) == 2 * times);
    REQUIRE(told(first.server) == times);
    REQUIRE(told(first.client) == times);
    REQUIRE(told(second.client) == 0);
}

TEST_CASE("fabric transport: messages keep their order in both directions", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    constexpr int kCount = 1000;
    std::vector<std::string> from_client;
    std::vector<std::string> from_server;

    for (int i = 0; i < kCount; ++i) {
        from_client.push_back(numbered("client", i));
        from_server.push_back(numbered("server", i));
        pair.client.send(from_client.back());
        pair.server.send(from_server.back());
    }

    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == kCount; }));
    REQUIRE(stage.client().wait([&] { return stage.client().messages.size() == kCount; }));
    REQUIRE(stage.server().messages == from_client);
    REQUIRE(stage.client().messages == from_server);
    REQUIRE((stage.client().are_aligned && stage.server().are_aligned));
    REQUIRE(stage.client().wait([&] { return pair.client.idle(); }));
    REQUIRE(std::ranges::all_of(pair.client.ops, &Op::fine));
}

TEST_CASE("fabric transport: a message may fill a receive buffer", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind, {.receive_buffer_count = 4, .receive_buffer_bytes = 8192});
    const Pair pair = stage.connect();
    const std::string text = pattern(8192, 3);

    for (int i = 0; i < 20; ++i) pair.client.send(text);

    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 20; }));
    REQUIRE(stage.server().messages == std::vector<std::string>(20, text));
}

TEST_CASE("fabric transport: memory that was sent may be used again", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& memory = stage.client().memory(std::string(4096, 'a'));
    std::vector<std::string> expected;
    int rounds = 0;
    // Each completion writes the next message into the same memory.
    std::function<void()> next = [&] {
        expected.emplace_back(4096, static_cast<char>('a' + rounds % 26));
        memory.bytes.assign(expected.back());
        if (++rounds <= 200) pair.client.send(memory).then = next;
    };

    stage.client().run(next);

    REQUIRE(stage.client().wait([&] { return rounds == 201; }));
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 200; }));
    expected.pop_back();
    REQUIRE(stage.server().messages == expected);
}

// -- transfers --

TEST_CASE("fabric transport: opened memory is read", "[fabric]") {
    const Kind kind = any_kind();
    const std::size_t size = GENERATE(0U, 1U, 4096U, 1U << 20);
    CAPTURE(kind, size);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(pattern(size + 100, 4));
    Memory& ours = stage.server().memory(std::string(size, '\0'));
    RemoteMemory opened = stage.client().open(theirs, Access::kRead);

    opened.address += 50;
    Op& op = pair.server.read(ours, opened);

    REQUIRE(stage.server().wait([&] { return op.done(); }));
    REQUIRE(op.fine());
    REQUIRE(ours.bytes == theirs.bytes.substr(50, size));
    opened.address -= 50;
    stage.client().close(opened);
}

TEST_CASE("fabric transport: opened memory is written", "[fabric]") {
    const Kind kind = any_kind();
    const std::size_t size = GENERATE(0U, 1U, 4096U, 1U << 20);
    CAPTURE(kind, size);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(std::string(size + 100, '.'));
    Memory& ours = stage.server().memory(pattern(size, 5));
    RemoteMemory opened = stage.client().open(theirs, Access::kWrite);

    opened.address += 50;
    Op& op = pair.server.write(ours, opened);

    REQUIRE(stage.server().wait([&] { return op.done(); }));
    REQUIRE(op.fine());
    pair.server.send("written");
    REQUIRE(stage.client().wait([&] { return stage.client().messages.size() == 1; }));
    opened.address -= 50;
    stage.client().close(opened);
    REQUIRE(theirs.bytes == std::string(50, '.') + ours.bytes + std::string(50, '.'));
}

TEST_CASE("fabric transport: transfers and messages of many sizes mix", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& source = stage.client().memory(pattern(256U << 10, 6));
    Memory& target = stage.client().memory(std::string(256U << 10, '\0'));
    const RemoteMemory readable = stage.client().open(source, Access::kRead);
    const RemoteMemory writable = stage.client().open(target, Access::kWrite);
    constexpr std::size_t kPartBytes = 16U << 10;

    for (std::size_t at = 0; at < source.bytes.size(); at += kPartBytes) {
        Memory& part = stage.server().memory(std::string(kPartBytes, '\0'));
        Op& fetched =
            pair.server.read(part, {.address = readable.address + at, .key = readable.key});
        stage.server().run([&, at] {
            const auto write_back = [&, at] {
                pair.server.write(part, {.address = writable.address + at, .key = writable.key});
                pair.server.send(numbered("part", static_cast<int>(at)));
            };
            fetched.done() ? write_back() : void(fetched.then = write_back);
        });
    }

    REQUIRE(stage.client().wait([&] { return stage.client().messages.size() == 16; }));
    REQUIRE(stage.server().wait([&] { return pair.server.idle(); }));
    REQUIRE(std::ranges::all_of(pair.server.ops, &Op::fine));
    stage.client().close(writable);
    stage.client().close(readable);
    REQUIRE(target.bytes == source.bytes);
}

namespace {

// Transfers that memory of 4096 bytes, opened for reading and for writing, does not allow.
struct Trespass {
    const char* name;
    bool is_read;
    Access opened_for;
    std::uint64_t offset;
    std::uint64_t key_change;
};
constexpr std::array kTrespasses{
    Trespass{"read with a wrong key", true, Access::kRead, 0, 0x5a5a5a},
    Trespass{"write with a wrong key", false, Access::kWrite, 0, 0x5a5a5a},
    Trespass{"read beyond the end", true, Access::kRead, 4000, 0},
    Trespass{"write beyond the end", false, Access::kWrite, 4000, 0},
    Trespass{"read before the beginning", true, Access::kRead, std::uint64_t{0} - 8, 0},
    Trespass{"read what is opened for writing", true, Access::kWrite, 0, 0},
    Trespass{"write what is opened for reading", false, Access::kRead, 0, 0},
};

}  // namespace

TEST_CASE("fabric transport: access to memory that is not opened ends the connection", "[fabric]") {
    const Kind kind = any_kind();
    const Trespass trespass = GENERATE(from_range(kTrespasses.begin(), kTrespasses.end()));
    CAPTURE(kind, trespass.name);
    Stage stage(kind);
    const Pair innocent = stage.connect();
    const Pair guilty = stage.connect();
    Memory& theirs = stage.client().memory(std::string(4096, '.'));
    Memory& ours = stage.server().memory(std::string(512, 'x'));
    const RemoteMemory opened = stage.client().open(theirs, trespass.opened_for);

    const RemoteMemory wrong{.address = opened.address + trespass.offset,
                             .key = opened.key ^ trespass.key_change};
    Op& op = trespass.is_read ? guilty.server.read(ours, wrong) : guilty.server.write(ours, wrong);

    REQUIRE(stage.server().wait([&] { return op.done() && guilty.server.closed; }));
    if (trespass.is_read || kind.confirms_writes) REQUIRE(op.failed());
    REQUIRE(stage.client().wait([&] { return guilty.client.closed.has_value(); }));
    REQUIRE((guilty.client.closed == Errc::kInvalid || guilty.client.closed == Errc::kClosed));
    round_trip(stage, innocent);
    REQUIRE_FALSE(stage.client().seen([&] { return innocent.client.closed; }).has_value());
    REQUIRE_FALSE(stage.server().seen([&] { return innocent.server.closed; }).has_value());
    stage.client().close(opened);
    REQUIRE(theirs.bytes == std::string(4096, '.'));
    // The end of memory that was to be read into may have changed.
    REQUIRE(ours.bytes.substr(0, 496) == std::string(496, 'x'));
}

TEST_CASE("fabric transport: memory that was closed is not touched any more", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(std::string(4096, '.'));
    Memory& ours = stage.server().memory(std::string(4096, 'x'));
    const RemoteMemory opened = stage.client().open(theirs, Access::kWrite);
    Op& before = pair.server.write(ours, opened);
    REQUIRE(stage.server().wait([&] { return before.done(); }));
    REQUIRE(before.fine());
    pair.server.send("written");
    REQUIRE(stage.client().wait([&] { return stage.client().messages.size() == 1; }));

    stage.client().close(opened);
    std::ranges::fill(theirs.bytes, '.');
    Op& op = pair.server.write(ours, opened);

    REQUIRE(stage.server().wait([&] { return op.done() && pair.server.closed; }));
    if (kind.confirms_writes) REQUIRE(op.failed());
    REQUIRE(theirs.bytes == std::string(4096, '.'));
}

// -- the end --

TEST_CASE("fabric transport: an idle connection sees that the peer closed", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();

    pair.client.close();

    REQUIRE(stage.server().wait([&] { return pair.server.closed.has_value(); }));
    REQUIRE(pair.server.closed == Errc::kClosed);
    REQUIRE(pair.client.calls == 1);
}

TEST_CASE("fabric transport: close completes all in flight and then is silent", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(pattern(64U << 10, 7));
    const RemoteMemory opened = stage.client().open(theirs, Access::kRead);
    // A peer that does nothing answers nothing.
    stage.client().loop().pause();
    std::vector<Memory*> memories;
    for (int i = 0; i < 16; ++i) {
        memories.push_back(&stage.server().memory(std::string(64U << 10, '-')));
        pair.server.read(*memories.back(), opened);
    }

    pair.server.close();

    REQUIRE(stage.server().wait([&] { return pair.server.idle(); }));
    std::vector<std::string> at_end;
    for (const Op& op : pair.server.ops) {
        REQUIRE((op.failed_with(Errc::kClosed) || (kind.answers_alone && op.fine())));
        at_end.emplace_back(text_of(op.local.bytes));
    }
    stage.client().loop().resume();
    REQUIRE(stage.client().wait([&] { return pair.client.closed.has_value(); }));
    REQUIRE(pair.server.calls == 1);
    // The end of memory that was to be read into may have changed.
    constexpr std::size_t kSame = (64U << 10) - 16;
    for (std::size_t i = 0; i < memories.size(); ++i) {
        REQUIRE(memories[i]->bytes == at_end[i]);
        if (kind.answers_alone) continue;
        REQUIRE(memories[i]->bytes.substr(0, kSame) == std::string(kSame, '-'));
    }
    stage.client().close(opened);
}

TEST_CASE("fabric transport: the peer's end completes all in flight", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(pattern(64U << 10, 8));
    const RemoteMemory opened = stage.client().open(theirs, Access::kRead);
    Memory& ours = stage.server().memory(std::string(64U << 10, '-'));

    stage.client().run([&] {
        pair.client.connection->close();
        stage.client().machine().close_memory(opened);
    });
    for (int i = 0; i < 16; ++i) pair.server.read(ours, opened);

    REQUIRE(stage.server().wait([&] { return pair.server.idle() && pair.server.closed; }));
    for (const Op& op : pair.server.ops) REQUIRE(op.failed_with(Errc::kClosed));
}

TEST_CASE("fabric transport: an operation after the end fails in a later poll", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& memory = stage.server().memory(std::string(100, 'x'));
    pair.client.close();
    REQUIRE(stage.server().wait([&] { return pair.server.closed.has_value(); }));
    bool completed_within = false;

    stage.server().run([&] {
        pair.server.send(memory);
        pair.server.read(memory, {});
        pair.server.write(memory, {});
        for (const Op& op : pair.server.ops) completed_within = completed_within || op.done();
    });

    REQUIRE(stage.server().wait([&] { return pair.server.idle(); }));
    REQUIRE_FALSE(completed_within);
    for (const Op& op : pair.server.ops) REQUIRE(op.failed_with(Errc::kClosed));
}

TEST_CASE("fabric transport: closing twice is closing once", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();

    stage.client().run([&] {
        pair.client.connection->close();
        pair.client.connection->close();
        pair.client.connection.reset();
    });

    REQUIRE(stage.server().wait([&] { return pair.server.closed.has_value(); }));
    REQUIRE(pair.server.closed == Errc::kClosed);
}

TEST_CASE("fabric transport: one connection's end leaves the others alone", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair first = stage.connect();
    const Pair second = stage.connect();

    first.client.close();
    REQUIRE(stage.server().wait([&] { return first.server.closed.has_value(); }));

    round_trip(stage, second);
    REQUIRE_FALSE(stage.server().seen([&] { return second.server.closed; }).has_value());
}

// -- from within callbacks --

TEST_CASE("fabric transport: a connection is destroyed from within on_connected", "[fabric]") {
    const Kind kind = any_kind();
    const bool at_client = GENERATE(true, false);
    CAPTURE(kind, at_client);
    Stage stage(kind);
    End& client = stage.client().connect(stage.address());
    auto request = stage.server().request();
    const auto destroy = [](End& end) {
        return [&end] {
            end.connection->close();
            end.connection.reset();
        };
    };
    if (at_client) stage.client().run([&] { client.when_connected = destroy(client); });
    End& server = stage.server().ends.emplace_back(stage.server());
    if (!at_client) server.when_connected = destroy(server);
    stage.server().run([&] {
        server.connection = stage.server().machine().accept(std::move(request), {}, server);
    });

    Process& other = at_client ? stage.server() : stage.client();
    End& witness = at_client ? server : client;
    REQUIRE(other.wait([&] { return witness.closed.has_value(); }));
    REQUIRE(witness.closed == Errc::kClosed);
}

TEST_CASE("fabric transport: a connection is destroyed from within on_closed", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair first = stage.connect();
    const Pair second = stage.connect();
    stage.server().run(
        [&] { first.server.when_closed = [&] { first.server.connection.reset(); }; });

    first.client.close();

    REQUIRE(stage.server().wait([&] { return first.server.connection == nullptr; }));
    round_trip(stage, second);
}

TEST_CASE("fabric transport: a connection is closed from within on_message", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    stage.server().run([&] {
        stage.server().when_message = [&] {
            pair.server.connection->close();
            pair.server.connection.reset();
        };
    });

    pair.client.send("the last one");

    REQUIRE(stage.client().wait([&] { return pair.client.closed.has_value(); }));
    REQUIRE(stage.server().seen([&] { return stage.server().messages; }) ==
            std::vector<std::string>{"the last one"});
    REQUIRE(stage.server().seen([&] { return pair.server.calls; }) == 1);
}

TEST_CASE("fabric transport: a connection is closed from within a completion", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(pattern(4096, 9));
    const RemoteMemory opened = stage.client().open(theirs, Access::kRead);
    Memory& ours = stage.server().memory(std::string(4096, '-'));

    stage.server().run([&] {
        pair.server.read(ours, opened).then = [&] { pair.server.connection->close(); };
        for (int i = 0; i < 8; ++i) pair.server.read(ours, opened);
    });

    REQUIRE(stage.server().wait([&] { return pair.server.idle(); }));
    REQUIRE(pair.server.ops.front().fine());
    for (const Op& op : pair.server.ops) REQUIRE(op.completions == 1);
    REQUIRE(stage.client().wait([&] { return pair.client.closed.has_value(); }));
    REQUIRE(pair.server.calls == 1);
    stage.client().close(opened);
}

TEST_CASE("fabric transport: a completion starts the next operation", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& memory = stage.client().memory("again");
    int sent = 0;
    std::function<void()> again = [&] {
        if (++sent < 100) pair.client.send(memory).then = again;
    };

    stage.client().run([&] { pair.client.send(memory).then = again; });

    REQUIRE(stage.client().wait([&] { return sent == 100; }));
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() == 100; }));
}

}  // namespace transport_conformance_test
