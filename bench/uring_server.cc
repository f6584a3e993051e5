#include "bench/uring_server.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "bench/measure.h"

namespace fopd::bench {

namespace {

// As in fabric/tcp/.
constexpr std::size_t kHeaderBytes = 32;
constexpr int kCallsPerTurn = 4;
constexpr int kAcceptsPerTurn = 32;
constexpr std::size_t kArrivalsBytes = 64U << 10;
constexpr std::size_t kBulkBytes = 32U << 10;
constexpr std::size_t kBytesBesideBulk = 4U << 10;

constexpr std::size_t kPeersMax = 1024;
constexpr unsigned kBuffers = 64;
constexpr int kBufferGroup = 0;

}  // namespace

UringServer::UringServer(const Way& way, const Sizes& sizes, int listening, std::uint64_t& calls)
    : way_(way),
      sizes_(sizes),
      listening_(listening),
      calls_(calls),
      arrivals_(kArrivalsBytes),
      place_(sizes.request_bytes),
      replies_(sizes.reply_bytes),
      peers_(kPeersMax) {
    io_uring_params params{};
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                   IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CQSIZE;
    params.cq_entries = 4096;
    if (io_uring_queue_init_params(512, &ring_, &params) != 0) fail("no io_uring");
    io_uring_register_ring_fd(&ring_);
    if (way.fixed_files && io_uring_register_files_sparse(&ring_, kPeersMax) != 0) {
        fail("no fixed files");
    }
    if (way.receive == Way::Receive::kMultishot) make_buffers();
    const iovec region{.iov_base = replies_.data(), .iov_len = replies_.size()};
    if (way.send == Way::Send::kZeroFixed && io_uring_register_buffers(&ring_, &region, 1) != 0) {
        fail("no registered buffers");
    }
    arm_accept();
}

UringServer::~UringServer() {
    for (std::uint32_t number = 0; number < kPeersMax; ++number) {
        if (peers_[number].is_open) close(number);
    }
    io_uring_queue_exit(&ring_);
    std::free(buffers_);
}

void UringServer::run(int done) {
    io_uring_sqe* const entry = next_entry();
    io_uring_prep_poll_add(entry, done, POLLIN);
    mark(entry, Tag::kDone);
    while (!is_done_) turn(Waiting::kSleeps);
}

void UringServer::turn(Waiting waiting) {
    wait(waiting);
    const unsigned count = io_uring_cq_ready(&ring_);
    const unsigned head = *ring_.cq.khead;
    for (unsigned i = 0; i < count; ++i) {
        complete(ring_.cq.cqes[(head + i) & *ring_.cq.kring_mask]);
    }
    io_uring_cq_advance(&ring_, count);
    at_work_.swap(readable_);
    for (const std::uint32_t each : at_work_) receive(each);
    at_work_.clear();
    at_work_.swap(to_flush_);
    for (const std::uint32_t each : at_work_) flush(each);
    at_work_.clear();
}

// -- the ring --

io_uring_sqe* UringServer::next_entry() {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    if (entry != nullptr) return entry;
    ++calls_;
    io_uring_submit(&ring_);
    return io_uring_get_sqe(&ring_);
}

void UringServer::mark(io_uring_sqe* entry, Tag tag, std::uint32_t number) {
    entry->user_data = static_cast<std::uint64_t>(tag) << 32 | number;
}

void UringServer::mark_peer(io_uring_sqe* entry, Tag tag, std::uint32_t number) const {
    mark(entry, tag, number);
    if (way_.fixed_files) entry->flags |= IOSQE_FIXED_FILE;
}

void UringServer::wait(Waiting waiting) {
    const bool has_work = !readable_.empty() || !to_flush_.empty();
    const unsigned sends = std::exchange(sends_submitted_, 0);
    if (has_work) {
        const bool has_events =
            (__atomic_load_n(ring_.sq.kflags, __ATOMIC_RELAXED) & IORING_SQ_TASKRUN) != 0;
        if (io_uring_sq_ready(&ring_) == 0 && !has_events) return;
        ++calls_;
        io_uring_submit_and_get_events(&ring_);
        return;
    }
    ++calls_;
    if (waiting == Waiting::kLooks) {
        io_uring_submit_and_get_events(&ring_);
        return;
    }
    io_uring_submit_and_wait(&ring_, way_.send == Way::Send::kRingBehind ? sends + 1 : 1);
}

void UringServer::complete(const io_uring_cqe& cqe) {
    const auto number = static_cast<std::uint32_t>(cqe.user_data);
    const bool ended = (cqe.flags & IORING_CQE_F_MORE) == 0;
    Peer& peer = peers_[number];
    switch (static_cast<Tag>(cqe.user_data >> 32)) {
        case Tag::kDone: is_done_ = true; break;
        case Tag::kClosed: break;
        case Tag::kAccept:
            if (way_.accept == Way::Accept::kCall) {
                accept_some();
                return arm_accept();
            }
            if (cqe.res >= 0) open(static_cast<std::uint32_t>(cqe.res));
            if (ended) arm_accept();
            break;
        case Tag::kInput: return on_input(number, cqe);
        case Tag::kOutput:
            peer.output_armed = false;
            flush(number);
            break;
        case Tag::kSent:
            if ((cqe.flags & IORING_CQE_F_NOTIF) != 0) return;
            --peer.sends;
            if (cqe.res < 0 && peer.is_open) return close(number);
            peer.sent += static_cast<std::uint64_t>(std::max(cqe.res, 0));
            if (peer.sends == 0 && peer.sent < peer.to_send) flush(number);
            break;
    }
}

// -- connections --

void UringServer::arm_accept() {
    io_uring_sqe* const entry = next_entry();
    switch (way_.accept) {
        case Way::Accept::kCall: io_uring_prep_poll_add(entry, listening_, POLLIN); break;
        case Way::Accept::kMultishot:
            io_uring_prep_multishot_accept(entry, listening_, nullptr, nullptr,
                                           SOCK_NONBLOCK | SOCK_CLOEXEC);
            break;
        case Way::Accept::kDirect:
            io_uring_prep_multishot_accept_direct(entry, listening_, nullptr, nullptr,
                                                  SOCK_NONBLOCK);
            break;
    }
    mark(entry, Tag::kAccept);
}

void UringServer::accept_some() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
        sockaddr_in6 name{};
        socklen_t size = sizeof name;
        ++calls_;
        const int fd = ::accept4(listening_, reinterpret_cast<sockaddr*>(&name), &size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        open(static_cast<std::uint32_t>(fd));
    }
}

