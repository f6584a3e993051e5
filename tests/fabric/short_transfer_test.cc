// Goal: a peer that answers a read with fewer bytes than it was asked for gains nothing by it: the
// read fails, and what its memory held before is in no byte that passes for an answer.
// Method: a connection over libfabric through a relay that cuts the answers on their way.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric/ofi/ofi_read_mark.h"
#include "fabric/ofi_transport.h"
#include "tests/catch.h"
#include "tests/core/reactor_kinds.h"

namespace fopd::fabric::testing::short_transfer_test {

namespace {

core::NullEventSink relay_events;

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

// Passes on what a client and a server of the tcp provider say, but for the answers of the client
// to reads: of each it takes off the end. A message of the provider has a header of 16 bytes or
// more: its second byte is the kind, the last eight are the length of all of it.
class CuttingRelay {
public:
    CuttingRelay(std::uint16_t server_port, std::size_t cut_bytes)
        : server_port_(server_port), cut_bytes_(cut_bytes) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        REQUIRE(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
        REQUIRE(::listen(listener_, 1) == 0);
        REQUIRE(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port = ntohs(address.sin_port);
        thread_ = std::thread([this] { run(); });
    }
    ~CuttingRelay() {
        stop_ = true;
        thread_.join();
        ::close(listener_);
    }
    CuttingRelay(const CuttingRelay&) = delete;
    CuttingRelay& operator=(const CuttingRelay&) = delete;

    std::uint16_t port = 0;
    std::atomic<int> cuts = 0;

private:
    static constexpr char kReadAnswer = 3;
    static constexpr std::size_t kHeaderBytes = 16;

    bool wait_for(pollfd* fds, nfds_t count) const {
        while (!stop_) {
            if (::poll(fds, count, 10) > 0) return true;
        }
        return false;
    }
    void run() {
        pollfd incoming{.fd = listener_, .events = POLLIN, .revents = 0};
        if (!wait_for(&incoming, 1)) return;
        const int client = ::accept(listener_, nullptr, nullptr);
        const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const sockaddr_in address = loopback(server_port_);
        if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
            relay(client, server);
        }
        ::close(client);
        ::close(server);
    }
    void relay(int client, int server) {
        std::array<pollfd, 2> both{pollfd{.fd = client, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = server, .events = POLLIN, .revents = 0}};
        std::string from_client;
        bool is_connected = false;
        while (wait_for(both.data(), both.size())) {
            std::array<char, 65536> buffer;
            if (both[1].revents != 0) {
                const ssize_t count = ::recv(server, buffer.data(), buffer.size(), 0);
                if (count <= 0) return;
                is_connected = true;
                send_all(client, {buffer.data(), static_cast<std::size_t>(count)});
            }
            if (both[0].revents != 0) {
                const ssize_t count = ::recv(client, buffer.data(), buffer.size(), 0);
                if (count <= 0) return;
                from_client.append(buffer.data(), static_cast<std::size_t>(count));
                // What comes before the server's answer is how connections are made.
                if (is_connected) {
                    pass_messages(from_client, server);
                } else {
                    send_all(server, from_client);
                    from_client.clear();
                }
            }
        }
    }
    void pass_messages(std::string& bytes, int server) {
        while (bytes.size() >= kHeaderBytes) {
            std::uint64_t size_bytes = 0;
            std::memcpy(&size_bytes, bytes.data() + 8, sizeof size_bytes);
            if (bytes.size() < size_bytes) return;
            std::string message = bytes.substr(0, size_bytes);
            bytes.erase(0, size_bytes);
            if (message[1] == kReadAnswer) {
                size_bytes -= cut_bytes_;
                std::memcpy(message.data() + 8, &size_bytes, sizeof size_bytes);
                message.resize(size_bytes);
                ++cuts;
            }
            send_all(server, message);
        }
    }
    static void send_all(int to, std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t count = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (count <= 0) return;
            bytes.remove_prefix(static_cast<std::size_t>(count));
        }
    }

    const std::uint16_t server_port_;
    const std::size_t cut_bytes_;
    int listener_ = -1;
    std::atomic<bool> stop_ = false;
    std::thread thread_;
};

struct ReadOp final : TransferOp {
    explicit ReadOp(std::size_t bytes) : TransferOp(&on_complete), memory(bytes, kOldByte) {
        local.bytes = memory;
    }
    static void on_complete(TransferOp& op) { ++static_cast<ReadOp&>(op).completed; }

