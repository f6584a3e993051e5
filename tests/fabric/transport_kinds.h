#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/random.h"
#include "core/reactor.h"
#include "core/virtual_world.h"
#include "fabric/mem/mem_transport.h"
#include "fabric/ofi_transport.h"
#include "fabric/tcp/tcp_transport.h"
#include "fop/prefix.h"
#include "tests/catch.h"
#include "tests/fabric/simulated_tcp.h"
#include "tests/fabric/transport_loops.h"

namespace fopd::fabric::testing {

// -- the kinds of transport --

// A transport and the world it runs in.
struct Kind {
    const char* name;
    World world;
    const char* listen_at;
    const char* nobody_at;
    std::unique_ptr<Transport> (*make)(core::VirtualWorld* world);  // Null in the real worlds.
    // Whether a write fails that the peer rejects. Otherwise only the connection ends.
    bool confirms_writes = true;
    // Both ends of a connection encrypt as soon as it is open.
    bool encrypts = false;
    // Whether transfers can be given up and opened memory be taken back.
    bool gives_up = true;
    // Whether each message comes with the connection that has delivered it.
    bool tells_connection = true;
    // Whether a peer whose reactor stands still answers transfers: its adapter does.
    bool answers_alone = false;
};

inline std::unique_ptr<Transport> make_simulated_mem(core::VirtualWorld*) {
    return std::make_unique<MemTransport>(MemNetworkOptions{.seed = 7, .delay = kSimulatedDelay});
}
inline std::unique_ptr<Transport> make_mem(core::VirtualWorld*) {
    return std::make_unique<MemTransport>();
}

// Over the loopback device.
inline std::unique_ptr<Transport> make_ofi_tcp(core::VirtualWorld*) {
    static core::NullEventSink events;
    return make_ofi_transport(events, {.random_key = &next_key});
}
inline std::unique_ptr<Transport> make_tcp(core::VirtualWorld*) {
    static core::NullEventSink events;
    return make_tcp_transport(events, {.random_key = &next_key});
}

// Over this host's RDMA adapter.
inline std::unique_ptr<Transport> make_verbs(core::VirtualWorld*) {
    static core::NullEventSink events;
    return make_ofi_transport(events, {.scheme = kVerbsScheme, .random_key = &next_key});
}

// A row for each; what has one passes the conformance suite.
inline constexpr std::array kAllKinds{
    Kind{"mem, virtual time", World::kVirtual, "mem://server:0", "mem://server:1",
         &make_simulated_mem},
    Kind{"mem, real time", World::kReal, "mem://server:0", "mem://server:1", &make_mem},
    Kind{"ofi, tcp", World::kReal, "ofi+tcp://127.0.0.1:0", "ofi+tcp://127.0.0.1:1", &make_ofi_tcp,
         true, false, false, false},
    Kind{"tcp, virtual time", World::kVirtual, "tcp://10.0.0.1:0", "tcp://10.0.0.1:1",
         &make_simulated_tcp, false},
    Kind{"tcp, virtual time, encrypted", World::kVirtual, "tcp://10.0.0.1:0", "tcp://10.0.0.1:1",
         &make_simulated_tcp, false, true},
    Kind{"tcp, poll", World::kReal, "tcp://127.0.0.1:0", "tcp://127.0.0.1:1", &make_tcp, false},
    Kind{"tcp, io_uring", World::kRealUring, "tcp://127.0.0.1:0", "tcp://127.0.0.1:1", &make_tcp,
         false},
    Kind{"tcp, poll, encrypted", World::kReal, "tcp://127.0.0.1:0", "tcp://127.0.0.1:1", &make_tcp,
         false, true},
    Kind{"tcp, io_uring, encrypted", World::kRealUring, "tcp://127.0.0.1:0", "tcp://127.0.0.1:1",
         &make_tcp, false, true},
};

inline Kind kind_named(std::string_view name) {
    const auto found = std::ranges::find(kAllKinds, name, &Kind::name);
    if (found == kAllKinds.end()) throw std::invalid_argument(std::string(name));
    return *found;
}

// Over the RDMA adapter whose address is in FOPD_TEST_VERBS; empty without it.
inline std::vector<Kind> verbs_kinds() {
    const char* const host = std::getenv("FOPD_TEST_VERBS");
    if (host == nullptr) return {};
    static const std::string listen_at = std::string("verbs://") + host + ":0";
    static const std::string nobody_at = std::string("verbs://") + host + ":1";
    const auto kind = [](const char* name, World world) {
        return Kind{
            name,  world, listen_at.c_str(), nobody_at.c_str(), &make_verbs, true, false, false,
            false, true};
    };
    return {kind("ofi, verbs, poll", World::kReal),
            kind("ofi, verbs, io_uring", World::kRealUring)};
}

// The kinds that the conformance suite tests: verbs alone if this host is said to have it.
inline std::vector<Kind> kinds_to_test() {
    std::vector<Kind> kinds = verbs_kinds();
    if (kinds.empty()) kinds.assign(kAllKinds.begin(), kAllKinds.end());
    return kinds;
}

inline std::ostream& operator<<(std::ostream& out, const Kind& kind) {
    return out << kind.name;
}

// -- actors --

class Process;

inline std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

inline std::array<std::byte, fop::Key::kSizeBytes> filled_with(std::byte value) {
    std::array<std::byte, fop::Key::kSizeBytes> bytes;
    bytes.fill(value);
    return bytes;
}

// Memory of a process, registered with its machine.
struct Memory {
    std::string bytes;
    void* registration = nullptr;

