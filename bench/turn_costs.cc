#include "bench/turn_costs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "bench/measure.h"
#include "core/owned_fd.h"
#include "fabric/tcp/frame_reader.h"
#include "fabric/tcp/record_reader.h"
#include "fop/record_cipher.h"

namespace fopd::bench {

namespace {

constexpr int kCostRounds = 7;
constexpr Duration kCostRound = 20ms;
constexpr std::size_t kSmallBytes = fabric::kFrameHeaderBytes;

double ns_between(Instant from, Instant to) {
    return static_cast<double>((to - from).count());
}

// How long one unit takes of what `job` does, which returns how many units it has done.
template <typename Job>
double unit_ns(Job job) {
    std::vector<double> rounds;
    for (int round = 0; round < kCostRounds; ++round) {
        double units = 0;
        const Instant start = kClock.now();
        Instant now = start;
        do {
            units += static_cast<double>(job());
            now = kClock.now();
        } while (now - start < kCostRound);
        rounds.push_back(ns_between(start, now) / units);
    }
    return median(std::move(rounds));
}

// The same of two jobs that take turns: the second one works on what the first one has done, which
// returns how many units that is.
struct PairNs {
    double first = 0;
    double second = 0;
};
template <typename First, typename Second>
PairNs pair_ns(First first, Second second) {
    std::vector<double> firsts;
    std::vector<double> seconds;
    for (int round = 0; round < kCostRounds; ++round) {
        PairNs spent;
        double units = 0;
        while (spent.first + spent.second < static_cast<double>(kCostRound.count())) {
            const Instant start = kClock.now();
            const std::size_t done = first();
            const Instant between = kClock.now();
            second(done);
            spent.first += ns_between(start, between);
            spent.second += ns_between(between, kClock.now());
            units += static_cast<double>(done);
        }
        firsts.push_back(spent.first / units);
        seconds.push_back(spent.second / units);
    }
    return {.first = median(std::move(firsts)), .second = median(std::move(seconds))};
}

// -- frames --

class CountedFrames final : public fabric::FrameUser {
public:
    Result<Destination> on_frame(const fabric::Frame&) override { return Destination{}; }
    bool on_body(const fabric::Frame&, std::span<const std::byte>) override {
        ++count;
        return true;
    }
    std::uint64_t count = 0;
};

double parsed_byte_ns() {
    constexpr std::size_t kFrames = 2048;
    std::vector<std::byte> stream;
    const fabric::FrameHeader header = fabric::encode_frame({});
    for (std::size_t i = 0; i < kFrames; ++i)
        stream.insert(stream.end(), header.begin(), header.end());
    CountedFrames frames;
    fabric::FrameReader reader(frames);
    const double each = unit_ns([&] {
        if (!reader.take(stream)) fail("frames");
        return stream.size();
    });
    if (frames.count == 0) fail("no frame was read");
    return each;
}

// -- records --

struct CipherTimes {
    double seal_ns = 0;
    double open_ns = 0;
    double longer_ns() const { return std::max(seal_ns, open_ns); }
};

// Of one record.
CipherTimes time_records(std::size_t plain_bytes) {
    using fop::RecordCipher;
    constexpr std::size_t kRecords = 64;
    fop::Key key;
    RecordCipher sealing(key, RecordCipher::Way::kSeal);
    RecordCipher opening(key, RecordCipher::Way::kOpen);
    const fabric::RecordLabel label = fabric::encode_record_label(plain_bytes);
    std::vector<std::byte> plain(plain_bytes, std::byte{'x'});
    const std::array<std::span<const std::byte>, 1> parts{plain};
    std::vector<std::vector<std::byte>> records(
        kRecords, std::vector<std::byte>(plain_bytes + RecordCipher::kTagBytes));
    const auto seal_all = [&] {
        for (std::vector<std::byte>& each : records) sealing.seal(label, parts, each);
        return kRecords;
    };
    const auto open_all = [&](std::size_t) {
        for (const std::vector<std::byte>& each : records) {
            if (!opening.open(label, each, plain)) fail("a record does not open");
        }
    };
    const PairNs times = pair_ns(seal_all, open_all);
    return {.seal_ns = times.first, .open_ns = times.second};
}

// -- sockets --

// Two ends of a connection over the loopback device, which do not wait.
class LoopbackPair {
public:
    LoopbackPair() {
        const core::OwnedFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const name = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listening.get(), name, size) != 0 || ::listen(listening.get(), 1) != 0 ||
            ::getsockname(listening.get(), name, &size) != 0) {
            fail("listen");
        }
        from_ = core::OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::connect(from_.get(), name, size) != 0) fail("connect");
        to_ = core::OwnedFd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
        const int on = 1;
        ::setsockopt(from_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }

    std::size_t send(std::span<std::byte> bytes) const {
        iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        const ssize_t sent = ::sendmsg(from_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) fail("send");
        return sent < 0 ? 0 : static_cast<std::size_t>(sent);
    }
    std::size_t receive(std::span<std::byte> bytes) const {
        iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        const ssize_t received = ::recvmsg(to_.get(), &message, MSG_DONTWAIT);
        if (received == 0 || (received < 0 && errno != EAGAIN)) fail("receive");
        return received < 0 ? 0 : static_cast<std::size_t>(received);
    }

private:
    core::OwnedFd from_;
    core::OwnedFd to_;
};

struct SocketTimes {
    double sent_byte_ns = 0;
    double received_byte_ns = 0;
};

// Of a byte, if each call has so many; of a call, if each has one.
SocketTimes time_sockets(const LoopbackPair& pair, std::size_t bytes_of_call) {
    std::vector<std::byte> source(bytes_of_call, std::byte{'x'});
    std::vector<std::byte> target(bytes_of_call);
    const auto receive_all = [&](std::size_t sent) {
        for (std::size_t left = sent; left > 0;) {
            left -= pair.receive(std::span(target).first(left));
        }
    };
    const PairNs times = pair_ns([&] { return pair.send(source); }, receive_all);
    return {.sent_byte_ns = times.first, .received_byte_ns = times.second};
}

}  // namespace

TurnCosts measure_turn_costs() {
    constexpr std::size_t kLargeCallBytes = 64U << 10;
    constexpr int kEmptyReceives = 100;
    const double parsed = parsed_byte_ns();
    const LoopbackPair pair;
    const SocketTimes large = time_sockets(pair, kLargeCallBytes);
    const SocketTimes small = time_sockets(pair, 1);
    std::array<std::byte, kSmallBytes> nothing{};
    const double empty = unit_ns([&] {
        for (int i = 0; i < kEmptyReceives; ++i) {
            if (pair.receive(nothing) != 0) fail("something arrived");
        }
        return kEmptyReceives;
    });
    TurnCosts costs{.parsed_byte_ns = parsed,
                    .received_bytes = parsed / large.received_byte_ns,
                    .sent_bytes = parsed / large.sent_byte_ns,
                    .empty_receive = empty / parsed,
                    .short_send = small.sent_byte_ns / parsed};
    if (fop::RecordCipher::is_available()) {
        const double large_record = time_records(fabric::kRecordPlainMax).longer_ns();
        costs.ciphered_bytes = parsed / (large_record / fabric::kRecordPlainMax);
        costs.record = time_records(kSmallBytes).longer_ns() / parsed;
    }
    return costs;
}

}  // namespace fopd::bench
