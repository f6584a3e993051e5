#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/poller.h"
#include "core/reactor.h"
#include "core/result.h"
#include "fabric/address.h"

namespace fopd::fabric {

// What may go wrong with a connection, in the kinds of Error:
//   kClosed     the peer, the network or this side ended it;
//   kDenied     the peer's acceptor refused it; Refusal has its words;
//   kNotFound   nobody listens there;
//   kInvalid    the address makes no sense. Where a transport can tell: the peer asked for memory
//               it was not offered, or sent more than a buffer holds; else that is kClosed.

// Where a peer's memory is that it has opened for a transfer. Only the peer knows what the numbers
// mean; they come in a descriptor that the peer has sealed.
struct RemoteMemory {
    std::uint64_t address = 0;
    std::uint64_t key = 0;
};

// Memory this side sends from or transfers from or to. `registration` is what
// TransferMachine::register_memory() gave for the region it lies in.
struct LocalMemory {
    std::span<std::byte> bytes;
    void* registration = nullptr;
};

class Connection;

// Something a connection was asked to do: filled in, started, completed exactly once. Neither moved
// nor destroyed in between, and neither is its memory: the hardware may be at it until then.
struct TransferOp {
    using Complete = void (*)(TransferOp&);
    explicit TransferOp(Complete on_complete) : complete(on_complete) {}
    TransferOp(const TransferOp&) = delete;
    TransferOp& operator=(const TransferOp&) = delete;

    // The transport's own. It must stay the first member.
    std::array<void*, 8> provider_space{};
    Complete complete;
    LocalMemory local;
    RemoteMemory remote;  // For read() and write().
    // The outcome, for complete(). A message is sent when the memory may be used again, which is no
    // promise that it has arrived; written memory is in place at the peer. What is read has come
    // whole: a peer that answers with less ends the connection, and leaves the memory with nothing
    // that was there before in its last bytes.
    Result<void> result;
    bool in_flight = false;

    // The transport's own while it is in flight.
    enum class Kind : std::uint8_t { kSend, kRead, kWrite };
    Kind kind = Kind::kSend;
    Connection* connection = nullptr;
    TransferOp* next = nullptr;
    std::array<std::byte, 16> tail{};  // What a read's memory ends with until the last byte came.
};

// Whom a connection tells what becomes of it. Called from the machine's poll(), never from within a
// call made to the connection; may start operations and close connections.
class ConnectionUser {
public:
    // Operations may be started. `answer` is what the acceptor's side gave to accept(); empty at
    // the side that accepted.
    virtual void on_connected(std::span<const std::byte> answer) = 0;
    // It has ended, or never came to be; once, and not after close(). What is in flight completes
    // as kClosed, before or after. The user then destroys the connection when nothing is in flight.
    // `words` are the acceptor's when it refused.
    virtual void on_closed(const Error& reason, std::string_view words) = 0;

protected:
    ~ConnectionUser() = default;
};

// One end of a connection: reliable, ordered messages both ways, and transfers from and to memory
// the peer has opened. Belongs to the machine that made it, and to that machine's reactor. Sends
// never fail at once: what cannot be started completes with an error from the next poll().
class Connection {
public:
    // Requires: closed, by either side, and nothing in flight.
    virtual ~Connection() = default;

    virtual void send(TransferOp& op) = 0;
    // Reads from the peer's memory into the local one.
    virtual void read(TransferOp& op) = 0;
    // Writes the local memory into the peer's.
    virtual void write(TransferOp& op) = 0;

    // Ends it, also while it is being made. Everything in flight completes as kClosed within a few
    // turns, and the user is called no more but for that. When nothing is in flight any more, the
    // peer has no way left to the memory that was opened to it. Idempotent.
    virtual void close() = 0;