    std::span<std::byte> span() { return std::as_writable_bytes(std::span(bytes)); }
    LocalMemory local() { return {.bytes = span(), .registration = registration}; }
};

struct Op final : TransferOp {
    Op() : TransferOp(&on_complete) {}
    static void on_complete(TransferOp& op) {
        auto& self = static_cast<Op&>(op);
        ++self.completions;
        if (self.then) self.then();
    }
    bool done() const { return completions > 0; }
    bool fine() const { return completions == 1 && result.has_value(); }
    bool failed() const { return completions == 1 && !result.has_value(); }
    bool failed_with(Errc code) const { return failed() && result.error().code == code; }

    int completions = 0;
    std::function<void()> then;
};

// One end of a connection, and what it was told. Its operations are started in run() or callbacks.
class End final : public ConnectionUser {
public:
    explicit End(Process& owner) : process(owner) {}

    void on_connected(std::span<const std::byte> data) override;
    void on_closed(const Error& reason, std::string_view why) override {
        ++calls;
        closed = reason.code;
        reason_text = describe(reason);
        words = why;
        if (when_closed) when_closed();
    }

    Op& send(std::string_view text);
    Op& send(Memory& memory) { return start(&Connection::send, memory.local(), {}); }
    Op& read(Memory& into, const RemoteMemory& from) {
        return start(&Connection::read, into.local(), from);
    }
    Op& write(Memory& from, const RemoteMemory& into) {
        return start(&Connection::write, from.local(), into);
    }
    void close();
    bool idle() const { return connection == nullptr || connection->in_flight() == 0; }

