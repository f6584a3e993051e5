#include "bench/bare_transfer.h"

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "bench/child.h"
#include "bench/fabric_stage.h"
#include "bench/measure.h"

namespace fopd::bench {

namespace {

constexpr std::size_t kTargetBuffers = 32;
constexpr std::size_t kInFlightMax = 16;
constexpr std::uint64_t kKey = 7;

void check(long code, const char* what) {
    if (code < 0) fail(std::string(what) + ": " + fi_strerror(static_cast<int>(-code)));
}

struct CloseAny {
    template <typename Fid>
    void operator()(Fid* object) const {
        fi_close(&object->fid);
    }
};
template <typename Fid>
using Owned = std::unique_ptr<Fid, CloseAny>;

struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

Info info_of(const char* port, std::uint64_t flags) {
    const Info hints(fi_allocinfo());
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->fabric_attr->prov_name = ::strdup("tcp");
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    fi_info* found = nullptr;
    check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", port, flags, hints.get(), &found),
          "fi_getinfo");
    return Info(found);
}

// One end of the connection, with its libfabric objects.
struct Side {
    explicit Side(Info from) : info(std::move(from)) {
        fid_fabric* opened = nullptr;
        check(fi_fabric(info->fabric_attr, &opened, nullptr), "fi_fabric");
        fabric.reset(opened);
        fi_eq_attr wanted{};
        wanted.wait_obj = FI_WAIT_UNSPEC;
        fid_eq* queue = nullptr;
        check(fi_eq_open(fabric.get(), &wanted, &queue, nullptr), "fi_eq_open");
        events.reset(queue);
    }

    void open(fi_info& of) {
        fid_domain* opened = nullptr;
        check(fi_domain(fabric.get(), &of, &opened, nullptr), "fi_domain");
        domain.reset(opened);
        fi_cq_attr wanted{};
        wanted.format = FI_CQ_FORMAT_CONTEXT;
        fid_cq* queue = nullptr;
        check(fi_cq_open(opened, &wanted, &queue, nullptr), "fi_cq_open");
        completions.reset(queue);
        fid_ep* made = nullptr;
        check(fi_endpoint(opened, &of, &made, nullptr), "fi_endpoint");
        endpoint.reset(made);
        check(fi_ep_bind(made, &events->fid, 0), "bind");
        check(fi_ep_bind(made, &queue->fid, FI_TRANSMIT | FI_RECV), "bind");
        check(fi_enable(made), "fi_enable");
    }

    // The next event; both sides make progress meanwhile.
    std::uint32_t wait_event(fi_eq_cm_entry& entry) const {
        for (;;) {
            std::uint32_t kind = 0;
            const ssize_t size = fi_eq_read(events.get(), &kind, &entry, sizeof entry, 0);
            if (size >= 0) return kind;
            if (size != -FI_EAGAIN) fail("connection of the bare transfer");
            if (completions) {
                fi_cq_entry ignored;
                fi_cq_read(completions.get(), &ignored, 0);
            }
        }
    }

