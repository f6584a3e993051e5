// Measures ways to serve TCP connections with io_uring beside the way of fabric/tcp/: the gain or
// loss of each feature in CPU time and system calls of the server, and in latency of its clients.
//
//     bench_uring [--rounds N] [--netns NAME HOST] [--sink HOST] [load...]
//
// The way "poll" is that of fabric/tcp/: a one-shot poll, recvmsg(2) until the socket is empty, one
// sendmsg(2) per connection and turn. The server is a process of its own on the first core, the
// client is on the second. Ways take turns; each figure is the mean of the fastest slices. --netns:
// the server listens at HOST in that network namespace, so that packets pass through veth. --sink
// measures sends of datagrams to HOST instead. If the device there drops its packets, these sends
// cost as much as sends to a network card, because nobody copies or receives the datagrams.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/child.h"
#include "bench/measure.h"
#include "bench/sink_sends.h"
#include "bench/uring_server.h"
#include "core/owned_fd.h"
#include "core/time.h"

namespace fopd::bench {
namespace {

using Receive = Way::Receive;
using Send = Way::Send;
using Accept = Way::Accept;

// -- the ways that are compared --

struct Load {
    const char* name;
    std::size_t connections = 1;
    std::size_t depth = 1;  // Of each connection.
    std::size_t request_bytes = 64;
    std::size_t reply_bytes = 64;
    bool is_storm = false;  // Each operation makes and ends a connection.
};
constexpr std::size_t kKi = 1U << 10;
constexpr std::size_t kMi = 1U << 20;
constexpr std::array kLoads{
    Load{.name = "echo64"},
    Load{.name = "read4k", .reply_bytes = 4 * kKi},
    Load{.name = "read4k_32", .depth = 32, .reply_bytes = 4 * kKi},
    Load{.name = "read4k_64x4", .connections = 64, .depth = 4, .reply_bytes = 4 * kKi},
    Load{.name = "pull1m", .depth = 8, .request_bytes = kMi},
    Load{.name = "push1m", .depth = 8, .reply_bytes = kMi},
    Load{.name = "push512k", .depth = 8, .reply_bytes = 512 * kKi},
    Load{.name = "push256k", .depth = 8, .reply_bytes = 256 * kKi},
    Load{.name = "push128k", .depth = 8, .reply_bytes = 128 * kKi},
    Load{.name = "push64k", .depth = 8, .reply_bytes = 64 * kKi},
    Load{.name = "storm", .connections = 16, .is_storm = true},
};

enum class For : std::uint8_t { kAll, kSmall, kLargeReplies, kLargeRequests, kStorm };
struct Row {
    For loads;
    Way way;
};
constexpr std::array kRows{
    Row{For::kAll, {.name = "poll"}},
    Row{For::kAll, {.name = "poll, fixed files", .fixed_files = true}},
    Row{For::kAll, {.name = "multishot poll", .receive = Receive::kPollMulti}},
    Row{For::kAll, {.name = "multishot receive", .receive = Receive::kMultishot}},
    Row{For::kLargeRequests,
        {.name = "multishot receive, buffers of 64 KiB",
         .receive = Receive::kMultishot,
         .buffer_bytes = 64 * kKi}},
    Row{For::kAll, {.name = "ring sends", .send = Send::kRing}},
    Row{For::kSmall, {.name = "linked ring sends", .send = Send::kLinked}},
    Row{For::kSmall, {.name = "ring sends, waited for together", .send = Send::kRingBehind}},
    Row{For::kSmall,
        {.name = "multishot receive, ring sends",
         .receive = Receive::kMultishot,
         .send = Send::kRing}},
    Row{For::kSmall,
        {.name = "the same, waited for together",
         .receive = Receive::kMultishot,
         .send = Send::kRingBehind}},
    Row{For::kSmall,
        {.name = "the same, fixed files",
         .receive = Receive::kMultishot,
         .send = Send::kRingBehind,
         .fixed_files = true}},
    Row{For::kLargeReplies, {.name = "MSG_ZEROCOPY", .send = Send::kZeroCall}},
    Row{For::kLargeReplies, {.name = "SEND_ZC", .send = Send::kZeroRing}},
    Row{For::kLargeReplies, {.name = "SEND_ZC, registered buffer", .send = Send::kZeroFixed}},
    Row{For::kStorm, {.name = "poll"}},
    Row{For::kStorm, {.name = "multishot accept", .accept = Accept::kMultishot}},
    Row{For::kStorm,
        {.name = "multishot accept and receive, ring sends",
         .receive = Receive::kMultishot,
         .send = Send::kRing,
         .accept = Accept::kMultishot}},
    Row{For::kStorm,
        {.name = "the same, direct descriptors",
         .receive = Receive::kMultishot,
         .send = Send::kRing,
         .accept = Accept::kDirect,
         .fixed_files = true}},
};

constexpr std::size_t kLarge = 64 * kKi;
bool is_small(const Load& load) {
    return load.request_bytes < kLarge && load.reply_bytes < kLarge;
}

bool is_for(For loads, const Load& load) {
    if (load.is_storm || loads == For::kStorm) return load.is_storm && loads == For::kStorm;
    switch (loads) {
        case For::kSmall: return is_small(load);
        case For::kLargeReplies: return load.reply_bytes >= kLarge;
        case For::kLargeRequests: return load.request_bytes >= kLarge;
        case For::kAll:
        case For::kStorm: break;
    }
    return true;
}

// -- sockets --

struct Site {
    std::string host = "127.0.0.1";
    std::string netns;  // Of the server; empty: that of the client.
};

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) fail("no address: " + host);
    return address;
}