    Process& process;
    std::unique_ptr<Connection> connection;
    bool connected = false;
    bool accepted = false;  // Otherwise it has connected.
    std::string answer;
    std::optional<Errc> closed;
    std::string reason_text;   // Why it was closed.
    std::size_t messages = 0;  // That it has delivered, if the transport tells.
    std::string words;
    int calls = 0;
    std::function<void()> when_connected;
    std::function<void()> when_closed;
    std::deque<Op> ops;

private:
    using Verb = void (Connection::*)(TransferOp&);
    Op& start(Verb verb, const LocalMemory& local, const RemoteMemory& remote);
};

// What one process has of the fabric: a machine, what it listens to, and its connections.
class Process final : public MessageUser, public RequestUser {
public:
    Process(Transport& transport, Loop& loop, const MachineOptions& options)
        : transport_(transport), loop_(loop) {
        run([&] {
            auto made = transport_.make_machine(loop_.reactor(), *this, options);
            if (!made) throw std::runtime_error(describe(made.error()));
            machine_ = std::move(*made);
        });
    }
    ~Process() {
        if (machine_ == nullptr) return;
        loop_.resume();  // A test that failed may have left it as it was.
        for (End& end : ends) end.close();
        CHECK(wait([this] { return std::ranges::all_of(ends, &End::idle); }));
        run([this] {
            requests.clear();
            for (End& end : ends) end.connection.reset();
        });
        if (acceptor != nullptr) stop_listening();
        finish(machine_->stop());
        run([this] { machine_.reset(); });
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // The process ends without a word: its objects go as they are, operations first.
    enum class Crash : std::uint8_t { kMachineFirst, kConnectionsFirst };
    void crash(Crash order) {
        run([&] {
            for (End& end : ends) end.ops.clear();
            if (order == Crash::kMachineFirst) machine_.reset();
            for (End& end : ends) end.connection.reset();
            machine_.reset();
            requests.clear();
            acceptor.reset();
        });
    }

    void run(const std::function<void()>& job) { loop_.run(job); }
    bool wait(const std::function<bool()>& holds) { return loop_.wait(holds); }
    // What `look` sees on the reactor's thread: for what its callbacks may still write to.
    template <typename Look>
    auto seen(Look look) {
        decltype(look()) value{};
        run([&] { value = look(); });
        return value;
    }
    Loop& loop() { return loop_; }
    TransferMachine& machine() { return *machine_; }

    Result<Address> listen(std::string_view text, const AcceptorOptions& options = {}) {
        Result<Address> address = parse_address(text);
        if (!address) return address;
        run([&] {
            auto made = transport_.listen(loop_.reactor(), *address, *this, options);
            if (!made) {
                address = std::unexpected(made.error());
                return;
            }
            acceptor = std::move(*made);
            address = acceptor->address();
        });
        return address;
    }
    void stop_listening() {
        finish(acceptor->stop());
        run([this] { acceptor.reset(); });
    }

    End& connect(const Address& peer, std::string_view hello = "hello") {
        End* end = nullptr;
        run([&] {
            end = &ends.emplace_back(*this);
            end->connection = machine_->connect(peer, bytes_of(hello), *end);
        });
        return *end;
    }
    // The oldest request, when it has come.
    std::unique_ptr<ConnectionRequest> request() {
        std::unique_ptr<ConnectionRequest> oldest;
        REQUIRE(wait([this] { return !requests.empty(); }));
        run([&] {
            oldest = std::move(requests.front());
            requests.pop_front();
        });
        return oldest;
    }
    End& accept(std::unique_ptr<ConnectionRequest> request, std::string_view answer = "answer") {
        End* end = nullptr;
        run([&] {
            end = &ends.emplace_back(*this);
            end->accepted = true;
            end->connection = machine_->accept(std::move(request), bytes_of(answer), *end);
        });
        return *end;
    }

    Memory& memory(std::string bytes) {
        Memory* made = nullptr;
        run([&] {
            made = &memories_.emplace_back();
            made->bytes = std::move(bytes);
            if (made->bytes.empty()) return;
            const auto registration = machine_->register_memory(made->span());
            if (!registration) throw std::runtime_error(describe(registration.error()));
            made->registration = *registration;
        });
        return *made;
    }
    RemoteMemory open(Memory& memory, Access access) {
        RemoteMemory opened;
        run([&] {
            const auto result = machine_->open_memory(memory.span(), access);
            if (!result) throw std::runtime_error(describe(result.error()));
            opened = *result;
        });
        return opened;
    }
    void close(const RemoteMemory& memory) {
        run([&] { machine_->close_memory(memory); });
    }

    // MessageUser and RequestUser.
    void on_message(std::span<const std::byte> message, const Connection* by) override {
        for (End& end : ends) {
            if (end.connection.get() == by) ++end.messages;
        }
        are_aligned &=
            reinterpret_cast<std::uintptr_t>(message.data()) % fop::kMessageAlignment == 0;
        messages.push_back(text_of(message));
        if (when_message) when_message();
    }
    void on_request(std::unique_ptr<ConnectionRequest> request) override {
        hellos.push_back(text_of(request->hello()));
        requests.push_back(std::move(request));
    }
    void on_silent(std::uint32_t) override {}
    void on_stranger(const Stranger& stranger) override { strangers.push_back(stranger); }

    std::deque<End> ends;
    std::vector<std::string> messages;
    bool are_aligned = true;  // All messages so far.
    std::vector<std::string> hellos;
    std::deque<std::unique_ptr<ConnectionRequest>> requests;
    std::vector<Stranger> strangers;
    std::unique_ptr<Acceptor> acceptor;
    std::function<void()> when_message;
    bool trusts_peers = true;                     // On each connection, as soon as it is made.
    std::string principal_of_next = "principal";  // Of the peers of connections made from now on.
    bool encrypts = false;                        // Each connection, as soon as it is open.

private:
    void finish(Task<void> task) {
        core::Gate gate;
        run([&] { loop_.reactor().spawn(gate, std::move(task)); });
        CHECK(wait([&] { return gate.count() == 0; }));
    }

    Transport& transport_;
    Loop& loop_;
    std::deque<Memory> memories_;  // Longer than the machine, which knows of them.
    std::unique_ptr<TransferMachine> machine_;
};

inline void End::on_connected(std::span<const std::byte> data) {
    ++calls;
    connected = true;
    answer = text_of(data);
    if (process.trusts_peers) connection->trust_peer(process.principal_of_next);
    if (process.encrypts) {
        const fop::Key from_client(filled_with(std::byte{1}));
        const fop::Key from_server(filled_with(std::byte{2}));
        connection->encrypt({.send = accepted ? from_server : from_client,
                             .receive = accepted ? from_client : from_server});
    }
    if (when_connected) when_connected();
}

inline Op& End::start(Verb verb, const LocalMemory& local, const RemoteMemory& remote) {
    Op* op = nullptr;
    process.run([&] {
        op = &ops.emplace_back();
        op->local = local;
        op->remote = remote;
        (connection.get()->*verb)(*op);
    });
    return *op;
}

inline Op& End::send(std::string_view text) {
    return send(process.memory(std::string(text)));
}

inline void End::close() {
    process.run([this] {
        if (connection != nullptr) connection->close();
    });
}

// -- the stage: a server that listens and a client, on reactors of their own --

struct Pair {
    End& client;
    End& server;
};

class Stage {
public:
    explicit Stage(const Kind& kind, MachineOptions options = {},
                   const AcceptorOptions& accepting = {}, std::uint64_t seed = 7) {
        real_world_ = kind.world;
        if (kind.world == World::kVirtual) world_.emplace(seed);
        transport_ = kind.make(world_ ? &*world_ : nullptr);
        options.host = "server";
        server_loop_ = make_loop();
        server_.emplace(*transport_, *server_loop_, options);
        options.host = "client";
        client_loop_ = make_loop();
        client_.emplace(*transport_, *client_loop_, options);
        server_->encrypts = client_->encrypts = kind.encrypts;
        const auto address = server_->listen(kind.listen_at, accepting);
        if (!address) throw std::runtime_error(describe(address.error()));
        address_ = *address;
    }