void UringServer::open(std::uint32_t number) {
    if (number >= kPeersMax) fail("too many connections");
    const int fd = static_cast<int>(number);
    // With a direct descriptor, neither the peer's address nor an option can be had by a call.
    if (way_.accept != Way::Accept::kDirect) {
        const int on = 1;
        ++calls_;
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (way_.send == Way::Send::kZeroCall &&
            ::setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0) {
            fail("no MSG_ZEROCOPY");
        }
        if (way_.fixed_files) {
            ++calls_;
            io_uring_register_files_update(&ring_, number, &fd, 1);
        }
    }
    if (way_.accept == Way::Accept::kMultishot) {
        sockaddr_in6 name{};
        socklen_t size = sizeof name;
        ++calls_;
        ::getpeername(fd, reinterpret_cast<sockaddr*>(&name), &size);
    }
    peers_[number] = {};
    peers_[number].is_open = true;
    arm_input(number);
}

void UringServer::close(std::uint32_t number) {
    peers_[number].is_open = false;
    int fd = static_cast<int>(number);
    if (way_.accept == Way::Accept::kDirect) {
        io_uring_sqe* const entry = next_entry();
        io_uring_prep_close_direct(entry, number);
        mark(entry, Tag::kClosed);
        return;
    }
    if (way_.fixed_files) {
        const int none = -1;
        ++calls_;
        io_uring_register_files_update(&ring_, number, &none, 1);
    }
    ++calls_;
    ::close(fd);
}

// -- receiving --

void UringServer::make_buffers() {
    buffer_memory_.resize(kBuffers * way_.buffer_bytes);
    void* memory = nullptr;
    if (::posix_memalign(&memory, 4096, kBuffers * sizeof(io_uring_buf)) != 0) fail("no memory");
    buffers_ = static_cast<io_uring_buf_ring*>(memory);
    io_uring_buf_reg request{};
    request.ring_addr = reinterpret_cast<std::uint64_t>(memory);
    request.ring_entries = kBuffers;
    request.bgid = kBufferGroup;
    io_uring_buf_ring_init(buffers_);
    if (io_uring_register_buf_ring(&ring_, &request, 0) != 0) fail("no ring of buffers");
    for (unsigned i = 0; i < kBuffers; ++i) {
        io_uring_buf_ring_add(buffers_, buffer_memory_.data() + i * way_.buffer_bytes,
                              static_cast<unsigned>(way_.buffer_bytes),
                              static_cast<std::uint16_t>(i), io_uring_buf_ring_mask(kBuffers),
                              static_cast<int>(i));
    }
    io_uring_buf_ring_advance(buffers_, kBuffers);
}

