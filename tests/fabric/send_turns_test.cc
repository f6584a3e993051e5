// Goal: what `tcp` sends in a turn is limited, and principals take turns in it, however many
// connections each of them has. Method: clients that read much from a server whose sockets take all
// data at once, so that nothing but the turns decides who is sent how much.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "fabric/tcp/kernel_sockets.h"
#include "tests/fabric/transport_kinds.h"

namespace fopd::fabric::testing::send_turns_test {

namespace {

constexpr std::size_t kGreedy = 9;  // Connections of the principal that has many.
// The last call that sends of it sends more than kFewBytes, encrypted or not.
constexpr std::size_t kReadBytes = (4U << 20) + (64U << 10);
constexpr std::size_t kFewBytes = 4U << 10;

// The kernel's sockets, but what is longer than a few bytes is not sent: it is noted, as if the
// peer had taken all of it at once.
class TakingSockets final : public Sockets {
public:
    struct Taken {
        int fd;
        std::size_t bytes;
    };
    // Both are used on the server's thread only.
    std::vector<int> accepted;
    std::vector<Taken> taken;
    // From now on what is longer than a few bytes fails to be sent, as if the peer had gone.
    bool has_peer_gone = false;
    // How often a few bytes were sent.
    std::atomic<std::size_t> short_sends = 0;

    std::size_t taken_bytes() const {
        std::size_t sum = 0;
        for (const Taken& each : taken) sum += each.bytes;
        return sum;
    }
    std::size_t taken_bytes_of(int fd) const {
        std::size_t sum = 0;
        for (const Taken& each : taken) sum += each.fd == fd ? each.bytes : 0;
        return sum;
    }
    // How much the other sockets had taken when this one took its last bytes.
    std::size_t taken_before_last_of(int fd) const {
        std::size_t others = 0;
        std::size_t before_last = 0;
        for (const Taken& each : taken) {
            if (each.fd == fd) {
                before_last = others;
            } else {
                others += each.bytes;
            }
        }
        return before_last;
    }

    bool is_simulated() const override { return real_.is_simulated(); }
    void abandon(core::IoOp& poll) override { real_.abandon(poll); }
    Result<Listening> listen(const Address& address, int backlog) override {
        return real_.listen(address, backlog);
    }
    int accept(int listening, SocketAddress& peer) override {
        const int fd = real_.accept(listening, peer);
        if (fd >= 0) accepted.push_back(fd);
        return fd;
    }
    Result<OwnedSocket> connect(const std::string& host, const SocketAddress& peer) override {
        return real_.connect(host, peer);
    }
    int connect_error(int fd) override { return real_.connect_error(fd); }
    ssize_t receive(int fd, std::span<iovec> parts) override { return real_.receive(fd, parts); }
    ssize_t send(int fd, std::span<iovec> parts, Follows follows) override {
        std::size_t total = 0;
        for (const iovec& each : parts) total += each.iov_len;
        if (total <= kFewBytes) {
            const ssize_t sent = real_.send(fd, parts, follows);
            ++short_sends;
            return sent;
        }
        if (has_peer_gone) return -EPIPE;
        taken.push_back({.fd = fd, .bytes = total});
        return static_cast<ssize_t>(total);
    }
    void end(int fd) override { real_.end(fd); }
    void close(int fd) override { real_.close(fd); }

private:
    KernelSockets real_;
};

class TakingTcp final : public Transport {
public:
    const char* name() const override { return tcp_->name(); }
    bool can_encrypt() const override { return tcp_->can_encrypt(); }
    Result<std::unique_ptr<TransferMachine>> make_machine(core::Reactor& reactor,
                                                          MessageUser& messages,
                                                          const MachineOptions& options) override {
        return tcp_->make_machine(reactor, messages, options);
    }
    Result<std::unique_ptr<Acceptor>> listen(core::Reactor& reactor, const Address& address,
                                             RequestUser& requests,
                                             const AcceptorOptions& options) override {
        return tcp_->listen(reactor, address, requests, options);
    }
    TakingSockets& sockets() { return sockets_; }

private:
    TakingSockets sockets_;
    core::NullEventSink events_;
    std::unique_ptr<Transport> tcp_ =
        make_tcp_transport(events_, {.random_key = &next_key, .sockets = &sockets_});
};

std::unique_ptr<Transport> make_taking_tcp(core::VirtualWorld*) {
    return std::make_unique<TakingTcp>();
}

struct Way {
    World world;
    bool encrypts;
};

Kind taking_kind(const Way& way) {
    return {.name = "tcp, peers take all",
            .world = way.world,
            .listen_at = "tcp://127.0.0.1:0",
            .nobody_at = "tcp://127.0.0.1:1",
            .make = &make_taking_tcp,
            .encrypts = way.encrypts};
}

Way any_way() {
    return GENERATE(Way{World::kReal, false}, Way{World::kReal, true},
                    Way{World::kRealUring, false}, Way{World::kRealUring, true});
}

// A server, and clients of two principals: "greedy" with many connections, and "modest" with one.
class TakingStage final : public Stage {
public:
    explicit TakingStage(const Way& way) : Stage(taking_kind(way)) {
        server().run([this] { server().principal_of_next = "greedy"; });
        for (std::size_t i = 0; i < kGreedy; ++i) greedy.push_back(connect());
        server().run([this] { server().principal_of_next = "modest"; });
        modest.push_back(connect());
        modest_fd = server().seen([this] { return sockets().accepted.back(); });
    }

