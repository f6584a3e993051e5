// Goal: the transport over libfabric keeps the transports' contract against real peers, and leaves
// nothing of the kernel's behind.
// Method: connections over the loopback device, to the same reactor, to one that stands still, to a
// process that is killed, and to plain sockets that do not speak the provider's protocol.
// The file is long because these peers are made here, and each is used by several tests.

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/random.h"
#include "fabric/ofi_transport.h"
#include "tests/catch.h"
#include "tests/core/reactor_kinds.h"
#include "tests/slowness.h"

namespace ofi_test {

using namespace fopd;
using namespace fopd::fabric;

namespace {

using core::testing::Kind;
using core::testing::make_real_reactor;
using fopd::testing::kSlowness;

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

std::size_t descriptor_count() {
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
    void on_message(std::span<const std::byte> message, const Connection* /*by*/) override {
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

const Address kAnyPort{.scheme = kOfiTcpScheme, .host = "127.0.0.1", .port = 0, .locality = {}};

// One reactor with a machine and an acceptor.
struct Node {
    explicit Node(AcceptorOptions accepting = {}, MachineOptions machine_options = {},
                  core::ReactorOptions reactor_options = {})
        : reactor(make_real_reactor(Kind::kUring, reactor_options)) {
        machine = transport->make_machine(*reactor, inbox, machine_options).value();
        acceptor = transport->listen(*reactor, kAnyPort, requests, accepting).value();
    }
    ~Node() {
        requests.waiting.clear();
        run(acceptor->stop());
        run(machine->stop());
    }

    template <typename T>
    T run(Task<T> task) const {
        return reactor->run_until_done(std::move(task));
    }
    void turn_for(Duration span) const { run(pass(span)); }
    Task<void> pass(Duration span) const {
        [[maybe_unused]] const auto slept = co_await reactor->sleep_for(span);
    }
    // Turns until `done` holds; false when it does not within a minute.
    bool until(std::function<bool()> done) const { return run(wait_until(std::move(done))); }
    Task<bool> wait_until(std::function<bool()> done) const {
        const Instant deadline = after(reactor->now(), 60s);
        while (!done() && reactor->now() < deadline) {
            const auto slept = co_await reactor->sleep_for(200us);
            if (!slept) break;
        }
        co_return done();
    }

    std::unique_ptr<Transport> transport = make_transport();
    std::unique_ptr<core::Reactor> reactor;
    Inbox inbox;
    Requests requests;
    std::unique_ptr<TransferMachine> machine;
    std::unique_ptr<Acceptor> acceptor;
};

// Turns them one after the other until `done` holds; false when it does not within a minute.
bool turn_all(std::initializer_list<Node*> nodes, const std::function<bool()>& done) {
    const Instant deadline = after((*nodes.begin())->reactor->now(), 60s);
    while (!done()) {
        for (Node* node : nodes) node->turn_for(200us);
        if ((*nodes.begin())->reactor->now() > deadline) return false;
    }
    return true;
}

// Two ends of one connection, whose nodes may be one.
struct Pair {
    explicit Pair(Node& both) : Pair(both, both) {}
    Pair(Node& client, Node& server) : client_node(client), server_node(server) {
        near = client.machine->connect(server.acceptor->address(), bytes_of("hello"), near_user);
        REQUIRE(turn([&] { return !server.requests.waiting.empty(); }));
        auto request = std::move(server.requests.waiting.front());
        server.requests.waiting.pop_front();
        far = server.machine->accept(std::move(request), bytes_of("welcome"), far_user);
        REQUIRE(turn([&] { return far_user.connected && near_user.connected; }));
    }
    ~Pair() {
        near->close();
        far->close();
        turn([&] { return near->in_flight() + far->in_flight() == 0; });
    }
    bool turn(const std::function<bool()>& done) const {
        return turn_all({&client_node, &server_node}, done);
    }

    Node& client_node;
    Node& server_node;
    User near_user;
    User far_user;
    std::unique_ptr<Connection> near;
    std::unique_ptr<Connection> far;
};

// Memory opened to the peers of a machine.
struct Opened {
    Opened(TransferMachine& owner, std::size_t size_bytes, Access access)
        : machine(owner), memory(size_bytes), remote(owner.open_memory(memory, access).value()) {}
    ~Opened() { machine.close_memory(remote); }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

    TransferMachine& machine;
    std::vector<std::byte> memory;
    RemoteMemory remote;
};

void fill(std::span<std::byte> memory, std::uint64_t seed) {
    core::Random random(seed);
    for (std::byte& each : memory) each = static_cast<std::byte>(random.next());
}

// A socket that knows nothing of the provider's protocol.
class PlainSocket {
public:
    PlainSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) { REQUIRE(fd_ >= 0); }
    PlainSocket(PlainSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    PlainSocket(const PlainSocket&) = delete;
    PlainSocket& operator=(const PlainSocket&) = delete;
    PlainSocket& operator=(PlainSocket&&) = delete;
    ~PlainSocket() {
        if (fd_ >= 0) ::close(fd_);
    }

    void connect(std::uint16_t port) const {
        const sockaddr_in address = loopback(port);
        REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    }
    // The port it listens at.
    std::uint16_t listen() const {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        REQUIRE(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(fd_, 16) == 0);
        REQUIRE(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        return ntohs(address.sin_port);
    }
    void send(std::string_view text) const {
        REQUIRE(::send(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    }
    bool ended() const {
        char byte = 0;
        const ssize_t count = ::recv(fd_, &byte, 1, MSG_DONTWAIT);
        return count == 0 || (count < 0 && errno == ECONNRESET);
    }

private:
    static sockaddr_in loopback(std::uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        return address;
    }
    int fd_;
};

Address at_port(std::uint16_t port) {
    Address address = kAnyPort;
    address.port = port;
    return address;
}

}  // namespace

TEST_CASE("ofi: both sides of a connection get what the other gave along", "[ofi][real]") {
    Node node;
    User near_user;
    User far_user;
    auto near = node.machine->connect(node.acceptor->address(), bytes_of("hello"), near_user);

    REQUIRE(node.until([&] { return !node.requests.waiting.empty(); }));
    auto request = std::move(node.requests.waiting.front());
    CHECK(text_of(request->hello()) == "hello");
    CHECK(request->peer().starts_with("ofi+tcp://127.0.0.1:"));
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

TEST_CASE("ofi: a refusal brings the acceptor's words", "[ofi][real]") {
    Node node;
    User user;
    const auto connection = node.machine->connect(node.acceptor->address(), {}, user);
    REQUIRE(node.until([&] { return !node.requests.waiting.empty(); }));

    const std::string words = GENERATE(std::string("not you"), std::string(),
                                       std::string("sixty-four bytes") + std::string(48, '.'));
    if (words.empty()) {
        node.requests.waiting.clear();
    } else {
        node.requests.waiting.front()->refuse(words);
    }
    REQUIRE(node.until([&] { return user.closed == 1; }));
    CHECK(user.reason->code == Errc::kDenied);
    CHECK(user.words == words);
    CHECK_FALSE(user.connected);
}

TEST_CASE("ofi: why a connection cannot be made", "[ofi][real]") {
    Node node;
    User user;
    Address address = kAnyPort;
    Errc expected = Errc::kInvalid;
    SECTION("nobody listens") {
        PlainSocket socket;
        address.port = socket.listen();
        {
            const PlainSocket closing = std::move(socket);
        }
        expected = Errc::kNotFound;
    }
    SECTION("a name was not resolved") {
        address = {kOfiTcpScheme, "localhost", 1, {}};
    }
    SECTION("the scheme is another transport's") {
        address = {"mem", "127.0.0.1", 1, {}};
    }

    const auto connection = node.machine->connect(address, {}, user);
    CHECK(user.closed == 0);  // Not from within the call.
    REQUIRE(node.until([&] { return user.closed == 1; }));
    CHECK(user.reason->code == expected);
}

TEST_CASE("ofi: a peer that hangs up in the handshake never connects", "[ofi][real]") {
    Node node;
    User user;
    PlainSocket listening;
    const auto connection = node.machine->connect(at_port(listening.listen()), {}, user);
    node.turn_for(5ms);
    CHECK(user.closed == 0);

    {
        const PlainSocket closing = std::move(listening);
    }
    REQUIRE(node.until([&] { return user.closed == 1; }));
    CHECK(user.reason->code == Errc::kClosed);
}

TEST_CASE("ofi: an address that is taken is busy", "[ofi][real]") {
    Node node;
    const auto second =
        node.transport->listen(*node.reactor, node.acceptor->address(), node.requests, {});
    REQUIRE_FALSE(second);
    CHECK(second.error().code == Errc::kBusy);
    const auto name = node.transport->listen(*node.reactor, {kOfiTcpScheme, "localhost", 0, {}},
                                             node.requests, {});
    REQUIRE_FALSE(name);
    CHECK(name.error().code == Errc::kInvalid);
}

TEST_CASE("ofi: a request is accepted on another reactor than its acceptor's", "[ofi][real]") {
    Node node;
    const auto other = make_real_reactor(Kind::kUring);
    auto machine = node.transport->make_machine(*other, node.inbox, {}).value();
    const auto turn_other = [&] {
        other->run_until_done([](core::Reactor* reactor) -> Task<void> {
            [[maybe_unused]] const auto slept = co_await reactor->sleep_for(200us);
        }(other.get()));
    };
    User near_user;
    User far_user;
    User refused_user;
    {
        auto near = node.machine->connect(node.acceptor->address(), {}, near_user);
        const auto refused = node.machine->connect(node.acceptor->address(), {}, refused_user);
        REQUIRE(node.until([&] { return node.requests.waiting.size() == 2; }));
        auto far = machine->accept(std::move(node.requests.waiting.front()), {}, far_user);
        node.requests.waiting.pop_front();
        node.requests.waiting.front()->refuse("full");

        REQUIRE(node.until([&] {
            turn_other();
            return near_user.connected && far_user.connected && refused_user.closed == 1;
        }));
        Op op("from the other reactor");
        far->send(op);
        REQUIRE(node.until([&] {
            turn_other();
            return node.inbox.messages.size() == 1 && op.completed == 1;
        }));
        near->close();
        far->close();
    }
    other->run_until_done(machine->stop());
}

TEST_CASE("ofi: transfers move what the peer has opened", "[ofi][real]") {
    Node node;
    Pair pair(node);
    constexpr std::size_t kBytes = 3 << 20;
    Opened source(*node.machine, kBytes, Access::kRead);
    Opened target(*node.machine, kBytes, Access::kWrite);
    fill(source.memory, 1);
    Op read(std::vector<std::byte>(kBytes - 100));
    Op write(std::vector<std::byte>(kBytes - 100));
    fill(write.memory, 2);
    read.remote = {.address = source.remote.address + 50, .key = source.remote.key};
    write.remote = {.address = target.remote.address + 100, .key = target.remote.key};

    pair.near->read(read);
    pair.far->write(write);
    REQUIRE(node.until([&] { return read.completed + write.completed == 2; }));
    REQUIRE(read.result);
    REQUIRE(write.result);
    CHECK(std::ranges::equal(read.memory, std::span(source.memory).subspan(50, kBytes - 100)));
    CHECK(std::ranges::equal(write.memory, std::span(target.memory).subspan(100)));
    CHECK(target.memory[99] == std::byte{});
}

TEST_CASE("ofi: touching what was not opened ends that connection alone", "[ofi][real]") {
    Node node;
    Pair pair(node);
    Pair other(node);
    Opened readable(*node.machine, 4096, Access::kRead);
    Opened writable(*node.machine, 4096, Access::kWrite);
    Op op(std::vector<std::byte>(4096));
    SECTION("wrong key") {
        op.remote = {.address = readable.remote.address, .key = readable.remote.key + 1};
        pair.near->read(op);
    }
    SECTION("behind the end") {
        op.remote = {.address = readable.remote.address + 1, .key = readable.remote.key};
        pair.near->read(op);
    }
    SECTION("reading what is to be written") {
        op.remote = writable.remote;
        pair.near->read(op);
    }
    SECTION("writing what is to be read") {
        op.remote = readable.remote;
        pair.near->write(op);
    }
    SECTION("closed again") {
        {
            const Opened closed(*node.machine, 4096, Access::kWrite);
            op.remote = closed.remote;
        }
        pair.near->write(op);
    }

    REQUIRE(node.until([&] { return pair.near_user.closed + pair.far_user.closed == 2; }));
    CHECK(op.completed == 1);
    REQUIRE_FALSE(op.result);
    CHECK(op.result.error().code == Errc::kClosed);
    CHECK(pair.near_user.reason->code == Errc::kClosed);
    Op message("still here");
    other.near->send(message);
    REQUIRE(node.until([&] { return node.inbox.messages.size() == 1; }));
}

TEST_CASE("ofi: a message longer than the buffer ends its connection alone", "[ofi][real]") {
    Node node({}, {.receive_buffer_count = 8, .receive_buffer_bytes = 4096});
    Pair pair(node);
    Pair other(node);
    Op fits(std::string(4096, 'a'));
    pair.near->send(fits);
    REQUIRE(node.until([&] { return node.inbox.messages.size() == 1; }));
    Op too_long(std::string(4097, 'b'));
    pair.near->send(too_long);

    REQUIRE(node.until([&] { return pair.near_user.closed + pair.far_user.closed == 2; }));
    // Every buffer is still there.
    std::deque<Op> sent;
    for (int i = 0; i < 100; ++i) other.near->send(sent.emplace_back(std::string(4096, 'c')));
    REQUIRE(node.until([&] { return node.inbox.messages.size() == 101; }));
}

TEST_CASE("ofi: an operation started after the end completes as closed", "[ofi][real]") {
    Node node;
    Pair pair(node);
    pair.far->close();
    REQUIRE(node.until([&] { return pair.near_user.closed == 1; }));

    Op op("too late");
    pair.near->send(op);
    CHECK(op.completed == 0);
    CHECK(pair.near->in_flight() == 1);
    REQUIRE(node.until([&] { return op.completed == 1; }));
    CHECK(op.result.error().code == Errc::kClosed);
    CHECK(node.machine->in_flight() == 0);
}

TEST_CASE("ofi: closing completes all that is in flight, once, and nothing is touched afterwards",
          "[ofi][real]") {
    Node near_node;
    Node far_node;
    auto pair = std::make_unique<Pair>(near_node, far_node);
    constexpr std::size_t kBytes = 1 << 20;
    Opened source(*far_node.machine, kBytes, Access::kRead);
    Opened target(*far_node.machine, kBytes, Access::kWrite);
    fill(source.memory, 3);
    std::deque<Op> ops;
    for (int i = 0; i < 2000; ++i) pair->near->send(ops.emplace_back(std::string(1000, 's')));
    for (int i = 0; i < 32; ++i) {
        pair->near->read(ops.emplace_back(std::vector<std::byte>(kBytes)));
        ops.back().remote = source.remote;
    }
    for (int i = 0; i < 32; ++i) {
        ops.emplace_back(std::vector<std::byte>(kBytes)).remote = target.remote;
        pair->near->write(ops.back());
    }
    // The far side stands still: at once, or in the middle of its answers.
    const bool begun = GENERATE(false, true);
    if (begun) {
        REQUIRE(pair->turn([&] { return near_node.machine->in_flight() < 64 - 2; }));
    }

    pair->near->close();
    REQUIRE(near_node.until([&] { return pair->near->in_flight() == 0; }));
    CHECK(near_node.machine->in_flight() == 0);
    std::size_t failed = 0;
    for (Op& op : ops) {
        REQUIRE(op.completed == 1);
        if (!op.result) {
            REQUIRE(op.result.error().code == Errc::kClosed);
            ++failed;
        }
        fill(op.memory, 4);
    }
    CHECK(failed > 0);
    std::vector<std::byte> pattern = ops.back().memory;
    REQUIRE(pair->turn([&] { return pair->far_user.closed == 1; }));
    for (const Op& op : ops) {
        REQUIRE(std::equal(op.memory.begin(), op.memory.end(), pattern.begin()));
        REQUIRE(op.completed == 1);
    }
    CHECK(pair->near_user.closed == 0);
    pair.reset();

    // The provider's own memory is in order: many transfers at a time bring what they should.
    Pair second(near_node, far_node);
    std::deque<Op> reads;
    for (std::size_t i = 0; i < 256; ++i) {
        Op& op = reads.emplace_back(std::vector<std::byte>(4096));
        op.remote = {.address = source.remote.address + i * 4096, .key = source.remote.key};
        second.near->read(op);
    }
    REQUIRE(second.turn([&] { return near_node.machine->in_flight() == 0; }));
    for (std::size_t i = 0; i < reads.size(); ++i) {
        REQUIRE(reads[i].result);
        REQUIRE(
            std::ranges::equal(reads[i].memory, std::span(source.memory).subspan(i * 4096, 4096)));
    }
}

TEST_CASE("ofi: whoever is killed is missed at once", "[ofi][real]") {
    Node node;
    const bool accepted_here = GENERATE(false, true);
    int to_parent[2];
    REQUIRE(::pipe2(to_parent, O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        // Either it listens and opens memory, or it connects; then it does nothing any more.
        Node own;
        User user;
        std::unique_ptr<Connection> connection;
        std::vector<std::byte> memory(1 << 20);
        const RemoteMemory remote = own.machine->open_memory(memory, Access::kRead).value();
        const auto message = std::pair(own.acceptor->address().port, remote);
        if (::write(to_parent[1], &message, sizeof message) != sizeof message) ::_exit(1);
        if (accepted_here) {
            connection = own.machine->connect(node.acceptor->address(), {}, user);
        } else {
            own.until([&] { return !own.requests.waiting.empty(); });
            connection = own.machine->accept(std::move(own.requests.waiting.front()), {}, user);
        }
        own.until([&] { return user.connected; });
        while (true) ::pause();
    }
    std::pair<std::uint16_t, RemoteMemory> from_child;
    REQUIRE(::read(to_parent[0], &from_child, sizeof from_child) == sizeof from_child);
    ::close(to_parent[0]);
    ::close(to_parent[1]);
    User user;
    std::unique_ptr<Connection> connection;
    if (accepted_here) {
        REQUIRE(node.until([&] { return !node.requests.waiting.empty(); }));
        connection = node.machine->accept(std::move(node.requests.waiting.front()), {}, user);
        node.requests.waiting.clear();
    } else {
        connection = node.machine->connect(at_port(from_child.first), {}, user);
    }
    REQUIRE(node.until([&] { return user.connected; }));
    std::deque<Op> ops;
    for (int i = 0; i < 32; ++i) {
        ops.emplace_back(std::vector<std::byte>(1 << 20)).remote = from_child.second;
        connection->read(ops.back());
    }
    node.turn_for(5ms);

    ::kill(child, SIGKILL);
    const Instant killed = node.reactor->now();
    REQUIRE(node.until([&] { return user.closed == 1 && connection->in_flight() == 0; }));
    CHECK(node.reactor->now() - killed < 5s * kSlowness);
    ::waitpid(child, nullptr, 0);
    // It may have answered some before it stopped.
    CHECK_FALSE(ops.back().result);
    for (const Op& op : ops) {
        REQUIRE(op.completed == 1);
        REQUIRE((op.result || op.result.error().code == Errc::kClosed));
    }
}

TEST_CASE("ofi: closing ends a connection attempt without an answer", "[ofi][real]") {
    Node node;
    const PlainSocket listening;
    const std::uint16_t port = listening.listen();
    const std::size_t before = descriptor_count();
    User user;
    for (int i = 0; i < 3; ++i) {
        const auto connection = node.machine->connect(at_port(port), bytes_of("hello"), user);
        if (i > 0) node.turn_for(5ms);
        connection->close();
        if (i > 1) node.turn_for(5ms);
    }
    CHECK(node.until([&] { return descriptor_count() == before; }));
    CHECK(user.closed == 0);
    CHECK_FALSE(user.connected);
}

TEST_CASE("ofi: stopped machines and acceptors leave no descriptor", "[ofi][real]") {
    {
        const Node first;
    }  // What the library opens once stays open.
    const auto reactor = make_real_reactor(Kind::kUring);
    const std::size_t before = descriptor_count();
    {
        Node node;
        std::deque<Pair> pairs;
        for (int i = 0; i < 20; ++i) pairs.emplace_back(node);
        // Nor do those that are half-way in.
        std::vector<PlainSocket> silent(10);
        for (const PlainSocket& each : silent) each.connect(node.acceptor->address().port);
        silent.front().send("x");
        node.turn_for(5ms);
        // Or that want to.
        User user;
        const auto connection = node.machine->connect(node.acceptor->address(), {}, user);
        REQUIRE(node.until([&] { return !node.requests.waiting.empty(); }));
        connection->close();
    }
    CHECK(descriptor_count() == before);
}

TEST_CASE("ofi: a silent connection is ended after a while", "[ofi][real]") {
    // All of them connect before the first one is ended.
    constexpr Duration kSilence = 1s * kSlowness;
    Node node(AcceptorOptions{.silence_max = kSilence});
    Pair pair(node);
    const std::uint16_t port = node.acceptor->address().port;
    const std::size_t before = descriptor_count();
    std::vector<PlainSocket> silent(200);
    for (const PlainSocket& each : silent) each.connect(port);
    REQUIRE(node.until([&] { return descriptor_count() == before + 400; }));

    REQUIRE(node.until([&] { return node.requests.silent == 200; }));
    REQUIRE(node.until([&] { return descriptor_count() == before + 200; }));
    CHECK(std::ranges::all_of(silent, &PlainSocket::ended));
    // Who has said who he is may be silent for as long as he likes.
    node.turn_for(kSilence * 5 / 2);
    CHECK(pair.near_user.closed + pair.far_user.closed == 0);
    CHECK(node.requests.silent == 200);
}

TEST_CASE("ofi: silent connections that took the last descriptor do not keep it", "[ofi][real]") {
    Node node(AcceptorOptions{.silence_max = 100ms});
    const std::uint16_t port = node.acceptor->address().port;
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::vector<PlainSocket> silent(100);
        for (const PlainSocket& each : silent) each.connect(port);
        while (true) ::pause();
    }
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit few = before;
    few.rlim_cur = descriptor_count() + 40;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);

    const bool all_ended = node.until([&] { return node.requests.silent == 100; });
    const bool accepts = node.until([&] { return descriptor_count() + 30 < few.rlim_cur; });
    ::setrlimit(RLIMIT_NOFILE, &before);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    REQUIRE(all_ended);
    REQUIRE(accepts);
    const Pair pair(node);
}

TEST_CASE("ofi: a connection that sends garbage is ended at once", "[ofi][real]") {
    Node node;
    const PlainSocket socket;
    socket.connect(node.acceptor->address().port);
    socket.send(std::string(64, 'g'));
    REQUIRE(node.until([&] { return socket.ended(); }));
    CHECK(node.requests.waiting.empty());
    CHECK(node.requests.silent == 0);
}

TEST_CASE("ofi: idle connections let the reactor sleep", "[ofi][real]") {
    Node node;
    std::deque<Pair> pairs;
    for (int i = 0; i < 20; ++i) pairs.emplace_back(node);
    node.turn_for(200ms * kSlowness);
    const std::uint64_t before = node.reactor->stats().turns.get();
    node.turn_for(1s);
    CHECK(node.reactor->stats().turns.get() - before < 60);

    // And wake it when there is something to hear, without help from the cap.
    Op op("hello");
    pairs.front().near->send(op);
    const Instant sent = node.reactor->now();
    REQUIRE(node.until([&] { return node.inbox.messages.size() == 1; }));
    CHECK(node.reactor->now() - sent < 5s * kSlowness);
}

TEST_CASE("ofi: the reactor spins while operations are in flight or when something has come",
          "[ofi][real]") {
    Node near_node({}, {}, {.spin = 20us});
    Node far_node;
    Pair pair(near_node, far_node);
    Opened source(*far_node.machine, 4096, Access::kRead);
    const auto spins = [&] {
        const core::ReactorStats& stats = near_node.reactor->stats();
        return stats.spins_won.get() + stats.spins_lost.get();
    };
    // It does not once nothing is left of connecting.
    std::uint64_t before = 0;
    int rounds = 0;
    do {
        before = spins();
        near_node.turn_for(20ms);
    } while (spins() != before && ++rounds < 1000);
    CHECK(spins() == before);

    Op hello("hello");
    pair.far->send(hello);
    REQUIRE(pair.turn([&] { return near_node.inbox.messages.size() == 1; }));
    near_node.turn_for(20ms);
    CHECK(spins() > before);

    // The far side stands still.
    before = spins();
    std::deque<Op> ops;
    const auto read = [&] {
        ops.emplace_back(std::vector<std::byte>(4096)).remote = source.remote;
        pair.near->read(ops.back());
    };
    read();
    near_node.turn_for(20ms);
    CHECK(spins() > before);
    REQUIRE(pair.turn([&] { return near_node.machine->in_flight() == 0; }));
}

}  // namespace ofi_test
