#include "bench/sink_sends.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <arpa/inet.h>
#include <liburing.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/measure.h"
#include "core/owned_fd.h"
#include "core/time.h"

namespace fopd::bench {

namespace {

constexpr std::size_t kMebibyte = 1U << 20;
constexpr std::array<std::size_t, 4> kSizes{4U << 10, 16U << 10, 32U << 10, 60U << 10};

enum class SinkWay : std::uint8_t { kCall, kZeroCall, kRing, kZeroRing, kZeroFixed };
struct SinkRow {
    const char* name;
    SinkWay way;
};
constexpr std::array kSinkRows{
    SinkRow{"send(2)", SinkWay::kCall},
    SinkRow{"MSG_ZEROCOPY", SinkWay::kZeroCall},
    SinkRow{"IORING_OP_SEND", SinkWay::kRing},
    SinkRow{"SEND_ZC", SinkWay::kZeroRing},
    SinkRow{"SEND_ZC, registered buffer", SinkWay::kZeroFixed},
};

// Sends from one place after the other in memory; all sends are copied, or none is.
class Sender {
public:
    Sender(SinkWay way, const std::string& host, std::size_t memory_bytes)
        : way_(way),
          memory_(memory_bytes, std::byte{1}),
          socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(9);
        if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) fail("no address");
        const auto* const name = reinterpret_cast<const sockaddr*>(&address);
        if (::connect(socket_.get(), name, sizeof address) != 0) fail("no way to " + host);
        const int on = 1;
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on);
        if (io_uring_queue_init(64, &ring_,
                                IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) != 0) {
            fail("no io_uring");
        }
        const iovec region{.iov_base = memory_.data(), .iov_len = memory_.size()};
        if (way == SinkWay::kZeroFixed && io_uring_register_buffers(&ring_, &region, 1) != 0) {
            fail("no registered buffers");
        }
    }
    ~Sender() { io_uring_queue_exit(&ring_); }
    Sender(const Sender&) = delete;
    Sender& operator=(const Sender&) = delete;

    void send(std::size_t bytes) {
        if (at_ + bytes > memory_.size()) at_ = 0;
        const std::byte* const from = memory_.data() + at_;
        at_ += bytes;
        const bool is_call = way_ == SinkWay::kCall || way_ == SinkWay::kZeroCall;
        if (!is_call) return send_by_ring(from, bytes);
        const int zero = way_ == SinkWay::kZeroCall ? MSG_ZEROCOPY : 0;
        if (::send(socket_.get(), from, bytes, zero) != static_cast<ssize_t>(bytes)) fail("send");
        if (zero != 0) take_notice();
    }

private:
    void take_notice() {
        std::array<char, 128> control{};
        msghdr message{};
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        if (::recvmsg(socket_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) fail("no notice");
        const auto* const notice =
            reinterpret_cast<const sock_extended_err*>(CMSG_DATA(CMSG_FIRSTHDR(&message)));
        if ((notice->ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) fail("the kernel copies");
    }

    void send_by_ring(const std::byte* from, std::size_t bytes) {
        io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
        if (way_ == SinkWay::kRing) {
            io_uring_prep_send(entry, socket_.get(), from, bytes, 0);
        } else if (way_ == SinkWay::kZeroRing) {
            io_uring_prep_send_zc(entry, socket_.get(), from, bytes, 0, 0);
        } else {
            io_uring_prep_send_zc_fixed(entry, socket_.get(), from, bytes, 0, 0, 0);
        }
        // A send without a copy has two completions: it was sent, and its memory is free.
        const unsigned completions = way_ == SinkWay::kRing ? 1 : 2;
        io_uring_submit_and_wait(&ring_, completions);
        for (unsigned i = 0; i < completions; ++i) {
            io_uring_cqe* cqe = nullptr;
            if (io_uring_wait_cqe(&ring_, &cqe) != 0 || cqe->res < 0) fail("send");
            io_uring_cqe_seen(&ring_, cqe);
        }
    }

    const SinkWay way_;
    std::vector<std::byte> memory_;
    std::size_t at_ = 0;
    core::OwnedFd socket_;
    io_uring ring_{};
};

}  // namespace

void measure_sink_sends(const std::string& host, int rounds) {
    constexpr int kSendsPerBatch = 20;
    constexpr int kBatches = 100;
    for (const std::size_t memory_bytes : {kMebibyte, 256 * kMebibyte}) {
        std::printf("\nfrom %3zu MiB of memory%20s", memory_bytes >> 20, "");
        for (const std::size_t bytes : kSizes) std::printf(" %5zu KiB", bytes >> 10);
        std::printf("   (us)\n");
        std::array<std::array<std::vector<double>, kSizes.size()>, kSinkRows.size()> values;
        for (int round = 0; round < rounds; ++round) {
            for (std::size_t row = 0; row < kSinkRows.size(); ++row) {
                Sender sender(kSinkRows[row].way, host, memory_bytes);
                for (int batch = 0; batch < kBatches * static_cast<int>(kSizes.size()); ++batch) {
                    const std::size_t size = static_cast<std::size_t>(batch) % kSizes.size();
                    const Instant start = kClock.now();
                    for (int i = 0; i < kSendsPerBatch; ++i) sender.send(kSizes[size]);
                    const Duration span = kClock.now() - start;
                    values[row][size].push_back(in_seconds(span) * 1e6 / kSendsPerBatch);
                }
            }
        }
        for (std::size_t row = 0; row < kSinkRows.size(); ++row) {
            std::printf("%-42s", kSinkRows[row].name);
            for (auto& each : values[row]) std::printf(" %9.2f", median(std::move(each)));
            std::printf("\n");
        }
    }
}

}  // namespace fopd::bench
