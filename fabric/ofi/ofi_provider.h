#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <sys/socket.h>

#include "core/ensure.h"
#include "core/events.h"
#include "core/result.h"
#include "fabric/address.h"
#include "fabric/ofi_transport.h"
#include "fabric/socket_address.h"

namespace fopd::fabric {

struct CloseFid {
    template <typename Fid>
    void operator()(Fid* object) const {
        // Busy: an object made from it is still open.
        ENSURE(fi_close(&object->fid) != -FI_EBUSY);
    }
};
// Owns an object of libfabric. It is destroyed after the objects made from it.
template <typename Fid>
using OwnedFid = std::unique_ptr<Fid, CloseFid>;

struct FreeInfo {
    void operator()(fi_info* info) const { ::fi_freeinfo(info); }
};
using OwnedInfo = std::unique_ptr<fi_info, FreeInfo>;

// An event of a connection, with the data that the peer sent with it.
struct ConnectionEvent {
    std::uint32_t kind = 0;
    fi_eq_cm_entry entry() const;
    std::span<const std::byte> data() const;

    // Reads the next event of a queue: returns its size, -FI_EAGAIN, or -FI_EAVAIL if an error is
    // to be read.
    ssize_t read(fid_eq& queue);

private:
    // Room for more data than any provider sends.
    std::array<std::byte, sizeof(fi_eq_cm_entry) + 512> bytes_;
    std::size_t size_bytes_ = 0;
};

// The parts that all machines and acceptors of a transport share. Not changed after it is open;
// libfabric locks the objects in it.
struct Provider {
    core::EventSink& events;
    OfiOptions options;
    OwnedInfo info;  // The provider's offer, without addresses.
    OwnedFid<fid_fabric> fabric;
    // A bug of the provider: it frees a read twice if we end the connection while the answer
    // arrives. It does not if it notices the end of the stream by itself.
    bool frees_reads_twice = false;

    Result<void> open();
    // False: the provider is `verbs`. Then the adapter also works while the machine does not poll,
    // and there are separate descriptors for completions and for events of connections.
    bool is_tcp() const { return options.scheme == kOfiTcpScheme; }
    bool registers_local_memory() const { return (info->domain_attr->mr_mode & FI_MR_LOCAL) != 0; }

    // The parameters of an endpoint that listens at `source` or connects to `target`; null if there
    // is no memory.
    OwnedInfo info_from(const SocketAddress& source) const;
    OwnedInfo info_to(const SocketAddress& target) const;

private:
    Result<void> choose(const fi_info& offers);
};

// `code` is the result of a libfabric call, negative or positive.
Error provider_error(long code, const char* context);

}  // namespace fopd::fabric
