#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <liburing.h>
#include <sys/socket.h>

namespace fopd::bench {

// A way to serve connections: which operations of io_uring it uses.
struct Way {
    enum class Receive : std::uint8_t {
        kPoll,       // A one-shot poll, then recvmsg(2).
        kPollMulti,  // A multishot poll, then recvmsg(2).
        kMultishot,  // A multishot receive with a ring of provided buffers.
    };
    enum class Send : std::uint8_t {
        kCall,        // sendmsg(2).
        kRing,        // IORING_OP_SENDMSG.
        kRingBehind,  // The same; each wait is for one completion more than its sends have.
        kLinked,      // Two linked IORING_OP_SEND for each frame: header and body.
        kZeroCall,    // sendmsg(2) with MSG_ZEROCOPY.
        kZeroRing,    // IORING_OP_SEND_ZC.
        kZeroFixed,   // IORING_OP_SEND_ZC from a registered buffer.
    };
    enum class Accept : std::uint8_t {
        kCall,       // A one-shot poll, then accept4(2).
        kMultishot,  // A multishot accept, then getpeername(2).
        kDirect,     // A multishot accept into the table of fixed files.
    };
    const char* name = "";
    Receive receive = Receive::kPoll;
    Send send = Send::kCall;
    Accept accept = Accept::kCall;
    bool fixed_files = false;
    std::size_t buffer_bytes = 16U << 10;  // Of each provided buffer.
};

// Answers every request with a reply, in one of several ways that are compared; requests and
// replies have fixed lengths. Does not parse the requests, because that costs the same in every
// way.
class UringServer {
public:
    struct Sizes {
        std::size_t request_bytes;
        std::size_t reply_bytes;
    };
    // `calls` counts the system calls.
    UringServer(const Way& way, const Sizes& sizes, int listening, std::uint64_t& calls);
    ~UringServer();
    UringServer(const UringServer&) = delete;
    UringServer& operator=(const UringServer&) = delete;

    // Serves until `done` is readable.
    void run(int done);
    // Waits, or only looks, for events, and does what they ask for.
    enum class Waiting : std::uint8_t { kSleeps, kLooks };
    void turn(Waiting waiting);

private:
    // The kind of operation that a completion belongs to.
    enum class Tag : std::uint32_t { kDone, kAccept, kInput, kOutput, kSent, kClosed };
    static constexpr std::size_t kFramesPerSend = 32;

    struct Peer {
        bool is_open = false;
        bool is_readable = false;
        bool in_flush = false;
        bool output_armed = false;
        unsigned sends = 0;  // In flight.
        std::uint64_t received = 0;
        std::uint64_t sent = 0;
        std::uint64_t to_send = 0;  // Bytes of all replies so far; `sent` of them were sent.
        msghdr message{};
        std::array<iovec, 2 * kFramesPerSend> parts{};
    };

    io_uring_sqe* next_entry();
    static void mark(io_uring_sqe* entry, Tag tag, std::uint32_t number = 0);
    // Names the descriptor of a connection.
    void mark_peer(io_uring_sqe* entry, Tag tag, std::uint32_t number) const;
    void wait(Waiting waiting);
    void complete(const io_uring_cqe& cqe);

    void arm_accept();
    void accept_some();
    void open(std::uint32_t number);
    void close(std::uint32_t number);

    void make_buffers();
    void arm_input(std::uint32_t number);
    void on_input(std::uint32_t number, const io_uring_cqe& cqe);
    // Returns true when the socket is empty, or closed.
    bool receive_once(std::uint32_t number);
    void receive(std::uint32_t number);
    void count_received(std::uint32_t number, std::size_t bytes);
    void take_notices(int socket);

    void flush(std::uint32_t number);
    void gather(Peer& peer);
    void send_by_calls(std::uint32_t number);
    void send_by_ring(std::uint32_t number);
    void send_linked(std::uint32_t number);
    void send_zero(std::uint32_t number);

    const Way way_;
    const Sizes sizes_;
    const int listening_;
    std::uint64_t& calls_;
    io_uring ring_{};
    io_uring_buf_ring* buffers_ = nullptr;
    std::vector<std::byte> buffer_memory_;
    std::vector<std::byte> arrivals_;
    std::vector<std::byte> place_;  // Bodies are received there.
    std::vector<std::byte> replies_;
    std::vector<Peer> peers_;  // By descriptor.
    std::vector<std::uint32_t> readable_;
    std::vector<std::uint32_t> to_flush_;
    std::vector<std::uint32_t> at_work_;  // One of these two, in this turn.
    unsigned sends_submitted_ = 0;        // Since the last wait.
    bool is_done_ = false;
};

}  // namespace fopd::bench