void UringServer::arm_input(std::uint32_t number) {
    io_uring_sqe* const entry = next_entry();
    const int fd = static_cast<int>(number);
    switch (way_.receive) {
        case Way::Receive::kPoll: io_uring_prep_poll_add(entry, fd, POLLIN); break;
        case Way::Receive::kPollMulti: io_uring_prep_poll_multishot(entry, fd, POLLIN); break;
        case Way::Receive::kMultishot:
            io_uring_prep_recv_multishot(entry, fd, nullptr, 0, 0);
            entry->flags |= IOSQE_BUFFER_SELECT;
            entry->buf_group = kBufferGroup;
            break;
    }
    mark_peer(entry, Tag::kInput, number);
}

void UringServer::on_input(std::uint32_t number, const io_uring_cqe& cqe) {
    Peer& peer = peers_[number];
    const bool ended = (cqe.flags & IORING_CQE_F_MORE) == 0;
    if (way_.receive != Way::Receive::kMultishot) {
        if (!peer.is_open) return;
        if (way_.send == Way::Send::kZeroCall && (cqe.res & POLLERR) != 0) {
            take_notices(static_cast<int>(number));
        }
        if (!std::exchange(peer.is_readable, true)) readable_.push_back(number);
        if (ended && way_.receive == Way::Receive::kPollMulti) arm_input(number);
        return;
    }
    if ((cqe.flags & IORING_CQE_F_BUFFER) != 0) {
        const unsigned id = cqe.flags >> IORING_CQE_BUFFER_SHIFT;
        const auto bytes = static_cast<std::size_t>(std::max(cqe.res, 0));
        std::byte* const memory = buffer_memory_.data() + id * way_.buffer_bytes;
        // The body of a write belongs elsewhere.
        if (sizes_.request_bytes >= kBulkBytes) {
            const std::size_t at = peer.received % sizes_.request_bytes;
            const std::size_t first = std::min(bytes, sizes_.request_bytes - at);
            std::memcpy(place_.data() + at, memory, first);
            std::memcpy(place_.data(), memory + first, bytes - first);
        }
        io_uring_buf_ring_add(buffers_, memory, static_cast<unsigned>(way_.buffer_bytes),
                              static_cast<std::uint16_t>(id), io_uring_buf_ring_mask(kBuffers), 0);
        io_uring_buf_ring_advance(buffers_, 1);
        count_received(number, bytes);
    }
    if (cqe.res <= 0 && cqe.res != -ENOBUFS) {
        if (peer.is_open) close(number);
        return;
    }
    if (ended) arm_input(number);
}

void UringServer::receive(std::uint32_t number) {
    peers_[number].is_readable = false;
    for (int i = 0; i < kCallsPerTurn; ++i) {
        if (!receive_once(number)) continue;
        if (peers_[number].is_open && way_.receive == Way::Receive::kPoll) arm_input(number);
        return;
    }
    peers_[number].is_readable = true;
    readable_.push_back(number);
}

bool UringServer::receive_once(std::uint32_t number) {
    Peer& peer = peers_[number];
    const bool is_bulk = sizes_.request_bytes >= kBulkBytes;
    const std::size_t at = peer.received % sizes_.request_bytes;
    const std::size_t direct = is_bulk && at > 0 ? sizes_.request_bytes - at : 0;
    std::array parts{
        iovec{.iov_base = place_.data() + at, .iov_len = direct},
        iovec{.iov_base = arrivals_.data(), .iov_len = is_bulk ? kBytesBesideBulk : kArrivalsBytes},
    };
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ++calls_;
    const ssize_t received = ::recvmsg(static_cast<int>(number), &message, MSG_DONTWAIT);
    if (received < 0 && errno == EAGAIN) return true;
    if (received <= 0) {
        close(number);
        return true;
    }
    const auto bytes = static_cast<std::size_t>(received);
    count_received(number, bytes);
    return bytes < direct + parts[1].iov_len;
}

void UringServer::count_received(std::uint32_t number, std::size_t bytes) {
    Peer& peer = peers_[number];
    const std::uint64_t before = peer.received / sizes_.request_bytes;
    peer.received += bytes;
    const std::uint64_t requests = peer.received / sizes_.request_bytes - before;
    if (requests == 0) return;
    peer.to_send += requests * sizes_.reply_bytes;
    if (!std::exchange(peer.in_flush, true)) to_flush_.push_back(number);
}