    Info info;
    Owned<fid_fabric> fabric;
    Owned<fid_eq> events;
    Owned<fid_domain> domain;
    Owned<fid_cq> completions;
    Owned<fid_mr> region;
    Owned<fid_ep> endpoint;
};

// The side whose memory it is.
void serve(const Child::Parent& parent) {
    std::vector<std::byte> memory(kTargetBuffers * kBufferBytes);
    Side side(info_of("0", FI_SOURCE));
    fid_pep* listening = nullptr;
    check(fi_passive_ep(side.fabric.get(), side.info.get(), &listening, nullptr), "fi_passive_ep");
    const Owned<fid_pep> listener(listening);
    check(fi_pep_bind(listening, &side.events->fid, 0), "bind");
    check(fi_listen(listening), "fi_listen");
    sockaddr_in address{};
    std::size_t size = sizeof address;
    check(fi_getname(&listening->fid, &address, &size), "fi_getname");
    parent.send(address.sin_port);

    fi_eq_cm_entry entry{};
    if (side.wait_event(entry) != FI_CONNREQ) fail("no request to connect");
    const Info request(entry.info);
    side.open(*request);
    fid_mr* region = nullptr;
    check(fi_mr_reg(side.domain.get(), memory.data(), memory.size(),
                    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, kKey, 0, &region, nullptr),
          "fi_mr_reg");
    side.region.reset(region);
    check(fi_accept(side.endpoint.get(), nullptr, 0), "fi_accept");
    if (side.wait_event(entry) != FI_CONNECTED) fail("not connected");
    pollfd done{.fd = parent.done_fd(), .events = POLLIN, .revents = 0};
    for (std::uint32_t turns = 1;; ++turns) {
        fi_cq_entry ignored;
        fi_cq_read(side.completions.get(), &ignored, 1);
        if (turns % 4096 == 0 && ::poll(&done, 1, 0) > 0) return;
    }
}

}  // namespace

class BareTransfer::Connection {
public:
    Connection() : target_(&serve), side_(info_of(nullptr, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = target_.receive<in_port_t>();
        side_.info = info_of(std::to_string(ntohs(address.sin_port)).c_str(), 0);
        side_.open(*side_.info);
        check(fi_connect(side_.endpoint.get(), &address, nullptr, 0), "fi_connect");
        fi_eq_cm_entry entry{};
        if (side_.wait_event(entry) != FI_CONNECTED) fail("not connected");
    }

    double mbps(Direction direction, std::size_t depth, Duration span) {
        const Instant start = kClock.now();
        std::uint64_t transfers = 0;
        std::size_t under_way = 0;
        for (; under_way < depth; ++under_way) begin(direction, under_way);
        while (under_way > 0) {
            std::array<fi_cq_entry, kInFlightMax> done;
            const ssize_t count = fi_cq_read(side_.completions.get(), done.data(), done.size());
            if (count == -FI_EAGAIN) continue;
            check(count, "fi_cq_read");
            const bool enough = kClock.now() - start >= span;
            for (const fi_cq_entry& each : std::span(done).first(static_cast<std::size_t>(count))) {
                ++transfers;
                const auto slot = static_cast<std::size_t>(
                    static_cast<fi_context2*>(each.op_context) - contexts_.data());
                if (enough) {
                    --under_way;
                } else {
                    begin(direction, slot);
                }
            }
        }
        const auto took = static_cast<double>((kClock.now() - start).count());
        return static_cast<double>(transfers * kBufferBytes) / took * 1000;
    }

private:
    void begin(Direction direction, std::size_t slot) {
        std::byte* const local = memory_.data() + slot * kBufferBytes;
        const std::uint64_t remote = next_++ % kTargetBuffers * kBufferBytes;
        const ssize_t begun = direction == Direction::kRead
                                  ? fi_read(side_.endpoint.get(), local, kBufferBytes, nullptr,
                                            FI_ADDR_UNSPEC, remote, kKey, &contexts_[slot])
                                  : fi_write(side_.endpoint.get(), local, kBufferBytes, nullptr,
                                             FI_ADDR_UNSPEC, remote, kKey, &contexts_[slot]);
        check(begun, "fi_read or fi_write");
    }

    const Child target_;
    std::vector<std::byte> memory_ = std::vector<std::byte>(kInFlightMax * kBufferBytes);
    std::array<fi_context2, kInFlightMax> contexts_{};
    std::uint64_t next_ = 0;
    Side side_;
};

BareTransfer::BareTransfer() : connection_(std::make_unique<Connection>()) {}
BareTransfer::~BareTransfer() = default;

double BareTransfer::mbps(Direction direction, std::size_t depth, Duration span) {
    return connection_->mbps(direction, depth, span);
}

}  // namespace fopd::bench
