#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/ensure.h"
#include "core/reactor.h"
#include "core/result.h"
#include "fabric/address.h"
#include "fabric/stranger.h"
#include "fop/key.h"

namespace fopd::fabric {

// The errors of a connection:
//   kClosed     the peer, the network or this side ended the connection;
//   kDenied     the peer's acceptor refused the connection; on_closed() has the acceptor's words;
//   kNotFound   nothing listens at the address;
//   kInvalid    the address is malformed; or the peer accessed memory that was not opened to it, or
//               sent a message longer than a receive buffer. Transports that cannot detect the
//               latter two report kClosed.

// The address of a memory region that a peer has opened for a transfer. Only the peer interprets
// the numbers; they arrive in a descriptor that the peer has sealed.
struct RemoteMemory {
    std::uint64_t address = 0;
    std::uint64_t key = 0;
};

// Local memory of a send or transfer. `registration` is the result of
// TransferMachine::register_memory() for the region that contains it.
struct LocalMemory {
    std::span<std::byte> bytes;
    void* registration = nullptr;
};

class Connection;

// One operation of a connection. The caller fills it in and starts it; it completes exactly once.
// Until then, neither the operation nor its memory may be moved or destroyed, because the hardware
// may access the memory.
struct TransferOp {
    using Complete = void (*)(TransferOp&);
    explicit TransferOp(Complete on_complete) : complete(on_complete) {}
    TransferOp(const TransferOp&) = delete;
    TransferOp& operator=(const TransferOp&) = delete;

    // Reserved for the transport. Must stay the first member.
    std::array<void*, 8> provider_space{};
    Complete complete;
    LocalMemory local;
    RemoteMemory remote;  // For read() and write().
    // Valid in complete(). A successful send means only that its memory may be reused, not that the
    // message has arrived. A successful write is in the peer's memory before the peer receives any
    // message that is sent after the write has completed; if the peer rejects the write, the
    // connection ends, and the write may have succeeded before. A successful read has filled all of
    // the local memory: an answer that is too short ends the connection. Transports that cannot
    // detect that overwrite the last bytes of the memory first, so that they hold no older data.
    Result<void> result;
    bool in_flight = false;

    // Used by the transport while the operation is in flight.
    enum class Kind : std::uint8_t { kSend, kRead, kWrite };
    Kind kind = Kind::kSend;
    Connection* connection = nullptr;
    TransferOp* next = nullptr;
    std::array<std::byte, 16> tail{};  // Pattern at the end of a read's memory, until it is filled.
};

// Callbacks of a connection. They are called from the machine's poll(), never from within a call to
// the connection. A callback may start operations and close connections.
class ConnectionUser {
public:
    // From now on operations may be started. On the connecting side, `answer` is the argument of
    // the peer's accept(); on the accepting side it is empty.
    virtual void on_connected(std::span<const std::byte> answer) = 0;
    // The connection has ended, or could not be made. Called at most once, and never after close().
    // Operations in flight complete as kClosed, before or after this call. The user destroys the
    // connection once nothing is in flight. `words` is the acceptor's text if it refused.
    virtual void on_closed(const Error& reason, std::string_view words) = 0;

protected:
    ~ConnectionUser() = default;
};

// One end of a connection: reliable, ordered messages in both directions, and transfers from and to
// memory that the peer has opened. Belongs to the machine that made it and to that machine's
// reactor. Starting an operation never fails directly: an operation that cannot be started
// completes with an error from the next poll().
class Connection {
public:
    // REQUIRES: either side has closed the connection, and nothing is in flight.
    virtual ~Connection() = default;

    virtual void send(TransferOp& op) = 0;
    // Reads from the peer's memory into the local one.
    virtual void read(TransferOp& op) = 0;
    // Writes the local memory into the peer's.
    virtual void write(TransferOp& op) = 0;