// Which memory may be used again after MSG_ZEROCOPY.
void UringServer::take_notices(int socket) {
    for (;;) {
        std::array<char, 128> control{};
        msghdr message{};
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        ++calls_;
        if (::recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    }
}

// -- sending --

void UringServer::flush(std::uint32_t number) {
    Peer& peer = peers_[number];
    peer.in_flush = false;
    if (!peer.is_open || peer.sends > 0 || peer.output_armed || peer.sent == peer.to_send) return;
    switch (way_.send) {
        case Way::Send::kCall:
        case Way::Send::kZeroCall: return send_by_calls(number);
        case Way::Send::kRing:
        case Way::Send::kRingBehind: return send_by_ring(number);
        case Way::Send::kLinked: return send_linked(number);
        case Way::Send::kZeroRing:
        case Way::Send::kZeroFixed: return send_zero(number);
    }
}

// A header and a body for each frame, from the first byte that was not sent.
void UringServer::gather(Peer& peer) {
    std::size_t count = 0;
    std::uint64_t from = peer.sent;
    while (from < peer.to_send && count + 2 <= peer.parts.size()) {
        const std::size_t at = from % sizes_.reply_bytes;
        const std::size_t end = at < kHeaderBytes ? kHeaderBytes : sizes_.reply_bytes;
        peer.parts[count++] = {.iov_base = replies_.data() + at, .iov_len = end - at};
        from += end - at;
    }
    peer.message.msg_iov = peer.parts.data();
    peer.message.msg_iovlen = count;
}

void UringServer::send_by_calls(std::uint32_t number) {
    Peer& peer = peers_[number];
    const int zero = way_.send == Way::Send::kZeroCall ? MSG_ZEROCOPY : 0;
    for (int i = 0; i < kCallsPerTurn && peer.sent < peer.to_send; ++i) {
        gather(peer);
        ++calls_;
        const ssize_t sent =
            ::sendmsg(static_cast<int>(number), &peer.message, MSG_NOSIGNAL | MSG_DONTWAIT | zero);
        if (sent < 0 && errno != EAGAIN) return close(number);
        if (sent > 0) peer.sent += static_cast<std::uint64_t>(sent);
        std::uint64_t total = 0;
        for (std::size_t p = 0; p < peer.message.msg_iovlen; ++p) total += peer.parts[p].iov_len;
        if (sent == static_cast<ssize_t>(total)) continue;
        io_uring_sqe* const entry = next_entry();
        io_uring_prep_poll_add(entry, static_cast<int>(number), POLLOUT);
        mark_peer(entry, Tag::kOutput, number);
        peer.output_armed = true;
        return;
    }
    if (peer.sent == peer.to_send) return;
    peer.in_flush = true;
    to_flush_.push_back(number);
}

void UringServer::send_by_ring(std::uint32_t number) {
    Peer& peer = peers_[number];
    gather(peer);
    io_uring_sqe* const entry = next_entry();
    // The wait behind counts on one completion, when all is sent.
    const unsigned all = way_.send == Way::Send::kRingBehind ? MSG_WAITALL : 0;
    io_uring_prep_sendmsg(entry, static_cast<int>(number), &peer.message, MSG_NOSIGNAL | all);
    mark_peer(entry, Tag::kSent, number);
    ++peer.sends;
    ++sends_submitted_;
}

void UringServer::send_linked(std::uint32_t number) {
    Peer& peer = peers_[number];
    gather(peer);
    const std::size_t count = peer.message.msg_iovlen;
    // A chain must be submitted as a whole.
    if (io_uring_sq_space_left(&ring_) < count) {
        ++calls_;
        io_uring_submit(&ring_);
    }
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_last = i + 1 == count;
        io_uring_sqe* const entry = next_entry();
        io_uring_prep_send(entry, static_cast<int>(number), peer.parts[i].iov_base,
                           peer.parts[i].iov_len,
                           MSG_NOSIGNAL | MSG_WAITALL | (is_last ? 0 : MSG_MORE));
        mark_peer(entry, Tag::kSent, number);
        if (!is_last) entry->flags |= IOSQE_IO_LINK;
        ++peer.sends;
    }
}

void UringServer::send_zero(std::uint32_t number) {
    Peer& peer = peers_[number];
    const std::size_t at = peer.sent % sizes_.reply_bytes;
    const std::byte* const from = replies_.data() + at;
    const std::size_t bytes = sizes_.reply_bytes - at;
    io_uring_sqe* const entry = next_entry();
    if (way_.send == Way::Send::kZeroFixed) {
        io_uring_prep_send_zc_fixed(entry, static_cast<int>(number), from, bytes, MSG_NOSIGNAL, 0,
                                    0);
    } else {
        io_uring_prep_send_zc(entry, static_cast<int>(number), from, bytes, MSG_NOSIGNAL, 0);
    }
    mark_peer(entry, Tag::kSent, number);
    ++peer.sends;
}

}  // namespace fopd::bench