    // Operations that have not completed.
    virtual std::uint32_t in_flight() const = 0;
    // The peer's address and port, for logs.
    virtual std::string peer() const = 0;
};

// What an acceptor may say when it refuses, on every transport.
inline constexpr std::size_t kRefusalBytesMax = 64;

// Somebody wants to connect. Made by an acceptor, movable to the thread of the machine that is to
// accept it; destroyed without that, it refuses.
class ConnectionRequest {
public:
    virtual ~ConnectionRequest() = default;
    virtual std::span<const std::byte> hello() const = 0;
    virtual std::string peer() const = 0;
    // Refuses with words for the peer's log, at most kRefusalBytesMax.
    virtual void refuse(std::string_view words) = 0;
};

// Who gets the messages of all connections of a machine. A message does not say which connection it
// came from: its sender must prove that in its bytes.
class MessageUser {
public:
    // `message` is borrowed for the call; then its buffer takes the next one.
    virtual void on_message(std::span<const std::byte> message) = 0;

protected:
    ~MessageUser() = default;
};

// What memory that is opened to a peer may be used for.
enum class Access : std::uint8_t { kRead, kWrite };

struct MachineOptions {
    std::uint32_t receive_buffer_count = 1024;
    std::uint32_t receive_buffer_bytes = 16U << 10;
    // Where the machine stands, for a transport whose hosts are names.
    std::string host = "localhost";
};

// Connect and accept data are at most this long, on every transport.
inline constexpr std::size_t kHelloBytesMax = 48;

// A locality's share of a fabric: what its connections have in common — receive buffers, completion
// queue, event queue. Lives on one reactor, whose every turn it takes part in from its creation on.
class TransferMachine {
public:
    // Requires: no connection of it exists, no memory is opened.
    virtual ~TransferMachine() = default;

    // Registers memory with the hardware for local use, where it wants that; the result goes into
    // LocalMemory. It stays registered as long as the machine lives.
    virtual Result<void*> register_memory(std::span<std::byte> memory) = 0;

    // Opens memory to the peers, until close_memory(); after that no peer begins to touch it. A
    // transfer that a peer has begun may go on for a while: so it is closed when the peer has said
    // that it is done, or when the connection has ended and has nothing in flight.
    virtual Result<RemoteMemory> open_memory(std::span<std::byte> memory, Access access) = 0;
    virtual void close_memory(const RemoteMemory& memory) = 0;

    // Begins to connect; `user` hears how that went. There is no deadline but the user's own: who
    // gives up calls close(). `hello` is at most kHelloBytesMax long.
    virtual std::unique_ptr<Connection> connect(const Address& peer,
                                                std::span<const std::byte> hello,
                                                ConnectionUser& user) = 0;
    // Takes a request of this transport's acceptor; `user` hears on_connected() or on_closed().
    virtual std::unique_ptr<Connection> accept(std::unique_ptr<ConnectionRequest> request,
                                               std::span<const std::byte> answer,
                                               ConnectionUser& user) = 0;

    // Gives back what the machine holds of the kernel, the fd it waits for above all. Awaited once,
    // after every connection is gone and before the machine is destroyed.
    virtual Task<void> stop() = 0;

    // Whether the connections may take turns of a reactor that looks for work without sleeping.
    virtual std::uint32_t in_flight() const = 0;
};

// Whom an acceptor hands connection requests to, on the acceptor's reactor.
class RequestUser {
public:
    virtual void on_request(std::unique_ptr<ConnectionRequest> request) = 0;
    // `count` sockets had connected and then said nothing until the deadline, and were ended.
    virtual void on_silent(std::uint32_t count) = 0;

protected:
    ~RequestUser() = default;
};

// Listens on one address. Lives on one reactor.
class Acceptor {
public:
    virtual ~Acceptor() = default;
    // Where it listens; says which port where port 0 was asked for.
    virtual const Address& address() const = 0;
    // Listens no more. Awaited once, before the acceptor is destroyed; returns when every request
    // it has handed out was accepted, refused or destroyed.
    virtual Task<void> stop() = 0;
};

struct AcceptorOptions {
    // Who connects and then stays silent is ended after this; between one and two of it.
    Duration silence_max{5s};
};

// A way to reach others: `ofi` (libfabric) and `mem` (within the process). Safe from any thread;
// outlives what it made.
class Transport {
public:
    virtual ~Transport() = default;
    virtual const char* name() const = 0;
    // `messages` and `reactor` outlive the machine. Called on the reactor's thread.
    virtual Result<std::unique_ptr<TransferMachine>> make_machine(
        core::Reactor& reactor, MessageUser& messages, const MachineOptions& options) = 0;
    // kBusy when the address is taken. Called on the reactor's thread.
    virtual Result<std::unique_ptr<Acceptor>> listen(core::Reactor& reactor, const Address& address,
                                                     RequestUser& requests,
                                                     const AcceptorOptions& options) = 0;
};

}  // namespace fopd::fabric