    // Gives up a transfer. When this returns true, the local memory of the transfer is not used any
    // more, and the connection stays open. The transfer completes in the next poll(): as
    // kCancelled, or with its result if it had ended already. If it writes, the peer's memory may
    // contain all of the bytes, a part of them, or a part and zeros. False: nothing has changed;
    // until the transfer has completed, only the end of the connection releases the memory. `ofi`
    // cannot give up transfers, `tcp` cannot if kGivenUpMax others were given up and not answered,
    // or if a write has begun on an encrypted connection and too many others of its principal have
    // such writes.
    // REQUIRES: the transfer is in flight on this connection.
    virtual bool give_up(TransferOp& /*transfer*/) { return false; }

    // Ends the connection, also one that is still being made. All operations in flight complete as
    // kClosed within a few turns; the user gets no other calls. Once nothing is in flight, the peer
    // can no longer reach memory that was opened to it. Idempotent.
    virtual void close() = 0;

    // The peer has proved its identity. From now on it may send any number of messages, each as
    // long as a receive buffer. Before this call, `tcp` ends a connection whose peer sends more
    // than kFirstMessagesMax messages, or one longer than kFirstMessageBytesMax, so that a peer
    // that has not authenticated uses little memory. Other transports have no such limits. Peers
    // with the same `principal` share the memory of `tcp` for incomplete messages. Called once.
    virtual void trust_peer(const std::string& /*principal*/) {}

    // Encrypts all messages sent after this call, and accepts only encrypted messages after the one
    // being delivered. Both ends call it once, after exchanging keys, at the same point of both
    // streams. REQUIRES: Transport::can_encrypt(), and the connection is open.
    struct Keys {
        const fop::Key& send;
        const fop::Key& receive;
    };
    virtual void encrypt(const Keys& /*keys*/) { ENSURE(false); }

    // The number of operations that have not completed.
    virtual std::uint32_t in_flight() const = 0;
    // The peer's address and port, for logs.
    virtual std::string peer() const = 0;
};

// The limits for the messages of a peer before trust_peer(): the length of each, and their number.
inline constexpr std::uint32_t kFirstMessageBytesMax = 1U << 10;
inline constexpr std::uint32_t kFirstMessagesMax = 8;

// How many transfers of a connection may be given up while the peer has not answered them.
inline constexpr std::uint32_t kGivenUpMax = 64;

// The maximum length of an acceptor's refusal text, on every transport.
inline constexpr std::size_t kRefusalBytesMax = 64;

// A peer's request to connect. An acceptor makes it; it may be moved to the thread of the machine
// that accepts it. Destroying a request that was not accepted refuses it.
class ConnectionRequest {
public:
    virtual ~ConnectionRequest() = default;
    virtual std::span<const std::byte> hello() const = 0;
    virtual std::string peer() const = 0;
    // Refuses with a text for the peer's log, at most kRefusalBytesMax long.
    virtual void refuse(std::string_view words) = 0;
};

// Receives the messages of all connections of a machine.
class MessageUser {
public:
    // `message` is aligned to fop::kMessageAlignment, and valid during the call; afterwards its
    // buffer receives another message. `by` is the connection that has delivered it. Null: the
    // transport cannot tell, as `ofi`, and only the content of the message can prove its sender.
    virtual void on_message(std::span<const std::byte> message, const Connection* by) = 0;

protected:
    ~MessageUser() = default;
};

// How a peer may use memory that is opened to it.
enum class Access : std::uint8_t { kRead, kWrite };

struct MachineOptions {
    std::uint32_t receive_buffer_count = 1024;
    std::uint32_t receive_buffer_bytes = 16U << 10;
    // The name of this host, for transports whose addresses are names.
    std::string host = "localhost";
};

// The maximum length of the data that accompanies connect() and accept(), on every transport.
inline constexpr std::size_t kHelloBytesMax = 48;

// The state that all connections of a locality share: receive buffers, completion queue, event
// queue. Lives on one reactor, which polls it in every turn from its creation on.
class TransferMachine {
public:
    // REQUIRES: all connections of the machine are destroyed, and all opened memory is closed.
    virtual ~TransferMachine() = default;