    TakingSockets& sockets() { return static_cast<TakingTcp&>(transport()).sockets(); }

    // Each client reads. The server sees all requests at once.
    void read() {
        Memory& source = server().memory(std::string(kReadBytes, 'x'));
        const RemoteMemory opened = server().open(source, Access::kRead);
        Memory& target = client().memory(std::string(kReadBytes, '-'));
        server().loop().pause();
        const std::size_t before = sockets().short_sends;
        for (const Pair& each : greedy) each.client.read(target, opened);
        for (const Pair& each : modest) each.client.read(target, opened);
        REQUIRE(client().wait([&] { return sockets().short_sends >= before + greedy.size() + 1; }));
        server().loop().resume();
    }
    // Waits until the modest principal has got what it has asked for.
    bool modest_is_served() {
        return server().wait([this] { return sockets().taken_bytes_of(modest_fd) >= kReadBytes; });
    }

    std::vector<Pair> greedy;
    std::vector<Pair> modest;  // One.
    int modest_fd = -1;
};

// Notes how much is taken in a turn at most.
Task<void> watch_sends(core::Reactor* reactor, const TakingSockets* sockets, const bool* is_over,
                       std::size_t* most) {
    while (!*is_over) {
        const std::size_t before = sockets->taken_bytes();
        co_await reactor->yield();
        *most = std::max(*most, sockets->taken_bytes() - before);
    }
}

// Closes the connections after the turn that takes the first bytes.
Task<void> close_when_begun(core::Reactor* reactor, const TakingSockets* sockets,
                            const std::vector<Pair>* pairs) {
    std::size_t bytes = 0;
    while (bytes == 0) {
        co_await reactor->yield();
        bytes = sockets->taken_bytes();
    }
    for (const Pair& each : *pairs) each.server.connection->close();
}

}  // namespace

TEST_CASE("fabric tcp: reads of many connections of a principal take no turns from another",
          "[fabric]") {
    const Way way = any_way();
    CAPTURE(way.encrypts, way.world == World::kRealUring);
    TakingStage stage(way);

    stage.read();

    // What is left at the end of a turn is sent without any further event.
    REQUIRE(stage.modest_is_served());
    const std::size_t before_last =
        stage.server().seen([&] { return stage.sockets().taken_before_last_of(stage.modest_fd); });
    REQUIRE(before_last > 0);
    REQUIRE(before_last <= 3 * kReadBytes);
    REQUIRE(stage.server().wait(
        [&] { return stage.sockets().taken_bytes() >= (kGreedy + 1) * kReadBytes; }));
}

TEST_CASE("fabric tcp: what a turn sends is limited, however many connections ask", "[fabric]") {
    const Way way = any_way();
    CAPTURE(way.encrypts, way.world == World::kRealUring);
    TakingStage stage(way);
    Process& server = stage.server();
    core::Gate gate;
    bool is_over = false;
    std::size_t most = 0;
    server.run([&] {
        core::Reactor& reactor = server.loop().reactor();
        reactor.spawn(gate, watch_sends(&reactor, &stage.sockets(), &is_over, &most));
    });

    stage.read();

    REQUIRE(
        server.wait([&] { return stage.sockets().taken_bytes() >= (kGreedy + 1) * kReadBytes; }));
    server.run([&] { is_over = true; });
    REQUIRE(server.wait([&] { return gate.count() == 0; }));
    REQUIRE(most > 0);
    // Encrypting a byte takes longer than copying one.
    REQUIRE(most <= (way.encrypts ? 2U << 20 : 6U << 20));
}

TEST_CASE("fabric tcp: connections that end with something left to send take no more turns",
          "[fabric]") {
    const Way way = any_way();
    CAPTURE(way.encrypts, way.world == World::kRealUring);
    TakingStage stage(way);
    Process& server = stage.server();
    core::Gate gate;
    server.run([&] {
        core::Reactor& reactor = server.loop().reactor();
        reactor.spawn(gate, close_when_begun(&reactor, &stage.sockets(), &stage.greedy));
    });

    stage.read();

    REQUIRE(stage.modest_is_served());
    REQUIRE(server.wait([&] { return gate.count() == 0; }));
    const std::size_t others = server.seen([&] {
        return stage.sockets().taken_bytes() - stage.sockets().taken_bytes_of(stage.modest_fd);
    });
    REQUIRE(others < kGreedy * kReadBytes / 2);
}

TEST_CASE("fabric tcp: many messages do not wait for the end of the turn", "[fabric]") {
    constexpr std::size_t kBytes = 16U << 10;
    constexpr std::size_t kMessages = 200;
    const Way way = any_way();
    CAPTURE(way.encrypts, way.world == World::kRealUring);
    TakingStage stage(way);
    Memory& message = stage.server().memory(std::string(kBytes, 'x'));
    std::vector<std::size_t> taken;

    stage.server().run([&] {
        for (std::size_t i = 0; i < kMessages; ++i) {
            stage.modest.front().server.send(message);
            taken.push_back(stage.sockets().taken_bytes());
        }
    });

    CHECK(taken[0] == 0);
    CHECK(taken[1] > 0);
    CHECK(taken[3] > taken[1]);
    // The rest waits, so that others have their part of the turn.
    CHECK(taken.back() < kMessages * kBytes);
    CHECK(taken.back() == taken[kMessages - 2]);
    REQUIRE(
        stage.server().wait([&] { return stage.sockets().taken_bytes() >= kMessages * kBytes; }));
}

TEST_CASE("fabric tcp: a send that fails while a message is received loses no later message",
          "[fabric]") {
    const Way way = any_way();
    CAPTURE(way.encrypts, way.world == World::kRealUring);
    TakingStage stage(way);
    Process& server = stage.server();
    Memory& reply = server.memory(std::string(40U << 10, 'x'));
    End& near = stage.modest.front().client;
    End& far = stage.modest.front().server;
    server.run([&] {
        server.when_message = [&] {
            if (server.messages.size() > 1) return;
            // The second message is there before the send of the reply fails.
            const Op& second = near.send("second");
            stage.client().wait([&] { return second.done(); });
            stage.sockets().has_peer_gone = true;
            far.send(reply);
        };
    });

    near.send("first");

    REQUIRE(server.wait([&] { return far.closed.has_value(); }));
    CHECK(server.seen([&] { return server.messages; }) ==
          std::vector<std::string>{"first", "second"});
}

}  // namespace fopd::fabric::testing::send_turns_test