    // What the last user of the memory left there.
    static constexpr std::byte kOldByte{0x5a};
    std::vector<std::byte> memory;
    int completed = 0;
};

// Both ends of a connection whose client's answers are cut, on one reactor.
class CutConnection final : RequestUser, MessageUser, ConnectionUser {
public:
    explicit CutConnection(std::size_t cut_bytes)
        : reactor_(core::testing::make_real_reactor(core::testing::Kind::kUring, {})),
          transport_(make_ofi_transport(relay_events, {.random_key = [this] { return ++keys_; }})),
          machine(*transport_->make_machine(*reactor_, *this, {})),
          acceptor_(*transport_->listen(
              *reactor_, {.scheme = kOfiTcpScheme, .host = "127.0.0.1", .port = 0, .locality = {}},
              *this, {})),
          relay(acceptor_->address().port, cut_bytes) {
        Address address = acceptor_->address();
        address.port = relay.port;
        client_ = machine->connect(address, {}, *this);
        REQUIRE(until([this] { return request_ != nullptr; }));
        server = machine->accept(std::move(request_), {}, *this);
        REQUIRE(until([this] { return connected_ == 2; }));
    }
    ~CutConnection() {
        client_->close();
        server->close();
        until([this] { return client_->in_flight() + server->in_flight() == 0; });
        client_.reset();
        server.reset();
        reactor_->run_until_done(acceptor_->stop());
        reactor_->run_until_done(machine->stop());
    }

    bool until(std::function<bool()> done) const {
        return reactor_->run_until_done(wait_until(std::move(done)));
    }

private:
    void on_request(std::unique_ptr<ConnectionRequest> request) override {
        request_ = std::move(request);
    }
    void on_silent(std::uint32_t) override {}
    void on_message(std::span<const std::byte>, const Connection*) override {}
    void on_connected(std::span<const std::byte>) override { ++connected_; }
    void on_closed(const Error&, std::string_view) override { ++closed; }
    Task<bool> wait_until(std::function<bool()> done) const {
        const Instant deadline = after(reactor_->now(), 60s);
        while (!done() && reactor_->now() < deadline) {
            const auto slept = co_await reactor_->sleep_for(200us);
            if (!slept) break;
        }
        co_return done();
    }

    std::uint64_t keys_ = 1000;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<Transport> transport_;

public:
    std::unique_ptr<TransferMachine> machine;

private:
    std::unique_ptr<Acceptor> acceptor_;
    std::unique_ptr<ConnectionRequest> request_;
    std::unique_ptr<Connection> client_;
    int connected_ = 0;

public:
    CuttingRelay relay;
    std::unique_ptr<Connection> server;
    int closed = 0;
};

}  // namespace

TEST_CASE("ofi: a read for which the provider reports another length fails", "[ofi]") {
    const std::size_t bytes = GENERATE(std::size_t{0}, std::size_t{8}, std::size_t{4096});
    CAPTURE(bytes);
    ReadOp read(bytes);
    read.kind = TransferOp::Kind::kRead;

    CHECK(came_whole(read, 0));  // It reports none.
    CHECK(came_whole(read, bytes));
    CHECK_FALSE(came_whole(read, bytes + 1));
    if (bytes > 1) CHECK_FALSE(came_whole(read, bytes - 1));
    read.kind = TransferOp::Kind::kWrite;
    CHECK(came_whole(read, bytes + 1));
}

TEST_CASE("ofi: a read that is answered with less than it asked for fails, or shows nothing old",
          "[ofi][real]") {
    const std::size_t bytes = GENERATE(std::size_t{8}, std::size_t{4096});
    const std::size_t cut = GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{16},
                                     std::size_t{1000}, std::size_t{4096});
    if (cut > bytes) return;
    CAPTURE(bytes, cut);
    CutConnection connection(cut);
    std::vector<std::byte> memory(bytes, std::byte{0xa5});
    const auto remote = connection.machine->open_memory(memory, Access::kRead);
    REQUIRE(remote.has_value());
    ReadOp read(bytes);
    read.remote = *remote;

    connection.server->read(read);
    REQUIRE(connection.until([&read] { return read.completed == 1; }));

    CHECK(connection.relay.cuts == 1);
    if (bytes >= 16 && cut >= 16) {
        CHECK_FALSE(read.result.has_value());
        CHECK(connection.until([&connection] { return connection.closed > 0; }));
    } else {
        CHECK(std::ranges::count(read.memory, std::byte{0xa5}) >=
              static_cast<std::ptrdiff_t>(bytes - cut));
    }
    // Whatever passes for an answer.
    if (read.result) {
        const auto tail = std::span(read.memory).last(cut);
        CHECK_FALSE(
            std::ranges::all_of(tail, [](std::byte each) { return each == ReadOp::kOldByte; }));
    }
    connection.machine->close_memory(*remote);
}

}  // namespace fopd::fabric::testing::short_transfer_test