    // Registers memory for local use, with hardware that needs it; the result belongs into
    // LocalMemory::registration. The memory stays registered for the life of the machine.
    virtual Result<void*> register_memory(std::span<std::byte> memory) = 0;

    // Opens memory to the peers until close_memory(). After close_memory() no new transfer can
    // begin, but one that a peer has begun may continue. Therefore close the memory only after the
    // peer has reported that it is done, or after the connection has ended with nothing in flight.
    virtual Result<RemoteMemory> open_memory(std::span<std::byte> memory, Access access) = 0;
    virtual void close_memory(const RemoteMemory& memory) = 0;
    // Takes opened memory back while peers may still use it. When this returns true, the memory is
    // not accessed any more; until close_memory(), peers read zeros from it, and their writes to it
    // have no effect. False: the transport cannot take memory back, and nothing has changed. `ofi`
    // cannot.
    virtual bool take_back_memory(const RemoteMemory& /*memory*/) { return false; }

    // Begins to connect and reports the outcome to `user`. There is no timeout: a caller that gives
    // up calls close(). `hello` is at most kHelloBytesMax long.
    virtual std::unique_ptr<Connection> connect(const Address& peer,
                                                std::span<const std::byte> hello,
                                                ConnectionUser& user) = 0;
    // Accepts a request of an acceptor of this transport. Calls on_connected() or on_closed() of
    // `user`.
    virtual std::unique_ptr<Connection> accept(std::unique_ptr<ConnectionRequest> request,
                                               std::span<const std::byte> answer,
                                               ConnectionUser& user) = 0;

    // Releases the machine's kernel resources, such as the descriptor it waits for. Await it once,
    // after all connections are destroyed and before the machine is.
    virtual Task<void> stop() = 0;

    // The number of operations in flight on all connections.
    virtual std::uint32_t in_flight() const = 0;
};

// Callbacks of an acceptor, on its reactor.
class RequestUser {
public:
    virtual void on_request(std::unique_ptr<ConnectionRequest> request) = 0;
    // `count` sockets were closed because their first frame was not complete in time, or because
    // their place was needed.
    virtual void on_silent(std::uint32_t count) = 0;
    // A connection ended without a request to connect, and not because it was silent. Only `tcp`
    // knows of them.
    virtual void on_stranger(const Stranger& /*stranger*/) {}

protected:
    ~RequestUser() = default;
};

// Listens at one address. Lives on one reactor.
class Acceptor {
public:
    virtual ~Acceptor() = default;
    // The address it listens at, with the actual port if port 0 was requested.
    virtual const Address& address() const = 0;
    // Stops listening. Await it once, before the acceptor is destroyed; it returns when all
    // requests that were handed to the user have been accepted, refused or destroyed.
    virtual Task<void> stop() = 0;
};

struct AcceptorOptions {
    // A peer that connects and sends nothing is disconnected after this time at the earliest, and
    // twice this time at the latest.
    Duration silence_max{5s};
};

// A kind of network: `tcp` (plain sockets), `ofi` (libfabric) or `mem` (within the process). May be
// called from any thread. Must outlive the machines and acceptors that it makes.
class Transport {
public:
    virtual ~Transport() = default;
    virtual const char* name() const = 0;
    virtual bool can_encrypt() const { return false; }
    // `messages` and `reactor` outlive the machine. Called on the reactor's thread.
    virtual Result<std::unique_ptr<TransferMachine>> make_machine(
        core::Reactor& reactor, MessageUser& messages, const MachineOptions& options) = 0;
    // kBusy if the address is in use. Called on the reactor's thread.
    virtual Result<std::unique_ptr<Acceptor>> listen(core::Reactor& reactor, const Address& address,
                                                     RequestUser& requests,
                                                     const AcceptorOptions& options) = 0;
};

}  // namespace fopd::fabric