    Transport& transport() { return *transport_; }
    // Null in the real worlds.
    core::VirtualWorld* world() { return world_ ? &*world_ : nullptr; }
    Process& server() { return *server_; }
    Process& client() { return *client_; }
    // One more on the server's host, with a reactor of its own.
    Process& add_locality() {
        MachineOptions options;
        options.host = "server";
        locality_loop_ = make_loop();
        Process& made = locality_.emplace(*transport_, *locality_loop_, options);
        made.encrypts = server_->encrypts;
        return made;
    }
    const Address& address() const { return address_; }

    // A connection that both sides were told of.
    Pair connect() {
        End& client = client_->connect(address_);
        End& server = server_->accept(server_->request());
        REQUIRE(client_->wait([&] { return client.connected; }));
        REQUIRE(server_->wait([&] { return server.connected; }));
        return {.client = client, .server = server};
    }

private:
    std::unique_ptr<Loop> make_loop() {
        if (world_) return std::make_unique<VirtualLoop>(*world_);
        return std::make_unique<RealLoop>(real_world_);
    }

    World real_world_ = World::kReal;
    std::optional<ReplayedWorld> world_;
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Loop> server_loop_;
    std::unique_ptr<Loop> client_loop_;
    std::unique_ptr<Loop> locality_loop_;
    std::optional<Process> server_;
    std::optional<Process> client_;
    std::optional<Process> locality_;
    Address address_;
};

// Sends there and back: what either side had begun before has arrived by then.
inline void round_trip(Stage& stage, const Pair& pair) {
    const std::size_t at_server = stage.server().messages.size();
    pair.client.send("over and");
    REQUIRE(stage.server().wait([&] { return stage.server().messages.size() > at_server; }));
    const std::size_t at_client = stage.client().messages.size();
    pair.server.send("back");
    REQUIRE(stage.client().wait([&] { return stage.client().messages.size() > at_client; }));
}

}  // namespace fopd::fabric::testing
