#include "fabric/mem/mem_sockets.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <poll.h>

#include "fabric/mem/mem_station.h"

namespace fopd::fabric {

namespace {

// Above all descriptors of the kernel.
constexpr int kFirstFd = 1'000'000;
constexpr std::uint16_t kFirstFreeSocketPort = 49152;
constexpr std::uint32_t kFirstHost = 0x0a000001;  // 10.0.0.1
// The room of a stream is one of these many kinds, each twice as large as the one before.
constexpr std::size_t kLeastRoom = 16U << 10;
constexpr std::uint64_t kRooms = 6;
// A segment uses so many bytes of a link's bandwidth in addition to its own.
constexpr std::uint64_t kSegmentHeaderBytes = 64;
// One send in this many takes a part of its bytes only, or is sent in two segments.
constexpr std::uint64_t kShortSends = 8;
constexpr std::uint64_t kSplitSends = 4;
constexpr std::uint64_t kCutReceives = 4;

std::size_t total_of(std::span<const iovec> parts) {
    std::size_t total = 0;
    for (const iovec& each : parts) total += each.iov_len;
    return total;
}

}  // namespace

MemSockets::MemSockets(core::VirtualWorld& world, MemNetwork& network, std::uint64_t seed)
    : world_(world),
      network_(network),
      random_(seed),
      room_(kLeastRoom << random_.below(kRooms)),
      next_fd_(kFirstFd),
      next_port_(kFirstFreeSocketPort) {
    world_.use_descriptors(this);
    network_.watch(this);
}

MemSockets::~MemSockets() {
    network_.watch(nullptr);
    world_.use_descriptors(nullptr);
}

// -- hosts --

SocketAddress MemSockets::name_of(const std::string& host, std::uint16_t port) {
    const auto [at, is_new] =
        host_numbers_.try_emplace(host, static_cast<std::uint32_t>(hosts_.size()));
    if (is_new) hosts_.push_back(host);
    SocketAddress name;
    auto& four = reinterpret_cast<sockaddr_in&>(name.storage);
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    four.sin_addr.s_addr = htonl(kFirstHost + at->second);
    name.size = sizeof four;
    return name;
}

const std::string& MemSockets::host_of(const SocketAddress& name) const {
    const auto& four = reinterpret_cast<const sockaddr_in&>(name.storage);
    ENSURE(four.sin_family == AF_INET);
    return hosts_.at(ntohl(four.sin_addr.s_addr) - kFirstHost);
}

Address MemSockets::address_of(const std::string& host, std::uint16_t port) {
    const SocketAddress name = name_of(host, port);
    return fabric::address_of(kTcpScheme, name.get(), name.size);
}

MemLink& MemSockets::link(const std::string& from, const std::string& to) {
    return network_.link({.from = from, .to = to});
}

// -- sockets --

MemSockets::Socket& MemSockets::make(const std::string& host) {
    const int fd = next_fd_++;
    Socket& made = sockets_[fd];
    made.fd = fd;
    made.host = host;
    made.in.cut = draw_cut();
    return made;
}

MemSockets::Socket& MemSockets::of(int fd) {
    const auto found = sockets_.find(fd);
    ENSURE(found != sockets_.end());
    return found->second;
}

MemSockets::Socket* MemSockets::listening_at(const std::string& host, std::uint16_t port) {
    for (auto& [fd, socket] : sockets_) {
        if (socket.port == port && socket.host == host) return &socket;
    }
    return nullptr;
}

Result<Sockets::Listening> MemSockets::listen(const Address& address, int) {
    const auto name = socket_address(address, kTcpScheme);
    if (!name) return std::unexpected(name.error());
    const std::string host = host_of(*name);
    Address bound = address;
    while (bound.port == 0 || (address.port == 0 && listening_at(host, bound.port) != nullptr)) {
        bound.port = next_port_++;
    }
    if (listening_at(host, bound.port) != nullptr) {
        return std::unexpected(os_error(EADDRINUSE, "bind"));
    }
    Socket& made = make(host);
    made.port = bound.port;
    return Listening{.socket = OwnedSocket(*this, made.fd), .address = std::move(bound)};
}

Result<OwnedSocket> MemSockets::connect(const std::string& host, const SocketAddress& peer) {
    const std::string there = host_of(peer);
    const std::uint16_t port = ntohs(reinterpret_cast<const sockaddr_in&>(peer.storage).sin_port);
    Socket& made = make(host);
    OwnedSocket owned(*this, made.fd);
    made.peer_host = there;
    made.peer_name = peer;
    made.out = &link(host, there);
    made.in.link = &link(there, host);
    const Instant arrives = due(*made.out, 0);
    made.connected = {.way = made.out, .asked_due = arrives, .delay = draw_delay(*made.in.link)};
    Socket* const listening = listening_at(there, port);
    if (listening == nullptr || made.out->refuses_connects.load()) {
        made.connect_errno = ECONNREFUSED;
        return owned;
    }
    Socket& accepted = make(there);
    accepted.peer_host = host;
    accepted.peer_name = name_of(host, next_port_++);
    accepted.out = made.in.link;
    accepted.in.link = made.out;
    accepted.in.last_due = accepted.request_due = arrives;
    accepted.peer = &made;
    made.peer = &accepted;
    listening->backlog.push_back(accepted.fd);
    world_.descriptor_changed(listening->fd);
    return owned;
}

int MemSockets::accept(int listening, SocketAddress& peer) {
    Socket& socket = of(listening);
    for (auto each = socket.backlog.begin(); each != socket.backlog.end(); ++each) {
        const Socket& request = of(*each);
        if (passes_at(*request.in.link, request.request_due) > world_.now()) continue;
        peer = request.peer_name;
        socket.backlog.erase(each);
        return request.fd;
    }
    return -EAGAIN;
}

int MemSockets::connect_error(int fd) {
    Socket& socket = of(fd);
    socket.connected = {};
    return socket.connect_errno;
}

// -- when it is ready --

Instant MemSockets::passes_at(const MemLink& link, Instant due) const {
    if (link.blocked.load()) return kNever;
    return std::max(due, Instant{Duration{link.stalled_until_ns.load()}});
}

Instant MemSockets::arrives_at(const Answer& answer, const MemLink& back) const {
    if (answer.asked_due == kNever) return kNever;
    const Instant asked_at = passes_at(*answer.way, answer.asked_due);
    return passes_at(back, after(asked_at, answer.delay));
}

Instant MemSockets::end_at(const Socket& socket) const {
    const Stream& in = socket.in;
    const Instant end = in.has_end ? passes_at(*in.link, in.end_due) : kNever;
    return std::min(end, arrives_at(in.reset, *in.link));
}

Instant MemSockets::input_at(const Socket& socket) const {
    if (socket.is_ended || socket.is_lost) return world_.now();
    if (socket.port != 0) {
        Instant first = kNever;
        for (const int fd : socket.backlog) {
            const Socket& each = sockets_.at(fd);
            first = std::min(first, passes_at(*each.in.link, each.request_due));
        }
        return first;
    }
    if (socket.in.segments.empty()) return end_at(socket);
    return passes_at(*socket.in.link, socket.in.segments.front().due);
}

Instant MemSockets::output_at(const Socket& socket) const {
    if (socket.connected.way != nullptr) return arrives_at(socket.connected, *socket.in.link);
    if (socket.is_ended || socket.peer == nullptr) return world_.now();
    // Like the kernel, not as soon as there is any room.
    return socket.peer->in.unread <= room_ / 2 ? world_.now() : kNever;
}

Instant MemSockets::ready_at(int fd, std::uint32_t events) const {
    const Socket& socket = sockets_.at(fd);
    Instant at = kNever;
    if ((events & POLLIN) != 0) at = std::min(at, input_at(socket));
    if ((events & POLLOUT) != 0) at = std::min(at, output_at(socket));
    return at;
}

std::uint32_t MemSockets::ready(int fd, std::uint32_t events) const {
    const Socket& socket = sockets_.at(fd);
    std::uint32_t found = 0;
    if ((events & POLLIN) != 0 && input_at(socket) <= world_.now()) found |= POLLIN;
    if ((events & POLLOUT) != 0 && output_at(socket) <= world_.now()) found |= POLLOUT;
    return found;
}

// -- bytes --

MemSockets::Cut MemSockets::draw_cut() {
    switch (random_.below(4)) {
        case 0: return Cut::kAlways;
        case 1: return Cut::kSometimes;
        default: return Cut::kNever;
    }
}

std::size_t MemSockets::draw_length(std::size_t most) {
    return std::min<std::size_t>(most, 1 + random_.below(1ULL << (1 + random_.below(16))));
}

Duration MemSockets::draw_delay(const MemLink& link) {
    const std::int64_t shortest = link.delay_min_ns.load();
    const std::int64_t longest = std::max(shortest, link.delay_max_ns.load());
    return Duration{shortest == longest ? shortest : random_.between(shortest, longest)};
}

Instant MemSockets::due(const MemLink& link, std::size_t bytes) {
    Instant due = world_.now();
    if (const std::uint64_t rate = link.bytes_per_second.load(); rate > 0) {
        Instant& free_at = link_free_at_[link.id];
        const std::uint64_t counted = bytes + kSegmentHeaderBytes;
        free_at = std::max(world_.now(), free_at) +
                  Duration{static_cast<std::int64_t>(counted * 1'000'000'000 / rate)};
        due = free_at;
    }
    return after(due, draw_delay(link));
}

Instant MemSockets::due(Stream& stream, std::size_t bytes) {
    stream.last_due = std::max(stream.last_due, due(*stream.link, bytes));
    return stream.last_due;
}

ssize_t MemSockets::send(int fd, std::span<iovec> parts, Follows) {
    Socket& socket = of(fd);
    if (socket.is_ended || socket.is_lost) return -EPIPE;
    const std::size_t total = total_of(parts);
    if (socket.peer == nullptr) {
        // The peer has ended, and answers with a reset. Later sends find that out.
        if (arrives_at(socket.in.reset, *socket.in.link) <= world_.now()) return -ECONNRESET;
        if (socket.in.reset.way == nullptr) {
            socket.in.reset = {.way = socket.out,
                               .asked_due = due(*socket.out, total),
                               .delay = draw_delay(*socket.in.link)};
            world_.descriptor_changed(fd);
        }
        return static_cast<ssize_t>(total);
    }
    Stream& out = socket.peer->in;
    if (out.unread >= room_) return -EAGAIN;
    std::size_t count = std::min(total, room_ - out.unread);
    if (count > 1 && random_.below(kShortSends) == 0) count = draw_length(count);
    std::vector<std::byte> bytes;
    bytes.reserve(count);
    for (const iovec& each : parts) {
        const auto* const from = static_cast<const std::byte*>(each.iov_base);
        const std::size_t part = std::min(each.iov_len, count - bytes.size());
        bytes.insert(bytes.end(), from, from + part);
    }
    if (count > 1 && random_.below(kSplitSends) == 0) {
        const auto middle = static_cast<std::ptrdiff_t>(draw_length(count - 1));
        std::vector<std::byte> rest(bytes.begin() + middle, bytes.end());
        bytes.resize(static_cast<std::size_t>(middle));
        const Instant first = due(out, bytes.size());
        out.segments.push_back({.due = first, .bytes = std::move(bytes)});
        bytes = std::move(rest);
    }
    const Instant last = due(out, bytes.size());
    out.segments.push_back({.due = last, .bytes = std::move(bytes)});
    out.unread += count;
    world_.descriptor_changed(socket.peer->fd);
    return static_cast<ssize_t>(count);
}

ssize_t MemSockets::receive(int fd, std::span<iovec> parts) {
    Socket& socket = of(fd);
    Stream& in = socket.in;
    if (socket.is_ended) return 0;
    if (socket.is_lost) return -ECONNRESET;
    if (input_at(socket) > world_.now()) return -EAGAIN;
    if (in.segments.empty()) {
        const bool in_order =
            in.has_end && in.end_errno == 0 && passes_at(*in.link, in.end_due) <= world_.now();
        return in_order ? 0 : -ECONNRESET;
    }
    std::size_t left = total_of(parts);
    const bool cuts =
        in.cut == Cut::kAlways || (in.cut == Cut::kSometimes && random_.below(kCutReceives) == 0);
    if (cuts && left > 0) left = draw_length(left);
    std::size_t count = 0;
    for (const iovec& each : parts) {
        auto* into = static_cast<std::byte*>(each.iov_base);
        std::size_t room = std::min(each.iov_len, left);
        while (room > 0 && !in.segments.empty() && in.segments.front().due <= world_.now()) {
            Segment& first = in.segments.front();
            const std::size_t part = std::min(room, first.bytes.size() - in.taken);
            std::memcpy(into, first.bytes.data() + in.taken, part);
            into += part;
            room -= part;
            left -= part;
            count += part;
            in.taken += part;
            if (in.taken < first.bytes.size()) continue;
            in.taken = 0;
            in.segments.pop_front();
        }
    }
    in.unread -= count;
    received_.bytes += count;
    ++received_.receives;
    if (socket.peer != nullptr) world_.descriptor_changed(socket.peer->fd);
    return static_cast<ssize_t>(count);
}

// -- ends --

void MemSockets::end(Socket& socket) {
    if (socket.is_ended) return;
    socket.is_ended = true;
    if (Socket* const peer = std::exchange(socket.peer, nullptr)) {
        peer->peer = nullptr;
        peer->in.has_end = true;
        // Like the kernel, which answers bytes that nobody has received with a reset.
        peer->in.end_errno = socket.in.unread > 0 ? ECONNRESET : 0;
        peer->in.end_due = due(peer->in, 0);
        world_.descriptor_changed(peer->fd);
    }
    world_.descriptor_changed(socket.fd);
}

void MemSockets::end(int fd) {
    end(of(fd));
}

void MemSockets::close(int fd) {
    Socket& socket = of(fd);
    end(socket);
    const std::deque<int> backlog = std::exchange(socket.backlog, {});
    sockets_.erase(fd);
    for (const int each : backlog) close(each);
}

void MemSockets::on_lost(std::string_view host, std::string_view peer) {
    for (auto& [fd, socket] : sockets_) {
        if (socket.host != host || socket.peer_host != peer || socket.peer == nullptr) continue;
        socket.peer->peer = nullptr;
        socket.peer = nullptr;
        // Bytes that have arrived and were not received are lost, too.
        socket.in.segments.clear();
        socket.in.taken = socket.in.unread = 0;
        socket.is_lost = true;
        world_.descriptor_changed(fd);
    }
}

}  // namespace fopd::fabric
