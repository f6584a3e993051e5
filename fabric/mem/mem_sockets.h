#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "core/virtual_world.h"
#include "fabric/mem/mem_network.h"
#include "fabric/tcp/sockets.h"

namespace fopd::fabric {

// The sockets of a simulated world, for the `tcp` transport: streams of bytes between the hosts of
// a MemNetwork, with its delays, stalls, partitions and losses. As in the kernel, a stream has
// limited room for bytes that were not received yet. A send may accept only a part of the bytes,
// and a receive may return only a part of the bytes that have arrived; the seed determines the
// sizes.
//
// The host of an address is numeric; address_of() returns the address of a named host.
class MemSockets final : public Sockets, core::VirtualDescriptors, MemNetwork::Watcher {
public:
    // The world and the network outlive it.
    MemSockets(core::VirtualWorld& world, MemNetwork& network, std::uint64_t seed);
    ~MemSockets() override;
    MemSockets(const MemSockets&) = delete;
    MemSockets& operator=(const MemSockets&) = delete;

    Address address_of(const std::string& host, std::uint16_t port);
    // How many bytes a stream can hold that were not received yet.
    std::size_t room_bytes() const { return room_; }
    // Bytes received so far, and how many receives returned them.
    struct Received {
        std::uint64_t bytes = 0;
        std::uint64_t receives = 0;
    };
    const Received& received() const { return received_; }

    bool is_simulated() const override { return true; }
    void abandon(core::IoOp& poll) override { world_.abandon(poll); }
    Result<Listening> listen(const Address& address, int backlog) override;
    int accept(int listening, SocketAddress& peer) override;
    Result<OwnedSocket> connect(const std::string& host, const SocketAddress& peer) override;
    int connect_error(int fd) override;
    ssize_t receive(int fd, std::span<iovec> parts) override;
    ssize_t send(int fd, std::span<iovec> parts, Follows follows) override;
    void end(int fd) override;
    void close(int fd) override;

private:
    // A part of the stream that arrives at one time.
    struct Segment {
        Instant due;
        std::vector<std::byte> bytes;
    };
    // Whether receives return only a part of the bytes that have arrived.
    enum class Cut : std::uint8_t { kNever, kSometimes, kAlways };
    // The answer to something that was sent over the link `way` and arrives at the peer at
    // `asked_due`.
    struct Answer {
        const MemLink* way = nullptr;
        Instant asked_due = kNever;  // kNever: nothing was sent.
        Duration delay{0};           // The delay of the answer.
    };
    // The bytes that a socket has not received yet, in flight or arrived. Its peer sends them over
    // `link`.
    struct Stream {
        MemLink* link = nullptr;
        Cut cut = Cut::kNever;
        std::deque<Segment> segments;
        std::size_t taken = 0;   // How many bytes of the first segment were received.
        std::size_t unread = 0;  // The number of all bytes that were not received.
        Instant last_due{};  // When the last sent bytes arrive. Later bytes do not arrive earlier.
        // The peer has ended the stream; the end is read after all bytes.
        bool has_end = false;
        int end_errno = 0;  // 0: the peer has ended the connection in order.
        Instant end_due{};
        Answer reset;  // The stream ends when this answer arrives.
    };
    struct Socket {
        int fd = -1;
        std::string host;       // The host of the socket.
        std::string peer_host;  // Empty: it listens.
        SocketAddress peer_name;
        Socket* peer = nullptr;  // The socket at the other end; null: it has ended.
        MemLink* out = nullptr;  // The link to the peer.
        Stream in;
        Answer connected;  // The answer to the request to connect, on the connecting socket.
        int connect_errno = 0;
        // When the request to connect arrives, on a socket that was not accepted yet.
        Instant request_due{};
        bool is_lost = false;
        bool is_ended = false;
        // Used by listening sockets only.
        std::uint16_t port = 0;
        std::deque<int> backlog;  // Connections that were not accepted, oldest first.
    };

    // -- core::VirtualDescriptors --
    bool has(int fd) const override { return sockets_.contains(fd); }
    std::uint32_t ready(int fd, std::uint32_t events) const override;
    Instant ready_at(int fd, std::uint32_t events) const override;
    // -- MemNetwork::Watcher --
    void on_links_changed() override { world_.descriptors_changed(); }
    void on_lost(std::string_view host, std::string_view peer) override;

    Socket& make(const std::string& host);
    Socket& of(int fd);
    Socket* listening_at(const std::string& host, std::uint16_t port);
    const std::string& host_of(const SocketAddress& name) const;
    SocketAddress name_of(const std::string& host, std::uint16_t port);
    MemLink& link(const std::string& from, const std::string& to);
    Cut draw_cut();
    // A length from 1 to `most`, more often a short one.
    std::size_t draw_length(std::size_t most);
    // When data of this size arrive that are sent now over the link, or in the stream.
    Instant due(const MemLink& link, std::size_t bytes);
    Instant due(Stream& stream, std::size_t bytes);
    Instant passes_at(const MemLink& link, Instant due) const;
    Instant arrives_at(const Answer& answer, const MemLink& back) const;
    Duration draw_delay(const MemLink& link);
    Instant end_at(const Socket& socket) const;
    Instant input_at(const Socket& socket) const;
    Instant output_at(const Socket& socket) const;
    // Ends the socket's side of the connection.
    void end(Socket& socket);

    core::VirtualWorld& world_;
    MemNetwork& network_;
    core::Random random_;
    const std::size_t room_;  // See room_bytes().
    std::map<std::string, std::uint32_t, std::less<>> host_numbers_;
    std::vector<std::string> hosts_;  // By number.
    // By link, for links with a bandwidth: when the last byte in flight has been sent.
    std::map<std::uint32_t, Instant> link_free_at_;
    std::map<int, Socket> sockets_;
    int next_fd_;
    std::uint16_t next_port_;
    Received received_;
};

}  // namespace fopd::fabric
