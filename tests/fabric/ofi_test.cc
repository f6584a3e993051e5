// Goal: the transport over libfabric keeps the transports' contract against real peers, and leaves
// nothing of the kernel's behind.
// Method: connections over the loopback device, to the same reactor, to one that stands still, to a
// process that is killed, and to plain sockets that do not speak the provider's protocol.

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/random.h"
#include "fabric/ofi_transport.h"
#include "tests/catch.h"
#include "tests/core/reactor_kinds.h"

using namespace fopd;
using namespace fopd::fabric;

namespace {

using core::testing::Kind;
using core::testing::make_real_reactor;

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

[[maybe_unused]] std::size_t descriptor_count() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// An operation with its own memory, which remembers how it ended.
struct Op final : TransferOp {
    explicit Op(std::string text) : Op(std::vector<std::byte>(text.size())) {
        std::ranges::copy(bytes_of(text), memory.begin());
    }
    explicit Op(std::vector<std::byte> bytes) : TransferOp(&on_complete), memory(std::move(bytes)) {
        local.bytes = memory;
    }
    static void on_complete(TransferOp& op) { ++static_cast<Op&>(op).completed; }

    std::vector<std::byte> memory;
    int completed = 0;
};

struct User final : ConnectionUser {
    void on_connected(std::span<const std::byte> data) override {
        connected = true;
        answer = text_of(data);
    }
    void on_closed(const Error& error, std::string_view text) override {
        reason = error;
        words = text;
        ++closed;
    }

    bool connected = false;
    std::string answer;
    std::optional<Error> reason;
    std::string words;
    int closed = 0;
};

struct Inbox final : MessageUser {
    void on_message(std::span<const std::byte> message) override {
        messages.push_back(text_of(message));
    }
    std::vector<std::string> messages;
};

struct Requests final : RequestUser {
    void on_request(std::unique_ptr<ConnectionRequest> request) override {
        waiting.push_back(std::move(request));
    }
    void on_silent(std::uint32_t count) override { silent += count; }

    std::deque<std::unique_ptr<ConnectionRequest>> waiting;
    std::uint32_t silent = 0;
};

core::NullEventSink no_events;

std::unique_ptr<Transport> make_transport() {
    auto random = std::make_shared<core::Random>(11);
    return make_ofi_transport(no_events, {.random_key = [random] { return random->next(); }});
}

const Address kAnyPort{.scheme = "tcp", .host = "127.0.0.1", .port = 0, .locality = {}};

// One reactor with a machine and an acceptor.
struct Node {
    explicit Node(AcceptorOptions accepting = {}, MachineOptions machine_options = {}) {
        machine = transport->make_machine(*reactor, inbox, machine_options).value();
        acceptor = transport->listen(*reactor, kAnyPort, requests, accepting).value();
    }
    ~Node() {
        requests.waiting.clear();
        run(acceptor->stop());
        run(machine->stop());
    }

    template <typename T>
    T run(Task<T> task) {
        return reactor->run_until_done(std::move(task));
    }
    // Turns until `done` holds; false when it does not within ten seconds.
    bool until(std::function<bool()> done) { return run(wait_until(std::move(done))); }
    Task<bool> wait_until(std::function<bool()> done) {
        const Instant deadline = after(reactor->now(), 10s);
        while (!done() && reactor->now() < deadline) {
            const auto slept = co_await reactor->sleep_for(200us);
            if (!slept) break;
        }
        co_return done();
    }

    std::unique_ptr<Transport> transport = make_transport();
    std::unique_ptr<core::Reactor> reactor = make_real_reactor(Kind::kUring);
    Inbox inbox;
    Requests requests;
    std::unique_ptr<TransferMachine> machine;
    std::unique_ptr<Acceptor> acceptor;
};

// Two ends of one connection.
struct Pair {
    explicit Pair(Node& both) : Pair(both, both) {}
    Pair(Node& client, Node& server) : client_node(client), server_node(server) {
        near = client.machine->connect(server.acceptor->address(), bytes_of("hello"), near_user);
        REQUIRE(server.until([&] {
            // The other reactor must move, too.
            if (&client != &server) client.until([] { return true; });
            return !server.requests.waiting.empty();
        }));
        auto request = std::move(server.requests.waiting.front());
        server.requests.waiting.pop_front();
        far = server.machine->accept(std::move(request), bytes_of("welcome"), far_user);
        REQUIRE(server.until([&] { return far_user.connected; }));
        REQUIRE(client.until([&] { return near_user.connected; }));
    }
    ~Pair() {
        near->close();
        far->close();
        client_node.until([&] { return near->in_flight() == 0; });
        server_node.until([&] { return far->in_flight() == 0; });
    }

    Node& client_node;
    Node& server_node;
    User near_user;
    User far_user;
    std::unique_ptr<Connection> near;
    std::unique_ptr<Connection> far;
};

}  // namespace

TEST_CASE("ofi: both sides of a connection get what the other gave along", "[ofi][real]") {
    Node node;
    User near_user;
    User far_user;
    auto near = node.machine->connect(node.acceptor->address(), bytes_of("hello"), near_user);

    REQUIRE(node.until([&] { return !node.requests.waiting.empty(); }));
    auto request = std::move(node.requests.waiting.front());
    CHECK(text_of(request->hello()) == "hello");
    CHECK(request->peer().starts_with("tcp://127.0.0.1:"));
    auto far = node.machine->accept(std::move(request), bytes_of("welcome"), far_user);
    REQUIRE(node.until([&] { return near_user.connected && far_user.connected; }));
    CHECK(near_user.answer == "welcome");
    CHECK(far_user.answer.empty());
    CHECK(near->peer() == format_address(node.acceptor->address()));

    near->close();
    REQUIRE(node.until([&] { return far_user.closed == 1; }));
    CHECK(far_user.reason->code == Errc::kClosed);
    CHECK(near_user.closed == 0);
}

TEST_CASE("ofi: messages arrive in order, both ways", "[ofi][real]") {
    Node node;
    Pair pair(node);
    std::deque<Op> sent;
    for (int i = 0; i < 3000; ++i) {
        pair.near->send(sent.emplace_back("near " + std::to_string(i)));
        pair.far->send(sent.emplace_back("far " + std::to_string(i)));
    }

    REQUIRE(node.until([&] { return node.inbox.messages.size() == 6000; }));
    REQUIRE(node.until([&] { return node.machine->in_flight() == 0; }));
    int near_next = 0;
    int far_next = 0;
    for (const std::string& message : node.inbox.messages) {
        int& next = message.starts_with("near") ? near_next : far_next;
        REQUIRE(message == (&next == &near_next ? "near " : "far ") + std::to_string(next));
        ++next;
    }
    for (const Op& op : sent) {
        REQUIRE(op.completed == 1);
        REQUIRE(op.result);
    }
}