int listen_at(const Site& site, std::uint16_t& port) {
    if (!site.netns.empty()) {
        const int space = ::open(("/run/netns/" + site.netns).c_str(), O_RDONLY | O_CLOEXEC);
        if (space < 0 || ::setns(space, CLONE_NEWNET) != 0) fail("no namespace " + site.netns);
        ::close(space);
    }
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_in address = address_of(site.host, 0);
    socklen_t size = sizeof address;
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd, name, size) != 0 || ::listen(fd, 1024) != 0) fail("cannot listen");
    ::getsockname(fd, name, &size);
    port = ntohs(address.sin_port);
    return fd;
}

// -- the client --

// Keeps `depth` requests outstanding on each connection; runs one load against one server.
class Client {
public:
    Client(const Load& load, const sockaddr_in& server)
        : load_(load),
          server_(server),
          requests_(std::max(load.request_bytes * load.depth, load.request_bytes)),
          epoll_(::epoll_create1(EPOLL_CLOEXEC)),
          links_(load.connections) {
        for (std::size_t i = 0; i < links_.size(); ++i) connect(i);
    }
    ~Client() {
        for (const Link& each : links_) ::close(each.fd);
        ::close(epoll_);
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void run_for(Duration span) {
        const Instant end = kClock.now() + span;
        operations_ = 0;
        latencies_.clear();
        while (kClock.now() < end) {
            if (!turn(10'000)) fail("the server does not answer");
        }
    }
    // Returns false if nothing happens in that time.
    bool turn(int timeout_ms) {
        std::array<epoll_event, 64> events{};
        const int count = ::epoll_wait(epoll_, events.data(), events.size(), timeout_ms);
        const auto present = static_cast<std::size_t>(std::max(count, 0));
        for (const epoll_event& each : std::span(events).first(present)) {
            const auto number = static_cast<std::size_t>(each.data.u64);
            if ((each.events & EPOLLOUT) != 0) send(number);
            if ((each.events & ~static_cast<unsigned>(EPOLLOUT)) != 0) receive(number);
        }
        return count != 0;  // A ring that was closed may interrupt the call.
    }
    std::uint64_t operations() const { return operations_; }
    double latency_us() const { return median(latencies_); }

private:
    struct Link {
        int fd = -1;
        std::uint64_t sent = 0;
        std::uint64_t to_send = 0;
        std::uint64_t received = 0;
        bool waits_for_room = false;
        std::deque<Instant> begun;
    };

    void connect(std::size_t number) {
        Link& link = links_[number];
        link = {};
        link.begun.push_back(kClock.now());
        link.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        ::setsockopt(link.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        // Ends without TIME_WAIT: in a storm of connections it would use up all ports.
        const linger hard{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(link.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        const auto* const name = reinterpret_cast<const sockaddr*>(&server_);
        if (::connect(link.fd, name, sizeof server_) != 0) fail("cannot connect");
        epoll_event event{.events = EPOLLIN, .data = {.u64 = number}};
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, link.fd, &event);
        link.to_send = load_.depth * load_.request_bytes;
        for (std::size_t i = 1; i < load_.depth; ++i) link.begun.push_back(link.begun.front());
        send(number);
    }

    void send(std::size_t number) {
        Link& link = links_[number];
        while (link.sent < link.to_send) {
            const std::size_t at = link.sent % load_.request_bytes;
            const auto bytes =
                std::min<std::uint64_t>(link.to_send - link.sent, requests_.size() - at);
            const ssize_t sent =
                ::send(link.fd, requests_.data() + at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN) fail("the server is gone");
            if (sent < 0) break;
            link.sent += static_cast<std::uint64_t>(sent);
        }
        const bool waits = link.sent < link.to_send;
        if (std::exchange(link.waits_for_room, waits) == waits) return;
        epoll_event event{.events = EPOLLIN | (waits ? EPOLLOUT : 0U), .data = {.u64 = number}};
        ::epoll_ctl(epoll_, EPOLL_CTL_MOD, link.fd, &event);
    }

    void receive(std::size_t number) {
        Link& link = links_[number];
        const ssize_t received = ::recv(link.fd, replies_.data(), replies_.size(), MSG_DONTWAIT);
        if (received < 0 && errno == EAGAIN) return;
        if (received <= 0) fail("the server is gone");
        const std::uint64_t before = link.received / load_.reply_bytes;
        link.received += static_cast<std::uint64_t>(received);
        const std::uint64_t ended = link.received / load_.reply_bytes - before;
        const Instant now = kClock.now();
        for (std::uint64_t i = 0; i < ended; ++i) {
            latencies_.push_back(static_cast<double>((now - link.begun.front()).count()) / 1e3);
            link.begun.pop_front();
            link.begun.push_back(now);
        }
        operations_ += ended;
        if (ended == 0) return;
        if (load_.is_storm) {
            ::close(link.fd);
            return connect(number);
        }
        link.to_send += ended * load_.request_bytes;
        send(number);
    }

    const Load& load_;
    const sockaddr_in server_;
    const std::vector<std::byte> requests_;
    std::vector<std::byte> replies_ = std::vector<std::byte>(256 * kKi);
    const int epoll_;
    std::vector<Link> links_;
    std::uint64_t operations_ = 0;
    std::vector<double> latencies_;
};

// -- rounds --

// A part of a round, or the mean of some.
struct Slice {
    double per_s = 0;
    double cpu_us = 0;  // CPU time of the server, for an operation.
    double calls = 0;   // System calls of the server, for an operation.
    double latency_us = 0;
};
constexpr int kSlicesPerRound = 4;
constexpr Duration kSliceTime = 50ms;
// A machine that does other things, too, slows down most slices. The fastest were not disturbed.
constexpr std::size_t kFastest = 5;

Slice mean_of_fastest(std::vector<Slice> slices) {
    std::ranges::sort(slices, std::ranges::greater(), &Slice::per_s);
    if (slices.size() > kFastest) slices.resize(kFastest);
    Slice sum;
    const auto share = 1.0 / static_cast<double>(slices.size());
    for (const Slice& each : slices) {
        sum.per_s += each.per_s * share;
        sum.cpu_us += each.cpu_us * share;
        sum.calls += each.calls * share;
        sum.latency_us += each.latency_us * share;
    }
    return sum;
}

void measure(const Load& load, const Way& way, const Site& site, std::vector<Slice>& slices) {
    // The server counts in memory that both processes see.
    void* const shared = ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("no memory");
    auto& calls = *static_cast<std::uint64_t*>(shared);
    {
        const Child child([&](const Child::Parent& parent) {
            std::uint16_t port = 0;
            const int listening = listen_at(site, port);
            UringServer server(
                way, {.request_bytes = load.request_bytes, .reply_bytes = load.reply_bytes},
                listening, calls);
            parent.send(port);
            server.run(parent.done_fd());
        });
        Client client(load, address_of(site.host, child.receive<std::uint16_t>()));
        client.run_for(20ms);
        for (int i = 0; i < kSlicesPerRound; ++i) {
            const Duration cpu_before = child.cpu_time();
            const std::uint64_t calls_before = __atomic_load_n(&calls, __ATOMIC_RELAXED);
            const Instant start = kClock.now();
            client.run_for(kSliceTime);
            const Duration span = kClock.now() - start;
            const Duration cpu = child.cpu_time() - cpu_before;
            const auto called = __atomic_load_n(&calls, __ATOMIC_RELAXED) - calls_before;
            if (client.operations() == 0) continue;
            const auto count = static_cast<double>(client.operations());
            slices.push_back({.per_s = count / in_seconds(span),
                              .cpu_us = in_seconds(cpu) * 1e6 / count,
                              .calls = static_cast<double>(called) / count,
                              .latency_us = client.latency_us()});
        }
    }
    ::munmap(shared, sizeof(std::uint64_t));
}

// The time for an operation with server and client on one thread: without sleeps, and with hardly
// any difference between a machine that is busy and one that is not.
struct OneThread {
    // In the server's turns, not for bulk: the kernel also sends while the client receives.
    std::vector<double> server_us;
    std::vector<double> both_us;  // CPU time.
};

void measure(const Load& load, const Way& way, OneThread& times) {
    constexpr std::size_t kBatchesMin = 16;
    // Most batches end before the scheduler lets others run.
    const std::uint64_t per_batch = is_small(load) ? 64 : 8;
    std::uint64_t calls = 0;
    std::uint16_t port = 0;
    const core::OwnedFd listening(listen_at({}, port));
    UringServer server(way, {.request_bytes = load.request_bytes, .reply_bytes = load.reply_bytes},
                       listening.get(), calls);
    Client client(load, address_of("127.0.0.1", port));
    const Instant end = kClock.now() + kSliceTime;
    Instant now{};
    for (std::size_t batch = 0; now < end || batch < kBatchesMin; ++batch) {
        const std::uint64_t operations_before = client.operations();
        const Duration cpu_before = own_cpu_time();
        Duration in_server{};
        while (client.operations() < operations_before + per_batch) {
            const Instant begin = kClock.now();
            server.turn(UringServer::Waiting::kLooks);
            now = kClock.now();
            in_server += now - begin;
            client.turn(0);
        }
        const Duration cpu = own_cpu_time() - cpu_before;
        if (batch == 0) continue;  // The connections are new.
        const auto count = static_cast<double>(client.operations() - operations_before);
        times.server_us.push_back(is_small(load) ? in_seconds(in_server) * 1e6 / count : NAN);
        times.both_us.push_back(in_seconds(cpu) * 1e6 / count);
    }
}

void measure(const Load& load, const Site& site, int rounds) {
    std::array<std::vector<Slice>, kRows.size()> slices;
    std::array<OneThread, kRows.size()> times;
    const bool is_here = site.netns.empty();
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < kRows.size(); ++i) {
            if (!is_for(kRows[i].loads, load)) continue;
            if (is_here) measure(load, kRows[i].way, times[i]);
            measure(load, kRows[i].way, site, slices[i]);
        }
    }
    std::printf("\n%-42s %19s %39s\n", "", "one thread", "two processes");
    std::printf("%-42s %9s %9s %9s %9s %9s %9s\n", load.name, "server us", "both us", "CPU us",
                "calls", "p50 us", "per s");
    for (std::size_t i = 0; i < kRows.size(); ++i) {
        if (slices[i].empty()) continue;
        const double server_us = is_here ? median(std::move(times[i].server_us)) : NAN;
        const double both_us = is_here ? median(std::move(times[i].both_us)) : NAN;
        const Slice mean = mean_of_fastest(std::move(slices[i]));
        std::printf("%-42s %9.2f %9.2f %9.2f %9.2f %9.1f %9.0f\n", kRows[i].way.name, server_us,
                    both_us, mean.cpu_us, mean.calls, mean.latency_us, mean.per_s);
    }
    std::fflush(stdout);
}

}  // namespace
}  // namespace fopd::bench

int main(int argc, char* argv[]) {
    using namespace fopd::bench;
    int rounds = 5;
    Site site;
    std::string sink;
    std::vector<std::string_view> wanted;
    const std::span words(argv, static_cast<std::size_t>(argc));
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        const std::size_t follow = words.size() - i - 1;
        if (word == "--rounds" && follow >= 1) {
            rounds = std::max(std::atoi(words[++i]), 1);
        } else if (word == "--netns" && follow >= 2) {
            site.netns = words[++i];
            site.host = words[++i];
        } else if (word == "--sink" && follow >= 1) {
            sink = words[++i];
        } else if (std::ranges::find(kLoads, word, &Load::name) != kLoads.end()) {
            wanted.push_back(word);
        } else {
            std::fprintf(stderr,
                         "usage: bench_uring [--rounds N] [--netns NAME HOST] [load...]\n"
                         "       bench_uring [--rounds N] --sink HOST\nloads:");
            for (const Load& each : kLoads) std::fprintf(stderr, " %s", each.name);
            std::fprintf(stderr, "\n");
            return 2;
        }
    }
    std::printf("%s, Linux %s; %d rounds\n", cpu_model().c_str(), kernel_release().c_str(), rounds);
    if (!sink.empty()) {
        measure_sink_sends(sink, rounds);
        return 0;
    }
    for (const Load& each : kLoads) {
        if (wanted.empty() || std::ranges::find(wanted, each.name) != wanted.end()) {
            measure(each, site, rounds);
        }
    }
}
